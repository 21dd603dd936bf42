package bolt

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"leadferry/checkpoint"
)

// A checkpoint that is taken away, or replaced, while it is in use stops everything: what is written into it from then
// on is lost. fault 128
func TestRemovedWhileInUse(t *testing.T) {
	for name, harm := range map[string]func(path string) error{
		"removed":               os.Remove,
		"moved":                 func(path string) error { return os.Rename(path, path+".old") },
		"its folder is removed": func(path string) error { return os.RemoveAll(filepath.Dir(path)) },
		"another in its place": func(path string) error {
			if err := os.WriteFile(path+".new", nil, 0o600); err != nil {
				return err
			}
			return os.Rename(path+".new", path)
		},
	} {
		for _, last := range []bool{false, true} { // whether anything is written after the harm
			path := filepath.Join(t.TempDir(), "state", "c.db")
			if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			d, err := Open(path, target(), Options{})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := settle(d, createdEntry("a", "lead-a", 1)); err != nil {
				t.Fatal(err)
			}
			if err := harm(path); err != nil {
				t.Fatal(err)
			}
			if !last {
				if err := claim(d, intentOf("b", 2)); !errors.Is(err, checkpoint.ErrRemoved) { // else its create would leave, and nobody know of it
					t.Errorf("%s: claimed with %v", name, err)
				}
				if _, err := settle(d, createdEntry("c", "lead-c", 3)); !errors.Is(err, checkpoint.ErrRemoved) {
					t.Errorf("%s: went on with %v", name, err)
				}
			}
			if err := d.Close(); !errors.Is(err, checkpoint.ErrRemoved) {
				t.Errorf("%s: closed with %v", name, err)
			}
		}
	}
}
