package config

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"golang.org/x/oauth2"

	"leadferry/internal/disk"
	"leadferry/internal/shell"
	"leadferry/leadapi"
)

// Credentials are an OAuth client that login made, and the address that it belongs
// to: its secret must go nowhere else.
type Credentials struct {
	BaseURL      string    `json:"base_url"`
	ClientID     string    `json:"client_id"`
	ClientSecret string    `json:"client_secret"`
	CreatedAt    time.Time `json:"created_at"`
}

// CredentialsPath is where the client of a profile is stored.
func CredentialsPath(configPath, profile string) string {
	return filepath.Join(CredentialsFolder(configPath), profile+".json")
}

// CredentialsFolder is where the clients are stored of a configuration file: in a folder beside it, unless it may roam
// from one Windows machine to another. Secrets stay on this one.
func CredentialsFolder(configPath string) string {
	beside := filepath.Join(filepath.Dir(configPath), "credentials")
	if runtime.GOOS != "windows" {
		return beside
	}
	roaming, err := os.UserConfigDir()
	local, failed := os.UserCacheDir()
	rest, inside := filepath.Rel(roaming, beside)
	if err != nil || failed != nil || inside != nil || !filepath.IsLocal(rest) {
		return beside
	}
	return filepath.Join(local, rest)
}

// LoadCredentials reads a stored client; nil where there is none. A file that group
// or others may read, or that is damaged, is an [*Error].
func LoadCredentials(path string) (*Credentials, error) {
	data, err := readFile(path, ownFiles)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	c := new(Credentials)
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if d.Decode(c) != nil || d.More() || c.BaseURL == "" || c.ClientID == "" || c.ClientSecret == "" {
		return nil, &Error{File: path, Text: "the stored client cannot be read", Hint: "restore the file from a copy, or make another client with leadferry login --new-client"}
	}
	return c, nil
}

// Place is where one client will be stored, tried before the client is made: the service shows its secret once and never
// again. One process has a place at a time.
type Place struct {
	path string
	lock *os.File
}

// Reserve tries whether a client can be stored at path, and keeps other logins away from it. It fails with an [*Error]
// when the place cannot be written or another login has it. The caller ends with Close, after Keep or without.
func Reserve(path string) (*Place, error) {
	if err := makeFolder(filepath.Dir(path)); err != nil {
		return nil, err
	}
	lock, err := takeLock(path)
	switch {
	case err == nil && lock == nil:
		return nil, &Error{File: path, Text: "another login for this profile is going on", Hint: "wait for its end"}
	case err == nil:
		err = tryToReplace(path)
	}
	if err != nil {
		if lock != nil {
			lock.Close()
		}
		return nil, &Error{File: path, Text: "no client could be stored here: " + cause(err), Hint: "make room or name another --config"}
	}
	return &Place{path, lock}, nil
}

// KeepError is a client that could not be stored as it should.
type KeepError struct {
	Left string // the file that holds it, or "": its secret is lost
	Err  error
}

// Error says where the client is now.
func (e *KeepError) Error() string {
	if e.Left == "" {
		return fmt.Sprintf("the client could not be stored and its secret is lost: %s", cause(e.Err))
	}
	return fmt.Sprintf("the client is in %s but could not be put in its place: %s", e.Left, cause(e.Err))
}

// Unwrap returns what failed.
func (e *KeepError) Unwrap() error { return e.Err }

// Keep stores a client durably; one that was stored before is replaced. Any error is a [*KeepError].
func (p *Place) Keep(c Credentials) error {
	data, err := json.MarshalIndent(c, "", "  ")
	left := ""
	if err == nil {
		left, err = replace(p.path, 0o600, append(data, '\n'))
	}
	if err != nil {
		return &KeepError{left, err}
	}
	return nil
}

// Close lets other logins have the place.
func (p *Place) Close() error { return p.lock.Close() }

// lockPoll is how often a lock that another process has is asked for.
const lockPoll = 20 * time.Millisecond

// TokenFile keeps one client's token between runs and processes. It is a
// [leadapi.TokenStore].
//
// The file is named after base URL, client and secret: whoever has another secret finds nothing.
type TokenFile struct{ path string }

var _ leadapi.TokenStore = (*TokenFile)(nil)

// OpenTokens returns the TokenFile in the folder dir of a client. It makes nothing
// yet; a folder or file that group or others may read is an [*Error].
func OpenTokens(dir, baseURL, clientID, clientSecret string) (*TokenFile, error) {
	mac := hmac.New(sha256.New, []byte(clientSecret))
	mac.Write([]byte("leadferry token 1\x00" + baseURL + "\x00" + clientID))
	f := &TokenFile{filepath.Join(dir, hex.EncodeToString(mac.Sum(nil)[:16])+".json")}
	if err := checkFolder(dir); err != nil {
		return nil, err
	}
	if info, err := os.Lstat(f.path); err != nil || !info.Mode().IsRegular() {
		return f, nil
	}
	if info, err := os.Stat(f.path); err == nil && (disk.Shared(info) || !disk.Mine(info)) {
		return nil, &Error{File: f.path, Text: "others may read the token in this file, or it is another user's", Hint: "rm " + shell.Path(f.path)}
	}
	return f, nil
}

// Renew calls renew with the token kept, or a zero one, while no other process can,
// and keeps what it returns. It waits for others until ctx ends. Where renew has not
// run, the error says why; where it has, that the new token is not kept.
func (f *TokenFile) Renew(ctx context.Context, renew func(oauth2.Token) oauth2.Token) error {
	if err := makeFolder(filepath.Dir(f.path)); err != nil {
		return err
	}
	lock, err := waitForLock(ctx, f.path)
	if err != nil {
		return err
	}
	defer lock.Close()
	before := f.read()
	after := renew(before)
	if after.AccessToken == before.AccessToken && after.RefreshToken == before.RefreshToken {
		return nil
	}
	return f.write(after)
}

func waitForLock(ctx context.Context, path string) (*os.File, error) {
	for {
		if lock, err := takeLock(path); lock != nil || err != nil {
			return lock, err
		}
		select {
		case <-time.After(lockPoll):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// read returns the token kept. A file that is damaged or open to others is as none.
func (f *TokenFile) read() (t oauth2.Token) {
	data, err := readFile(f.path, ownFiles)
	if err != nil || json.Unmarshal(data, &t) != nil {
		return oauth2.Token{}
	}
	return t
}

func (f *TokenFile) write(t oauth2.Token) error {
	data, err := json.Marshal(t)
	if err != nil {
		return err
	}
	removeDrafts(f.path) // of processes that were killed: the lock is ours
	left, err := replace(f.path, 0o600, data)
	if left != "" && left != f.path {
		err = errors.Join(err, os.Remove(left))
	}
	return err
}
