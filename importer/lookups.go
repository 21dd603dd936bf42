package importer

import (
	"context"
	"slices"

	"leadferry/checkpoint"
	"leadferry/internal/rowkey"
)

// lookups asks the checkpoint what it knows of rows.
type lookups struct {
	ledger  *checkpoint.Ledger // nil: nothing is known of any row
	info    checkpoint.Info    // of the beginning: what an incomplete checkpoint lacks does not come back
	matches bool               // rows find their lead by its IDs too
	alikes  bool               // look for keys that resemble the row's
	digests *digester
}

func newLookups(r *run) *lookups {
	l := &lookups{ledger: r.ledger, matches: r.matches, alikes: !r.CreateAlikes}
	l.digests = newDigester(checkpoint.NewDigester(nil))
	if r.ledger != nil {
		l.digests, l.info = newDigester(r.ledger.Digests()), r.ledger.Info()
	}
	return l
}

// lookup is a list of rows, and what the checkpoint knows of each.
type lookup struct {
	items   []*item
	queries []checkpoint.Query
	known   []checkpoint.Entry
	found   []checkpoint.Match
	alike   []checkpoint.Likeness
	row     Case // a buffer for the row to decide about
}

// ask fills a with what the checkpoint knows of the rows.
func (l *lookups) ask(ctx context.Context, a *lookup, items []*item) error {
	n := len(items)
	a.items, a.known = items, slices.Grow(a.known[:0], n)[:n]
	if l.ledger == nil {
		for i, it := range items {
			a.known[i].Key = it.rec.Key
		}
		return nil
	}
	a.queries, a.found, a.alike = slices.Grow(a.queries[:0], n)[:n], slices.Grow(a.found[:0],
		n)[:n], slices.Grow(a.alike[:0], n)[:n]
	for i, it := range items {
		q := checkpoint.Query{Key: it.rec.Key, ExternalID: it.rec.ExternalID}
		if l.matches {
			q.LeadID = it.rec.LeadID
		}
		if a.alike[i] = (checkpoint.Likeness{}); l.alikes {
			q.Alike = &a.alike[i]
		}
		a.queries[i] = q
	}
	return l.ledger.Find(ctx, a.queries, a.known, a.found)
}

// caseOf is the Case of the i-th row of a lookup. In an import, a lead that another row made is no match: it has taken
// the row's ExternalID.
func (l *lookups) caseOf(a *lookup, i int) *Case {
	c, it := &a.row, a.items[i]
	*c = Case{it: it, Known: &a.known[i], digests: l.digests}
	if l.ledger == nil {
		return c
	}
	c.Found, c.Alike = a.found[i], a.alike[i]
	if known := c.Known; !l.matches && (c.Found == checkpoint.ByExternalID || c.Found == checkpoint.Ambiguous) {
		c.Taken = checkpoint.Likeness{State: max(known.State, checkpoint.Created), File: known.File, Line: known.Line}
		c.Known = &checkpoint.Entry{Key: it.rec.Key}
	}
	c.MayLack = l.info.MayLack(c.Known)
	return c
}

// leadName is a name of a lead: its folded key (rows with similar keys wait for one another), its ID or its ExternalID.
type leadName struct {
	kind nameKind
	text string
}

type nameKind uint8

const (
	byKey nameKind = iota
	byLeadID
	byExternalID
)

// names are all names of the row's lead: those that are known, and those that the row gives. An earlier row may have
// one of them too.
func (l *lookups) names(c *Case) []leadName {
	rec := &c.it.rec
	names := []leadName{{byKey, rowkey.Fold(c.Known.Key)}}
	if rec.Key != c.Known.Key {
		names = append(names, leadName{byKey, rowkey.Fold(rec.Key)})
	}
	if l.matches && rec.LeadID != "" && rec.LeadID != c.Known.LeadID {
		names = append(names, leadName{byLeadID, rec.LeadID})
	}
	if rec.ExternalID != "" {
		names = append(names, leadName{byExternalID, rec.ExternalID})
	}
	return names
}
