package checkpoint

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	bolt "go.etcd.io/bbolt"

	panics "leadferry/internal/crash"
	"leadferry/internal/failpoint"
)

// patience is how long the writer lets changes gather when nobody hurries it.
const patience = 4 * time.Millisecond

// writer is the one goroutine that changes the file.
type writer struct {
	d      *DB
	ledger ledger
	order  order
	sorted []*op
	spare  []op // room of the last batch, for the next but one
	slots  slots
}

func newWriter(d *DB) *writer {
	return &writer{d: d, slots: newSlots(d.slots), ledger: ledger{digests: d.digests, words: d.words, unflushed: d.unflushed, recent: d.recent, vacant: make(map[string]bool)}}
}

// run ends when the checkpoint is closed and the queue is empty; Close waits
// for it.
func (w *writer) run() {
	defer close(w.d.idle)
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for gathering := false; ; {
		some, now, closed := w.d.look()
		if w.slots.next() {
			some, now = true, true
		}
		switch {
		case some && !now && !gathering:
			timer.Reset(patience)
			gathering = true
		case some && !now:
			select {
			case <-w.d.wake:
				continue
			case <-timer.C:
			}
			fallthrough
		case some:
			w.drain()
			gathering = false
		case closed:
			w.slots.refuse(ErrClosed)
			w.finish()
			return
		default:
			<-w.d.wake
		}
	}
}

// finish writes what still waits to be written. If that fails, so does Close.
func (w *writer) finish() {
	w.d.leaving.Store(true)
	for w.ledger.unflushed.size() > 0 {
		last := op{kind: aloneOp, alone: func(l *ledger) error { return l.unflushed.write(l.leads, lastStep) }}
		if w.commit([]op{last}) != nil {
			return
		}
	}
}

// look says whether changes wait and whether they are wanted now.
func (d *DB) look() (some, now, closed bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.queue) > 0, d.hurry || d.closed || d.failed() != nil, d.closed
}

// drain commits what has gathered and tells everybody.
func (w *writer) drain() {
	w.d.mu.Lock()
	batch, hurried := w.d.queue, w.d.hurry
	w.d.queue, w.d.hurry = w.spare, false
	w.d.mu.Unlock()
	group := w.slots.admit(batch)
	if len(group) == 0 && hurried {
		w.d.Hurry() // for the change that frees a slot
	}
	for rest := group; len(rest) > 0; {
		n := 1
		for rest[0].kind != aloneOp && n < len(rest) && rest[n].kind != aloneOp {
			n++
		}
		err := panics.Call(func() error { return w.commit(rest[:n]) })
		if fault := (*panics.Error)(nil); errors.As(err, &fault) {
			err = w.d.fail(err)
		}
		for i := range rest[:n] {
			rest[i].finish(err)
		}
		rest = rest[n:]
	}
	w.slots.landed(group)
	if err := w.d.failed(); err != nil {
		w.slots.refuse(err)
	}
	clear(batch)
	w.spare = batch[:0]
}

// commit makes all changes of a group durable once the file is checked, or fails the checkpoint: a commit
// that failed may still be there, and the next one may succeed by chance.
func (w *writer) commit(group []op) error {
	<-w.d.checked
	if err := w.d.failed(); err != nil {
		return err
	}
	failpoint.At("commit " + kindOf(group))
	err := guard(func() error {
		return w.d.bolt.Update(func(tx *bolt.Tx) error {
			if err := w.ledger.begin(tx, *w.d.tally.Load(), w.d.now()); err != nil {
				return err
			}
			if err := w.apply(group); err != nil {
				return err
			}
			if err := w.ledger.end(tx); err != nil {
				return err
			}
			w.ledger.recent.announce(tx.ID())
			return nil
		})
	})
	if refused := (*ListError)(nil); errors.As(err, &refused) {
		return err
	}
	if err != nil {
		return w.d.fail(fmt.Errorf("write checkpoint %s: %w", w.d.path, err))
	}
	if group[0].kind != aloneOp {
		w.d.claimed.Store(true)
	}
	w.ledger.unflushed.landed()
	w.ledger.recent.land()
	failpoint.At("durable " + kindOf(group))
	t := w.ledger.tally
	w.d.tally.Store(&t)
	if err := w.d.stamp(false); err != nil {
		// These changes are durable, so they may be reported; nothing may follow.
		_ = w.d.fail(err)
	}
	return nil
}

// kindOf names what a group holds, for the points at which a test kills.
func kindOf(group []op) string {
	var holds [aloneOp + 1]bool
	for i := range group {
		holds[group[i].kind] = true
	}
	switch {
	case holds[claimOp]:
		return "intent"
	case holds[settleOp]:
		return "outcome"
	case holds[markOp]:
		return "mark"
	}
	return "other"
}

// apply makes the changes sorted by key, which bbolt likes best. Changes of one
// key keep their order.
func (w *writer) apply(group []op) error {
	if group[0].kind == aloneOp {
		return group[0].alone(&w.ledger)
	}
	w.sorted = w.sorted[:0]
	for i := range group {
		w.sorted = append(w.sorted, &group[i])
	}
	slices.SortStableFunc(w.sorted, func(a, b *op) int { return cmp.Compare(a.entry.Key, b.entry.Key) })
	if w.order.ascending(w.sorted) {
		w.ledger.entries.FillPercent = 0.95
	} else {
		w.ledger.unsorted = w.ledger.total() >= w.ledger.recent.from
	}
	for _, o := range w.sorted {
		if err := o.apply(&w.ledger); err != nil {
			return err
		}
	}
	return nil
}

// order notices that keys come in ascending order. Pages are then filled nearly
// to the brim, which halves the file; for keys in random order that would split
// pages all the time.
type order struct {
	fronts [4]string // the greatest key as of the last commits: rows overtake one another
	turn   int
}

// ascending reports whether most entries that sorted writes are greater than all keys
// that were there a few commits ago. It is false when it writes none.
func (o *order) ascending(sorted []*op) bool {
	front := o.fronts[(o.turn+1)%len(o.fronts)]
	greatest := o.fronts[o.turn]
	settled, ahead := 0, 0
	for _, op := range sorted {
		if op.kind != settleOp && op.kind != markOp {
			continue
		}
		settled++
		if op.entry.Key > front {
			ahead++
		}
		greatest = max(greatest, op.entry.Key)
	}
	o.turn = (o.turn + 1) % len(o.fronts)
	o.fronts[o.turn] = greatest
	return settled > 0 && 2*ahead > settled
}
