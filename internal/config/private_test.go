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

	"leadferry/internal/disk"
	"leadferry/internal/testsupport/must"
)

// fault 112: a secret that everybody may read is refused. No message repeats it.
func TestReadSecret(t *testing.T) {
	dir := t.TempDir()
	for name, test := range map[string]struct {
		text  string
		mode  fs.FileMode
		want  string
		fault string
	}{
		"plain":      {"s3cret", 0o600, "s3cret", ""},
		"line end":   {"s3cret\r\n", 0o400, "s3cret", ""},
		"UTF-8 mark": {"\xef\xbb\xbfs3cret\r\n", 0o600, "s3cret", ""},
		"UTF-16":     {"\xff\xfes\x003\x00c\x00r\x00e\x00t\x00\r\x00\n\x00", 0o600, "s3cret", ""},
		"group":      {"s3cret", 0o640, "s3cret", ""},
		"others":     {"s3cret", 0o604, "", "chmod 600"},
		"all":        {"s3cret", 0o666, "", "chmod go-w"},
		"empty":      {"", 0o600, "", "no client secret in it"},
		"too long":   {strings.Repeat("s3cret", maxFile), 0o600, "", "longer than 1024 KiB"},
		"no file":    {"", 0, "", "file does not exist"},
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
				if !strings.Contains(err.Error(), test.fault) || strings.Contains(err.Error(), "s3cret") {
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
	must.Do(t, os.Mkdir(dir, 0o700))
	return dir
}

// everyMode sets the umask to 0, so that files get the modes that the program asks for.
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
		if err == nil && disk.Shared(info) {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		return err
	})
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
}

// left fails the test unless dir holds exactly these files, apart from locks.
func left(t *testing.T, dir string, names ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must.Do(t, err)
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

// systemd, Kubernetes and Swarm mount a secret in memory, where a group or everybody may read it.
func TestSecretMountedInMemoryMayBeReadByAll(t *testing.T) {
	dir, err := os.MkdirTemp("/dev/shm", "leadferry-")
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if kind, err := disk.FileSystem(dir); err != nil || kind != 0x01021994 {
		t.Skip("/dev/shm is not in memory here")
	}
	data := filepath.Join(dir, "..data") // a link to the folder of the newest version
	for mode, good := range map[fs.FileMode]bool{0o400: true, 0o440: true, 0o444: true, 0o644: true, 0o664: false, 0o646: false} {
		version := filepath.Join(dir, mode.String())
		path := write(t, filepath.Join(version, "secret"), "s3cret", mode)
		must.Do(t, errors.Join(os.RemoveAll(data), os.Symlink(version, data)))
		for _, path := range []string{path, filepath.Join(data, "secret")} {
			if got, err := ReadSecret(path); (err == nil) != good || good && got != "s3cret" {
				t.Errorf("%s of mode %v: %q, %v", path, mode, got, err)
			}
		}
	}
}

// fault 137: a file or folder of another user is refused, whatever its mode.
func TestFilesOfAnotherUserAreRefused(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give files away")
	}
	const somebody = 4711
	dir := secretFolder(t)
	secretFile := write(t, filepath.Join(dir, "secret"), "s3cret", 0o600)
	configFile := write(t, filepath.Join(dir, "config.yaml"), "profiles: {}\n", 0o644)
	stored := write(t, filepath.Join(dir, "credentials", "us.json"), `{"base_url":"a","client_id":"b","client_secret":"s3cret"}`, 0o600)
	kept := tokens(t, filepath.Join(dir, "tokens"), "secret")
	swap(t, kept, token("a"))
	attempts := map[string]func() error{
		secretFile: func() error { _, err := ReadSecret(secretFile); return err },
		configFile: func() error { _, err := Load(configFile); return err },
		stored:     func() error { _, err := LoadCredentials(stored); return err },
		kept.path:  func() error { _, err := OpenTokens(filepath.Dir(kept.path), base, "c-1", "secret"); return err },
		filepath.Dir(kept.path): func() error {
			_, err := OpenTokens(filepath.Dir(kept.path), base, "c-1", "secret")
			return err
		},
		filepath.Dir(stored): func() error { _, err := Reserve(stored); return err },
	}
	for path, attempt := range attempts {
		if err := attempt(); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		must.Do(t, os.Lchown(path, somebody, -1))
		if err := attempt(); err == nil || !strings.Contains(err.Error(), "another user") || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s of another user: %v", path, err)
		}
		must.Do(t, os.Lchown(path, 0, -1))
	}
}

func TestConfigurationThatOthersMayWriteToIsRefused(t *testing.T) {
	for mode, good := range map[fs.FileMode]bool{0o644: true, 0o600: true, 0o664: false, 0o646: false} {
		if _, err := Load(write(t, filepath.Join(t.TempDir(), "config.yaml"), "profiles: {}\n", mode)); (err == nil) != good {
			t.Errorf("%v: %v", mode, err)
		}
	}
}
