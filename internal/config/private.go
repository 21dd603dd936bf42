package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"

	"leadferry/internal/disk"
	"leadferry/internal/shell"
)

// reach says whom a file that is read may be open to. Whatever it is, it belongs to the
// user or to root, and only its owner may write to it.
type reach uint8

const (
	readable reach = iota // by anyone
	secret                // others may not read it, but in memory
	ownFiles              // nobody else may read it, it is the user's, and a file of ours: no symbolic link
)

// maxFile bounds a file that is read here, unless it holds certificates, in bytes.
const maxFile = 64 << 10

// readFile reads a small regular file. One that is not there is fs.ErrNotExist; any
// other error is an *Error.
func readFile(path string, who reach) ([]byte, error) { return readUpTo(path, who, maxFile) }

func readUpTo(path string, who reach, most int64) ([]byte, error) {
	flags := os.O_RDONLY | disk.NonBlock // a named pipe would wait for its writer
	if who == ownFiles {
		flags |= disk.NoFollow
	}
	f, err := os.OpenFile(path, flags, 0)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%s: %w", path, fs.ErrNotExist)
		}
		return nil, &Error{File: path, Text: "cannot be read: " + cause(err), Hint: disk.WayOut(err)}
	}
	defer f.Close()
	if err := believe(f, path, who); err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return nil, &Error{File: path, Text: "cannot be read: " + cause(err), Hint: disk.WayOut(err)}
	}
	if int64(len(data)) > most {
		return nil, &Error{File: path, Text: fmt.Sprintf("is longer than %d KiB", most>>10), Hint: "see whether it is the file that is meant"}
	}
	return data, nil
}

// believe refuses an open file that somebody else may have written, or a secret that
// others may read.
func believe(f *os.File, path string, who reach) error {
	refuse := func(text, hint string) error { return &Error{File: path, Text: text, Hint: hint} }
	info, err := f.Stat()
	if err != nil {
		return refuse("cannot be read: "+cause(err), disk.WayOut(err))
	}
	switch {
	case !info.Mode().IsRegular():
		return refuse("is no regular file", "name a file itself, no folder, device or pipe")
	case !disk.Trusted(info) || who == ownFiles && !disk.Mine(info):
		return refuse("belongs to another user, who could put into it what he likes", `copy it, or make it yours: chown "$(id -un)" `+shell.Path(path))
	case disk.Open(info, 0o002) || disk.Open(info, 0o020) && !(who == readable && disk.PrivateGroup(info)):
		return refuse("group or others may write to this file", narrowing("go-w", path))
	case who == ownFiles && disk.Shared(info):
		return refuse("group or others may read this file, which holds a secret", narrowing("600", path))
	case who == secret && disk.Open(info, 0o004) && !handedOver(f, path):
		return refuse("others may read this file, which holds a secret", narrowing("600", path))
	}
	return nil
}

// handedOver reports whether a secret that others may read is one that systemd,
// Kubernetes or Swarm has mounted: in memory, in a folder of root or the user.
func handedOver(f *os.File, path string) bool {
	real, err := filepath.EvalSymlinks(path)
	if err != nil || !disk.InMemory(f) {
		return false
	}
	folder, err := os.Stat(filepath.Dir(real))
	return err == nil && disk.Trusted(folder)
}

// ReadSecret reads the OAuth secret from the file that a user named. It fails with
// an [*Error] when others may read it or write to it, when it is another user's, or when
// nothing is in it. A byte order mark and a line break at the end are no part of it.
func ReadSecret(path string) (string, error) {
	data, err := readFile(path, secret)
	if errors.Is(err, fs.ErrNotExist) {
		return "", &Error{File: path, Text: "the client secret's file does not exist", Hint: "check --client-secret-file, or client_secret_file in the profile"}
	}
	if err != nil {
		return "", err
	}
	// Windows writes a byte order mark, and PowerShell UTF-16 behind it.
	if data, _, err = transform.Bytes(unicode.BOMOverride(transform.Nop), data); err != nil {
		return "", &Error{File: path, Text: "the client secret is no text", Hint: "the file holds the secret and nothing else"}
	}
	text := strings.TrimSpace(string(data))
	if text == "" {
		return "", &Error{File: path, Text: "no client secret in it", Hint: "the file holds the secret and nothing else"}
	}
	return text, nil
}

// checkFolder refuses a folder of secrets that is another user's, or that group or others
// may enter. One that is not there is good.
func checkFolder(dir string) error {
	info, err := os.Stat(dir)
	refuse := func(text, hint string) error { return &Error{File: dir, Text: text, Hint: hint} }
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return refuse("cannot be looked at: "+cause(err), disk.WayOut(err))
	case !info.IsDir():
		return refuse("is no folder", "move that file away: the folder is made by itself")
	case !disk.Mine(info):
		return refuse("this folder for secrets belongs to another user", "make it yours, or have each user use a configuration and a state directory of his own")
	case disk.Shared(info):
		return refuse("group or others may look into this folder, which is for secrets", narrowing("700", dir))
	}
	return nil
}

// makeFolder makes a folder for its owner alone, or takes one that is so already.
func makeFolder(dir string) error {
	if err := disk.MakeFolders(dir); err != nil {
		return &Error{File: dir, Text: "the folder cannot be made: " + cause(err), Hint: disk.WayOut(err)}
	}
	return checkFolder(dir)
}

// writeDraft writes data durably into a file beside the one at path, which is to take its place. Nobody knows its name before.
func writeDraft(path string, mode fs.FileMode, data []byte) (draft string, err error) {
	f, err := os.CreateTemp(filepath.Dir(path), draftOf(path))
	if err != nil {
		return "", err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close()); err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	return f.Name(), nil
}

// draftOf is the pattern of the names of such files.
func draftOf(path string) string { return "." + filepath.Base(path) + "-*.tmp" }

// removeDrafts removes what killed processes left of path; nobody may be writing it.
func removeDrafts(path string) {
	left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), draftOf(path)))
	for _, name := range left {
		_ = os.Remove(name)
	}
}

// replace makes data the content of the file at path, durably and as a whole. Where only the last step fails, left is the file that
// holds the data.
func replace(path string, mode fs.FileMode, data []byte) (left string, err error) {
	draft, err := writeDraft(path, mode, data)
	if err != nil {
		return "", err
	}
	if err := disk.Rename(draft, path); err != nil {
		return draft, err
	}
	return path, disk.SyncFolder(filepath.Dir(path))
}

// tryToReplace fails where the file at path could not be replaced, because its folder cannot be written to or is full.
func tryToReplace(path string) error {
	draft, err := writeDraft(path, 0o600, make([]byte, 8<<10))
	if err != nil {
		return err
	}
	return os.Remove(draft)
}

// takeLock takes the lock that stands for path, or gives nil where another has it. Its file
// stays when path is replaced, so that everybody locks the same one.
func takeLock(path string) (*os.File, error) {
	f, err := os.OpenFile(path+".lock", os.O_RDWR|os.O_CREATE|disk.NoFollow|disk.NonBlock, 0o600)
	if err != nil {
		return nil, err
	}
	locked, err := disk.TryLock(f, false)
	if !locked {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// cause is an error of the file system without the path, which stands before it
// already.
func cause(err error) string {
	if e, ok := errors.AsType[syscall.Errno](err); ok {
		return e.Error()
	}
	return err.Error()
}

// narrowing is the command that takes a file from others.
func narrowing(mode, path string) string { return "chmod " + mode + " " + shell.Path(path) }
