package postgres

import (
	"context"
	_ "embed"
	"errors"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"leadferry/checkpoint"
)

//go:embed write.sql
var writeSQL string

// deciding is the kind of the lock, of one ledger, that commits share and whoever decides about its rows has alone. A commit takes
// it by a statement of its own, in the same round trip: what comes behind it sees what was decided.
const deciding, shareLedger = 0x6C656164, "share ledger"

// The statements that write. To look for a conflict before each row is an eighth of the server's time, so a commit looks for
// none at first: where there is one, the server undoes it as a whole.
const writeAll, writeWhatFits = "write all", "write what fits"

// promised says of a worker's row that a commit is as durable now as when the worker began: what a standby of then lacks is lost
// unseen when it takes over.
const promised = `current_setting('fsync') = 'on' AND current_setting('synchronous_commit') IN ('on', 'remote_apply')
	AND (standby <> '` + waitedFor + `' OR current_setting('synchronous_standby_names') <> '')`

// mostChanges is how many go with one statement: all that 64 requests in flight may ask for at once, which are as many claims and
// outcomes as they have slots.
const mostChanges = 256

// write is a row that is to stand.
type write struct {
	*row
	seen  uint64 // the version that it comes in place of; 0: none
	was   checkpoint.State
	claim bool   // nothing that a fenced worker may do
	owns  string // the lead that it comes to own
	hash  []byte // of a key that is new
}

// writeOf has a row stand in place of an old one.
func (s *Store) writeOf(old, r *row) write {
	w := write{row: r, seen: old.seq, was: old.state()}
	if r.lead() != old.lead() {
		w.owns = r.lead()
	}
	if old.seq == 0 {
		w.hash = s.digests.Blocked(r.key)
	}
	return w
}

// writes are the rows that have changed, ordered by key.
func (w *working) writes(s *Store, g *group, base map[string]*row) (all []write) {
	claims := make(map[string]bool)
	for i, c := range g.changes {
		key := g.asked[i].Key
		if c.Err == nil && (c.Kind == checkpoint.Claim || c.Kind == checkpoint.Mark) {
			claims[key] = true
		}
		if i > 0 && g.asked[i-1].Key == key || w.rows[key] == base[key] {
			continue
		}
		all = append(all, s.writeOf(base[key], w.rows[key]))
	}
	for i := range all {
		all[i].claim = claims[all[i].key]
	}
	return all
}

// reply is what the server says of a commit.
type reply struct {
	commits, seq uint64
	live         bool // the worker is not fenced
	keys         map[string]bool
}

// isConflict says that the server ended one of two transactions that waited for one another.
func isConflict(err error) bool { return isOneOf(err, "40P01", "40001") }

// isCancelled says that somebody has ended a statement before it was done.
func isCancelled(err error) bool { return isOneOf(err, "57014") }

// isTaken says that a key, or a lead ID, stood there already.
func isTaken(err error) bool { return isOneOf(err, "23505") }

func isOneOf(err error, codes ...string) bool {
	var e *pgconn.PgError
	return errors.As(err, &e) && slices.Contains(codes, e.Code)
}

// lists are how many lists a statement that writes takes: the columns, what stands hidden, and what decides whether a row is written.
const lists = 26

// values are those of the lists.
func (w *write) values() []any {
	return append(w.row.values(), strings.Join(cleanTexts(w.hidden()), checkpoint.Between), int64(w.seen), int16(w.was), w.claim, checkpoint.Clean(w.owns), w.hash)
}

// send has rows stored, as a statement of its own or inside a transaction.
func (s *Store) send(statement string, writes []write) (*reply, error) {
	columns := make([][]any, lists)
	for i := range writes {
		for at, v := range writes[i].values() {
			columns[at] = append(columns[at], v)
		}
	}
	args := []any{s.ledger, s.worker}
	for _, list := range columns {
		args = append(args, list)
	}
	r := &reply{keys: make(map[string]bool, len(writes))}
	b := &pgx.Batch{}
	b.Queue(shareLedger, s.ledger)
	b.Queue(statement, args...).Query(func(rows pgx.Rows) error {
		var key []byte
		_, err := pgx.ForEachRow(rows, []any{&r.commits, &r.seq, &r.live, &key}, func() error {
			if key != nil {
				r.keys[string(key)] = true
			}
			return nil
		})
		return err
	})
	err := s.writer.SendBatch(context.Background(), b).Close()
	if err == nil {
		err = s.follows(r.commits)
	}
	return r, err
}

// follows is an error unless a commit is the next one of this worker.
func (s *Store) follows(commits uint64) error {
	switch commits {
	case s.commits + 1:
		return nil
	case 0:
		return s.undurable()
	}
	return s.lost("it is not the one that this run has begun with: its server has lost commits, or somebody has put another one in its place")
}

// write stores rows by one statement, which is a commit.
func (s *Store) write(writes []write) (*reply, error) {
	for {
		r, err := s.send(writeAll, writes)
		if isConflict(err) || isTaken(err) { // nothing was done
			return &reply{live: true}, nil
		}
		if err = s.acknowledged(err); err == nil {
			s.commits = r.commits
			return r, nil
		}
		if made, err := s.again(err, s.commits+1); err != nil {
			return nil, err
		} else if made {
			return s.afterwards(writes)
		}
	}
}

// afterwards is the reply to a commit that was made though no answer came.
func (s *Store) afterwards(writes []write) (*reply, error) {
	r := &reply{commits: s.commits, seq: s.seq.Load(), live: true, keys: map[string]bool{}}
	var keys [][]byte
	for i := range writes {
		keys = append(keys, []byte(writes[i].key))
	}
	for {
		var stored []string
		rows, err := s.writer.Query(context.Background(), `SELECT key FROM leadferry.lead_rows WHERE ledger = $1 AND key = ANY ($2) AND seq = $3`, s.ledger, keys, int64(r.seq))
		if err == nil {
			stored, err = collectKeys(rows)
		}
		if err == nil {
			for _, key := range stored {
				r.keys[key] = true
			}
			return r, nil
		}
		if _, err := s.again(err, s.commits); err != nil {
			return nil, err
		}
	}
}

// undurable says why the server did not take a commit.
func (s *Store) undurable() error {
	return s.refuse(checkpoint.ErrPlace, "its server does not promise durable commits any more, waits for no standby any more, or does not know this worker",
		"set fsync and synchronous_commit on, and synchronous_standby_names as it was when the run began; see leadferry checkpoint workers")
}
