// Package terminal is the person before the program: whether there is one, what they are asked, which shell they
// sit at, and how lines reach them past a progress bar or a slow reader.
package terminal

import (
	"bufio"
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
}

// CanAnswer reports whether there is one.
func (p Person) CanAnswer() bool { return Is(p.In) && Is(p.Err) }

// Confirm asks a question. Whatever is no yes, or an interruption, is an error that says that nothing was done.
func (p Person) Confirm(question, nothing, hint string) error {
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
