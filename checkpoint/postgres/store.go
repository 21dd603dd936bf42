// Package postgres keeps checkpoints of many targets in a schema of one PostgreSQL database, for many workers at once.
//
// Promises, in addition to those of [checkpoint.Store]:
//
//   - A key is claimed by one worker and never handed over by itself. A person, or --in-doubt resend, may take it once
//     no answer can come (may_settle). A key has one row, and each change compares it with what the worker has seen.
//   - A worker that was replaced claims nothing more. Outcomes of its claims are still accepted.
//   - A reported commit is flushed by the server and by the standbys that it waits for. A server that does not promise
//     that is refused, when the ledger is opened and with each commit.
//   - If a server has lost commits, the next connection notices it, and the run stops.
//
// A row of lead_rows holds what is stored under a key. Memory holds rows as this process last saw them ([Store.cache]).
// A commit is one transaction in one round trip ([Store.store]). It numbers the commits of its worker. The server
// refuses it if a row is not as it was seen; then the rows are read and changed again ([Store.storeAlone]).
package postgres

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"leadferry/checkpoint"
	"leadferry/checkpoint/postgres/server"
)

// Options say how a ledger is opened.
type Options struct {
	Require  bool              // a missing ledger is not made
	Used     bool              // treat it as missing if it never knew a lead
	ReadOnly bool              // nothing is written, and nobody is disturbed
	Now      func() time.Time  // nil: time.Now
	Wait     time.Duration     // for a server that cannot be reached, or a ledger in use
	Run      string            // ID of the run; "": a command of a person, which may go beside runs
	Command  string            // the command of the run or person
	Timeout  time.Duration     // for one request of the run
	Terms    *checkpoint.Terms // of the fleet that the worker belongs to; nil: none
	Patience time.Duration     // for a server that is lost while the ledger is open
	Moved    bool              // open it even if it was copied to another place
	Accept   string            // ID of a ledger to accept as incomplete although its server has lost a part of it
	fills    string            // the name of the checkpoint that it is being filled from, see [Fill]

	Interrupt     <-chan struct{} // when it is closed, all waiting ends
	NeverPromoted bool            // standbys for which commits do not wait never take the server's place
}

// Store is an open ledger. All its methods are safe for concurrent use.
type Store struct {
	*server.Address
	o Options
	identity
	ends

	seq    atomic.Uint64         // the number of its last commit
	broken atomic.Pointer[error] // every later change fails with it
	last   atomic.Pointer[checkpoint.Info]
	claims *claims

	mu sync.Mutex // held while the server is asked, one thing at a time
	connection
	seen      map[string]*row                      // see [Store.cache]
	erased    bool                                 // this process has forgotten keys
	testimony atomic.Pointer[checkpoint.Testimony] // see [Store.Attest]; nil: none
}

// identity says which ledger it is, and what was found when it was opened.
type identity struct {
	target  checkpoint.Target
	ledger  int32
	id      string
	digests *checkpoint.Digester
	fresh   bool
	missing string // see [checkpoint.Info], like since
	since   uint64
	beside  []checkpoint.Witness

	Accepted bool // it was opened although its server lost a part of it
}

// ends is what ends the use of the ledger.
type ends struct {
	closed      atomic.Bool
	ending      chan struct{}   // closed when the ledger is closed
	beating     sync.WaitGroup  // the goroutine that shows life
	interrupted context.Context // ends with the run's interruption
	interrupt   func()          // ends interrupted
}

// connection is this process as a worker of the ledger, the one connection to the server, and the commit under way.
type connection struct {
	worker   int64
	table    uint32 // OID of the table of workers; a table that was restored has another
	timeline int32  // of the server when the worker began
	standby  string // state of the server's standbys then
	conn     *server.Session
	session  int64         // its number on the server
	commits  uint64        // that were acknowledged
	nextSeq  uint64        // the number of the commit under way
	troubled time.Time     // since when the server could not be asked; zero: it can
	silence  time.Duration // how long an answer may take
}

const (
	mostConflicts = 100         // how often a transaction is tried again after a conflict with others
	leastSilence  = time.Minute // how long an answer may take, at least: commits wait for others, and for standbys
)

// Open opens a target's ledger, or makes it. Errors are *checkpoint.OpenError, checkpoint.ErrTerms, or
// *checkpoint.StoreError if the server cannot be used.
func Open(name string, t checkpoint.Target, o Options) (*Store, error) {
	for end, conflicts := time.Now().Add(o.Wait), 0; ; {
		s, err := connect(name, t, o)
		if err == nil {
			err = s.open()
		}
		if err == nil {
			return s, nil
		}
		// Nothing was done, or the ledger was removed since it was found.
		if (isConflict(err) || isOneOf(err, "57014") || errors.Is(err, pgx.ErrNoRows)) && conflicts < mostConflicts {
			conflicts++
			continue
		}
		away := errors.Is(err, checkpoint.ErrLocked) && o.fills == "" || errors.As(err, new(*checkpoint.StoreError))
		if !away || time.Now().After(end) {
			return nil, err
		}
		select {
		case <-time.After(pause + rand.N(pause)): // workers that found no room must not all come back at once
		case <-o.Interrupt:
			return nil, err
		}
	}
}

// connect connects to the server, before the ledger is known.
func connect(name string, t checkpoint.Target, o Options) (*Store, error) {
	at, err := server.Parse(name)
	if err != nil {
		return nil, err
	}
	o.Patience = cmp.Or(o.Patience, time.Minute)
	o.Terms = cmp.Or(o.Terms, &checkpoint.Terms{})
	if o.Now == nil {
		o.Now = time.Now
	}
	s := &Store{Address: at, o: o, identity: identity{target: t.Canonical()}}
	s.claims = &claims{now: sinceBoot}
	s.session, s.ending = rand.Int64(), make(chan struct{})
	s.silence = max(o.Patience, o.Wait, leastSilence)
	s.interrupted, s.interrupt = context.WithCancel(context.Background())
	s.Locks = s.silence * 9 / 10 // before the server counts as silent
	s.conn, err = s.Meet(o.Wait, o.ReadOnly)
	return s, err
}

func (s *Store) open() error {
	steps := func() error { return inTurn(s.prepare, s.findLedger, s.readInfo, s.join) }
	if err := s.Explain(s.within(context.Background(), steps)); err != nil {
		if s.worker != 0 {
			_ = s.end()
		}
		s.conn.Close()
		return err
	}
	go func() {
		select {
		case <-s.o.Interrupt:
			s.interrupt()
		case <-s.ending:
		}
	}()
	return nil
}

func (s *Store) end() error {
	_, err := s.conn.Do(`UPDATE leadferry.workers SET ended = clock_timestamp(), beat = clock_timestamp()
		WHERE worker = $1`, s.worker)
	return err
}

func inTurn(steps ...func() error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// join makes this process a worker, unless it only reads.
func (s *Store) join() (err error) {
	if s.o.ReadOnly {
		return nil
	}
	err = s.queryRow(context.Background(), []any{&s.fresh}, `SELECT leadferry.untouched($1)`, s.ledger)
	if err == nil && s.fresh && s.o.Used {
		err = s.Refuse(checkpoint.ErrMissing, "knows nothing: the run that made it ended before it sent anything", "")
	}
	if err == nil {
		err = s.enlist()
	}
	if err == nil && s.Accepted {
		err = checkpoint.Renew(context.Background(), s, "what was known before its server lost it", nil)
	}
	if err == nil {
		s.beating.Go(s.beat)
	}
	return err
}

// Digests makes the keyed digests of this ledger.
func (s *Store) Digests() *checkpoint.Digester { return s.digests }

// Close ends the use of the ledger in order. Only the first call does something.
func (s *Store) Close() error {
	s.Info() // its result is what later calls return
	if s.closed.Swap(true) {
		return nil
	}
	close(s.ending)
	s.beating.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.failed()
	if err == nil && s.erased { // overwrite what was removed, if this user may
		_, _ = s.conn.Do(`VACUUM leadferry.lead_rows, leadferry.lead_ids, leadferry.notes`)
	}
	if err == nil && !s.o.ReadOnly {
		err = s.Explain(s.ask(context.Background(), s.end))
	}
	if err == nil {
		s.testimony.Load().Reached(s.Progress())
		_ = s.testimony.Load().End("") // a witness that stays open is safe, too
	}
	s.conn.Close()
	return err
}

// Drop closes the ledger after a refusal, and removes one that is New and knows nothing, if nobody else uses it.
func (s *Store) Drop() (gone bool, err error) {
	s.mu.Lock()
	if s.fresh && s.usable() == nil {
		err = s.conn.Together(func() error {
			if err := s.lockLedger(); err != nil {
				return err
			}
			n, err := s.conn.Do(`DELETE FROM leadferry.ledgers WHERE ledger = $1 AND leadferry.untouched($1)
				AND NOT EXISTS (SELECT FROM leadferry.workers WHERE ledger = $1 AND worker <> $2 AND ended IS NULL)`,
				s.ledger, s.worker)
			gone = n == 1
			return err
		})
		if gone = gone && err == nil; gone {
			s.testimony.Load().Withdraw()
		}
	}
	s.mu.Unlock()
	return gone, s.Close()
}

// usable returns an error if nothing can be changed.
func (s *Store) usable() error {
	switch {
	case s.closed.Load():
		return checkpoint.ErrClosed
	case s.o.ReadOnly:
		return checkpoint.ErrReadOnly
	}
	return s.failed()
}

func (s *Store) failed() error {
	if err := s.broken.Load(); err != nil {
		return *err
	}
	return nil
}

// fail makes err the error of every later change, unless there is one already.
func (s *Store) fail(err error) error {
	err = s.Explain(err)
	s.broken.CompareAndSwap(nil, &err)
	return s.failed()
}
