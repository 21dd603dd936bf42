//go:build unix

package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/oauth2"

	"leadferry/internal/testsupport/must"
)

const base = "https://api.example.com"

func tokens(t *testing.T, dir, secret string) *TokenFile {
	t.Helper()
	f, err := OpenTokens(dir, base, "c-1", secret)
	must.Do(t, err)
	return f
}

// swap puts a token into the file and returns the one that was there.
func swap(t *testing.T, f *TokenFile, next oauth2.Token) (before oauth2.Token) {
	t.Helper()
	err := f.Renew(t.Context(), func(kept oauth2.Token) oauth2.Token {
		before = kept
		return next
	})
	must.Do(t, err)
	return before
}

func token(name string) oauth2.Token {
	now := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	return oauth2.Token{AccessToken: name, RefreshToken: "r-" + name, Expiry: now.Add(time.Hour), ExpiresIn: 3600}
}

// fault 113
func TestTokenIsKeptForItsOwnerAlone(t *testing.T) {
	everyMode(t)
	dir := filepath.Join(t.TempDir(), "state", "tokens")
	f := tokens(t, dir, "secret")
	if _, err := os.Stat(dir); err == nil {
		t.Error("the folder is made before there is a token")
	}
	if got := swap(t, f, token("a")); got != (oauth2.Token{}) {
		t.Errorf("a token although none was stored: %v", got)
	}
	private(t, filepath.Dir(dir))
	if got := swap(t, tokens(t, dir, "secret"), token("b")); got != token("a") {
		t.Errorf("%v", got)
	}
	private(t, filepath.Dir(dir))
	left(t, dir, filepath.Base(f.path))
}

// found is the token that the next process finds.
func found(t *testing.T, f *TokenFile) (got oauth2.Token) {
	must.Do(t, f.Renew(t.Context(), func(is oauth2.Token) oauth2.Token { got = is; return is }))
	return got
}

// fault 78: another secret, client or address finds no token.
func TestTokenBelongsToAddressClientAndSecret(t *testing.T) {
	dir := secretFolder(t)
	swap(t, tokens(t, dir, "secret"), token("a"))
	for _, other := range [][3]string{{base, "c-1", "secret2"}, {base, "c-2", "secret"}, {base + "/x", "c-1", "secret"}, {base + "\x00c-1", "", "secret"}} {
		f, err := OpenTokens(dir, other[0], other[1], other[2])
		must.Do(t, err)
		if got := found(t, f); got != (oauth2.Token{}) {
			t.Errorf("%q finds %v", other, got)
		}
	}
	b, err := os.ReadFile(tokens(t, dir, "secret").path)
	if err != nil || strings.Contains(string(b), "secret\"") || strings.Contains(string(b), base) {
		t.Errorf("the file holds more than its token: %s, %v", b, err)
	}
}

func TestDamagedTokenFileCountsAsEmpty(t *testing.T) {
	f := tokens(t, secretFolder(t), "secret")
	swap(t, f, token("a"))
	good, err := os.ReadFile(f.path)
	must.Do(t, err)
	for n := range good {
		write(t, f.path, string(good[:n]), 0o600)
		if got := found(t, f); got != (oauth2.Token{}) {
			t.Fatalf("%d bytes of the file are %v", n, got)
		}
	}
	swap(t, f, token("b"))
	if found(t, f) != token("b") {
		t.Error("a damaged file is not replaced")
	}
}

// fault 113
func TestTokenThatOthersMayReadIsRefused(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "tokens")
	f := tokens(t, dir, "secret")
	swap(t, f, token("a"))
	must.Do(t, os.Chmod(f.path, 0o640))
	if _, err := OpenTokens(dir, base, "c-1", "secret"); err == nil || !strings.Contains(err.Error(), "hint: chmod 600 ") {
		t.Errorf("a file for the group: %v", err)
	}
	if found(t, f) != (oauth2.Token{}) {
		t.Error("it is read anyway")
	}
	must.Do(t, errors.Join(os.Chmod(f.path, 0o600), os.Chmod(dir, 0o755)))
	if _, err := OpenTokens(dir, base, "c-1", "secret"); err == nil || !strings.Contains(err.Error(), "chmod 700") {
		t.Errorf("a folder for all: %v", err)
	}
	if err := f.Renew(t.Context(), func(k oauth2.Token) oauth2.Token { t.Error("renewed"); return k }); err == nil {
		t.Error("a folder for all is written to")
	}
}

// fault 30
func TestTokenFileIsNeverReadOrWrittenThroughALink(t *testing.T) {
	dir := t.TempDir()
	f := tokens(t, filepath.Join(dir, "tokens"), "secret")
	swap(t, f, token("a"))
	canary := write(t, filepath.Join(dir, "canary"), "", 0o600)
	must.Do(t, os.Rename(f.path, canary))
	before, _ := os.ReadFile(canary)
	if err := os.Symlink(canary, f.path); err != nil {
		t.Skip(err)
	}
	if got := swap(t, f, token("b")); got != (oauth2.Token{}) {
		t.Errorf("a link was read: %v", got)
	}
	if after, _ := os.ReadFile(canary); string(after) != string(before) {
		t.Error("a link was written through")
	}
	if found(t, f) != token("b") {
		t.Error("the link is not replaced")
	}
}
