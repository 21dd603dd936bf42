package source

import (
	"bytes"
	"io"
	"sync"
	"time"

	"leadferry/importer/source/rows"
)

// pauseTime is how long bytes may stay away before a stream counts as pausing.
const pauseTime = 200 * time.Millisecond

// Stream is a source whose bytes come when they come, as those of standard input may. What looks ahead of the rows sees what
// is there, up to a pause, and whoever has rows in hand is told that no more may come for a while. It can be closed while a
// Read waits, which a terminal or a pipe cannot: the goroutine that reads these ends with the process.
type Stream struct {
	pieces chan []byte // from in
	spare  chan []byte // room for them
	err    error       // that ended in, once pieces is closed

	close  func()
	closed chan struct{}

	piece, left []byte
	least       int    // lines that have to be there: a header and a row
	lines       int    // that were given
	whole       bool   // the last one of them
	looks       bool   // a pause ends the looking ahead
	paused      func() // told before a wait
}

// NewStream begins to read in.
func NewStream(in io.Reader) *Stream {
	s := &Stream{pieces: make(chan []byte), spare: make(chan []byte, 2), closed: make(chan struct{}), least: 2}
	s.close = sync.OnceFunc(func() { close(s.closed) })
	for range cap(s.spare) {
		s.spare <- make([]byte, 64<<10)
	}
	go s.fill(in)
	return s
}

func (s *Stream) fill(in io.Reader) {
	defer close(s.pieces)
	for room := range s.spare {
		n, err := in.Read(room[:cap(room)])
		if n > 0 {
			select {
			case s.pieces <- room[:n]:
			case <-s.closed:
				return
			}
		}
		if s.err = err; err != nil {
			return
		}
		if n == 0 {
			s.spare <- room
		}
	}
}

// Close ends the reading.
func (s *Stream) Close() error {
	s.close()
	return nil
}

// Read gives what has come, waits for more, or gives rows.ErrPause to what looks ahead, if it has a whole line at least.
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
	s.lines, s.whole = s.lines+bytes.Count(s.left[:n], []byte{'\n'}), s.left[n-1] == '\n'
	s.left = s.left[n:]
	return n, nil
}

// next waits for the next piece.
func (s *Stream) next() error {
	if s.piece != nil {
		s.spare <- s.piece[:cap(s.piece)]
		s.piece = nil
	}
	pause := time.NewTimer(pauseTime)
	defer pause.Stop()
	for {
		select {
		case piece, more := <-s.pieces:
			if !more {
				return s.err
			}
			s.piece, s.left = piece, piece
			return nil
		case <-s.closed:
			return io.ErrClosedPipe
		case <-pause.C:
		}
		if s.looks && s.whole && s.lines >= s.least {
			return rows.ErrPause
		}
		if s.paused != nil {
			s.paused()
		}
	}
}

// look has what follows see no further than a pause.
func (s *Stream) look(on bool) {
	if s != nil {
		s.looks = on
	}
}
