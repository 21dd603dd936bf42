package importer

import (
	"context"
	"maps"

	"leadferry/checkpoint"
)

// lookups asks the checkpoint what it knows of rows: of a batch in one read, while the batch before it is planned, and of
// a row once more where the run has acted on its lead since.
type lookups struct {
	ledger  *checkpoint.Ledger // nil: nothing is known of any row
	info    checkpoint.Info    // of the beginning: what an incomplete checkpoint lacks does not come back
	matches bool               // rows find their lead by its IDs, too
	alikes  bool               // keys that look like the row's matter
	run     string
	digests *digester

	batch, next, again lookup
	begun              int              // reads of batches
	touched            map[leadName]int // by leads that were acted on since the batch's read began: reads that had begun then
}

// lookup is what the checkpoint knows of some rows, each by its place among them.
type lookup struct {
	queries []checkpoint.Query
	known   []checkpoint.Entry
	found   []checkpoint.Match
	alike   []checkpoint.Likeness
	row     Case // room for the one that is asked about
}

// begin says that the next batch is about to be read: what is acted on from now on, it may know or not.
func (l *lookups) begin() { l.begun++ }

// read looks the next batch up. It may go on beside all else until it is turned to.
func (l *lookups) read(ctx context.Context, items []*item) error { return l.ask(ctx, &l.next, items) }

// turn makes the batch that was read last the one that is planned.
func (l *lookups) turn() {
	l.batch, l.next = l.next, l.batch
	maps.DeleteFunc(l.touched, func(_ leadName, begun int) bool { return begun < l.begun })
}

func (l *lookups) ask(ctx context.Context, a *lookup, items []*item) error {
	n := len(items)
	a.known = grow(a.known, n)
	if l.ledger == nil {
		for i, it := range items {
			a.known[i].Key = it.rec.Key
		}
		return nil
	}
	a.queries, a.found, a.alike = grow(a.queries, n), grow(a.found, n), grow(a.alike, n)
	for i, it := range items {
		q := checkpoint.Query{Key: it.rec.Key}
		if l.matches {
			q.LeadID, q.ExternalID = it.rec.LeadID, it.rec.ExternalID
		}
		if a.alike[i] = (checkpoint.Likeness{}); l.alikes {
			q.Alike = &a.alike[i]
		}
		a.queries[i] = q
	}
	return l.ledger.Find(ctx, a.queries, a.known, a.found)
}

func grow[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

// remembered is what the checkpoint knew of the batch's i-th row when the batch was read.
func (l *lookups) remembered(it *item, i int) *Case { return l.caseOf(&l.batch, it, i) }

// fresh is what the checkpoint knows of a row now.
func (l *lookups) fresh(ctx context.Context, it *item) (*Case, error) {
	err := l.ask(ctx, &l.again, []*item{it})
	return l.caseOf(&l.again, it, 0), err
}

func (l *lookups) caseOf(a *lookup, it *item, i int) *Case {
	c := &a.row
	*c = Case{Record: &it.rec, Known: &a.known[i], Run: l.run, it: it, digests: l.digests}
	if l.ledger != nil {
		c.Found, c.Alike, c.MayLack = a.found[i], a.alike[i], l.info.MayLack(c.Known)
	}
	return c
}

// names are those of the row's lead.
func (l *lookups) names(c *Case) leadNames { return namesOf(c.it, c.Known, l.matches) }

// touch notes that the run acts on a lead, so that what a batch knows of it is old.
func (l *lookups) touch(ns *leadNames) {
	for _, n := range ns.all() {
		l.touched[n] = l.begun
	}
}

func (l *lookups) isTouched(ns *leadNames) bool {
	if len(l.touched) == 0 {
		return false
	}
	for _, n := range ns.all() {
		if _, ok := l.touched[n]; ok {
			return true
		}
	}
	return false
}
