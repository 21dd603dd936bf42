package postgres

import (
	"context"
	_ "embed"
	"encoding/binary"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"leadferry/checkpoint"
	"leadferry/internal/rowkey"
)

//go:embed find.sql
var findText string

// findSQL is the look-up with its columns.
func findSQL() string {
	return strings.NewReplacer("COLUMNS", columns, "NOTHING", noColumns).Replace(findText)
}

// wanted is what is looked for in one statement, and so as of one commit.
type wanted struct {
	keys, leads, links, folds []string
	hashes, foldHashes        [][]byte // of what may have been forgotten
}

// found is what there is of it.
type found struct {
	rows           map[string]*row   // by key, also those that were found by something else
	leads          map[string]*row   // by lead ID, of those that have it
	links          map[string][]*row // by ExternalID, linked or only to be
	folds          map[string][]*row
	hashes, folded map[string]bool // forgotten
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

func (q *wanted) find(c *pgx.Conn, ledger int32) (*found, error) {
	params := [][]byte{
		int4Param(ledger), byteStrings(q.keys), cleanTexts(q.leads), cleanTexts(q.links), byteStrings(q.folds),
		byteStrings(q.hashes), byteStrings(q.foldHashes),
	}
	f := &found{rows: make(map[string]*row, len(q.keys)), leads: map[string]*row{}, links: map[string][]*row{}, folds: map[string][]*row{}, hashes: map[string]bool{}, folded: map[string]bool{}}
	result := c.PgConn().ExecPrepared(context.Background(), "find", params, binaryFormat, binaryFormat)
	var bad error
	for result.NextRow() {
		if err := f.take(result.Values()); err != nil && bad == nil {
			bad = err
		}
	}
	if _, err := result.Close(); err != nil {
		return nil, err
	}
	return f, bad
}

func cleanTexts(list []string) []byte {
	a := newArray(pgtype.TextOID)
	for _, s := range list {
		a.text(clean(s))
	}
	return a.param()
}

// take notes a row of the answer.
func (f *found) take(v [][]byte) error {
	how, by := int(binary.BigEndian.Uint16(v[0])), string(v[1])
	switch how {
	case forgottenKey:
		f.hashes[by] = true
		return nil
	case forgottenFold:
		f.folded[by] = true
		return nil
	}
	r := f.rows[string(v[2])]
	if r == nil {
		var err error
		if r, err = readRow(v[2:]); err != nil {
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
	w := &wanted{}
	for i := range qs {
		s.wantQuery(w, &qs[i])
	}
	var f *found
	err := s.read(ctx, func(c *pgx.Conn) (err error) {
		f, err = w.find(c, s.ledger)
		return err
	})
	if err != nil {
		return err
	}
	for _, r := range f.rows {
		s.seen.put(r)
	}
	for i := range qs {
		var r *row
		r, how[i] = f.match(&qs[i], w.hashes[i])
		room := out[i].Content[:0]
		out[i] = r.visible().Entry
		if out[i].Content = append(room, out[i].Content...); len(out[i].Content) == 0 {
			out[i].Content = nil
		}
		if how[i] == checkpoint.NoMatch && qs[i].Alike != nil {
			*qs[i].Alike = f.alike(s, qs[i].Key)
		}
	}
	return nil
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
	if q.Alike == nil {
		return
	}
	if other, slash := strings.CutPrefix(q.Key, "/"); slash {
		w.keys = append(w.keys, other)
	}
	if folded := rowkey.Fold(q.Key); folded != "" {
		w.folds = append(w.folds, folded)
		w.foldHashes = append(w.foldHashes, s.digests.Blocked(folded))
		if folded != q.Key {
			w.keys = append(w.keys, folded)
		}
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
	candidates := f.folds[folded]
	if folded != "" {
		candidates = append(candidates[:len(candidates):len(candidates)], f.rows[folded])
	}
	if other, slash := strings.CutPrefix(key, "/"); slash && f.rows[other] != nil && f.rows[other].visible().File == "" {
		candidates = append(candidates[:len(candidates):len(candidates)], f.rows[other]) // a list that a person wrote has keys as the file does
	}
	for _, r := range candidates {
		if r == nil || r.key == key {
			continue
		}
		if v := r.visible(); v.State.HasLead() || v.State == checkpoint.InDoubt {
			return checkpoint.Likeness{State: v.State, File: v.File, Line: v.Line}
		}
	}
	if folded != "" && f.folded[string(s.digests.Blocked(folded))] {
		return checkpoint.Likeness{State: checkpoint.Forgotten}
	}
	return checkpoint.Likeness{}
}
