package postgres

import (
	"context"
	"encoding/json"

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

// standing is how the server and its standbys are.
type standing struct {
	timeline    int32
	standbys    int
	unnamed     int // of them, of which this user may not see what they are
	synchronous bool
	branched    bool // since workers whose commits no standby was waited for
	unlogged    bool // a crash would empty its tables
	emptied     bool // keys were counted, and none is there
	reset       bool // its sequences would give numbers once more
}

// followsSQL says of a row of pg_stat_replication that it may be a standby. A backup that is being taken is none, whose name not
// every user may see: its first connection tells how far it is, and its second one has a slot of its own for as long as it lasts.
const followsSQL = `coalesce(application_name, '') NOT IN ('pg_basebackup', 'pg_receivewal') AND pid NOT IN (SELECT pid FROM pg_stat_progress_basebackup)
	AND pid NOT IN (SELECT active_pid FROM pg_replication_slots WHERE active_pid IS NOT NULL AND temporary AND slot_name LIKE 'pg\_basebackup\_%')`

// mayHaveGoneOnSQL says of a worker that it may have claimed more than stands here: the newest one, or one that had not ended, nor
// been fenced, and showed life about as late as any.
const mayHaveGoneOnSQL = `(worker = (SELECT max(worker) FROM leadferry.workers WHERE ledger = $1) OR ended IS NULL AND fenced IS NULL
	AND beat > (SELECT max(beat) FROM leadferry.workers WHERE ledger = $1) - $3 * interval '1 second')`

// emptiedSQL says that workers have counted keys, or forgotten ones, and none stands there: a table was emptied, or a restore has
// failed with it. recountSQL has them count none then.
const (
	noRows     = `NOT EXISTS (SELECT 1 FROM leadferry.lead_rows WHERE ledger = $1)`
	noBlocks   = `NOT EXISTS (SELECT 1 FROM leadferry.forgotten WHERE ledger = $1)`
	emptiedSQL = `(SELECT coalesce(sum(created + partial + rejected + in_doubt + not_made), 0) > 0 AND ` + noRows + ` OR coalesce(sum(forgotten), 0) > 0 AND ` + noBlocks + `
		FROM leadferry.workers WHERE ledger = $1)`
	recountSQL = `WITH n AS (SELECT CASE WHEN ` + noRows + ` THEN 0 ELSE 1 END AS keys, CASE WHEN ` + noBlocks + ` THEN 0 ELSE 1 END AS blocks)
		UPDATE leadferry.workers SET created = created * keys, partial = partial * keys, rejected = rejected * keys, in_doubt = in_doubt * keys,
			not_made = not_made * keys, forgotten = forgotten * blocks FROM n WHERE ledger = $1`
)

// resetSQL says that sequences are behind what they gave: logical replication leaves them where they were.
const resetSQL = `coalesce(pg_sequence_last_value('leadferry.commits'), 0) < (SELECT coalesce(max(seq), 0) FROM leadferry.workers WHERE ledger = $1)
	OR coalesce(pg_sequence_last_value(pg_get_serial_sequence('leadferry.workers', 'worker')), 0) < (SELECT coalesce(max(worker), 0) FROM leadferry.workers)`

// asBefore refuses a ledger that has lost what was known once: one that is behind a witness, one
// of which a standby has taken over that was not waited for. It notes how standbys stand now.
func (s *Store) asBefore(ctx context.Context, tx pgx.Tx) error {
	var n standing
	err := tx.QueryRow(ctx, `SELECT `+timelineSQL+`,
		(SELECT count(*) FROM pg_stat_replication WHERE `+followsSQL+`), (SELECT count(*) FROM pg_stat_replication WHERE application_name IS NULL AND `+followsSQL+`),
		current_setting('synchronous_standby_names') <> '',
		EXISTS (SELECT 1 FROM leadferry.workers WHERE ledger = $1 AND timeline NOT IN (0, `+timelineSQL+`) AND standby <> $2 AND `+mayHaveGoneOnSQL+`),
		EXISTS (SELECT 1 FROM pg_class WHERE relnamespace = 'leadferry'::regnamespace AND relpersistence <> 'p'), `+emptiedSQL+`, `+resetSQL, s.ledger, waitedFor, int(afterlife.Seconds())).
		Scan(&n.timeline, &n.standbys, &n.unnamed, &n.synchronous, &n.branched, &n.unlogged, &n.emptied, &n.reset)
	if err != nil {
		return err
	}
	switch {
	case n.reset:
		return s.refuse(checkpoint.ErrPlace, "its sequences are behind its tables, as logical replication leaves them: numbers would be given twice",
			"have the owner set each sequence of the schema leadferry to the highest number of its column, as by SELECT setval('leadferry.commits', max(seq)) FROM leadferry.workers")
	case n.unlogged:
		return s.refuse(checkpoint.ErrPlace, "its tables are UNLOGGED: a crash of its server empties them, and leads would be made twice", "have the owner carry out ALTER TABLE … SET LOGGED for each table of the schema leadferry")
	}
	s.timeline, s.standby = n.timeline, noStandby
	switch {
	case n.synchronous:
		s.standby = waitedFor
	case n.standbys > 0 && s.o.NeverPromoted:
		s.standby = neverPromoted
	case n.standbys > 0:
		hint := "have one named in synchronous_standby_names; if none of them will ever take over, say so with --ledger-standby never-promoted"
		if n.unnamed > 0 {
			hint += "; if they are no standbys, but a backup that is being taken, have this user granted the role pg_read_all_stats, which shows it"
		}
		return s.refuse(checkpoint.ErrPlace, "its server has standbys and waits for none of them: when one takes over, what was acknowledged last is lost, and leads would be made twice", hint)
	}
	why := ""
	switch {
	case n.branched:
		why = "its server's history has branched since the last run: it was restored, or a standby took over that was not waited for"
	case n.emptied:
		why = "none of the rows that it knew, or of the keys that it was to forget, is there any more: a table was emptied, or a restore has failed with it"
	}
	switch {
	case why == "":
		return nil
	case s.o.Accept != s.id:
		return s.refuse(checkpoint.ErrRolledBack, why, "leads that it does not know any more would be made twice; if nothing newer is to be had, leadferry checkpoint check --accept-older="+s.id+" takes it as incomplete")
	}
	return s.acceptOlder(ctx, tx, "what was known before its server lost it")
}

// acceptOlder takes a ledger from which something is missing, under a new ID, also when it was copied elsewhere.
func (s *Store) acceptOlder(ctx context.Context, tx pgx.Tx, missing string) error {
	if err := s.descend(ctx, tx); err != nil {
		return err
	}
	s.missing, s.accepted = missing, true
	id := newID()
	err := tx.QueryRow(ctx, `UPDATE leadferry.ledgers SET id = $2, missing = $3, moved_to = '', since = nextval('leadferry.commits') WHERE ledger = $1 RETURNING since`,
		s.ledger, id, s.missing).Scan(&s.since)
	s.id = id
	if err == nil {
		_, err = tx.Exec(ctx, recountSQL, s.ledger)
	}
	if err == nil {
		err = s.stopAll(ctx, tx)
	}
	return err
}

// aloneHere refuses a run beside any other run that shows life, and fences those that do not any more.
func (s *Store) aloneHere(ctx context.Context, tx pgx.Tx) error {
	var run, host string
	err := tx.QueryRow(ctx, `SELECT run, host FROM leadferry.workers WHERE ledger = $1 AND worker <> $2 AND ended IS NULL AND run <> ''
		AND beat > clock_timestamp() - $3 * interval '1 second' ORDER BY worker DESC LIMIT 1`, s.ledger, s.worker, int(lifeTerm.Seconds())).Scan(&run, &host)
	if err == nil {
		return s.refuse(checkpoint.ErrLocked, "the run "+checkpoint.Restore(run)+" on "+checkpoint.Restore(host)+" uses it", "wait for it to end, or use --wait; after a kill it counts as ended once it has shown no life for a minute")
	}
	if err != pgx.ErrNoRows {
		return err
	}
	_, err = tx.Exec(ctx, `UPDATE leadferry.workers SET fenced = clock_timestamp(), fenced_by = $2 WHERE ledger = $1 AND worker < $2 AND fenced IS NULL AND ended IS NULL AND run <> ''`, s.ledger, s.worker)
	return err
}

// stillHere refuses a ledger that has moved, or that is being filled.
func (s *Store) stillHere(ctx context.Context, tx pgx.Tx) error {
	var moved, filling string
	err := tx.QueryRow(ctx, `SELECT moved_to, filling FROM leadferry.ledgers WHERE ledger = $1 FOR UPDATE`, s.ledger).Scan(&moved, &filling)
	switch {
	case err != nil:
		return err
	case moved != "" && !s.o.Moved:
		return s.moved(moved)
	case s.o.fills != "" && filling != s.o.fills:
		return s.refuse(checkpoint.ErrLocked, "was filled by another copy", "see leadferry checkpoint status")
	case filling != "" && s.o.fills == "":
		return s.refuse(checkpoint.ErrLocked, "it is being filled from "+filling+", which is not complete", "finish it: leadferry checkpoint copy "+checkpoint.Word(filling)+" "+checkpoint.Word(s.at.Name))
	}
	return nil
}

func (s *Store) moved(to string) error {
	return s.refuse(checkpoint.ErrGone, "its leads were moved to "+to, "use --checkpoint "+checkpoint.Word(to)+"; if that one is lost for good, "+checkpoint.TakeAgain(s.at.Name, s.id))
}

// descend has the ledger descend from what it was until now.
func (s *Store) descend(ctx context.Context, tx pgx.Tx) error {
	var l checkpoint.Lineage
	var text string
	var last uint64
	err := tx.QueryRow(ctx, `SELECT coalesce((SELECT value FROM leadferry.notes WHERE ledger = $1 AND name = $2), '{}'),
		(SELECT coalesce(max(seq), 0) FROM leadferry.workers WHERE ledger = $1)`, s.ledger, checkpoint.LineageNote).Scan(&text, &last)
	if err == nil {
		err = json.Unmarshal([]byte(text), &l)
	}
	if err != nil {
		return err
	}
	l.Descend(s.id, last)
	value, err := l.Encode()
	if err == nil {
		_, err = tx.Exec(ctx, putNoteSQL, s.ledger, checkpoint.LineageNote, string(value))
	}
	return err
}

// Reached says how far the ledger knows a run to have come, see [checkpoint.Store]: as a worker, or, of a command, at all.
func (s *Store) Reached(ctx context.Context, run string) (commits uint64, knows bool, err error) {
	err = s.read(ctx, func(c *pgx.Conn) error {
		return c.QueryRow(ctx, `SELECT coalesce((SELECT max(seq) FROM leadferry.workers WHERE ledger = $1 AND run = $2),
				(SELECT max(seq) FROM leadferry.workers WHERE ledger = $1), 0),
			EXISTS (SELECT 1 FROM leadferry.notes WHERE ledger = $1 AND name = $3)`, s.ledger, checkpoint.Clean(run), checkpoint.RunNote(run)).Scan(&commits, &knows)
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

// Accepted says that opening took a ledger of which its server has lost some.
func (s *Store) Accepted() bool { return s.accepted }

// AtEnd has f called when the use has ended in order, see [checkpoint.Store].
func (s *Store) AtEnd(f func(left string)) { s.atEnd = f }
