package postgres

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"leadferry/checkpoint"
	"leadferry/checkpoint/postgres/server"
)

// Patience is how long changes may gather, see [checkpoint.NewLedger]: each commit is a round trip, and one of all that wait for
// the disk of a server that has many workers.
func (s *Store) Patience() time.Duration { return 100 * time.Millisecond }

// Commit makes changes durable, in as many statements as it takes: outcomes before claims, so that a death between two of them
// leaves no more in doubt than there are slots. It compares with the server what this process saw last; what does not fit
// is looked at again and done in a second commit.
func (s *Store) Commit(_ context.Context, changes []*checkpoint.Change) error {
	if len(changes) == 0 {
		return nil
	}
	byKey := func(a, b *checkpoint.Change) int { return cmp.Compare(a.Entry.Key, b.Entry.Key) }
	sorted := slices.Clone(changes)
	slices.SortStableFunc(sorted, byKey)
	if len(sorted) > mostChanges {
		var claims []*checkpoint.Change
		sorted = slices.DeleteFunc(sorted, func(c *checkpoint.Change) bool {
			if c.Kind == checkpoint.Claim {
				claims = append(claims, c)
			}
			return c.Kind == checkpoint.Claim
		})
		sorted = append(sorted, claims...)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for some := range slices.Chunk(sorted, mostChanges) {
		slices.SortStableFunc(some, byKey)
		if err := s.commit(some); err != nil {
			return err
		}
	}
	return nil
}

// group is what one commit is about: changes, as they were asked for.
type group struct {
	changes []*checkpoint.Change
	asked   []checkpoint.Entry
}

func newGroup(changes []*checkpoint.Change) *group {
	g := &group{changes: changes, asked: make([]checkpoint.Entry, len(changes))}
	for i, c := range changes {
		g.asked[i] = c.Entry
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
	if len(s.newShapes(changes)) == 0 && g.apply(w) {
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

// stored notes what stands now.
func (s *Store) stored(g *group, w *working, r *reply, asked time.Duration) {
	s.claims.note(w.rows, r.keys, s.worker, asked)
	for key := range r.keys {
		s.seen.put(w.rows[key].number(r.seq))
	}
	for i, c := range g.changes {
		if c.Err == nil && r.keys[g.asked[i].Key] && c.Entry.Seq == 0 {
			c.Entry.Seq = r.seq
		}
	}
	if r.seq == 0 { // nothing was stored, see write
		return
	}
	s.seq.Store(r.seq)
	s.claimed.Store(true)
}

// number gives a row that was just written the number of its commit; nobody else knows it yet.
func (r *row) number(seq uint64) *row {
	r.seq = seq
	for _, rec := range []*checkpoint.Kept{r.Entry, r.Intent} {
		if rec != nil && rec.Seq == 0 {
			rec.Seq = seq
		}
	}
	return r
}

// surely makes changes by what was read for them, in a transaction.
func (s *Store) surely(g *group) error {
	return s.insist(func() error { return s.attempt(g) })
}

// mostConflicts is how often a transaction is begun again in which somebody else has a hand.
const mostConflicts = 100

// insist calls f until it is done, or fails otherwise than by what others do to the same rows.
func (s *Store) insist(f func() error) error {
	err := errAgain
	for n := 0; n < mostConflicts && (isConflict(err) || errors.Is(err, errAgain)); n++ {
		if err = f(); !s.troubled.IsZero() { // which is no conflict, and comes to its end by itself
			n = 0
		}
	}
	if isConflict(err) || errors.Is(err, errAgain) {
		return s.trouble(errors.New("the same rows change all the time under other hands"))
	}
	return err
}

// attempt makes changes once, unless somebody else has changed the same rows meanwhile: errAgain.
func (s *Store) attempt(g *group) error {
	w, base, err := s.load(g)
	if err != nil {
		_, err = s.again(err, s.commits)
		return cmp.Or(err, errAgain)
	}
	if !g.apply(w) {
		return s.fail(errors.New("what was read does not tell what a change needs to know"))
	}
	writes, shapes := w.writes(s, g, base), s.newShapes(g.changes)
	if len(writes)+len(shapes) == 0 && maps.EqualFunc(w.notes, w.before, bytes.Equal) {
		return nil
	}
	asked := s.claims.now()
	r, beyond, err := s.store(w, writes, shapes)
	if err != nil || r == nil {
		return cmp.Or(err, errAgain)
	}
	s.stored(g, w, r, asked)
	for _, n := range shapes {
		s.shapes[n.Name] = true
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
	return nil
}

// store makes rows stand in a transaction of their own, and what was found and noted with them. beyond are the keys of rows that
// are left out, since the fleet may make no more leads. There is no reply where one of the rows was not as it was read: then
// nothing was done.
func (s *Store) store(w *working, writes []write, shapes []checkpoint.Note) (r *reply, beyond map[string]bool, err error) {
	keep := false
	err = s.transact(func() (_ bool, err error) {
		if writes, beyond, err = s.reserve(writes); err != nil {
			return false, err
		}
		if err := s.disown(writes); err != nil {
			return false, err
		}
		if r, err = s.send(writeWhatFits, writes); err != nil {
			return false, err
		}
		s.commits = r.commits
		if keep = len(r.keys) == len(writes) || !r.live; !keep {
			return false, nil
		}
		return true, cmp.Or(s.unspent(writes, r), s.keepNotes(w), s.keepShapes(shapes))
	})
	if !keep {
		r = nil
	}
	return r, beyond, err
}

// transact makes changes in a transaction of their own; f says whether they are to stand. Where the
// connection is lost before it is known whether they do, errAgain says that they do not.
func (s *Store) transact(f func() (keep bool, err error)) error {
	ctx, before := context.Background(), s.commits
	number := before
	s.coming = 0
	_, err := s.writer.Exec(ctx, "BEGIN")
	keep := false
	if err == nil {
		keep, err = f()
		number, s.commits = s.commits, before
	}
	switch {
	case err == nil && keep:
		var tag pgconn.CommandTag
		if tag, err = s.writer.Exec(ctx, "COMMIT"); err == nil && tag.String() != "COMMIT" {
			return s.trouble(errors.New("the server took a commit for a rollback"))
		}
		if err = s.acknowledged(err); err == nil {
			s.commits = number
			s.seq.Store(max(s.seq.Load(), s.coming))
			return nil
		}
	case err == nil:
		_, err = s.writer.Exec(ctx, "ROLLBACK")
		if err == nil {
			return nil
		}
	default:
		if _, undone := s.writer.Exec(ctx, "ROLLBACK"); undone == nil && isConflict(err) {
			return err
		}
	}
	made, err := s.again(err, number)
	if err == nil && !made {
		return errAgain
	}
	return err
}

// trouble is an error of the connection that writes, for good.
func (s *Store) trouble(err error) error {
	if err == nil || checkpoint.IsOfList(err) {
		return err
	}
	return s.fail(&fault{server.Reason(err), err})
}

// fault is an error of the server, in one line.
type fault struct {
	text string
	err  error
}

func (f *fault) Error() string { return f.text }
func (f *fault) Unwrap() error { return f.err }
