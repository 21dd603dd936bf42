package source

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

// What is read of a stream is what came, in any portions, up to the error that ends it; once it
// is let go of, no read waits.
func TestAStreamLetsGo(t *testing.T) {
	text := make([]byte, 300_000)
	for i := range text {
		text[i] = byte(i * 7)
	}
	broken := errors.New("broken")
	r, w := io.Pipe()
	go func() {
		for rest := text; len(rest) > 0; {
			n := min(len(rest), 1+len(rest)/3)
			w.Write(rest[:n])
			rest = rest[n:]
		}
		w.CloseWithError(broken)
	}()
	if err := iotest.TestReader(NewStream(&prefix{in: r, err: broken}), text); err != nil {
		t.Error(err)
	}
	idle := NewStream(iotest.DataErrReader(blocked{}))
	time.AfterFunc(10*time.Millisecond, func() { idle.Close() })
	for range 2 {
		if _, err := idle.Read(make([]byte, 1)); !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("idle: %v", err)
		}
	}
}

// prefix ends in order where its reader ends with err.
type prefix struct {
	in  io.Reader
	err error
}

func (p *prefix) Read(b []byte) (int, error) {
	n, err := p.in.Read(b)
	if errors.Is(err, p.err) {
		err = io.EOF
	}
	return n, err
}

type blocked struct{}

func (blocked) Read([]byte) (int, error) { select {} }

// What looks ahead of the rows sees what is there up to a pause, whatever the format; whoever reads on is told before it waits.
func TestAPausingStream(t *testing.T) {
	for format, text := range map[Format]string{JSONL: `{"a":"1"}` + "\n", CSV: "a\n1\n"} {
		r, w := io.Pipe()
		paused := make(chan struct{}, 100)
		go func() {
			io.WriteString(w, text)
			<-paused
			io.WriteString(w, strings.ReplaceAll(text, "a\n", "")) // the second row comes once somebody waits for it
			w.Close()
		}()
		f, err := Open("-", Options{Stdin: NewStream(r), Format: format})
		if err != nil {
			t.Fatal(format, err)
		}
		f.OnPause(func() { paused <- struct{}{} })
		if format == JSONL {
			if n := f.LookAhead(1) + 10*f.LookAhead(1000); n != 11 {
				t.Errorf("%s: looked %d rows ahead", format, n)
			}
		}
		var row Row
		for n := range 2 {
			if err := f.Next(&row); err != nil || row.Number != n+1 {
				t.Fatalf("%s: row %d: %v", format, n, err)
			}
		}
		if err := f.Next(&row); !errors.Is(err, io.EOF) {
			t.Error(format, err)
		}
	}
}
