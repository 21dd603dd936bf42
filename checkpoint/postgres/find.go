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
	brief                     bool     // folds and hashes are left out; the answer says whether they may find anything
}

// found is what there is of it.
type found struct {
	stood          []stood
	rows           map[string]*stood // by key, also those that were found by something else
	leads          map[string]*row   // by lead ID, of those that have it
	links          map[string][]*row // by ExternalID, linked or only to be
	folds          map[string][]*row
	hashes, folded map[string]bool // forgotten
	more           bool            // wanted was brief, and should not have been
	bad            error           // of a row that could not be read
	room           []byte
	one            row // the row that is read
	shown          checkpoint.Kept
}

// stood is a row that was found, read as far as somebody asked.
type stood struct {
	key string
	seen
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
	brief := []byte{0}
	if q.brief {
		brief[0] = 1
	}
	params := [][]byte{
		int4Param(ledger), byteStrings(q.keys), cleanTexts(q.leads), cleanTexts(q.links), byteStrings(q.folds),
		byteStrings(q.hashes), byteStrings(q.foldHashes), brief,
	}
	f := &found{
		stood: make([]stood, 0, len(q.keys)), rows: make(map[string]*stood, len(q.keys)),
		leads: map[string]*row{}, links: map[string][]*row{}, folds: map[string][]*row{}, hashes: map[string]bool{}, folded: map[string]bool{},
	}
	result := c.PgConn().ExecPrepared(context.Background(), "find", params, binaryFormat, binaryFormat)
	for result.NextRow() {
		f.take(result.Values())
	}
	if _, err := result.Close(); err != nil {
		return nil, err
	}
	return f, f.bad
}

func cleanTexts(list []string) []byte {
	a := newArray(pgtype.TextOID)
	for _, s := range list {
		a.text(clean(s))
	}
	return a.param()
}

// take notes a row of the answer.
func (f *found) take(v [][]byte) {
	switch how := binary.BigEndian.Uint16(v[0]); how {
	case forgottenKey:
		f.hashes[string(v[1])] = true
	case forgottenFold:
		f.folded[string(v[1])] = true
	case moreToFind:
		f.more = true
	default:
		s := f.rows[string(v[2])]
		if s == nil {
			s = f.add(v[2:])
		}
		if how != byKey {
			f.index(f.full(s), how, string(v[1]))
		}
	}
}

// add notes a row as it was sent.
func (f *found) add(v [][]byte) *stood {
	f.room = appendSent(f.room[:0], v)
	f.stood = append(f.stood, stood{})
	s := &f.stood[len(f.stood)-1]
	s.sent, s.seq = sent(f.room), uint64(int8Of(v[1]))
	s.key = s.sent.columns()[0]
	f.rows[s.key] = s
	return s
}

// full is a row that is read to its end.
func (f *found) full(s *stood) *row {
	if s.row == nil {
		var err error
		if s.row, err = s.sent.row(); err != nil {
			f.bad = err
		}
	}
	return s.row
}

// index notes a row under what it was found by besides its key.
func (f *found) index(r *row, how uint16, by string) {
	switch lead := restore(by); {
	case how == byLead && r.lead() == lead:
		f.leads[lead] = r
	case how == byLink:
		f.link(r)
	case how == byFold:
		f.folds[by] = append(f.folds[by], r)
	}
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
	if s := f.rows[key]; s != nil {
		return f.full(s)
	}
	return &row{key: key, forgotten: f.hashes[string(hash)]}
}

// Find looks for leads in one statement, see [checkpoint.Store].
func (s *Store) Find(ctx context.Context, qs []checkpoint.Query, out []checkpoint.Entry, how []checkpoint.Match) error {
	w, f, err := s.look(ctx, qs)
	if err != nil {
		return err
	}
	s.seen.putAll(f.stood)
	for i := range qs {
		var hash []byte
		if !w.brief {
			hash = w.hashes[i]
		}
		f.answer(s, &qs[i], hash, &out[i], &how[i])
	}
	return f.bad
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
	if own := f.rows[q.Key]; own != nil && own.row == nil && q.LeadID == "" && own.sent.decides() {
		f.shown = checkpoint.Kept{Entry: checkpoint.Entry{Content: room}}
		if err := own.sent.read(&f.one, &f.shown); err != nil {
			f.bad = err
		}
		*out, *how = f.one.visible().Entry, checkpoint.ByKey
	} else {
		var r *row
		r, *how = f.match(q, hash)
		*out = r.visible().Entry
		out.Content = append(room, out.Content...)
	}
	if len(out.Content) == 0 {
		out.Content = nil
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
	if other, slash := strings.CutPrefix(q.Key, "/"); slash {
		w.keys = append(w.keys, other)
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
		candidates = append(candidates, f.full(same))
	}
	if other, slash := strings.CutPrefix(key, "/"); slash && f.rows[other] != nil {
		if r := f.full(f.rows[other]); r.visible().File == "" {
			candidates = append(candidates, r) // a list that a person wrote has keys as the file does
		}
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
