// Package checkpoint is the durable ledger of what became of every row: which
// leads exist, which rows were refused, and which creates were about to be
// sent. It stands between the plan and the wire (claim, before a create is
// sent) and between the answer and the record (settle).
//
// It holds the words, the [Store] that keeps them, and the [Ledger], which gathers
// the changes of many rows into commits. A Store is a file (package bolt below it).
//
// Promises:
//
//   - A call that reports success reports a durable change.
//   - An intent without an outcome stays in doubt until [Ledger.Settle],
//     [Ledger.Withdraw] or a person's word ([Store]: Resolve, Forget) frees it,
//     whatever kills the process.
//   - An update without an answer leaves its lead unsettled until a later one is
//     settled ([Ledger.Mark]).
//   - One lead ID stands under one key. A second key that claims it falls in doubt.
//   - After the first error of a Store every later call fails with that error.
//   - No cell value is kept but key, external ID, status, organization and
//     locator. Everything else is kept as keyed digests. Forget leaves of a
//     key nothing but keyed hashes, of it and of its fold.
//
// The digests' key lies in the same place: whoever has it can try values against
// them, so it is pseudonymous personal data.
//
// Runs leave a [Witness] each in their own folders and in the user's book of ledgers; [Judge] holds a ledger against them:
// one that was rolled back, restored from an older copy, or that is another one than before is refused. One that a person
// takes all the same is incomplete: [Info.MayLack] says of which rows it may lack the lead, and they are held until a
// person settles them or accepts the loss.
package checkpoint

import (
	"context"
	"iter"
	"strings"
	"time"

	"leadferry/internal/rowkey"
)

// Store keeps a checkpoint. All its methods are safe for concurrent use.
type Store interface {
	// Info says what the checkpoint is and how much it knows now.
	Info() Info
	// Digests makes the keyed digests of this checkpoint.
	Digests() *Digester

	// Find looks for the lead of each Query, all as of one commit; out and how must be as
	// long as qs. A key that is known decides, also when it is in doubt or forgotten; one
	// that the service refused has no lead, and stays in out where nothing else is found.
	// An intent hides an entry of the same key. The slices of out's Content are used again.
	Find(ctx context.Context, qs []Query, out []Entry, how []Match) error

	// Commit makes all changes durable in one commit, or fails: then nobody knows whether
	// they are. They are made in the order of their keys, those of one key in the order
	// given, in which a claim is the last. A Store that cuts a commit into several makes
	// claims after all others. What is refused of them stays with its Change. A claim of a
	// key in doubt keeps the earlier intent inside the new one.
	Commit(ctx context.Context, changes []*Change) error

	// Each calls f with every key that the Filter takes, ordered by key; forgotten keys are
	// not known any more. f may call other methods; changes made meanwhile may be seen. An
	// error of f ends it and is returned as it is.
	Each(ctx context.Context, which Filter, f func(Entry) error) error

	// Under is what stands under a key.
	Under(ctx context.Context, key string) (KeptKey, error)

	// Note returns a note of the ledger by its name, or nil where there is none. [Runs], what people decided ([AuditOf]) and
	// the shapes by which leads were made ([Noted]) are notes, too.
	Note(ctx context.Context, name string) ([]byte, error)
	// Notes returns those whose names begin so, in the order of their names.
	Notes(ctx context.Context, prefix string) ([]Note, error)
	// PutNote keeps a note durably, in the place of one that stood there.
	PutNote(ctx context.Context, name string, value []byte) error
	// Reached says how far the ledger knows a run to have come: the number of its last commit (of a ledger with one writer
	// at a time, that of the ledger), and whether it knows the run at all.
	Reached(ctx context.Context, run string) (commits uint64, knows bool, err error)
	// Progress is the number of the last commit of this process, and how many keys have a lead or may have one. It asks
	// nobody.
	Progress() (commits uint64, leads int)
	// Lack makes the ledger incomplete: missing says what it lacks, as what follows on "lacks". With renew it gets a new ID,
	// so that nobody takes it for the ledger that it was, and counts as moved nowhere.
	Lack(ctx context.Context, missing string, renew bool) error
	// AtEnd has f called by Close when the use has ended in order and before its lock is let go; left says how a file is
	// left, "" where nobody can tell.
	AtEnd(f func(left string))

	// Resolve settles keys in doubt, all or none. A lead ID makes the key Partial when a
	// link was asked for, else Created; Exists makes it Created without an ID; neither makes
	// it NotMade, free to be sent. A key that was decided otherwise before, and that was not
	// sent since, is corrected: it stands as if the first decision had not been made. Each
	// decision is kept with its time and with the send that it is about. A refusal is a
	// *[ListError]; a decision about an earlier send than the last one is refused too.
	Resolve(ctx context.Context, ds []Decision) (ResolveResult, error)

	// Adopt takes over leads that exist on the service, all or none. An entry has a key and
	// a lead ID, and what else is known of ExternalID, WantLink, Status, Organization and
	// Location; state Unknown counts as Created. What the lead holds is not known, so its
	// Digest is zero and its first sync sends all content.
	//
	// The entries of an export of another checkpoint are taken as they stand: Created without
	// a lead ID is a lead whose ID nobody knows, Partial waits for its link, InDoubt stays in
	// doubt, so that no row is sent that may have been sent before.
	//
	// A list is refused as a whole, with a *[ListError], for a lead ID that is none, a key or
	// lead ID that stands twice, a key in doubt that was sent, a key to which the service
	// itself gave another lead, and a lead that has another key. A lead ID that people gave,
	// by a decision or an earlier list, is corrected; what was known of the wrong lead goes.
	// The same list again changes nothing. An error that the list yields is returned as it is.
	Adopt(ctx context.Context, list List) (AdoptResult, error)

	// Forget removes every trace of keys, all or none: entries, intents, index records,
	// decisions about them, and their lead IDs wherever they stand. A keyed hash of each key
	// stays, so that no later file makes the lead again: such a key is in state Forgotten.
	// That holds for keys that are not known too, since the next file may bring them. With
	// unblock the hash goes as well, and the key is as new. A refusal is a *[ListError].
	Forget(ctx context.Context, keys []string, unblock bool) (ForgetResult, error)

	// AcceptLoss makes an incomplete checkpoint complete by a person's word: what is missing
	// is given up, and the rows that were held for it, which it counts, may be sent.
	AcceptLoss(ctx context.Context) (freed int, err error)

	// Close ends the use of the checkpoint in order. Only the first call does something.
	Close() error
	// Drop is Close for whoever was refused: a checkpoint that is New and that has known
	// nothing is removed, so that it cannot pass for the memory of leads; gone says so.
	Drop() (gone bool, err error)
}

// Target is what the leads of a checkpoint belong to. All three parts must be
// equal when the file is opened again.
type Target struct{ BaseURL, LeadsURL, TrunkID string }

// Canonical is the target as targets are compared: the letters of a UUID are small. Its
// addresses must have one form already.
func (t Target) Canonical() Target {
	if low := strings.ToLower(t.TrunkID); rowkey.IsUUID(low) {
		t.TrunkID = low
	}
	return t
}

// Info is what a checkpoint is, and how much it knows.
type Info struct {
	Path     string // absolute, with symbolic links resolved
	ID       string // every copy has it
	Target   Target
	Sequence uint64 // number of the last commit, also when the checkpoint is closed

	New      bool     // opening made it, or found one that knows nothing because its run was killed before it sent anything
	Warnings []string // about what opening found that a person should know

	Leads   int           // keys that have a lead
	InDoubt int           // keys that have an intent without an outcome: those of earlier runs, and those in flight
	Keys    map[State]int // as look-ups show them

	Incomplete bool   // leads are missing that were known once
	Missing    string // Incomplete: what is missing, as the subject of a sentence
	Since      uint64 // Incomplete: the commit that noted it; what was known before may have become something else
}

// MayLack says whether the row of e may have a lead that the checkpoint does not know any
// more. Such a row must not be sent: settling it with ReasonIncomplete holds it.
func (i *Info) MayLack(e *Entry) bool {
	return i.Incomplete && !e.State.HasLead() && e.State != Forgotten && e.Seq <= i.Since
}

// List is a list of entries that is too long for the memory: a Store goes through it several
// times, and each time it must yield the same entries, until it yields an error.
type List = iter.Seq2[Entry, error]

// ListOf is a list of entries that are in memory.
func ListOf(entries ...Entry) List {
	return func(yield func(Entry, error) bool) {
		for _, e := range entries {
			if !yield(e, nil) {
				return
			}
		}
	}
}

// Filter says which keys are wanted.
type Filter struct {
	State State  // Unknown: every one
	Run   string // unless empty: leads that this run made, and rows in doubt that it sent
}

// Change is one change of a key.
type Change struct {
	Kind  ChangeKind
	Entry Entry  // what is claimed, settled or marked; of a withdrawal only the Key. Committed: what stands now
	Shape *Shape // Claim: by what its input's rows are made leads, to be noted once; or nil
	Err   error  // committed: why it was refused, see [IsRefusal]
}

// ChangeKind says what a Change does.
type ChangeKind uint8

// The kinds.
const (
	Claim    ChangeKind = iota // writes an intent
	Withdraw                   // removes the intent of a create that is known not to have been applied; one that it replaced comes back
	Settle                     // writes an outcome and removes the intent; InDoubt keeps it and adds what is known of the answer
	Mark                       // notes that an update is about to be sent, by Entry.Unsettled, or that none left after all, by an empty one; and what was Seen
)

// Query asks for a lead by its key, else by its own ID, else by its ExternalID, be it
// linked or only to be; what is empty is not asked for. Alike, unless nil, takes the key
// that looks like this one where no lead is found.
type Query struct {
	Key, LeadID, ExternalID string
	Alike                   *Likeness
}

// Match says by what a lead was found.
type Match uint8

// The matches. NoMatch: no lead is known, though something may stand under the key.
// Ambiguous: the Query fits two leads.
const (
	NoMatch Match = iota
	ByKey
	ByLeadID
	ByExternalID
	Ambiguous
)

// Likeness is a key that looks like the one that was asked for and has a lead, or may have
// one. File and Line say where its row was last sent from; a lead that was adopted, and a
// key that was forgotten, have none.
type Likeness struct {
	State State
	File  string
	Line  int
}

// Contents are everything that a Store knows, for another one to take over. Its lists are read
// from the Store while they are gone through.
type Contents struct {
	ID      string
	Commits uint64 // number of its last commit
	Lineage Lineage
	Secret  []byte // key of the digests
	Target  Target
	Missing string // see [Info]; "" where nothing is missing

	Keys      iter.Seq2[KeptKey, error] // ordered by key
	Notes     []Note                    // but for the lineage
	Forgotten []KeptBlock
}

// Audit is every decision that was ever made, in order, and everything that contradicts one, in the order in which it was found.
type Audit struct {
	Decisions      []KeptDecision
	Contradictions []Contradiction
}

// KeptDecision is a decision with the send that it is about.
type KeptDecision struct {
	Decision
	At   time.Time
	Send *Kept
}

// KeptBlock is what is left of a forgotten key: keyed hashes, of it and of its fold.
type KeptBlock struct {
	Hash, Fold []byte
	At         time.Time
}

// IsAddress says whether a checkpoint is named by the address of a server, as psql takes it: a
// URL, or words such as service=leads or host=db.
func IsAddress(name string) bool {
	for _, prefix := range []string{"postgres://", "postgresql://", "service=", "host=", "hostaddr="} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}
