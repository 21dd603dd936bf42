package checkpoint

import "errors"

// op is one queued change.
type op struct {
	kind  opKind
	entry Entry               // what is claimed, settled or marked; of a withdrawal only the key
	note  *note               // noteOp; its key is the entry's
	alone func(*ledger) error // aloneOp: undone when it returns an error

	done    func(error)
	settled func(Entry, error)
	err     error
}

type opKind uint8

const (
	claimOp opKind = iota
	withdrawOp
	settleOp
	markOp
	noteOp
	aloneOp // in a commit of its own
)

// apply makes the change inside a transaction. Its own refusal stays with it;
// what it returns is an error of the file.
func (o *op) apply(l *ledger) error {
	var err error
	switch o.kind {
	case claimOp:
		err = l.claim(&o.entry)
	case settleOp:
		o.entry, err = l.settle(&o.entry)
	case markOp:
		o.entry, err = l.mark(&o.entry)
	case noteOp:
		err = l.putNote([]byte(o.entry.Key), o.note)
	default:
		err = l.withdraw(o.entry.Key)
	}
	if errors.Is(err, ErrKey) || errors.Is(err, ErrKnown) || errors.Is(err, ErrBlocked) || errors.Is(err, ErrTaken) || errors.Is(err, ErrState) {
		o.err, err = err, nil
	}
	return err
}

func (o *op) finish(err error) {
	if err == nil {
		err = o.err
	}
	switch {
	case o.settled != nil:
		o.settled(o.entry, err)
	case o.done != nil:
		o.done(err)
	}
}

// Claim writes an intent, once there is a slot for it (see [Options]): the create may
// leave once done reports success. The writer calls done after the commit, in the order
// of the claims; done must not block, and nothing else may be asked of the key before
// it. Errors: ErrKey, ErrKnown, ErrBlocked, ErrClosed, or an error of the file.
func (d *DB) Claim(in Intent, done func(error)) {
	d.submit(op{kind: claimOp, entry: in.entry(), done: done})
}

// Withdraw removes the intent of a create that is known not to have been
// applied. An intent that the claim replaced comes back. done is as in Claim.
func (d *DB) Withdraw(key string, done func(error)) {
	d.submit(op{kind: withdrawOp, entry: Entry{Key: key}, done: done})
}

// Settle writes an outcome and removes the intent. With state InDoubt the intent
// stays and takes over LeadID, Code and Reason. A lead ID that stands under
// another key leaves this one in doubt with ReasonLeadTaken. done is as in Claim
// and gets what now stands. Errors: ErrKey, ErrState, ErrBlocked, or an error of the
// file.
func (d *DB) Settle(e Entry, done func(stored Entry, err error)) {
	d.submit(op{kind: settleOp, entry: e, settled: done})
}

// Hurry says that a worker is idle or no job can begin: what has gathered
// is committed at once, or else the next change. Otherwise changes gather for
// up to 4 ms.
func (d *DB) Hurry() {
	d.mu.Lock()
	d.hurry = true
	d.mu.Unlock()
	d.signal()
}

// alone runs f in a commit of its own and waits for it.
func (d *DB) alone(f func(*ledger) error) error {
	result := make(chan error, 1)
	d.submit(op{kind: aloneOp, alone: f, done: func(err error) { result <- err }})
	d.Hurry()
	return <-result
}

func (d *DB) submit(o op) {
	d.mu.Lock()
	if d.closed || d.readOnly {
		d.mu.Unlock()
		if d.readOnly {
			o.finish(ErrReadOnly)
		} else {
			o.finish(ErrClosed)
		}
		return
	}
	d.queue = append(d.queue, o)
	first := len(d.queue) == 1
	d.mu.Unlock()
	if first {
		d.signal()
	}
}

// signal leaves one token for the writer; one is enough however many changes
// have come since it looked.
func (d *DB) signal() {
	select {
	case d.wake <- struct{}{}:
	default:
	}
}
