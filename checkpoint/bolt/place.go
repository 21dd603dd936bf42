package bolt

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"leadferry/checkpoint"
	"leadferry/internal/disk"
)

// leftAs says how the file stands now: a hash of the boot of the machine, of which file it is, its size and its
// time. As long as it is equal, nobody has written to the file. "" where the system does not tell.
func (d *Store) leftAs() string {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	info, failed := d.file.Stat()
	if err != nil || failed != nil || disk.FileNumber(info) == "" {
		return ""
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %s %d %d", boot, disk.FileNumber(info), info.Size(), info.ModTime().UnixNano()))
	return hex.EncodeToString(sum[:8])
}

// AtEnd has f called when the use of the file has ended in order and before its lock is let go, with how the file is left.
func (d *Store) AtEnd(f func(left string)) { d.atEnd = f }

// openOwn opens the checkpoint, or a file beside it: never through a symbolic link, which somebody may have planted, nor
// one that another user may have written.
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
	info, err := f.Stat()
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

// resolved is the one name of a file, whatever folder the program was started in: absolute,
// with symbolic links followed, also where the file is not there yet.
func resolved(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	} else if dir, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		path = filepath.Join(dir, filepath.Base(path))
	}
	if whole, err := filepath.Abs(path); err == nil {
		path = whole
	}
	return path
}

// Reached says how far the file knows a run to have come, see [checkpoint.Store].
func (d *Store) Reached(ctx context.Context, run string) (commits uint64, knows bool, err error) {
	note, err := d.Note(ctx, checkpoint.RunNote(run))
	return d.tally.Load().seq, note != nil, err
}

// Progress is the number of the last commit, and how many keys have a lead or may have one.
func (d *Store) Progress() (commits uint64, leads int) {
	t := d.tally.Load()
	return t.seq, int(t.known())
}
