package checkpoint

import (
	"errors"
	"fmt"
	"iter"
	"strings"
)

// List is a list of entries that is too long for the memory: the Store reads it several times, and each
// time it must yield the same entries, until it yields an error.
type List = iter.Seq2[Entry, error]

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

// ListFailure is an error that a list yielded, or of one that changed meanwhile.
type ListFailure struct{ Err error }

// Error says what the list yielded.
func (e *ListFailure) Error() string { return e.Err.Error() }

// Unwrap returns what the list yielded.
func (e *ListFailure) Unwrap() error { return e.Err }

// IsOfList reports whether an error is of a list that was handed over, and not of the Store: nothing was changed, and
// the Store goes on.
func IsOfList(err error) bool {
	return errors.As(err, new(*ListError)) || errors.As(err, new(*ListFailure))
}

// mostText is how many bytes the texts of an entry of a list may have together.
const mostText = 1 << 20

// leadIDHint says what a lead ID is.
const leadIDHint = "a lead ID has letters, digits, dots, dashes and underscores, 128 at most"

// ValidKey says whether a key can be kept.
func ValidKey(key string) bool { return len(key) > 0 && len(key) <= MaxKey }

// validLeadID says whether an ID can be one of a lead: it becomes part of a path.
func validLeadID(id string) bool {
	return len(id) <= 128 && strings.Trim(id, ".") != "" && !strings.ContainsFunc(id, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && r != '.' && r != '_' && r != '-'
	})
}

// Unfit says what is wrong with an entry of a list by itself, or nothing.
func (e *Entry) Unfit() (text, hint string) {
	switch {
	case !ValidKey(e.Key):
		return "its " + ErrKey.Error(), ""
	case e.State > InDoubt:
		return "its " + ErrState.Error(), ""
	case e.LeadID == "" && (e.State == Unknown || e.State == Partial):
		return "its lead ID is missing", "leave out rows that have no lead"
	case e.LeadID != "" && !validLeadID(e.LeadID):
		return "its lead ID is none", leadIDHint
	case len(e.Organization)+len(e.Location)+len(e.ExternalID)+len(e.WantLink)+len(e.Locator)+len(e.RequestID)+
		len(e.File)+len(e.Run)+len(e.Reason) > mostText:
		return "its texts are longer than 1 MiB together", "its location or another of its texts is none"
	}
	return "", ""
}
