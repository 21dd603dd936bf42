package postgres

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/jackc/pgx/v5"

	"leadferry/checkpoint"
)

// enlist makes this process a worker, which has its place from then on. Of a fleet it has to fit the terms; then it
// fences the worker that had its shard before.
func (s *Store) enlist(ctx context.Context) error {
	var terms checkpoint.Terms
	if s.o.Terms != nil {
		terms = *s.o.Terms
	}
	err := pgx.BeginFunc(ctx, s.writer.Conn, func(tx pgx.Tx) error {
		if err := s.lockLedger(ctx, tx.Conn()); err != nil { // those who begin at the same time wait
			return err
		}
		if err := s.stillHere(ctx, tx.Conn()); err != nil {
			return err
		}
		if err := s.asBefore(ctx, tx); err != nil {
			return err
		}
		if terms.Fleet != "" {
			if err := s.agree(ctx, tx, &terms); err != nil {
				return err
			}
		}
		host, _ := os.Hostname()
		err := tx.QueryRow(ctx, `INSERT INTO leadferry.workers (ledger, run, command, host, process, holds_for, fleet,
			shard, shards, timeline, standby, session)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) RETURNING worker`,
			s.ledger, checkpoint.Clean(s.o.Run), checkpoint.Clean(s.o.Command), checkpoint.Clean(host), os.Getpid(),
			int(s.o.Timeout/time.Second), terms.Fleet, terms.Shard, terms.Shards, s.timeline, s.standby,
			s.session).Scan(&s.worker)
		switch {
		case err != nil || s.o.Run == "":
			return err
		case terms.Fleet == "":
			return s.aloneHere(ctx, tx)
		}
		return s.replace(ctx, tx, &terms)
	})
	var misfit *checkpoint.TermsError
	if errors.As(err, &misfit) {
		return misfit
	}
	return s.serverError(err)
}

// agree holds the terms against those of the fleet, which the first worker sets. From here on workers of a fleet come
// one after another: who comes later has the higher number, and sees all that came before.
func (s *Store) agree(ctx context.Context, tx pgx.Tx, terms *checkpoint.Terms) error {
	common := *terms
	common.Shard = 0
	text, err := json.Marshal(common)
	if err != nil {
		return err
	}
	err = tx.QueryRow(ctx, `INSERT INTO leadferry.fleets AS f (ledger, fleet, shards, rate, terms) VALUES ($1, $2, $3,
		$4, $5)
		ON CONFLICT (ledger, fleet) DO UPDATE SET terms = f.terms RETURNING
		terms`, s.ledger, terms.Fleet, terms.Shards, terms.Rate, text).Scan(&text)
	if err == nil {
		_, err = tx.Exec(ctx, `INSERT INTO leadferry.budget (ledger, fleet, most) VALUES ($1, $2, $3) ON CONFLICT DO
			NOTHING`, s.ledger, terms.Fleet, terms.MaxCreates)
	}
	if err != nil {
		return err
	}
	var first checkpoint.Terms
	if err := json.Unmarshal(text, &first); err != nil {
		return fmt.Errorf("read the fleet's terms: %w", err)
	}
	if how := terms.Differs(&first); how != "" {
		return &checkpoint.TermsError{Fleet: terms.Fleet, Text: how}
	}
	return nil
}

// replace fences the workers that had this one's shard. Anyone who of them is about to commit is waited for.
func (s *Store) replace(ctx context.Context, tx pgx.Tx, terms *checkpoint.Terms) error {
	_, err := tx.Exec(ctx, `UPDATE leadferry.workers SET fenced = clock_timestamp(), fenced_by = $4
		WHERE ledger = $1 AND fleet = $2 AND shard = $3 AND worker < $4 AND fenced IS NULL AND ended IS
		NULL`, s.ledger, terms.Fleet, terms.Shard, s.worker)
	if err == nil {
		_, err = tx.Exec(ctx, `INSERT INTO leadferry.members (worker) VALUES ($1)`, s.worker)
	}
	if err != nil {
		return err
	}
	rows, err := tx.Query(ctx, `SELECT DISTINCT run FROM leadferry.workers WHERE ledger = $1 AND fleet = $2 AND shard =
		$3 AND worker < $4`,
		s.ledger, terms.Fleet, terms.Shard, s.worker)
	if err == nil {
		s.before, err = pgx.CollectRows(rows, pgx.RowTo[string])
	}
	return err
}

// Before are the runs of workers of its fleet that had this one's shard before it.
func (s *Store) Before() []string { return s.before }

//go:embed exchange.sql
var exchangeSQL string

// mostGiven is how far ahead the rate may be given away: no worker has more than a piece or two before it. What lies
// further ahead was noted before the server's clock was put back, and nobody waits for that.
const mostGiven = `greatest(60, 2 * shards * leadferry.piece(rate, shards) / rate) * interval '1 second'`

// Exchange tells the fleet what this worker has done, and returns what holds for all of its workers now. It returns
// checkpoint.ErrFenced when a newer worker has its place; after another error it may be tried again. Nothing of what
// it writes has to last: it does not wait for disks.
func (s *Store) Exchange(ctx context.Context, p checkpoint.Progress) (c checkpoint.Common, err error) {
	told, err := json.Marshal(p.Rows)
	if err != nil {
		return c, err
	}
	var after, pause float64
	var fenced bool
	var why error
	err = s.read(ctx, func(conn *pgx.Conn) error {
		c = checkpoint.Common{}
		b := &pgx.Batch{}
		b.Queue(`SELECT set_config('synchronous_commit', 'off', true)`)
		b.Queue(`UPDATE leadferry.members SET told = clock_timestamp(), read = $2, invalid = $3, sent = $4, refused =
			$5, doubts = $6, rows = $7,
			summary = coalesce($8, summary) WHERE worker =
			$1`, s.worker, p.Read, p.Invalid, p.Sent, p.Refused, p.Doubts, told, p.Summary)
		b.Queue(`UPDATE leadferry.workers SET beat = clock_timestamp() WHERE worker = $1 AND beat < clock_timestamp() -
			interval '5 seconds'`, s.worker)
		if p.Pause > 0 {
			b.Queue(`UPDATE leadferry.fleets SET opens = greatest(CASE WHEN opens <= clock_timestamp() + interval
				'15 minutes' THEN opens END,
				clock_timestamp() + $3 * interval '1 microsecond') WHERE ledger = $1 AND fleet =
				$2`, s.ledger, s.o.Terms.Fleet, p.Pause.Microseconds())
		}
		if p.Wants {
			b.Queue(`UPDATE leadferry.fleets SET given = least(greatest(given, clock_timestamp()), clock_timestamp() +
				`+mostGiven+`)
					+ leadferry.piece(rate, shards) / rate * interval '1 second' WHERE ledger = $1 AND fleet = $2 AND
					rate > 0
				RETURNING leadferry.piece(rate, shards)::integer, greatest(extract(epoch FROM given - clock_timestamp())
				- leadferry.piece(rate, shards) / rate, 0)::float8`,
				s.ledger, s.o.Terms.Fleet).QueryRow(func(row pgx.Row) error { return row.Scan(&c.Tokens, &after) })
		}
		b.Queue(exchangeSQL, s.ledger, s.worker, s.o.Terms.Fleet).QueryRow(func(row pgx.Row) error {
			return row.Scan(&fenced, &pause, &c.Read, &c.Invalid, &c.Sent, &c.Refused, &c.Doubts)
		})
		if err := conn.SendBatch(ctx, b).Close(); err != nil || !fenced {
			return err
		}
		why = s.whyFenced(conn)
		return nil
	})
	c.After, c.Pause = time.Duration(after*float64(time.Second)), time.Duration(pause*float64(time.Second))
	return c, cmp.Or(err, why)
}

// Conclude leaves the worker's summary, in JSON, for the report of the fleet.
func (s *Store) Conclude(ctx context.Context, summary []byte) error {
	return s.read(ctx, func(conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, `UPDATE leadferry.members SET told = clock_timestamp(), summary = $2 WHERE worker =
			$1`, s.worker, summary)
		return err
	})
}

// isLimited says that the fleet may make a number of leads only.
func (s *Store) isLimited() bool { return s.o.Terms != nil && s.o.Terms.MaxCreates > 0 }

// spend takes leads from what the fleet may still make, or gives some back, inside the commit that claims them.
func (s *Store) spend(b *pgx.Batch, leads int) {
	if leads != 0 && s.isLimited() {
		b.Queue(`UPDATE leadferry.budget SET made = made + $3 WHERE ledger = $1 AND fleet = $2
			RETURNING leadferry.must($3 <= 0 OR made <= most, '`+tooMany+`')`, s.ledger, s.o.Terms.Fleet, leads)
	}
}

// roomFor is how many leads the fleet may still make, with those that come back by changes.
func (s *Store) roomFor(w *working, base map[string]*row) (room int, err error) {
	err = s.ask(func() error {
		return s.writer.QueryRow(context.Background(),
			`SELECT most - made FROM leadferry.budget WHERE ledger = $1 AND fleet = $2`, s.ledger,
			s.o.Terms.Fleet).Scan(&room)
	})
	return max(room+w.givenBack(base), 0), err
}

// givenBack counts the claims of this worker that come to no lead.
func (w *working) givenBack(base map[string]*row) (n int) {
	for key, old := range base {
		state := w.rows[key].state()
		if old.state() == checkpoint.InDoubt && old.worker == w.worker &&
			(state == checkpoint.Unknown || state == checkpoint.Rejected) {
			n++
		}
	}
	return n
}

// Standing counts the rows in doubt that wait for a person, see [checkpoint.Ledger].
func (s *Store) Standing(ctx context.Context) (n int, err error) {
	fleet := ""
	if s.o.Terms != nil {
		fleet = s.o.Terms.Fleet
	}
	err = s.read(ctx, func(c *pgx.Conn) error {
		return c.QueryRow(ctx, `SELECT count(*) FROM leadferry.lead_rows l LEFT JOIN leadferry.workers w USING (worker)
			WHERE l.ledger = $1 AND l.state = $2 AND l.reason <> $3 AND ($4 = '' OR w.fleet IS DISTINCT FROM $4)
			AND NOT coalesce(w.ended IS NULL AND w.beat > clock_timestamp() - $5 * interval '1 second', false)`,
			s.ledger, int(checkpoint.InDoubt), checkpoint.ReasonIncomplete, fleet, int(lifeTerm.Seconds())).Scan(&n)
	})
	return n, err
}

// Members lists the workers of a fleet in the order in which they came, and says how many shards it has; 0: there is no
// such fleet.
func (s *Store) Members(ctx context.Context, fleet string) (shards int, all []checkpoint.Member, err error) {
	err = s.read(ctx, func(c *pgx.Conn) error {
		err := c.QueryRow(ctx, `SELECT shards FROM leadferry.fleets WHERE ledger = $1 AND fleet = $2`, s.ledger,
			fleet).Scan(&shards)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		rows, err := c.Query(ctx, `SELECT w.shard, w.started, greatest(w.beat, m.told), row_number() OVER (PARTITION BY
			w.shard ORDER BY w.worker DESC) = 1,
			convert_to(m.rows::text, 'UTF8'), m.summary FROM leadferry.workers w JOIN leadferry.members m USING (worker)
			WHERE w.ledger = $1 AND w.fleet = $2 ORDER BY w.worker`, s.ledger, fleet)
		if err != nil {
			return err
		}
		all, err = pgx.CollectRows(rows, pgx.RowToStructByPos[checkpoint.Member])
		return err
	})
	return shards, all, err
}
