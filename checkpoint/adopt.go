package checkpoint

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
)

// AdoptResult counts the entries of a list by what was done.
type AdoptResult struct {
	Leads     int // adopted
	InDoubt   int // adopted as in doubt
	Known     int // left as they are: the ledger knows as much of them as the list, or more
	Rejected  int // left out: refused rows have no lead
	Forgotten int // left out: their keys were forgotten

	Found int // part of Leads and Known: leads that are named only by rows with [FoundLead]
}

// inOneChange is how many entries of a list one commit takes.
const inOneChange = 1 << 11

// adoption is a list of leads that is being adopted. It needs about 90 bytes of memory for each key.
type adoption struct {
	Leads
	digests *Digester
	rows    int // of the list
	keys    map[digestPrefix]listed
	owners  map[digestPrefix]digestPrefix // the key of each lead ID
	result  AdoptResult
}

// digestPrefix is the beginning of a digest; 0: nothing was digested.
type digestPrefix uint64

// listed is what is remembered of a key of the list.
type listed struct {
	lead     digestPrefix // 0 if no row of the key names one
	at       uint32       // the place in the list of the row that counts
	tells    uint8        // see Entry.tells
	ownsLead bool         // a row of the key made the lead, or names it by this key
}

// names returns the beginnings of the digests of an entry's key and of its lead ID.
func (a *adoption) names(e *Entry) (key, lead digestPrefix) {
	begin := func(sum Digest) digestPrefix { return digestPrefix(binary.LittleEndian.Uint64(sum[:])) }
	if e.LeadID != "" {
		lead = begin(a.digests.Sum([]byte(e.LeadID)))
	}
	return begin(a.digests.Sum([]byte(e.Key))), lead
}

// tells says how much an entry of a list tells of its key. 0: nothing. 1: it has a lead. 2: it may have this lead. 3:
// it has this lead. 4: it has this lead, and whether the lead is linked.
func (e *Entry) tells() uint8 {
	switch {
	case e.State == Rejected:
		return 0
	case e.State == InDoubt:
		return 2
	case e.LeadID == "":
		return 1
	case e.State == Unknown:
		return 3
	}
	return 4
}

// choose reads the list, and finds the row of each key that counts. A row with [FoundLead] may name a lead of another
// key, so it is read last and loses against all other rows.
func (a *adoption) choose() error {
	for _, all := range []bool{false, true} {
		a.rows = 0
		for e, err := range a.Entries {
			if err == nil && (all || e.Reason != FoundLead) {
				err = a.add(&e)
			}
			if err != nil {
				return err
			}
			a.rows++
		}
	}
	return nil
}

// add notes the next entry, or refuses it if it is invalid or contradicts an earlier entry.
func (a *adoption) add(e *Entry) error {
	key, lead := a.names(e)
	was, again := a.keys[key]
	owner, owned := a.owners[lead]
	text, hint := e.Unfit()
	found, other := e.Reason == FoundLead, was.lead != lead && was.lead != 0 && lead != 0
	switch {
	case text != "":
	case found && (other || owned && owner != key):
		return nil
	case other:
		text, hint = "its key has another lead ID in an earlier row", "take out the row that is wrong"
	case owned && owner != key && e.State != InDoubt:
		text, hint = "its lead ID is already in an earlier row", oneLeadHint
	}
	if text != "" {
		return inList(refusal(text, hint), a.rows, e.Key)
	}
	if lead != 0 && e.State != InDoubt {
		a.owners[lead] = key
	}
	if tells := e.tells(); !again || tells >= was.tells {
		was.at, was.tells = uint32(a.rows), tells
	}
	was.lead, was.ownsLead = cmp.Or(lead, was.lead), was.ownsLead || !found
	a.keys[key] = was
	return nil
}

type placed struct {
	Entry
	at int
}

var errListChanged = errors.New("the list is not the same any more: something else writes to it")

// pass judges the rows that count, and stores them if stores is true. Each transaction takes inOneChange of them.
func (a *adoption) pass(ctx context.Context, s Store, stores bool) error {
	a.result = AdoptResult{}
	var part []placed
	at := 0
	for e, err := range a.Entries {
		if err != nil {
			return err
		}
		key, lead := a.names(&e)
		switch was, known := a.keys[key]; {
		case !known || lead != 0 && lead != was.lead:
			if e.Reason != FoundLead {
				return errListChanged
			}
		case int(was.at) == at:
			part = append(part, placed{e, at})
		}
		if at++; len(part) == inOneChange {
			if err := a.change(ctx, s, part, stores); err != nil {
				return err
			}
			part = part[:0]
		}
	}
	if at != a.rows {
		return errListChanged
	}
	return a.change(ctx, s, part, stores)
}

func (a *adoption) change(ctx context.Context, s Store, part []placed, stores bool) error {
	if stores { // in the order of their keys, which is fastest
		slices.SortFunc(part, func(x, y placed) int { return cmp.Compare(x.Key, y.Key) })
	}
	keys := Map(part, func(e placed) string { return e.Key })
	leads, before := Map(part, func(e placed) string { return e.LeadID }), a.result
	return s.Alone(ctx, func(tx Tx) error {
		a.result = before
		err := tx.Load(keys, leads)
		for i := 0; i < len(part) && err == nil; i++ {
			err = a.take(tx, &part[i], stores)
		}
		if stores && errors.As(err, new(*ListError)) { // a row has changed since it was judged
			err = halfAdopted(s, a.Words, "has only a part of a list: then a row changed ("+err.Error()+")")
		}
		return err
	})
}

// take judges and counts an entry, and stores it if it is wanted.
func (a *adoption) take(tx Tx, e *placed, stores bool) error {
	k, old, err := tx.Under(e.Key)
	if err != nil {
		return err
	}
	owner, err := tx.Owner(e.LeadID, e.Key)
	if err != nil {
		return err
	}
	key, lead := a.names(&e.Entry)
	other, listed := a.owners[lead]
	entry, isFound, named := e.Entry, e.Reason == FoundLead, a.result.Leads+a.result.Known
	wanted, err := a.result.judge(&entry, old, owner != "" && owner != e.Key || listed && other != key)
	if isFound && !a.keys[key].ownsLead {
		a.result.Found += a.result.Leads + a.result.Known - named
	}
	switch {
	case err != nil && (a.Lenient || isFound):
		return nil
	case err != nil || !wanted || !stores:
		return inList(err, e.at, e.Key)
	}
	if isFound {
		entry.Reason = ""
	}
	k.Adopt(tx, entry, old)
	return tx.Put(e.Key, k)
}

// answers reports whether an entry of a list is the service's answer to the send that is in doubt.
func (e *Entry) answers(old *Kept) bool {
	return e.State == InDoubt && e.Reason == ReasonUnkept && e.LeadID != "" && old.State == InDoubt &&
		old.Run == e.Run && e.Run != ""
}

// judge counts an entry and reports whether to adopt it. old: what its key has now; taken: another key has its lead.
func (r *AdoptResult) judge(e *Entry, old *Kept, taken bool) (take bool, err error) {
	switch {
	case old.State == Forgotten:
		r.Forgotten++
	case e.State == Rejected:
		r.Rejected++
	case e.State != InDoubt && taken:
		return false, refusal("its lead ID belongs to another key",
			"if that key is wrong: leadferry checkpoint forget THAT-KEY, then adopt again; else "+correctHint)
	case e.answers(old) && !taken:
		r.Leads++
		return true, nil
	case e.State == InDoubt && (old.State.HasLead() || old.State == InDoubt):
		r.Known++
	case e.State == InDoubt:
		r.InDoubt++
		return true, nil
	case old.State == InDoubt && old.Reason != ReasonIncomplete:
		return false, refusal("its key is in doubt", "`leadferry checkpoint resolve` settles it")
	case !old.State.HasLead() || old.LeadID == "" && e.LeadID != "":
		r.Leads++
		return true, nil
	case e.LeadID == "" || old.LeadID == e.LeadID:
		r.Known++
	default:
		return false, refusal("its key has another lead ID already", correctHint)
	}
	return false, nil
}

// Leads is a list of leads to adopt, read from files.
type Leads struct {
	Words   []string  // of the command line, see [Adopting]
	From    []Witness // of the runs that wrote these results; with Err if nobody knows what their ledger knew
	Entries List
	Missing func() string // what their checkpoint lacked, as the files say; called after they were read
	ByHand  bool          // one of the files is neither an export nor from a run, so the number of leads proves nothing
	Lenient bool          // entries that do not fit the ledger are left out, and the list is not refused for them
}

// AdoptList stores leads that exist on the service. An entry has a key and a lead ID, and ExternalID, WantLink, Status,
// Organization and Location if they are known; state Unknown counts as Created. The lead's data are not known, so its
// Digest is zero and its first sync sends all content.
//
// Entries of an export keep their state, so no row is sent that may have been sent before: Created without a lead ID is
// a lead with an unknown ID, Partial needs its link, InDoubt stays in doubt. If a key has several entries, the entry
// that tells most counts, and the last of equal ones. InDoubt with a lead ID and [ReasonUnkept] is an answer that the
// run could not store: it settles that send. An entry with [FoundLead] is left out if another entry, or the ledger, has
// its lead under another key. Otherwise it is stored, but does not count as named by the list.
//
// A *[ListError] refuses the whole list. The reasons are an invalid lead ID, a key with two leads, a lead of two keys,
// a key in doubt that was sent, a key with another lead, and a lead of another key.
//
// The whole list is checked before anything changes. A long list needs several commits. If it is cut off, runs refuse
// the ledger until the same list, or a list that contains it, is adopted. The same list again changes nothing. If
// witnesses know of leads that the list should name and does not, the ledger becomes incomplete.
func AdoptList(ctx context.Context, s Store, ws *Witnesses, leads Leads) (r AdoptResult, err error) {
	h, err := hearingOf(ctx, s, ws)
	if err != nil {
		return r, err
	}
	old := h.lineage.Adopting
	fills := h.info.Leads+h.info.InDoubt == 0 || old != nil && old.Fills
	keep := func(tx Tx, adopting *Adopting) error {
		return changeLineage(tx, func(l *Lineage) {
			for _, a := range h.lineage.Ancestors {
				l.Descend(a.ID, a.Commits)
			}
			if adopting != nil || l.Adopting != nil && slices.Equal(l.Adopting.Words, leads.Words) {
				l.Adopting = adopting
			}
		})
	}
	mark := func(m *Adopting) error { return s.Alone(ctx, func(tx Tx) error { return keep(tx, m) }) }
	if old == nil || len(old.Keys) == 0 && slices.Equal(old.Words, leads.Words) { // nothing of it is stored
		old = nil // as long as the list is not read, only its files identify it
		if err := mark(&Adopting{Words: leads.Words, Fills: fills}); err != nil {
			return r, err
		}
	}
	a := &adoption{
		Leads: leads, digests: s.Digests(), keys: map[digestPrefix]listed{}, owners: map[digestPrefix]digestPrefix{},
	}
	if err = a.choose(); err == nil {
		err = a.pass(ctx, s, false)
	}
	if err != nil { // nothing was changed
		return r, cmp.Or(err, mark(old))
	}
	if err := RefuseHalfAdopted(ctx, s); err != nil && old != nil && !a.contains(old, leads.Words) {
		return r, err // else the other adoption has come to its end
	}
	var keys []byte
	for key, row := range a.keys {
		if row.tells > 0 { // of a lead
			keys = binary.LittleEndian.AppendUint64(keys, uint64(key))
		}
	}
	if err := mark(&Adopting{Words: leads.Words, Keys: keys, Fills: fills}); err != nil {
		return r, err
	}
	err = a.pass(ctx, s, true)
	if r = a.result; err != nil {
		return r, err
	}
	lacked := ""
	if ws != nil && !ws.Sandbox && (fills || len(leads.From) > 0) {
		if lacked, err = h.descend(ctx, leads, r, fills); err != nil {
			return r, err
		}
	}
	missing := cmp.Or(leads.Missing(), lacked)
	return r, s.Alone(ctx, func(tx Tx) error {
		if missing == "" {
			return keep(tx, nil)
		}
		return errors.Join(keep(tx, nil), tx.Lack(missing))
	})
}

// contains reports whether a list names all leads of old. If old was cut off before it was read, only words count.
func (a *adoption) contains(old *Adopting, words []string) bool {
	for one := range slices.Chunk(old.Keys, 8) {
		if a.keys[digestPrefix(binary.LittleEndian.Uint64(one))].tells == 0 {
			return false
		}
	}
	isOther := func(word string) bool { return !slices.Contains(words, word) }
	return len(old.Keys) > 0 || !slices.ContainsFunc(old.Words, isOther)
}

// descend makes other ledgers of the trunk ancestors of a ledger that took over results of runs, or that a list fills.
// It says what is missing: the others knew more leads than the list names, one of their runs did not end, they lacked
// leads themselves, a person wrote the list, or a witness cannot be read and the list fills the ledger.
func (h *hearing) descend(ctx context.Context, leads Leads, r AdoptResult, fills bool) (missing string, err error) {
	all := slices.Concat(h.ws.All(), h.info.Beside, leads.From)
	named := r.Leads + r.InDoubt - r.Found
	if fills { // otherwise Known may include leads that this ledger made itself
		named += r.Known
	}
	// the latest witness of each ledger first
	slices.SortStableFunc(all, func(a, b Witness) int { return cmp.Compare(b.Commits, a.Commits) })
	for _, w := range all {
		f, err := h.compare(ctx, &w)
		isIts := func(o Witness) bool { return o.Ledger == w.Ledger }
		switch {
		case err != nil:
			return "", err
		case f == nil || h.answered(f) && !slices.ContainsFunc(leads.From, isIts) || w.Err != nil && !fills:
			continue
		case w.Err != nil:
			missing = "leads that may be known to " + w.Source + ", which is missing or cannot be read"
			continue
		}
		is := func(a Ancestor) bool { return a.ID == w.Ledger && a.Commits >= w.Commits }
		heir := func(o Witness) bool { return o.knows() && slices.ContainsFunc(o.Ancestors, is) }
		younger := slices.ContainsFunc(all, heir)
		if !younger { // else the younger ledger has these leads, too
			named -= w.Leads
		}
		if !younger && len(leads.From) == 0 {
			named += w.Freed
		}
		if !younger && (w.Open || w.Lacks || leads.ByHand || named < 0) {
			missing = fmt.Sprintf("leads that the checkpoint %s knew and the list does not name by the keys "+
				"that made them: %s", w.Place, w.knew())
		}
		h.ws.remember([]Finding{*f}) // this ledger has not noted the kinds of files that the witness names
		if w.Ledger != h.info.ID {
			h.lineage.Descend(w.Ledger, w.Commits)
		}
	}
	return missing, nil
}

// completed returns e, which has no lead ID yet, with what a list says of its lead.
func (e Entry) completed(by *Entry) Entry {
	e.LeadID, e.State = by.LeadID, Created
	e.ExternalID, e.Status = cmp.Or(e.ExternalID, by.ExternalID), cmp.Or(e.Status, by.Status)
	e.Organization, e.Location = cmp.Or(e.Organization, by.Organization), cmp.Or(e.Location, by.Location)
	if e.WantLink != "" && e.ExternalID != e.WantLink {
		e.State = Partial
	}
	return e
}
