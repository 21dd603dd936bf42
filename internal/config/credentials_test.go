//go:build unix

package config

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"leadferry/internal/testsupport/must"
)

var someClient = Credentials{
	BaseURL: "https://api.example.com", ClientID: "c-1", ClientSecret: "s3cret&<x>",
	CreatedAt: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
}

func kept(path string, c Credentials) error {
	_, err := c.Keep(path)
	return err
}

func reserved(t *testing.T, path string) io.Closer {
	t.Helper()
	p, err := Reserve(path)
	must.Do(t, err)
	return p
}

// faults 30, 113, 119
func TestClientIsStoredForItsOwnerAlone(t *testing.T) {
	everyMode(t)
	path := CredentialsPath(filepath.Join(t.TempDir(), "config.yaml"), "eu")
	if c, err := LoadCredentials(path); c != nil || err != nil {
		t.Fatalf("before: %v, %v", c, err)
	}
	for _, id := range []string{"c-1", "c-2"} { // the second replaces the first
		p, want := reserved(t, path), someClient
		want.ClientID = id
		private(t, filepath.Dir(path))
		must.Do(t, errors.Join(kept(path, want), p.Close()))
		got, err := LoadCredentials(path)
		if diff := cmp.Diff(&want, got); diff != "" || err != nil {
			t.Fatalf("%v\n%s", err, diff)
		}
		if b, err := os.ReadFile(path); err != nil || !strings.HasSuffix(string(b), "\"\n}\n") {
			t.Errorf("the file holds more than the client: %q, %v", b, err)
		}
		private(t, filepath.Dir(path))
		left(t, filepath.Dir(path), "eu.json")
	}
}

func TestReservedPlaceThatIsNotUsedLeavesNoFile(t *testing.T) {
	path := CredentialsPath(filepath.Join(t.TempDir(), "config.yaml"), "eu")
	p := reserved(t, path)
	if _, err := Reserve(path); err == nil || !strings.Contains(err.Error(), "another login") {
		t.Errorf("two logins reserved one place: %v", err)
	}
	other := reserved(t, filepath.Join(filepath.Dir(path), "us.json"))
	must.Do(t, errors.Join(p.Close(), other.Close()))
	left(t, filepath.Dir(path))
	must.Do(t, reserved(t, path).Close())
}

// fault 27: login learns that a client cannot be stored before it makes one.
func TestReserveRefusesAPlaceThatCannotBeWritten(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "file"), "", 0o600)
	if _, err := Reserve(filepath.Join(dir, "file", "eu.json")); err == nil || !strings.Contains(err.Error(), "\nhint: ") {
		t.Errorf("a folder that is a file: %v", err)
	}
	wide := filepath.Join(dir, "wide")
	must.Do(t, errors.Join(os.Mkdir(wide, 0o755), os.Chmod(wide, 0o755)))
	if _, err := Reserve(filepath.Join(wide, "eu.json")); err == nil || !strings.Contains(err.Error(), "chmod 700 "+wide+", or move it away") {
		t.Errorf("a folder for all: %v", err)
	}
	canary := write(t, filepath.Join(dir, "canary"), "untouched", 0o600)
	place := filepath.Join(dir, "own", "eu.json")
	write(t, place, "", 0o600)
	if err := os.Symlink(canary, place+".lock"); err != nil {
		t.Skip(err)
	}
	if _, err := Reserve(place); err == nil {
		t.Error("a lock that is a link is followed")
	}
	if b, err := os.ReadFile(canary); string(b) != "untouched" || err != nil {
		t.Errorf("%q, %v", b, err)
	}
}

// If a new client cannot get its file name, Keep returns the file that holds its secret.
func TestKeepThatFailsReturnsTheFileWithTheSecret(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "c", "eu.json")
	p := reserved(t, path)
	must.Do(t, os.MkdirAll(filepath.Join(path, "in the way"), 0o700))
	left, err := someClient.Keep(path)
	if err == nil || left == "" || strings.Contains(err.Error(), "s3cret") {
		t.Fatalf("%v", err)
	}
	if c, err := LoadCredentials(left); err != nil || c.ClientSecret != someClient.ClientSecret {
		t.Errorf("what is left: %v, %v", c, err)
	}
	must.Do(t, p.Close())
	if _, err := os.Stat(left); err != nil {
		t.Errorf("the only copy is gone: %v", err)
	}

	path = filepath.Join(dir, "d", "eu.json")
	reserved(t, path)
	if err := os.RemoveAll(filepath.Join(dir, "d")); err != nil { // as if the disk failed
		t.Fatal(err)
	}
	if left, err := someClient.Keep(path); err == nil || left != "" {
		t.Errorf("%v", err)
	}
}

// faults 19, 113
func TestStoredClientThatCannotBeUsedIsRefused(t *testing.T) {
	good := `{"base_url":"https://a","client_id":"c","client_secret":"s3cret","created_at":"2026-01-02T03:04:05Z"}`
	path := filepath.Join(t.TempDir(), "eu.json")
	for _, text := range []string{"", "{}", good[:40], good + good, strings.Replace(good, "client_id", "id", 1), `{"client_id":"c","client_secret":"s3cret"}`} {
		write(t, path, text, 0o600)
		if _, err := LoadCredentials(path); err == nil || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%q: %v", text, err)
		}
	}
	write(t, path, good, 0o600)
	if c, err := LoadCredentials(path); err != nil || c.ClientSecret != "s3cret" {
		t.Errorf("%v, %v", c, err)
	}
	write(t, path, good, 0o640)
	if _, err := LoadCredentials(path); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("read by the group: %v", err)
	}
	write(t, path, good, 0o600)
	link := path + ".link"
	if err := os.Symlink(path, link); err != nil {
		t.Skip(err)
	}
	if _, err := LoadCredentials(link); err == nil {
		t.Error("a link is followed")
	}
}
