package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"leadferry/checkpoint"
)

// load reads what changes need to know.
func (s *Store) load(g *group) (*working, map[string]*row, error) {
	q := &wanted{}
	for i := range g.asked {
		e := &g.asked[i]
		q.keys, q.hashes = append(q.keys, e.Key), append(q.hashes, s.digests.Blocked(e.Key))
		if e.LeadID != "" {
			q.leads = append(q.leads, e.LeadID)
		}
	}
	return s.working(q)
}

// working reads rows and the owners of leads, the last decisions about them, and which workers
// may still send. Everything is read by the connection that writes.
func (s *Store) working(q *wanted) (*working, map[string]*row, error) {
	f, err := q.find(s.writer.Conn, s.ledger)
	if err != nil {
		return nil, nil, s.trouble(err)
	}
	w := &working{
		now: s.now(), worker: s.worker, sure: true, rows: make(map[string]*row, len(q.keys)),
		owners: make(map[string]string, len(f.leads)), decided: map[string]*decision{}, busy: map[int64]bool{},
	}
	base := make(map[string]*row, len(q.keys))
	for i, key := range q.keys {
		r := f.row(key, q.hashes[i])
		w.rows[key], base[key] = r, r
		if r.intent != nil && r.worker != s.worker {
			w.busy[r.worker] = true
		}
	}
	keys := q.keys[:len(q.keys):len(q.keys)]
	for lead, r := range f.leads {
		w.owners[lead] = r.key
		keys = append(keys, r.key)
	}
	if err := errors.Join(s.lastDecisions(keys, w.decided), s.stillBusy(w.busy)); err != nil {
		return nil, nil, s.trouble(err)
	}
	return w, base, nil
}

// stillBusy leaves of some workers those that may still send what they have claimed: which have not
// ended.
func (s *Store) stillBusy(workers map[int64]bool) error {
	if len(workers) == 0 {
		return nil
	}
	var ids []int64
	for id := range workers {
		ids = append(ids, id)
	}
	rows, err := s.writer.Query(context.Background(), `SELECT worker FROM leadferry.workers WHERE worker = ANY ($1) AND ended IS NULL`, ids)
	if err != nil {
		return err
	}
	busy, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	clear(workers)
	for _, id := range busy {
		workers[id] = true
	}
	return err
}

// lastDecisions fills in the last decision about each key.
func (s *Store) lastDecisions(keys []string, into map[string]*decision) error {
	rows, err := s.writer.Query(context.Background(), `SELECT DISTINCT ON (key) number, key, lead_id, "exists", sent, run, decided, send FROM leadferry.decision_rows
		WHERE ledger = $1 AND key = ANY ($2) ORDER BY key, number DESC`, s.ledger, bytesOf(keys))
	if err != nil {
		return err
	}
	return eachDecision(rows, func(d *decision) error { into[d.Key] = d; return nil })
}

// eachDecision reads decisions from rows of their columns.
func eachDecision(rows pgx.Rows, f func(*decision) error) error {
	var number, sent, decided int64
	var key, send []byte
	var lead, run string
	var exists bool
	_, err := pgx.ForEachRow(rows, []any{&number, &key, &lead, &exists, &sent, &run, &decided, &send}, func() error {
		d := &decision{number: number, at: time.UnixMilli(decided).UTC(), send: &record{Entry: checkpoint.Entry{Key: string(key)}}}
		d.Decision = checkpoint.Decision{Key: string(key), LeadID: restore(lead), Exists: exists, Run: restore(run)}
		if sent != 0 {
			d.Sent = time.UnixMilli(sent).UTC()
		}
		c := coder{b: send, reading: true}
		if c.whole(d.send); c.bad {
			return fmt.Errorf("%w: a decision is not as this version writes it", checkpoint.ErrDamaged)
		}
		return f(d)
	})
	return err
}

func bytesOf(keys []string) [][]byte {
	all := make([][]byte, len(keys))
	for i, key := range keys {
		all[i] = []byte(key)
	}
	return all
}

// disown takes leads from rows that have others by now, for those which come to own them.
func (s *Store) disown(writes []write) error {
	for _, one := range writes {
		if one.owns == "" {
			continue
		}
		_, err := s.writer.Exec(context.Background(), `UPDATE leadferry.lead_ids SET key = $3 WHERE ledger = $1 AND lead_id = $2 AND key <> $3`,
			s.ledger, clean(one.owns), []byte(one.key))
		if err != nil {
			return err
		}
	}
	return nil
}

// keepFound notes evidence against decisions, each once.
func (s *Store) keepFound(found []contradiction, at time.Time) error {
	for _, one := range found {
		_, err := s.writer.Exec(context.Background(), `INSERT INTO leadferry.contradictions (ledger, decision, found, other, text)
			SELECT $1, $2, $3, $4, $5 WHERE NOT EXISTS (SELECT 1 FROM leadferry.contradictions WHERE decision = $2 AND other = $4 AND text = $5)`,
			s.ledger, one.of.number, at.UnixMilli(), []byte(one.other), one.text)
		if err != nil {
			return err
		}
	}
	return nil
}

// keepShapes notes shapes, each once.
func (s *Store) keepShapes(shapes []shapeKey) error {
	for _, k := range shapes {
		_, err := s.writer.Exec(context.Background(), `INSERT INTO leadferry.shapes (ledger, columns, key, namespace) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING`,
			s.ledger, []byte(k.columns), k.key, k.namespace)
		if err != nil {
			return err
		}
	}
	return nil
}

// transact makes changes in a transaction of their own; f says whether they are to stand.
func (s *Store) transact(f func() (keep bool, err error)) (err error) {
	ctx := context.Background()
	if _, err := s.writer.Exec(ctx, "BEGIN"); err != nil {
		return s.trouble(err)
	}
	keep, err := f()
	if err == nil && keep {
		tag, err := s.writer.Exec(ctx, "COMMIT")
		if err == nil && tag.String() != "COMMIT" {
			err = errors.New("the server took a commit for a rollback")
		}
		return s.trouble(err)
	}
	_, undone := s.writer.Exec(ctx, "ROLLBACK")
	if isConflict(err) && undone == nil {
		return err
	}
	if err == nil {
		err = undone
	}
	return s.trouble(err)
}

// trouble is an error of the connection that writes, for good.
func (s *Store) trouble(err error) error {
	var list *checkpoint.ListError
	if err == nil || errors.As(err, &list) {
		return err
	}
	return s.fail(&fault{reason(err), err})
}

// fault is an error of the server, in one line.
type fault struct {
	text string
	err  error
}

func (f *fault) Error() string { return f.text }
func (f *fault) Unwrap() error { return f.err }

// write stores rows by one statement, which is a commit.
func (s *Store) write(writes []write) (*reply, error) {
	r, err := s.send(writes)
	if isConflict(err) { // nothing was done
		return &reply{live: true}, nil
	}
	return r, s.trouble(err)
}

// note takes over what a commit says of the worker.
func (s *Store) note(r *reply) { s.commits, s.seq = r.commits, r.seq }

// undurable says why the server did not take a commit.
func (s *Store) undurable() error {
	return s.refuse(checkpoint.ErrPlace, "its server does not promise durable commits any more, or does not know this worker", "set fsync and synchronous_commit on; see leadferry checkpoint workers")
}
