package cli

import (
	"bytes"
	"errors"
	"io"
	"os"
)

// spool keeps what a command has to say until its checkpoint is closed: who reads it
// slowly, as less does, holds no lock. Much of it goes into a temporary file that has no
// name any more, or stays in memory where none can be made or filled.
type spool struct {
	memory bytes.Buffer
	file   *os.File
	size   int64 // of the file
	full   bool  // memory holds all that it may hold; without a file, it goes on
}

// mostSpooled is how many bytes stay in memory.
const mostSpooled = 16 << 20

// Write keeps b.
func (s *spool) Write(b []byte) (int, error) {
	if !s.full && s.memory.Len()+len(b) > mostSpooled {
		s.full = true
		s.file = nameless()
	}
	if s.file == nil {
		return s.memory.Write(b)
	}
	if n, err := s.file.WriteAt(b, s.size); err == nil {
		s.size += int64(n)
		return n, nil
	}
	if err := s.giveUpFile(); err != nil {
		return 0, err
	}
	return s.memory.Write(b)
}

// giveUpFile takes back what stands in a file whose disk is full.
func (s *spool) giveUpFile() error {
	_, err := s.memory.ReadFrom(io.NewSectionReader(s.file, 0, s.size))
	err = errors.Join(err, s.file.Close())
	s.file = nil
	return err
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

// into writes everything into a new file, or leaves none.
func (s *spool) into(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if err := errors.Join(s.tell(f), f.Close()); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return nil
}

// tell writes everything to out and lets go of it.
func (s *spool) tell(out io.Writer) error {
	_, err := s.memory.WriteTo(out)
	if s.file == nil {
		return err
	}
	if err == nil {
		if _, err = s.file.Seek(0, io.SeekStart); err == nil {
			_, err = io.Copy(out, s.file)
		}
	}
	return errors.Join(err, s.file.Close())
}
