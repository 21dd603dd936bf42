package importer

import "leadferry/checkpoint"

// Outcome says how a row ended a run. INTERFACE names each; the counts of all
// outcomes add up to the rows read.
type Outcome uint8

// The outcomes, in the order in which summaries list them.
const (
	Created Outcome = iota
	Updated
	Unchanged
	Changed
	Skipped
	Invalid
	Rejected
	Failed
	Partial
	InDoubt
	Unmatched
	Conflict
	Pending
	outcomeCount
)

var outcomeNames = [outcomeCount]string{
	"created", "updated", "unchanged", "changed", "skipped", "invalid", "rejected",
	"failed", "partial", "in_doubt", "unmatched", "conflict", "pending",
}

// String is the name of the outcome in results and summaries.
func (o Outcome) String() string { return outcomeNames[o] }

// Outcomes are all of them.
func Outcomes() (all []Outcome) {
	for o := range outcomeCount {
		all = append(all, o)
	}
	return all
}

// Attention reports whether a row that ended so wants a person's eye. A pending
// row does too, unless the run was never meant to send (validate, --dry-run).
func (o Outcome) Attention() bool {
	switch o {
	case Created, Updated, Unchanged, Skipped:
		return false
	}
	return true
}

// result is how one row ended, on its way to the files and the counts.
type result struct {
	outcome  Outcome
	entry    checkpoint.Entry // what the checkpoint knows of the row now
	text     string           // for people
	kind     string           // the same without what differs from row to row, or ""
	whole    string           // for the rejects file, or "": with the service's own words
	attempts int              // requests that left for it in this run
	moved    moved            // what its update showed
	unread   bool             // --check-remote could not read its lead
}

// moved is what the answer to an update shows of the lead's status and owner.
type moved struct {
	from, to  string // status that was last confirmed, and that is now; equal: nothing was changed by the run
	elsewhere bool   // somebody else changed the status
	owner     bool   // somebody else changed the owner
}
