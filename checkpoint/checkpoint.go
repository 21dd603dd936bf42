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
//     [DB.Withdraw], [DB.Resolve] or [DB.Forget] frees it, whatever kills the
//     process.
//   - An update without an answer leaves its lead unsettled until a later one is
//     settled ([DB.Mark]).
//   - One lead ID stands under one key. A second key that claims it falls in doubt.
//   - After the first error of the file every later call fails with that error.
//   - A damaged, foreign, cut or rolled-back file is an error with a sentence,
//     never a panic and never an empty ledger. Every record carries a checksum,
//     and before the first change every page, record and index is checked: when
//     the file is opened, or, where it is large and was closed in order, right
//     after that.
//   - No cell value is kept but key, external ID, status, organization and
//     locator. Everything else is kept as keyed digests. [DB.Forget] leaves of a
//     key nothing but keyed hashes, of it and of its fold, also in the file's unused parts.
//
// The digests' key lies in the same file: whoever has the file can try values against
// them, so it is pseudonymous personal data.
//
// Beside the file PATH stands PATH.seq with the number of the last commit, and runs
// leave a [Witness] each in their own folders. A checkpoint that is behind one of them
// was rolled back or restored from an older copy. One that was taken all the same, or
// made by [Repair], is incomplete while leads are missing from it: [DB.MayLack] says of
// which rows, and they are held until a person settles them or [DB.AcceptLoss].
package checkpoint

import (
	"errors"
	"fmt"
	"time"
)

// MaxKey is the longest key in bytes. Longer keys are refused.
const MaxKey = 1024

// State says what is known of a key.
type State uint8

// The states of a key. Unknown means that the ledger does not hold it.
const (
	Unknown   State = iota
	Created         // the lead exists and everything asked for is linked
	Partial         // the lead exists, its external ID is not linked yet
	Rejected        // the service refused it for good
	InDoubt         // a create may have been applied; nobody can tell
	NotMade         // a person said that a create in doubt was not applied; it may be sent
	Forgotten       // erased on request; only a keyed hash of the key is left, and it is not sent again

	states = int(Forgotten) + 1
)

// String returns the state's name as exports show it: created, partial,
// rejected, in_doubt, not_made or forgotten (which no export holds), or unknown.
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
	case NotMade:
		return "not_made"
	case Forgotten:
		return "forgotten"
	}
	return "unknown"
}

// HasLead says whether a lead exists, whatever is known of it.
func (s State) HasLead() bool { return s == Created || s == Partial }

// Digest is a keyed digest of a request, made by [DB.Sum]. The zero Digest of a
// lead that exists says that nobody here knows what data it holds: it was adopted.
// Such a lead counts neither as changed nor as in step; a sync sends it everything.
type Digest [16]byte

// ContentDigest is the keyed digest of one content key and of its value, made
// by [DB.SumName] and [DB.SumValue].
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

	// Of a lead that updates have been sent for.
	Unsettled string    // run whose update is under way or got no usable answer; "" when there is none
	Sought    string    // Unsettled: the status that this update asks for, or ""
	Refused   Digest    // of the row whose update the service refused; zero once one is confirmed
	Synced    bool      // updates have changed what the lead holds since Digest
	Confirmed time.Time // when the service last showed what the lead holds; zero: Updated
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
	Sent         time.Time // zero: when it is committed
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

// ReasonIncomplete is the Reason of an entry in doubt that was not sent: the checkpoint is
// incomplete, and the row may have a lead that it does not know any more.
const ReasonIncomplete = "checkpoint_incomplete"

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
	ErrGone       = fmt.Errorf("%w, though it was here", ErrMissing)
	ErrTarget     = errors.New("another target")
	ErrVersion    = errors.New("another format version")
	ErrPlace      = errors.New("on a file system that cannot be relied on")
)

// What a single call can be refused for; the ledger goes on.
var (
	ErrClosed   = errors.New("checkpoint is closed")
	ErrRemoved  = errors.New("taken away or replaced while it was in use")
	ErrReadOnly = errors.New("checkpoint is open for reading only")
	ErrKey      = errors.New("key is empty or longer than 1,024 bytes")
	ErrKnown    = errors.New("key has a lead already, so it cannot be claimed")
	ErrBlocked  = errors.New("key was forgotten, so nothing may be kept under it")
	ErrTaken    = errors.New("lead belongs to another key")
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

// FileError is an error of the file that is no damage, such as a full disk. After
// it nothing is written any more: what was reported is durable, what was not may be.
type FileError struct {
	Path string
	err  error
}

// Error says what could not be done.
func (e *FileError) Error() string { return e.err.Error() }

// Unwrap returns the system's error.
func (e *FileError) Unwrap() error { return e.err }
