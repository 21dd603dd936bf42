package bolt

import (
	"errors"

	"leadferry/checkpoint"
)

// What updates left in an entry is a byte that says which parts follow.
const (
	isUnsettled = 1 << iota
	isRefused
	isSynced
	isConfirmed
	isSeen
	isKept
)

func updateFlags(e *checkpoint.Entry) (flags byte) {
	set := func(flag byte, on bool) {
		if on {
			flags |= flag
		}
	}
	set(isUnsettled, e.Unsettled != "")
	set(isRefused, e.Refused != checkpoint.Digest{})
	set(isSynced, e.Synced)
	set(isConfirmed, !e.Confirmed.IsZero())
	set(isSeen, e.Seen != checkpoint.Sight{})
	set(isKept, e.Seen.Kept)
	return flags
}

func (w *words) appendUpdate(b []byte, e *checkpoint.Entry) []byte {
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
	if flags&isSeen != 0 {
		b = w.appendWord(appendStatus(appendTime(b, e.Seen.At), e.Seen.Status), e.Seen.Organization)
	}
	if flags&isKept != 0 {
		b = appendStatus(b, e.Seen.Against)
	}
	return b
}

func (r *reader) update(e *checkpoint.Entry, texts []string) {
	flags := r.byte()
	if flags&isUnsettled != 0 {
		e.Unsettled, e.Sought = r.word(texts), r.status()
	}
	if flags&isRefused != 0 {
		copy(e.Refused[:], r.next(uint64(len(e.Refused))))
	}
	e.Synced = flags&isSynced != 0
	if flags&isConfirmed != 0 {
		e.Confirmed = r.time()
	}
	if flags&isSeen != 0 {
		e.Seen = checkpoint.Sight{At: r.time(), Status: r.status(), Organization: r.word(texts)}
	}
	if flags&isKept != 0 {
		e.Seen.Kept, e.Seen.Against = true, r.status()
	}
}

func (w *writing) mark(e *checkpoint.Entry) (checkpoint.Entry, error) {
	if !checkpoint.ValidKey(e.Key) {
		return *e, checkpoint.ErrKey
	}
	from, err := w.state(e.Key)
	if err != nil {
		return *e, err
	}
	old, t, err := w.known(e.Key)
	lead := from.HasLead()
	switch {
	case err != nil:
		return *e, err
	case from == checkpoint.Forgotten:
		return *e, checkpoint.ErrBlocked
	case lead && old.LeadID == e.LeadID:
		old.Unsettled, old.Sought, old.Seen = e.Unsettled, e.Sought, e.Seen
		return old, w.putEntry(&old, t, false)
	case from == checkpoint.InDoubt || lead && old.LeadID != "" || e.LeadID == "":
		return *e, checkpoint.ErrKnown
	}
	return w.takeOver(e, &old, from)
}

// takeOver makes a lead that only the input knew the lead of its key.
func (w *writing) takeOver(e, old *checkpoint.Entry, from checkpoint.State) (checkpoint.Entry, error) {
	owner, err := w.owner(e.LeadID)
	if err != nil || owner != "" {
		return *e, errors.Join(err, takenBy(owner))
	}
	taken := *e
	taken.State = checkpoint.Created
	if from.HasLead() { // its lead ID alone was not known
		taken = old.Completed(e)
		taken.Unsettled, taken.Sought, taken.Seen = e.Unsettled, e.Sought, e.Seen
	}
	taken.Updated = w.now
	err = w.conclude(&taken, from, checkpoint.Adopted)
	return taken, err
}

func takenBy(owner string) error {
	if owner == "" {
		return nil
	}
	return checkpoint.ErrTaken
}
