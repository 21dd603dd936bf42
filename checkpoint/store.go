// Package checkpoint is the durable ledger of rows: which leads exist, which rows were refused, and which creates were
// about to be sent. A row is claimed before its create is sent, and settled after the answer.
//
// The package has the rules of the ledger, the [Store] that keeps it, and the [Ledger], which puts the changes of many
// rows together into commits. Below it, package bolt keeps a Store in a file, package postgres in a database.
//
// Promises:
//
//   - A call that reports success reports a durable change.
//   - An intent without an outcome is in doubt until it is settled
//     or withdrawn, or a person ([Resolve], [Forget]) ends it, also after a kill.
//   - An update without an answer leaves its lead unsettled until a later update is settled ([Mark]).
//   - One lead ID belongs to one key. A second key that is answered with it is in doubt.
//   - After the first error of a Store every later call fails with that error.
//   - Of a row's cells it stores only key, ExternalID, status, organization and locator. Everything else is stored as
//     keyed digests. Forget leaves only keyed hashes of a key and of its fold.
//
// The digests' key is stored in the same place. With it one can try values against
// the digests, so they are pseudonymous personal data.
//
// Each run leaves a [Witness] in its folder and in the user's book of ledgers. [Judge] compares a ledger with its
// witnesses, and refuses one that was rolled back, restored from an older copy, or exchanged. A ledger that a person
// accepts anyway is incomplete: [Info.MayLack] says which rows may have a lead that it lacks. These rows are held until
// a person settles them or accepts the loss.
package checkpoint

import (
	"context"
	"slices"
	"strings"

	"leadferry/internal/rowkey"
	"leadferry/internal/shell"
)

// Store stores a checkpoint. All its methods are safe for concurrent use.
type Store interface {
	// Info says what the checkpoint is and how much it knows now.
	Info() Info
	// Digests makes the keyed digests of this checkpoint.
	Digests() *Digester

	// Find looks for the lead of each Query, all as of one commit. A known key decides, also if in doubt or forgotten.
	// A key that was refused has no lead; its entry is found if nothing else is. An intent hides its key's entry.
	Find(ctx context.Context, qs []Query) error

	// Commit makes changes durable: in the order of their keys, and those of one key in the order given. A claim has to
	// be the last of its key. A Store that needs several commits makes all other changes before the claims. If Commit
	// fails, nobody knows which changes are durable. If one change is refused, its Err says why.
	Commit(ctx context.Context, changes []*Change) error

	// Scan calls f with what is stored under each key, in the order of keys. For the state InDoubt it calls f only with
	// keys in doubt, with at least their intents. It may also call f with keys that the Filter does not want ([Each]
	// leaves them out). f may call other methods, and may see changes made during the scan. An error of f ends it.
	Scan(ctx context.Context, which Filter, f func(KeptKey) error) error

	// Notes returns the notes whose names have a prefix, in the order of their names. [Runs], decisions of people
	// ([AuditOf]) and the shapes of imported files ([Noted]) are notes.
	Notes(ctx context.Context, prefix string) ([]Note, error)
	// Reached returns the last commit of a run (in a file: the last of all), and whether the ledger knows the run.
	Reached(ctx context.Context, run string) (commits uint64, knows bool, err error)
	// Progress returns this process's last commit, and [Info.Counted] (on a server of the last Info). It reads nothing.
	Progress() (commits uint64, leads, freed int)
	// Attest makes a witness note each commit. Close ends it in order before the lock is released; Drop withdraws it.
	Attest(t *Testimony)

	// Guard returns nil if the create that was claimed under a key may be sent now. It is called before each attempt,
	// and may connect again or renew the claim. After an error, also of ctx, nothing may be sent.
	Guard(ctx context.Context, key string) error
	// UnderWay returns the runs that may still settle their rows in doubt themselves: they went on when this worker
	// began, or began later. Exchange counts the rows in doubt of the workers of its fleet.
	UnderWay(ctx context.Context) (runs map[string]bool, err error)

	// Alone runs f in one transaction, while no other process and no commit changes the ledger. An error of f undoes
	// it. Unless it refuses something ([Refuses]), the Store cannot be used after it. After a conflict f may run again.
	Alone(ctx context.Context, f func(Tx) error) error

	// Close closes the checkpoint in order. Only the first call does something.
	Close() error
	// Drop closes the checkpoint after a refusal. It removes a checkpoint that is New and knows nothing, so that nobody
	// takes it for a real one; gone reports whether it did.
	Drop() (gone bool, err error)
}

// Tx is a Store inside the transaction of [Store.Alone].
type Tx interface {
	Book
	// Note returns the value of a note; nil: there is none.
	Note(name string) (value []byte, err error)
	PutNote(n Note) error
	// Load reads these keys and leads at once. Other methods may know only what was loaded.
	Load(keys, leads []string) error
	// Under returns what is stored under a key, and, until it is called again, what look-ups show of it.
	Under(key string) (k KeptKey, shown *Kept, err error)
	// Held reports whether another worker may still send what it has claimed under a key.
	Held(key string) bool
	// Put replaces what is stored under a key.
	Put(key string, k KeptKey) error
	// InDoubt returns some of the keys in doubt that come after a key, in order; none: there are no more.
	InDoubt(after string) (keys []string, err error)
	// Erase removes what is stored under keys, and their hashes. Close cleans unused parts of a file.
	Erase(keys []string) error
	// Block stores what is left of a forgotten key.
	Block(b KeptBlock) error
	// Notes returns the notes whose names have a prefix, in the order of their names.
	Notes(prefix string) ([]Note, error)
	// Lack marks the ledger as incomplete and says what is missing; "": it is complete again.
	Lack(missing string) error
	// Renew gives the ledger a new ID, so that nobody takes it for the old one, and forgets where it was moved to.
	Renew() error
}

// Target is what the leads of a checkpoint belong to. All three parts must be equal when the file is opened again.
type Target struct{ BaseURL, LeadsURL, TrunkID string }

// Canonical returns the target as targets are compared, with a UUID in lower case, of addresses that are normalized.
func (t Target) Canonical() Target {
	if low := strings.ToLower(t.TrunkID); rowkey.IsUUID(low) {
		t.TrunkID = low
	}
	return t
}

// Info is what a checkpoint is, and how much it knows.
type Info struct {
	Path     string // absolute, with symbolic links resolved
	ID       string // a copied file has it, too
	Target   Target
	Sequence uint64 // number of the last commit, also when the checkpoint is closed
	Moved    string // where it was copied to, and its leads are kept now; or ""

	// the checkpoint was made now, or it knows nothing because its run was killed before sending
	New      bool
	Warnings []string // of opening, for people

	Leads   int           // keys that have a lead
	InDoubt int           // keys that have an intent without an outcome: those of earlier runs, and those in flight
	Keys    map[State]int // as look-ups show them

	Incomplete bool   // it has lost leads
	Missing    string // Incomplete: what is missing, as the subject of a sentence
	Since      uint64 // Incomplete: the commit that noted it; entries before it may be outdated

	Beside []Witness // of other ledgers of the trunk in the same database
}

// WarnOfLoss adds to the warnings what the checkpoint has lost, last, since warnings may be cut.
func (i *Info) WarnOfLoss() {
	if i.Incomplete {
		i.Warnings = append(slices.Clip(i.Warnings), "the checkpoint is incomplete. Rows that it does not know are held in "+
			"doubt, not sent, until `leadferry checkpoint resolve` settles them, or `leadferry checkpoint check --accept-loss"+
			" --checkpoint "+shell.Path(i.Path)+"` gives up what is missing: "+i.Missing)
	}
}

// Counted returns what a witness counts: the keys that have, had or may have had a lead, forgotten ones too, and those
// of them that a person has found without one. Results name these; exports do not.
func (i *Info) Counted() (leads, freed int) {
	freed = i.Keys[NotMade]
	return i.Leads + i.InDoubt + i.Keys[Forgotten] + freed, freed
}

// MayLack reports whether the row of e may have a lead that the checkpoint has lost. The
// row must not be sent: settling it with ReasonIncomplete holds it.
func (i *Info) MayLack(e *Entry) bool {
	return i.Incomplete && !e.State.HasLead() && e.State != Forgotten && e.Seq <= i.Since
}

// Filter says which keys are wanted.
type Filter struct {
	From  string // the first key wanted; "": from the beginning
	State State  // Unknown: every state
	Run   string // unless empty: leads that this run made, and rows in doubt that it sent
	// keys that are left out: their records need not be decoded then (a reconcile takes a third less time); nil: none
	Skip func(key string) bool
}

// Wants reports whether a key is wanted; shown is what look-ups show of it.
func (w *Filter) Wants(shown *Kept) bool {
	return (w.Skip == nil || !w.Skip(shown.Key)) && (w.State == Unknown || w.State == shown.State) &&
		(w.Run == "" || w.Run == shown.Maker())
}

// Each calls f with every key that the Filter wants, in order, see [Store.Scan]. It does not show forgotten keys.
func Each(ctx context.Context, s Store, which Filter, f func(Entry) error) error {
	return s.Scan(ctx, which, func(k KeptKey) error {
		if shown := k.Shown(); which.Wants(shown) {
			return f(shown.Entry)
		}
		return nil
	})
}

// Change is one change of a key.
type Change struct {
	Kind   ChangeKind
	Entry  Entry  // what is claimed, settled or marked; of a withdrawal Key and Run. After the commit: what is stored
	Resend bool   // Claim: it was decided to send the row again although it is in doubt
	Shape  *Shape // Claim: columns and key of its input, to be noted once; or nil
	Err    error  // after the commit: why the change was refused, see [IsRefusal]
	ctx    context.Context
	done   chan error // gets the result; the next Do uses it again
}

// ChangeKind says what a Change does.
type ChangeKind uint8

// The kinds.
const (
	// writes an intent, the note that a create is about to be sent: once it is durable, the create may be sent. The
	// Entry has what a person needs to find the lead if no outcome follows. Attempt N is sent with its RequestID and
	// "-N". An Entry without Updated gets the time of its commit
	Claim ChangeKind = iota
	// removes the intent of a run's create that was certainly not applied; the intent that it replaced comes back
	Withdraw
	// writes an outcome and removes the intent; InDoubt keeps the intent and adds LeadID, Code and Reason. If another
	// key has the lead ID, this key is in doubt with ReasonLeadTaken
	Settle
	// notes that an update is about to be sent (Entry.Unsettled), or that it was not sent (empty). It also notes what
	// was Seen, and the ExternalID and WantLink of the Entry. Nothing else of a known lead changes, and its history
	// gets no event. A lead that is not known is stored as the Entry says, under a key without another lead
	Mark
)

// Query asks for a lead by its key, else by its ID, else by its ExternalID, linked or asked for. Empty fields are left
// out. Alike, unless nil, receives a key that looks like this one if no lead is found. Entry is filled by Find.
type Query struct {
	Key, LeadID, ExternalID string
	Alike                   *Likeness
	Entry                   *Entry
	Match                   Match // how it was found
}

// Match says how a lead was found.
type Match uint8

// The matches. NoMatch: no lead is known; the entry may be that of the key. Ambiguous: two leads fit.
const (
	NoMatch Match = iota
	ByKey
	ByLeadID
	ByExternalID
	Ambiguous
)

// Likeness is a key that looks like the one asked for, and has or may have a lead. File
// and Line are those of its last send; an adopted lead and a forgotten key have none.
type Likeness struct {
	State State
	File  string
	Line  int
}

// Finder is what a Store knows as of one commit, for [Find].
type Finder interface {
	// Show fills out with what look-ups show of a key. An unknown key may be Forgotten.
	Show(key string, out *Entry) error
	// Owner returns the key that has a lead, or ""; key is the key that wants the lead.
	Owner(lead, key string) (owner string, err error)
	// Linked is as in [Book]; key may be "".
	Linked(external, key string) (others []string, err error)
	// Alike returns the known keys that fold to this text and differ from it, and whether a forgotten key folds to it.
	// No key folds to "".
	Alike(folded string) (keys []string, forgotten bool)
}

// Find answers queries as [Store] says.
func Find(f Finder, qs []Query) (err error) {
	l := lookUp{Finder: f}
	for i := range qs {
		q := &qs[i]
		if q.Match, err = l.find(q, q.Entry); err != nil {
			return err
		}
		if q.Match == NoMatch && q.Alike != nil {
			if *q.Alike, err = l.alike(q); err != nil {
				return err
			}
		}
	}
	return nil
}

type lookUp struct {
	Finder
	other Entry // under another key than that of the query
}

func (l *lookUp) find(q *Query, out *Entry) (Match, error) {
	if err := l.Show(q.Key, out); err != nil {
		return NoMatch, err
	}
	owner, err := l.Owner(q.LeadID, q.Key)
	switch s := out.State; {
	case err != nil:
		return NoMatch, err
	case s.HasLead() && owner != "" && owner != q.Key:
		return Ambiguous, nil
	case s.HasLead(), s == InDoubt, s == Forgotten:
		return ByKey, nil
	case owner != "":
		return ByLeadID, l.Show(owner, out)
	case q.ExternalID == "":
		return NoMatch, nil
	}
	return l.byExternalID(q, out)
}

// byExternalID fills out with the only lead that has the ExternalID or should get it, if no lead IDs contradict that.
func (l *lookUp) byExternalID(q *Query, out *Entry) (Match, error) {
	keys, err := l.Linked(q.ExternalID, "")
	if len(keys) == 1 && err == nil {
		err = l.Show(keys[0], &l.other)
	}
	switch {
	case err != nil || len(keys) == 0:
		return NoMatch, err
	case len(keys) > 1:
		return Ambiguous, nil
	case !l.other.State.HasLead() && l.other.State != InDoubt:
		return NoMatch, nil
	case q.LeadID != "" && l.other.LeadID != "":
		return Ambiguous, nil
	}
	return ByExternalID, l.Show(keys[0], out)
}

// Folds returns the fold of the key and, if that is another key, the fold of the ExternalID as a key; "": none.
func (q *Query) Folds() (own, external string) {
	if namespace, key := rowkey.Split(q.Key); q.ExternalID != "" && q.ExternalID != key {
		external = rowkey.Fold(rowkey.Effective(namespace, q.ExternalID))
	}
	return rowkey.Fold(q.Key), external
}

// alike looks for a key that resembles this one: first for a key that has or may have a lead, then for a forgotten key.
// That may also be the ExternalID: of a forgotten person, only the hash of a key is left.
func (l *lookUp) alike(q *Query) (found Likeness, err error) {
	own, external := q.Folds()
	others, forgotten := l.Alike(own)
	for _, other := range append([]string{own}, others...) {
		if other == "" || other == q.Key {
			continue
		}
		if err := l.Show(other, &l.other); err != nil {
			return found, err
		}
		if e := &l.other; e.State.HasLead() || e.State == InDoubt {
			return Likeness{State: e.State, File: e.File, Line: e.Line}, nil
		}
	}
	if !forgotten && external != "" {
		_, forgotten = l.Alike(external)
	}
	if forgotten {
		found.State = Forgotten
	}
	return found, nil
}

// Map returns what f makes of each element of a list.
func Map[A, B any](list []A, f func(A) B) []B {
	all := make([]B, len(list))
	for i, one := range list {
		all[i] = f(one)
	}
	return all
}

// IsAddress reports whether a checkpoint's name is the address of a server: a URL, or words like service= or host=.
func IsAddress(name string) bool {
	prefixes := []string{"postgres://", "postgresql://", "service=", "host=", "hostaddr="}
	return slices.ContainsFunc(prefixes, func(one string) bool { return strings.HasPrefix(name, one) })
}
