// Package terminal is the person before the program: whether there is one, what they are asked, which shell they
// sit at, and how lines reach them past a progress bar or a slow reader.
package terminal

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"

	"golang.org/x/term"

	"leadferry/importer/report"
	"leadferry/internal/cli/exit"
	"leadferry/internal/cli/reference"
	"leadferry/internal/shell"
)

// Is reports whether f is one that a person looks at.
func Is(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

// Width is how many columns f shows: 80 where it is no terminal.
func Width(f *os.File) int {
	if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 0 {
		return w
	}
	return 80
}

// Person is who may be asked.
type Person struct {
	In, Err   *os.File
	Interrupt <-chan struct{} // ends a question
	Yes       bool            // was said beforehand
}

// CanAnswer reports whether there is one, or has answered already.
func (p Person) CanAnswer() bool { return p.Yes || Is(p.In) && Is(p.Err) }

// Confirm asks a question. Whatever is no yes, or an interruption, is an error that says that nothing was done.
func (p Person) Confirm(question, nothing, hint string) error {
	if p.Yes {
		return nil
	}
	fmt.Fprint(p.Err, reference.Wrap(question+" [y/N]", Width(p.Err))+" ")
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

// Secret asks for a line that is not shown; of input that is no terminal, it is the first line, and little more than most
// bytes of it are read.
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
	if _, err := e.To.Write(report.EscapeJSON(line)); err != nil {
		return 0, err
	}
	return len(line), nil
}

// Shell is a kind of shell that the lines of leadferry sandbox are pasted into.
type Shell int

const (
	posix Shell = iota
	powerShell
	cmd
)

// Set is the line that gives an environment variable a value.
func (s Shell) Set(name, value string) string {
	switch s {
	case powerShell:
		return "$env:" + name + " = '" + strings.ReplaceAll(value, "'", "''") + "'\n"
	case cmd:
		return `set "` + name + "=" + value + "\"\n"
	}
	return "export " + name + "=" + shell.Word(value) + "\n"
}

// Unset are the lines that take variables away.
func (s Shell) Unset(names []string) string {
	switch s {
	case powerShell:
		return "$env:" + strings.Join(names, " = $null\n$env:") + " = $null\n"
	case cmd:
		return "set " + strings.Join(names, "=\nset ") + "=\n"
	}
	return "unset " + strings.Join(names, " ") + "\n"
}

// shellOf is the shell whose program has this name on Windows: PowerShell, where it is none of these.
func shellOf(program string) Shell {
	switch name := strings.TrimSuffix(strings.ToLower(program), ".exe"); name {
	case "cmd":
		return cmd
	case "sh", "bash", "zsh":
		return posix
	}
	return powerShell
}

// Spool keeps what a command has to say until its checkpoint is closed, since who reads it slowly, as less does, must hold
// no lock; or what it reads more than once. That stands in a temporary file that has no name any more, or in memory where
// none can be made or filled.
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
	// The disk is full: what stands there is taken back.
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
