package bolt

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"leadferry/checkpoint"
	"leadferry/checkpoint/storetest"
	"leadferry/internal/testsupport/must"
)

// The file keeps the rules of every Store. At most three entries gather, so some are in the log and others in place.
func TestStore(t *testing.T) {
	place := func(t storetest.TB) string {
		dir, err := os.MkdirTemp("", "")
		must.Do(t, err)
		t.Cleanup(func() { os.RemoveAll(dir) })
		return filepath.Join(dir, "c.db")
	}
	storetest.Run(t, storetest.Backend{
		Place: place,
		Open: func(t storetest.TB, path string, now func() time.Time) checkpoint.Store {
			d := open(t, path, Options{Now: now, gather: generationSize{least: 3, most: 3}})
			d.bolt.NoSync = true // the disk is not under test
			return d
		},
		Killed: func(t storetest.TB, path string) string {
			to := place(t)
			copyAll(t, path, to)
			return to
		},
		Intact: func(t storetest.TB, path string) { intact(t, path) },
	})
}
