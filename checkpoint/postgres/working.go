package postgres

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

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
	rows    map[string]*row       // as they are to stand
	owners  map[string]string     // sure: the key of each lead that is asked about, or nothing
	notes   map[string][]byte     // sure: those of decisions about the keys, as they are to stand
	before  map[string][]byte     // sure: the same as they were read
	busy    map[int64]bool        // sure: workers that may still send what they have claimed
	mine    func(key string) bool // sure: this process has claimed the key and not settled it
	settled map[string]bool       // sure: keys that this commit has settled
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

// PutNote has a note stand.
func (w *working) PutNote(n checkpoint.Note) error {
	w.notes[n.Name] = n.Value
	return nil
}

// apply makes one change, or says why it is refused; errUnsure is no refusal.
func (w *working) apply(c *checkpoint.Change) error {
	if !checkpoint.ValidKey(c.Entry.Key) && c.Kind != checkpoint.Withdraw {
		return checkpoint.ErrKey
	}
	r := w.rows[c.Entry.Key]
	if r == nil {
		return errUnsure
	}
	next := *r
	var err error
	switch c.Kind {
	case checkpoint.Claim:
		err = w.claim(&next, &c.Entry)
	case checkpoint.Settle:
		err = w.settle(&next, &c.Entry)
	case checkpoint.Mark:
		err = w.mark(&next, &c.Entry)
	default:
		err = w.withdraw(&next)
	}
	if err == nil && next.KeptKey != r.KeptKey {
		next.worker = w.worker
		w.put(&next)
	}
	return err
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

// Keep is a record as it is kept. The server gives it its number.
func (w *working) Keep(k checkpoint.Kept) *checkpoint.Kept {
	k.Seq = 0
	return k.Stamp(w.now)
}

// held says whether another worker may still send what it has claimed under a key.
func (w *working) held(r *row) (bool, error) {
	if r.Intent == nil || r.worker == w.worker {
		return false, nil
	}
	if !w.sure {
		return false, errUnsure
	}
	return w.busy[r.worker], nil
}

// free is an error unless a change of this worker may touch what is claimed.
func (w *working) free(r *row) error {
	held, err := w.held(r)
	if held {
		return checkpoint.ErrHeld
	}
	return err
}

func (w *working) claim(r *row, e *checkpoint.Entry) error {
	if err := w.free(r); err != nil {
		return err
	}
	return r.Claim(w, e, r.visible())
}

// withdraw removes an intent, or puts back the one that it came in place of. That of another
// worker stays.
func (w *working) withdraw(r *row) error {
	held, err := w.held(r)
	if err == nil && !held {
		r.Withdraw()
	}
	return err
}

func (w *working) settle(r *row, e *checkpoint.Entry) error {
	if err := e.Settleable(r.state()); err != nil {
		return err
	}
	claimed := w.sure && w.mine(r.key) && !w.settled[r.key]
	own := r.Intent != nil && (r.worker == w.worker || claimed && r.Intent.Run == e.Run) // also where another one has put it back
	if claimed && !own {
		if done, err := w.late(r, e); done || err != nil {
			return err
		}
	}
	if err := w.free(r); err != nil && !own {
		return err
	}
	err := r.Settle(w, e)
	if err == nil && w.sure { // what comes behind it in the same commit is no late answer
		w.settled[r.key] = true
	}
	return err
}

// late hears an outcome that came after a person had decided about its send, or had it sent again. What the service says counts
// where nobody has sent the row again; what does not fit the decision is kept as evidence against it. It reports whether nothing
// else is to be done.
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

// sentAgain is the decision of whoever had a send in doubt made again, whose outcome is e: that it had not been applied.
func (w *working) sentAgain(key string, e *checkpoint.Entry) *checkpoint.KeptDecision {
	send := checkpoint.Kept{Entry: *e, Act: checkpoint.Doubted}
	send.State, send.LeadID, send.Code, send.Reason = checkpoint.InDoubt, "", 0, ""
	return &checkpoint.KeptDecision{Decision: checkpoint.Decision{Key: key, Run: e.Run}, At: w.now, Send: w.Keep(send)}
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
	case !w.sure:
		return "", nil
	}
	return w.owners[lead], nil
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

// load reads what changes need to know.
func (s *Store) load(g *group) (*working, map[string]*row, error) {
	q := &wanted{}
	for i := range g.asked {
		s.want(q, g.asked[i].Key, g.asked[i].LeadID)
	}
	return s.working(q)
}

// working reads rows and the owners of leads, the last decisions about them, and which workers
// may still send. Everything is read by the connection that writes.
func (s *Store) working(q *wanted) (*working, map[string]*row, error) {
	f, err := q.find(s.writer.Conn, s.ledger)
	if err != nil {
		return nil, nil, err
	}
	w := &working{
		now: s.now(), worker: s.worker, sure: true, rows: make(map[string]*row, len(q.keys)),
		mine: s.claims.mine, owners: make(map[string]string, len(f.leads)), notes: map[string][]byte{}, busy: map[int64]bool{}, settled: map[string]bool{},
	}
	base := make(map[string]*row, len(q.keys))
	for i, key := range q.keys {
		r := f.row(key, q.hashes[i])
		w.rows[key], base[key] = r, r
		if r.Intent != nil && r.worker != s.worker {
			w.busy[r.worker] = true
		}
	}
	keys := q.keys[:len(q.keys):len(q.keys)]
	for lead, r := range f.leads {
		w.owners[lead] = r.key
		keys = append(keys, r.key)
	}
	if err := errors.Join(s.readDecisions(keys, w), s.stillBusy(w.busy)); err != nil {
		return nil, nil, err
	}
	return w, base, nil
}

// stillBusy leaves of some workers those that may still send what they have claimed, or whose
// requests may still be applied: which have not ended, nor been silent for very long.
func (s *Store) stillBusy(workers map[int64]bool) error {
	if len(workers) == 0 {
		return nil
	}
	var ids []int64
	for id := range workers {
		ids = append(ids, id)
	}
	rows, err := s.writer.Query(context.Background(), `SELECT worker FROM leadferry.workers WHERE worker = ANY ($1) AND ended IS NULL
		AND beat > clock_timestamp() - greatest($2::bigint, holds_for + 60) * interval '1 second'`, ids, int64(afterlife/time.Second))
	if err != nil {
		return err
	}
	busy, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	clear(workers)
	for _, id := range busy {
		workers[id] = true
	}
	return err
}

// readDecisions reads what was decided about keys.
func (s *Store) readDecisions(keys []string, w *working) error {
	names := make([]string, len(keys))
	for i, key := range keys {
		names[i] = checkpoint.NoteOfDecisions(key)
	}
	notes, err := s.notes(context.Background(), s.writer.Conn, `name = ANY ($2::text[])`, names)
	for _, n := range notes {
		w.notes[n.Name] = n.Value
	}
	w.before = maps.Clone(w.notes)
	return err
}

func bytesOf(keys []string) [][]byte {
	all := make([][]byte, len(keys))
	for i, key := range keys {
		all[i] = []byte(key)
	}
	return all
}

// disown takes leads from rows that have others by now, for those which come to own them.
func (s *Store) disown(writes []write) error {
	var leads []string
	var keys [][]byte
	for i := range writes {
		if w := &writes[i]; w.owns != "" {
			leads, keys = append(leads, checkpoint.Clean(w.owns)), append(keys, []byte(w.key))
		}
	}
	if leads == nil {
		return nil
	}
	_, err := s.writer.Exec(context.Background(), `UPDATE leadferry.lead_ids i SET key = w.key
		FROM unnest($2::text[], $3::bytea[]) AS w (lead_id, key) CROSS JOIN LATERAL (
			SELECT o.ctid FROM leadferry.lead_ids o WHERE o.ledger = $1 AND o.lead_id = w.lead_id AND o.key <> w.key OFFSET 0 -- see find.sql
		) at WHERE i.ctid = at.ctid AND i.key <> w.key`, s.ledger, leads, keys)
	return err
}

// keepNotes stores the notes that have changed. One that somebody else has changed meanwhile is a conflict.
func (s *Store) keepNotes(w *working) error {
	for name, value := range w.notes {
		was := w.before[name]
		if bytes.Equal(was, value) {
			continue
		}
		if value == nil {
			if _, err := s.writer.Exec(context.Background(), `DELETE FROM leadferry.notes WHERE ledger = $1 AND name = $2`, s.ledger, name); err != nil {
				return err
			}
			continue
		}
		tag, err := s.writer.Exec(context.Background(), putNoteSQL+` WHERE n.value = $4`, s.ledger, name, string(value), string(was))
		if err == nil && tag.RowsAffected() == 0 {
			err = &pgconn.PgError{Code: "40001", Message: "a note was changed meanwhile"}
		}
		if err != nil {
			return err
		}
	}
	return nil
}
