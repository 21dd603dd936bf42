package postgres

import (
	"cmp"
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"leadferry/checkpoint"
)

// Info says what the ledger is and how much it knows now; of a server that does not answer, what
// it knew when it was asked last.
func (s *Store) Info() checkpoint.Info {
	i := checkpoint.Info{
		Path: s.at.Name, ID: s.id, Target: s.target, New: s.fresh,
		Incomplete: s.missing != "", Missing: s.missing, Since: s.since,
	}
	var n [6]int
	err := s.read(context.Background(), func(c *pgx.Conn) error {
		return c.QueryRow(context.Background(), `SELECT coalesce(sum(created), 0)::bigint, coalesce(sum(partial),
			0)::bigint, coalesce(sum(rejected), 0)::bigint,
			coalesce(sum(in_doubt), 0)::bigint, coalesce(sum(not_made), 0)::bigint, coalesce(sum(forgotten), 0)::bigint,
			coalesce(max(seq), 0)
			FROM leadferry.workers WHERE ledger =
			$1`, s.ledger).Scan(&n[0], &n[1], &n[2], &n[3], &n[4], &n[5], &i.Sequence)
	})
	if known := s.last.Load(); err != nil && known != nil {
		last := *known
		last.Sequence = max(last.Sequence, s.seq.Load())
		return last
	}
	i.Keys = map[checkpoint.State]int{
		checkpoint.Created: n[0], checkpoint.Partial: n[1], checkpoint.Rejected: n[2],
		checkpoint.InDoubt: n[3], checkpoint.NotMade: n[4], checkpoint.Forgotten: n[5],
	}
	i.Leads, i.InDoubt = n[0]+n[1], n[3]
	i.Sequence = cmp.Or(s.seq.Load(), i.Sequence) // others go on, and a witness is of what a run has made itself
	s.last.Store(&i)
	return i
}

// Status returns an account of what is known now.
func (s *Store) Status() (checkpoint.Status, error) {
	ctx := context.Background()
	statuses := map[string]int{}
	err := s.read(ctx, func(c *pgx.Conn) error {
		clear(statuses)
		rows, err := c.Query(ctx, `SELECT status, count(*) FROM leadferry.lead_rows WHERE ledger = $1 AND state IN (1,
			2) GROUP BY 1`, s.ledger)
		if err != nil {
			return err
		}
		var status string
		var n int
		_, err = pgx.ForEachRow(rows, []any{&status, &n}, func() error {
			if status = checkpoint.Restore(status); !checkpoint.KnownStatus(status) {
				status = "unknown"
			}
			statuses[status] += n
			return nil
		})
		return err
	})
	if err != nil {
		return checkpoint.Status{}, err
	}
	return checkpoint.StatusOf(ctx, s, statuses)
}

// Worker is one opening of a ledger that wrote, as people are shown it.
type Worker struct {
	ID                    int64
	Run, Command          string
	Fleet                 string
	Shard, Shards         int
	Host                  string
	Process               int64
	Started, Beat         time.Time
	Fenced, Ended         *time.Time // nil: not
	Holds                 int        // rows in doubt that it may still settle
	Alive, MayStillSettle bool
}

// Workers returns the newest ones, and all that hold rows in doubt, oldest first.
func (s *Store) Workers(ctx context.Context, newest int) (all []Worker, err error) {
	err = s.read(ctx, func(c *pgx.Conn) error {
		rows, err := c.Query(ctx, `WITH held AS (SELECT worker, count(*) AS n FROM leadferry.lead_rows WHERE ledger = $1
			AND state = 4 GROUP BY 1)
			SELECT w.worker, w.run, w.command, w.fleet, w.shard, w.shards, w.host, w.process, w.started, w.beat,
			w.fenced, w.ended, coalesce(h.n, 0),
				w.ended IS NULL AND w.beat > clock_timestamp() - $3 * interval '1 second',
				w.ended IS NULL AND w.beat > clock_timestamp() - greatest($4::bigint, w.holds_for + 60) * interval
				'1 second'
			FROM leadferry.workers w LEFT JOIN held h USING (worker)
			WHERE w.ledger = $1 AND (h.n > 0 OR w.worker IN (SELECT worker FROM leadferry.workers WHERE ledger = $1
			ORDER BY worker DESC LIMIT $2)) ORDER BY w.worker`,
			s.ledger, newest, int(lifeTerm/time.Second), int64(afterlife/time.Second))
		if err != nil {
			return err
		}
		all, err = pgx.CollectRows(rows, pgx.RowToStructByPos[Worker])
		for i := range all {
			w := &all[i]
			w.Run, w.Command = checkpoint.Restore(w.Run), checkpoint.Restore(w.Command)
			w.Host = checkpoint.Restore(w.Host)
		}
		return err
	})
	return all, err
}

// Targets are those that have a ledger at an address.
func Targets(name string, o Options) (all []checkpoint.Target, err error) {
	o.ReadOnly = true
	s, err := connect(name, checkpoint.Target{}, o)
	if err != nil {
		return nil, err
	}
	defer s.writer.Close()
	have, err := s.versionThere(context.Background(), s.writer.Conn)
	if err != nil || have == 0 {
		return nil, s.serverError(err)
	}
	rows, err := s.writer.Query(context.Background(),
		`SELECT base_url, leads_url, trunk_id FROM leadferry.ledgers ORDER BY ledger`)
	if err != nil {
		return nil, s.serverError(err)
	}
	all, err = pgx.CollectRows(rows, pgx.RowToStructByPos[checkpoint.Target])
	return all, s.serverError(err)
}
