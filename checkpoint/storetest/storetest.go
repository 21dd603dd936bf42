// Package storetest says what every [checkpoint.Store] must do, see [Run].
package storetest

import (
	"context"
	"encoding/binary"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"leadferry/checkpoint"
	"leadferry/internal/testsupport/must"
)

// TB is a test, of the usual kind or of random ones.
type TB interface {
	rapid.TB
	Cleanup(func())
}

// Backend is a kind of Store, as a test uses it.
type Backend struct {
	// Place makes a place for a new checkpoint.
	Place func(TB) string
	// Open opens the checkpoint at a place, or makes it.
	Open func(t TB, place string, now func() time.Time) checkpoint.Store
	// Killed copies the checkpoint at a place to another place, as a process that died now would leave it.
	Killed func(t TB, place string) string
	// Intact fails the test unless everything at a place is right; nil: there is nothing to check.
	Intact func(t TB, place string)
}

// Run checks that a Store does what every Store must do. Lists, decisions and doubts follow the same rules in all
// Stores, because package checkpoint has these rules: the tests of this package check them with a file.
func Run(t *testing.T, b Backend) {
	b.run(t, []func(*testing.T, Backend){
		knowsWhatMapsKnow, badChangeDoesNotHarmItsNeighbours, closedRefusesEverything,
		eachGoesThroughAllInOrderAndMayWrite, whatALedgerKnowsOfItselfIsKept, whatUpdatesLeaveIsKept,
		adoptTakesALongList,
	})
}

func (b Backend) run(t *testing.T, behaviours []func(*testing.T, Backend)) {
	for _, behaviour := range behaviours {
		name := runtime.FuncForPC(reflect.ValueOf(behaviour).Pointer()).Name()
		t.Run(name[strings.LastIndex(name, ".")+1:], func(t *testing.T) { behaviour(t, b) })
	}
}

type opened struct {
	checkpoint.Store
	b     Backend
	place string
	now   func() time.Time
}

// open opens a new checkpoint. When the test ends, it is closed and checked.
func (b Backend) open(t TB) *opened { return b.openAt(t, time.Now) }

func (b Backend) openAt(t TB, now func() time.Time) *opened {
	t.Helper()
	return b.reopen(t, b.Place(t), now)
}

func (b Backend) reopen(t TB, place string, now func() time.Time) *opened {
	t.Helper()
	d := &opened{b.Open(t, place, now), b, place, now}
	t.Cleanup(func() {
		d.Close()
		if b.Intact != nil {
			b.Intact(t, place)
		}
	})
	return d
}

func (d *opened) again(t TB) *opened {
	t.Helper()
	must.Do(t, d.Close())
	return d.b.reopen(t, d.place, d.now)
}

// killed opens a copy of the Store as its process would leave it if it died now.
func (d *opened) killed(t TB) *opened {
	t.Helper()
	return d.b.reopen(t, d.b.Killed(t, d.place), d.now)
}

// Change makes one change in one commit.
func Change(d checkpoint.Store, kind checkpoint.ChangeKind, e checkpoint.Entry) (checkpoint.Entry, error) {
	c := &checkpoint.Change{Kind: kind, Entry: e, Resend: true}
	if err := d.Commit(context.Background(), []*checkpoint.Change{c}); err != nil {
		return c.Entry, err
	}
	return c.Entry, c.Err
}

// Together makes changes of one kind in one commit and returns what is stored then. No change may be refused.
func Together(t TB, d checkpoint.Store, kind checkpoint.ChangeKind,
	entries ...checkpoint.Entry,
) (stored []checkpoint.Entry) {
	t.Helper()
	var changes []*checkpoint.Change
	for _, e := range entries {
		changes = append(changes, &checkpoint.Change{Kind: kind, Entry: e, Resend: true})
	}
	must.Do(t, d.Commit(context.Background(), changes))
	for _, c := range changes {
		if c.Err != nil {
			t.Fatalf("%s: %v", c.Entry.Key, c.Err)
		}
		stored = append(stored, c.Entry)
	}
	return stored
}

// Resolve is [checkpoint.Resolve] without its counts.
func Resolve(d checkpoint.Store, ds ...checkpoint.Decision) error {
	_, err := checkpoint.Resolve(context.Background(), d, ds)
	return err
}

func claimed(t TB, d checkpoint.Store, entries ...checkpoint.Entry) {
	t.Helper()
	Together(t, d, checkpoint.Claim, entries...)
}

func settled(t TB, d checkpoint.Store, e checkpoint.Entry) checkpoint.Entry {
	t.Helper()
	return Together(t, d, checkpoint.Settle, e)[0]
}

// LeadsOf returns leads as a list has them, to be adopted.
func LeadsOf(entries ...checkpoint.Entry) checkpoint.Leads {
	return checkpoint.Leads{
		Missing: func() string { return "" },
		Entries: func(yield func(checkpoint.Entry, error) bool) {
			for _, e := range entries {
				if !yield(e, nil) {
					return
				}
			}
		},
	}
}

// Adopt adopts leads that no witness knows.
func Adopt(d checkpoint.Store, list ...checkpoint.Entry) (checkpoint.AdoptResult, error) {
	return checkpoint.AdoptList(context.Background(), d, nil, LeadsOf(list...))
}

func adopted(t TB, d checkpoint.Store, want checkpoint.AdoptResult, list ...checkpoint.Entry) {
	t.Helper()
	if r, err := Adopt(d, list...); err != nil || r != want {
		t.Fatalf("adopted %+v, %v, want %+v", r, err, want)
	}
}

func history(t TB, d checkpoint.Store, key string) []checkpoint.Event {
	t.Helper()
	events, err := checkpoint.History(context.Background(), d, key)
	must.Do(t, err)
	return events
}

// Sought returns what a query finds, and how.
func Sought(t TB, d checkpoint.Store, q checkpoint.Query) (checkpoint.Entry, checkpoint.Match) {
	t.Helper()
	qs := []checkpoint.Query{q}
	qs[0].Entry = new(checkpoint.Entry)
	must.Do(t, d.Find(context.Background(), qs))
	return *qs[0].Entry, qs[0].Match
}

// Lookup returns what is stored under a key.
func Lookup(t TB, d checkpoint.Store, key string) checkpoint.Entry {
	t.Helper()
	e, _ := Sought(t, d, checkpoint.Query{Key: key})
	return e
}

func contents(t TB, d checkpoint.Store) (all []checkpoint.Entry) {
	t.Helper()
	must.Do(t, checkpoint.Each(context.Background(), d, checkpoint.Filter{},
		func(e checkpoint.Entry) error { all = append(all, e); return nil }))
	return all
}

func audit(t TB, d checkpoint.Store) []checkpoint.KeptDecision {
	t.Helper()
	a, err := checkpoint.AuditOf(context.Background(), d)
	must.Do(t, err)
	return a
}

// IntentOf returns what is claimed for a row.
func IntentOf(key string, line int) checkpoint.Entry {
	return checkpoint.Entry{
		Key: key, File: "leads.csv", Line: line + 2, Organization: "5f0c1a52-7d0b-4a3e-9a1e-3a1c6d1f0b77",
		Status: "open", Run: "20260101T000000Z-1", Updated: time.UnixMilli(1_770_000_000_123).UTC(),
	}
}

// CreatedEntry returns what is settled for a row.
func CreatedEntry(key, lead string, line int) checkpoint.Entry {
	e := checkpoint.Entry{
		Key: key, State: checkpoint.Created, LeadID: lead, Organization: "5f0c1a52-7d0b-4a3e-9a1e-3a1c6d1f0b77",
		Location: "Example Motors North", Status: "inProgress", ExternalID: key,
		Run: "20260101T000000Z-1", Updated: time.UnixMilli(1_770_000_000_456).UTC(),
		Content: make([]checkpoint.ContentDigest, 12),
	}
	binary.NativeEndian.PutUint64(e.Digest[:], uint64(line))
	for i := range e.Content {
		binary.NativeEndian.PutUint32(e.Content[i].Value[:], uint32(i*line))
	}
	return e
}
