package importer

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
