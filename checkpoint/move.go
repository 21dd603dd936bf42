package checkpoint

import (
	"iter"
	"time"
)

// Contents are everything that a Store knows, for another one to take over. Its lists are read
// from the Store while they are gone through.
type Contents struct {
	Name      string // where it is kept
	ID        string
	Ancestors []string // IDs that it had, or was made from
	Secret    []byte   // key of the digests
	Target    Target
	Missing   string // see [Info]; "" where nothing is missing

	Keys           iter.Seq2[KeptKey, error] // ordered by key
	Runs           []RunInfo
	Decisions      []KeptDecision
	Contradictions []Contradiction
	Shapes         []KeptShape
	Forgotten      []KeptBlock
}

// Kept is an entry or an intent as a Store keeps it, with what led to it.
type Kept struct {
	Entry
	Act   Act
	Past  []Event
	Prior *Kept // of an intent: the one that it came in place of
}

// KeptKey is what stands under a key; either may be nil.
type KeptKey struct{ Entry, Intent *Kept }

// KeptDecision is a decision with the send that it is about.
type KeptDecision struct {
	Decision
	At   time.Time
	Send *Kept
}

// KeptShape is a [Shape] as it is kept: of its columns the digests, in order, one after another.
type KeptShape struct {
	Columns        []byte
	Key, Namespace string
}

// KeptBlock is what is left of a forgotten key: keyed hashes, of it and of its fold.
type KeptBlock struct {
	Hash, Fold []byte
	At         time.Time
}
