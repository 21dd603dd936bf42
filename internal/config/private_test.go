//go:build unix

package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// fault 112: a secret that others may read is refused, and never repeated.
func TestSecretComesFromItsOwnersFile(t *testing.T) {
	dir := t.TempDir()
	for name, test := range map[string]struct {
		text  string
		mode  fs.FileMode
		want  string
		fault string
	}{
		"plain":      {"s3cret", 0o600, "s3cret", ""},
		"line end":   {"s3cret\r\n", 0o400, "s3cret", ""},
		"group":      {"s3cret", 0o640, "", "chmod 600"},
		"others":     {"s3cret", 0o604, "", "chmod 600"},
		"empty":      {"", 0o600, "", "no client secret in it"},
		"blank":      {" \n", 0o600, "", "no client secret in it"},
		"too long":   {strings.Repeat("s3cret", maxFile), 0o600, "", "longer than 64 KiB"},
		"no file":    {"", 0, "", "does not exist"},
		"no regular": {"", fs.ModeNamedPipe, "", "is no regular file"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(dir, name)
			switch {
			case test.mode&fs.ModeNamedPipe != 0:
				if err := syscall.Mkfifo(path, 0o600); err != nil {
					t.Skip(err)
				}
			case test.mode != 0:
				write(t, path, test.text, test.mode)
			}
			got, err := ReadSecret(path)
			if got != test.want || (err == nil) != (test.fault == "") {
				t.Fatalf("%q, %v", got, err)
			}
			if err != nil {
				var e *Error
				if !errors.As(err, &e) || !strings.Contains(err.Error(), test.fault) || strings.Contains(err.Error(), "s3cret") {
					t.Errorf("%v", err)
				}
			}
		})
	}
}

// secretFolder is an empty folder for its owner alone.
func secretFolder(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "secret")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

// everyMode lets the umask take nothing, so that a mode is what the program asked for.
func everyMode(t *testing.T) {
	t.Helper()
	before := syscall.Umask(0)
	t.Cleanup(func() { syscall.Umask(before) })
}

// private fails the test unless every file below dir is 0600 and every folder 0700.
func private(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && open(info.Mode()) {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		return err
	})
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
}

// left fails the test when files other than these are in dir.
func left(t *testing.T, dir string, names ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".lock") {
			got = append(got, e.Name())
		}
	}
	if strings.Join(got, " ") != strings.Join(names, " ") {
		t.Errorf("left: %v, want %v", got, names)
	}
}
