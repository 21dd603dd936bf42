package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// reach says whom a file that is read may be open to.
type reach uint8

const (
	anyone   reach = iota
	owner          // nobody else may read it
	ownFiles       // likewise, and it is a file of ours: no symbolic link
)

// readFile reads a small regular file. One that is not there is fs.ErrNotExist; any
// other error is an *Error.
func readFile(path string, who reach) ([]byte, error) {
	flags := os.O_RDONLY | noBlock // a named pipe would wait for its writer
	if who == ownFiles {
		flags |= noFollow
	}
	f, err := os.OpenFile(path, flags, 0)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%s: %w", path, fs.ErrNotExist)
		}
		return nil, &Error{File: path, Text: "cannot be read: " + cause(err)}
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, &Error{File: path, Text: "cannot be read: " + cause(err)}
	case !info.Mode().IsRegular():
		return nil, &Error{File: path, Text: "is no regular file"}
	case who != anyone && open(info.Mode()):
		return nil, &Error{File: path, Text: "group or others may read this file, which holds a secret", Hint: "chmod 600 " + path}
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, &Error{File: path, Text: "cannot be read: " + cause(err)}
	}
	if len(data) > maxFile {
		return nil, &Error{File: path, Text: fmt.Sprintf("is longer than %d KiB", maxFile>>10)}
	}
	return data, nil
}

// ReadSecret reads the OAuth secret from the file that a user named. It fails with
// an [*Error] when group or others may read it, or when nothing is in it.
func ReadSecret(path string) (string, error) {
	data, err := readFile(path, owner)
	if errors.Is(err, fs.ErrNotExist) {
		return "", &Error{File: path, Text: "the client secret's file does not exist", Hint: "check --client-secret-file, or client_secret_file in the profile"}
	}
	if err != nil {
		return "", err
	}
	secret := strings.TrimSpace(string(data))
	if secret == "" {
		return "", &Error{File: path, Text: "no client secret in it", Hint: "the file holds the secret and nothing else"}
	}
	return secret, nil
}

// checkFolder refuses a folder of secrets that group or others may enter. One that is
// not there is good.
func checkFolder(dir string) error {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return &Error{File: dir, Text: "cannot be looked at: " + cause(err)}
	case !info.IsDir():
		return &Error{File: dir, Text: "is no folder"}
	case open(info.Mode()):
		return &Error{File: dir, Text: "group or others may look into this folder, which is for secrets", Hint: "chmod 700 " + dir}
	}
	return nil
}

// makeFolder makes a folder for its owner alone, or takes one that is so already.
func makeFolder(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return &Error{File: dir, Text: "the folder cannot be made: " + cause(err)}
	}
	return checkFolder(dir)
}

// draft makes a new file of mode 0600 beside path, under a name that nobody knows
// before; it never opens one that is there, nor a link.
func draft(path string) (*os.File, error) {
	return os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*.tmp")
}

// removeDrafts removes what others left of path; nobody may be making one.
func removeDrafts(path string) {
	left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+"-*.tmp"))
	for _, name := range left {
		_ = os.Remove(name)
	}
}

// fill makes data the whole durable content of a draft.
func fill(f *os.File, data []byte) error {
	if _, err := f.WriteAt(data, 0); err != nil {
		return err
	}
	if err := f.Truncate(int64(len(data))); err != nil {
		return err
	}
	return f.Sync()
}

// discard removes a draft.
func discard(f *os.File) error { return errors.Join(f.Close(), os.Remove(f.Name())) }

// openLock opens the file whose lock stands for path. It stays when path is
// replaced, so that everybody locks the same one.
func openLock(path string) (*os.File, error) {
	return os.OpenFile(path+".lock", os.O_RDWR|os.O_CREATE|noFollow, 0o600)
}
