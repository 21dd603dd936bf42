package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"leadferry/checkpoint"
	"leadferry/checkpoint/postgres/server"
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
	why := s.behind(ctx, tx)
	switch {
	case n.branched:
		why = "its server's history has branched since the last run: it was restored, or a standby took over that was not waited for"
	case n.emptied:
		why = "none of the rows that it knew, or of the keys that it was to forget, is there any more: a table was emptied, or a restore has failed with it"
	}
	switch {
	case why == "":
		return nil
	case !s.o.Accept:
		return s.refuse(checkpoint.ErrRolledBack, why, "leads that it does not know any more would be made twice; if nothing newer is to be had, leadferry checkpoint check --accept-older takes it as incomplete")
	}
	return s.acceptOlder(ctx, tx, "what was known before its server lost it")
}

// behind says what knows more of the ledger than it does itself, as a sentence; "" where nothing does.
func (s *Store) behind(ctx context.Context, tx pgx.Tx) string {
	var last int64
	own := s.remembered() // before the ledger is asked: others commit, and have this machine remember it
	if err := tx.QueryRow(ctx, `SELECT coalesce(max(seq), 0) FROM leadferry.workers WHERE ledger = $1`, s.ledger).Scan(&last); err != nil {
		return ""
	}
	if own > last {
		return fmt.Sprintf("it is older than what this machine has seen of it: commit %d is its last, and was %d", last, own)
	}
	for _, w := range s.o.Witnesses {
		if w.ID != s.id {
			continue
		}
		known := last
		if w.Run != "" {
			_ = tx.QueryRow(ctx, `SELECT coalesce(max(seq), 0) FROM leadferry.workers WHERE ledger = $1 AND run = $2`, s.ledger, clean(w.Run)).Scan(&known)
		}
		if uint64(known) < w.Sequence {
			return fmt.Sprintf("it is older than the run of which %s tells: that run's last commit was %d, and %d is the last of it that the ledger knows", w.Source, w.Sequence, known)
		}
	}
	return ""
}

// acceptOlder takes a ledger from which something is missing, under a new ID, also when it was copied elsewhere.
func (s *Store) acceptOlder(ctx context.Context, tx pgx.Tx, missing string) error {
	s.tookOlder, s.missing = true, missing
	id := newID()
	err := tx.QueryRow(ctx, `UPDATE leadferry.ledgers SET id = $2, ancestor = trim(ancestor || ' ' || id), missing = $3, moved_to = '', since = nextval('leadferry.commits') WHERE ledger = $1 RETURNING since`,
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
		return s.refuse(checkpoint.ErrLocked, "the run "+restore(run)+" on "+restore(host)+" uses it", "wait for it to end, or use --wait; after a kill it counts as ended once it has shown no life for a minute")
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
	case moved != "" && s.o.Accept:
		return s.acceptOlder(ctx, tx, "what "+moved+" has known besides, where it was copied to")
	case moved != "" && !s.o.Moved:
		return s.moved(moved)
	case filling != "":
		return s.refuse(checkpoint.ErrLocked, "it is being filled from "+filling+", which is not complete", "finish it: leadferry checkpoint copy "+checkpoint.Word(filling)+" "+checkpoint.Word(s.at.Name))
	}
	return nil
}

func (s *Store) moved(to string) error {
	return s.refuse(checkpoint.ErrGone, "its leads were moved to "+to, "use --checkpoint "+checkpoint.Word(to)+"; if that one is lost for good, "+checkpoint.TakeAgain(s.at.Name))
}

// memory is what this machine remembers of a ledger, beside what runs tell in their own folders.
type memory struct {
	Sequence int64             `json:"sequence"`
	Address  string            `json:"address"`
	Target   checkpoint.Target `json:"target"`
	Leads    int               `json:"leads"`
}

func (s *Store) memoryPath() string {
	if s.o.State == "" {
		return ""
	}
	return filepath.Join(s.o.State, "ledgers", s.id+".json")
}

func readMemory(path string) (m memory) {
	text, err := os.ReadFile(path)
	if err != nil || json.Unmarshal(text, &m) != nil {
		return memory{}
	}
	return m
}

// remembered is the last commit that this machine has seen, or 0.
func (s *Store) remembered() int64 { return readMemory(s.memoryPath()).Sequence }

// remember notes the last commit. It is a witness among others: where it cannot be written, that
// is no error.
func (s *Store) remember() {
	path, known := s.memoryPath(), s.last.Load()
	if path == "" || known == nil || s.seq.Load() == 0 {
		return
	}
	leads := known.Leads // when it was asked last
	if s.claimed.Load() {
		leads = max(leads, 1)
	}
	text, err := json.Marshal(memory{int64(s.seq.Load()), s.at.Name, s.target, leads})
	if err == nil && os.MkdirAll(filepath.Dir(path), 0o700) == nil && os.WriteFile(path+".new", text, 0o600) == nil {
		_ = os.Rename(path+".new", path)
	}
}

// witnesses are what runs tell, and what this machine remembers.
func (s *Store) witnesses() []checkpoint.Witness {
	all := slices.Clone(s.o.Witnesses)
	if s.o.State == "" {
		return all
	}
	paths, _ := filepath.Glob(filepath.Join(s.o.State, "ledgers", "*.json"))
	for _, path := range paths {
		if m := readMemory(path); m.Address != "" {
			all = append(all, checkpoint.Witness{
				Source: path, Path: m.Address, ID: strings.TrimSuffix(filepath.Base(path), ".json"), Sequence: uint64(m.Sequence), Leads: m.Leads, Target: m.Target,
			})
		}
	}
	return all
}

// vanished refuses a ledger that is not the one of which something at hand tells, at this address and of this target. Where
// it is begun anew all the same, it comes in the place of that one.
func (s *Store) vanished(ctx context.Context) error {
	var ancestors string
	if err := s.writer.QueryRow(ctx, `SELECT ancestor FROM leadferry.ledgers WHERE ledger = $1`, s.ledger).Scan(&ancestors); err != nil {
		return s.serverError(err)
	}
	for _, w := range s.witnesses() {
		if w.ID == s.id || w.Target.Canonical() != s.target || w.Leads+w.Made == 0 || slices.Contains(strings.Fields(ancestors), w.ID) || !s.isAt(w.Path) {
			continue
		}
		if !s.o.Anew || !s.fresh {
			return s.refuse(checkpoint.ErrGone, "is not the ledger of which "+w.Source+" tells, which knew leads of this target",
				"restore that one: rows of which it knew would be made again; --new-checkpoint begins anew all the same, where nothing is known yet")
		}
		s.predecessor = "of which " + w.Source + " tells knew leads of this target and is gone"
		if _, err := s.writer.Exec(ctx, `UPDATE leadferry.ledgers SET ancestor = trim(ancestor || ' ' || $2) WHERE ledger = $1`, s.ledger, w.ID); err != nil {
			return s.serverError(err)
		}
	}
	return nil
}

// isAt says whether a name is that of the ledger's database.
func (s *Store) isAt(name string) bool {
	if name == s.at.Name || !checkpoint.IsAddress(name) {
		return name == s.at.Name
	}
	other, err := server.Parse(name)
	return err == nil && s.at.Same(other)
}
