// Package checkpoint is the durable ledger of what became of every row: which
// leads exist, which rows were refused, and which creates were about to be
// sent. It stands between the plan and the wire (claim, before a create is
// sent) and between the answer and the record (settle).
//
// Promises:
//
//   - A callback that reports success reports a durable change: the commit has
//     been synced to disk.
//   - An intent without an outcome stays in doubt until [DB.Settle],
//     [DB.Withdraw] or [DB.Resolve] frees it, whatever kills the process.
//   - One lead ID stands under one key. A second key that claims it falls in doubt.
//   - After the first error of the file every later call fails with that error.
//   - A damaged, foreign, cut or rolled-back file is an error with a sentence,
//     never a panic and never an empty ledger. Every record carries a checksum.
//     After an unclean end, and always while the file is small, opening checks
//     every page and record first.
//   - No cell value is kept but key, external ID, status, organization and
//     locator. Everything else is kept as keyed digests.
//
// Beside the file PATH stands PATH.seq with the number of the last commit. A
// checkpoint that is behind it was rolled back or restored from an older copy.
package checkpoint

import (
	"errors"
	"time"
)

// MaxKey is the longest key in bytes. Longer keys are refused.
const MaxKey = 1024

// State says what is known of a key.
type State uint8

// The states of a key. Unknown means that the ledger does not hold it.
const (
	Unknown  State = iota
	Created        // the lead exists and everything asked for is linked
	Partial        // the lead exists, its external ID is not linked yet
	Rejected       // the service refused it for good
	InDoubt        // a create may have been applied; nobody can tell

	states = int(InDoubt) + 1
)

// String returns the state's name as exports show it: created, partial,
// rejected, in_doubt, or unknown.
func (s State) String() string {
	switch s {
	case Created:
		return "created"
	case Partial:
		return "partial"
	case Rejected:
		return "rejected"
	case InDoubt:
		return "in_doubt"
	}
	return "unknown"
}

// Digest is a keyed digest of a request, made by [DB.Sum].
type Digest [16]byte

// ContentDigest is the keyed digest of one content key and of its value, made
// by [DB.SumField].
type ContentDigest struct{ Name, Value [4]byte }

// Entry is what the ledger knows of a key.
type Entry struct {
	Key          string
	State        State
	LeadID       string
	Organization string // assigned; for InDoubt the one asked for
	Location     string
	Status       string // last confirmed; for InDoubt the one asked for
	ExternalID   string // linked
	Digest       Digest
	Content      []ContentDigest
	Code         int       // HTTP status of a refusal, or of the answer that left doubt; else 0
	Reason       string    // short class of that answer, never the service's text
	File         string    // input file of the last send
	Line         int       // physical line in File, from 1
	Locator      string    // InDoubt: the locator asked for
	WantLink     string    // InDoubt, Partial: the external ID to link
	Run          string    // the run that wrote it
	Updated      time.Time // UTC, to the millisecond; for InDoubt when it was sent
	Seq          uint64    // number of the commit that wrote it; orders entries, times do not
}

// Intent is the note that a create is about to be sent, with what a person
// needs to find the lead if no outcome follows.
type Intent struct {
	Key, File    string
	Line         int
	Organization string // either the organization …
	Locator      string // … or the locator asked for
	Status       string
	ExternalID   string // link wanted when not empty
	Run          string
	Sent         time.Time
	Digest       Digest
	Content      []ContentDigest
}

// entry returns what the ledger keeps of an intent.
func (in Intent) entry() Entry {
	return Entry{
		Key: in.Key, State: InDoubt, File: in.File, Line: in.Line,
		Organization: in.Organization, Locator: in.Locator, Status: in.Status,
		WantLink: in.ExternalID, Run: in.Run, Updated: in.Sent,
		Digest: in.Digest, Content: in.Content,
	}
}

// ReasonLeadTaken is the Reason of an entry whose lead ID stands under another
// key already.
const ReasonLeadTaken = "lead_id_taken"

// What can be wrong with a checkpoint file. [OpenError] carries them; ErrDamaged
// also comes from calls that meet damage later.
var (
	ErrLocked     = errors.New("in use")
	ErrMissing    = errors.New("missing")
	ErrDamaged    = errors.New("damaged")
	ErrRolledBack = errors.New("rolled back")
	ErrTarget     = errors.New("another target")
	ErrVersion    = errors.New("another format version")
)

// What a single call can be refused for; the ledger goes on.
var (
	ErrClosed   = errors.New("checkpoint is closed")
	ErrReadOnly = errors.New("checkpoint is open for reading only")
	ErrKey      = errors.New("key is empty or longer than 1,024 bytes")
	ErrKnown    = errors.New("key has a lead already, so it cannot be claimed")
	ErrState    = errors.New("entry has no state that can be settled")
)

// OpenError says why a checkpoint file cannot be used.
type OpenError struct {
	Path, Text, Hint string
	kind             error
}

// Error returns one sentence and, where the user can act, a line with a hint.
func (e *OpenError) Error() string {
	s := "checkpoint " + e.Path + ": " + e.Text
	if e.Hint != "" {
		s += "\nhint: " + e.Hint
	}
	return s
}

// Unwrap returns the sentinel, or the system's error.
func (e *OpenError) Unwrap() error { return e.kind }
