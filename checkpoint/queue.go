package checkpoint

import "errors"

// op is one queued change. Exactly one of the kinds below is set.
type op struct {
	key      string
	claim    *Intent
	withdraw bool
	settle   *Entry
	mark     *Entry
	alone    func(*ledger) error // in a commit of its own, undone when it returns an error

	done    func(error)
	settled func(Entry, error)
	err     error
}

// apply makes the change inside a transaction. Its own refusal stays with it;
// what it returns is an error of the file.
func (o *op) apply(l *ledger) error {
	var err error
	switch {
	case o.claim != nil:
		err = l.claim(o.claim)
	case o.settle != nil:
		*o.settle, err = l.settle(o.settle)
	case o.mark != nil:
		*o.mark, err = l.mark(o.mark)
	default:
		err = l.withdraw(o.key)
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
	case o.mark != nil:
		o.settled(*o.mark, err)
	case o.settled != nil:
		o.settled(*o.settle, err)
	case o.done != nil:
		o.done(err)
	}
}

// Claim writes an intent: the create may leave once done reports success. The
// writer calls done after the commit, in the order of the calls; done must not
// block. Errors: ErrKey, ErrKnown, ErrBlocked, or an error of the file.
func (d *DB) Claim(in Intent, done func(error)) {
	d.submit(op{key: in.Key, claim: &in, done: done})
}

// Withdraw removes the intent of a create that is known not to have been
// applied. An intent that the claim replaced comes back. done is as in Claim.
func (d *DB) Withdraw(key string, done func(error)) {
	d.submit(op{key: key, withdraw: true, done: done})
}

// Settle writes an outcome and removes the intent. With state InDoubt the intent
// stays and takes over LeadID, Code and Reason. A lead ID that stands under
// another key leaves this one in doubt with ReasonLeadTaken. done is as in Claim
// and gets what now stands. Errors: ErrKey, ErrState, ErrBlocked, or an error of the
// file.
func (d *DB) Settle(e Entry, done func(stored Entry, err error)) {
	d.submit(op{key: e.Key, settle: &e, settled: done})
}

// Hurry says that a worker is idle or the slots are used up: what has gathered
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
	d.submit(op{alone: f, done: func(err error) { result <- err }})
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
