package bolt

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"leadferry/checkpoint"
)

// Nothing is looked up and no change is made before a large file has been checked, and
// closing does not wait for a check that nobody needs.
func TestEverybodyWaitsForTheCheckOfALargeFile(t *testing.T) {
	path := newPath(t)
	seeded(t, path, 400).Close()
	d, err := openIdle(path, target(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	done, found := make(chan error, 1), make(chan error, 1)
	d.checked = make(chan struct{}) // as if the check were still under way
	d.ledger = ledger{digests: d.digests, words: d.words, unflushed: d.unflushed, recent: d.recent, vacant: make(map[string]bool)}
	d.teller = tell(d)
	before := d.tally.Load().seq
	go func() { done <- claim(d, intentOf("new", 1)) }()
	go func() { found <- lookupAll(d, []string{"key-00001"}, make([]checkpoint.Entry, 1)) }()
	time.Sleep(20 * time.Millisecond) // time for what must not happen
	if len(done) != 0 || len(found) != 0 || d.tally.Load().seq != before {
		t.Error("a change or a look-up before the check has ended")
	}
	_ = d.fail(damage("found by the check"))
	close(d.checked)
	if claimed, looked := <-done, <-found; !errors.Is(claimed, checkpoint.ErrDamaged) || !errors.Is(looked, checkpoint.ErrDamaged) {
		t.Errorf("claim: %v; look-up: %v", claimed, looked)
	}
	if err := d.Close(); !errors.Is(err, checkpoint.ErrDamaged) {
		t.Errorf("close: %v", err)
	}
	d = opened(t, path, Options{atOnce: 1})
	if err := d.Close(); err != nil {
		t.Errorf("close at once: %v", err)
	}
	d = opened(t, path, Options{})
	d.stopped.Store(true) // as if the check had not seen all
	if err := lookupAll(d, []string{"key-00001"}, make([]checkpoint.Entry, 1)); !errors.Is(err, checkpoint.ErrClosed) {
		t.Errorf("look-up after a check that was stopped: %v", err)
	}
}

// The one pass finds what the slow check finds: every state, odd IDs, keys that are
// IDs, and whatever a compaction or a crash left.
func TestSurveyAgreesWithTheSlowCheck(t *testing.T) {
	path := newPath(t)
	d := opened(t, path, Options{})
	random := rand.New(rand.NewPCG(8, 9))
	for i := range 300 {
		key := []string{uuid(random), string(rune('a' + i%26)), "", "key"}[i%4] + string(make([]byte, i%7)) + uuid(random)[:8]
		id := []string{"", key, uuid(random), uuid(random)[:1+i%30], string(make([]byte, checkpoint.MaxKey+i%3))}[i%5]
		e := createdEntry(key, id, i)
		e.ExternalID = []string{"", key, uuid(random), string(make([]byte, checkpoint.MaxKey+i%3))}[i%4]
		if _, err := settle(d, e); err != nil {
			t.Fatal(err)
		}
		if i%10 == 0 {
			if err := claim(d, intentOf("doubt"+key, i)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := settle(d, checkpoint.Entry{Key: "sent again", State: checkpoint.Rejected, Code: 422}); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(claim(d, intentOf("sent again", 1)), d.Close()); err != nil { // stands in both trees
		t.Fatal(err)
	}
	d = opened(t, path, Options{})
	img, err := inspect(d.file)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(d.survey(img, nil), d.verify()); err != nil {
		t.Error(err)
	}
	if err := d.survey(img, func() bool { return true }); !errors.Is(err, errStopped) {
		t.Errorf("told to stop: %v", err)
	}
}

// What the slow check notices by look-ups, sums show too.
func TestSurveyNoticesIndexesThatDoNotFit(t *testing.T) {
	for name, fault := range map[string]func(*bbolt.Tx) error{
		"links swapped for others": func(tx *bbolt.Tx) error {
			b := tx.Bucket(inLinks)
			k, _ := b.Cursor().First()
			other := append([]byte(nil), k...)
			other[len(other)-1] ^= 1
			return errors.Join(b.Delete(k), b.Put(other, nil))
		},
		"leads of two keys exchanged": func(tx *bbolt.Tx) error {
			b := tx.Bucket(inLeads)
			c := b.Cursor()
			k1, v1 := c.First()
			k2, v2 := c.Next()
			one, two := append([]byte(nil), v1...), append([]byte(nil), v2...)
			return errors.Join(b.Put(k1, two), b.Put(k2, one))
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := newPath(t)
			seeded(t, path, 100).Close()
			copied := killed(t, path)
			db, err := bbolt.Open(copied, 0o600, nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(db.Update(fault), db.Close()); err != nil {
				t.Fatal(err)
			}
			_, err = Open(copied, target(), Options{ReadOnly: true})
			checkRefusal(t, err, checkpoint.ErrDamaged)
		})
	}
}

// A changed key in a branch sends look-ups to the wrong page, though every record is
// whole, or a change puts its page there twice. faults 21, 22
func TestMisledLookUpIsNoticed(t *testing.T) {
	path := newPath(t)
	d := opened(t, path, Options{})
	for i := range 120 {
		key := strings.Repeat(fmt.Sprintf("%05d-", 10*i), 150) // few on a page, so that branches have branches
		if _, err := settle(d, checkpoint.Entry{Key: key, State: checkpoint.Rejected, Code: 422}); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	file, page := read(t, path), os.Getpagesize()
	mark := read(t, path+".seq")
	img, err := inspectBytes(t, file)
	if err != nil {
		t.Fatal(err)
	}
	img.f = bytes.NewReader(file)
	used := newWalker(img, nil, nil)
	if err := errors.Join(used.tree(subtree{page: img.root}), used.bucket(string(inEntries), used.trees[string(inEntries)])); err != nil {
		t.Fatal(err)
	}
	noticed, branches := 0, 0
	for at := 2 * page; at < len(file); at += page {
		if native.Uint16(file[at+8:]) != branchPage || used.use[at/page] != inUse {
			continue
		}
		branches++
		for i := range elements(file[at : at+page]) {
			for _, flip := range []struct {
				at int
				by byte
			}{{3, 1}, {3, 2}, {3, 4}, {4, 1}, {4, 16}} { // to another key, or above or below this one alone
				broken := append([]byte(nil), file...)
				key, ok := branchKey(broken[at:at+page], i)
				if !ok {
					t.Fatal("a branch without keys")
				}
				key[flip.at] ^= flip.by
				d, err := reopen(t, path, broken, mark)
				if err == nil {
					d.Close()
					t.Fatal("a changed key was not noticed")
				}
				checkRefusal(t, err, checkpoint.ErrDamaged)
				noticed++
			}
		}
	}
	writeFiles(t, path, file, mark)
	if branches < 5 || noticed < 100 {
		t.Errorf("%d noticed in %d branches", noticed, branches)
	}
}

// Two records in the wrong order are whole, and yet one of them is not found.
func TestRecordsOutOfOrderAreNoticed(t *testing.T) {
	file, mark, _ := ended(t)
	page, noticed := os.Getpagesize(), 0
	for at := 2 * page; at < len(file); at += page {
		if native.Uint16(file[at+8:]) != leafPage || elements(file[at:at+page]) < 2 {
			continue
		}
		broken := append([]byte(nil), file...)
		first, second := broken[at+pageHeader:at+pageHeader+element], broken[at+pageHeader+element:at+pageHeader+2*element]
		was := append([]byte(nil), first...)
		copy(first, second)
		copy(second, was)
		native.PutUint32(first[4:], native.Uint32(first[4:])+element)
		native.PutUint32(second[4:], native.Uint32(second[4:])-element)
		if d, err := reopen(t, newPath(t), broken, mark); err == nil {
			d.Close() // a page that is free by now
			continue
		} else {
			checkRefusal(t, err, checkpoint.ErrDamaged)
		}
		noticed++
		if err := inspectWalk(t, broken); !errors.Is(err, checkpoint.ErrDamaged) {
			t.Errorf("the walk says %v", err)
		}
	}
	if noticed < 10 {
		t.Errorf("noticed in %d pages", noticed)
	}
}
