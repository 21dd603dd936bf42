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

// alone changes the ledger in one transaction; with lock, while no worker changes any row of it.
func (s *Store) alone(lock bool, f func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(); err != nil {
		return err
	}
	return s.insist(func() error { return s.changeAlone(lock, f) })
}

func (s *Store) changeAlone(lock bool, f func() error) error {
	return s.transact(func() (bool, error) {
		if lock {
			if _, err := s.writer.Exec(context.Background(), `SELECT pg_advisory_xact_lock($1, $2)`, deciding, s.ledger); err != nil {
				return false, err
			}
			s.seen.clear()
			if err := s.notMoved(); err != nil {
				return false, err
			}
		}
		if err := f(); err != nil {
			return false, err
		}
		return true, s.bump()
	})
}

// notMoved refuses to change what was copied to another place since this was opened: nobody would look here for it.
func (s *Store) notMoved() error {
	var moved string
	err := s.writer.QueryRow(context.Background(), `SELECT moved_to FROM leadferry.ledgers WHERE ledger = $1`, s.ledger).Scan(&moved)
	if err == nil && moved != "" && !s.o.Moved {
		err = &checkpoint.ListFailure{Err: s.moved(moved)}
	}
	return err
}

// bump numbers a commit of the worker that is none of rows.
func (s *Store) bump() error {
	var commits uint64
	err := s.writer.QueryRow(context.Background(), `UPDATE leadferry.workers SET commits = commits + 1, seq = nextval('leadferry.commits'), beat = clock_timestamp()
		WHERE worker = $1 AND `+promised+`
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
			writes = append(writes, s.writeOf(old, r))
		}
	}
	slices.SortFunc(writes, func(a, b write) int { return strings.Compare(a.key, b.key) })
	for some := range slices.Chunk(writes, mostChanges) {
		if err := s.disown(some); err != nil {
			return err
		}
		r, err := s.send(writeWhatFits, some)
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
		q := &wanted{}
		for i := range ds {
			s.want(q, ds[i].Key, ds[i].LeadID)
		}
		w, base, err := s.working(q)
		if err != nil {
			return err
		}
		if r, err = checkpoint.Resolve(&resolving{w}, ds, w.now); err == nil {
			err = s.keep(w, base)
		}
		if err == nil {
			err = s.keepNotes(w)
		}
		return err
	})
	return r, err
}

// resolving is what decisions are carried out on, see [checkpoint.Resolver].
type resolving struct{ *working }

func (r *resolving) Under(key string) (checkpoint.KeptKey, error) {
	row := r.rows[key]
	if held, _ := r.held(row); held {
		return row.KeptKey, &checkpoint.ListError{Text: heldText, Hint: heldHint}
	}
	return row.KeptKey, nil
}

func (r *resolving) Put(key string, k checkpoint.KeptKey) error {
	next := *r.rows[key]
	next.KeptKey, next.worker = k, r.worker
	r.put(&next)
	return nil
}

// heldText is why nothing is decided about a row whose worker may still send it.
const heldText = "the worker that sent it may be at work still, and its answer may come"

// heldHint is what to do about a row whose worker may still send it.
const heldHint = "wait until the run has ended; leadferry checkpoint workers shows who holds what, and since when"

// AcceptLoss gives up what an incomplete ledger lacks, see [checkpoint.Store].
func (s *Store) AcceptLoss(context.Context) (freed int, err error) {
	err = s.alone(true, func() error {
		freed = 0
		err := s.eachDoubt(func(w *working, r *row) {
			if r.Intent.Reason == checkpoint.ReasonIncomplete {
				next := *r
				next.Withdraw()
				next.worker = w.worker
				w.put(&next)
				freed++
			}
		})
		if err != nil {
			return err
		}
		tag, err := s.writer.Exec(context.Background(), `UPDATE leadferry.ledgers SET missing = '', since = 0 WHERE ledger = $1 AND since = $2`, s.ledger, int64(s.since))
		if err == nil && tag.RowsAffected() == 0 {
			err = &checkpoint.ListFailure{Err: s.refuse(checkpoint.ErrRolledBack, "has lost more since then, or somebody has given that up already", "look at it once more: leadferry checkpoint check")}
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
		q := &wanted{}
		for _, key := range keys {
			s.want(q, key, "")
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

// adoptChunk is how many entries of a list are looked up and stored at a time.
const adoptChunk = 2048

// adoption is a list on its way.
type adoption struct {
	*checkpoint.Adoption
	s     *Store
	r     checkpoint.AdoptResult
	chunk []checkpoint.Entry
	at    int // of the first of the chunk in the list
}

// Adopt takes over leads in one transaction, see [checkpoint.Store].
func (s *Store) Adopt(_ context.Context, list checkpoint.List) (checkpoint.AdoptResult, error) {
	read, err := checkpoint.ReadAdoption(list, s.Digests())
	if err != nil {
		return checkpoint.AdoptResult{}, err
	}
	a := &adoption{Adoption: read, s: s}
	err = s.alone(true, func() error {
		a.r, a.at, a.chunk = checkpoint.AdoptResult{}, 0, nil
		err := a.Each(func(_ int, e *checkpoint.Entry) error {
			if a.chunk = append(a.chunk, *e); len(a.chunk) < adoptChunk {
				return nil
			}
			return a.take()
		})
		if err != nil {
			return err
		}
		return a.take()
	})
	return a.r, err
}

// take judges the entries of the chunk and stores what they bring.
func (a *adoption) take() error {
	q := &wanted{}
	for i := range a.chunk {
		a.s.want(q, a.chunk[i].Key, a.chunk[i].LeadID)
	}
	w, base, err := a.s.working(q)
	if err != nil {
		return err
	}
	for i := range a.chunk {
		e, owner := &a.chunk[i], ""
		if e.LeadID != "" {
			owner = w.owners[e.LeadID]
		}
		take, err := a.Judge(a.at+i, e, w.rows[e.Key].visible(), owner, &a.r)
		if err != nil {
			return err
		}
		if take {
			w.adopt(*e)
		}
	}
	a.at, a.chunk = a.at+len(a.chunk), a.chunk[:0]
	return a.s.keep(w, base)
}

// adopt takes an entry of a list over.
func (w *working) adopt(e checkpoint.Entry) {
	next := *w.rows[e.Key]
	next.worker = w.worker
	corrects := next.Corrects(&e)
	if corrects {
		next.GiveUp(w)
	}
	next.Adopt(w, e, next.visible(), corrects, w.now)
	w.put(&next)
}
