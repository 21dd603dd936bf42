package source

import (
	"io"
	"sync"
	"time"

	"leadferry/importer/source/rows"
)

// pauseTime is how long no bytes may come before a stream counts as pausing.
const pauseTime = 200 * time.Millisecond

// Stream is a source that may pause, such as standard input. Reading ahead ends at a pause, and Next says when no more
// may come for a while. It can be closed while a Read waits, which a pipe cannot; the goroutine that reads the pipe
// ends with the process.
type Stream struct {
	pieces chan []byte // from in
	err    error       // that ended in, once pieces is closed

	close  func()
	closed chan struct{}

	left   []byte // of the present piece
	whole  bool   // what was given ends a line
	looks  bool   // a pause ends the looking ahead
	paused func() // told before a wait
}

// NewStream begins to read in.
func NewStream(in io.Reader) *Stream {
	s := &Stream{pieces: make(chan []byte), closed: make(chan struct{})}
	s.close = sync.OnceFunc(func() { close(s.closed) })
	go s.fill(in)
	return s
}

func (s *Stream) fill(in io.Reader) {
	defer close(s.pieces)
	for s.err == nil {
		room := make([]byte, 64<<10)
		n, err := in.Read(room)
		if n > 0 {
			select {
			case s.pieces <- room[:n]:
			case <-s.closed:
				return
			}
		}
		s.err = err
	}
}

// Close ends the reading.
func (s *Stream) Close() error {
	s.close()
	return nil
}

// Read returns what has come, or waits for more. While looking ahead, at the end of a line, it returns rows.ErrPause
// instead of waiting.
func (s *Stream) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if len(s.left) == 0 {
		if err := s.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, s.left)
	s.left, s.whole = s.left[n:], s.left[n-1] == '\n'
	return n, nil
}

// next waits for the next piece.
func (s *Stream) next() error {
	pause := time.NewTimer(pauseTime)
	defer pause.Stop()
	for {
		select {
		case piece, more := <-s.pieces:
			if !more {
				return s.err
			}
			s.left = piece
			return nil
		case <-s.closed:
			return io.ErrClosedPipe
		case <-pause.C:
		}
		if s.looks && s.whole {
			return rows.ErrPause
		}
		if s.paused != nil {
			s.paused()
		}
	}
}

// look makes reads end at a pause.
func (s *Stream) look(on bool) {
	if s != nil {
		s.looks = on
	}
}
