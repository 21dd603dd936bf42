package postgres

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"leadferry/checkpoint"
)

// mostChanges is how many go with one statement: all that 64 requests in flight may ask for at once, which are as many
// claims and outcomes as they have slots.
const mostChanges = 256

// Patience is how long changes may gather, see [checkpoint.NewLedger]: each commit is a round trip, and one of all
// that wait for the disk of a server that has many workers.
func (s *Store) Patience() time.Duration { return 100 * time.Millisecond }

// Commit makes changes durable, in as many commits as it takes: outcomes before claims, so that a death between two of
// them leaves no more in doubt than there are slots.
func (s *Store) Commit(_ context.Context, changes []*checkpoint.Change) error {
	byKey := func(a, b *checkpoint.Change) int { return cmp.Compare(a.Entry.Key, b.Entry.Key) }
	sorted := slices.Clone(changes)
	slices.SortStableFunc(sorted, byKey)
	if len(sorted) > mostChanges {
		slices.SortStableFunc(sorted, func(a, b *checkpoint.Change) int { return cmp.Compare(isClaim(a), isClaim(b)) })
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for some := range slices.Chunk(sorted, mostChanges) {
		slices.SortStableFunc(some, byKey)
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
	claims := 0
	for i, c := range g.changes {
		c.Entry, c.Err = g.asked[i], nil
		switch {
		case g.fenced != nil && (c.Kind == checkpoint.Claim || c.Kind == checkpoint.Mark):
			c.Err = g.fenced
			continue
		case c.Kind == checkpoint.Claim && g.room >= 0 && claims >= g.room:
			c.Err = checkpoint.ErrEnough
			continue
		}
		if c.Err = w.apply(c); errors.Is(c.Err, errUnsure) {
			return false
		}
		if c.Kind == checkpoint.Claim && c.Err == nil {
			claims++
		}
	}
	return true
}

// counts says whether changes may be made by a worker that is not fenced only, and how many leads they are to make.
func (g *group) counts() (claims bool, creates int) {
	for _, c := range g.changes {
		if c.Err == nil && c.Kind == checkpoint.Claim {
			creates++
		}
		claims = claims || c.Err == nil && c.Kind == checkpoint.Mark
	}
	return claims || creates > 0, creates
}

// commit makes the changes of a group by what this process saw last, which the server compares. What does not fit is
// looked at again.
func (s *Store) commit(g *group) error {
	if err := s.usable(); err != nil {
		return err
	}
	w, base := s.guess(g)
	for tries := 0; tries < mostConflicts; tries++ {
		if tries > 0 || !g.apply(w) {
			var err error
			if w, base, err = s.load(g); err != nil {
				return err
			}
			if !g.apply(w) {
				return s.fail(errors.New("what was read does not tell what a change needs to know"))
			}
		}
		err := s.store(g, w, base)
		switch {
		case isOneOf(err, notAsSeen, taken, twice):
		case isOneOf(err, isFenced):
			g.fenced = s.whyFenced(s.writer.Conn)
		case isOneOf(err, tooMany):
			if g.room, err = s.roomFor(w, base); err != nil {
				return err
			}
		default:
			return err
		}
	}
	return s.fail(errors.New("the same rows change all the time under other hands"))
}

// guess is what this process saw last of the keys; of what is claimed and was not seen, nothing.
func (s *Store) guess(g *group) (*working, map[string]*row) {
	w := &working{
		now: s.now(), worker: s.worker, rows: make(map[string]*row, len(g.changes)),
		asks: map[string]string{},
	}
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

// store makes what was changed stand, in one transaction and one round trip, and notes it.
func (s *Store) store(g *group, w *working, base map[string]*row) error {
	writes, shapes := s.writes(w, base), s.newShapes(g.changes)
	if len(writes)+len(shapes) == 0 && !w.hasNotes() {
		return nil
	}
	asked := s.claims.now()
	claims, creates := g.counts()
	err := s.change(func() error {
		b := &pgx.Batch{}
		b.Queue(`SELECT pg_advisory_xact_lock_shared($1, $2)`, deciding, s.ledger)
		s.number(b, claims)
		s.spend(b, creates-w.givenBack(base))
		s.put(b, writes, false)
		s.putNotes(b, w)
		for _, n := range shapes {
			b.Queue(`INSERT INTO leadferry.notes (ledger, name, value) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`,
				s.ledger, n.Name, string(n.Value))
		}
		return s.send(b)
	})
	if err != nil {
		return err
	}
	s.stored(writes, asked)
	for _, n := range shapes {
		s.shapes[n.Name] = true
	}
	for i, c := range g.changes {
		if c.Err == nil && w.rows[g.asked[i].Key] != base[g.asked[i].Key] {
			c.Entry.Seq = cmp.Or(c.Entry.Seq, s.seq.Load())
		}
	}
	return nil
}

// stored notes rows that are now, by a commit that was asked for at a time.
func (s *Store) stored(writes []write, asked time.Duration) {
	for i := range writes {
		r := writes[i].number(s.seq.Load())
		s.claims.note(r, r.Intent != nil && r.worker == s.worker, asked)
		s.seen.put(r)
	}
	s.claimed.Store(true)
}

// write is a row that replaces an old one.
type write struct {
	*row
	old  *row
	asks string // the ExternalID that it was claimed with
}

// writes are the rows that have changed, ordered by key.
func (s *Store) writes(w *working, base map[string]*row) (all []write) {
	for key, r := range w.rows {
		asks := w.asks[key]
		if !r.linked(asks) { // its claim was withdrawn in the same commit
			asks = ""
		}
		if old := base[key]; r != old {
			all = append(all, write{r, old, asks})
		}
	}
	slices.SortFunc(all, func(a, b write) int { return strings.Compare(a.key, b.key) })
	return all
}

// send has statements carried out in one round trip, as one transaction unless one is open.
func (s *Store) send(b *pgx.Batch) error { return s.writer.SendBatch(context.Background(), b).Close() }

// How the server refuses a transaction as a whole, by its code.
const (
	notAsSeen = "LF001" // a row, an owner or a note is not as it was seen
	isFenced  = "LF002" // the worker may claim nothing any more
	tooMany   = "LF003" // leads for the fleet
	notOurs   = "LF004" // the worker's row is not as it was left, or its commits would not be durable
	taken     = "23505" // a key stood there already
	twice     = "21000" // two rows come to own one lead
)

// isConflict says that the server ended one of two transactions that waited for one another.
func isConflict(err error) bool { return isOneOf(err, "40P01", "40001") }

func isOneOf(err error, codes ...string) bool {
	var e *pgconn.PgError
	return errors.As(err, &e) && slices.Contains(codes, e.Code)
}

// promised says of a worker's row that a commit is as durable now as when the worker began: what a standby of then
// lacks is lost unseen when it takes over.
const promised = `current_setting('fsync') = 'on' AND current_setting('synchronous_commit') IN ('on', 'remote_apply')
	AND (standby <> '` + waitedFor + `' OR current_setting('synchronous_standby_names') <> '')`

// number makes a transaction the next commit of this worker, of this session and no other. A fenced worker claims
// nothing.
func (s *Store) number(b *pgx.Batch, claims bool) {
	b.Queue(`WITH me AS (
			UPDATE leadferry.workers SET commits = commits + 1, seq = nextval('leadferry.commits'), beat =
			clock_timestamp()
			WHERE worker = $1 AND ledger = $2 AND session = $3 AND commits = $4 AND `+promised+`
			RETURNING seq, fenced IS NULL AS live
		) SELECT seq, leadferry.must(seq IS NOT NULL,
		'`+notOurs+`'), leadferry.must(live OR NOT $5, '`+isFenced+`') FROM (SELECT 1) one LEFT JOIN me ON true`,
		s.worker, s.ledger, s.session, int64(s.commits), claims).
		QueryRow(func(r pgx.Row) error { return r.Scan(&s.coming, nil, nil) })
}

// deciding is the kind of the lock, of one ledger, that commits share and anyone who decides about its rows has alone.
// A commit takes it by a statement of its own: what comes behind it sees what was decided.
const deciding = 0x6C656164

//go:embed write.sql
var writeText string

// writeSQL is the statement with its columns.
var writeSQL = func() string {
	var kinds []string
	for i, c := range append(columns[:len(columns):len(columns)], column{kind: "bigint"}, column{kind: "smallint"},
		column{kind: "bytea"}) {
		kinds = append(kinds, fmt.Sprintf("$%d::%s[]", i+3, c.kind))
	}
	return strings.NewReplacer("LISTS", strings.Join(kinds, ", "), "COLUMNS", columnNames(""), "GIVEN",
		columnNames("g.")).Replace(writeText)
}()

// put has rows stand, and notes which leads they come to own, and which ExternalIDs claims ask for. What another key
// owns is taken from it by force only, unless that one has given it up by now; of an ExternalID that has another key's
// lead, no claim is made.
func (s *Store) put(b *pgx.Batch, writes []write, force bool) {
	if len(writes) == 0 {
		return
	}
	lists := make([][]any, len(columns)+3)
	var leads, asks []string
	var keys, askers, all [][]byte
	for _, w := range writes {
		all = append(all, []byte(w.key))
		var hash []byte
		if w.old.seq == 0 {
			hash = s.digests.Blocked(w.key)
		}
		for at, v := range append(w.values(), int64(w.old.seq), int16(w.old.state()), hash) {
			lists[at] = append(lists[at], v)
		}
		if lead := w.lead(); lead != "" && lead != w.old.lead() {
			leads, keys = append(leads, checkpoint.Clean(lead)), append(keys, []byte(w.key))
		}
		if w.asks != "" {
			asks, askers = append(asks, checkpoint.Clean(w.asks)), append(askers, []byte(w.key))
		}
	}
	if asks != nil { // before the rows stand: what this commit does to them is judged already
		b.Queue(askSQL, s.ledger, asks, askers, all)
	}
	args := []any{s.ledger, s.worker}
	for _, list := range lists {
		args = append(args, list)
	}
	b.Queue(writeSQL, args...)
	if leads == nil {
		return
	}
	b.Queue(`WITH owned AS (
			INSERT INTO leadferry.lead_ids AS i (ledger, lead_id, key) SELECT $1, w.* FROM unnest($2::text[],
			$3::bytea[]) AS w (lead_id, key)
			ON CONFLICT (ledger, lead_id) DO UPDATE SET key = excluded.key
				WHERE $4 OR i.key = excluded.key OR NOT leadferry.holds($1, i.key, i.lead_id)
			RETURNING 1
		) SELECT leadferry.must((SELECT count(*) FROM owned) = cardinality($2),
		'`+notAsSeen+`')`, s.ledger, leads, keys, force)
}

// askSQL has keys own the ExternalIDs that they ask for, as "@" and the ExternalID, and ends the transaction where
// another key has one, or is to have it, see [row.linked]. Of the keys that the commit writes ($4) that is known.
const askSQL = `WITH asks AS MATERIALIZED (SELECT * FROM unnest($2::text[], $3::bytea[]) AS w (external_id, key)
	), owned AS (
		INSERT INTO leadferry.lead_ids AS i (ledger, lead_id, key) SELECT $1, '@' || external_id, key FROM asks
		ON CONFLICT (ledger, lead_id) DO UPDATE SET key = excluded.key
			WHERE i.key = excluded.key OR i.key = ANY ($4::bytea[]) OR NOT leadferry.holds($1, i.key, i.lead_id)
		RETURNING 1
	) SELECT leadferry.must((SELECT count(*) FROM owned) = cardinality($2) AND NOT EXISTS (SELECT 1 FROM asks w CROSS
	JOIN LATERAL (
		SELECT r.key FROM leadferry.lead_rows r WHERE r.ledger = $1 AND r.external_id <> '' AND r.external_id =
		w.external_id AND r.state IN (1, 2)
		UNION ALL SELECT r.key FROM leadferry.lead_rows r WHERE r.ledger = $1 AND r.want_link <> '' AND r.want_link =
		w.external_id AND r.state IN (1, 2, 4)
		UNION ALL SELECT r.key FROM leadferry.lead_rows r WHERE r.ledger = $1 AND r.hidden_id <> '' AND r.hidden_id =
		w.external_id
		UNION ALL SELECT r.key FROM leadferry.lead_rows r WHERE r.ledger = $1 AND r.hidden_link <> '' AND r.hidden_link
		= w.external_id
	) o WHERE o.key <> w.key AND o.key <> ALL ($4::bytea[])), '` + notAsSeen + `')`

// hasNotes says whether notes have changed.
func (w *working) hasNotes() bool {
	for name, value := range w.notes {
		if !bytes.Equal(w.before[name], value) {
			return true
		}
	}
	return false
}

// keepNotes stores the notes that have changed, inside a transaction.
func (s *Store) keepNotes(w *working) error {
	b := &pgx.Batch{}
	s.putNotes(b, w)
	return s.send(b)
}

// putNotes stores the notes that have changed.
func (s *Store) putNotes(b *pgx.Batch, w *working) {
	for name, value := range w.notes {
		switch was := w.before[name]; {
		case bytes.Equal(was, value):
		case value == nil:
			b.Queue(`DELETE FROM leadferry.notes WHERE ledger = $1 AND name = $2`, s.ledger, name)
		default:
			b.Queue(`WITH kept AS (`+putNoteSQL+
				` WHERE n.value = $4 RETURNING 1) SELECT leadferry.must(EXISTS (SELECT FROM kept), '`+notAsSeen+`')`,
				s.ledger, name, string(value), string(was))
		}
	}
}
