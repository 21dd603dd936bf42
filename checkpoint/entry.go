package checkpoint

import (
	"time"
	"unicode/utf8"

	"leadferry/internal/rowkey"
)

// MaxStatus is how many characters are kept of a status that the service's specification does not name.
const MaxStatus = 64

// State says what is known of a key.
type State uint8

// The states of a key. Unknown means that the ledger does not hold it.
const (
	Unknown   State = iota
	Created         // the lead exists and everything asked for is linked
	Partial         // the lead exists, its external ID is not linked yet
	Rejected        // the service refused it for good
	InDoubt         // a lead may exist: a person has to find out; Reason says why
	NotMade         // a person said that a create in doubt was not applied; it may be sent
	Forgotten       // erased on request; only a keyed hash of the key is left, and it is not sent again
)

// String returns the state's name. Exports show all of them, except unknown and forgotten.
func (s State) String() string {
	if s > Forgotten {
		s = Unknown
	}
	return [...]string{"unknown", "created", "partial", "rejected", "in_doubt", "not_made", "forgotten"}[s]
}

// HasLead reports whether a lead exists, even if its ID is not known.
func (s State) HasLead() bool { return s == Created || s == Partial }

// Digest is a keyed digest of a request, made by [Digester.Sum]. The zero Digest of a lead means that its data are not
// known, because it was adopted. An import counts its row as unchanged, and a sync sends everything.
type Digest [16]byte

// ContentDigest is the keyed digest of a content key and of its value ([Digester.SumName], [Digester.SumValue]).
type ContentDigest struct{ Name, Value [4]byte }

// Entry is what the ledger knows of a key. A claim is an entry in doubt that has no outcome yet. A new field needs a
// line in codec.go and a higher [Format]. It may also need a line where entries are filled or changed: entryOf,
// doubtOf, create, linked and takeConfirmed (package importer), keepDoubt, marked, completed, Decision.Outcome and
// findSend. PostgreSQL has columns (rows.go, schema.sql); exports have exportLine and listed.entry (checkpointcmd).
type Entry struct {
	Key          string
	State        State
	LeadID       string
	Organization string // assigned; for InDoubt the one asked for
	Location     string
	Status       string // last confirmed; for InDoubt the one asked for
	ExternalID   string // linked; if others changed it on the service, their value
	Digest       Digest
	Content      []ContentDigest
	Code         int    // HTTP status of the answer that led here; 0: none, or the lead is not linked yet
	Reason       string // short class of that answer, or one of the Reasons below; never the service's text
	File         string // input file of the row that wrote the entry
	Line         int    // its physical line in File, from 1
	Locator      string // InDoubt: the locator asked for
	// InDoubt, Partial, during an update: the ExternalID that the lead should get. If others changed it on the service:
	// the value that was confirmed before, or the file's value if the service's value is kept.
	WantLink  string
	RequestID string    // InDoubt: of the last known attempt; if the run was killed, as the claim has it
	Run       string    // the run that wrote it
	Updated   time.Time // UTC, to the millisecond; for InDoubt when it was claimed, just before it was sent
	Seq       uint64    // number of the commit that wrote it; entries are in this order, not in that of their times

	// Only for a lead that updates were sent for:
	Unsettled string    // run whose update is under way or got no usable answer; "" when there is none
	Sought    string    // Unsettled: the status that this update asks for, or ""
	AsksLink  bool      // Unsettled: WantLink is what this update asks for
	Refused   Digest    // of the row whose update the service refused; zero once an update is confirmed
	Synced    bool      // Content is newer than Digest: an update or a read has confirmed it
	Confirmed time.Time // when the service last confirmed the values above; zero: Updated
	Seen      Sight     // what a later read showed, if it differs from the fields above
}

// Sight is what a read showed of a lead: its status, its organization, and whether others had changed content. It is
// stored beside what was confirmed: both are needed to see what others changed. Zero: nothing differs.
type Sight struct {
	At           time.Time // UTC, to the millisecond
	Status       string
	Organization string
	Content      bool // others had changed content; what it was is not kept

	// the file's status that lost against the service's, until one of the two changes; "": none lost
	Against string
}

// Reasons of rows in doubt that do not come from an answer. FoundLead is different: it marks an entry of a list whose
// row found its lead, perhaps by another name than its key, so the lead may have been made under another key.
const (
	ReasonIncomplete = "checkpoint_incomplete" // held: the incomplete checkpoint may have lost the row's lead
	ReasonLeadTaken  = "lead_id_taken"         // the lead ID belongs to another key
	ReasonAdopted    = "adopted"               // taken over from a list
	ReasonUnkept     = "unkept"                // the lead was made, but the checkpoint could not store its ID
	FoundLead        = "found"
)

// Statuses are the service's status keys (specification, States and transitions). Stores keep indexes: only append.
var Statuses = [...]string{
	"", "open", "contacted", "inProgress", "onHold", "closedWon",
	"closedNotInterested", "closedBoughtUsed", "closedBoughtOtherBrand",
}

// BoundedStatus returns a status, cut to MaxStatus characters.
func BoundedStatus(status string) string {
	if utf8.RuneCountInString(status) <= MaxStatus {
		return status
	}
	return string([]rune(status)[:MaxStatus])
}

const leadIDHint = "a lead ID has letters, digits, dots, dashes and underscores, 128 at most"

// ValidKey says whether a key can be kept.
func ValidKey(key string) bool { return len(key) > 0 && len(key) <= rowkey.Longest }

// ConfirmedAt returns when the status was confirmed.
func (e *Entry) ConfirmedAt() time.Time {
	if e.Confirmed.IsZero() {
		return e.Updated
	}
	return e.Confirmed
}

// Moved reports whether others changed the ExternalID: it is their value then, WantLink the confirmed or the file's.
func (e *Entry) Moved() bool {
	asked := e.Unsettled != "" && e.AsksLink
	return e.State == Created && !asked && e.WantLink != "" && e.WantLink != e.ExternalID
}

// ConfirmedLink returns the ExternalID to compare with: if others changed it, the one in WantLink.
func (e *Entry) ConfirmedLink() string {
	if e.Moved() {
		return e.WantLink
	}
	return e.ExternalID
}

// Unfit says what is wrong with an entry of a list, without looking at other entries; "": nothing.
func (e *Entry) Unfit() (text, hint string) {
	switch {
	case !ValidKey(e.Key):
		return "its " + ErrKey.Error(), ""
	case e.State > InDoubt:
		return "its " + ErrState.Error(), ""
	case e.LeadID == "" && (e.State == Unknown || e.State == Partial):
		return "its lead ID is missing", "leave out rows that have no lead"
	case e.LeadID != "" && !rowkey.IsLeadID(e.LeadID):
		return "its lead ID is not valid", leadIDHint
	case len(e.Organization)+len(e.Location)+len(e.ExternalID)+len(e.WantLink)+len(e.Locator)+len(e.RequestID)+
		len(e.File)+len(e.Run)+len(e.Reason) > 1<<20:
		return "its texts are longer than 1 MiB together", "another column may have taken the place of its location"
	}
	return "", ""
}

// Act says what an event did to a key; several may come together.
type Act uint8

// The acts.
const (
	Made       Act = 1 << iota // the key got its first lead
	Linked                     // its external ID was set
	StatusSent                 // its status was changed
	DataSent                   // other data were sent
	Refused                    // the service refused it
	Doubted                    // a create may have been sent, and no answer says whether it made a lead
	Adopted                    // taken over from a list
	Decided                    // settled by a person
)

// givesLead are the acts that brought a lead ID.
const givesLead = Made | Adopted | Decided

// Event is one step in the history of a key.
type Event struct {
	Act    Act
	State  State // after the event
	Status string
	Code   int // HTTP status, see Entry
	Run    string
	At     time.Time // UTC, to the millisecond
	Send             // Doubted: what was sent, where that is still known
}

// Past returns the event as the history of an entry stores it: without what was sent.
func (ev Event) Past() Event {
	ev.Send = Send{}
	return ev
}

// Send is what a person needs to find the lead of a send that was in doubt.
type Send struct {
	File                  string
	Line                  int
	Organization, Locator string // the one asked for
}

// RunInfo is the history of one run.
type RunInfo struct {
	ID, Command       string
	Started, Finished time.Time // UTC; Finished is zero for a run that was killed
	Outcome           string
	Counts            map[string]int // rows by outcome
}

// Status is what a checkpoint knows, in figures.
type Status struct {
	Info
	Runs         []RunInfo      // the newest ten
	Contradicted []KeptDecision // something contradicts them, and nobody has corrected them
}
