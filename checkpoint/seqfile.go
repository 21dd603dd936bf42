package checkpoint

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"strconv"
	"strings"
)

// mark is what PATH.seq holds: which file it belongs to, the number of that
// file's last commit, and whether a run ended in order. It is one line of
// fixed length, overwritten in place and well inside one disk sector.
type mark struct {
	id    fileID
	seq   uint64
	clean bool
	pid   int
}

const markForm = "leadferry-checkpoint %016x %020d %-5s %010d"

func (m mark) line() []byte {
	state := "open"
	if m.clean {
		state = "clean"
	}
	s := fmt.Sprintf(markForm, uint64(m.id), m.seq, state, m.pid)
	return fmt.Appendf(nil, "%s %08x\n", s, crc32.Checksum([]byte(s), castagnoli))
}

// parseMark accepts exactly what line writes.
func parseMark(line []byte) (m mark, ok bool) {
	fields := strings.Fields(string(line))
	if len(fields) != 6 {
		return m, false
	}
	var errs [3]error
	id, err := strconv.ParseUint(fields[1], 16, 64)
	m.id, errs[0] = fileID(id), err
	m.seq, errs[1] = strconv.ParseUint(fields[2], 10, 64)
	m.pid, errs[2] = strconv.Atoi(fields[4])
	m.clean = fields[3] == "clean"
	return m, errors.Join(errs[:]...) == nil && string(m.line()) == string(line)
}

// readMark returns found == false when PATH.seq is missing or unreadable.
func readMark(path string) (m mark, found bool, err error) {
	line, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return m, false, nil
	}
	if err != nil {
		return m, false, fmt.Errorf("read sequence file: %w", err)
	}
	m, found = parseMark(line)
	return m, found, nil
}

// openMark opens PATH.seq for writing, never through a symbolic link.
func openMark(path string) (*os.File, error) {
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(f.Chmod(0o600), f.Truncate(int64(len(mark{}.line())))); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
