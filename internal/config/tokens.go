package config

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/oauth2"

	"leadferry/internal/disk"
	"leadferry/leadapi"
)

// lockPoll is how often a lock that another process has is asked for.
const lockPoll = 20 * time.Millisecond

// TokenFile keeps one client's token between runs and processes. It is a
// [leadapi.TokenStore].
//
// The file is named after base URL and client. What is in it counts only under its
// key, which is made of the secret too: whoever has another secret finds nothing.
type TokenFile struct {
	path string
	key  string
}

var _ leadapi.TokenStore = (*TokenFile)(nil)

// OpenTokens returns the TokenFile in the folder dir of a client. It makes nothing
// yet; a folder or file that group or others may read is an [*Error].
func OpenTokens(dir, baseURL, clientID, clientSecret string) (*TokenFile, error) {
	account := baseURL + "\x00" + clientID
	name := sha256.Sum256([]byte(account))
	mac := hmac.New(sha256.New, []byte(clientSecret))
	mac.Write([]byte("leadferry token 1\x00" + account))
	f := &TokenFile{filepath.Join(dir, hex.EncodeToString(name[:12])+".json"), hex.EncodeToString(mac.Sum(nil))}
	if err := checkFolder(dir); err != nil {
		return nil, err
	}
	if info, err := os.Lstat(f.path); err != nil || !info.Mode().IsRegular() {
		return f, nil
	}
	if info, err := disk.Stat(f.path); err == nil && (disk.Shared(info) || !disk.Mine(info)) {
		return nil, &Error{File: f.path, Text: "others may read the token in this file, or it is another user's", Hint: removing(f.path)}
	}
	return f, nil
}

// kept is the file's content.
type kept struct {
	Key string `json:"key"`
	oauth2.Token
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

// read returns the token kept. A file that is damaged, of another secret or open to
// others is as none.
func (f *TokenFile) read() oauth2.Token {
	var k kept
	data, err := readFile(f.path, ownFiles)
	if err != nil || json.Unmarshal(data, &k) != nil || !hmac.Equal([]byte(k.Key), []byte(f.key)) {
		return oauth2.Token{}
	}
	return k.Token
}

func (f *TokenFile) write(t oauth2.Token) error {
	data, err := json.Marshal(kept{f.key, t})
	if err != nil {
		return err
	}
	removeDrafts(f.path) // of processes that were killed: the lock is ours
	return replace(f.path, 0o600, data)
}
