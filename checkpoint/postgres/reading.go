package postgres

import (
	"context"
	_ "embed"
	"fmt"
	"iter"
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
	f := &found{
		rows: make(map[string]*row, len(q.keys)), leads: map[string]*row{}, links: map[string][]*row{},
		folds:  map[string][]*row{},
		hashes: map[string]bool{}, folded: map[string]bool{},
	}
	rows, err := c.Query(context.Background(), findSQL, ledger, bytesOf(q.keys), cleanTexts(q.leads),
		cleanTexts(q.links), bytesOf(q.folds), q.hashes, q.foldHashes)
	if err != nil {
		return nil, err
	}
	var how int16
	var by []byte
	var s stood
	_, err = pgx.ForEachRow(rows, append([]any{&how, &by}, s.fields()...),
		func() error { return f.take(how, string(by), &s) })
	return f, err
}

func cleanTexts(list []string) []string {
	all := make([]string, len(list))
	for i, s := range list {
		all[i] = checkpoint.Clean(s)
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
	}
	r := f.rows[string(s.key)]
	if r == nil {
		if r, err = s.row(); err != nil {
			return err
		}
		f.rows[r.key] = r
	}
	switch lead := checkpoint.Restore(by); {
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
	var names []string
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

// row is what is stored under a key.
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
	s.seen.put(slices.Collect(maps.Values(f.rows))...)
	return checkpoint.Find(&answers{f, s}, qs, out, how)
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

// answers are what was found for queries, see [checkpoint.Finder].
type answers struct {
	*found
	s *Store
}

// Show fills out with what look-ups show of a key. What was seen is not to change, so Content is copied.
func (f *answers) Show(key string, out *checkpoint.Entry) error {
	var hash []byte
	if len(f.hashes) > 0 && f.rows[key] == nil {
		hash = f.s.digests.Blocked(key)
	}
	room := out.Content[:0]
	if *out = f.row(key, hash).visible().Entry; out.Content != nil {
		out.Content = append(room, out.Content...)
	}
	return nil
}

// OwnerOf is the key that has a lead, or nothing.
func (f *answers) OwnerOf(lead string) (string, error) {
	if owner := f.leads[lead]; lead != "" && owner != nil {
		return owner.key, nil
	}
	return "", nil
}

// Linked is the key whose lead has the ExternalID, or is to have it, or says that there are several.
func (f *answers) Linked(external string) (key string, several bool, err error) {
	linked := f.links[external]
	if len(linked) > 0 {
		key = linked[0].key
	}
	return key, len(linked) > 1, nil
}

// Folding are known keys that fold so and are not their own fold.
func (f *answers) Folding(folded string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, r := range f.folds[folded] {
			if !yield(r.key) {
				return
			}
		}
	}
}

// WasForgotten says whether a key that was forgotten folds so.
func (f *answers) WasForgotten(folded string) bool {
	return len(f.folded) > 0 && f.folded[string(f.s.digests.Blocked(folded))]
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

// page are the next rows after a key.
func (s *Store) page(ctx context.Context, state checkpoint.State, after []byte) (page []*row, err error) {
	where := `l.state > 0`
	if state != checkpoint.Unknown {
		where = `l.state = $4`
	}
	err = s.read(ctx, func(c *pgx.Conn) error {
		page = page[:0]
		rows, err := c.Query(ctx, `SELECT `+columnNames("l.")+`, l.seq FROM leadferry.lead_rows l
			WHERE l.ledger = $1 AND l.key > $2 AND
			`+where+` AND $4::integer >= 0 ORDER BY l.ledger, l.key LIMIT $3`, s.ledger, after, pageRows, int32(state))
		if err != nil {
			return err
		}
		var one stood
		_, err = pgx.ForEachRow(rows, one.fields(), func() error {
			r, err := one.row()
			page = append(page, r)
			return err
		})
		return err
	})
	return page, err
}

// Under is what is stored under a key, see [checkpoint.Store].
func (s *Store) Under(ctx context.Context, key string) (k checkpoint.KeptKey, err error) {
	err = s.read(ctx, func(c *pgx.Conn) error {
		f, err := (&wanted{keys: []string{key}}).find(c, s.ledger)
		if err == nil {
			k = f.row(key, nil).KeptKey
		}
		return err
	})
	return k, err
}

// Check looks through every row, the owners of leads and the counts. What is wrong is
// [checkpoint.ErrDamaged].
func (s *Store) Check(ctx context.Context) error {
	err := s.Scan(ctx, checkpoint.Filter{}, func(checkpoint.KeptKey) error { return nil })
	for _, one := range []struct{ what, sql string }{
		{"keys are not as its workers have counted them", `SELECT count(*) FROM
			(SELECT count(*) FILTER (WHERE state = 1) AS a, count(*) FILTER (WHERE state = 2) AS b, count(*) FILTER
			(WHERE state = 3) AS c,
				count(*) FILTER (WHERE state = 4) AS d, count(*) FILTER (WHERE state = 5) AS e FROM leadferry.lead_rows
				WHERE ledger = $1) x,
			(SELECT coalesce(sum(created), 0) AS a, coalesce(sum(partial), 0) AS b, coalesce(sum(rejected), 0) AS c,
				coalesce(sum(in_doubt), 0) AS d, coalesce(sum(not_made), 0) AS e FROM leadferry.workers WHERE ledger =
				$1) y
			WHERE (x.a, x.b, x.c, x.d, x.e) IS DISTINCT FROM (y.a, y.b, y.c, y.d, y.e)`},
		{"leads are not found by their ID", `SELECT count(*) FROM leadferry.lead_rows l WHERE l.ledger = $1 AND l.state
			IN (1, 2) AND l.lead_id <> ''
			AND NOT EXISTS (SELECT 1 FROM leadferry.lead_ids i WHERE i.ledger = $1 AND i.lead_id = l.lead_id AND i.key =
			l.key)`},
	} {
		var wrong int
		if err == nil {
			err = s.read(ctx, func(c *pgx.Conn) error { return c.QueryRow(ctx, one.sql, s.ledger).Scan(&wrong) })
		}
		if err == nil && wrong != 0 {
			err = s.refuse(checkpoint.ErrDamaged, fmt.Sprintf("is not in order: %d %s", wrong, one.what),
				"keep it as it is, export what it knows with leadferry checkpoint export, and report this")
		}
	}
	return err
}

const putNoteSQL = `INSERT INTO leadferry.notes AS n (ledger, name, value) VALUES ($1, $2, $3) ON CONFLICT (ledger,
	name) DO UPDATE SET value = excluded.value`

// notes are those whose names meet a condition.
func (s *Store) notes(ctx context.Context, c *pgx.Conn, which string, arg any) (all []checkpoint.Note, err error) {
	rows, err := c.Query(ctx, `SELECT name, value FROM leadferry.notes WHERE ledger = $1 AND `+which+` ORDER BY name`,
		s.ledger, arg)
	if err != nil {
		return nil, err
	}
	var name, value string
	_, err = pgx.ForEachRow(rows, []any{&name, &value}, func() error {
		all = append(all, checkpoint.Note{Name: name, Value: []byte(value)})
		return nil
	})
	return all, err
}

// beginSo says of a note that its name begins with a text.
const beginSo = `starts_with(name, $2)`

// Notes returns those whose names begin so, see [checkpoint.Store].
func (s *Store) Notes(ctx context.Context, prefix string) (all []checkpoint.Note, err error) {
	err = s.read(ctx, func(c *pgx.Conn) error {
		all, err = s.notes(ctx, c, beginSo, prefix)
		return err
	})
	return all, err
}

// newShapes are the notes of shapes that claims have and that this process has not noted yet.
func (s *Store) newShapes(changes []*checkpoint.Change) (all []checkpoint.Note) {
	var last *checkpoint.Shape
	for _, c := range changes {
		if c.Kind != checkpoint.Claim || c.Shape == last {
			continue
		}
		last = c.Shape
		if n := s.digests.ShapeNote(c.Shape); n.Name != "" && !s.shapes[n.Name] {
			all = append(all, n)
		}
	}
	return all
}
