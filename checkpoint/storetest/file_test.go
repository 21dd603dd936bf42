package storetest

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"leadferry/checkpoint"
	"leadferry/checkpoint/bolt"
	"leadferry/internal/testsupport/must"
)

// inAFile returns a Backend of unsynced files, each in a folder of its own.
func inAFile() Backend {
	place := func(t TB) string { return filepath.Join(t.(testing.TB).TempDir(), "c.db") }
	return Backend{
		Place: place,
		Open: func(t TB, path string, now func() time.Time) checkpoint.Store {
			d, err := bolt.Open(path, checkpoint.Target{TrunkID: "t"}, bolt.Options{Now: now, AnyPlace: true, Unsynced: true})
			must.Do(t, err)
			return d
		},
		Killed: func(t TB, from string) string {
			to := place(t)
			text, err := os.ReadFile(from)
			if err == nil {
				err = os.WriteFile(to, text, 0o600)
			}
			must.Do(t, err)
			return to
		},
	}
}
