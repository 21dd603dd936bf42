package checkpoint

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func target() Target {
	return Target{BaseURL: "https://api.example.com", LeadsURL: "https://leads.example.com", TrunkID: "trunk-1"}
}

func uuid(r *rand.Rand) string {
	var b [16]byte
	binary.NativeEndian.PutUint64(b[:], r.Uint64())
	binary.NativeEndian.PutUint64(b[8:], r.Uint64())
	return unpackUUID(b[:])
}

func intentOf(key string, line int) Intent {
	return Intent{
		Key: key, File: "leads.csv", Line: line + 2, Organization: "5f0c1a52-7d0b-4a3e-9a1e-3a1c6d1f0b77",
		Status: "open", Run: "20260101T000000Z-1", Sent: time.UnixMilli(1_770_000_000_123).UTC(),
	}
}

func createdEntry(key, lead string, line int) Entry {
	e := Entry{
		Key: key, State: Created, LeadID: lead, Organization: "5f0c1a52-7d0b-4a3e-9a1e-3a1c6d1f0b77",
		Location: "Example Motors North", Status: "inProgress", ExternalID: key,
		Run: "20260101T000000Z-1", Updated: time.UnixMilli(1_770_000_000_456).UTC(), Content: make([]ContentDigest, 12),
	}
	binary.NativeEndian.PutUint64(e.Digest[:], uint64(line))
	for i := range e.Content {
		binary.NativeEndian.PutUint32(e.Content[i].Value[:], uint32(i*line))
	}
	return e
}

// opened opens a checkpoint and, when the test ends, closes it and checks the
// file: every test ends so.
func opened(t *testing.T, path string, o Options) *DB {
	t.Helper()
	d, err := Open(path, target(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		d.Close()
		intact(t, path)
	})
	return d
}

// intact fails the test unless every page and record of the file is right.
func intact(t *testing.T, path string) {
	t.Helper()
	d, err := Open(path, target(), Options{ReadOnly: true, Check: true})
	if err != nil {
		t.Errorf("integrity check: %v", err)
		return
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

func newPath(t *testing.T) string { return filepath.Join(t.TempDir(), "c.db") }

// crash copies a checkpoint and its sequence file as they are, as if the process
// had been killed now, and returns the copy's path.
func crash(t *testing.T, path string) string {
	t.Helper()
	to := newPath(t)
	for _, end := range []string{"", ".seq"} {
		b, err := os.ReadFile(path + end)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to+end, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return to
}

func claim(d *DB, in Intent) error {
	result := make(chan error, 1)
	d.Claim(in, func(err error) { result <- err })
	d.Hurry()
	return <-result
}

func withdraw(d *DB, key string) error {
	result := make(chan error, 1)
	d.Withdraw(key, func(err error) { result <- err })
	d.Hurry()
	return <-result
}

func settle(d *DB, e Entry) (Entry, error) {
	type answer struct {
		e   Entry
		err error
	}
	result := make(chan answer, 1)
	d.Settle(e, func(stored Entry, err error) { result <- answer{stored, err} })
	d.Hurry()
	a := <-result
	return a.e, a.err
}

func lookup(t *testing.T, d *DB, key string) Entry {
	t.Helper()
	out := make([]Entry, 1)
	if err := d.Lookup([]string{key}, out); err != nil {
		t.Fatal(err)
	}
	return out[0]
}

// early lets entries gather at once, a few at a time.
var early = gathering{from: 1, least: 8, most: 8}

// seeded makes a checkpoint with n created leads, three refusals and three rows
// in doubt, and leaves it open. Half of the leads come in no order.
func seeded(t *testing.T, path string, n int) *DB {
	t.Helper()
	d := opened(t, path, Options{gather: early})
	random := rand.New(rand.NewPCG(1, 2))
	order := append(random.Perm(n/2), random.Perm(n-n/2)...)
	slices.Sort(order[:n/2])
	for i, at := range order[n/2:] {
		order[n/2+i] = n/2 + at
	}
	for _, i := range order {
		if i >= n/2 && i%4 == 0 {
			withdraw(d, "none") // so that the rest is not one commit, which has an order
		}
		key := fmt.Sprintf("key-%05d", i)
		e := createdEntry(key, uuid(random), i)
		if i%2 == 0 {
			e.ExternalID = fmt.Sprintf("crm-%d", i)
		}
		d.Settle(e, func(_ Entry, err error) {
			if err != nil {
				t.Error(err)
			}
		})
	}
	for i := range 3 {
		if err := claim(d, intentOf(fmt.Sprintf("doubt-%d", i), i)); err != nil {
			t.Fatal(err)
		}
		if _, err := settle(d, Entry{Key: fmt.Sprintf("refused-%d", i), State: Rejected, Code: 422, Reason: "refused"}); err != nil {
			t.Fatal(err)
		}
	}
	return d
}

func sumField(d *DB, name, value string) ContentDigest {
	return ContentDigest{Name: d.SumName(name), Value: d.SumValue(name, value)}
}
