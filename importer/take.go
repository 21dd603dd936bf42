package importer

import "leadferry/checkpoint"

// load takes a batch and looks up, in one read, what the checkpoint knows of it.
func (e *engine) load(b *batch) {
	e.batch, e.at = b, 0
	clear(e.touched)
	if e.ledger == nil {
		return
	}
	e.known, e.found = grow(e.known, len(b.items)), grow(e.found, len(b.items))
	if err := e.lookUp(b.items); err != nil {
		e.stop(ledgerFailed(err))
	}
}

func (e *engine) lookUp(items []*item) error {
	if e.matches {
		e.queries = e.queries[:0]
		for _, it := range items {
			e.queries = append(e.queries, queryOf(it))
		}
		return e.ledger.Find(e.queries, e.known, e.found)
	}
	e.keys = e.keys[:0]
	for i, it := range items {
		e.keys = append(e.keys, it.rec.Key)
		e.found[i] = checkpoint.ByKey
	}
	return e.ledger.Lookup(e.keys, e.known)
}

func queryOf(it *item) checkpoint.Query {
	return checkpoint.Query{Key: it.rec.Key, LeadID: it.rec.LeadID, ExternalID: it.rec.ExternalID}
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
			e.stop(inputLost(e.batch.err))
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
	known, how := e.remembered(it, e.at)
	ns := e.namesOf(it, known)
	l := e.lane(&ns)
	if l == nil && e.isTouched(&ns) {
		var ok bool
		if known, how, ok = e.fresh(it); !ok {
			return false
		}
		ns = e.namesOf(it, known)
		l = e.lane(&ns)
	}
	if l == nil {
		return e.plan(it, known, how, &ns, false)
	}
	if e.parked >= maxParked {
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

// advanceTurn goes on with a row that waited for its lane.
func (e *engine) advanceTurn() bool {
	it := e.turn[0]
	known, how, ok := e.fresh(it)
	if !ok {
		return false
	}
	ns := e.namesOf(it, known)
	if !e.rejoin(it, &ns) && !e.plan(it, known, how, &ns, true) {
		return false
	}
	e.turn = e.turn[1:]
	return true
}

// remembered is what the checkpoint knew when the batch came.
func (e *engine) remembered(it *item, i int) (*checkpoint.Entry, checkpoint.Match) {
	if e.ledger == nil {
		e.scratch.entry[0] = checkpoint.Entry{Key: it.rec.Key}
		return &e.scratch.entry[0], checkpoint.NoMatch
	}
	return &e.known[i], e.found[i]
}

// fresh is what the checkpoint knows now, for the run itself has acted on the lead.
func (e *engine) fresh(it *item) (*checkpoint.Entry, checkpoint.Match, bool) {
	s := &e.scratch
	s.key[0], s.query[0], s.found[0] = it.rec.Key, queryOf(it), checkpoint.ByKey
	var err error
	if e.matches {
		err = e.ledger.Find(s.query[:], s.entry[:], s.found[:])
	} else {
		err = e.ledger.Lookup(s.key[:], s.entry[:])
	}
	if err != nil {
		e.stop(ledgerFailed(err))
	}
	return &s.entry[0], s.found[0], err == nil
}
