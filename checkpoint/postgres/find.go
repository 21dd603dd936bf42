package postgres

import (
	"context"
	_ "embed"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"leadferry/checkpoint"
	"leadferry/internal/rowkey"
)

//go:embed find.sql
var findText string

// findSQL is the look-up with its columns.
func findSQL() string {
	return strings.NewReplacer("COLUMNS", columnsOf("l")+", l.seq", "NOTHING", noColumns).Replace(findText)
}

// noColumns stand behind the key where there is nothing else.
const noColumns = `0::bigint, 0::bigint, 0::bigint, 0::smallint, 0, '', '', '', '', '', '', '', '', '', '', ''::bytea, ''::bytea, '', ''::bytea, 0::bigint`

// wanted is what is looked for in one statement, and so as of one commit.
type wanted struct {
	keys, leads, links, folds []string
	hashes, foldHashes        [][]byte // of what may have been forgotten
	brief                     bool     // folds and hashes are left out; the answer says whether they may find anything
}

// found is what there is of it.
type found struct {
	rows           map[string]*row   // by key, also those that were found by something else
	leads          map[string]*row   // by lead ID, of those that have it
	links          map[string][]*row // by ExternalID, linked or only to be
	folds          map[string][]*row
	hashes, folded map[string]bool // forgotten
	more           bool            // wanted was brief, and should not have been
}

// The columns in front of a row's.
const (
	byKey = iota
	byLead
	byLink
	byFold
	forgottenKey
	forgottenFold
	moreToFind
)

func (q *wanted) find(c *pgx.Conn, ledger int32) (*found, error) {
	f := &found{
		rows: make(map[string]*row, len(q.keys)), leads: map[string]*row{}, links: map[string][]*row{}, folds: map[string][]*row{},
		hashes: map[string]bool{}, folded: map[string]bool{},
	}
	rows, err := c.Query(context.Background(), "find", ledger, bytesOf(q.keys), cleanTexts(q.leads), cleanTexts(q.links), bytesOf(q.folds), q.hashes, q.foldHashes, q.brief)
	if err != nil {
		return nil, err
	}
	var how int16
	var by []byte
	var s stood
	_, err = pgx.ForEachRow(rows, append([]any{&how, &by}, s.fields()...), func() error { return f.take(how, string(by), &s) })
	return f, err
}

func cleanTexts(list []string) []string {
	all := make([]string, len(list))
	for i, s := range list {
		all[i] = clean(s)
	}
	return all
}

// take notes a row of the answer: by what it was found, and by which value of that.
func (f *found) take(how int16, by string, s *stood) (err error) {
	switch how {
	case forgottenKey:
		f.hashes[by] = true
		return nil
	case forgottenFold:
		f.folded[by] = true
		return nil
	case moreToFind:
		f.more = true
		return nil
	}
	r := f.rows[string(s.key)]
	if r == nil {
		if r, err = s.row(); err != nil {
			return err
		}
		f.rows[r.key] = r
	}
	switch lead := restore(by); {
	case how == byLead && r.lead() == lead:
		f.leads[lead] = r
	case how == byLink:
		f.link(r)
	case how == byFold:
		f.folds[by] = append(f.folds[by], r)
	}
	return nil
}

// link notes a row under each ExternalID by which it is found.
func (f *found) link(r *row) {
	names := r.hidden()
	for _, rec := range []*checkpoint.Kept{r.Entry, r.Intent} {
		if rec != nil {
			names = append(names, rec.ExternalID, rec.WantLink)
		}
	}
	for _, name := range names {
		if name != "" && r.linked(name) && !slices.Contains(f.links[name], r) {
			f.links[name] = append(f.links[name], r)
		}
	}
}

// row is what stands under a key.
func (f *found) row(key string, hash []byte) *row {
	if r := f.rows[key]; r != nil {
		return r
	}
	return &row{key: key, forgotten: f.hashes[string(hash)]}
}

// Find looks for leads in one statement, see [checkpoint.Store].
func (s *Store) Find(ctx context.Context, qs []checkpoint.Query, out []checkpoint.Entry, how []checkpoint.Match) error {
	w, f, err := s.look(ctx, qs)
	if err != nil {
		return err
	}
	s.seen.put(slices.Collect(maps.Values(f.rows))...)
	for i := range qs {
		var hash []byte
		if !w.brief {
			hash = w.hashes[i]
		}
		f.answer(s, &qs[i], hash, &out[i], &how[i])
	}
	return nil
}

// look asks for what queries may find. Hashes and folds are made and looked up once there is anything in the ledger for
// them to find, which hardly any has.
func (s *Store) look(ctx context.Context, qs []checkpoint.Query) (w *wanted, f *found, err error) {
	for {
		w = &wanted{brief: !s.folds.Load()}
		for i := range qs {
			s.wantQuery(w, &qs[i])
		}
		err = s.read(ctx, func(c *pgx.Conn) (err error) {
			f, err = w.find(c, s.ledger)
			return err
		})
		if err != nil || !f.more {
			return w, f, err
		}
		s.folds.Store(true)
	}
}

// answer is what a query finds, and by what. A slice in out is used again.
func (f *found) answer(s *Store, q *checkpoint.Query, hash []byte, out *checkpoint.Entry, how *checkpoint.Match) {
	room := out.Content[:0]
	var r *row
	r, *how = f.match(q, hash)
	*out = r.visible().Entry
	if out.Content != nil { // what was seen is not to change
		out.Content = append(room, out.Content...)
	}
	if *how == checkpoint.NoMatch && q.Alike != nil {
		*q.Alike = f.alike(s, q.Key)
	}
}

// want asks for a key, and for the owner of a lead unless that is empty.
func (s *Store) want(w *wanted, key, lead string) {
	w.keys = append(w.keys, key)
	if !w.brief {
		w.hashes = append(w.hashes, s.digests.Blocked(key))
	}
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
	if q.Alike == nil {
		return
	}
	folded := rowkey.Fold(q.Key)
	if folded != q.Key && folded != "" {
		w.keys = append(w.keys, folded)
	}
	if folded != "" && !w.brief {
		w.folds = append(w.folds, folded)
		w.foldHashes = append(w.foldHashes, s.digests.Blocked(folded))
	}
}

// match is the row that a query finds, and by what.
func (f *found) match(q *checkpoint.Query, hash []byte) (*row, checkpoint.Match) {
	own := f.row(q.Key, hash)
	owner := f.leads[q.LeadID]
	if q.LeadID == "" {
		owner = nil
	}
	switch state := own.state(); {
	case state.HasLead() && owner != nil && owner.key != q.Key:
		return own, checkpoint.Ambiguous
	case state.HasLead(), state == checkpoint.InDoubt, state == checkpoint.Forgotten:
		return own, checkpoint.ByKey
	case owner != nil:
		return owner, checkpoint.ByLeadID
	case q.ExternalID == "":
		return own, checkpoint.NoMatch
	}
	switch linked := f.links[q.ExternalID]; {
	case len(linked) == 0:
		return own, checkpoint.NoMatch
	case len(linked) == 1 && (q.LeadID == "" || linked[0].visible().LeadID == ""):
		return linked[0], checkpoint.ByExternalID
	}
	return own, checkpoint.Ambiguous
}

// alike is a key that looks like this one and has a lead, or may have one; else one that was
// forgotten.
func (f *found) alike(s *Store, key string) checkpoint.Likeness {
	folded := rowkey.Fold(key)
	candidates := slices.Clip(f.folds[folded])
	if same := f.rows[folded]; same != nil && folded != "" {
		candidates = append(candidates, same)
	}
	for _, r := range candidates {
		if r.key == key {
			continue
		}
		if v := r.visible(); v.State.HasLead() || v.State == checkpoint.InDoubt {
			return checkpoint.Likeness{State: v.State, File: v.File, Line: v.Line}
		}
	}
	if folded != "" && len(f.folded) > 0 && f.folded[string(s.digests.Blocked(folded))] {
		return checkpoint.Likeness{State: checkpoint.Forgotten}
	}
	return checkpoint.Likeness{}
}
