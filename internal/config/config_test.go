package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"leadferry/internal/testsupport/must"
)

func write(t *testing.T, path, text string, mode fs.FileMode) string {
	t.Helper()
	must.Do(t, os.MkdirAll(filepath.Dir(path), 0o700))
	must.Do(t, os.WriteFile(path, []byte(text), mode))
	if err := os.Chmod(path, mode); err != nil { // the umask may have taken bits away
		t.Fatal(err)
	}
	return path
}

func TestLoadReadsSeveralProfiles(t *testing.T) {
	path := write(t, filepath.Join(t.TempDir(), "config.yaml"), `# two regions
profiles:
  us: {base_url: https://api.us.example.com, trunk_id: 0123}
  eu:
    base_url: " https://api.eu.example.com "
    leads_url: https://leads.eu.example.com
    client_id: on
    client_secret_file: eu.secret
  bare: {}
`, 0o644)
	f, err := Load(path)
	must.Do(t, err)
	want := map[string]Profile{
		"bare": {},
		"eu": {
			"base_url": {"https://api.eu.example.com", 5}, "leads_url": {"https://leads.eu.example.com", 6}, "client_id": {"on", 7},
			"client_secret_file": {filepath.Join(filepath.Dir(path), "eu.secret"), 8},
		},
		"us": {"base_url": {"https://api.us.example.com", 3}, "trunk_id": {"0123", 3}},
	}
	must.Same(t, want, f)
}

func TestFileWithoutProfiles(t *testing.T) {
	for _, text := range []string{"", "# nothing yet\n", "profiles: {}\n", "---\n"} {
		f, err := Load(write(t, filepath.Join(t.TempDir(), "c"), text, 0o600))
		if err != nil || len(f) > 0 {
			t.Errorf("%q: %v, %v", text, f, err)
		}
	}
	if _, err := Load(filepath.Join(t.TempDir(), "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

// faults 104, 105, 106, 110: each message names line and column, and never a value.
func TestMistakesAreReportedWithTheirPlace(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"unknown key":    {"profiles:\n  us:\n    base_ulr: https://planted\n", `:3:15: unknown key "base_ulr" in profile us` + "\nhint: did you mean \"base_url\"?"},
		"secret as key":  {"profiles:\n  us:\n    planted7: x\n", ":3:15: unknown key \"…\" in profile us"},
		"top level":      {"default: planted\n", ":1:1: this is not a configuration file"},
		"secret":         {"profiles:\n  us:\n    client_secret: planted\n", ":3:20: a secret has no place in profile us\nhint: put the secret into a file of mode 0600"},
		"twice":          {"profiles:\n  us:\n    trunk_id: a\n    trunk_id: planted\n", ":4:5: "},
		"name is a path": {"profiles:\n  ../us: {}\n", "\"../us\" cannot be the name of a profile"},
		"only case":      {"profiles:\n  us: {}\n  US: {}\n", "the profiles US and us differ in capitals only"},
		"no value":       {"profiles:\n  us:\n    trunk_id:\n", "trunk_id must be a text in profile us\nhint: write a text, or leave the key out"},
		"a list":         {"profiles:\n  us:\n    trunk_id: [planted]\n", ":3:15: trunk_id must be a text"},
		"a text":         {"profiles: planted\n", ":1:11: this is not a configuration file"},
		"second":         {"profiles: {}\n---\nprofiles: {}\n", "this is not a configuration file"},
	} {
		t.Run(name, func(t *testing.T) {
			path := write(t, filepath.Join(t.TempDir(), "c.yaml"), test.text, 0o600)
			_, err := Load(path)
			if err == nil || !strings.HasPrefix(err.Error(), path+":") || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "planted") {
				t.Errorf("%v, want %q", err, test.want)
			}
		})
	}
}

// fault 104: a file that is no configuration is refused. The message quotes nothing from it.
func TestHostileFilesAreRefused(t *testing.T) {
	deep := strings.Repeat("[", 20000)
	for _, text := range []string{"profiles: {us: {trunk_id: \"planted}}\n", "\xff\xfe", "a: b: planted\n", "\tplanted: x\n", deep, strings.Repeat("#planted\n", maxFile/8), "profiles: {us: *planted}", "%planted\n---\n", "planted\n: x\x00"} {
		_, err := Load(write(t, filepath.Join(t.TempDir(), "c"), text, 0o600))
		if err == nil || strings.Contains(err.Error(), "planted") {
			t.Errorf("%.40q: %v", text, err)
		}
	}
}
