package checkpoint

import "errors"

// What updates left in an entry is a byte that says which parts follow.
const (
	isUnsettled = 1 << iota
	isRefused
	isSynced
	isConfirmed
)

func updateFlags(e *Entry) (flags byte) {
	set := func(flag byte, on bool) {
		if on {
			flags |= flag
		}
	}
	set(isUnsettled, e.Unsettled != "")
	set(isRefused, e.Refused != Digest{})
	set(isSynced, e.Synced)
	set(isConfirmed, !e.Confirmed.IsZero())
	return flags
}

func (w *words) appendUpdate(b []byte, e *Entry) []byte {
	flags := updateFlags(e)
	b = append(b, flags)
	if flags&isUnsettled != 0 {
		b = appendStatus(w.appendWord(b, e.Unsettled), e.Sought)
	}
	if flags&isRefused != 0 {
		b = append(b, e.Refused[:]...)
	}
	if flags&isConfirmed != 0 {
		b = appendTime(b, e.Confirmed)
	}
	return b
}

func (r *reader) update(e *Entry, texts []string) {
	flags := r.byte()
	if flags&isUnsettled != 0 {
		e.Unsettled, e.Sought = r.word(texts), r.status()
	}
	if flags&isRefused != 0 {
		copy(e.Refused[:], r.take(uint64(len(e.Refused))))
	}
	e.Synced = flags&isSynced != 0
	if flags&isConfirmed != 0 {
		e.Confirmed = r.time()
	}
}

// Mark notes durably that an update of a lead is about to be sent, by e.Unsettled, or
// that none left after all, by an empty one. Nothing else of a lead that is known
// changes, and its history gains no event. A lead that is not known is taken over as e
// says, under a key that has no other lead. done is as in Settle. Errors: ErrKey,
// ErrBlocked, ErrKnown for a key with another lead or in doubt, ErrTaken for a lead of
// another key, or an error of the file.
func (d *DB) Mark(e Entry, done func(stored Entry, err error)) {
	d.submit(op{kind: markOp, entry: e, settled: done})
}

func (l *ledger) mark(e *Entry) (Entry, error) {
	if !validKey(e.Key) {
		return *e, ErrKey
	}
	from, err := l.state(e.Key)
	if err != nil {
		return *e, err
	}
	old, t, err := l.known(e.Key)
	lead := from.HasLead()
	switch {
	case err != nil:
		return *e, err
	case from == Forgotten:
		return *e, ErrBlocked
	case lead && old.LeadID == e.LeadID:
		old.Unsettled, old.Sought = e.Unsettled, e.Sought
		return old, l.putEntry(&old, t, false)
	case from == InDoubt || lead && old.LeadID != "" || e.LeadID == "":
		return *e, ErrKnown
	}
	return l.takeOver(e, &old, from)
}

// takeOver makes a lead that only the input knew the lead of its key.
func (l *ledger) takeOver(e, old *Entry, from State) (Entry, error) {
	owner, err := l.owner(e.LeadID)
	if err != nil || owner != "" {
		return *e, errors.Join(err, takenBy(owner))
	}
	taken := *e
	taken.State = Created
	if from.HasLead() { // its lead ID alone was not known
		taken = completed(*old, e)
		taken.Unsettled, taken.Sought = e.Unsettled, e.Sought
	}
	taken.Updated = l.now
	err = l.conclude(&taken, from, Adopted)
	return taken, err
}

func takenBy(owner string) error {
	if owner == "" {
		return nil
	}
	return ErrTaken
}
