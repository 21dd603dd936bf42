package bolt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"go.etcd.io/bbolt"

	"leadferry/checkpoint"
)

// records counts what stands in the bucket of recent entries, and names what is void.
func records(t *testing.T, d *Store) (all int, void []string) {
	t.Helper()
	err := d.view("count", func(tx *bbolt.Tx) error {
		s, err := decodeStage(tx.Bucket(inMeta).Get(stageKey))
		if err != nil {
			return err
		}
		return tx.Bucket(inRecent).ForEach(func(k, v []byte) error {
			number, key, _, err := openRecent(k, v)
			all++
			if s.void(number, key) {
				void = append(void, key)
			}
			return err
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return all, void
}

// settleAll settles one entry a commit.
func settleAll(t *testing.T, d *Store, keys []string) {
	t.Helper()
	for i, key := range keys {
		if _, err := settle(d, createdEntry(key, "lead-"+key, i)); err != nil {
			t.Fatal(err)
		}
	}
}

func shuffled(n int) (keys []string) {
	for _, i := range rand.New(rand.NewPCG(1, 3)).Perm(n) {
		keys = append(keys, fmt.Sprintf("key-%05d", i))
	}
	return keys
}

// What gathers is bounded, and all of it is known as long as it is on its way.
func TestNewEntriesGather(t *testing.T) {
	d := opened(t, newPath(t), Options{gather: gathering{least: 20, most: 20}})
	keys := shuffled(300)
	for i := range keys {
		settleAll(t, d, keys[i:i+1])
		all, void := records(t, d)
		if all-len(void) > 2*20+2 || all > 3*20+2 {
			t.Fatalf("%d records, %d of them void, after %d entries", all, len(void), i+1)
		}
		if got := lookup(t, d, keys[i/2]); got.LeadID != "lead-"+keys[i/2] {
			t.Fatalf("after %d entries, entry %d is %+v", i+1, i/2, got)
		}
	}
	if all, _ := records(t, d); all < 20 {
		t.Errorf("%d records", all)
	}
	if d.Info().Leads != 300 {
		t.Errorf("%d leads", d.Info().Leads)
	}
}

// What was reported is seen by everybody from then on, wherever it is at that moment.
func TestReadersSeeWhatIsOnItsWay(t *testing.T) {
	for name, unsynced := range map[string]bool{"while the disk writes": false, "as fast as can be": true} {
		t.Run(name, func(t *testing.T) { readWhileWriting(t, unsynced) })
	}
}

func readWhileWriting(t *testing.T, unsynced bool) {
	d := opened(t, newPath(t), Options{gather: early})
	d.bolt.NoSync = unsynced
	keys := shuffled(1500)
	reported := make(chan int, 100*len(keys))
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for last := range reported {
				out := make([]checkpoint.Entry, 2)
				how := make([]checkpoint.Match, 2)
				asked := []string{keys[last], keys[last/2]}
				if err := lookupAll(d, asked, out); err != nil || out[0].State != checkpoint.Created || out[1].State != checkpoint.Created {
					t.Errorf("row %d: %v, %v, %v", last, out[0].State, out[1].State, err)
				}
				qs := []checkpoint.Query{{LeadID: "lead-" + asked[0]}, {ExternalID: asked[1]}}
				if err := d.Find(context.Background(), qs, out, how); err != nil || how[0] != checkpoint.ByLeadID || how[1] != checkpoint.ByExternalID {
					t.Errorf("row %d: %v, %v", last, how, err)
				}
			}
		})
	}
	for i, key := range keys {
		if err := claim(d, intentOf(key, i)); err != nil {
			t.Fatal(err)
		}
		settleAll(t, d, keys[i:i+1])
		for n := range 20 {
			reported <- max(0, i-n)
		}
		settleAll(t, d, keys[max(0, i-1):i]) // once more, in the sight of readers
		if i%500 == 0 {
			n := 0
			if err := d.Each(context.Background(), checkpoint.Filter{State: checkpoint.Created}, func(checkpoint.Entry) error { n++; return nil }); err != nil || n != i+1 {
				t.Errorf("%d of %d entries, %v", n, i+1, err)
			}
		}
	}
	close(reported)
	readers.Wait()
}

// A record that is void already still holds a person.
func TestForgettingReachesVoidRecords(t *testing.T) {
	path := newPath(t)
	d := opened(t, path, Options{gather: early})
	keys := shuffled(20)
	var gone []string // those whose records are void
	for i := 0; len(gone) <= 3; i++ {
		settleAll(t, d, keys[i:i+1])
		_, gone = records(t, d)
	}
	r, err := d.Forget(context.Background(), gone, false)
	if err := errors.Join(err, d.Close()); err != nil || r.Leads != len(gone) {
		t.Fatal(r, err)
	}
	file := read(t, path)
	for _, key := range gone {
		if bytes.Contains(file, []byte(key)) {
			t.Errorf("%s stands in the file", key)
		}
	}
	if d = opened(t, path, Options{}); d.Info().Leads == 0 {
		t.Error("nobody is left")
	}
}

// A record that should be there and is not is damage, not a key that nobody knows.
func TestLostRecentRecordIsDamage(t *testing.T) {
	d, err := Open(newPath(t), target(), Options{gather: early})
	if err != nil {
		t.Fatal(err)
	}
	keys := shuffled(8)
	settleAll(t, d, keys)
	err = d.alone(func(l *ledger) error {
		k, _ := l.recent.cursor.First()
		return l.recent.bucket.Delete(bytes.Clone(k))
	})
	if err != nil {
		t.Fatal(err)
	}
	out := make([]checkpoint.Entry, len(keys))
	if err := lookupAll(d, keys, out); !errors.Is(err, checkpoint.ErrDamaged) {
		t.Errorf("%+v, %v", out, err)
	}
	if err := d.Close(); !errors.Is(err, checkpoint.ErrDamaged) {
		t.Errorf("close: %v", err)
	}
}

// How far a generation had gone says nothing of the next one, though the rest of it was
// given free and the process was killed before it had ended.
func TestGenerationWhoseRestIsGivenFree(t *testing.T) {
	path := newPath(t)
	d := opened(t, path, Options{gather: early})
	refuse := func(d *Store, key string) {
		t.Helper()
		if _, err := settle(d, checkpoint.Entry{Key: key, State: checkpoint.Rejected, Code: 422}); err != nil {
			t.Fatal(err)
		}
	}
	var rest []string
	keys := shuffled(100)
	for i := 0; len(rest) == 0 || len(rest) > 4; i++ {
		refuse(d, keys[i])
		if err := d.alone(func(l *ledger) error { rest = append(rest[:0], l.recent.keys...); return nil }); err != nil {
			t.Fatal(err)
		}
	}
	for _, key := range rest {
		if err := errors.Join(claim(d, intentOf(key, 1)), resolve(d, checkpoint.Decision{Key: key})); err != nil {
			t.Fatal(err)
		}
	}
	path = killed(t, path)
	d = opened(t, path, Options{gather: gathering{least: 1, most: 1}})
	late := []string{"9", "8", "7", "6", "5", "4", "3", "2", "1"} // before all others
	for _, key := range late {
		refuse(d, key)
		reader := opened(t, killed(t, path), Options{ReadOnly: true})
		if got := lookup(t, reader, key); got.State != checkpoint.Rejected {
			t.Errorf("%s is lost", key)
		}
	}
}
