package postgres

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"leadferry/checkpoint"
)

// alone changes the ledger in one transaction; with lock, while no worker changes any row.
func (s *Store) alone(lock bool, f func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(); err != nil {
		return err
	}
	err := error(nil)
	for n := 0; n < mostConflicts; n++ {
		if err = s.changeAlone(lock, f); !isConflict(err) && !errors.Is(err, errAgain) {
			break
		}
		if !s.troubled.IsZero() { // which is no conflict, and comes to its end by itself
			n = 0
		}
	}
	return err
}

// mostConflicts is how often a transaction is begun again that the server ended for another one.
const mostConflicts = 100

func (s *Store) changeAlone(lock bool, f func() error) error {
	return s.transact(func() (bool, error) {
		if lock {
			if _, err := s.writer.Exec(context.Background(), `LOCK TABLE leadferry.lead_rows, leadferry.lead_ids IN EXCLUSIVE MODE`); err != nil {
				return false, err
			}
			s.seen.clear()
		}
		if err := f(); err != nil {
			return false, err
		}
		return true, s.bump()
	})
}

// bump numbers a commit of the worker that is none of rows.
func (s *Store) bump() error {
	var commits uint64
	err := s.writer.QueryRow(context.Background(), `UPDATE leadferry.workers SET commits = commits + 1, seq = nextval('leadferry.commits'), beat = clock_timestamp()
		WHERE worker = $1 AND current_setting('fsync') = 'on' AND current_setting('synchronous_commit') IN ('on', 'remote_apply')
		RETURNING commits, seq`, s.worker).Scan(&commits, &s.coming)
	if errors.Is(err, pgx.ErrNoRows) {
		err = s.undurable()
	}
	if err == nil {
		err = s.follows(commits)
		s.commits = commits
	}
	return err
}

// keep stores the rows that have changed.
func (s *Store) keep(w *working, base map[string]*row) error {
	var writes []write
	for key, r := range w.rows {
		if old := base[key]; r != old {
			one := write{row: r, seen: old.seq, was: old.state()}
			if r.lead() != old.lead() {
				one.owns = r.lead()
			}
			if old.seq == 0 {
				one.hash = s.digests.Blocked(key)
			}
			writes = append(writes, one)
		}
	}
	slices.SortFunc(writes, func(a, b write) int { return strings.Compare(a.key, b.key) })
	for some := range slices.Chunk(writes, mostChanges) {
		if err := s.disown(some); err != nil {
			return err
		}
		r, err := s.send(some)
		if err != nil {
			return err
		}
		s.commits = r.commits
		s.claims.drop(maps.Keys(r.keys))
		if len(r.keys) != len(some) {
			return errors.New("rows were changed by others though they were locked")
		}
	}
	return nil
}

// Resolve settles keys in doubt, see [checkpoint.Store].
func (s *Store) Resolve(_ context.Context, ds []checkpoint.Decision) (r checkpoint.ResolveResult, err error) {
	err = s.alone(true, func() error {
		r = checkpoint.ResolveResult{}
		q := &wanted{}
		for i := range ds {
			q.keys, q.hashes = append(q.keys, ds[i].Key), append(q.hashes, s.digests.Blocked(ds[i].Key))
			if ds[i].LeadID != "" {
				q.leads = append(q.leads, ds[i].LeadID)
			}
		}
		w, base, err := s.working(q)
		if err != nil {
			return err
		}
		decided, err := w.resolve(ds, &r)
		if err == nil {
			err = s.keep(w, base)
		}
		for i := 0; i < len(decided) && err == nil; i++ {
			err = s.keepDecision(decided[i])
		}
		return err
	})
	return r, err
}

// resolve makes the decisions of a list, and returns those that are new.
func (w *working) resolve(ds []checkpoint.Decision, r *checkpoint.ResolveResult) (decided []*decision, err error) {
	list, before := checkpoint.DecisionList{}, map[int]bool{}
	for i := range ds {
		refusal := list.Unfit(&ds[i])
		if refusal == nil {
			before[i], refusal = w.reopen(&ds[i], r)
		}
		if refusal != nil {
			return nil, refusal.At(i, ds[i].Key)
		}
	}
	for i := range ds {
		if owner := w.owners[ds[i].LeadID]; ds[i].LeadID != "" && !before[i] && owner != "" {
			return nil, &checkpoint.ListError{Index: i, Key: ds[i].Key, Text: "its lead ID is known already, under another key", Hint: "one lead cannot belong to two rows: look both up again"}
		}
	}
	for i := range ds {
		if before[i] {
			continue
		}
		next := *w.rows[ds[i].Key]
		send := *next.intent
		send.Prior = nil
		decided = append(decided, &decision{Decision: ds[i], at: w.now, send: &send})
		out := ds[i].Outcome(send.Entry, w.now)
		w.conclude(&next, &out, checkpoint.Decided)
		next.worker = w.worker
		w.put(&next)
	}
	return decided, nil
}

// reopen puts a key that was decided otherwise back in doubt; before says that it was decided so
// already.
func (w *working) reopen(d *checkpoint.Decision, r *checkpoint.ResolveResult) (before bool, refusal *checkpoint.ListError) {
	row := w.rows[d.Key]
	if row.intent != nil {
		if held, _ := w.held(row); held {
			return false, &checkpoint.ListError{Text: "the worker that sent it may be at work still, and its answer may come", Hint: heldHint}
		}
		r.Settled++
		return false, d.MustBeAbout(&row.intent.Entry)
	}
	var last *checkpoint.Decision
	decided, known := w.decided[d.Key], row.visible()
	if decided != nil {
		last = &decided.Decision
	}
	before, refusal = d.Again(last, &known.Entry)
	if refusal == nil {
		refusal = d.MustBeAbout(&decided.send.Entry)
	}
	switch {
	case refusal != nil:
	case before:
		r.Before++
	default:
		r.Corrected++
		next := *row
		next.entry, next.intent = nil, decided.send.Reopened(known)
		w.put(&next)
	}
	return before, refusal
}

// heldHint is what to do about a row whose worker may still send it.
const heldHint = "wait until the run has ended; leadferry checkpoint workers shows who holds what, and since when"

func (s *Store) keepDecision(d *decision) error {
	_, err := s.putDecision(context.Background(), s.writer.Conn, d)
	return err
}

// putDecision keeps a decision under the next number.
func (s *Store) putDecision(ctx context.Context, conn *pgx.Conn, d *decision) (number int64, err error) {
	sent := int64(0)
	if !d.Sent.IsZero() {
		sent = d.Sent.UnixMilli()
	}
	var c coder
	c.whole(d.send)
	err = conn.QueryRow(ctx, `INSERT INTO leadferry.decision_rows (ledger, key, lead_id, "exists", sent, run, decided, send) VALUES ($1, $2, $3, $4, $5, $6, $7, $8) RETURNING number`,
		s.ledger, []byte(d.Key), clean(d.LeadID), d.Exists, sent, clean(d.Run), d.at.UnixMilli(), c.b).Scan(&number)
	return number, err
}

// AcceptLoss gives up what an incomplete ledger lacks, see [checkpoint.Store].
func (s *Store) AcceptLoss(context.Context) (freed int, err error) {
	err = s.alone(true, func() error {
		freed = 0
		err := s.eachDoubt(func(w *working, r *row) {
			if r.intent.Reason == checkpoint.ReasonIncomplete {
				next := *r
				next.intent, next.worker = r.intent.Prior, w.worker
				w.put(&next)
				freed++
			}
		})
		if err == nil {
			_, err = s.writer.Exec(context.Background(), `UPDATE leadferry.ledgers SET missing = '', since = 0 WHERE ledger = $1`, s.ledger)
		}
		return err
	})
	if err == nil {
		s.missing, s.since = "", 0
	}
	return freed, err
}

// eachDoubt calls f with every row in doubt, and stores what it changes.
func (s *Store) eachDoubt(f func(*working, *row)) error {
	after := []byte{}
	for {
		rows, err := s.writer.Query(context.Background(), `SELECT key FROM leadferry.lead_rows WHERE ledger = $1 AND key > $2 AND state = 4 ORDER BY key LIMIT 512`, s.ledger, after)
		if err != nil {
			return err
		}
		keys, err := collectKeys(rows)
		if err != nil || len(keys) == 0 {
			return err
		}
		after = []byte(keys[len(keys)-1])
		q := &wanted{keys: keys}
		for _, key := range keys {
			q.hashes = append(q.hashes, s.digests.Blocked(key))
		}
		w, base, err := s.working(q)
		if err != nil {
			return err
		}
		for _, key := range keys {
			f(w, w.rows[key])
		}
		if err := s.keep(w, base); err != nil {
			return err
		}
	}
}
