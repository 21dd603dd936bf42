package postgres

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

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
	fenced  error // why nothing may be sent any more; nil: it may, as far as is known
	room    *int  // how many leads the fleet may still make; nil: any number, as far as is known
}

func newGroup(changes []*checkpoint.Change) *group {
	return &group{
		changes: changes,
		asked:   each(changes, func(c *checkpoint.Change) checkpoint.Entry { return c.Entry }),
	}
}

// sends says that a change is of a row that is about to be sent, which a fenced worker may not do.
func sends(c *checkpoint.Change) bool { return c.Kind == checkpoint.Claim || c.Kind == checkpoint.Mark }

// apply makes the changes in what is known, or refuses them. An error says that nothing can be done with what is known.
func (g *group) apply(w *working) error {
	for i, c := range g.changes {
		c.Entry, c.Err = g.asked[i], nil
		switch {
		case g.fenced != nil && sends(c):
			c.Err = g.fenced
		case c.Kind == checkpoint.Claim && g.room != nil && w.creates() >= *g.room:
			c.Err = checkpoint.ErrEnough
		default:
			if c.Err = w.apply(c); c.Err != nil && !checkpoint.IsRefusal(c.Err) {
				return c.Err
			}
		}
	}
	return nil
}

// commit makes changes by what this process saw last, and the server compares that with its rows. If it does not fit, the
// changes are made alone, while no other worker changes a row.
func (s *Store) commit(g *group) error {
	if err := s.usable(); err != nil {
		return err
	}
	asked, w := s.claims.now(), s.guess(g)
	err := g.apply(w)
	if err == nil {
		err = s.store(g, w)
	}
	if errors.Is(err, errUnsure) || isOneOf(err, notAsSeen, taken, twice, isFenced, tooMany) {
		w, err = s.storeAlone(g)
	}
	if err == nil {
		s.remember(g, w, asked)
	}
	return err
}

// store writes what was changed, in one transaction and one round trip.
func (s *Store) store(g *group, w *working) error {
	if maps.Equal(w.rows, w.base) {
		return nil
	}
	return s.change(func() error {
		b := &pgx.Batch{}
		b.Queue(`SELECT pg_advisory_xact_lock_shared($1, $2)`, deciding, s.ledger)
		s.number(b, slices.ContainsFunc(g.changes, sends))
		s.queue(b, g, w)
		return s.writer.Send(b)
	})
}

// storeAlone reads what the changes are about and makes them, in one transaction.
func (s *Store) storeAlone(g *group) (*working, error) {
	q := &wanted{
		keys:  each(g.asked, func(e checkpoint.Entry) string { return e.Key }),
		leads: each(g.asked, func(e checkpoint.Entry) string { return e.LeadID }),
		links: each(g.asked, func(e checkpoint.Entry) string { return e.WantLink }),
	}
	c, err := s.alone(func(c *change) error {
		err := inTurn(func() error { return c.read(q) }, func() error { return s.bound(g) },
			func() error { return g.apply(c.working) })
		if err != nil {
			return err
		}
		b := &pgx.Batch{}
		s.queue(b, g, c.working)
		return s.writer.Send(b)
	})
	if err != nil {
		return nil, err
	}
	return c.working, nil
}

// bound finds out whether this worker may claim anything, and how many leads its fleet may still make.
func (s *Store) bound(g *group) error {
	var fenced bool
	err := s.writer.One(`SELECT w.fenced IS NOT NULL, b.most - b.made FROM leadferry.workers w
		LEFT JOIN leadferry.budget b ON b.ledger = w.ledger AND b.fleet = w.fleet AND b.most > 0
		WHERE w.worker = $1`, s.worker).Scan(&fenced, &g.room)
	if err == nil && fenced {
		g.fenced = s.whyFenced(s.writer)
	}
	return err
}

// queue has a batch write what was changed, and the shapes that claims have.
func (s *Store) queue(b *pgx.Batch, g *group, w *working) {
	s.spend(b, w.creates())
	s.put(b, w.writes(), false)
	var last *checkpoint.Shape
	for _, c := range g.changes {
		if c.Shape == nil || c.Shape == last {
			continue
		}
		last = c.Shape
		if n := s.digests.ShapeNote(c.Shape); n.Name != "" {
			b.Queue(`INSERT INTO leadferry.notes (ledger, name, value) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`,
				s.ledger, n.Name, string(n.Value))
		}
	}
}

// remember notes that the changes are durable. asked is when their commit was asked for.
func (s *Store) remember(g *group, w *working, asked time.Duration) {
	seq := s.seq.Load()
	for key, r := range w.rows {
		if r == w.base[key] {
			continue
		}
		r.number(seq)
		if s.seen.put(r); r.Intent != nil && r.worker == s.worker {
			s.claims.hold(asked, key)
		} else {
			s.claims.drop(key)
		}
		s.claimed.Store(true)
	}
	for i, c := range g.changes {
		if key := g.asked[i].Key; c.Err == nil && w.rows[key] != w.base[key] {
			c.Entry.Seq = cmp.Or(c.Entry.Seq, seq)
		}
	}
}

// How the server refuses a transaction as a whole, by its code.
const (
	notAsSeen = "LF001" // a row, an owner or a note is not as it was seen
	isFenced  = "LF002" // the worker may claim nothing any more
	tooMany   = "LF003" // leads for the fleet
	notOurs   = "LF004" // the worker's row is not as it was left
	undurable = "LF005" // the commit would be less durable than when the worker began
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
		QueryRow(func(r pgx.Row) error { return r.Scan(&s.coming, nil, nil, nil) })
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
