package postgres

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"leadferry/checkpoint"
	"leadferry/checkpoint/postgres/server"
	"leadferry/internal/rowkey"
)

//go:embed find.sql
var findText string

// findSQL is the look-up with its columns.
var findSQL = func() string {
	nothing := []string{}
	for _, c := range columns[1:] {
		zero := "0"
		if c.kind == "text" || c.kind == "bytea" {
			zero = "''"
		}
		nothing = append(nothing, zero+"::"+c.kind)
	}
	return strings.NewReplacer("COLUMNS", columnNames("l.")+", l.seq", "NOTHING", strings.Join(nothing, ", ")+
		", 0::bigint").Replace(findText)
}()

// wanted is what is looked for in one statement, and so as of one commit.
type wanted struct {
	keys, leads, links, folds []string
	hashes, foldHashes        [][]byte // of keys and folds: they may have been forgotten
}

// found is what there is of it, and answers queries, see [checkpoint.Finder].
type found struct {
	rows              map[string]*row   // by key, also those that were found by something else
	leads             map[string]*row   // by lead ID, of those that have it
	links, folds      map[string][]*row // by ExternalID, linked or only to be, and by the fold of their key
	forgotten, folded map[string]bool   // keys, and folds of keys
}

// The columns in front of a row's.
const (
	byKey = iota
	byLead
	byLink
	byFold
	forgottenKey
	forgottenFold
)

func (q *wanted) find(c *server.Session, ledger int32) (*found, error) {
	f := &found{
		rows: make(map[string]*row, len(q.keys)), leads: map[string]*row{}, links: map[string][]*row{},
		folds: map[string][]*row{}, forgotten: map[string]bool{}, folded: map[string]bool{},
	}
	var how int16
	var by []byte
	var s stored
	err := c.Each(append([]any{&how, &by}, append(s.places(), &s.seq)...),
		func() error { return f.take(how, string(by), &s) }, findSQL, ledger, bytesOf(q.keys), cleanTexts(q.leads),
		cleanTexts(q.links), bytesOf(q.folds), q.hashes, q.foldHashes)
	return f, err
}

func bytesOf(keys []string) [][]byte {
	all := make([][]byte, len(keys))
	for i, key := range keys {
		all[i] = []byte(key)
	}
	return all
}

func cleanTexts(list []string) []string {
	all := make([]string, len(list))
	for i, s := range list {
		all[i] = checkpoint.Clean(s)
	}
	return all
}

// take notes a row of the answer: which name found it, and which value of that name.
func (f *found) take(how int16, by string, s *stored) (err error) {
	switch how {
	case forgottenKey:
		f.forgotten[by] = true
		return nil
	case forgottenFold:
		f.folded[by] = true
		return nil
	}
	r := f.rows[string(s.key)]
	if r == nil {
		if r, err = s.row(); err != nil {
			return err
		}
		f.rows[r.key] = r
	}
	switch name := checkpoint.Restore(by); {
	case how == byLead && r.lead() == name:
		f.leads[name] = r
	case how == byLink && r.linked(name) && !slices.Contains(f.links[name], r):
		f.links[name] = append(f.links[name], r)
	case how == byFold:
		f.folds[by] = append(f.folds[by], r)
	}
	return nil
}

// row is what is stored under a key.
func (f *found) row(key string) *row {
	if r := f.rows[key]; r != nil {
		return r
	}
	return &row{key: key, forgotten: f.forgotten[key]}
}

// Show fills out with what look-ups show of a key. What was seen is not to change, so Content is copied.
func (f *found) Show(key string, out *checkpoint.Entry) error {
	room := out.Content[:0]
	if *out = f.row(key).visible().Entry; out.Content != nil {
		out.Content = append(room, out.Content...)
	}
	return nil
}

// OwnerOf is the key that has a lead, or nothing.
func (f *found) OwnerOf(lead string) (string, error) {
	if owner := f.leads[lead]; owner != nil {
		return owner.key, nil
	}
	return "", nil
}

// Linked is the key whose lead has the ExternalID, or is to have it, or says that there are several.
func (f *found) Linked(external string) (key string, several bool, err error) {
	linked := f.links[external]
	if len(linked) > 0 {
		key = linked[0].key
	}
	return key, len(linked) > 1, nil
}

// Folding are known keys that fold so and are not their own fold.
func (f *found) Folding(folded string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, r := range f.folds[folded] {
			if !yield(r.key) {
				return
			}
		}
	}
}

// WasForgotten says whether a key that was forgotten folds so.
func (f *found) WasForgotten(folded string) bool { return f.folded[folded] }

// Find looks for leads in one statement, see [checkpoint.Store].
func (s *Store) Find(ctx context.Context, qs []checkpoint.Query, out []checkpoint.Entry, how []checkpoint.Match) error {
	w := &wanted{}
	for i := range qs {
		s.wantQuery(w, &qs[i])
	}
	var f *found
	err := s.read(ctx, func(c *server.Session) (err error) {
		f, err = w.find(c, s.ledger)
		return err
	})
	if err != nil {
		return err
	}
	for _, r := range f.rows {
		s.seen.put(r)
	}
	return checkpoint.Find(f, qs, out, how)
}

// want asks for a key, and for the owner of a lead unless that is empty.
func (s *Store) want(w *wanted, key, lead string) {
	w.keys, w.hashes = append(w.keys, key), append(w.hashes, s.digests.Blocked(key))
	if lead != "" {
		w.leads = append(w.leads, lead)
	}
}

// wantQuery adds what a query asks for.
func (s *Store) wantQuery(w *wanted, q *checkpoint.Query) {
	s.want(w, q.Key, q.LeadID)
	if q.ExternalID != "" {
		w.links = append(w.links, q.ExternalID)
	}
	folded := rowkey.Fold(q.Key)
	if q.Alike == nil || folded == "" {
		return
	}
	if folded != q.Key {
		s.want(w, folded, "")
	}
	w.folds, w.foldHashes = append(w.folds, folded), append(w.foldHashes, s.digests.Blocked(folded))
}

// Under is what is stored under a key, see [checkpoint.Store].
func (s *Store) Under(ctx context.Context, key string) (k checkpoint.KeptKey, err error) {
	err = s.read(ctx, func(c *server.Session) error {
		f, err := (&wanted{keys: []string{key}}).find(c, s.ledger)
		k = f.row(key).KeptKey
		return err
	})
	return k, err
}

// pageRows is how many rows are read at a time when all are read.
const pageRows = 2048

// Scan calls f with what is stored under each key, see [checkpoint.Store].
func (s *Store) Scan(ctx context.Context, which checkpoint.Filter, f func(checkpoint.KeptKey) error) error {
	for last, more := []byte{}, true; more; {
		page, err := s.page(ctx, which.State, last)
		for i := 0; i < len(page) && err == nil; i++ {
			err = f(page[i].KeptKey)
			last = []byte(page[i].key)
		}
		if err != nil {
			return err
		}
		more = len(page) == pageRows
	}
	return nil
}

// page are the next rows after a key: those in a state, or, of [checkpoint.Unknown], all of which anything is known.
// One in a state that this version does not know is an error, and is not passed over.
func (s *Store) page(ctx context.Context, state checkpoint.State, after []byte) (page []*row, err error) {
	err = s.read(ctx, func(c *server.Session) error {
		page = page[:0]
		var one stored
		return c.Each(append(one.places(), &one.seq), func() error {
			r, err := one.row()
			page = append(page, r)
			return err
		}, `SELECT `+columnNames("l.")+`, l.seq FROM leadferry.lead_rows l
			WHERE l.ledger = $1 AND l.key > $2 AND l.state <> 0 AND $3::smallint IN (0, l.state)
			ORDER BY l.ledger, l.key LIMIT $4`, s.ledger, after, int16(state), pageRows)
	})
	return page, err
}

// notes are those whose names meet a condition.
func (s *Store) notes(c *server.Session, which string, arg any) ([]checkpoint.Note, error) {
	return server.All(c, pgx.RowToStructByPos[checkpoint.Note], `SELECT name, value FROM leadferry.notes
		WHERE ledger = $1 AND `+which+` ORDER BY name`, s.ledger, arg)
}

// beginSo says of a note that its name begins with a text.
const beginSo = `starts_with(name, $2)`

// Notes returns those whose names begin so, see [checkpoint.Store].
func (s *Store) Notes(ctx context.Context, prefix string) (all []checkpoint.Note, err error) {
	err = s.read(ctx, func(c *server.Session) error {
		all, err = s.notes(c, beginSo, prefix)
		return err
	})
	return all, err
}

// Info says what the ledger is and how much it knows now; of a server that does not answer, what
// it knew when it was asked last.
func (s *Store) Info() checkpoint.Info {
	i := checkpoint.Info{
		Path: s.at.Name, ID: s.id, Target: s.target, New: s.fresh,
		Incomplete: s.missing != "", Missing: s.missing, Since: s.since,
	}
	n := make([]int, checkpoint.Forgotten)
	err := s.read(context.Background(), func(c *server.Session) error {
		return c.One(`SELECT leadferry.counted($1), coalesce(max(seq), 0) FROM leadferry.workers WHERE ledger = $1`,
			s.ledger).Scan(&n, &i.Sequence)
	})
	if known := s.last.Load(); err != nil && known != nil {
		last := *known
		last.Sequence = max(last.Sequence, s.seq.Load())
		return last
	}
	i.Keys = map[checkpoint.State]int{}
	for at, keys := range n {
		i.Keys[checkpoint.State(at+1)] = keys
	}
	i.Leads, i.InDoubt = n[0]+n[1], n[3]
	i.Sequence = cmp.Or(s.seq.Load(), i.Sequence) // others go on, and a witness is of what a run has made itself
	s.last.Store(&i)
	return i
}

// Reached says how far the ledger knows a run to have come, see [checkpoint.Store]: as a worker, or, of a command, at
// all.
func (s *Store) Reached(ctx context.Context, run string) (commits uint64, knows bool, err error) {
	err = s.read(ctx, func(c *server.Session) error {
		return c.One(`SELECT coalesce(max(seq) FILTER (WHERE run = $2), max(seq), 0),
				EXISTS (SELECT FROM leadferry.notes WHERE ledger = $1 AND name = $3)
			FROM leadferry.workers WHERE ledger = $1`, s.ledger, checkpoint.Clean(run), checkpoint.RunNote(run)).
			Scan(&commits, &knows)
	})
	return commits, knows, err
}

// Progress is how far this worker is, see [checkpoint.Store]. What others do meanwhile it does not count.
func (s *Store) Progress() (commits uint64, leads int) {
	if known := s.last.Load(); known != nil {
		leads = known.Leads + known.InDoubt
	}
	if s.claimed.Load() {
		leads = max(leads, 1)
	}
	return s.seq.Load(), leads
}

// AtEnd has f called when the use has ended in order, see [checkpoint.Store].
func (s *Store) AtEnd(f func(left string)) { s.atEnd = f }

// checkSQL finds out whether the counts of workers, and the owners of leads, fit the rows.
//
//go:embed check.sql
var checkSQL string

// Check looks through every row, the owners of leads and the counts. What is wrong is [checkpoint.ErrDamaged].
func (s *Store) Check(ctx context.Context) error {
	err := s.Scan(ctx, checkpoint.Filter{}, func(checkpoint.KeptKey) error { return nil })
	if err != nil {
		return err
	}
	if s.o.ReadOnly { // else it was asked when it was opened
		if err := s.asBefore(); errors.Is(err, checkpoint.ErrRolledBack) {
			return err
		}
	}
	var miscounted bool
	var lost int
	err = s.read(ctx, func(c *server.Session) error { return c.One(checkSQL, s.ledger).Scan(&miscounted, &lost) })
	what := ""
	switch {
	case err != nil:
		return err
	case miscounted:
		what = "its keys are not as its workers have counted them"
	case lost != 0:
		what = fmt.Sprint(lost, " leads are not found by their ID")
	default:
		return nil
	}
	return s.refuse(checkpoint.ErrDamaged, "is not in order: "+what,
		"keep it as it is, export what it knows with leadferry checkpoint export, and report this")
}
