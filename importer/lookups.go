package importer

import (
	"context"
	"maps"
	"slices"
	"sync/atomic"

	"leadferry/checkpoint"
	"leadferry/internal/crash"
)

// lookups asks the checkpoint what it knows of rows: of a batch in one read, while the batch before it is decided about, and
// of a row once more where the run has acted on its lead since.
type lookups struct {
	ledger  *checkpoint.Ledger // nil: nothing is known of any row
	info    checkpoint.Info    // of the beginning: what an incomplete checkpoint lacks does not come back
	matches bool               // rows find their lead by its IDs, too
	alikes  bool               // keys that look like the row's matter
	run     string
	digests *digester

	begun   atomic.Int64       // reads
	touched map[leadName]int64 // leads whose lanes have ended since the batch's read began, with the reads that had begun then
	reading map[int64]struct{} // reads of rows that wait in lanes
}

func newLookups(r *run) *lookups {
	l := &lookups{
		ledger: r.ledger, matches: r.matches, alikes: !r.CreateAlikes, run: r.RunID,
		touched: map[leadName]int64{}, reading: map[int64]struct{}{},
	}
	if r.ledger != nil {
		l.digests, l.info = newDigester(r.ledger.Digests()), r.ledger.Info()
	}
	return l
}

// lookup is rows in file order with what the checkpoint knows of each, by its place among them.
type lookup struct {
	items  []*item
	end    error // why no more rows follow, or nil
	failed error // the checkpoint could not be asked
	number int64 // of the read

	queries []checkpoint.Query
	known   []checkpoint.Entry
	found   []checkpoint.Match
	alike   []checkpoint.Likeness
	taken   []checkpoint.Likeness
	row     Case // room for the one that is asked about
}

// follow looks up what comes in, up to most rows in one read where so many are there, and hands it on while somebody is
// taking it. Of two rooms one is filled while the rows of the other are planned. No answer is waited for once asking has ended.
func (l *lookups) follow(asking, taking context.Context, in <-chan *batch, most int, out chan<- *lookup) {
	defer close(out)
	for rooms, i := new([2]lookup), 0; ; i = 1 - i {
		b, more := <-in
		if !more {
			return
		}
		gather(b, in, most)
		a := &rooms[i]
		l.look(asking, a, b.items)
		a.end = b.err
		select {
		case out <- a:
		case <-taking.Done():
			return
		}
	}
}

// gather adds the batches that wait behind b.
func gather(b *batch, in <-chan *batch, most int) {
	for b.err == nil && len(b.items) < most {
		select {
		case next, more := <-in:
			if !more {
				return
			}
			b.items, b.err = append(b.items, next.items...), next.err
		default:
			return
		}
	}
}

// look fills a with what the checkpoint knows of rows. What is acted on from the beginning on, it may know or not.
func (l *lookups) look(ctx context.Context, a *lookup, items []*item) {
	a.items, a.end = items, nil
	a.number = l.begun.Add(1)
	a.failed = crash.Call(func() error { return l.ask(ctx, a) })
}

func (l *lookups) ask(ctx context.Context, a *lookup) error {
	n := len(a.items)
	a.known = slices.Grow(a.known[:0], n)[:n]
	if l.ledger == nil {
		for i, it := range a.items {
			a.known[i].Key = it.rec.Key
		}
		return nil
	}
	a.queries, a.found = slices.Grow(a.queries[:0], n)[:n], slices.Grow(a.found[:0], n)[:n]
	a.alike, a.taken = slices.Grow(a.alike[:0], n)[:n], slices.Grow(a.taken[:0], n)[:n]
	for i, it := range a.items {
		q := checkpoint.Query{Key: it.rec.Key, ExternalID: it.rec.ExternalID}
		if l.matches {
			q.LeadID = it.rec.LeadID
		}
		if a.alike[i] = (checkpoint.Likeness{}); l.alikes {
			q.Alike = &a.alike[i]
		}
		a.queries[i] = q
	}
	err := l.ledger.Find(ctx, a.queries, a.known, a.found)
	for i := 0; i < n && err == nil; i++ {
		a.taken[i] = checkpoint.Likeness{}
		if by := a.found[i]; !l.matches && (by == checkpoint.ByExternalID || by == checkpoint.Ambiguous) { // of another row, whose lead is no match
			known := &a.known[i]
			a.taken[i] = checkpoint.Likeness{State: max(known.State, checkpoint.Created), File: known.File, Line: known.Line}
			*known = checkpoint.Entry{Key: a.queries[i].Key, Content: known.Content[:0]}
		}
	}
	return err
}

// open begins a read of one row, which close ends.
func (l *lookups) open(a *lookup, it *item) {
	a.items, a.number = append(a.items[:0], it), l.begun.Add(1)
	l.reading[a.number] = struct{}{}
}

func (l *lookups) close(a *lookup) { delete(l.reading, a.number) }

// caseOf is what a planner decides on for the i-th row of a lookup.
func (l *lookups) caseOf(a *lookup, i int) *Case {
	c, it := &a.row, a.items[i]
	*c = Case{Record: &it.rec, Known: &a.known[i], Run: l.run, it: it, digests: l.digests}
	if l.ledger != nil {
		c.Found, c.Alike, c.Taken, c.MayLack = a.found[i], a.alike[i], a.taken[i], l.info.MayLack(c.Known)
	}
	return c
}

// names are those of the row's lead.
func (l *lookups) names(c *Case) leadNames { return namesOf(c.it, c.Known, l.matches) }

// touch notes that a lane has ended, so that what reads know of its lead that have begun by now is old.
func (l *lookups) touch(names []leadName) {
	for _, n := range names {
		l.touched[n] = l.begun.Load()
	}
}

// stale reports whether a lane under one of these names has ended since a read began.
func (l *lookups) stale(ns *leadNames, a *lookup) bool {
	for _, n := range ns.all() {
		if begun, is := l.touched[n]; is && begun >= a.number {
			return true
		}
	}
	return false
}

// turn forgets what had ended before the read of a batch, which is the one that is decided about from now on, and before
// those of single rows.
func (l *lookups) turn(a *lookup) {
	oldest := a.number
	for number := range l.reading {
		oldest = min(oldest, number)
	}
	maps.DeleteFunc(l.touched, func(_ leadName, begun int64) bool { return begun < oldest })
}
