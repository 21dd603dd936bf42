package checkpoint

import (
	"fmt"
	"time"
)

// Decision is what a person found out about a key in doubt: the lead has LeadID;
// or it exists but its ID is not known; or, with neither, it was not created.
type Decision struct {
	Key, LeadID string
	Exists      bool
	Sent        time.Time // of the send that the person looked for, where that is known; the second counts
	Run         string    // that sent it, the same
}

// Contradiction is evidence that came after a decision and does not fit it.
type Contradiction struct {
	Decision
	Decided, Found time.Time
	Other          string // the other key that the lead ID was given to, or the lead that was made after all, or nothing
	Text           string // what was found, without values
}

// ResolveResult counts what became of decisions.
type ResolveResult struct {
	Settled   int // were in doubt
	Corrected int // had been decided otherwise
	Before    int // had been decided so already; nothing was changed
}

// AdoptResult counts what became of the entries of a list.
type AdoptResult struct {
	Leads     int // taken over
	Corrected int // of these, had another lead by the word of people
	InDoubt   int // taken over as in doubt
	Known     int // known already, as the list says or better; left as they are
	Rejected  int // left out: refused rows have no lead
	Forgotten int // left out: their keys were forgotten

	Unspecified int // taken over with a status that the specification does not name
}

// ForgetResult counts forgotten keys by what was known of them.
type ForgetResult struct {
	Leads    int // had a lead
	InDoubt  int // nobody will be reminded of them any more
	Rejected int
	Unknown  int
	Already  int // were forgotten before
}

// Count counts a forgotten key of which this was known.
func (r *ForgetResult) Count(known State) {
	switch known {
	case Created, Partial:
		r.Leads++
	case InDoubt:
		r.InDoubt++
	case Rejected:
		r.Rejected++
	case Forgotten:
		r.Already++
	default:
		r.Unknown++
	}
}

// ListError says why one entry of a list, and with it the whole list, is refused.
type ListError struct {
	Index      int // in the list, from 0
	Key        string
	Text, Hint string
}

// Error names the entry by its place in the list, from 1.
func (e *ListError) Error() string { return fmt.Sprintf("entry %d: %s", e.Index+1, e.Text) }

// At is a refusal with the place of its entry, and the entry's key.
func (e *ListError) At(index int, key string) error {
	e.Index, e.Key = index, key
	return e
}
