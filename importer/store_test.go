package importer

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"leadferry/checkpoint"
	"leadferry/checkpoint/bolt"
)

// trunk is the target of a test's checkpoint.
var trunk = checkpoint.Target{BaseURL: "https://api.example.com", LeadsURL: "https://leads.example.com", TrunkID: "trunk"}

// fileStore is a checkpoint in a file that nothing waits for the disk with.
type fileStore struct {
	checkpoint.Store
	t    testing.TB
	path string
	// Refuse, unless nil, is asked before each change of a commit: what it returns the change is refused for.
	Refuse func(c *checkpoint.Change) error
	mu     sync.Mutex // a commit is under way
}

func newFileStore(t testing.TB) *fileStore {
	t.Helper()
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return openFileStore(t, filepath.Join(dir, "c.db"))
}

func openFileStore(t testing.TB, path string) *fileStore {
	t.Helper()
	s, err := bolt.Open(path, trunk, bolt.Options{AnyPlace: true, Unsynced: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return &fileStore{Store: s, t: t, path: path}
}

func (s *fileStore) Commit(ctx context.Context, changes []*checkpoint.Change) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var good []*checkpoint.Change
	for _, c := range changes {
		if s.Refuse != nil {
			c.Err = s.Refuse(c)
		}
		if c.Err == nil {
			good = append(good, c)
		}
	}
	return s.Store.Commit(ctx, good)
}

// killed is the file as a process that dies now leaves it, in another place.
func (s *fileStore) killed() (path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	path = s.path + ".killed"
	from, err := os.Open(s.path)
	if err != nil {
		s.t.Fatal(err)
	}
	defer from.Close()
	to, err := os.Create(path)
	if err == nil {
		_, err = io.Copy(to, from)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	to.Close()
	return path
}
