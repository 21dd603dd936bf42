package importer

import "leadferry/checkpoint"

// load takes a batch and looks up, in one read, what the checkpoint knows of it.
func (e *engine) load(b *batch) {
	e.batch, e.at = b, 0
	clear(e.touched)
	if e.ledger == nil {
		return
	}
	n := len(b.items)
	e.queries, e.known, e.found, e.alike = grow(e.queries, n), grow(e.known, n), grow(e.found, n), grow(e.alike, n)
	for i, it := range b.items {
		e.queries[i] = e.queryOf(it, &e.alike[i])
	}
	if err := e.ledger.Find(e.queries, e.known, e.found); err != nil {
		e.stop(ledgerFailed(err))
	}
}

// queryOf asks for the lead of a row: an import by the row's key alone.
func (e *engine) queryOf(it *item, alike *checkpoint.Likeness) checkpoint.Query {
	q := checkpoint.Query{Key: it.rec.Key}
	if e.matches {
		q.LeadID, q.ExternalID = it.rec.LeadID, it.rec.ExternalID
	}
	if *alike = (checkpoint.Likeness{}); !e.CreateAlikes {
		q.Alike = alike
	}
	return q
}

func grow[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

// advance takes one row a step further and reports false when none can go on now.
func (e *engine) advance() bool {
	if e.stopped != nil {
		return false
	}
	if len(e.turn) > 0 {
		return e.advanceTurn()
	}
	if e.batch == nil {
		return e.receive()
	}
	if e.at == len(e.batch.items) {
		if e.batch.err != nil {
			e.lost = inputEnded(e.batch.err) // no more rows come; those before it have their turn
		}
		e.batch = nil
		return true
	}
	it := e.batch.items[e.at]
	if r := it.left(); r != nil {
		e.accept()
		e.finish(it, r)
		return true
	}
	return e.approach(it)
}

// approach takes a row to its lead: behind the rows that came before it, or into its
// plan.
func (e *engine) approach(it *item) bool {
	c := e.remembered(it, e.at)
	ns := e.namesOf(it, c.Known)
	l := e.leadQueue(&ns)
	if l == nil && e.isTouched(&ns) {
		var ok bool
		if c, ok = e.fresh(it); !ok {
			return false
		}
		ns = e.namesOf(it, c.Known)
		l = e.leadQueue(&ns)
	}
	if l == nil {
		return e.plan(&c, &ns, false)
	}
	if e.full() {
		return false
	}
	e.accept()
	e.park(it, l, &ns)
	return true
}

// receive takes a batch that is there already.
func (e *engine) receive() bool {
	if e.ended {
		return false
	}
	select {
	case b, ok := <-e.batches:
		if e.ended = !ok; ok {
			e.load(b)
		}
		return ok
	default:
		return false
	}
}

// accept counts the row as read: from here on it must end in an outcome.
func (e *engine) accept() {
	it := e.batch.items[e.at]
	e.at++
	e.tally.read(it.input)
	switch {
	case e.rehearsal != nil:
		e.rehearsal.read(it)
	case !e.warned && it.fault == nil && isAddress(it.rec.Key):
		e.warned = true
		e.Log.Warn(addressWarning, "file", e.rows.names[it.input], "line", it.row.Line)
	}
}

// advanceTurn goes on with a row that waited for its queue.
func (e *engine) advanceTurn() bool {
	it := e.turn[0]
	c, ok := e.fresh(it)
	if !ok {
		return false
	}
	ns := e.namesOf(it, c.Known)
	if !e.rejoin(it, &ns) && !e.plan(&c, &ns, true) {
		return false
	}
	e.turn = e.turn[1:]
	return true
}

// remembered is what the checkpoint knew when the batch came.
func (e *engine) remembered(it *item, i int) Case {
	if e.ledger == nil {
		e.scratch.entry[0] = checkpoint.Entry{Key: it.rec.Key}
		return e.caseOf(it, &e.scratch.entry[0], checkpoint.NoMatch, checkpoint.Likeness{})
	}
	return e.caseOf(it, &e.known[i], e.found[i], e.alike[i])
}

// fresh is what the checkpoint knows now, for the run itself has acted on the lead.
func (e *engine) fresh(it *item) (Case, bool) {
	s := &e.scratch
	s.query[0] = e.queryOf(it, &s.alike)
	err := e.ledger.Find(s.query[:], s.entry[:], s.found[:])
	if err != nil {
		e.stop(ledgerFailed(err))
	}
	return e.caseOf(it, &s.entry[0], s.found[0], s.alike), err == nil
}

func (e *engine) caseOf(it *item, known *checkpoint.Entry, how checkpoint.Match, alike checkpoint.Likeness) Case {
	return Case{
		Record: &it.rec, Known: known, Found: how, Alike: alike, Run: e.RunID, it: it, digests: e.digests,
		Lost: e.ledger != nil && e.ledger.MayLack(known),
	}
}
