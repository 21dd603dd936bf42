package cli

import (
	"errors"
	"io"
	"sync"
)

// tap is standard input that a run lets go of when it wants no more rows: a read of a
// terminal or a pipe cannot be called off, so its goroutine ends with the process.
type tap struct {
	in   io.Reader
	got  chan []byte
	err  error  // what ended the reading, once got is closed
	rest []byte // of the last read
	open sync.Once

	gone chan struct{}
	shut sync.Once
}

func newTap(in io.Reader) *tap {
	return &tap{in: in, got: make(chan []byte), gone: make(chan struct{})}
}

var errLetGo = errors.New("nobody reads it any more")

// letGo ends reads, those to come too.
func (t *tap) letGo() { t.shut.Do(func() { close(t.gone) }) }

// Read gives what has come, or waits for more.
func (t *tap) Read(b []byte) (int, error) {
	t.open.Do(func() { go t.pump() })
	for len(t.rest) == 0 {
		select {
		case more, ok := <-t.got:
			if !ok {
				return 0, t.err
			}
			t.rest = more
		case <-t.gone:
			return 0, errLetGo
		}
	}
	n := copy(b, t.rest)
	t.rest = t.rest[n:]
	return n, nil
}

// pump reads into one buffer while the other is emptied.
func (t *tap) pump() {
	defer close(t.got)
	now, next := make([]byte, 64<<10), make([]byte, 64<<10)
	for {
		n, err := t.in.Read(now)
		if n > 0 {
			select {
			case t.got <- now[:n]:
			case <-t.gone:
				return
			}
		}
		if t.err = err; err != nil {
			return
		}
		now, next = next, now
	}
}
