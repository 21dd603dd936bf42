package bolt

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"

	"leadferry/internal/disk"
)

// seqLine is what PATH.seq holds: which file it belongs to, the number of that
// file's last commit, what it knew then, and whether a run ended in order. It is one line of
// fixed length, overwritten in place and well inside one disk sector.
type seqLine struct {
	id    fileID
	seq   uint64
	leads uint64 // keys with a lead or in doubt, as of that commit
	clean bool
	pid   int
	host  uint64 // keyed hash of the machine's ID; 0: it has none
	file  uint64 // keyed hash of the boot, of which file it is and, where a run ended in order, as what it was left; 0: nobody knows
}

const seqForm = "leadferry-checkpoint %016x %020d %020d %-5s %010d %016x %016x"

func (m seqLine) line() []byte {
	state := "open"
	if m.clean {
		state = "clean"
	}
	s := fmt.Sprintf(seqForm, uint64(m.id), m.seq, m.leads, state, m.pid, m.host, m.file)
	return fmt.Appendf(nil, "%s %08x\n", s, crc32.Checksum([]byte(s), crc32.MakeTable(crc32.Castagnoli)))
}

// parseSeqLine accepts exactly what line writes.
func parseSeqLine(line []byte) (m seqLine, ok bool) {
	fields := strings.Fields(string(line))
	if len(fields) != 9 {
		return m, false
	}
	var errs [6]error
	m.id, errs[0] = parseID(fields[1])
	m.seq, errs[1] = strconv.ParseUint(fields[2], 10, 64)
	m.leads, errs[2] = strconv.ParseUint(fields[3], 10, 64)
	m.pid, errs[3] = strconv.Atoi(fields[5])
	m.host, errs[4] = strconv.ParseUint(fields[6], 16, 64)
	m.file, errs[5] = strconv.ParseUint(fields[7], 16, 64)
	m.clean = fields[4] == "clean"
	return m, errors.Join(errs[:]...) == nil && string(m.line()) == string(line)
}

// hostOf is what the line says of the machine whose ID stands in the file at path: that it is
// another one than before, and no more. Containers mostly have none.
func hostOf(path string, secret []byte) uint64 {
	id, err := os.ReadFile(path)
	if id = bytes.TrimSpace(id); err != nil || len(id) != 32 {
		return 0
	}
	return keyed(secret, id)
}

// fileOf is what the line says of the file itself: that it is this one since the machine was
// started and, once a run has ended in order, that nobody has written to it since.
func (d *Store) fileOf(ended bool) uint64 {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	info, failed := d.file.Stat()
	if err != nil || failed != nil || disk.FileNumber(info) == "" {
		return 0
	}
	text := fmt.Appendf(boot, " %s", disk.FileNumber(info))
	if ended {
		text = fmt.Appendf(text, " %d %d", info.Size(), info.ModTime().UnixNano())
	}
	return keyed(d.header.secret, text)
}

func keyed(secret, text []byte) uint64 {
	mac := hmac.New(sha256.New, secret)
	mac.Write(text)
	return binary.BigEndian.Uint64(mac.Sum(nil))
}

// readSeq returns found == false when PATH.seq is missing or unreadable.
func readSeq(path string) (m seqLine, found bool, err error) {
	f, err := openOwn(path, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return m, false, nil
	}
	if err != nil {
		return m, false, fmt.Errorf("read sequence file: %w", err)
	}
	defer f.Close()
	line, err := io.ReadAll(io.LimitReader(f, 1<<10)) // the line has a tenth of that
	if err != nil {
		return m, false, fmt.Errorf("read sequence file: %w", err)
	}
	m, found = parseSeqLine(line)
	return m, found, nil
}

// openOwn opens a file beside the checkpoint, or the checkpoint itself: never through a
// symbolic link, which somebody may have planted, nor one that he may have written.
func openOwn(path string, flags int) (*os.File, error) {
	var f *os.File
	err := disk.OpenPatiently(0, func() (err error) {
		f, err = os.OpenFile(path, flags|disk.NoFollow|disk.NonBlock, 0o600)
		return err
	})
	if errors.Is(err, syscall.ELOOP) {
		return nil, fmt.Errorf("%s is a symbolic link, which is not followed", path)
	}
	if err != nil {
		return nil, err
	}
	info, err := disk.StatOpen(f)
	switch {
	case err != nil:
	case !info.Mode().IsRegular():
		err = fmt.Errorf("%s is not a regular file", path)
	case !disk.Trusted(info):
		err = fmt.Errorf("%s %w", path, errAnothers)
	default:
		return f, nil
	}
	return nil, errors.Join(err, f.Close())
}

var errAnothers = errors.New("belongs to another user, who may have written what he likes into it")

// openSeq opens PATH.seq for writing.
func openSeq(path string) (*os.File, error) {
	f, err := openOwn(path, os.O_RDWR|os.O_CREATE)
	if err != nil {
		return nil, err
	}
	narrow(f)
	if err := f.Truncate(int64(len(seqLine{}.line()))); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
