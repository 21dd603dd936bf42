package bolt

import (
	"context"
	"errors"
	"time"

	"leadferry/checkpoint"
)

// statuses are the leads by the status last confirmed.
func (d *Store) statuses() map[string]int {
	counts := make(map[string]int)
	for i, n := range d.tally.Load().statuses {
		name := "unknown"
		if i < len(checkpoint.Statuses) {
			name = checkpoint.Statuses[i]
		}
		if n > 0 {
			counts[name] = int(n)
		}
	}
	return counts
}

// Status returns an account of what is known now.
func (d *Store) Status() (checkpoint.Status, error) {
	return checkpoint.StatusOf(context.Background(), d, d.statuses())
}

// patienceOfReaders is how long to wait until a run that has just begun is in the book.
const patienceOfReaders = 2 * time.Second

// ReadStatus returns what the checkpoint at path knows; while a run goes on, what the book of ledgers says of that
// run. Nothing is written. Errors are as those of [Open].
func ReadStatus(path string, t checkpoint.Target, o Options) (s checkpoint.Status, err error) {
	wait := max(o.Wait, patienceOfReaders)
	o.ReadOnly, o.Wait = true, 0
	for end := time.Now().Add(wait); ; time.Sleep(pollEvery) {
		d, err := Open(path, t, o)
		if err == nil {
			s, err = d.Status()
			return s, errors.Join(err, d.Close())
		}
		if !errors.Is(err, checkpoint.ErrLocked) {
			return s, err
		}
		if w, goesOn := o.Witnesses.Holder(resolved(path)); goesOn {
			if differ := (&header{Target: w.Target}).differences(t); differ != "" && t != (checkpoint.Target{}) {
				return s, refuse(path, checkpoint.ErrTarget, "belongs to another target: its "+differ, otherTarget)
			}
			return checkpoint.Status{Path: w.Place, Target: w.Target, Holder: &w}, nil
		}
		if time.Now().After(end) {
			return s, err
		}
	}
}
