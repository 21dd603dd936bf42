package bolt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"

	"go.etcd.io/bbolt"

	"leadferry/checkpoint"
	"leadferry/internal/testsupport/must"
)

// logged returns how many log entries are not yet in their places, and the keys of those already moved there.
func logged(t *testing.T, d *Store) (waiting int, moved []string) {
	t.Helper()
	err := d.bolt.View(func(tx *bbolt.Tx) error {
		return tx.Bucket(newEntries).ForEach(func(k, _ []byte) error {
			if _, key := parseLogKey(k); tx.Bucket(inEntries).Get(key) != nil {
				moved = append(moved, string(key))
			} else {
				waiting++
			}
			return nil
		})
	})
	must.Do(t, err)
	return waiting, moved
}

// settleAll settles each key in its own commit.
func settleAll(t *testing.T, d *Store, keys []string) {
	t.Helper()
	for i, key := range keys {
		together(t, d, checkpoint.Settle, createdEntry(key, "lead-"+key, i))
	}
}

func shuffled(n int) (keys []string) {
	for _, i := range rand.New(rand.NewPCG(1, 3)).Perm(n) {
		keys = append(keys, fmt.Sprintf("key-%05d", i))
	}
	return keys
}

// The log of gathered entries stays short, and look-ups find every entry in it.
func TestGatheredEntriesAreFewAndKnown(t *testing.T) {
	d := opened(t, newPath(t), Options{gather: generationSize{least: 20, most: 20}})
	keys := shuffled(300)
	for i := range keys {
		settleAll(t, d, keys[i:i+1])
		if waiting, moved := logged(t, d); waiting > 2*20+2 || waiting+len(moved) > 4*20 {
			t.Fatalf("%d records wait and %d have been moved, after %d entries", waiting, len(moved), i+1)
		}
		if got := lookup(t, d, keys[i/2]); got.LeadID != "lead-"+keys[i/2] {
			t.Fatalf("after %d entries, entry %d is %+v", i+1, i/2, got)
		}
	}
	if waiting, moved := logged(t, d); waiting+len(moved) < 10 {
		t.Errorf("%d records", waiting+len(moved))
	}
	if d.Info().Leads != 300 {
		t.Errorf("%d leads", d.Info().Leads)
	}
}

// Readers see an entry once it is reported, whether it is in the log or in its place.
func TestReadersSeeEveryReportedEntry(t *testing.T) {
	for name, unsynced := range map[string]bool{"while the disk writes": false, "as fast as can be": true} {
		t.Run(name, func(t *testing.T) { readWhileWriting(t, unsynced) })
	}
}

func readWhileWriting(t *testing.T, unsynced bool) {
	d := opened(t, newPath(t), Options{gather: early})
	d.bolt.NoSync = unsynced
	keys := shuffled(600)
	reported := make(chan int, 100*len(keys))
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for last := range reported {
				out := make([]checkpoint.Entry, 2)
				asked := []string{keys[last], keys[last/2]}
				if err := lookupAll(d, asked, out); err != nil || out[0].State != checkpoint.Created || out[1].State != checkpoint.Created {
					t.Errorf("row %d: %v, %v, %v", last, out[0].State, out[1].State, err)
				}
				qs := []checkpoint.Query{{LeadID: "lead-" + asked[0], Entry: &out[0]}, {ExternalID: asked[1], Entry: &out[1]}}
				if err := d.Find(context.Background(), qs); err != nil || qs[0].Match != checkpoint.ByLeadID || qs[1].Match != checkpoint.ByExternalID {
					t.Errorf("row %d: %+v, %v", last, qs, err)
				}
			}
		})
	}
	for i, key := range keys {
		must.Do(t, claim(d, intentOf(key, i)))
		settleAll(t, d, keys[i:i+1])
		for n := range 20 {
			reported <- max(0, i-n)
		}
		settleAll(t, d, keys[max(0, i-1):i]) // once more, while readers look
		if i%200 == 0 {
			n := 0
			if err := checkpoint.Each(context.Background(), d, checkpoint.Filter{State: checkpoint.Created}, func(checkpoint.Entry) error { n++; return nil }); err != nil || n != i+1 {
				t.Errorf("%d of %d entries, %v", n, i+1, err)
			}
		}
	}
	close(reported)
	readers.Wait()
}

// A line of the log holds personal data even after its records were moved, so forgetting removes it.
func TestForgettingReachesTheLog(t *testing.T) {
	path := newPath(t)
	d := opened(t, path, Options{gather: early})
	keys := shuffled(20)
	var gone []string // those whose records have been moved
	for i := 0; len(gone) <= 3; i++ {
		settleAll(t, d, keys[i:i+1])
		_, gone = logged(t, d)
	}
	r, err := checkpoint.Forget(context.Background(), d, gone, false)
	if err := errors.Join(err, d.Close()); err != nil || r[checkpoint.Created] != len(gone) {
		t.Fatal(r, err)
	}
	file := read(t, path)
	for _, key := range gone {
		if bytes.Contains(file, []byte(key)) {
			t.Errorf("%s is still in the file", key)
		}
	}
	if d = opened(t, path, Options{}); d.Info().Leads == 0 {
		t.Error("nobody is left")
	}
}

// A missing line of the log is damage. Its keys must not count as unknown.
func TestLostLineIsDamage(t *testing.T) {
	d, err := Open(newPath(t), target(), Options{gather: early})
	must.Do(t, err)
	keys := shuffled(8)
	settleAll(t, d, keys)
	err = d.transact("other", func(*writing) error {
		k, _ := d.entries.lines.Cursor().First()
		return d.entries.lines.Delete(bytes.Clone(k))
	})
	must.Do(t, err)
	out := make([]checkpoint.Entry, len(keys))
	if err := lookupAll(d, keys, out); !errors.Is(err, checkpoint.ErrDamaged) {
		t.Errorf("%+v, %v", out, err)
	}
	if err := d.Close(); !errors.Is(err, checkpoint.ErrDamaged) {
		t.Errorf("close: %v", err)
	}
}

// N10, fault 32: a row with 12 content keys takes at most 512 bytes, plus 50 because an eighth of so few rows is still
// in the log. So many rows also give the index by lead ID several generations. Every lead is known before and after a
// crash, and after an end in order. fault 66
func TestManyRowsStaySmallAndKnown(t *testing.T) {
	skipIfShort(t)
	const rows = 40_000
	for name, key := range map[string]func(int) string{
		"addresses with capitals without order": func(i int) string {
			return fmt.Sprintf("Ann.%016x@Sales.Example.COM", uint64(i+1)*0x9E3779B97F4A7C15)
		},
		"UUIDs without order": func(i int) string {
			h := uint64(i+1) * 0x9E3779B97F4A7C15
			return fmt.Sprintf("%08x-%04x-4000-8000-%012x", h>>32, h>>16&0xffff, i)
		},
	} {
		capitals := strings.Contains(name, "capitals")
		if capitals && !*thorough {
			continue
		}
		t.Run(name, func(t *testing.T) {
			path := newPath(t)
			d := opened(t, path, Options{})
			leads := make([]string, rows)
			var changes []*checkpoint.Change
			for i := range rows {
				id := d.digests.Sum([]byte(key(i)))
				leads[i] = uuidOf(id)
				changes = append(changes, &checkpoint.Change{Kind: checkpoint.Claim, Entry: intentOf(key(i), i)},
					&checkpoint.Change{Kind: checkpoint.Settle, Entry: createdEntry(key(i), leads[i], i)})
				if i%64 == 63 || i == rows-1 {
					must.Do(t, d.Commit(t.Context(), changes))
					changes = changes[:0]
				}
			}
			wantLeadsKnown(t, d, leads)
			copied := opened(t, killed(t, path), Options{})
			wantLeadsKnown(t, copied, leads)
			must.Do(t, d.Close())
			info, err := os.Stat(path)
			must.Do(t, err)
			t.Logf("%d bytes a row", info.Size()/rows)
			most := int64(562)
			if capitals {
				most += 110 // each fold holds the whole key
			}
			if info.Size() > most*rows {
				t.Errorf("%d bytes a row", info.Size()/rows)
			}
			wantLeadsKnown(t, opened(t, path, Options{}), leads)
		})
	}
}

// wantLeadsKnown tries to give some leads to another key, which must be refused.
func wantLeadsKnown(t *testing.T, d *Store, leads []string) {
	t.Helper()
	for i := 0; i < len(leads); i += 4999 {
		stored, err := settle(d, checkpoint.Entry{Key: "another", State: checkpoint.Created, LeadID: leads[i]})
		if err != nil || stored.Reason != checkpoint.ReasonLeadTaken {
			t.Errorf("lead of row %d: %v, %v", i, stored.State, err)
		}
	}
	if d.Info().Leads != len(leads) {
		t.Errorf("%d leads, want %d", d.Info().Leads, len(leads))
	}
}
