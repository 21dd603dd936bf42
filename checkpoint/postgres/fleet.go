package postgres

import (
	"cmp"
	"context"
	"errors"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"leadferry/checkpoint"
)

// waitedFor is the state of the standbys if commits wait for them. The other states are in checks.sql.
const waitedFor = "waited for"

// enlist makes this process a worker. In a fleet, it must fit the terms, and fences earlier workers of its shard. A run
// without a fleet is refused while another run shows life, and fences runs that show none any more.
func (s *Store) enlist() error {
	terms := s.o.Terms
	return s.conn.Together(func() error {
		// the first step makes others wait that begin at the same time
		if err := inTurn(s.lockLedger, s.reserve, s.stillHere, s.refuseLosses, s.agree); err != nil {
			return err
		}
		host, _ := os.Hostname() // the only text of a worker that may be no UTF-8
		// after its last look at a claim, a worker may wait for a token that another one gets, get its own, and send
		holdsFor := 3 * int(s.o.Timeout/time.Second)
		err := s.conn.One(`INSERT INTO leadferry.workers (ledger, run, command, host, process, holds_for, fleet,
				shard, shards, timeline, standby, session)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) RETURNING worker, tableoid`,
			s.ledger, s.o.Run, s.o.Command, strings.ToValidUTF8(host, "?"), os.Getpid(), holdsFor,
			terms.Fleet, terms.Shard, terms.Shards, s.timeline, s.standby, s.session).Scan(&s.worker, &s.table)
		switch {
		case err != nil || s.o.Run == "":
			return err
		case terms.Fleet != "":
			return s.replace()
		}
		if err = s.noOtherRun(); err == nil {
			_, err = s.conn.Do(fenceSQL+` AND run <> ''`, s.ledger, s.worker)
		}
		return err
	})
}

// lockLedger lets one worker begin at a time, and waits for a worker that notes that the ledger lacks something.
func (s *Store) lockLedger() error {
	return s.conn.One(`SELECT missing, since FROM leadferry.ledgers WHERE ledger = $1 FOR UPDATE`, s.ledger).
		Scan(&s.missing, &s.since)
}

// stillHere refuses a ledger that was copied to another place, or that another process is filling.
func (s *Store) stillHere() error {
	var moved, filling string
	err := s.conn.One(`SELECT moved_to, filling FROM leadferry.ledgers WHERE ledger = $1`, s.ledger).
		Scan(&moved, &filling)
	switch {
	case err != nil:
		return err
	case s.o.fills != "" && filling != s.o.fills:
		return s.Refuse(checkpoint.ErrLocked, "was filled by another copy", "see leadferry checkpoint status")
	case s.o.fills != "":
		filling = ""
	}
	if s.o.Moved {
		moved = ""
	}
	return checkpoint.RefuseElsewhere(s.Name, s.id, moved, filling)
}

// refuseLosses refuses a ledger that has lost rows, or commits: a standby took over that did not have them, because the
// server did not wait for it. It also notes the timeline and the state of the standbys.
func (s *Store) refuseLosses() error {
	var why, fault, way string // what the ledger has lost, or what is wrong with its database
	err := s.conn.One(statement("checks"), s.ledger, waitedFor, s.o.NeverPromoted).
		Scan(&s.timeline, &s.standby, &why, &fault, &way)
	switch {
	case err != nil:
		return err
	case fault != "":
		return s.Refuse(checkpoint.ErrPlace, fault, way)
	case s.standby == "":
		return s.Refuse(checkpoint.ErrPlace,
			"its server has standbys and waits for none of them: when one takes over, what was acknowledged last is "+
				"lost, and leads would be made twice",
			"have one named in synchronous_standby_names; if none of them will ever take over, add --ledger-standby "+
				"never-promoted; if it is a backup that is being taken, grant this user the role pg_read_all_stats")
	}
	s.Accepted = why != ""
	if s.Accepted && s.o.Accept != s.id {
		return s.Refuse(checkpoint.ErrRolledBack, why, "leads that it does not know any more would be made twice; "+
			"if there is nothing newer, "+checkpoint.AcceptOlder(s.id, s.Name))
	}
	return nil
}

// agree compares the terms with those of the fleet, which the first worker sets. From here on, the workers of a fleet
// begin one after another: a later worker has a higher number, and sees all earlier ones.
func (s *Store) agree() error {
	terms := s.o.Terms
	if terms.Fleet == "" {
		return nil
	}
	var first checkpoint.Terms
	common := *terms
	common.Shard = 0
	err := s.conn.One(`WITH bounded AS (
			INSERT INTO leadferry.budget (ledger, fleet, most) VALUES ($1, $2, $6) ON CONFLICT DO NOTHING
		) INSERT INTO leadferry.fleets AS f (ledger, fleet, shards, rate, terms) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (ledger, fleet) DO UPDATE SET terms = f.terms RETURNING terms`,
		s.ledger, terms.Fleet, terms.Shards, terms.Rate, common, terms.MaxCreates).Scan(&first)
	if err != nil {
		return err
	}
	return terms.Fit(&first)
}

// replace fences the earlier workers of this worker's shard. It waits for a commit that one of them has begun.
func (s *Store) replace() error {
	_, err := s.conn.Do(`WITH joined AS (INSERT INTO leadferry.members (worker) VALUES ($2)) `+
		fenceSQL+` AND fleet = $3 AND shard = $4`, s.ledger, s.worker, s.o.Terms.Fleet, s.o.Terms.Shard)
	return err
}

// noOtherRun returns an error while another run shows life.
func (s *Store) noOtherRun() error {
	var run, host string
	err := s.conn.One(`SELECT run, host FROM leadferry.workers w WHERE ledger = $1 AND worker <> $2 AND run <> ''
		AND leadferry.alive(w) ORDER BY worker DESC LIMIT 1`, s.ledger, s.worker).Scan(&run, &host)
	if err == nil {
		return s.Refuse(checkpoint.ErrLocked, "the run "+run+" on "+host+" uses it",
			"wait for it to end (--wait, if the command has it); after a kill it counts as ended once it has shown no "+
				"life for a minute")
	}
	if errors.Is(err, pgx.ErrNoRows) {
		err = nil
	}
	return err
}

// Exchange tells the fleet what this worker has done, and returns what holds for all workers now. It returns
// checkpoint.ErrFenced if a newer worker has replaced this one; after another error it may be tried again. Its writes
// need not survive a crash, so it does not wait for disks, and waits at most a second for locks.
func (s *Store) Exchange(ctx context.Context, p checkpoint.Progress) (c checkpoint.Common, err error) {
	var fenced bool
	var why error
	err = s.read(ctx, func() error {
		c = checkpoint.Common{}
		b := &pgx.Batch{}
		b.Queue(`SELECT set_config('synchronous_commit', 'off', true), set_config('lock_timeout', '1s', true)`)
		b.Queue(`UPDATE leadferry.members SET told = clock_timestamp(), read = $2, invalid = $3, sent = $4,
			refused = $5, doubts = $6, rows = $7 WHERE worker = $1`,
			s.worker, p.Read, p.Invalid, p.Sent, p.Refused, p.Doubts, p.Rows)
		b.Queue(`UPDATE leadferry.workers SET beat = clock_timestamp()
			WHERE worker = $1 AND beat < clock_timestamp() - interval '5 seconds'`, s.worker)
		if p.Pause > 0 {
			b.Queue(`UPDATE leadferry.fleets f SET opens = greatest(leadferry.opening(f),
				clock_timestamp() + $3::interval) WHERE ledger = $1 AND fleet = $2`, s.ledger, s.o.Terms.Fleet, p.Pause)
		}
		if p.Wants {
			b.Queue(statement("share"), s.ledger, s.o.Terms.Fleet).
				QueryRow(func(row pgx.Row) error { return row.Scan(&c.Tokens, &c.After) })
		}
		b.Queue(statement("exchange"), s.ledger, s.worker, s.o.Terms.Fleet).QueryRow(func(row pgx.Row) error {
			return row.Scan(&fenced, &c.Pause, &c.Read, &c.Invalid, &c.Sent, &c.Refused, &c.Doubts)
		})
		if err = s.conn.Send(b); err == nil && fenced {
			_, why, err = s.mayClaim()
		}
		return err
	})
	return c, cmp.Or(err, why)
}

// Conclude stores the worker's summary, in JSON, for the report of the fleet.
func (s *Store) Conclude(ctx context.Context, summary []byte) error {
	return s.read(ctx, func() error {
		_, err := s.conn.Do(`UPDATE leadferry.members SET told = clock_timestamp(), summary = $2 WHERE worker = $1`,
			s.worker, summary)
		return err
	})
}

// spend takes leads from the number that the fleet may still make, or gives some back, inside the commit of the claims.
func (s *Store) spend(b *pgx.Batch, leads int) {
	if leads != 0 && s.o.Terms.MaxCreates > 0 {
		b.Queue(`UPDATE leadferry.budget SET made = made + $3 WHERE ledger = $1 AND fleet = $2
			RETURNING leadferry.must($3 <= 0 OR made <= most, '`+tooMany+`')`, s.ledger, s.o.Terms.Fleet, leads)
	}
}

// UnderWay returns the other runs that may still settle their rows, see [checkpoint.Store].
func (s *Store) UnderWay(ctx context.Context) (map[string]bool, error) {
	all, err := rowsOf[struct{ Run string }](ctx, s, statement("underway"), s.worker)
	runs := make(map[string]bool, len(all))
	for _, one := range all {
		runs[one.Run] = true
	}
	return runs, err
}

// Members lists the workers of a fleet in the order in which they came.
func (s *Store) Members(ctx context.Context, fleet string) ([]checkpoint.Member, error) {
	return rowsOf[checkpoint.Member](ctx, s, `SELECT w.shard, w.shards, w.started, greatest(w.beat, m.told),
			row_number() OVER (PARTITION BY shard ORDER BY worker DESC) = 1, convert_to(m.rows::text, 'UTF8'), m.summary
		FROM leadferry.workers w JOIN leadferry.members m USING (worker)
		WHERE w.ledger = $1 AND w.fleet = $2 ORDER BY w.worker`, s.ledger, fleet)
}

// Worker is one opening of a ledger for writing, for people to see.
type Worker struct {
	ID                    int64
	Run, Command          string
	Fleet                 string
	Shard, Shards         int
	Host                  string
	Process               int64
	Started, Beat         time.Time
	Fenced, Ended         *time.Time // nil: not yet
	Holds                 int        // rows in doubt that it may still settle
	Alive, MayStillSettle bool
}

// Workers returns the newest workers, and all workers that hold rows in doubt, oldest first.
func (s *Store) Workers(ctx context.Context, newest int) ([]Worker, error) {
	return rowsOf[Worker](ctx, s, statement("workers"), s.ledger, newest)
}
