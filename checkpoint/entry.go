package checkpoint

import (
	"slices"
	"time"
)

// MaxKey is the longest key in bytes. Longer keys are refused.
const MaxKey = 1024

// MaxStatus is how many characters of a status are kept that the service's specification
// does not name.
const MaxStatus = 64

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

// Digest is a keyed digest of a request, made by [Digester.Sum]. The zero Digest of a
// lead that exists says that nobody here knows what data it holds: it was adopted.
// Such a lead counts neither as changed nor as in step; a sync sends it everything.
type Digest [16]byte

// ContentDigest is the keyed digest of one content key and of its value, made
// by [Digester.SumName] and [Digester.SumValue].
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
	RequestID    string    // InDoubt: what the create carried in the header that is named for it, or ""
	Run          string    // the run that wrote it
	Updated      time.Time // UTC, to the millisecond; for InDoubt when it was sent
	Seq          uint64    // number of the commit that wrote it; orders entries, times do not

	// Of a lead that updates have been sent for.
	Unsettled string    // run whose update is under way or got no usable answer; "" when there is none
	Sought    string    // Unsettled: the status that this update asks for, or ""
	Refused   Digest    // of the row whose update the service refused; zero once one is confirmed
	Synced    bool      // updates have changed what the lead holds since Digest
	Confirmed time.Time // when the service last showed what the lead holds; zero: Updated
	Seen      Sight     // what a later read showed, where that is not what stands above
}

// Sight is what a read showed of a lead's status and organization. It is kept beside what was
// confirmed, never in its place: whoever looks for what others changed needs both. The zero
// Sight is none.
type Sight struct {
	At           time.Time // UTC, to the millisecond
	Status       string
	Organization string

	// Kept says that the service's status was let stand against that of the file, which is
	// Against: as long as the file carries that, it has said nothing new.
	Kept    bool
	Against string
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
	RequestID    string // of its first attempt, where creates carry one
	Run          string
	Sent         time.Time // zero: when it is committed
	Digest       Digest
	Content      []ContentDigest
	Shape        *Shape // by what its input's rows are made leads, to be noted once; or nil
}

// entry is what the ledger keeps of an intent.
func (in Intent) entry() Entry {
	return Entry{
		Key: in.Key, State: InDoubt, File: in.File, Line: in.Line,
		Organization: in.Organization, Locator: in.Locator, Status: in.Status,
		WantLink: in.ExternalID, RequestID: in.RequestID, Run: in.Run, Updated: in.Sent,
		Digest: in.Digest, Content: in.Content,
	}
}

// ReasonIncomplete is the Reason of an entry in doubt that was not sent: the checkpoint is
// incomplete, and the row may have a lead that it does not know any more.
const ReasonIncomplete = "checkpoint_incomplete"

// ReasonLeadTaken is the Reason of an entry whose lead ID stands under another
// key already.
const ReasonLeadTaken = "lead_id_taken"

// ReasonAdopted is the Reason of a doubt that was taken over from a list.
const ReasonAdopted = "adopted"

// Statuses are the service's status keys (specification, States and transitions). Stores
// keep their places: only ever append to them.
var Statuses = [...]string{
	"", "open", "contacted", "inProgress", "onHold", "closedWon",
	"closedNotInterested", "closedBoughtUsed", "closedBoughtOtherBrand",
}

// KnownStatus reports whether the specification names a status, or it is empty.
func KnownStatus(status string) bool { return slices.Contains(Statuses[:], status) }
