package checkpoint

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"time"

	"leadferry/internal/shell"
)

// Lineage is what a ledger knows of other ledgers, and what people answered about them. It is one note of the ledger.
type Lineage struct {
	// the ledgers that it descends from, by a copy, a repair, an adoption, or by --accept-older
	Ancestors []Ancestor `json:"ancestors,omitempty"`
	Answered  []string   `json:"answered,omitempty"` // findings that a person has answered
	Machine   string     `json:"machine,omitempty"`  // keyed hash of the machine that used the file last
	Adopting  *Adopting  `json:"adopting,omitempty"` // a list that is being adopted, or whose adoption was cut off
}

// Ancestor is a ledger that another one descends from, with the number of its last commit that was taken over.
type Ancestor struct {
	ID      string `json:"id"`
	Commits uint64 `json:"commits"`
}

// Adopting marks a list whose adoption has begun and has not ended. It has the words of the command line and, once the
// files are read, 8 bytes of the digest of each key.
type Adopting struct {
	Words []string `json:"words"` // --namespace=NAME if that was given, then files with absolute paths
	Keys  []byte   `json:"keys,omitempty"`
	Fills bool     `json:"fills,omitempty"` // the ledger knew no leads before
}

// LineageNote is the name of the note that holds a Lineage.
const LineageNote = "lineage"

// LineageOf reads the lineage of a ledger; it is empty if there is none.
func LineageOf(ctx context.Context, s Store) (Lineage, error) {
	return valueOf[Lineage](NoteOf(ctx, s, LineageNote))
}

// changeLineage reads and writes the lineage in one transaction, because another process may change it, too.
func changeLineage(tx Tx, change func(l *Lineage)) error {
	l, err := valueOf[Lineage](tx.Note(LineageNote))
	if err != nil {
		return err
	}
	change(&l)
	return tx.PutNote(l.Note())
}

// Note returns the note that holds the lineage.
func (l *Lineage) Note() Note { return Note{LineageNote, Encode(l)} }

// Descend notes that a ledger descends from another one, up to this commit of the other.
func (l *Lineage) Descend(id string, commits uint64) {
	if a := l.ancestor(id); a != nil {
		a.Commits = max(a.Commits, commits)
	} else {
		l.Ancestors = append(l.Ancestors, Ancestor{id, commits})
	}
}

func (l *Lineage) ancestor(id string) *Ancestor {
	if i := slices.IndexFunc(l.Ancestors, func(a Ancestor) bool { return a.ID == id }); i >= 0 {
		return &l.Ancestors[i]
	}
	return nil
}

// RefuseHalfAdopted returns an error, for runs and for other lists, if the adoption of a list was cut off.
func RefuseHalfAdopted(ctx context.Context, s Store) error {
	l, err := LineageOf(ctx, s)
	if err != nil || l.Adopting == nil {
		return err
	}
	return halfAdopted(s, l.Adopting.Words,
		"lacks leads of a list: leadferry checkpoint adopt was stopped before the end of the list")
}

func halfAdopted(s Store, list []string, text string) error {
	path, words := s.Info().Path, strings.Join(Map(list, shell.Word), " ")
	return Refuse(path, ErrHalfAdopted, text, "run it again: "+adopt(words, path, nil)+
		"; leadferry checkpoint check --accept-loss --checkpoint "+shell.Path(path)+" gives the list up")
}

// TakeOlder accepts a ledger that is older than known, that was copied to moved, or that a person calls a backup: it
// becomes incomplete and gets a new ID. answer is the ID that the refusal printed; took is false if it is another one.
func TakeOlder(ctx context.Context, s Store, ws *Witnesses, answer, moved string) (took bool, err error) {
	v, err := Judge(ctx, s, ws, false, nil)
	if err != nil {
		return false, err
	}
	want, missing := s.Info().ID, "leads that were made after this copy was taken"
	switch {
	case len(v.Older) > 0:
		want = AnswerID(ids(v.Older))
	case moved != "":
		missing = "leads that " + moved + " got after the copy"
	}
	if answer != want {
		return false, nil
	}
	if len(v.Older) == 0 && moved == "" { // only a person says that it is a backup, perhaps of another database than this
		if runs, err := s.UnderWay(ctx); err != nil || len(runs) > 0 {
			return false, cmp.Or(err, Refuse(s.Info().Path, ErrLocked, "a run uses it",
				"wait until all have ended (leadferry checkpoint workers); after a kill, for 15 minutes"))
		}
	}
	err = Renew(ctx, s, missing, v.Older)
	return err == nil, err
}

// Renew makes a ledger usable that lacks something: it becomes incomplete, gets a new ID, and has newer ancestors.
func Renew(ctx context.Context, s Store, missing string, newer []Finding) error {
	info := s.Info()
	descend := func(l *Lineage) {
		l.Machine = ""
		l.Descend(info.ID, info.Sequence)
		for i := range newer {
			l.Descend(newer[i].Witness.Ledger, newer[i].Witness.Commits)
		}
	}
	return s.Alone(ctx, func(tx Tx) error {
		return errors.Join(changeLineage(tx, descend), lack(tx, missing), tx.Renew())
	})
}

// lack marks a ledger as incomplete. It may have lost how a doubt was settled: no earlier list decides about it now.
func lack(tx Tx, missing string) error {
	err := eachDoubt(tx, func(k KeptKey) KeptKey {
		if k.Intent.Reason != ReasonIncomplete {
			in := Kept{Entry: k.Intent.Entry, Prior: k.Intent}
			in.Updated, in.Code, in.Reason = tx.Now(), 0, ReasonIncomplete
			k.Intent = in.StoredBy(tx)
		}
		return k
	})
	return errors.Join(err, tx.Lack(missing))
}

// OnThisMachine notes this machine in a checkpoint file, or refuses a file that another machine used last. machine is
// "" if this one has no ID. here: a person has moved the file to this machine. flags name its target, for the hint.
func OnThisMachine(ctx context.Context, s Store, machine string, here bool, flags []string) error {
	info := s.Info()
	if machine == "" || IsAddress(info.Path) {
		return nil
	}
	l, err := LineageOf(ctx, s)
	if err != nil {
		return err
	}
	sum := s.Digests().Sum([]byte("machine " + machine))
	this := hex.EncodeToString(sum[:8])
	switch {
	case l.Machine == this:
		return nil
	case l.Machine != "" && !here:
		return Refuse(info.Path, ErrOtherMachine, "was last used on another machine: two machines with one checkpoint "+
			"make leads twice",
			"stop the runs there, and rename its copy; then leadferry checkpoint check --moved-here"+
				at(info.Path, flags)+". A backup lacks later leads: "+AcceptOlder(info.ID, info.Path)+
				". Profiles of machines that take turns have one machine: NAME")
	}
	l.Machine = this
	return PutNote(ctx, s, LineageNote, Encode(l))
}

// Contents is everything that a Store knows, so that another Store can take it over.
type Contents struct {
	Secret  []byte // key of the digests
	Missing string // see [Info]; "" if nothing is missing

	// calls f with what is stored under each key, in the order of keys
	Keys      func(ctx context.Context, f func(KeptKey) error) error
	Notes     []Note // later ones replace earlier ones
	Forgotten []KeptBlock
}

// KeptBlock is what is left of a forgotten key: keyed hashes of the key and, if it differs, of its fold.
type KeptBlock struct {
	Hash, Fold []byte
	At         time.Time
}

// ContentsOf returns all that s knows; secret is the key of its digests. A ledger that takes it over descends from s.
func ContentsOf(ctx context.Context, s Store, secret []byte, forgotten []KeptBlock) (*Contents, error) {
	i := s.Info()
	l, err := LineageOf(ctx, s)
	if err != nil {
		return nil, err
	}
	l.Machine = ""
	l.Descend(i.ID, i.Sequence)
	notes, err := s.Notes(ctx, "")
	keys := func(ctx context.Context, f func(KeptKey) error) error { return s.Scan(ctx, Filter{}, f) }
	return &Contents{secret, i.Missing, keys, append(notes, l.Note()), forgotten}, err
}

// TakeOver writes what another checkpoint knows into an empty one. It takes several commits, and until the last one the
// Store must refuse runs. If it is cut off, call it again with the same contents.
func TakeOver(ctx context.Context, s Store, c *Contents) error {
	var part []KeptKey
	write := func() error {
		err := s.Alone(ctx, func(tx Tx) error { return takeOverKeys(tx, part) })
		part = part[:0]
		return err
	}
	err := c.Keys(ctx, func(k KeptKey) error {
		if part = append(part, k); len(part) < inOneChange {
			return nil
		}
		return write()
	})
	if err == nil {
		err = write()
	}
	if err != nil {
		return err
	}
	return s.Alone(ctx, c.takeOverRest)
}

func takeOverKeys(tx Tx, part []KeptKey) error {
	keys := Map(part, func(k KeptKey) string { return k.Shown().Key })
	if err := tx.Load(keys, nil); err != nil {
		return err
	}
	for i, k := range part {
		for _, one := range []**Kept{&k.Entry, &k.Intent} {
			if *one != nil {
				*one = (*one).StoredBy(tx)
			}
		}
		if err := tx.Put(keys[i], k); err != nil {
			return err
		}
	}
	return nil
}

func (c *Contents) takeOverRest(tx Tx) error {
	for _, n := range c.Notes {
		if err := tx.PutNote(n); err != nil {
			return err
		}
	}
	for _, b := range c.Forgotten {
		if err := tx.Block(b); err != nil {
			return err
		}
	}
	if c.Missing == "" {
		return nil
	}
	return lack(tx, c.Missing)
}
