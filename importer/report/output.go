package report

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"leadferry/internal/disk"
)

// output is a file on its way to its name. Its folder is held open, so that anyone who
// puts another one in its place receives nothing.
type output struct {
	path    string
	folder  *os.Root
	name    string // in the folder
	partial string // what it is called there until then; "" for a device or a pipe, written as it is
	file    *os.File
	opened  fs.FileInfo // by which the file is known again
	buffer  *bufio.Writer
	lines   *csv.Writer // into the buffer; nil: other text
	texts   []bool      // which columns of lines of ours hold texts from outside
}

const outputBuffer = 64 << 10

// partialEnd is what the name of a file ends with until it is complete.
const partialEnd = ".partial"

// create opens path.partial anew, 0600. What a killed run left under that name goes.
// folder is the one that path lies in.
func create(folder *os.Root, path string) (*output, error) {
	o := &output{path: path, folder: folder, name: filepath.Base(path)}
	err := o.open()
	if err == nil {
		o.opened, err = o.file.Stat()
	}
	if err != nil {
		return nil, o.failed(err)
	}
	o.buffer = bufio.NewWriterSize(o.file, outputBuffer)
	return o, nil
}

func (o *output) open() error {
	var there fs.FileInfo
	err := disk.Patiently(func() (err error) { there, err = o.folder.Lstat(o.name); return err })
	switch {
	case os.IsPathSeparator(o.path[len(o.path)-1]):
		return errors.New("is the name of a folder")
	case disk.Reserved(o.name):
		return errors.New(disk.ReservedWords)
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	case there.IsDir():
		return errors.New("is a folder")
	case disk.MountPoint(o.path):
		return errors.New("is mounted by itself, so that no file can take its place: mount its folder")
	case there.Mode()&fs.ModeSymlink != 0:
		// Replacing /dev/stdout would break more than this run.
		if target, err := os.Stat(o.path); err == nil && !target.Mode().IsRegular() {
			return errors.New("is a symbolic link to something that is not a file: symbolic links are not followed")
		}
	case !there.Mode().IsRegular():
		return o.openSpecial(there)
	}
	if err := disk.Replaceable(o.path); err != nil {
		return err // now, not when all is sent
	}
	o.partial = o.name + partialEnd
	if err := o.folder.Remove(o.partial); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	o.file, err = createNew(o.folder, o.partial)
	return err
}

// createNew makes a new file. What is there by then is an error, also a
// symbolic link: O_EXCL with O_CREATE follows none.
func createNew(folder *os.Root, name string) (*os.File, error) {
	return folder.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
}

var errNotOurs = errors.New("belongs to another user, who would receive what is written to it")

// openSpecial opens a device or a pipe of the user's own or of root's, and no other: it
// may have been planted.
func (o *output) openSpecial(there fs.FileInfo) (err error) {
	if !disk.Trusted(there) { // before it is waited for
		return errNotOurs
	}
	if o.file, err = o.folder.OpenFile(o.name, os.O_WRONLY|disk.NoFollow, 0); err != nil {
		return err
	}
	if opened, err := o.file.Stat(); err != nil || !os.SameFile(there, opened) {
		return errors.Join(errors.New("was replaced while it was opened"), err, o.file.Close())
	}
	return nil
}

// failed gives an error of the folder the whole path.
func (o *output) failed(err error) error {
	switch e := err.(type) {
	case *fs.PathError:
		err = e.Err
	case *os.LinkError:
		err = e.Err
	}
	return fmt.Errorf("%s: %w", o.path, err)
}

func (o *output) Write(p []byte) (int, error) { return o.buffer.Write(p) }

func (o *output) flush() error {
	if o.lines != nil {
		o.lines.Flush()
		if err := o.lines.Error(); err != nil {
			return err
		}
	}
	return o.buffer.Flush()
}

// commit makes the content durable, gives the file its name and makes that durable.
func (o *output) commit() error {
	defer o.file.Close()
	if err := o.flush(); err != nil {
		return err
	}
	if o.partial == "" {
		return o.file.Close()
	}
	if err := errors.Join(o.file.Sync(), o.own(), o.file.Close()); err != nil {
		return err
	}
	if err := disk.Patiently(func() error { return o.folder.Rename(o.partial, o.name) }); err != nil {
		return o.failed(err)
	}
	there, err := o.folder.Open(".") // to make its names durable, where its file system can
	if err != nil {
		return err
	}
	defer there.Close()
	return disk.SyncOpen(there)
}

// complete commits what write makes of it.
func (o *output) complete(write func(io.Writer) error) error {
	if err := write(o); err != nil {
		return err
	}
	return o.commit()
}

// own fails when NAME.partial is no longer the file that was opened.
func (o *output) own() error {
	there, err := o.folder.Lstat(o.partial)
	if err != nil {
		return o.failed(err)
	}
	if !os.SameFile(o.opened, there) {
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

// remove leaves nothing of the output behind, nor of what bears its name.
func (o *output) remove() error {
	if err := o.discard(); err != nil || o.partial == "" {
		return err
	}
	if err := o.folder.Remove(o.name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// WriteFile puts a file, for which write has the content, in the place of the one at path, if any.
func WriteFile(path string, mode fs.FileMode, write func(io.Writer) error) error {
	folder, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer folder.Close()
	out, err := create(folder, path)
	if err != nil {
		return err
	}
	err = out.file.Chmod(mode)
	if err == nil {
		err = out.complete(write)
	}
	if err != nil {
		return errors.Join(err, out.discard())
	}
	return nil
}
