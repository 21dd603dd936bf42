package bolt

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"leadferry/checkpoint"
)

// fault 137: what another user may have planted where the checkpoint or its mark stands is
// neither waited for nor followed nor believed, by who writes and by who reads.
func TestPlantedFilesAreRefused(t *testing.T) {
	const somebody = 4711
	canary := filepath.Join(t.TempDir(), "canary")
	if err := os.WriteFile(canary, []byte("sings"), 0o600); err != nil {
		t.Fatal(err)
	}
	give := func(t *testing.T, path string) error {
		if os.Geteuid() != 0 {
			t.Skip("only root can give files away")
		}
		return os.Lchown(path, somebody, -1)
	}
	tests := map[string]struct {
		plant func(t *testing.T, path string) error
		text  string
	}{
		"pipe for a mark": {func(_ *testing.T, path string) error { return syscall.Mkfifo(path+".seq", 0o600) }, "not a regular file"},
		"link for a mark": {func(_ *testing.T, path string) error { return os.Symlink(canary, path+".seq") }, "symbolic link"},
		"a unsorted mark": {func(_ *testing.T, path string) error { return os.Symlink(canary+".new", path+".seq") }, "symbolic link"},
		"pipe for a file": {func(_ *testing.T, path string) error {
			return errors.Join(os.Remove(path), syscall.Mkfifo(path, 0o600))
		}, "not a regular file"},
		"another's file": {give, "belongs to another user"},
		"another's mark": {func(t *testing.T, path string) error {
			return errors.Join(os.WriteFile(path+".seq", []byte("sings"), 0o600), give(t, path+".seq"))
		}, "belongs to another user"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			path := newPath(t)
			created(t, path)
			_ = os.Remove(path + ".seq")
			if err := test.plant(t, path); err != nil {
				t.Fatal(err)
			}
			for _, o := range []Options{{}, {ReadOnly: true}} {
				_, err := Open(path, target(), o)
				if refused := (*checkpoint.OpenError)(nil); !errors.As(err, &refused) || !strings.Contains(err.Error(), test.text) {
					t.Errorf("%+v: %v, want %q", o, err, test.text)
				}
			}
			if b, err := os.ReadFile(canary); string(b) != "sings" {
				t.Errorf("the file behind the link holds %q, %v", b, err)
			}
			if _, err := os.Lstat(canary + ".new"); err == nil {
				t.Error("a file was made behind the link")
			}
		})
	}
}

// fault 137: a folder in which another user can put something else in the checkpoint's place is told.
func TestAnExposedFolderIsTold(t *testing.T) {
	for mode, told := range map[os.FileMode]bool{0o700: false, 0o777: true, 0o777 | os.ModeSticky: false} {
		dir := t.TempDir()
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
		d, err := Open(filepath.Join(dir, "c.db"), target(), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if warned := strings.Contains(strings.Join(d.Info().Warnings, ""), "every user of this machine"); warned != told {
			t.Errorf("mode %v: %q", mode, d.Info().Warnings)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
}
