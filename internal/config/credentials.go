package config

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"golang.org/x/oauth2"

	"leadferry/internal/disk"
)

// Credentials are an OAuth client that login made, and the address of its service, the only one to get the secret.
type Credentials struct {
	BaseURL      string    `json:"base_url"`
	ClientID     string    `json:"client_id"`
	ClientSecret string    `json:"client_secret"`
	CreatedAt    time.Time `json:"created_at"`
}

// CredentialsPath returns where the client of a profile is stored.
func CredentialsPath(configPath, profile string) string {
	return filepath.Join(CredentialsFolder(configPath), profile+".json")
}

// CredentialsFolder returns where the clients of a configuration file are stored: in a folder beside it. On Windows, if
// the configuration file roams from machine to machine, the folder is one that stays on this machine.
func CredentialsFolder(configPath string) string {
	beside := filepath.Join(filepath.Dir(configPath), "credentials")
	roaming, _ := os.UserConfigDir()
	local, err := os.UserCacheDir()
	rest, apart := filepath.Rel(roaming, beside)
	if runtime.GOOS == "windows" && err == nil && apart == nil && filepath.IsLocal(rest) {
		return filepath.Join(local, rest)
	}
	return beside
}

// LoadCredentials reads a stored client; nil: there is none. It refuses a damaged file, or one that others may read.
func LoadCredentials(path string) (*Credentials, error) {
	data, err := readFile(path, ownFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	c := new(Credentials)
	if json.Unmarshal(data, c) != nil || c.BaseURL == "" || c.ClientID == "" || c.ClientSecret == "" {
		const hint = "restore the file from a copy, or make another client with leadferry login --new-client"
		return nil, fault(path, "the stored client cannot be read", hint)
	}
	return c, nil
}

// Reserve locks path and tests if a client can be stored there: its secret is shown once. Closing place unlocks it.
func Reserve(path string) (place io.Closer, err error) {
	if err := makeFolder(filepath.Dir(path)); err != nil {
		return nil, err
	}
	lock, err := takeLock(path)
	switch {
	case err == nil && lock == nil:
		return nil, fault(path, "another login for this profile is going on", "wait for its end")
	case err == nil: // the disk may be full, or the folder take no new file
		err = os.WriteFile(path+".try", make([]byte, 8<<10), 0o600)
		os.Remove(path + ".try")
	}
	if err != nil {
		lock.Close() // does nothing for nil
		return nil, fault(path, "no client could be stored here: "+cause(err), "make room or name another --config")
	}
	return lock, nil
}

// Keep stores a client durably at a reserved path, and replaces an earlier one. If only the last step fails, left is
// the file that holds the client. After any other error its secret is lost.
func (c Credentials) Keep(path string) (left string, err error) {
	data, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return "", err
	}
	return disk.Replace(path, 0o600, append(data, '\n'))
}

// TokenFile keeps a client's token between runs. Its name is made of base URL, client and secret: nobody else finds it.
type TokenFile struct{ path string }

// OpenTokens returns a client's TokenFile in a folder. It refuses a folder or file that others may read.
func OpenTokens(dir, baseURL, clientID, clientSecret string) (*TokenFile, error) {
	mac := hmac.New(sha256.New, []byte(clientSecret))
	mac.Write([]byte("leadferry token 1\x00" + baseURL + "\x00" + clientID))
	f := &TokenFile{filepath.Join(dir, hex.EncodeToString(mac.Sum(nil)[:16])+".json")}
	if err := checkFolder(dir); err != nil {
		return nil, err
	}
	if _, err := readFile(f.path, ownFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return f, nil
}

// Renew calls renew with the kept token, or a zero one, while no other process can, and keeps what it returns. It waits
// for other processes until ctx ends. An error says why renew has not run, or why the new token is not kept.
func (f *TokenFile) Renew(ctx context.Context, renew func(oauth2.Token) oauth2.Token) error {
	if err := makeFolder(filepath.Dir(f.path)); err != nil {
		return err
	}
	lock, err := takeLock(f.path)
	for ; lock == nil && err == nil; lock, err = takeLock(f.path) {
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if err != nil {
		return err
	}
	defer lock.Close()
	var before oauth2.Token // zero for a file that is damaged, or that others may read
	if data, err := readFile(f.path, ownFile); err == nil && json.Unmarshal(data, &before) != nil {
		before = oauth2.Token{}
	}
	after := renew(before)
	if after.AccessToken == before.AccessToken && after.RefreshToken == before.RefreshToken {
		return nil
	}
	data, err := json.Marshal(after)
	if err != nil {
		return err
	}
	left, err := disk.Replace(f.path, 0o600, data)
	if err != nil && left != "" && left != f.path {
		err = errors.Join(err, os.Remove(left))
	}
	return err
}
