package source

import (
	"io"
	"os"
)

// maxHeld is how much a scratch keeps in memory.
const maxHeld = 8 << 20

// scratch keeps bytes that are written once and then read anywhere: in memory
// while they are few, beyond that in a temporary file (of mode 0600, in the
// folder that TMPDIR names). They are people's data: where the system allows it
// the file loses its name at once, so that nothing is left even after a kill.
type scratch struct {
	size int64
	held []byte
	file *os.File
	name string // of the file while it has one
}

// Write appends bytes.
func (s *scratch) Write(p []byte) (int, error) {
	if s.file == nil && len(s.held)+len(p) > maxHeld {
		if err := s.spill(); err != nil {
			return 0, err
		}
	}
	n := len(p)
	if s.file == nil {
		s.held = append(s.held, p...)
	} else {
		var err error
		if n, err = s.file.Write(p); err != nil {
			return n, err
		}
	}
	s.size += int64(n)
	return n, nil
}

// spill moves what is held into a file.
func (s *scratch) spill() error {
	file, err := os.CreateTemp("", "leadferry-")
	if err != nil {
		return err
	}
	s.file = file
	if os.Remove(file.Name()) != nil {
		s.name = file.Name()
	}
	_, err = file.Write(s.held)
	s.held = nil
	return err
}

// ReadAt reads what was written, as [io.ReaderAt] has it.
func (s *scratch) ReadAt(p []byte, offset int64) (int, error) {
	if s.file != nil {
		return s.file.ReadAt(p, offset)
	}
	if offset < 0 || offset >= int64(len(s.held)) {
		return 0, io.EOF
	}
	n := copy(p, s.held[offset:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// readFull fills p from what was written.
func (s *scratch) readFull(p []byte, offset int64) error {
	n, err := s.ReadAt(p, offset)
	if n == len(p) {
		return nil
	}
	return unexpected(err)
}

// Close removes the bytes.
func (s *scratch) Close() error {
	s.held = nil
	if s.file == nil {
		return nil
	}
	err := s.file.Close()
	if s.name != "" {
		err = os.Remove(s.name)
	}
	s.file, s.name = nil, ""
	return err
}
