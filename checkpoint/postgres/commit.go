package postgres

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"leadferry/checkpoint"
)

//go:embed write.sql
var writeSQL string

// mostChanges is how many go with one statement.
const mostChanges = 128

// Patience is how long changes may gather, see [checkpoint.NewLedger]: each commit is a round trip, and one of all that wait for
// the disk of a server that has many workers.
func (s *Store) Patience() time.Duration { return 100 * time.Millisecond }

// Commit makes changes durable. It compares with the server what this process saw last; what
// does not fit is looked at again and done in a second commit.
func (s *Store) Commit(_ context.Context, changes []*checkpoint.Change) error {
	if len(changes) == 0 {
		return nil
	}
	sorted := slices.Clone(changes)
	slices.SortStableFunc(sorted, func(a, b *checkpoint.Change) int { return cmp.Compare(a.Entry.Key, b.Entry.Key) })
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(sorted) > 0 {
		n := min(len(sorted), mostChanges)
		for n < len(sorted) && sorted[n].Entry.Key == sorted[n-1].Entry.Key { // those of a key stay together
			n++
		}
		if err := s.commit(sorted[:n]); err != nil {
			return err
		}
		sorted = sorted[n:]
	}
	return nil
}

// group is what one commit is about: changes, as they were asked for.
type group struct {
	changes []*checkpoint.Change
	asked   []checkpoint.Entry
}

func newGroup(changes []*checkpoint.Change) *group {
	g := &group{changes: changes}
	for _, c := range changes {
		g.asked = append(g.asked, c.Entry)
	}
	return g
}

// apply makes the changes in what is known; false: more has to be known.
func (g *group) apply(w *working) bool {
	for i, c := range g.changes {
		c.Entry, c.Err = g.asked[i], nil
		if c.Err = w.apply(c); errors.Is(c.Err, errUnsure) {
			return false
		}
	}
	return true
}

// left are the changes of keys that were not stored.
func (g *group) left(stored map[string]bool, w *working, base map[string]*row) *group {
	rest := &group{}
	for i, c := range g.changes {
		if key := g.asked[i].Key; w.rows[key] != base[key] && !stored[key] {
			rest.changes, rest.asked = append(rest.changes, c), append(rest.asked, g.asked[i])
		}
	}
	return rest
}

func (s *Store) commit(changes []*checkpoint.Change) error {
	if err := s.usable(); err != nil {
		return err
	}
	g := newGroup(changes)
	if s.o.Terms != nil && s.o.Terms.MaxCreates > 0 { // a budget is a row of its own
		return s.surely(g)
	}
	w, base := s.guess(g)
	if !s.newShape(changes) && g.apply(w) {
		writes := w.writes(s, g, base)
		if len(writes) == 0 {
			return nil
		}
		asked := s.claims.now()
		reply, err := s.write(writes)
		if err != nil {
			return err
		}
		s.stored(g, w, reply, asked)
		if g = g.left(reply.keys, w, base); len(g.changes) == 0 {
			return nil
		}
	}
	return s.surely(g)
}

// guess is what this process saw last of the keys; of what is claimed and was not seen, nothing.
func (s *Store) guess(g *group) (*working, map[string]*row) {
	w := &working{now: s.now(), worker: s.worker, rows: make(map[string]*row, len(g.changes))}
	base := make(map[string]*row, len(g.changes))
	for i, c := range g.changes {
		key := g.asked[i].Key
		r := s.seen.get(key)
		if r == nil && c.Kind == checkpoint.Claim {
			r = &row{key: key}
		}
		if r != nil {
			w.rows[key], base[key] = r, r
		}
	}
	return w, base
}

// write is a row that is to stand.
type write struct {
	*row
	seen  uint64 // the version that it comes in place of; 0: none
	was   checkpoint.State
	claim bool   // nothing that a fenced worker may do
	owns  string // the lead that it comes to own
	hash  []byte // of a key that is new
}

// writeOf has a row stand in place of an old one.
func (s *Store) writeOf(old, r *row) write {
	w := write{row: r, seen: old.seq, was: old.state()}
	if r.lead() != old.lead() {
		w.owns = r.lead()
	}
	if old.seq == 0 {
		w.hash = s.digests.Blocked(r.key)
	}
	return w
}

// writes are the rows that have changed, ordered by key.
func (w *working) writes(s *Store, g *group, base map[string]*row) (all []write) {
	claims := make(map[string]bool)
	for i, c := range g.changes {
		key := g.asked[i].Key
		if c.Err == nil && (c.Kind == checkpoint.Claim || c.Kind == checkpoint.Mark) {
			claims[key] = true
		}
		if i > 0 && g.asked[i-1].Key == key || w.rows[key] == base[key] {
			continue
		}
		all = append(all, s.writeOf(base[key], w.rows[key]))
	}
	for i := range all {
		all[i].claim = claims[all[i].key]
	}
	return all
}

// reply is what the server says of a commit.
type reply struct {
	commits, seq uint64
	live         bool // the worker is not fenced
	keys         map[string]bool
}

// stored notes what stands now.
func (s *Store) stored(g *group, w *working, r *reply, asked time.Duration) {
	s.claims.note(w.rows, r.keys, s.worker, asked)
	for key := range r.keys {
		s.seen.put(numbered(w.rows[key], r.seq))
	}
	for i, c := range g.changes {
		if c.Err == nil && r.keys[g.asked[i].Key] && c.Entry.Seq == 0 {
			c.Entry.Seq = r.seq
		}
	}
	s.seq.Store(r.seq)
	if !s.claimed.Swap(true) { // from now on this machine knows that there is something to lose
		s.remember()
	}
}

// numbered is a row with the number of the commit that wrote it.
func numbered(r *row, seq uint64) *row {
	with := *r
	with.seq = seq
	number := func(rec *checkpoint.Kept) *checkpoint.Kept {
		if rec == nil || rec.Seq != 0 {
			return rec
		}
		n := *rec
		n.Seq = seq
		return &n
	}
	with.Entry, with.Intent = number(r.Entry), number(r.Intent)
	return &with
}

// surely makes changes by what was read for them, in a transaction that begins again as long as
// somebody else changes the same rows.
func (s *Store) surely(g *group) error {
	for n := 0; n < mostConflicts; n++ {
		done, err := s.attempt(g)
		if done || err != nil {
			return err
		}
		if !s.troubled.IsZero() { // which is no conflict, and comes to its end by itself
			n = 0
		}
	}
	return s.fail(fmt.Errorf("%d rows change all the time under other hands", len(g.changes)))
}

// attempt makes changes once; it is not done where somebody else has changed the same rows meanwhile.
func (s *Store) attempt(g *group) (done bool, err error) {
	w, base, err := s.load(g)
	if err != nil {
		_, err = s.again(err, s.commits)
		return false, err
	}
	if !g.apply(w) {
		return false, s.fail(errors.New("what was read does not tell what a change needs to know"))
	}
	writes, shapes := w.writes(s, g, base), s.shapesOf(g.changes)
	if len(writes)+len(shapes)+len(w.found) == 0 {
		return true, nil
	}
	asked := s.claims.now()
	r, beyond, err := s.store(w, writes, shapes)
	switch {
	case isConflict(err) || errors.Is(err, errAgain):
		return false, nil
	case err != nil || r == nil:
		return false, err
	}
	s.stored(g, w, r, asked)
	for _, k := range shapes {
		s.shapes[k] = true
	}
	fenced := error(nil)
	if !r.live {
		fenced = s.whyFenced(s.writer)
	}
	for i, c := range g.changes {
		if key := g.asked[i].Key; c.Err == nil && w.rows[key] != base[key] && !r.keys[key] {
			if c.Err = fenced; beyond[key] && r.live {
				c.Err = checkpoint.ErrEnough
			}
		}
	}
	return true, nil
}

// store makes rows stand in a transaction of their own, and what was found and noted with them. beyond are the keys of rows that
// are left out, since the fleet may make no more leads. There is no reply where one of the rows was not as it was read: then
// nothing was done.
func (s *Store) store(w *working, writes []write, shapes []shapeKey) (r *reply, beyond map[string]bool, err error) {
	keep := false
	err = s.transact(func() (_ bool, err error) {
		if writes, beyond, err = s.reserve(writes); err != nil {
			return false, err
		}
		if err := s.disown(writes); err != nil {
			return false, err
		}
		if r, err = s.send(writes); err != nil {
			return false, err
		}
		s.commits = r.commits
		if keep = len(r.keys) == len(writes) || !r.live; !keep {
			return false, nil
		}
		return true, cmp.Or(s.unspent(writes, r), s.keepFound(w.found, w.now), s.keepShapes(shapes))
	})
	if !keep {
		r = nil
	}
	return r, beyond, err
}

// isConflict says that the server ended one of two transactions that waited for one another.
func isConflict(err error) bool {
	var e *pgconn.PgError
	return errors.As(err, &e) && (e.Code == "40P01" || e.Code == "40001")
}

// rowLists are the lists of the statement, one a column.
type rowLists [26]array

func newRowLists() *rowLists {
	return &rowLists{
		newArray(pgtype.ByteaOID), newArray(pgtype.Int8OID), newArray(pgtype.Int2OID), newArray(pgtype.BoolOID), newArray(pgtype.TextOID), newArray(pgtype.ByteaOID),
		newArray(pgtype.Int8OID), newArray(pgtype.Int8OID), newArray(pgtype.Int8OID), newArray(pgtype.Int2OID), newArray(pgtype.Int4OID),
		newArray(pgtype.TextOID), newArray(pgtype.TextOID), newArray(pgtype.TextOID), newArray(pgtype.TextOID), newArray(pgtype.TextOID),
		newArray(pgtype.TextOID), newArray(pgtype.TextOID), newArray(pgtype.TextOID), newArray(pgtype.TextOID), newArray(pgtype.TextOID),
		newArray(pgtype.ByteaOID), newArray(pgtype.ByteaOID), newArray(pgtype.ByteaOID), newArray(pgtype.ByteaOID), newArray(pgtype.TextOID),
	}
}

func (l *rowLists) add(w *write) {
	v := w.visible()
	l[0].bytes([]byte(w.key))
	l[1].int8(int64(w.seen))
	l[2].int2(int(w.was))
	l[3].bool(w.claim)
	l[4].text(clean(w.owns))
	l[5].bytes(w.hash)
	l[6].int8(w.worker)
	l[7].int8(v.Updated.UnixMilli())
	l[8].int8(int64(v.Line))
	l[9].int2(int(w.state()))
	l[10].int4(v.Code)
	for i, text := range []string{v.LeadID, v.Organization, v.Location, v.Status, v.ExternalID, v.WantLink, v.Locator, v.File, v.Reason, v.Run} {
		l[11+i].text(clean(text))
	}
	digest := v.Digest[:]
	if v.Digest == (checkpoint.Digest{}) {
		digest = nil
	}
	l[21].bytes(digest)
	l[22].bytes(contentBytes(v.Content))
	l[23].bytes(w.extra())
	l[24].bytes([]byte(fold(w.key)))
	hidden := w.hidden()
	for i := range hidden {
		hidden[i] = clean(hidden[i])
	}
	l[25].text(strings.Join(hidden, between))
}

// send has rows stored, as a statement of its own or inside a transaction.
func (s *Store) send(writes []write) (*reply, error) {
	for i := range s.lists {
		s.lists[i].reset()
	}
	for i := range writes {
		s.lists.add(&writes[i])
	}
	params := append(make([][]byte, 0, 2+len(s.lists)), int4Param(s.ledger), int8Param(s.worker))
	for i := range s.lists {
		params = append(params, s.lists[i].param())
	}
	result := s.writer.PgConn().ExecPrepared(context.Background(), "write", params, binaryFormat, binaryFormat)
	r := &reply{keys: make(map[string]bool, len(writes))}
	for result.NextRow() {
		v := result.Values()
		r.commits, r.seq, r.live = uint64(int8Of(v[0])), uint64(int8Of(v[1])), v[2][0] == 1
		if v[3] != nil {
			r.keys[string(v[3])] = true
		}
	}
	_, err := result.Close()
	if err == nil {
		err = s.follows(r.commits)
	}
	return r, err
}

// follows is an error unless a commit is the next one of this worker.
func (s *Store) follows(commits uint64) error {
	switch commits {
	case s.commits + 1:
		return nil
	case 0:
		return s.undurable()
	}
	return s.lost("it is not the one that this run has begun with: its server has lost commits, or somebody has put another one in its place")
}

// binaryFormat is the format of all parameters and results.
var binaryFormat = []int16{pgtype.BinaryFormatCode}

// shapeKey is what a shape stands under.
type shapeKey struct{ columns, key, namespace string }

func (s *Store) shapeKey(shape *checkpoint.Shape) shapeKey {
	var sums []string
	for _, name := range shape.Columns {
		sums = append(sums, string(s.digests.Column(name)))
	}
	slices.Sort(sums)
	return shapeKey{strings.Join(sums, ""), clean(shape.Key), clean(shape.Namespace)}
}

// newShape says whether a claim has a shape that this process has not noted yet.
func (s *Store) newShape(changes []*checkpoint.Change) bool { return len(s.shapesOf(changes)) > 0 }

func (s *Store) shapesOf(changes []*checkpoint.Change) (all []shapeKey) {
	var last *checkpoint.Shape
	for _, c := range changes {
		if c.Kind != checkpoint.Claim || c.Shape == nil || c.Shape == last || len(c.Shape.Columns) == 0 {
			continue
		}
		last = c.Shape
		if k := s.shapeKey(c.Shape); !s.shapes[k] && !slices.Contains(all, k) {
			all = append(all, k)
		}
	}
	return all
}
