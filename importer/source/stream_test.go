package source

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"testing/iotest"
	"time"
)

// A stream passes on what came, in any portions, up to the error that ends it. After Close, no read waits.
func TestAStreamPassesOnAllBytesUntilItIsClosed(t *testing.T) {
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
	if got, err := io.ReadAll(iotest.HalfReader(NewStream(r))); !bytes.Equal(got, text) || !errors.Is(err, broken) {
		t.Errorf("%d bytes, then %v", len(got), err)
	}
	idle := NewStream(iotest.DataErrReader(blocked{}))
	time.AfterFunc(10*time.Millisecond, func() { idle.Close() })
	for range 2 {
		if _, err := idle.Read(make([]byte, 1)); !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("idle: %v", err)
		}
	}
}

type blocked struct{}

func (blocked) Read([]byte) (int, error) { select {} }
