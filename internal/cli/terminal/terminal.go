// Package terminal is the person before the program: whether there is one, what they are asked, and how lines and
// screens reach them, past a progress bar or a slow reader.
package terminal

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"golang.org/x/term"

	"leadferry/internal/cli/exit"
	"leadferry/internal/spelling"
)

// Is reports whether f is one that a person looks at.
func Is(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

// Width is how many columns f shows: 80 where it is no terminal.
func Width(f *os.File) int {
	if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 0 {
		return w
	}
	return Columns
}

// Colours reports whether what f shows is coloured, by a word: always, never or, as a person expects, auto.
func Colours(f *os.File, word string) bool {
	switch word {
	case "always", "never":
		return word == "always"
	}
	// The console of old Windows shows the codes themselves; newer ones say who they are.
	knows := runtime.GOOS != "windows" || os.Getenv("WT_SESSION") != "" || os.Getenv("TERM") != ""
	return os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && knows && Is(f)
}

// Person is who may be asked.
type Person struct {
	In, Err   *os.File
	Interrupt <-chan struct{} // ends a question
	Yes       bool            // was said beforehand
}

// CanAnswer reports whether there is one, or has answered already.
func (p Person) CanAnswer() bool { return p.Yes || Is(p.In) && Is(p.Err) }

// Confirm asks a question. Anything but yes, and an interruption, is an error that says that nothing was done.
func (p Person) Confirm(question, nothing, hint string) error {
	if p.Yes {
		return nil
	}
	fmt.Fprint(p.Err, Wrap(question+" [y/N]", Width(p.Err))+" ")
	answer, err := p.line(p.In)
	switch {
	case errors.Is(err, exit.ErrInterrupted):
		fmt.Fprintln(p.Err)
		return exit.Interrupted("interrupted: " + nothing)
	case slices.Contains([]string{"y", "yes"}, strings.ToLower(strings.TrimSpace(answer))):
		return nil
	}
	return exit.Usage(nothing, hint) // no answer is a no
}

// Secret asks for a line that is not shown. Of input that is no terminal it reads the first line, and little more than
// most bytes.
func (p Person) Secret(prompt string, most int64) (string, error) {
	fd := int(p.In.Fd())
	before, err := term.GetState(fd)
	if err != nil {
		return p.line(io.LimitReader(p.In, most+2))
	}
	fmt.Fprint(p.Err, prompt)
	defer func() { term.Restore(fd, before); fmt.Fprintln(p.Err) }() // also after an interruption
	return p.await(func() ([]byte, error) { return term.ReadPassword(fd) })
}

// line is the next line of in, without its end.
func (p Person) line(in io.Reader) (string, error) {
	return p.await(func() ([]byte, error) { return bufio.NewReader(in).ReadBytes('\n') })
}

// await waits for what a person types, or for an interruption. A read of a terminal
// cannot be called off: its goroutine ends with the process.
func (p Person) await(read func() ([]byte, error)) (string, error) {
	type line struct {
		text []byte
		err  error
	}
	got := make(chan line, 1)
	go func() {
		text, err := read()
		got <- line{text, err}
	}()
	select {
	case l := <-got:
		if errors.Is(l.err, io.EOF) {
			l.err = nil
		}
		return strings.TrimRight(string(l.text), "\r\n"), l.err
	case <-p.Interrupt:
		return "", exit.ErrInterrupted
	}
}

// OpenFile opens a file as a double click does, a page in the browser.
func OpenFile(path string) error {
	whole, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	opener := []string{"xdg-open", whole}
	switch runtime.GOOS {
	case "darwin":
		opener = []string{"open", whole}
	case "windows":
		opener = []string{"rundll32", "url.dll,FileProtocolHandler", whole}
	}
	return exec.Command(opener[0], opener[1:]...).Run()
}

// Log is where log lines go: standard error, or a progress bar that keeps them above itself.
type Log struct {
	mu sync.Mutex
	to io.Writer
}

func (l *Log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.to.Write(b)
}

// Redirect sends all that follows to another place.
func (l *Log) Redirect(to io.Writer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.to = to
}

// Escaping writes lines of JSON with nothing in them that a terminal obeys.
type Escaping struct{ To io.Writer }

func (e Escaping) Write(line []byte) (int, error) {
	if _, err := e.To.Write(spelling.EscapeJSON(line)); err != nil {
		return 0, err
	}
	return len(line), nil
}

// Spool keeps what a command has to say until its checkpoint is closed: who reads it slowly, as less does, must hold no
// lock. It is kept in a temporary file without a name, or in memory where that cannot be made or filled.
type Spool struct {
	Begun  bool     // something was written
	file   *os.File // nil: in memory
	size   int64    // of the file
	memory bytes.Buffer
}

// Write keeps b.
func (s *Spool) Write(b []byte) (int, error) {
	if !s.Begun {
		s.Begun, s.file = true, nameless()
	}
	if s.file == nil {
		return s.memory.Write(b)
	}
	if n, err := s.file.WriteAt(b, s.size); err == nil {
		s.size += int64(n)
		return n, nil
	}
	// The disk is full: what is in the file is taken back.
	_, err := s.memory.ReadFrom(io.NewSectionReader(s.file, 0, s.size))
	if err = errors.Join(err, s.file.Close()); err != nil {
		return 0, err
	}
	s.file = nil
	return s.memory.Write(b)
}

func nameless() *os.File {
	f, err := os.CreateTemp("", "leadferry-*")
	if err != nil {
		return nil
	}
	if os.Remove(f.Name()) != nil { // a system that keeps the names of open files
		f.Close()
		os.Remove(f.Name())
		return nil
	}
	return f
}

// Content is what was written, from its beginning on.
func (s *Spool) Content() io.ReadSeeker {
	if s.file == nil {
		return bytes.NewReader(s.memory.Bytes())
	}
	return io.NewSectionReader(s.file, 0, s.size)
}

// Close lets go of it.
func (s *Spool) Close() error {
	if s.file == nil {
		return nil
	}
	return s.file.Close()
}

// Tell writes everything to out and lets go of it.
func (s *Spool) Tell(out io.Writer) error {
	_, err := io.Copy(out, s.Content())
	return errors.Join(err, s.Close())
}

// Columns is the width of screens of help, so that they fit every terminal and can be quoted.
const Columns = 80

// Screen is a text that keeps to [Columns].
type Screen struct{ strings.Builder }

// Line adds one line.
func (s *Screen) Line(format string, args ...any) { fmt.Fprintf(s, format+"\n", args...) }

// Heading begins a part of the screen.
func (s *Screen) Heading(text string) { s.Line("\n%s:", strings.ToUpper(text)) }

// Entry adds a name and, from a column on, what it means.
func (s *Screen) Entry(name, about string, column int) {
	if utf8.RuneCountInString(name)+2 > column {
		s.Line("%s", name)
		name = ""
	}
	for line := range strings.SplitSeq(Wrap(about, Columns-column), "\n") {
		s.Line("%-*s%s", column, name, line)
		name = ""
	}
}

// Text adds lines, each wrapped.
func (s *Screen) Text(text string) { s.Line("%s", Wrap(strings.Trim(text, "\n"), Columns)) }

// Wrap breaks the lines of a text between words, so that none has more columns than width unless a word has.
func Wrap(text string, width int) string {
	var all []string
	for line := range strings.SplitSeq(text, "\n") {
		all = append(all, spelling.Wrap("", "", line, width)...)
	}
	return strings.Join(all, "\n")
}
