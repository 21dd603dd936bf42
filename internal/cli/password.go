package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"
)

// maxPassword bounds a password, in bytes.
const maxPassword = 4096

// password comes from the environment, a terminal without echo, or the first line of
// standard input. Its errors never hold it.
func (p *program) password(ctx context.Context, prompt string) (string, error) {
	text := os.Getenv("LEADFERRY_PASSWORD")
	if text == "" {
		var err error
		if text, err = p.readPassword(ctx, prompt); err != nil {
			return "", err
		}
	}
	switch {
	case text == "":
		return "", usage("no password given", "type it, set LEADFERRY_PASSWORD, or pipe it into standard input")
	case len(text) > maxPassword || !utf8.ValidString(text):
		return "", usage("the password is too long, or no text in UTF-8", "")
	}
	return text, nil
}

// readPassword waits for a line or the end of ctx. A read of a terminal cannot be
// called off: its goroutine ends with the process, and the echo is put back here.
func (p *program) readPassword(ctx context.Context, prompt string) (string, error) {
	fd := int(p.In.Fd())
	read := func() (string, error) {
		line, err := bufio.NewReader(io.LimitReader(p.In, maxPassword+2)).ReadString('\n')
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return line, err
	}
	if before, err := term.GetState(fd); err == nil {
		fmt.Fprint(p.Err, prompt)
		defer func() { term.Restore(fd, before); fmt.Fprintln(p.Err) }()
		read = func() (string, error) { b, err := term.ReadPassword(fd); return string(b), err }
	}
	type line struct {
		text string
		err  error
	}
	got := make(chan line, 1)
	go func() {
		text, err := read()
		got <- line{strings.TrimRight(text, "\r\n"), err}
	}()
	select {
	case l := <-got:
		if l.err != nil && !errors.Is(l.err, io.EOF) {
			return "", usage(fmt.Sprintf("the password cannot be read: %v", l.err), "set LEADFERRY_PASSWORD, or pipe it into standard input")
		}
		return l.text, nil
	case <-ctx.Done():
		return "", context.Canceled
	}
}
