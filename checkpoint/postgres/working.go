package postgres

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/jackc/pgx/v5"

	"leadferry/checkpoint"
)

// errUnsure says that a change needs to know more than what is at hand.
var errUnsure = errors.New("more has to be known")

// working is what one commit knows of its keys and does to them. What is not sure is what this
// process saw last, which the server compares; what is sure was read for it.
type working struct {
	now     time.Time
	worker  int64
	sure    bool
	rows    map[string]*row       // as they will be
	owners  map[string]string     // sure: the key of each lead that is asked about, or nothing
	notes   map[string][]byte     // sure: those of decisions about the keys, as they will be
	before  map[string][]byte     // sure: the same as they were read
	busy    map[int64]bool        // sure: workers that may still send what they have claimed
	mine    func(key string) bool // sure: this process has claimed the key and not settled it
	settled map[string]bool       // sure: keys that this commit has settled
	links   map[string][]*row     // sure: the rows of each ExternalID that is asked about
	asks    map[string]string     // the ExternalIDs that claims of this commit ask for, by key
}

// Now is the time of the change.
func (w *working) Now() time.Time { return w.now }

// Note is one of the notes that were read.
func (w *working) Note(name string) ([]byte, error) {
	if !w.sure {
		return nil, errUnsure
	}
	return w.notes[name], nil
}

// PutNote stores a note.
func (w *working) PutNote(n checkpoint.Note) error {
	w.notes[n.Name] = n.Value
	return nil
}

// Keep is a record as it is kept. The server gives it its number.
func (w *working) Keep(k checkpoint.Kept) *checkpoint.Kept {
	k.Seq = 0
	return k.Stamp(w.now)
}

// Owner is the key of a lead, or nothing. As long as nothing is sure it is taken to be nobody's: the server finds out.
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
func (w *working) Linked(external, key string) (string, error) {
	for _, r := range w.links[external] {
		if now := w.rows[r.key]; now != nil {
			r = now
		}
		if r.key != key && r.linked(external) {
			return r.key, nil
		}
	}
	for other, r := range w.rows {
		switch {
		case other == key || !r.linked(external):
		case !w.sure:
			return "", errUnsure
		default:
			return other, nil
		}
	}
	return "", nil
}

// put makes a row stand, and its lead its own.
func (w *working) put(r *row) {
	if lead := w.rows[r.key].lead(); w.sure && lead != r.lead() {
		if w.owners[lead] == r.key {
			delete(w.owners, lead)
		}
		if r.lead() != "" {
			w.owners[r.lead()] = r.key
		}
	}
	w.rows[r.key] = r
}

// held says whether another worker may still send what it has claimed under a key.
func (w *working) held(r *row) bool {
	return r.Intent != nil && r.worker != w.worker && w.busy[r.worker]
}

// apply makes one change, or says why it is refused; errUnsure is no refusal.
func (w *working) apply(c *checkpoint.Change) error {
	if !checkpoint.ValidKey(c.Entry.Key) && c.Kind != checkpoint.Withdraw {
		return checkpoint.ErrKey
	}
	r := w.rows[c.Entry.Key]
	if r == nil || !w.sure && r.Intent != nil && r.worker != w.worker {
		return errUnsure
	}
	next := *r
	var err error
	switch c.Kind {
	case checkpoint.Claim:
		if _, again := w.asks[r.key]; again && !w.sure { // the server looks for one ExternalID of a key
			return errUnsure
		}
		err = checkpoint.ErrHeld
		if !w.held(r) {
			if err = next.Claim(w, &c.Entry, r.visible()); err == nil {
				w.asks[r.key] = c.Entry.WantLink
			}
		}
	case checkpoint.Settle:
		err = w.settle(&next, &c.Entry)
	case checkpoint.Mark:
		err = w.mark(&next, &c.Entry)
	default:
		if !w.held(r) { // that of another worker stays
			next.Withdraw()
		}
	}
	if err == nil && next.KeptKey != r.KeptKey {
		next.worker = w.worker
		w.put(&next)
	}
	return err
}

// mark notes an update. A lead that only the input knew is taken over for sure, or not at all.
func (w *working) mark(r *row, e *checkpoint.Entry) error {
	old := r.visible()
	known := old.State.HasLead() && old.LeadID == e.LeadID
	err := r.Mark(w, e, old, w.now)
	if err == nil && !known && !w.sure {
		return errUnsure
	}
	return err
}

func (w *working) settle(r *row, e *checkpoint.Entry) error {
	if err := e.Settleable(r.state()); err != nil {
		return err
	}
	claimed := w.sure && w.mine(r.key) && !w.settled[r.key]
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
	err := r.Settle(w, e)
	if err == nil && w.sure { // what comes behind it in the same commit is no late answer
		w.settled[r.key] = true
	}
	return err
}

// late hears an outcome that came after a person had decided about its send, or had it sent again. What the service
// says counts where nobody has sent the row again; what does not fit the decision is kept as evidence against it. It
// reports whether nothing else is to be done.
func (w *working) late(r *row, e *checkpoint.Entry) (done bool, err error) {
	d, err := checkpoint.LastDecision(w, r.key)
	if err != nil {
		return false, err
	}
	if d == nil {
		if r.Intent == nil && !r.state().HasLead() {
			return false, nil
		}
		d = w.sentAgain(r.key, e)
	}
	none := d.Free()
	keep := e.State == checkpoint.InDoubt || r.Intent != nil || none && r.state() != checkpoint.NotMade
	switch {
	case e.State.HasLead() && (none || d.LeadID != "" && d.LeadID != e.LeadID):
		err = checkpoint.NoteEvidence(w, *d, checkpoint.MadeAfterAll, e.LeadID, w.now)
	case e.State == checkpoint.Rejected && !none:
		err = checkpoint.NoteEvidence(w, *d, checkpoint.RefusedAfterAll, "", w.now)
		keep = true
	}
	if keep {
		*e = r.visible().Entry
	}
	return keep, err
}

// sentAgain is the decision to make a send in doubt again, whose outcome is e: that it had not been
// applied.
func (w *working) sentAgain(key string, e *checkpoint.Entry) *checkpoint.KeptDecision {
	send := checkpoint.Kept{Entry: *e, Act: checkpoint.Doubted}
	send.State, send.LeadID, send.Code, send.Reason = checkpoint.InDoubt, "", 0, ""
	return &checkpoint.KeptDecision{Decision: checkpoint.Decision{Key: key, Run: e.Run}, At: w.now, Send: w.Keep(send)}
}

// load reads what changes need to know.
func (s *Store) load(g *group) (w *working, base map[string]*row, err error) {
	q := &wanted{}
	for i := range g.asked {
		s.want(q, g.asked[i].Key, g.asked[i].LeadID)
		if external := g.asked[i].WantLink; external != "" && g.changes[i].Kind == checkpoint.Claim {
			q.links = append(q.links, external)
		}
	}
	err = s.ask(func() error {
		w, base, err = s.working(q)
		return err
	})
	return w, base, err
}

// working reads rows and the owners of leads, the decisions about them, and which workers
// may still send. Everything is read by the connection that writes.
func (s *Store) working(q *wanted) (*working, map[string]*row, error) {
	f, err := q.find(s.writer.Conn, s.ledger)
	if err != nil {
		return nil, nil, err
	}
	w := &working{
		now: s.now(), worker: s.worker, sure: true, rows: map[string]*row{}, owners: map[string]string{},
		notes: map[string][]byte{},
		busy:  map[int64]bool{}, mine: s.claims.mine, settled: map[string]bool{},
		links: f.links, asks: map[string]string{},
	}
	base := make(map[string]*row, len(q.keys))
	var names []string
	for i, key := range q.keys {
		r := f.row(key, q.hashes[i])
		w.rows[key], base[key] = r, r
		names = append(names, checkpoint.NoteOfDecisions(key))
	}
	for lead, r := range f.leads {
		w.owners[lead] = r.key
		names = append(names, checkpoint.NoteOfDecisions(r.key))
	}
	notes, err := s.notes(context.Background(), s.writer.Conn, `name = ANY ($2::text[])`, names)
	for _, n := range notes {
		w.notes[n.Name] = n.Value
	}
	w.before = maps.Clone(w.notes)
	return w, base, errors.Join(err, s.stillBusy(w.busy))
}

// stillBusy notes the other workers that may still send what they have claimed, or whose requests
// may still be applied: which have not ended, nor been silent for very long.
func (s *Store) stillBusy(workers map[int64]bool) error {
	rows, err := s.writer.Query(context.Background(), `SELECT worker FROM leadferry.workers WHERE ledger = $1 AND ended
		IS NULL
		AND beat > clock_timestamp() - greatest($2::bigint, holds_for + 60) * interval
		'1 second'`, s.ledger, int64(afterlife/time.Second))
	if err != nil {
		return err
	}
	var id int64
	_, err = pgx.ForEachRow(rows, []any{&id}, func() error {
		workers[id] = true
		return nil
	})
	return err
}

func bytesOf(keys []string) [][]byte {
	all := make([][]byte, len(keys))
	for i, key := range keys {
		all[i] = []byte(key)
	}
	return all
}
