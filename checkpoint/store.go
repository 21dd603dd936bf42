// Package checkpoint is the durable ledger of what became of every row: which
// leads exist, which rows were refused, and which creates were about to be
// sent. It is between the plan and the wire (claim, before a create is
// sent) and between the answer and the record (settle).
//
// It holds the words, the [Store] that keeps them, and the [Ledger], which gathers
// the changes of many rows into commits. A Store is a file (package bolt below it).
//
// Promises:
//
//   - A call that reports success reports a durable change.
//   - An intent without an outcome stays in doubt until [Ledger.Settle],
//     [Ledger.Withdraw] or a person's word ([Resolve], [Forget]) frees it,
//     whatever kills the process.
//   - An update without an answer leaves its lead unsettled until a later one is
//     settled ([Ledger.Mark]).
//   - One lead ID belongs to one key. A second key that claims it is in doubt.
//   - After the first error of a Store every later call fails with that error.
//   - No cell value is kept but key, external ID, status, organization and
//     locator. Everything else is kept as keyed digests. Forget leaves of a
//     key nothing but keyed hashes, of it and of its fold.
//
// The digests' key lies in the same place: anyone who has it can try values against
// them, so it is pseudonymous personal data.
//
// Runs leave a [Witness] each in their own folders and in the user's book of ledgers; [Judge] holds a ledger against
// them: one that was rolled back, restored from an older copy, or that is another one than before is refused. One that
// a person takes anyway is incomplete: [Info.MayLack] says of which rows it may lack the lead, and they are held
// until a person settles them or accepts the loss.
package checkpoint

import (
	"context"
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

	// Scan calls f with what is stored under each key, in the order of keys; where InDoubt is wanted, only with keys in
	// doubt, and of them with the intent at least. Other keys that are not wanted may come, too ([Each] leaves them
	// out). f may call other methods; changes made meanwhile may be seen. An error of f ends it and is returned.
	Scan(ctx context.Context, which Filter, f func(KeptKey) error) error

	// Under is what is stored under a key.
	Under(ctx context.Context, key string) (KeptKey, error)

	// Note returns a note of the ledger by its name, or nil where there is none. [Runs], what people decided
	// ([AuditOf]) and the shapes by which leads were made ([Noted]) are notes, too.
	Note(ctx context.Context, name string) ([]byte, error)
	// Notes returns those whose names begin so, in the order of their names.
	Notes(ctx context.Context, prefix string) ([]Note, error)
	// Reached says how far the ledger knows a run to have come: the number of its last commit (of a ledger with one
	// writer at a time, that of the ledger), and whether it knows the run at all.
	Reached(ctx context.Context, run string) (commits uint64, knows bool, err error)
	// Progress is the number of the last commit of this process, and how many keys have a lead or may have one. It asks
	// nobody.
	Progress() (commits uint64, leads int)
	// AtEnd has f called by Close when the use has ended in order and before its lock is let go; left says how a file
	// is left, "" where nobody can tell.
	AtEnd(f func(left string))

	// Alone has f make one change of what it likes, durable as a whole, in which no other process and no commit has a
	// hand. An error of f undoes it and is returned; unless it is one of a list ([IsOfList]), it ends the use of the
	// Store. f may be called again where somebody else was in the way.
	Alone(ctx context.Context, f func(Tx) error) error

	// Close ends the use of the checkpoint in order. Only the first call does something.
	Close() error
	// Drop is Close after a refusal: a checkpoint that is New and that has known
	// nothing is removed, so that it cannot pass for the memory of leads; gone says so.
	Drop() (gone bool, err error)
}

// Tx is a Store inside a change of [Store.Alone].
type Tx interface {
	Book
	// Load has what is asked for about these keys and leads read at once. What was not loaded need not be known.
	Load(keys, leads []string) error
	// Under is what is stored under a key, and what look-ups show of it.
	Under(key string) (k KeptKey, shown *Kept, err error)
	// Held says that another worker may still send what it has claimed under a key.
	Held(key string) bool
	// Put stores something else under a key.
	Put(key string, k KeptKey) error
	// Doubts calls f with what is stored under each key in doubt, and stores what it returns there.
	Doubts(f func(KeptKey) KeptKey) error
	// Erase removes what is stored under keys, and what was left of them when they were forgotten; not before the
	// Store is closed it is gone from unused parts, too.
	Erase(keys []string) error
	// Block keeps what is left of a forgotten key.
	Block(b KeptBlock) error
	// Notes are those whose names begin so, in the order of their names.
	Notes(prefix string) ([]Note, error)
	// Lack notes what is missing from the ledger, which is incomplete then; "": nothing is any more.
	Lack(missing string) error
	// Renew gives the ledger a new ID, so that nobody takes it for the one that it was; it counts as moved nowhere.
	Renew() error
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

	// opening made it, or found one that knows nothing because its run was killed before it sent anything
	New      bool
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

// Filter says which keys are wanted.
type Filter struct {
	State State                 // Unknown: every one
	Run   string                // unless empty: leads that this run made, and rows in doubt that it sent
	Skip  func(key string) bool // which are not wanted by their keys; nil: none
}

// Each calls f with every key that the Filter takes, ordered by key, see [Store.Scan]; forgotten keys are not known
// any more.
func Each(ctx context.Context, s Store, which Filter, f func(Entry) error) error {
	return s.Scan(ctx, which, func(k KeptKey) error {
		shown := k.Shown()
		if which.Skip != nil && which.Skip(shown.Key) || which.State != Unknown && which.State != shown.State ||
			which.Run != "" && which.Run != shown.Maker() {
			return nil
		}
		return f(shown.Entry)
	})
}

// Change is one change of a key.
type Change struct {
	Kind  ChangeKind
	Entry Entry  // what is claimed, settled or marked; of a withdrawal only the Key. Committed: what is stored now
	Shape *Shape // Claim: by what its input's rows are made leads, to be noted once; or nil
	Err   error  // committed: why it was refused, see [IsRefusal]
}

// ChangeKind says what a Change does.
type ChangeKind uint8

// The kinds.
const (
	Claim ChangeKind = iota // writes an intent
	// removes the intent of a create that is known not to have been applied; one that it replaced comes back
	Withdraw
	// writes an outcome and removes the intent; InDoubt keeps it and adds what is known of the answer
	Settle
	// notes that an update is about to be sent, by Entry.Unsettled, or that none left after all, by an empty one; and
	// what was Seen
	Mark
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

// The matches. NoMatch: no lead is known, though something may be under the key.
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

// Audit is every decision that was ever made, in order, and everything that contradicts one, in the order in which it
// was found.
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
