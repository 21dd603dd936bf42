package config

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"leadferry/internal/testsupport/must"
)

// A new profile comes after the others. Not a byte of the old text changes.
func TestProfileIsAdded(t *testing.T) {
	const eu = "  eu:\n    base_url: https://api.eu.example.com\n    trunk_id: a b\n"
	for name, test := range map[string]struct{ old, want string }{
		"no file":       {"", "profiles:\n" + eu},
		"comments":      {"# mine\n\n# yours", "# mine\n\n# yours\nprofiles:\n" + eu},
		"none yet":      {"profiles: {} # none\n", ""},
		"one":           {"# a\nprofiles: # b\n  us: # c\n    base_url: https://api.us.example.com # d\n  # e\n", "# a\nprofiles: # b\n  us: # c\n    base_url: https://api.us.example.com # d\n  # e\n" + eu},
		"no line end":   {"profiles:\n  us: {trunk_id: 01}", "profiles:\n  us: {trunk_id: 01}\n" + eu},
		"in braces":     {"profiles: {us: {trunk_id: a}}\n", ""},
		"ended":         {"profiles:\n  us: {}\n...\n", ""},
		"mistake":       {"profiles:\n  us: {trunk: a}\n", ""},
		"there":         {"profiles:\n  eu: {}\n", ""},
		"nothing in it": {"profiles:\n", "profiles:\n" + eu},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "a", "config.yaml")
			if test.old != "" {
				write(t, path, test.old, 0o640)
			}
			values := map[string]string{"base_url": "https://api.eu.example.com", "trunk_id": "a b", "leads_url": ""}
			checked, added := AddProfile(path, "eu", values, false), AddProfile(path, "eu", values, true)
			if (checked == nil) != (added == nil) || (added == nil) != (test.want != "") {
				t.Fatalf("%v, then %v", checked, added)
			}
			if test.want == "" {
				test.want = test.old
			}
			b, err := os.ReadFile(path)
			if diff := cmp.Diff(test.want, string(b)); err != nil || diff != "" {
				t.Errorf("%v\n%s", err, diff)
			}
			mode := os.FileMode(0o640)
			if test.old == "" {
				mode = 0o600
			}
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != mode {
				t.Errorf("%v, %v", info.Mode(), err)
			}
			if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".*")); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

func TestProfileIsAddedToTheFileBehindALink(t *testing.T) {
	dir := t.TempDir()
	real := write(t, filepath.Join(dir, "dotfiles", "config.yaml"), "profiles:\n  us: {}\n", 0o600)
	link := filepath.Join(dir, "config.yaml")
	must.Do(t, os.Symlink(real, link))
	must.Do(t, AddProfile(link, "eu", map[string]string{"trunk_id": "t1"}, true))
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is gone: %v", err)
	}
	if f, err := Load(real); err != nil || len(f) != 2 {
		t.Errorf("%v, %v", f, err)
	}
}
