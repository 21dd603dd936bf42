package report

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// output is a file on its way to its name.
type output struct {
	path    string
	partial string // what it is called until then; "" for a device or a pipe, written as it is
	file    *os.File
	buffer  *bufio.Writer
}

const outputBuffer = 64 << 10

// create opens path.partial anew, 0600. What a killed run left under that name goes.
func create(path string) (*output, error) {
	special, err := isSpecial(path)
	if err != nil {
		return nil, err
	}
	o := &output{path: path, partial: path + ".partial"}
	if special {
		o.partial = ""
		o.file, err = os.OpenFile(path, os.O_WRONLY, 0)
	} else {
		if err := os.Remove(o.partial); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		o.file, err = plant(o.partial)
	}
	if err != nil {
		return nil, err
	}
	o.buffer = bufio.NewWriterSize(o.file, outputBuffer)
	return o, nil
}

// plant makes a new file. What has come to stand there meanwhile is an error, also a
// symbolic link: O_EXCL with O_CREATE follows none.
func plant(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
}

// isSpecial reports whether path is no place for a file of ours but something to be
// written as it is, like a device or a pipe. A link to such a thing is refused:
// replacing /dev/stdout would break more than this run.
func isSpecial(path string) (bool, error) {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	case info.Mode()&fs.ModeSymlink == 0:
		return !info.Mode().IsRegular(), nil
	}
	target, err := os.Stat(path)
	if err == nil && !target.Mode().IsRegular() {
		return false, fmt.Errorf("%s is a symbolic link to something that is not a file: symbolic links are not followed", path)
	}
	return false, nil
}

func (o *output) Write(p []byte) (int, error) { return o.buffer.Write(p) }

// commit makes the content durable and gives the file its name. The caller syncs
// the folder.
func (o *output) commit() error {
	defer o.file.Close()
	if err := o.buffer.Flush(); err != nil {
		return err
	}
	if o.partial == "" {
		return o.file.Close()
	}
	if err := o.file.Sync(); err != nil {
		return err
	}
	if err := o.own(); err != nil {
		return err
	}
	if err := o.file.Close(); err != nil {
		return err
	}
	return os.Rename(o.partial, o.path)
}

// own fails when NAME.partial is no longer the file that was opened.
func (o *output) own() error {
	mine, err := o.file.Stat()
	if err != nil {
		return err
	}
	there, err := os.Lstat(o.partial)
	if err != nil {
		return err
	}
	if !os.SameFile(mine, there) {
		return fmt.Errorf("%s was replaced by another run while this one wrote it", o.partial)
	}
	return nil
}

// discard leaves nothing of the output behind.
func (o *output) discard() error {
	defer o.file.Close()
	if o.partial == "" {
		return nil
	}
	if err := o.own(); err != nil {
		return err
	}
	return os.Remove(o.partial)
}

// syncFolder makes the names in a folder durable, where its file system can.
func syncFolder(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Sync(); err != nil && !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, syscall.EINVAL) {
		return err
	}
	return nil
}
