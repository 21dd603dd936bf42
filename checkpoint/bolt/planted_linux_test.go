package bolt

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"leadferry/checkpoint"
	"leadferry/internal/disk"
	"leadferry/internal/testsupport/must"
)

// fault 137: writers and readers refuse a pipe, and a file that belongs to another user, in the checkpoint's place.
func TestPlantedFilesAreRefused(t *testing.T) {
	const somebody = 4711
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
		"pipe for a file": {func(_ *testing.T, path string) error {
			return errors.Join(os.Remove(path), syscall.Mkfifo(path, 0o600))
		}, "not a regular file"},
		"another's file": {give, "belongs to another user"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			path := newPath(t)
			created(t, path)
			must.Do(t, test.plant(t, path))
			for _, o := range []Options{{}, {ReadOnly: true}} {
				_, err := Open(path, target(), o)
				if refused := (*checkpoint.OpenError)(nil); !errors.As(err, &refused) || !strings.Contains(err.Error(), test.text) {
					t.Errorf("%+v: %v, want %q", o, err, test.text)
				}
			}
		})
	}
}

// fault 137: there is a warning if another user can replace the checkpoint in its folder.
func TestAnExposedFolderIsWarnedOf(t *testing.T) {
	for mode, told := range map[os.FileMode]bool{0o700: false, 0o777: true, 0o777 | os.ModeSticky: false} {
		dir := t.TempDir()
		must.Do(t, os.Chmod(dir, mode))
		d, err := Open(filepath.Join(dir, "c.db"), target(), Options{})
		must.Do(t, err)
		if warned := strings.Contains(strings.Join(d.Info().Warnings, ""), "every user of this"); warned != told {
			t.Errorf("mode %v: %q", mode, d.Info().Warnings)
		}
		must.Do(t, d.Close())
	}
}

// fault 26
func TestUnsafeFileSystemsAreRefusedOrWarnedOf(t *testing.T) {
	for _, test := range []struct {
		name          string
		magic         int64
		any           bool
		refused, told bool
	}{
		{"ext4", 0xef53, false, false, false},
		{"NFS", 0x6969, false, true, false},
		{"NFS, all the same", 0x6969, true, false, false},
		{"CIFS", 0xff534d42, false, false, true},
		{"FUSE", 0x65735546, false, false, true},
		{"overlay", 0x794c7630, false, false, true},
		{"overlay, all the same", 0x794c7630, true, false, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			asked := ""
			path := filepath.Join(t.TempDir(), "c.db")
			d, err := Open(path, target(), Options{AnyPlace: test.any, magic: func(dir string) (int64, error) {
				asked = dir
				return test.magic, nil
			}})
			if refused := errors.Is(err, checkpoint.ErrPlace); refused != test.refused || !refused && err != nil {
				t.Fatalf("refused %v: %v", refused, err)
			}
			if !test.any && asked != filepath.Dir(path) {
				t.Errorf("asked for the file system of %q", asked)
			}
			if err != nil {
				return
			}
			if told := d.Info().Warnings; (len(told) > 0) != test.told {
				t.Errorf("warnings %q", told)
			}
			must.Do(t, d.Close())
		})
	}
	if number, err := disk.FileSystem(t.TempDir()); number == 0 || err != nil {
		t.Errorf("this system says %d, %v", number, err)
	}
}
