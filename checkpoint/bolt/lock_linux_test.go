package bolt

import (
	"errors"
	"path/filepath"
	"testing"

	"leadferry/checkpoint"
	"leadferry/internal/disk"
)

// fault 26
func TestWhereTheFileLies(t *testing.T) {
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
				t.Errorf("asked for %q", asked)
			}
			if err != nil {
				return
			}
			if told := d.Info().Warnings; (len(told) > 0) != test.told {
				t.Errorf("warnings %q", told)
			}
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	if number, err := disk.FileSystem(t.TempDir()); number == 0 || err != nil {
		t.Errorf("this system says %d, %v", number, err)
	}
}
