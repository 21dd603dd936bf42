package postgres

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"leadferry/checkpoint"
)

// mostChanges is how many go with one statement: all claims and outcomes of 64 requests in flight.
const mostChanges = 256

// Commit makes changes durable, in as many commits as it takes: outcomes before claims, so that a death between two of
// them leaves no more in doubt than there are slots.
func (s *Store) Commit(_ context.Context, changes []*checkpoint.Change) error {
	sorted := slices.Clone(changes)
	slices.SortStableFunc(sorted, func(a, b *checkpoint.Change) int { return cmp.Compare(a.Entry.Key, b.Entry.Key) })
	if len(sorted) > mostChanges {
		slices.SortStableFunc(sorted, func(a, b *checkpoint.Change) int { return cmp.Compare(isClaim(a), isClaim(b)) })
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for some := range slices.Chunk(sorted, mostChanges) {
		if err := s.commit(newGroup(some)); err != nil {
			return err
		}
	}
	return nil
}

func isClaim(c *checkpoint.Change) int {
	if c.Kind == checkpoint.Claim {
		return 1
	}
	return 0
}

// group is what one commit is about: changes, as they were asked for.
type group struct {
	changes []*checkpoint.Change
	asked   []checkpoint.Entry
	fenced  error // why nothing may be claimed any more, or nil
	room    int   // how many leads the fleet may still make; -1: any number, as far as is known

	creates int  // how many leads the changes are to make
	live    bool // some of them may be made only by a worker that is not fenced
}

func newGroup(changes []*checkpoint.Change) *group {
	g := &group{changes: changes, asked: make([]checkpoint.Entry, len(changes)), room: -1}
	for i, c := range changes {
		g.asked[i] = c.Entry
	}
	return g
}

// apply makes the changes in what is known; false: more has to be known.
func (g *group) apply(w *working) bool {
	g.creates, g.live = 0, false
	for i, c := range g.changes {
		c.Entry, c.Err = g.asked[i], nil
		sends := c.Kind == checkpoint.Claim || c.Kind == checkpoint.Mark
		switch {
		case g.fenced != nil && sends:
			c.Err = g.fenced
		case c.Kind == checkpoint.Claim && g.room >= 0 && g.creates >= g.room:
			c.Err = checkpoint.ErrEnough
		default:
			c.Err = w.apply(c)
		}
		if errors.Is(c.Err, errUnsure) {
			return false
		}
		if c.Err == nil && c.Kind == checkpoint.Claim {
			g.creates++
		}
		g.live = g.live || c.Err == nil && sends
	}
	return true
}

// commit makes changes by what this process saw last, which the server compares. What does not fit is read again.
func (s *Store) commit(g *group) error {
	if err := s.usable(); err != nil {
		return err
	}
	w := s.guess(g)
	for tries := range mostConflicts {
		if tries > 0 || !g.apply(w) {
			var err error
			if w, err = s.load(g); err != nil {
				return err
			}
			if !g.apply(w) {
				return s.fail(errors.New("what was read does not tell what a change needs to know"))
			}
		}
		err := s.store(g, w)
		switch {
		case isOneOf(err, notAsSeen, taken, twice):
		case isOneOf(err, isFenced):
			g.fenced = s.whyFenced(s.writer)
		case isOneOf(err, tooMany):
			if g.room, err = s.roomFor(w); err != nil {
				return err
			}
		default:
			return err
		}
	}
	return s.fail(errors.New("the same rows change all the time under other hands"))
}

// store writes what was changed, in one transaction and one round trip, and notes it.
func (s *Store) store(g *group, w *working) error {
	writes, shapes := w.writes(), s.shapesOf(g.changes)
	if len(writes)+len(shapes) == 0 && maps.EqualFunc(w.notes, w.before, bytes.Equal) {
		return nil
	}
	asked := s.claims.now()
	err := s.change(func() error {
		b := &pgx.Batch{}
		b.Queue(`SELECT pg_advisory_xact_lock_shared($1, $2)`, deciding, s.ledger)
		s.number(b, g.live)
		s.spend(b, g.creates-w.givenBack())
		s.put(b, writes, false)
		s.putNotes(b, w)
		for _, n := range shapes {
			b.Queue(`INSERT INTO leadferry.notes (ledger, name, value) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`,
				s.ledger, n.Name, string(n.Value))
		}
		return s.writer.Send(b)
	})
	if err != nil {
		return err
	}
	seq := s.seq.Load()
	for _, one := range writes {
		one.number(seq)
		if s.seen.put(one.row); one.Intent != nil && one.worker == s.worker {
			s.claims.hold(asked, one.key)
		} else {
			s.claims.drop(one.key)
		}
	}
	s.claimed.Store(true)
	for i, c := range g.changes {
		if key := g.asked[i].Key; c.Err == nil && w.rows[key] != w.base[key] {
			c.Entry.Seq = cmp.Or(c.Entry.Seq, seq)
		}
	}
	return nil
}

// shapesOf are the notes of shapes that claims have: the first ones of a run.
func (s *Store) shapesOf(changes []*checkpoint.Change) (all []checkpoint.Note) {
	var last *checkpoint.Shape
	for _, c := range changes {
		if c.Kind != checkpoint.Claim || c.Shape == last {
			continue
		}
		last = c.Shape
		if n := s.digests.ShapeNote(c.Shape); n.Name != "" {
			all = append(all, n)
		}
	}
	return all
}

// How the server refuses a transaction as a whole, by its code.
const (
	notAsSeen = "LF001" // a row, an owner or a note is not as it was seen
	isFenced  = "LF002" // the worker may claim nothing any more
	tooMany   = "LF003" // leads for the fleet
	notOurs   = "LF004" // the worker's row is not as it was left, or its commits would not be durable
	taken     = "23505" // a key stood there already
	twice     = "21000" // two rows come to own one lead
)

func isConflict(err error) bool { return isOneOf(err, "40P01", "40001") }

func mayNot(err error) bool { return isOneOf(err, "42501") }

func isOneOf(err error, codes ...string) bool {
	var e *pgconn.PgError
	return errors.As(err, &e) && slices.Contains(codes, e.Code)
}

// number makes a transaction the next commit of this worker, of this session only. A fenced worker claims nothing.
func (s *Store) number(b *pgx.Batch, claims bool) {
	b.Queue(numberSQL, s.worker, s.ledger, s.session, int64(s.commits), claims).
		QueryRow(func(r pgx.Row) error { return r.Scan(&s.coming, nil, nil) })
}

// deciding is the kind of the lock, of one ledger, that commits share and anyone who decides about its rows has alone.
// A commit takes it by a statement of its own: what comes behind it sees what was decided.
const deciding = 0x6C656164

// The statements of a commit: its number, the rows, and what they come to own.
var (
	//go:embed number.sql
	numberSQL string
	//go:embed write.sql
	writeText string
	//go:embed own.sql
	ownSQL string
	//go:embed ask.sql
	askSQL string
)

var writeSQL = func() string {
	var kinds []string
	for i, c := range columns {
		kinds = append(kinds, fmt.Sprintf("$%d::%s[]", i+6, c.kind))
	}
	return strings.NewReplacer("LISTS", strings.Join(kinds, ", "), "COLUMNS", columnNames(""), "GIVEN",
		columnNames("g.")).Replace(writeText)
}()

// put writes rows, and notes which leads they come to own and which ExternalIDs claims ask for. What another key owns
// and has not given up is taken by force only; an ExternalID of another key's lead never.
func (s *Store) put(b *pgx.Batch, writes []write, force bool) {
	if len(writes) == 0 {
		return
	}
	var seen []int64
	var was []int16
	var leads, asks []string
	var hashes, keys, askers, all [][]byte
	lists := make([][]any, len(columns))
	for _, w := range writes {
		var hash []byte // of a key that is new
		if w.old.seq == 0 {
			hash = s.digests.Blocked(w.key)
		}
		key := []byte(w.key)
		seen, was, hashes = append(seen, int64(w.old.seq)), append(was, int16(w.old.state())), append(hashes, hash)
		all = append(all, key)
		for at, place := range w.stored().places() {
			lists[at] = append(lists[at], place)
		}
		if lead := w.lead(); lead != "" && lead != w.old.lead() {
			leads, keys = append(leads, checkpoint.Clean(lead)), append(keys, key)
		}
		if w.asks != "" {
			asks, askers = append(asks, checkpoint.Clean(w.asks)), append(askers, key)
		}
	}
	if asks != nil { // before the rows are written: what this commit does to them is judged already
		b.Queue(askSQL, s.ledger, asks, askers, all)
	}
	args := []any{s.ledger, s.worker, seen, was, hashes}
	for _, list := range lists {
		args = append(args, list)
	}
	b.Queue(writeSQL, args...)
	if leads != nil {
		b.Queue(ownSQL, s.ledger, leads, keys, force)
	}
}
