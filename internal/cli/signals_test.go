package cli

import (
	"errors"
	"io"
	"os"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"
)

// The first signal interrupts; others within a moment are the same one; the next one
// after it ends the context. fault 5
func TestSignalsWithinAMomentAreOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		signals := make(chan os.Signal, 4)
		ctx, interrupt := Watch(signals)
		state := func() (n int) {
			synctest.Wait()
			select {
			case <-interrupt:
				n++
			default:
			}
			if ctx.Err() != nil {
				n++
			}
			return n
		}
		for _, step := range []struct {
			after time.Duration
			want  int
		}{{0, 1}, {0, 1}, {moment / 2, 1}, {moment, 2}} {
			time.Sleep(step.after)
			signals <- os.Interrupt
			if got := state(); got != step.want {
				t.Errorf("after %v more: %d, want %d", step.after, got, step.want)
			}
		}
	})
}

// What a tap reads is what came, in any portions, up to the error that ends it; once it
// is let go of, no read waits.
func TestTapLetsGo(t *testing.T) {
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
	if err := iotest.TestReader(newTap(&prefix{in: r, err: broken}), text); err != nil {
		t.Error(err)
	}
	idle := newTap(iotest.DataErrReader(blocked{}))
	time.AfterFunc(10*time.Millisecond, idle.letGo)
	for range 2 {
		if _, err := idle.Read(make([]byte, 1)); !errors.Is(err, errLetGo) {
			t.Errorf("idle: %v", err)
		}
	}
	idle.letGo() // again does no harm
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
