package report

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"leadferry/internal/trust"
)

// output is a file on its way to its name. Its folder is held open, so that whoever
// puts another one in its place receives nothing.
type output struct {
	path    string
	folder  *os.Root
	name    string // in the folder
	partial string // what it is called there until then; "" for a device or a pipe, written as it is
	file    *os.File
	buffer  *bufio.Writer
}

const outputBuffer = 64 << 10

// partialEnd is what the name of a file ends with until it is complete.
const partialEnd = ".partial"

// create opens path.partial anew, 0600. What a killed run left under that name goes.
// folder is the one that path lies in.
func create(folder *os.Root, path string) (*output, error) {
	o := &output{path: path, folder: folder, name: filepath.Base(path)}
	special, err := o.isSpecial()
	switch {
	case os.IsPathSeparator(path[len(path)-1]):
		err = errors.New("is the name of a folder")
	case err != nil:
	case special:
		o.file, err = o.openSpecial()
	default:
		o.partial = o.name + partialEnd
		if err = folder.Remove(o.partial); err == nil || errors.Is(err, fs.ErrNotExist) {
			o.file, err = plant(folder, o.partial)
		}
	}
	if err != nil {
		return nil, o.failed(err)
	}
	o.buffer = bufio.NewWriterSize(o.file, outputBuffer)
	return o, nil
}

// plant makes a new file. What has come to stand there meanwhile is an error, also a
// symbolic link: O_EXCL with O_CREATE follows none.
func plant(folder *os.Root, name string) (*os.File, error) {
	return folder.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
}

// failed gives an error of the folder the whole path.
func (o *output) failed(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err
	} else if e, ok := errors.AsType[*os.LinkError](err); ok {
		err = e.Err
	}
	return fmt.Errorf("%s: %w", o.path, err)
}

// isSpecial reports whether path is no place for a file of ours but something to be
// written as it is, like a device or a pipe. A link to such a thing is refused:
// replacing /dev/stdout would break more than this run.
func (o *output) isSpecial() (bool, error) {
	info, err := o.folder.Lstat(o.name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	case info.IsDir():
		return false, errors.New("is a folder")
	case trust.MountPoint(o.path):
		return false, errors.New("is mounted by itself, so that no file can take its place: mount its folder")
	case info.Mode()&fs.ModeSymlink == 0:
		return !info.Mode().IsRegular(), nil
	}
	target, err := os.Stat(o.path)
	if err == nil && !target.Mode().IsRegular() {
		return false, errors.New("is a symbolic link to something that is not a file: symbolic links are not followed")
	}
	return false, nil
}

var errNotOurs = errors.New("belongs to another user, who would receive what is written to it")

// openSpecial opens a device or a pipe of the user's own or of root's, and no other: it
// may have been planted.
func (o *output) openSpecial() (*os.File, error) {
	info, err := o.folder.Lstat(o.name)
	if err == nil && !trust.Trusted(info) { // before it is waited for
		err = errNotOurs
	}
	if err != nil {
		return nil, err
	}
	f, err := o.folder.OpenFile(o.name, os.O_WRONLY|trust.NoFollow, 0)
	if err != nil {
		return nil, err
	}
	if opened, err := f.Stat(); err != nil || !os.SameFile(info, opened) {
		return nil, errors.Join(errors.New("was replaced while it was opened"), err, f.Close())
	}
	return f, nil
}

func (o *output) Write(p []byte) (int, error) { return o.buffer.Write(p) }

// commit makes the content durable, gives the file its name and makes that durable.
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
	if err := o.folder.Rename(o.partial, o.name); err != nil {
		return o.failed(err)
	}
	return syncFolder(o.folder)
}

// is reports whether a file is this output, under the name that it bears now.
func (o *output) is(file fs.FileInfo) bool {
	return slices.ContainsFunc([]string{o.name, o.partial}, func(name string) bool {
		ours, err := o.folder.Lstat(name)
		return err == nil && os.SameFile(ours, file)
	})
}

// own fails when NAME.partial is no longer the file that was opened.
func (o *output) own() error {
	mine, err := o.file.Stat()
	if err != nil {
		return err
	}
	there, err := o.folder.Lstat(o.partial)
	if err != nil {
		return o.failed(err)
	}
	if !os.SameFile(mine, there) {
		return fmt.Errorf("%s was replaced by another run while this one wrote it", o.path+partialEnd)
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
	return o.folder.Remove(o.partial)
}

// syncFolder makes the names in a folder durable, where its file system can.
func syncFolder(folder *os.Root) error {
	d, err := folder.Open(".")
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Sync(); err != nil && !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, syscall.EINVAL) {
		return err
	}
	return nil
}
