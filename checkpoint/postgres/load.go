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
		s.want(q, g.asked[i].Key, g.asked[i].LeadID)
	}
	return s.working(q)
}

// working reads rows and the owners of leads, the last decisions about them, and which workers
// may still send. Everything is read by the connection that writes.
func (s *Store) working(q *wanted) (*working, map[string]*row, error) {
	f, err := q.find(s.writer.Conn, s.ledger)
	if err != nil {
		return nil, nil, err
	}
	w := &working{
		now: s.now(), worker: s.worker, sure: true, rows: make(map[string]*row, len(q.keys)),
		mine: s.claims.mine, owners: make(map[string]string, len(f.leads)), decided: map[string]*decision{}, busy: map[int64]bool{}, settled: map[string]bool{},
	}
	base := make(map[string]*row, len(q.keys))
	for i, key := range q.keys {
		r := f.row(key, q.hashes[i])
		w.rows[key], base[key] = r, r
		if r.Intent != nil && r.worker != s.worker {
			w.busy[r.worker] = true
		}
	}
	keys := q.keys[:len(q.keys):len(q.keys)]
	for lead, r := range f.leads {
		w.owners[lead] = r.key
		keys = append(keys, r.key)
	}
	if err := errors.Join(f.bad, s.lastDecisions(keys, w.decided), s.stillBusy(w.busy)); err != nil {
		return nil, nil, err
	}
	return w, base, nil
}

// stillBusy leaves of some workers those that may still send what they have claimed, or whose
// requests may still be applied: which have not ended, nor been silent for very long.
func (s *Store) stillBusy(workers map[int64]bool) error {
	if len(workers) == 0 {
		return nil
	}
	var ids []int64
	for id := range workers {
		ids = append(ids, id)
	}
	rows, err := s.writer.Query(context.Background(), `SELECT worker FROM leadferry.workers WHERE worker = ANY ($1) AND ended IS NULL
		AND beat > clock_timestamp() - greatest($2::bigint, holds_for + 60) * interval '1 second'`, ids, int64(afterlife/time.Second))
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
		d := &decision{number: number}
		d.At, d.Send = time.UnixMilli(decided).UTC(), &checkpoint.Kept{Entry: checkpoint.Entry{Key: string(key)}}
		d.Decision = checkpoint.Decision{Key: string(key), LeadID: restore(lead), Exists: exists, Run: restore(run)}
		if sent != 0 {
			d.Sent = time.UnixMilli(sent).UTC()
		}
		c := coder{b: send, reading: true}
		if c.whole(d.Send); c.bad {
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
		number := one.of.number
		if number == 0 {
			var err error
			if number, err = s.putDecision(context.Background(), s.writer.Conn, one.of.KeptDecision); err != nil {
				return err
			}
		}
		_, err := s.writer.Exec(context.Background(), `INSERT INTO leadferry.contradictions (ledger, decision, found, other, text)
			SELECT $1, $2, $3, $4, $5 WHERE NOT EXISTS (SELECT 1 FROM leadferry.contradictions WHERE decision = $2 AND other = $4 AND text = $5)`,
			s.ledger, number, at.UnixMilli(), []byte(one.other), one.text)
		if err != nil {
			return err
		}
	}
	return nil
}
