package postgres

import (
	"context"
	_ "embed"
	"errors"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

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

// rowLists are the lists of the statement, one a column.
type rowLists [26]array

func newRowLists() *rowLists {
	return &rowLists{
		newArray(pgtype.ByteaOID), newArray(pgtype.Int8OID), newArray(pgtype.Int2OID), newArray(pgtype.BoolOID), newArray(pgtype.TextOID), newArray(pgtype.ByteaOID),
		newArray(pgtype.Int8OID), newArray(pgtype.Int8OID), newArray(pgtype.Int8OID), newArray(pgtype.Int2OID), newArray(pgtype.Int4OID),
		newArray(pgtype.TextOID), newArray(pgtype.TextOID), newArray(pgtype.TextOID), newArray(pgtype.TextOID), newArray(pgtype.TextOID),
		newArray(pgtype.TextOID), newArray(pgtype.TextOID), newArray(pgtype.TextOID), newArray(pgtype.TextOID), newArray(pgtype.TextOID),
		newArray(pgtype.ByteaOID), newArray(pgtype.ByteaOID), newArray(pgtype.ByteaOID), newArray(pgtype.ByteaOID), newArray(pgtype.TextOID),
	}
}

func (l *rowLists) add(w *write) {
	v := w.visible()
	l[0].bytes([]byte(w.key))
	l[1].int8(int64(w.seen))
	l[2].int2(int(w.was))
	l[3].bool(w.claim)
	l[4].text(clean(w.owns))
	l[5].bytes(w.hash)
	l[6].int8(w.worker)
	l[7].int8(v.Updated.UnixMilli())
	l[8].int8(int64(v.Line))
	l[9].int2(int(w.state()))
	l[10].int4(v.Code)
	for i, text := range []string{v.LeadID, v.Organization, v.Location, v.Status, v.ExternalID, v.WantLink, v.Locator, v.File, v.Reason, v.Run} {
		l[11+i].text(clean(text))
	}
	digest := v.Digest[:]
	if v.Digest == (checkpoint.Digest{}) {
		digest = nil
	}
	l[21].bytes(digest)
	l[22].bytes(contentBytes(v.Content))
	l[23].bytes(w.extra())
	l[24].bytes([]byte(fold(w.key)))
	hidden := w.hidden()
	for i := range hidden {
		hidden[i] = clean(hidden[i])
	}
	l[25].text(strings.Join(hidden, between))
}

// send has rows stored, as a statement of its own or inside a transaction.
func (s *Store) send(statement string, writes []write) (*reply, error) {
	for i := range s.lists {
		s.lists[i].reset()
	}
	for i := range writes {
		s.lists.add(&writes[i])
	}
	params := append(make([][]byte, 0, 2+len(s.lists)), int4Param(s.ledger), int8Param(s.worker))
	for i := range s.lists {
		params = append(params, s.lists[i].param())
	}
	both := &pgconn.Batch{}
	both.ExecPrepared(shareLedger, params[:1], binaryFormat, binaryFormat)
	both.ExecPrepared(statement, params, binaryFormat, binaryFormat)
	result := s.writer.PgConn().ExecBatch(context.Background(), both)
	r := &reply{keys: make(map[string]bool, len(writes))}
	for result.NextResult() {
		for rows := result.ResultReader(); rows.NextRow(); {
			if v := rows.Values(); len(v) == 4 {
				r.commits, r.seq, r.live = uint64(int8Of(v[0])), uint64(int8Of(v[1])), v[2][0] == 1
				if v[3] != nil {
					r.keys[string(v[3])] = true
				}
			}
		}
	}
	err := result.Close()
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

// binaryFormat is the format of all parameters and results.
var binaryFormat = []int16{pgtype.BinaryFormatCode}

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
