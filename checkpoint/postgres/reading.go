package postgres

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"leadferry/checkpoint"
)

// wanted is what one statement looks for, so all of it as of one commit. All folds are also in keys, in this order.
type wanted struct{ keys, leads, links, folds []string }

// found has the rows that [Store.find] found. It answers queries, see [checkpoint.Finder].
type found struct {
	rows   map[string]*row                      // by key, also rows that were found by something else
	owners map[string]string                    // the key of each lead
	by     [forgottenFold + 1]map[string][]*row // by kind and value of what they were found by
}

// The first column of an answer: what the row was found by. Forgotten keys have no row.
const (
	byKey = iota
	byLead
	byLink // an ExternalID that the key owns
	byFold // the fold of the key
	forgottenKey
	forgottenFold
)

func (s *Store) find(q *wanted) (*found, error) {
	f := &found{rows: make(map[string]*row, len(q.keys)), owners: map[string]string{}}
	for i := range f.by {
		f.by[i] = map[string][]*row{}
	}
	var how int16
	var by []byte
	var one stored
	hashes, at := checkpoint.Map(q.keys, s.digests.Blocked), 0
	hashOf := func(fold string) []byte {
		for q.keys[at] != fold {
			at++
		}
		return hashes[at]
	}
	err := s.conn.Each(append([]any{&how, &by}, one.places()...),
		func() error { return f.take(how, string(by), &one) }, statement("find"), s.ledger, bytesOf(q.keys),
		checkpoint.Map(q.leads, checkpoint.Clean), checkpoint.Map(q.links, checkpoint.Clean), bytesOf(q.folds),
		hashes, checkpoint.Map(q.folds, hashOf))
	return f, err
}

func bytesOf(keys []string) [][]byte {
	return checkpoint.Map(keys, func(key string) []byte { return []byte(key) })
}

// take notes a row of the answer, unless its key has given up the lead or ExternalID that it was found by.
func (f *found) take(how int16, by string, s *stored) (err error) {
	var r *row
	if how < forgottenKey {
		if r = f.rows[string(s.key)]; r == nil {
			if r, err = s.row(); err != nil {
				return err
			}
			f.rows[r.key] = r
		}
	}
	switch how {
	case byKey:
		return nil
	case byLead:
		if r.lead() == checkpoint.Restore(by) {
			f.owners[r.lead()] = r.key
		}
		return nil
	case byLink:
		if by = checkpoint.Restore(by); !r.OwnsLink(by) || slices.Contains(f.by[how][by], r) {
			return nil
		}
	}
	f.by[how][by] = append(f.by[how][by], r)
	return nil
}

func (f *found) row(key string) *row {
	if r := f.rows[key]; r != nil {
		return r
	}
	return &row{key: key, forgotten: f.by[forgottenKey][key] != nil}
}

// Show fills out with what look-ups show of a key. It copies Content, since rows in the cache must not change.
func (f *found) Show(key string, out *checkpoint.Entry) error {
	*out = f.row(key).visible().Entry
	out.Content = slices.Clone(out.Content)
	return nil
}

func (f *found) Owner(lead, _ string) (key string, err error) { return f.owners[lead], nil }

func (f *found) LinkOwners(external, _ string) (keys []string, err error) {
	for _, r := range f.by[byLink][external] {
		keys = append(keys, r.key)
	}
	return keys, nil
}

func (f *found) Alike(folded string) (keys []string, forgotten bool) {
	for _, r := range f.by[byFold][folded] {
		keys = append(keys, r.key)
	}
	return keys, f.by[forgottenFold][folded] != nil
}

// Find looks for leads in one statement, see [checkpoint.Store].
func (s *Store) Find(ctx context.Context, qs []checkpoint.Query) error {
	w := &wanted{}
	for i := range qs {
		q := &qs[i]
		w.keys, w.leads = append(w.keys, q.Key), append(w.leads, q.LeadID)
		w.links = append(w.links, q.ExternalID)
		if q.Alike == nil {
			continue
		}
		own, external := q.Folds()
		for _, folded := range [2]string{own, external} {
			if folded == "" {
				continue
			}
			if w.folds = append(w.folds, folded); folded != q.Key || folded == external {
				w.keys = append(w.keys, folded)
			}
		}
	}
	var f *found
	err := s.read(ctx, func() (err error) {
		if f, err = s.find(w); err != nil {
			return err
		}
		for _, r := range f.rows {
			s.cache(r)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return checkpoint.Find(f, qs)
}

// Scan calls f with what is stored under each key, see [checkpoint.Store]. A row in an unknown state is an error.
func (s *Store) Scan(ctx context.Context, which checkpoint.Filter, f func(checkpoint.KeptKey) error) error {
	for from, more := []byte(which.From), true; more; {
		var page []*row
		err := s.read(ctx, func() error {
			page = page[:0]
			var one stored
			return s.conn.Each(one.places(), func() error {
				r, err := one.row()
				page = append(page, r)
				return err
			}, statement("scan"), s.ledger, from, int16(which.State), 2048)
		})
		for i := 0; i < len(page) && err == nil; i++ {
			from = append([]byte(page[i].key), 0) // the next key
			if shown := page[i].Shown(); shown != nil && (which.State == 0 || shown.State == which.State) {
				err = f(page[i].KeptKey)
			}
		}
		if err != nil {
			return err
		}
		more = len(page) > 0
	}
	return nil
}

const notesSQL = `SELECT name, value FROM leadferry.notes WHERE ledger = $1 AND starts_with(name, $2) ORDER BY name`

// Notes returns the notes whose names have a prefix, see [checkpoint.Store].
func (s *Store) Notes(ctx context.Context, prefix string) ([]checkpoint.Note, error) {
	return rowsOf[checkpoint.Note](ctx, s, notesSQL, s.ledger, prefix)
}

// Info says what the ledger is and how much it knows. If the server does not answer, it repeats the last Info.
func (s *Store) Info() checkpoint.Info {
	_ = s.readInfo()
	last := *s.last.Load()
	last.Sequence = max(last.Sequence, s.seq.Load())
	return last
}

func (s *Store) readInfo() error {
	i := checkpoint.Info{
		Path: s.Name, ID: s.id, Target: s.target, New: s.fresh,
		Incomplete: s.missing != "", Missing: s.missing, Since: s.since, Beside: s.beside,
	}
	i.WarnOfLoss()
	n := make([]int, checkpoint.Forgotten)
	err := s.queryRow(context.Background(), []any{&n, &i.Sequence, &i.Moved}, `SELECT leadferry.counted($1),
		(SELECT coalesce(max(seq), 0) FROM leadferry.workers WHERE ledger = $1), moved_to
		FROM leadferry.ledgers WHERE ledger = $1`, s.ledger)
	if err != nil {
		return err
	}
	i.Keys = map[checkpoint.State]int{}
	for at, keys := range n {
		i.Keys[checkpoint.State(at+1)] = keys
	}
	i.Leads, i.InDoubt = n[0]+n[1], n[3]
	i.Sequence = cmp.Or(s.seq.Load(), i.Sequence) // a witness knows only the commits of its own run
	s.last.Store(&i)
	return nil
}

// Reached returns the last commit of a run, and whether the ledger knows it, see [checkpoint.Store].
func (s *Store) Reached(ctx context.Context, run string) (commits uint64, knows bool, err error) {
	err = s.queryRow(ctx, []any{&commits, &knows}, `SELECT coalesce(max(seq) FILTER (WHERE run = $2), max(seq), 0),
			EXISTS (SELECT FROM leadferry.notes WHERE ledger = $1 AND name = $3)
		FROM leadferry.workers WHERE ledger = $1`, s.ledger, checkpoint.Clean(run), checkpoint.RunNote(run))
	return commits, knows, err
}

// Progress says how far this worker is, see [checkpoint.Store]. Its counts are those of the last Info.
func (s *Store) Progress() (commits uint64, leads, freed int) {
	leads, freed = s.last.Load().Counted()
	return s.seq.Load(), leads, freed
}

// Attest makes a witness note each commit and the orderly end, see [checkpoint.Store].
func (s *Store) Attest(t *checkpoint.Testimony) { s.testimony.Store(t) }

// Check checks every row, the owners of leads and the counts. If something is wrong, it is [checkpoint.ErrDamaged], or
// ErrRolledBack if the server has lost something.
func (s *Store) Check(ctx context.Context) error {
	err := s.Scan(ctx, checkpoint.Filter{}, func(checkpoint.KeptKey) error { return nil })
	if err != nil {
		return err
	}
	if s.o.ReadOnly { // otherwise Open has done this
		if err := s.read(ctx, s.refuseLosses); errors.Is(err, checkpoint.ErrRolledBack) {
			return err
		}
	}
	var what string
	if err := s.queryRow(ctx, []any{&what}, statement("check"), s.ledger); err != nil || what == "" {
		return err
	}
	return s.Refuse(checkpoint.ErrDamaged, "is not in order: "+what,
		"keep it as it is, export what it knows with leadferry checkpoint export, and report this")
}
