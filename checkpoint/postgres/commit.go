package postgres

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"leadferry/checkpoint"
)

// mostChanges is how many changes go into one commit: all claims and outcomes of 64 requests in flight.
const mostChanges = 256

// Commit makes changes durable, in as many commits as needed: outcomes before claims, so that a kill between two
// commits leaves no more in doubt than there are slots.
func (s *Store) Commit(_ context.Context, changes []*checkpoint.Change) error {
	sorted := slices.Clone(changes)
	slices.SortStableFunc(sorted, func(a, b *checkpoint.Change) int { return cmp.Compare(a.Entry.Key, b.Entry.Key) })
	if len(sorted) > mostChanges {
		slices.SortStableFunc(sorted, func(a, b *checkpoint.Change) int { return cmp.Compare(isClaim(a), isClaim(b)) })
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for some := range slices.Chunk(sorted, mostChanges) {
		if err := s.commit(some); err != nil {
			return err
		}
	}
	return nil
}

func isClaim(c *checkpoint.Change) int {
	if c.Kind == checkpoint.Claim {
		return 1
	}
	return 0
}

// commit applies changes to the rows that this process saw last, and the server compares these with its own. If they
// differ or are not enough, commit applies the changes again, while no other worker changes a row.
func (s *Store) commit(changes []*checkpoint.Change) error {
	if err := s.usable(); err != nil {
		return err
	}
	asked, w := s.claims.now(), s.guess(changes)
	err := w.applyAll(changes)
	if err == nil {
		err = s.store(w)
	}
	if errors.Is(err, errNeedsLock) || isOneOf(err, notAsSeen, taken, twice, isFenced, tooMany) {
		w, err = s.storeAlone(changes)
	}
	if err == nil {
		s.remember(w, changes, asked)
	}
	return err
}

// store writes the changed rows, in one transaction and one round trip.
func (s *Store) store(w *working) error {
	if maps.Equal(w.rows, w.base) {
		return nil
	}
	return s.change(func() error {
		b := &pgx.Batch{}
		b.Queue(`SELECT pg_advisory_xact_lock_shared($1, $2)`, deciding, s.ledger)
		s.number(b, slices.ContainsFunc(w.done, func(c checkpoint.Change) bool { return sends(&c) }))
		s.queue(b, w)
		return s.conn.Send(b)
	})
}

// storeAlone reads the rows that the changes need and applies them, in one transaction.
func (s *Store) storeAlone(changes []*checkpoint.Change) (*working, error) {
	q := &wanted{}
	for _, c := range changes {
		q.keys, q.leads = append(q.keys, c.Entry.Key), append(q.leads, c.Entry.LeadID)
		q.links = append(q.links, c.Entry.WantLink)
	}
	return s.alone(func(w *working) error {
		bound := func() (err error) {
			w.room, w.fenced, err = s.mayClaim()
			return err
		}
		err := inTurn(func() error { return w.read(q) }, bound, func() error { return w.applyAll(changes) })
		if err != nil {
			return err
		}
		b := &pgx.Batch{}
		s.queue(b, w)
		return s.conn.Send(b)
	})
}

// queue adds the changed rows, and the shapes of the claims, to a batch.
func (s *Store) queue(b *pgx.Batch, w *working) {
	s.spend(b, w.creates())
	w.write(b, w.changed(), false)
	var last *checkpoint.Shape
	for i := range w.done {
		shape := w.done[i].Shape
		if shape == nil || shape == last {
			continue
		}
		last = shape
		if n := s.digests.ShapeNote(shape); n.Name != "" {
			b.Queue(`INSERT INTO leadferry.notes (ledger, name, value) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`,
				s.ledger, n.Name, string(n.Value))
		}
	}
}

// remember notes that the changes are durable. asked is when their commit was asked for.
func (s *Store) remember(w *working, changes []*checkpoint.Change, asked time.Duration) {
	seq := s.seq.Load()
	for key, r := range w.rows {
		if r == w.base[key] {
			continue
		}
		r.number(seq)
		if s.cache(r); r.Intent != nil && r.worker == s.worker {
			s.claims.hold(asked, key)
		} else {
			s.claims.drop(key)
		}
	}
	for i, c := range changes {
		key := c.Entry.Key
		if c.Entry, c.Err = w.done[i].Entry, w.done[i].Err; c.Err == nil && w.rows[key] != w.base[key] {
			c.Entry.Seq = cmp.Or(c.Entry.Seq, seq)
		}
	}
}

// The codes with which the server refuses a whole transaction.
const (
	notAsSeen = "LF001" // a row, an owner or a note is not as it was seen
	isFenced  = "LF002" // the worker may claim nothing any more, see mayClaim
	tooMany   = "LF003" // the fleet may not make that many leads
	notOurs   = "LF004" // the worker's row is not as it was left
	undurable = "LF005" // the commit would be less durable than when the worker began
	taken     = "23505" // a new key is there already
	twice     = "21000" // two rows come to own one lead
)

func isConflict(err error) bool { return isOneOf(err, "40P01", "40001") }

func mayNot(err error) bool { return isOneOf(err, "42501") }

func isOneOf(err error, codes ...string) bool {
	var e *pgconn.PgError
	return errors.As(err, &e) && slices.Contains(codes, e.Code)
}

// number makes a transaction the next commit of this worker, in this session only. A fenced worker claims nothing.
func (s *Store) number(b *pgx.Batch, claims bool) {
	b.Queue(statement("number"), s.worker, s.ledger, s.session, int64(s.commits), claims).
		QueryRow(func(r pgx.Row) error { return r.Scan(&s.nextSeq, nil, nil, nil) })
}

// deciding is the first key of the advisory locks of ledgers. Commits share their ledger's lock; whatever decides about
// rows has it alone. A commit takes it in a separate statement, so that later statements see what was decided.
const deciding = 0x6C656164

// write adds to a batch the rows, the leads that they come to own, and the ExternalIDs that claims ask for. Only force
// takes a lead from another key that still owns it. Nothing takes an ExternalID from another key's lead.
func (w *working) write(b *pgx.Batch, changed []string, force bool) {
	if len(changed) == 0 {
		return
	}
	var seen []int64
	var was []int16
	var leads, asks []string
	var hashes, keys, askers [][]byte
	lists := make([][]any, len(columns))
	for _, name := range changed {
		r, old, key := w.rows[name], w.base[name], []byte(name)
		var hash []byte // of a key that is new
		if old.seq == 0 {
			hash = w.digests.Blocked(name)
		}
		seen, was, hashes = append(seen, int64(old.seq)), append(was, int16(old.state())), append(hashes, hash)
		for at, c := range columns {
			lists[at] = append(lists[at], c.of(r, r.visible()))
		}
		if lead := r.lead(); lead != "" && lead != old.lead() {
			leads, keys = append(leads, checkpoint.Clean(lead)), append(keys, key)
		}
		if wants := w.asks[name]; wants != "" && r.OwnsLink(wants) { // else its claim was withdrawn in the same commit
			asks, askers = append(asks, checkpoint.Clean(wants)), append(askers, key)
		}
	}
	if asks != nil { // before the rows are written, since the changes of this commit are judged already
		b.Queue(statement("ask"), w.ledger, asks, askers, bytesOf(changed))
	}
	args := []any{w.ledger, w.s.worker, seen, was, hashes}
	for _, list := range lists {
		args = append(args, list)
	}
	b.Queue(statement("write"), args...)
	if leads != nil {
		b.Queue(statement("own"), w.ledger, leads, keys, force)
	}
}
