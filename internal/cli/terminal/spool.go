package terminal

import (
	"bytes"
	"errors"
	"io"
	"os"
)

// Spool keeps what a command has to say until its checkpoint is closed: who reads it
// slowly, as less does, holds no lock. It is kept in a temporary file that has no name any
// more, or in memory where none can be made or filled.
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

// Tell writes everything to out and lets go of it.
func (s *Spool) Tell(out io.Writer) error {
	if s.file == nil {
		_, err := s.memory.WriteTo(out)
		return err
	}
	_, err := io.Copy(out, io.NewSectionReader(s.file, 0, s.size))
	return errors.Join(err, s.file.Close())
}
