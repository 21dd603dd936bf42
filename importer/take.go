package importer

import "leadferry/checkpoint"

// load takes a batch and looks up, in one read, what the checkpoint knows of it.
func (e *engine) load(b *batch) {
	e.batch, e.at = b, 0
	clear(e.touched)
	if e.ledger == nil {
		return
	}
	e.keys = e.keys[:0]
	for _, it := range b.items {
		e.keys = append(e.keys, it.rec.Key)
	}
	e.known = grow(e.known, len(e.keys))
	if err := e.ledger.Lookup(e.keys, e.known); err != nil {
		e.stop(ledgerFailed(err))
	}
}

func grow(s []checkpoint.Entry, n int) []checkpoint.Entry {
	if cap(s) < n {
		return make([]checkpoint.Entry, n)
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
	if it.fault != "" {
		e.accept()
		e.finish(it, &result{outcome: Invalid, text: it.fault})
		return true
	}
	if l := e.lanes[it.rec.Key]; l != nil {
		if e.parked >= maxParked {
			return false
		}
		e.accept()
		l.waiting = append(l.waiting, it)
		e.parked++
		return true
	}
	known, ok := e.lookup(it, e.at)
	if !ok || !e.plan(it, known, nil) {
		return false
	}
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
	if e.repeats != nil && it.fault == "" {
		e.repeats.add(it.rec.Key, it.input, it.row.Line)
	}
}

// advanceTurn goes on with a row that waited for its lane.
func (e *engine) advanceTurn() bool {
	it := e.turn[0]
	known, ok := e.fresh(it.rec.Key)
	if !ok || !e.plan(it, known, e.lanes[it.rec.Key]) {
		return false
	}
	e.turn = e.turn[1:]
	return true
}

// lookup is what the checkpoint knew when the batch came, or knows now where the
// run itself has acted on the key since.
func (e *engine) lookup(it *item, i int) (*checkpoint.Entry, bool) {
	if e.ledger == nil {
		return &checkpoint.Entry{}, true
	}
	if _, ok := e.touched[it.rec.Key]; ok {
		return e.fresh(it.rec.Key)
	}
	return &e.known[i], true
}

func (e *engine) fresh(key string) (*checkpoint.Entry, bool) {
	e.scratch = grow(e.scratch, 1)
	if err := e.ledger.Lookup([]string{key}, e.scratch); err != nil {
		e.stop(ledgerFailed(err))
		return nil, false
	}
	return &e.scratch[0], true
}
