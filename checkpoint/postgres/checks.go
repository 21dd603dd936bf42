package postgres

import (
	"context"
	_ "embed"
	"errors"
	"strings"

	"github.com/jackc/pgx/v5"

	"leadferry/checkpoint"
)

// timelineSQL is the number of the server's history, which is another one after every promotion of a standby and every
// restore to an earlier moment.
const timelineSQL = `('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::integer`

// How standbys stand that the server has.
const (
	noStandby     = "none"
	waitedFor     = "waited for"
	neverPromoted = "never promoted"
)

//go:embed checks.sql
var checksSQL string

// standing is how the server and its standbys are, and what of the ledger is gone, see checks.sql.
type standing struct {
	timeline                               int32
	standbys                               int
	synchronous, branched, emptied, behind bool
}

// recountSQL has workers count no keys, or no forgotten ones, where none is there any more.
const recountSQL = `WITH n AS (SELECT CASE WHEN EXISTS (SELECT 1 FROM leadferry.lead_rows WHERE ledger = $1) THEN 1 ELSE
	0 END AS keys,
		CASE WHEN EXISTS (SELECT 1 FROM leadferry.forgotten WHERE ledger = $1) THEN 1 ELSE 0 END AS blocks)
	UPDATE leadferry.workers SET created = created * keys, partial = partial * keys, rejected = rejected * keys,
	in_doubt = in_doubt * keys,
		not_made = not_made * keys, forgotten = forgotten * blocks FROM n WHERE ledger = $1`

// asBefore refuses a ledger that has lost what was known once: rows, or what a standby that was not waited for did not
// have when it took over. It notes how standbys are now.
func (s *Store) asBefore(ctx context.Context, tx pgx.Tx) error {
	var n standing
	err := tx.QueryRow(ctx, strings.ReplaceAll(checksSQL, "TIMELINE", timelineSQL), s.ledger, waitedFor,
		int(afterlife.Seconds())).
		Scan(&n.timeline, &n.standbys, &n.synchronous, &n.branched, &n.emptied, &n.behind)
	if err != nil {
		return err
	}
	s.timeline, s.standby = n.timeline, noStandby
	switch {
	case n.behind:
		return s.refuse(checkpoint.ErrPlace, "its sequences are behind its tables, as logical replication leaves "+
			"them: numbers would be given twice",
			"have the owner set each sequence of the schema leadferry to the highest number of its column, "+
				"as by SELECT setval('leadferry.commits', max(seq)) FROM leadferry.workers")
	case n.synchronous:
		s.standby = waitedFor
	case n.standbys > 0 && s.o.NeverPromoted:
		s.standby = neverPromoted
	case n.standbys > 0:
		return s.refuse(checkpoint.ErrPlace,
			"its server has standbys and waits for none of them: when one takes over, what was acknowledged last is "+
				"lost, and leads would be made twice",
			"have one named in synchronous_standby_names; if none of them will ever take over, say so with "+
				"--ledger-standby never-promoted; if it is a backup that is being taken, have this user granted the "+
				"role pg_read_all_stats, which shows it")
	}
	why := ""
	switch {
	case n.branched:
		why = "its server's history has branched since the last run: it was restored, or a standby took over that " +
			"was not waited for"
	case n.emptied:
		why = "none of the rows that it knew, or of the keys that it was to forget, is there any more: a table was " +
			"emptied, or a restore has failed with it"
	}
	s.accepted = why != ""
	if why != "" && s.o.Accept != s.id {
		return s.refuse(checkpoint.ErrRolledBack, why, "leads that it does not know any more would be made twice; "+
			"if nothing newer is to be had, leadferry checkpoint check --accept-older="+s.id+" takes it as incomplete")
	}
	return nil
}

// aloneHere refuses a run beside any other run that shows life, and fences those that do not any more.
func (s *Store) aloneHere(ctx context.Context, tx pgx.Tx) error {
	var run, host string
	err := tx.QueryRow(ctx, `SELECT run, host FROM leadferry.workers WHERE ledger = $1 AND worker <> $2 AND ended IS
		NULL AND run <> ''
		AND beat > clock_timestamp() - $3 * interval '1 second' ORDER BY worker DESC LIMIT
		1`, s.ledger, s.worker, int(lifeTerm.Seconds())).Scan(&run, &host)
	if err == nil {
		return s.refuse(checkpoint.ErrLocked, "the run "+checkpoint.Restore(run)+" on "+checkpoint.Restore(host)+
			" uses it",
			"wait for it to end, or use --wait; after a kill it counts as ended once it has shown no life for a minute")
	}
	if !errors.Is(err, pgx.ErrNoRows) {
		return err
	}
	_, err = tx.Exec(ctx, `UPDATE leadferry.workers SET fenced = clock_timestamp(), fenced_by = $2
		WHERE ledger = $1 AND worker < $2 AND fenced IS NULL AND ended IS NULL AND run <> ''`, s.ledger, s.worker)
	return err
}

// stillHere refuses a ledger that has moved, or that is being filled by somebody else.
func (s *Store) stillHere(ctx context.Context, conn *pgx.Conn) error {
	var moved, filling string
	err := conn.QueryRow(ctx, `SELECT moved_to, filling FROM leadferry.ledgers WHERE ledger = $1`, s.ledger).
		Scan(&moved, &filling)
	switch {
	case err != nil:
		return err
	case moved != "" && !s.o.Moved:
		return s.moved(moved)
	case s.o.fills != "" && filling != s.o.fills:
		return s.refuse(checkpoint.ErrLocked, "was filled by another copy", "see leadferry checkpoint status")
	case filling != "" && s.o.fills == "":
		return s.refuse(checkpoint.ErrLocked, "it is being filled from "+filling+", which is not complete",
			"finish it: leadferry checkpoint copy "+checkpoint.Word(filling)+" "+checkpoint.Word(s.at.Name))
	}
	return nil
}

func (s *Store) moved(to string) error {
	return s.refuse(checkpoint.ErrGone, "its leads were moved to "+to, "use --checkpoint "+checkpoint.Word(to)+
		"; if that one is lost for good, "+checkpoint.TakeAgain(s.at.Name, s.id))
}

// Reached says how far the ledger knows a run to have come, see [checkpoint.Store]: as a worker, or, of a command, at
// all.
func (s *Store) Reached(ctx context.Context, run string) (commits uint64, knows bool, err error) {
	err = s.read(ctx, func(c *pgx.Conn) error {
		return c.QueryRow(ctx, `SELECT coalesce((SELECT max(seq) FROM leadferry.workers WHERE ledger = $1 AND run = $2),
				(SELECT max(seq) FROM leadferry.workers WHERE ledger = $1), 0),
			EXISTS (SELECT 1 FROM leadferry.notes WHERE ledger = $1 AND name =
			$3)`, s.ledger, checkpoint.Clean(run), checkpoint.RunNote(run)).Scan(&commits, &knows)
	})
	return commits, knows, err
}

// Progress is how far this worker is, see [checkpoint.Store]. What others do meanwhile it does not count.
func (s *Store) Progress() (commits uint64, leads int) {
	if known := s.last.Load(); known != nil {
		leads = known.Leads + known.InDoubt
	}
	if s.claimed.Load() {
		leads = max(leads, 1)
	}
	return s.seq.Load(), leads
}

// Accepted says that a ledger was opened although its server lost a part of it.
func (s *Store) Accepted() bool { return s.accepted }

// AtEnd has f called when the use has ended in order, see [checkpoint.Store].
func (s *Store) AtEnd(f func(left string)) { s.atEnd = f }
