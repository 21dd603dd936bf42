// Package terminal talks to the person at the terminal: whether there is one, what the program asks, and how lines and
// screens get there, past a progress bar or a slow reader.
package terminal

import (
	"bufio"
	"bytes"
	"cmp"
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

// Is reports whether f is a terminal.
func Is(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

// Width returns how many columns f shows: 80 if it is no terminal.
func Width(f *os.File) int {
	if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 0 {
		return w
	}
	return Columns
}

// Colours reports whether output to f is coloured. word is always, never or auto: on a terminal without NO_COLOR.
func Colours(f *os.File, word string) bool {
	allowed := os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	return word == "always" || word != "never" && allowed && Is(f)
}

// Person is the user who may be asked.
type Person struct {
	In, Err   *os.File
	Interrupt <-chan struct{} // ends a question
	Yes       bool            // answers yes beforehand
}

// CanAnswer reports whether there is a person at a terminal, or Yes is set.
func (p Person) CanAnswer() bool { return p.Yes || Is(p.In) && Is(p.Err) }

// Confirm asks a question. An interruption, or any answer but yes, is an error with the text nothing.
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
	return exit.Usage(nothing, hint) // no answer means no
}

// Secret asks for a line that is not shown. If the input is no terminal, it reads the first line, of at most two bytes
// more than most.
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

// line returns the next line of in, without its end.
func (p Person) line(in io.Reader) (string, error) {
	return p.await(func() ([]byte, error) { return bufio.NewReader(in).ReadBytes('\n') })
}

// await waits for what a person types, or for an interruption; then the read's goroutine lives until the process ends.
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

// OpenFile opens a file as a double click does, for example a page in the browser.
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

// Log receives log lines and writes them to standard error, or above a progress bar.
type Log struct {
	mu sync.Mutex
	to io.Writer
}

func (l *Log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.to.Write(b)
}

// Redirect sends everything that follows to another writer.
func (l *Log) Redirect(to io.Writer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.to = to
}

// Escaping writes lines of JSON without anything that a terminal obeys.
type Escaping struct{ To io.Writer }

func (e Escaping) Write(line []byte) (int, error) {
	_, err := e.To.Write(spelling.EscapeJSON(line))
	return len(line), err
}

// Spool keeps a command's output until its checkpoint is closed: a slow reader, such as less, must not hold a lock. It
// uses a temporary file without a name, or memory if the file cannot be made.
type Spool struct {
	lost   error    // why something is missing
	file   *os.File // nil: in memory
	size   int64    // of the file
	memory bytes.Buffer
}

// Write keeps b.
func (s *Spool) Write(b []byte) (int, error) {
	if s.file == nil && s.memory.Len() == 0 {
		s.file = nameless()
	}
	if s.file == nil {
		return s.memory.Write(b)
	}
	n, err := s.file.WriteAt(b, s.size)
	s.size += int64(n)
	s.lost = cmp.Or(s.lost, err)
	return n, err
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

// Content returns what was written, from the beginning.
func (s *Spool) Content() io.ReadSeeker {
	if s.file == nil {
		return bytes.NewReader(s.memory.Bytes())
	}
	return io.NewSectionReader(s.file, 0, s.size)
}

// Close frees the file.
func (s *Spool) Close() error {
	if s.file == nil {
		return nil
	}
	return s.file.Close()
}

// FlushTo writes everything to out and closes the Spool.
func (s *Spool) FlushTo(out io.Writer) error {
	_, err := io.Copy(out, s.Content())
	return cmp.Or(s.lost, errors.Join(err, s.Close()))
}

// Columns is the width of help screens: they fit every terminal and can be quoted.
const Columns = 80

// Screen is a text that fits into [Columns].
type Screen struct{ strings.Builder }

// Line adds one line.
func (s *Screen) Line(format string, args ...any) { fmt.Fprintf(s, format+"\n", args...) }

// Heading begins a part of the screen.
func (s *Screen) Heading(text string) { s.Line("\n%s:", strings.ToUpper(text)) }

// Entry adds a name and, from a column on, its meaning.
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

// Wrap breaks the lines of a text between words, so that no line is wider than width unless a single word is.
func Wrap(text string, width int) string {
	var all []string
	for line := range strings.SplitSeq(text, "\n") {
		all = append(all, spelling.Wrap("", "", line, width)...)
	}
	return strings.Join(all, "\n")
}
