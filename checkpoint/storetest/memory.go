// Package storetest says what every [checkpoint.Store] must do ([Run]), and holds one that
// keeps everything in memory: what the others are compared with, and a quick one for tests of
// what is above.
package storetest

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"leadferry/checkpoint"
	"leadferry/internal/rowkey"
)

var _ checkpoint.Store = (*Memory)(nil)

// Memory is a Store without a file. It is gone with the process. Its fields may be set before
// it is used; they are called with its lock held, so they must not call it.
type Memory struct {
	Now  func() time.Time // the time of a commit
	Path string           // that it says it has
	// Refuse, unless nil, is asked before each change of a commit: what it returns the change
	// is refused for. It must be one of the errors that [checkpoint.IsRefusal] knows.
	Refuse func(c *checkpoint.Change) error

	mu     sync.Mutex
	target checkpoint.Target
	used   bool // opened again, or something was claimed or settled
	closed bool
	atEnd  func(left string)
	known  knowledge
}

// knowledge is what is known. What a record points to is never changed, so that a copy of
// the maps is a copy of all.
type knowledge struct {
	id      string
	seq     uint64
	keys    map[string]checkpoint.KeptKey // none is empty
	blocked map[string]string             // hash of a forgotten key → that of its fold, where that is another
	digests *checkpoint.Digester
	notes   map[string][]byte
	missing string
	since   uint64
}

// NewMemory returns one that knows nothing.
func NewMemory(t checkpoint.Target) *Memory {
	return &Memory{Now: time.Now, Path: "memory", target: t, known: knowledge{
		id: rand.Text(), keys: map[string]checkpoint.KeptKey{}, blocked: map[string]string{},
		notes:   map[string][]byte{},
		digests: checkpoint.NewDigester([]byte(rand.Text())),
	}}
}

// Again is a Store that knows what this one knows, as if it had been opened again.
func (m *Memory) Again() *Memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	return &Memory{Now: m.Now, Path: m.Path, target: m.target, known: m.known.clone(), used: true}
}

func (k *knowledge) clone() knowledge {
	c := *k
	c.keys, c.blocked, c.notes = maps.Clone(k.keys), maps.Clone(k.blocked), maps.Clone(k.notes)
	return c
}

// Info says what is known, in figures.
func (m *Memory) Info() checkpoint.Info {
	m.mu.Lock()
	defer m.mu.Unlock()
	i := checkpoint.Info{
		Path: m.Path, ID: m.known.id, Target: m.target, Sequence: m.known.seq, New: !m.used,
		Keys:       map[checkpoint.State]int{},
		Incomplete: m.known.missing != "", Missing: m.known.missing, Since: m.known.since,
	}
	for s := checkpoint.Created; s <= checkpoint.Forgotten; s++ {
		i.Keys[s] = 0
	}
	for key := range m.known.keys {
		i.Keys[m.known.visible(key).State]++
	}
	i.Keys[checkpoint.Forgotten] = len(m.known.blocked)
	i.Leads, i.InDoubt = i.Keys[checkpoint.Created]+i.Keys[checkpoint.Partial], i.Keys[checkpoint.InDoubt]
	return i
}

// Digests makes digests with a key of its own.
func (m *Memory) Digests() *checkpoint.Digester { return m.known.digests }

// Close refuses everything from now on.
func (m *Memory) Close() error { return m.close(m.atEnd) }

func (m *Memory) close(atEnd func(left string)) error {
	m.mu.Lock()
	closed := m.closed
	m.closed = true
	m.mu.Unlock()
	if !closed && atEnd != nil {
		atEnd("")
	}
	return nil
}

// Drop is Close, and says whether nothing was known.
func (m *Memory) Drop() (gone bool, err error) {
	if gone = !m.used && len(m.known.keys)+len(m.known.blocked) == 0; gone {
		return true, m.close(nil)
	}
	return false, m.Close()
}

// ask calls f with what is known.
func (m *Memory) ask(f func(*knowledge)) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return checkpoint.ErrClosed
	}
	f(&m.known)
	return nil
}

// change lets f change what is known, unless it fails.
func (m *Memory) change(what string, f func(k *knowledge, now time.Time) error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return checkpoint.ErrClosed
	}
	next := m.known.clone()
	next.seq++
	if err := f(&next, m.now()); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	m.known = next
	return nil
}

// now is the time of a commit, as it is kept.
func (m *Memory) now() time.Time { return m.Now().UTC().Truncate(time.Millisecond) }

// visible is what a look-up shows.
func (k *knowledge) visible(key string) *checkpoint.Kept {
	one := k.keys[key]
	if shown := one.Shown(); shown != nil {
		return shown
	}
	none := &checkpoint.Kept{Entry: checkpoint.Entry{Key: key}}
	if _, blocked := k.blocked[string(k.digests.Blocked(key))]; blocked {
		none.State = checkpoint.Forgotten
	}
	return none
}

func (k *knowledge) owner(lead string) string {
	for key, one := range k.keys {
		if lead != "" && one.Entry != nil && one.Entry.LeadID == lead {
			return key
		}
	}
	return ""
}

// Find looks for leads, see [checkpoint.Store].
func (m *Memory) Find(_ context.Context, qs []checkpoint.Query, out []checkpoint.Entry, how []checkpoint.Match) error {
	return m.ask(func(k *knowledge) {
		for i, q := range qs {
			found, match := k.find(q)
			if out[i], how[i] = found.Entry, match; match == checkpoint.NoMatch && q.Alike != nil {
				*q.Alike = k.alike(q.Key)[0]
			}
		}
	})
}

func (k *knowledge) find(q checkpoint.Query) (*checkpoint.Kept, checkpoint.Match) {
	own, owner := k.visible(q.Key), k.owner(q.LeadID)
	switch {
	case own.State.HasLead() && owner != "" && owner != q.Key:
		return own, checkpoint.Ambiguous
	case own.State.HasLead(), own.State == checkpoint.InDoubt, own.State == checkpoint.Forgotten:
		return own, checkpoint.ByKey
	case owner != "":
		return k.visible(owner), checkpoint.ByLeadID
	}
	var linked []*checkpoint.Kept
	for key, one := range k.keys {
		e, in := one.Entry, one.Intent
		if e != nil && e.State.HasLead() && (e.ExternalID == q.ExternalID || e.WantLink == q.ExternalID) ||
			in != nil && in.WantLink == q.ExternalID {
			linked = append(linked, k.visible(key))
		}
	}
	switch {
	case q.ExternalID == "" || len(linked) == 0:
		return own, checkpoint.NoMatch
	case len(linked) == 1 && (q.LeadID == "" || linked[0].LeadID == ""):
		return linked[0], checkpoint.ByExternalID
	}
	return own, checkpoint.Ambiguous
}

// alike are the keys that look like this one and have a lead, or may have one; else one that
// was forgotten, or none.
func (k *knowledge) alike(key string) (all []checkpoint.Likeness) {
	folded := rowkey.Fold(key)
	looks := func(other string) bool { return folded != "" && other != key && rowkey.Fold(other) == folded }
	for _, other := range slices.Sorted(maps.Keys(k.keys)) {
		e := k.visible(other)
		if (e.State.HasLead() || e.State == checkpoint.InDoubt) && looks(other) {
			all = append(all, checkpoint.Likeness{State: e.State, File: e.File, Line: e.Line})
		}
	}
	fold := string(k.digests.Blocked(folded))
	for hash, other := range k.blocked {
		if all == nil && folded != "" && (other == fold || hash == fold) {
			all = append(all, checkpoint.Likeness{State: checkpoint.Forgotten})
		}
	}
	return append(all, checkpoint.Likeness{})
}

// Scan calls f with what is stored under every key.
func (m *Memory) Scan(_ context.Context, which checkpoint.Filter, f func(checkpoint.KeptKey) error) error {
	var all []checkpoint.KeptKey
	err := m.ask(func(k *knowledge) {
		for _, key := range slices.Sorted(maps.Keys(k.keys)) {
			if one := k.keys[key]; which.State != checkpoint.InDoubt || one.Intent != nil {
				all = append(all, one)
			}
		}
	})
	for i := 0; i < len(all) && err == nil; i++ {
		err = f(all[i])
	}
	return err
}

// Under is what is stored under a key.
func (m *Memory) Under(_ context.Context, key string) (one checkpoint.KeptKey, err error) {
	err = m.ask(func(k *knowledge) { one = k.keys[key] })
	return one, err
}

// Notes returns those whose names begin so.
func (m *Memory) Notes(_ context.Context, prefix string) (all []checkpoint.Note, err error) {
	err = m.ask(func(k *knowledge) { all = k.notesOf(prefix) })
	return all, err
}

func (k *knowledge) notesOf(prefix string) (all []checkpoint.Note) {
	for _, name := range slices.Sorted(maps.Keys(k.notes)) {
		if strings.HasPrefix(name, prefix) {
			all = append(all, checkpoint.Note{Name: name, Value: k.notes[name]})
		}
	}
	return all
}

// Note returns a note, or nil where there is none.
func (m *Memory) Note(_ context.Context, name string) (value []byte, err error) {
	err = m.ask(func(k *knowledge) { value = k.notes[name] })
	return value, err
}

// Reached says how far it knows a run to have come.
func (m *Memory) Reached(_ context.Context, run string) (commits uint64, knows bool, err error) {
	err = m.ask(func(k *knowledge) {
		commits = k.seq
		knows = k.notes[checkpoint.RunNote(run)] != nil
	})
	return commits, knows, err
}

// Progress is how far it is.
func (m *Memory) Progress() (commits uint64, leads int) {
	i := m.Info()
	return i.Sequence, i.Leads + i.InDoubt
}

// AtEnd has f called by Close.
func (m *Memory) AtEnd(f func(left string)) { m.atEnd = f }
