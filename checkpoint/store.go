// Package checkpoint is the durable ledger of rows: which leads exist, which rows were refused, and which creates were
// about to be sent. A row is claimed before its create is sent, and settled after the answer. A claim is stored as an
// intent, which stays if the row is in doubt; other outcomes are stored as an entry.
//
// The package contains the rules of the ledger, the [Store] interface, and the [Ledger], which gathers the changes of
// many rows into commits. Package bolt implements Store in a file, package postgres in a database.
//
// Promises:
//
//   - A call that reports success reports a durable change.
//   - An intent without an outcome is in doubt, also after a kill, until it is settled or withdrawn, or until a person
//     ends it ([Resolve], [Forget]).
//   - An update without an answer leaves its lead unsettled until a later update is settled ([Mark]).
//   - One lead ID belongs to one key. If the service answers a second key with it, the second key is in doubt.
//   - After the first error of a Store, every later change fails with that error. A refusal is no error of the Store
//     ([Refuses], [IsRefusal]).
//   - Of the cells of a row, only key, ExternalID, status, organization and locator are stored. Everything else is
//     stored as keyed digests. Forget leaves only keyed hashes of a key and of its fold.
//
// The key of the digests is stored beside them: whoever has it can try values. They are pseudonymous personal data.
//
// Each run leaves a [Witness] in its folder and in the user's book of ledgers. [Judge] compares a ledger with its
// witnesses. It refuses a ledger that was rolled back, restored from an older copy, or replaced by another one. A
// ledger that a person accepts anyway is incomplete: [Info.MayLack] says which rows may have a lead that it lacks.
// These rows are held until a person settles them or accepts the loss.
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

	// Find looks for the lead of each Query, all as of one commit. A key with a lead, in doubt or forgotten decides.
	// For any other key the lead ID is tried, then the ExternalID. If they find nothing, Entry is what is known of the
	// key: it was rejected, for example. An intent hides the entry of its key.
	Find(ctx context.Context, qs []Query) error

	// Commit makes changes durable. It applies them in the order of their keys, and changes of one key in the given
	// order. A claim must be the last change of its key. A Store that needs several commits makes the claims last. If
	// Commit fails, nobody knows which changes are durable. If one change is refused, its Err says why.
	Commit(ctx context.Context, changes []*Change) error

	// Scan calls f with what is stored under each key, in the order of keys. For the state InDoubt it calls f only with
	// keys in doubt; their Intent is always set. It may also call f with keys that the Filter does not want; [Each]
	// leaves them out. f may call other methods, and may see changes made during the scan. An error of f ends it.
	Scan(ctx context.Context, which Filter, f func(KeptKey) error) error

	// Notes returns the notes whose names have a prefix, in the order of their names. [Runs], decisions of people
	// ([AuditOf]) and the shapes of imported files ([Noted]) are notes.
	Notes(ctx context.Context, prefix string) ([]Note, error)
	// Reached returns the last commit of a run (in a file: the last of all), and whether the ledger knows the run.
	Reached(ctx context.Context, run string) (commits uint64, knows bool, err error)
	// Progress returns this process's last commit and [Info.Counted] (on a server: of the last Info). It reads nothing.
	Progress() (commits uint64, leads, freed int)
	// Attest makes t note each commit. Close ends t before it releases the lock. Drop of a checkpoint withdraws t.
	Attest(t *Testimony)

	// Guard returns nil if the create that was claimed under a key may be sent now. Call it before each attempt. It may
	// connect again or renew the claim. After an error, also one of ctx, nothing may be sent.
	Guard(ctx context.Context, key string) error
	// UnderWay returns the runs that may still settle their rows in doubt themselves: they were under way when this
	// worker began, or began later. In a fleet, [Common].Doubts counts these rows.
	UnderWay(ctx context.Context) (runs map[string]bool, err error)

	// Alone runs f in one transaction, while no other process and no commit changes the ledger. An error of f undoes
	// it. Unless it is a refusal ([Refuses]), the Store cannot be used afterwards. After a conflict f may run again.
	Alone(ctx context.Context, f func(Tx) error) error

	// Close closes the checkpoint in order. Only the first call does something.
	Close() error
	// Drop closes the checkpoint after a refusal. It may remove a checkpoint that is New and knows nothing, so that
	// nobody takes it for a real one; gone reports whether it did.
	Drop() (gone bool, err error)
}

// Tx is a Store inside the transaction of [Store.Alone].
type Tx interface {
	Owners
	// Note returns the value of a note; nil: there is none.
	Note(name string) (value []byte, err error)
	PutNote(n Note) error
	// Load reads these keys and leads at once. Other methods may know only what was loaded.
	Load(keys, leads []string) error
	// Under returns what is stored under a key, and what look-ups show of it. shown is valid until the next call.
	Under(key string) (k KeptKey, shown *Kept, err error)
	// OtherMaySend reports whether another worker may still send what it has claimed under a key.
	OtherMaySend(key string) bool
	// Put replaces what is stored under a key.
	Put(key string, k KeptKey) error
	// InDoubt returns the next keys in doubt after a key, in order; none: there are no more.
	InDoubt(after string) (keys []string, err error)
	// Erase removes what is stored under keys, and their hashes. Close also cleans the unused parts of a file.
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

// Target is where the leads of a checkpoint are made. A checkpoint opens only for a target with the same three parts.
type Target struct{ BaseURL, LeadsURL, TrunkID string }

// Canonical returns the form in which targets are compared: a UUID in lower case. The addresses must be normalized.
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
	Moved    string // where it was copied to and where its leads are kept now; or ""

	// the checkpoint was made now, or it knows nothing because its run was killed before sending
	New      bool
	Warnings []string // of opening, for people

	Leads   int           // keys that have a lead
	InDoubt int           // keys that have an intent without an outcome: those of earlier runs, and those in flight
	Keys    map[State]int // as look-ups show them

	Incomplete bool   // it has lost leads
	Missing    string // Incomplete: what is missing, as words that can follow "it lacks"
	Since      uint64 // Incomplete: the commit that noted the loss; older entries may be outdated

	Beside []Witness // of other ledgers of the trunk in the same database
}

// WarnOfLoss adds a warning that says what the checkpoint has lost. It is the last one: adopt shows only that.
func (i *Info) WarnOfLoss() {
	if i.Incomplete {
		i.Warnings = append(slices.Clip(i.Warnings), "the checkpoint is incomplete. Rows that it does not know are "+
			"held in doubt, not sent, until `leadferry checkpoint resolve` settles them, or `leadferry checkpoint "+
			"check --accept-loss --checkpoint "+shell.Path(i.Path)+"` gives up what is missing: "+i.Missing)
	}
}

// Counted returns what a witness counts: leads are the keys that have, had or may have had a lead, also forgotten ones;
// freed are those of them that a person has found without one. Results name the freed keys; exports do not.
func (i *Info) Counted() (leads, freed int) {
	freed = i.Keys[NotMade]
	return i.Leads + i.InDoubt + i.Keys[Forgotten] + freed, freed
}

// MayLack reports whether the row of e may have a lead that the checkpoint has lost. Then the row must not be sent:
// settling it with ReasonIncomplete holds it.
func (i *Info) MayLack(e *Entry) bool {
	return i.Incomplete && !e.State.HasLead() && e.State != Forgotten && e.Seq <= i.Since
}

// Filter says which keys are wanted.
type Filter struct {
	From  string // the first key wanted; "": from the beginning
	State State  // Unknown: every state
	Run   string // unless empty: leads that this run made, and rows in doubt that it sent
}

// Wants reports whether a key is wanted; shown is what look-ups show of it.
func (w *Filter) Wants(shown *Kept) bool {
	return (w.State == Unknown || w.State == shown.State) && (w.Run == "" || w.Run == shown.Maker())
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
	Entry  Entry  // what to claim, settle or mark; for Withdraw only Key and Run. After the commit: what is stored
	Resend bool   // Claim: the row may be sent again although it is in doubt
	Shape  *Shape // Claim: columns and key of its input, to be noted once; or nil
	Err    error  // after the commit: why the change was refused, see [IsRefusal]
	ctx    context.Context
	done   chan error // gets the result; the next Do uses it again
}

// ChangeKind says what a Change does.
type ChangeKind uint8

// The kinds.
const (
	// writes an intent, the note that a create is about to be sent. Once it is durable, the create may be sent. The
	// Entry has what a person needs to find the lead if no outcome follows. Attempt N of the create carries the
	// RequestID with "-N" added. An Entry without Updated gets the time of its commit
	Claim ChangeKind = iota
	// removes the intent of a create of this run that was certainly not applied; an intent that it replaced comes back
	Withdraw
	// writes an outcome and removes the intent; InDoubt keeps the intent and adds LeadID, Code and Reason. If another
	// key has the lead ID, this key is in doubt with ReasonLeadTaken
	Settle
	// notes that an update is about to be sent (Entry.Unsettled), or was not sent after all (Unsettled is empty). It
	// also notes Seen, ExternalID and WantLink of the Entry. Nothing else of a known lead changes, and its history gets
	// no event. A lead that is not known yet is stored as the Entry says, if its key has no other lead
	Mark
)

// Query asks for a lead by its key, else by its lead ID, else by its ExternalID, linked or asked for. Empty fields are
// left out. Find fills Entry: if no lead is found, with the key alone; then Alike, unless nil, receives a key like it.
type Query struct {
	Key, LeadID, ExternalID string
	Alike                   *Likeness
	Entry                   *Entry
	Match                   Match // how it was found
}

// Match says how a lead was found.
type Match uint8

// The matches. NoMatch: no lead is known; Entry may still hold what is known of the key. Ambiguous: two leads fit.
const (
	NoMatch Match = iota
	ByKey
	ByLeadID
	ByExternalID
	Ambiguous
)

// Likeness is a key that looks like the one asked for, and has or may have a lead. File and Line say where it was sent
// from last; an adopted lead and a forgotten key have none.
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
	// LinkOwners is as in [Owners]; key may be "".
	LinkOwners(external, key string) (others []string, err error)
	// Alike returns the known keys other than folded that fold to it, and if a forgotten one does. No key folds to "".
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
	other Entry // what look-ups show of another key than that of the query
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
	keys, err := l.LinkOwners(q.ExternalID, "")
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

// Folds returns the fold of the key and, if the ExternalID differs from it, the fold of a key with its text; "": none.
func (q *Query) Folds() (own, external string) {
	if namespace, key := rowkey.Split(q.Key); q.ExternalID != "" && q.ExternalID != key {
		external = rowkey.Fold(rowkey.Effective(namespace, q.ExternalID))
	}
	return rowkey.Fold(q.Key), external
}

// alike looks for a key that resembles this one: first for a key that has or may have a lead, then for a forgotten key.
// A forgotten key may also resemble the ExternalID: only the hash of the key is left of a forgotten person.
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
