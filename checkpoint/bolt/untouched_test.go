package bolt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"leadferry/checkpoint"
	"leadferry/internal/testsupport/must"
)

// attested attaches a witness in a new book, and returns options for a reader with this book.
func attested(t *testing.T, d *Store) Options {
	t.Helper()
	ws := &checkpoint.Witnesses{Book: t.TempDir()}
	one, err := ws.Begin(d, checkpoint.Witness{Run: "r"}, "")
	must.Do(t, err)
	d.Attest(one)
	return Options{ReadOnly: true, Witnesses: ws}
}

// rot lets f change the file and restores the file's time.
func rot(t *testing.T, path string, f func()) {
	t.Helper()
	info, err := os.Stat(path)
	if f(); errors.Join(err, os.Chtimes(path, time.Time{}, info.ModTime())) != nil {
		t.Fatal(err)
	}
}

// inFile changes what a closed checkpoint's file holds, as if it had rotted.
func inFile(t *testing.T, path string, f func(*bbolt.Tx) error) {
	t.Helper()
	db, err := bbolt.Open(path, 0o600, nil)
	must.Do(t, err)
	rot(t, path, func() {
		must.Do(t, errors.Join(db.Update(f), db.Close()))
	})
}

// A file that a run closed in order is not checked again, unless it was touched since. Then only a look-up that meets
// damage notices it. In all other cases the whole file is checked. faults 21, 22
func TestUntouchedFileIsNotCheckedAgain(t *testing.T) {
	for name, test := range map[string]struct {
		written bool // the file gets a newer time
		change  func(*Options)
		noticed bool // opening notices the damage
	}{
		"ended":             {},
		"ended, written to": {written: true, noticed: true},
		"ended, no book":    {change: func(o *Options) { o.Witnesses = nil }, noticed: true},
		"ended, restored":   {noticed: true},
		"killed":            {noticed: true},
		"told to check":     {change: func(o *Options) { o.Check = true }, noticed: true},
	} {
		t.Run(name, func(t *testing.T) {
			path := newPath(t)
			d := open(t, path, Options{gather: early})
			o := attested(t, d)
			for i := range 60 { // so many that the first are in their places
				together(t, d, checkpoint.Settle, createdEntry(fmt.Sprintf("key-%05d", i), fmt.Sprint("lead-", i), i))
			}
			was := path
			if strings.HasSuffix(name, "killed") {
				path = killed(t, path)
			}
			d.Close()
			if strings.HasSuffix(name, "restored") {
				path = killed(t, was)
			}
			b, key := read(t, path), []byte("key-00000")
			flip := func() {
				for at := range b {
					if page := at / os.Getpagesize() * os.Getpagesize(); bytes.HasPrefix(b[at:], key) && endian.Uint16(b[page+8:]) == leafKind {
						patch(t, path, at+12, b[at+12]^1) // in the record behind the key
					}
				}
			}
			if rot(t, path, flip); test.written && os.Chtimes(path, time.Time{}, time.Now().Add(time.Minute)) != nil {
				t.Fatal("its time cannot be set")
			}
			if test.change != nil {
				test.change(&o)
			}
			d, err := Open(path, target(), o)
			if noticed := err != nil; noticed != test.noticed {
				t.Fatalf("opening: %v", err)
			}
			if err != nil {
				checkRefusal(t, err, checkpoint.ErrDamaged)
				return
			}
			if err := lookupAll(d, []string{"key-00000"}, make([]checkpoint.Entry, 1)); !errors.Is(err, checkpoint.ErrDamaged) {
				t.Errorf("look-up: %v", err)
			}
			d.Close()
		})
	}
}

// In an untouched file a key that is damaged, there or in a branch page, does not become unknown, or its row would be
// sent again. faults 22, m20
func TestDamagedKeyIsNotUnknown(t *testing.T) {
	skipIfShort(t)
	path := newPath(t)
	d := open(t, path, Options{gather: early})
	o := attested(t, d)
	var keys []string
	for _, i := range rand.New(rand.NewPCG(1, 2)).Perm(300) {
		keys = append(keys, fmt.Sprintf("key-%05d", i))
		together(t, d, checkpoint.Settle, createdEntry(keys[len(keys)-1], fmt.Sprint("lead-", i), i))
	}
	if _, err := checkpoint.Forget(t.Context(), d, []string{"nobody"}, false); errors.Join(err, claim(d, intentOf("sent", 1)), d.Close()) != nil {
		t.Fatal(err)
	}
	keys = append(keys, "sent", "nobody")
	file, noticed := read(t, path), 0
	places := [][]byte{[]byte("sent"), d.digests.Blocked("nobody")}
	for _, key := range keys[:100] {
		places = append(places, []byte(key))
	}
	for n, key := range places {
		for at := range file {
			if !bytes.HasPrefix(file[at:], key) {
				continue
			}
			rot(t, path, func() { patch(t, path, at+n%len(key), file[at+n%len(key)]^byte(1+n%15)) })
			if damageIsMet(t, path, o, keys) {
				noticed++
			}
			rot(t, path, func() { patch(t, path, at+n%len(key), file[at+n%len(key)]) })
		}
	}
	if noticed < len(places) {
		t.Errorf("%d damaged keys were noticed", noticed)
	}
}

// damageIsMet reports whether opening a file or looking keys up shows damage. If not, no key may be unknown.
func damageIsMet(t *testing.T, path string, o Options, keys []string) bool {
	t.Helper()
	d, err := Open(path, target(), o)
	if err != nil {
		checkRefusal(t, err, checkpoint.ErrDamaged)
		return true
	}
	defer d.Close()
	for _, key := range keys {
		out := make([]checkpoint.Entry, 1)
		switch err := lookupAll(d, []string{key}, out); {
		case errors.Is(err, checkpoint.ErrDamaged):
			return true
		case err != nil || out[0].State == checkpoint.Unknown:
			t.Errorf("%s: %v, %v", key, out[0].State, err)
		}
	}
	return false
}

// A changed key in a branch page that sends look-ups to a wrong page is noticed, with all records whole. faults 21, 22
func TestMisledLookUpIsNoticed(t *testing.T) {
	skipIfShort(t)
	path := newPath(t)
	d := opened(t, path, Options{gather: early})
	var keys []string
	for i := range 120 {
		keys = append(keys, strings.Repeat(fmt.Sprintf("%05d-", 10*i), 150)) // long, so that branches have branches
		together(t, d, checkpoint.Settle, checkpoint.Entry{Key: keys[i], State: checkpoint.Rejected, Code: 422})
	}
	must.Do(t, d.Close())
	file := read(t, path)
	m, noticed, branches := metaOf(t, file), 0, 0
	for at := 2 * m.page; at < m.end; at += m.page {
		if endian.Uint16(file[at+8:]) != branchKind || !inUse(file, m, uint64(at/m.page)) {
			continue
		}
		branches++
		for i := range elementsOf(file[at : at+m.page]) {
			for n, flip := range []struct {
				at int
				by byte
			}{{3, 1}, {4, 1}, {4, 16}} { // makes another key of it, or a slightly larger or smaller one
				if n != i%6 && !*thorough {
					continue
				}
				broken := bytes.Clone(file)
				keyOf(broken[at:at+m.page], i)[flip.at] ^= flip.by
				content(string(broken))(t, path)
				if damageIsMet(t, path, inOwnProcess(Options{ReadOnly: true}), keys) {
					noticed++
				}
			}
		}
	}
	content(string(file))(t, path)
	if branches < 5 || noticed < 15 {
		t.Errorf("%d noticed in %d branches", noticed, branches)
	}
}

// A record whose length became 0 is damage to all its readers, never an unknown key. faults 22, m20
func TestEmptyRecordIsDamage(t *testing.T) {
	emptied := func(t *testing.T, bucket []byte, key string) (*Store, error) {
		path := newPath(t)
		d := open(t, path, Options{})
		o := attested(t, d)
		if _, err := settle(d, createdEntry("a", "lead", 1)); errors.Join(err, claim(d, intentOf("b", 1)), d.Close()) != nil {
			t.Fatal(err)
		}
		inFile(t, path, func(tx *bbolt.Tx) error { return tx.Bucket(bucket).Put([]byte(key), nil) })
		o.ReadOnly = false
		return Open(path, target(), o)
	}
	for name, ask := range map[string]func(d *Store) error{
		"each":    func(d *Store) error { _, err := contents(d); return err },
		"look-up": func(d *Store) error { return lookupAll(d, []string{"a"}, make([]checkpoint.Entry, 1)) },
		"history": func(d *Store) error { _, err := checkpoint.History(context.Background(), d, "a"); return err },
		"claim":   func(d *Store) error { return claim(d, intentOf("a", 1)) },
		"forget":  func(d *Store) error { _, err := checkpoint.Forget(t.Context(), d, []string{"a"}, false); return err },
	} {
		d, err := emptied(t, inEntries, "a")
		if err != nil {
			t.Fatalf("it is checked, though nobody touched it: %v", err)
		}
		if err := ask(d); !errors.Is(err, checkpoint.ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
		d.Close()
	}
	_, err := emptied(t, inIntents, "b") // opening always reads all rows in doubt
	checkRefusal(t, err, checkpoint.ErrDamaged)
}
