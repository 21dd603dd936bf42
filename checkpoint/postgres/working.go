package postgres

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"leadferry/checkpoint"
)

// errUnsure says that a change needs to know more than what is at hand.
var errUnsure = errors.New("more has to be known")

// working is what one commit knows of its keys and does to them. What is not sure is what this process saw last, which
// the server compares; what is sure was read while nobody else could change it.
type working struct {
	now    time.Time
	worker int64
	base   map[string]*row   // as they were read, or seen
	rows   map[string]*row   // as they will be
	asks   map[string]string // the ExternalIDs that claims of this commit ask for, by key

	owners map[string]string // the key of each lead that is asked about, or comes to one of them

	sure  bool                  // what follows is known, too
	links map[string][]*row     // the rows of each ExternalID that is asked about
	busy  []int64               // workers that may still send what they have claimed, or be answered
	mine  func(key string) bool // this process has claimed the key and not settled it
	notes checkpoint.Noting     // what people decided
}

func (s *Store) newWorking() *working {
	return &working{
		now: s.o.Now(), worker: s.worker, base: map[string]*row{}, asks: map[string]string{},
		owners: map[string]string{},
	}
}

// guess is what this process saw last of the keys; of what is claimed and was not seen, nothing.
func (s *Store) guess(g *group) *working {
	w := s.newWorking()
	for i, c := range g.changes {
		key := g.asked[i].Key
		if r := s.seen.get(key); r != nil {
			w.base[key] = r
		} else if c.Kind == checkpoint.Claim {
			w.base[key] = &row{key: key}
		}
	}
	w.rows = maps.Clone(w.base)
	return w
}

func (w *working) Now() time.Time { return w.now }

// Keep makes a record to be stored. The server gives it its number.
func (w *working) Keep(k checkpoint.Kept) *checkpoint.Kept {
	k.Seq = 0
	return k.Stamp(w.now)
}

// Owner is the key of a lead, or nothing. As long as nothing is sure, a lead that no row of this commit comes to is
// taken to be nobody's: the server finds out.
func (w *working) Owner(lead, key string) (string, error) {
	r := w.rows[key]
	switch {
	case lead == "":
		return "", nil
	case r.lead() == lead:
		return r.key, nil
	case !w.sure && r.lead() != "": // which it gives up, perhaps to another one
		return "", errUnsure
	}
	return w.owners[lead], nil
}

// Linked is another key that has an ExternalID, or has asked for it. As long as nothing is sure there is none: the
// server finds out, except the rows of this very commit.
func (w *working) Linked(external, key string) (others []string, err error) {
	for other, r := range w.rows {
		switch {
		case other == key || !r.Linked(external):
		case !w.sure:
			return nil, errUnsure
		default:
			others = append(others, other)
		}
	}
	for _, r := range w.links[external] {
		if w.rows[r.key] == nil && r.key != key {
			others = append(others, r.key)
		}
	}
	return others, nil
}

// put has a row take the place of another one, and of its lead.
func (w *working) put(r *row) {
	if lead := w.rows[r.key].lead(); lead != r.lead() {
		if w.owners[lead] == r.key {
			delete(w.owners, lead)
		}
		if r.lead() != "" {
			w.owners[r.lead()] = r.key
		}
	}
	w.rows[r.key] = r
}

// held reports whether another worker has claimed the key and may still send its row.
func (w *working) held(r *row) bool {
	return r.Intent != nil && r.worker != w.worker && slices.Contains(w.busy, r.worker)
}

// apply makes one change, or says why it is refused; errUnsure is no refusal.
func (w *working) apply(c *checkpoint.Change) (err error) {
	r := w.rows[c.Entry.Key]
	_, asks := w.asks[c.Entry.Key] // in this commit, which the server hears of only where the claim is what remains
	if r == nil || !w.sure && (asks || r.Intent != nil && r.worker != w.worker) {
		return errUnsure
	}
	next, old := *r, r.visible()
	switch {
	case c.Kind == checkpoint.Settle:
		err = w.settle(&next, &c.Entry)
	case c.Kind == checkpoint.Claim && w.held(r):
		err = checkpoint.ErrHeld
	default:
		err = next.Apply(w, c, old, w.now)
	}
	switch {
	case err != nil:
		return err
	case c.Kind == checkpoint.Claim:
		w.asks[r.key] = c.Entry.WantLink
	case c.Kind == checkpoint.Mark && !w.sure && (!old.State.HasLead() || old.LeadID != c.Entry.LeadID):
		return errUnsure // a lead that only the input knew is taken over for sure, or not at all
	}
	if next.KeptKey != r.KeptKey {
		next.worker = w.worker
		w.put(&next)
	}
	return nil
}

func (w *working) settle(r *row, e *checkpoint.Entry) error {
	if err := e.Settleable(r.state()); err != nil {
		return err
	}
	claimed := w.sure && w.mine(r.key) && w.rows[r.key] == w.base[r.key]
	// also where another one has put it back
	own := r.Intent != nil && (r.worker == w.worker || claimed && r.Intent.Run == e.Run)
	if claimed && !own {
		if done, err := w.late(r, e); done || err != nil {
			return err
		}
	}
	if !own && w.held(r) {
		return checkpoint.ErrHeld
	}
	return r.Settle(w, e)
}

// late hears an outcome that came after a person had decided about its send, or had it sent again. It counts if nobody
// has sent the row again; what does not fit the decision is evidence against it. done: no more is to be done.
func (w *working) late(r *row, e *checkpoint.Entry) (done bool, err error) {
	d, err := checkpoint.LastDecision(w.notes, r.key)
	if err != nil {
		return false, err
	}
	if d == nil { // it was sent again although in doubt: as by a decision that the send had not been applied
		if r.Intent == nil && !r.state().HasLead() {
			return false, nil
		}
		send := checkpoint.Kept{Entry: *e, Act: checkpoint.Doubted}
		send.State, send.LeadID, send.Code, send.Reason = checkpoint.InDoubt, "", 0, ""
		one := checkpoint.Decision{Key: r.key, Run: e.Run}
		d = &checkpoint.KeptDecision{Decision: one, At: w.now, Send: w.Keep(send)}
	}
	none := d.Free()
	keep := e.State == checkpoint.InDoubt || r.Intent != nil || none && r.state() != checkpoint.NotMade
	switch {
	case e.State.HasLead() && (none || d.LeadID != "" && d.LeadID != e.LeadID):
		err = checkpoint.NoteEvidence(w.notes, *d, checkpoint.MadeAfterAll, e.LeadID, w.now)
	case e.State == checkpoint.Rejected && !none:
		err = checkpoint.NoteEvidence(w.notes, *d, checkpoint.RefusedAfterAll, "", w.now)
		keep = true
	}
	if keep {
		*e = r.visible().Entry
	}
	return keep, err
}

type write struct {
	*row
	old  *row
	asks string // the ExternalID that it was claimed with
}

func (w *working) writes() (all []write) {
	for key, r := range w.rows {
		asks := w.asks[key]
		if !r.Linked(asks) { // its claim was withdrawn in the same commit
			asks = ""
		}
		if old := w.base[key]; r != old {
			all = append(all, write{r, old, asks})
		}
	}
	slices.SortFunc(all, func(a, b write) int { return strings.Compare(a.key, b.key) })
	return all
}

// creates is how many leads the claims are to make, less the claims of this worker that come to none, also those that
// leave the doubt of an earlier send.
func (w *working) creates() int {
	n := len(w.asks)
	for key, old := range w.base {
		if old.Intent == nil || old.worker != w.worker {
			continue
		}
		r := w.rows[key]
		back := r.Intent != nil && r.Intent == old.Intent.Prior
		if state := r.state(); back || state == checkpoint.Unknown || state == checkpoint.Rejected {
			n--
		}
	}
	return n
}
