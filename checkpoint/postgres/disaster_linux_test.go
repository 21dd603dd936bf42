package postgres

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"leadferry/checkpoint"
	"leadferry/internal/pgtest"
	"leadferry/internal/testsupport/must"
)

// waitFor has a server wait for standbys of a name, or for none, from now on.
func waitFor(t *testing.T, s *pgtest.Server, names string) {
	t.Helper()
	s.Exec(t, s.URL("postgres"), `ALTER SYSTEM SET synchronous_standby_names = '`+names+`'`, `SELECT pg_reload_conf()`)
	pgtest.Eventually(t, "the setting holds", func() bool {
		return pgtest.Value[string](t, s.URL("postgres"), `SHOW synchronous_standby_names`) == names
	})
}

// waiter is the process that waits for a standby, or 0.
func waiter(t *testing.T, s *pgtest.Server) int {
	return pgtest.Value[int](t, s.URL("postgres"), `SELECT coalesce(max(pid), 0) FROM pg_stat_activity WHERE wait_event = 'SyncRep'`)
}

// waitsAgain returns once commits wait for a standby that does not answer: a server does so a while after the setting.
func waitsAgain(t *testing.T, s *pgtest.Server) {
	t.Helper()
	for n, waits := 0, false; !waits; n++ {
		c, err := pgx.Connect(t.Context(), s.URL("postgres"))
		must.Do(t, err)
		done := make(chan error, 1)
		go func() {
			_, err := c.Exec(context.Background(), `CREATE TABLE waits`+itoa(n)+` ()`)
			done <- errors.Join(err, c.Close(context.Background()))
		}()
		pgtest.Eventually(t, "a commit waits, or is done", func() bool {
			waits = pgtest.Value[bool](t, s.URL("postgres"), `SELECT EXISTS (SELECT 1 FROM pg_stat_activity WHERE pid = $1 AND wait_event = 'SyncRep')`, c.PgConn().PID())
			return waits || len(done) > 0
		})
	}
}

// isCut says that a Store may send nothing before it has met its server again.
func isCut(s *Store) bool { return s.claims.lost.Load() }

// committing commits beside the test.
func committing(s *Store, changes ...*checkpoint.Change) chan error {
	done := make(chan error, 1)
	go func() { done <- s.Commit(context.Background(), changes) }()
	return done
}

// waits says that a commit is not done, and that nothing may leave for two keys, before goOn was called.
func waits(t *testing.T, s *Store, done chan error, one, other string, goOn func()) {
	t.Helper()
	may := make(chan error, 2)
	go func() { may <- s.Guard(context.Background(), one) }()
	go func() { may <- s.Guard(context.Background(), other) }()
	select {
	case err := <-done:
		t.Errorf("the commit counts as done: %v", err)
	case err := <-may:
		t.Errorf("what was claimed may leave, or never: %v", err)
	case <-time.After(20 * time.Millisecond):
		goOn()
		must.Do(t, errors.Join(<-done, <-may, <-may))
	}
}

// A wait for a standby that somebody cancels looks like success and is none: the claim is not good, nothing of the
// worker may leave, and it goes on once a commit has been waited for to its end. faults 2
func TestAWaitForAStandbyThatIsCancelled(t *testing.T) {
	t.Parallel()
	server := pgtest.New(t)
	address := server.URL("postgres")
	s := opened(t, address, newTarget(), Options{Run: "run", Patience: time.Hour})
	committed(t, s, claimOf("before"))
	waitFor(t, server, "gone")
	t.Cleanup(func() {
		server.Exec(t, address, `ALTER SYSTEM SET synchronous_standby_names = ''`, `SELECT pg_reload_conf()`)
	})
	waitsAgain(t, server)
	server.Exec(t, address, `SELECT pg_cancel_backend(`+itoa(waiter(t, server))+`)`)
	pgtest.Eventually(t, "nobody waits", func() bool { return waiter(t, server) == 0 })
	done := committing(s, claimOf("a"))
	for cancelled := 0; cancelled < 3; cancelled++ {
		process := 0
		pgtest.Eventually(t, "a commit waits for the standby", func() bool { process = waiter(t, server); return process != 0 || len(done) > 0 })
		if process == 0 {
			t.Fatalf("the commit counts as done: %v", <-done)
		}
		server.Exec(t, address, `SELECT pg_cancel_backend(`+itoa(process)+`)`)
		pgtest.Eventually(t, "the wait is over", func() bool { return waiter(t, server) != process })
	}
	pgtest.Eventually(t, "the worker asks again", func() bool { return waiter(t, server) != 0 || len(done) > 0 })
	waits(t, s, done, "a", "before", func() { waitFor(t, server, "") })
	if e := stands(t, s, "a"); e.State != checkpoint.InDoubt {
		t.Errorf("the claim does not stand: %+v", e)
	}
}

// A server that stands still and keeps its connections is not waited for without end: what was under way is not known,
// the use of the ledger is over, and what it does when it goes on makes nothing twice.
func TestAServerThatStandsStill(t *testing.T) {
	t.Parallel()
	server := pgtest.New(t)
	address, target := server.URL("postgres"), newTarget()
	s := opened(t, address, target, Options{Run: "run", Patience: time.Millisecond})
	committed(t, s, claimOf("a"))
	server.Freeze(t)
	s.silence = 50 * time.Millisecond
	done := committing(s, createdOf("a", "lead-a"), claimOf("b"))
	err := <-done
	if !errors.As(err, new(*checkpoint.StoreError)) || !strings.Contains(err.Error(), "does not answer") {
		t.Errorf("a server that does not answer: %v", err)
	}
	if err := s.Guard(t.Context(), "a"); err == nil {
		t.Error("something may leave though nothing is known")
	}
	if i := s.Info(); i.ID != s.id {
		t.Errorf("what was known is told no more: %+v", i)
	}
	s.Close()
	server.Thaw(t)
	again := opened(t, address, target, Options{})
	if e := stands(t, again, "a"); e.State != checkpoint.InDoubt && e.LeadID != "lead-a" {
		t.Errorf("the claim is gone: %+v", e)
	}
	must.Do(t, again.Check(t.Context()))
}

// A worker that stands still in the middle of a transaction, and a lock of somebody else, hold nobody up for ever.
func TestNobodyWaitsForALockForEver(t *testing.T) {
	_, address, target := shared(t)
	s := opened(t, address, target, Options{Run: "run"})
	var idle string
	if err := s.conn.QueryRow(t.Context(), `SHOW idle_in_transaction_session_timeout`).Scan(&idle); err != nil || idle != "30s" {
		t.Errorf("who stands still holds locks for %s, %v", idle, err)
	}
	other, err := pgx.Connect(t.Context(), address)
	must.Do(t, err)
	defer other.Close(context.Background())
	waits, err := connect(address, target, Options{})
	must.Do(t, err)
	defer waits.conn.Close()
	waits.Locks = 50 * time.Millisecond
	_, err = other.Exec(t.Context(), `BEGIN; LOCK TABLE leadferry.workers`)
	if _, failed := waits.conn.Exec(t.Context(), "SET lock_timeout = 50"); errors.Join(err, failed) != nil {
		t.Fatal(err, failed)
	}
	if err := waits.open(); !errors.As(err, new(*checkpoint.StoreError)) || !strings.Contains(err.Error(), "holds a lock for too long") {
		t.Errorf("somebody else's lock: %v", err)
	}
}

// The process that serves a worker stands still with a commit before it, and goes on when another one serves the
// worker. What it was asked it does not do any more: the worker has done it again.
func TestACommitThatComesLate(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	address := server.Database(t)
	s := opened(t, address, newTarget(), Options{Run: "run", Patience: time.Hour})
	committed(t, s, claimOf("a"))
	old := int(s.conn.PgConn().PID())
	must.Do(t, syscall.Kill(old, syscall.SIGSTOP))
	t.Cleanup(func() { syscall.Kill(old, syscall.SIGCONT) })
	done := committing(s, createdOf("a", "lead-a"), claimOf("b"))
	time.Sleep(pause) // the commit is under way
	s.conn.Cut()      // as a network does
	must.Do(t, <-done)
	committed(t, s, createdOf("b", "lead-b"))
	syscall.Kill(old, syscall.SIGCONT)
	pgtest.Eventually(t, "the process ends", func() bool { return syscall.Kill(old, 0) != nil })
	if e := stands(t, s, "a"); e.LeadID != "lead-a" {
		t.Errorf("the outcome is lost: %+v", e)
	}
	if n := pgtest.Value[uint64](t, address, `SELECT commits FROM leadferry.workers WHERE run = 'run'`); n != s.commits {
		t.Errorf("the server counts %d commits, the worker %d", n, s.commits)
	}
}

// either is the address of whichever of two servers takes changes.
func either(a, b *pgtest.Server) string {
	return "postgres://postgres@/postgres?host=" + url.QueryEscape(a.Socket()+","+b.Socket()) + "&target_session_attrs=read-write"
}

// A standby that was not waited for and takes over has lost the last commits, or may have: whoever meets it stops, also
// a worker that has lost nothing itself, and nobody begins with it as if nothing were missing. faults 2
func TestAStandbyThatWasNeverToTakeOver(t *testing.T) {
	t.Parallel()
	for _, caught := range []bool{true, false} {
		primary := pgtest.New(t)
		standby, target := primary.Standby(t), newTarget()
		refusal(t, primary.URL("postgres"), target, Options{}, "waits for none of them")
		refusal(t, standby.URL("postgres"), target, Options{}, "standby")
		both := either(primary, standby)
		s := opened(t, both, target, Options{Run: "run", NeverPromoted: true, Patience: time.Second})
		committed(t, s, claimOf("a"))
		standby.Caught(t, primary)
		if !caught {
			standby.Cut(t)
			committed(t, s, claimOf("b"))
		}
		primary.Kill()
		standby.Promote(t)
		if err := s.Commit(t.Context(), []*checkpoint.Change{createdOf("a", "lead-a")}); !errors.Is(err, checkpoint.ErrRolledBack) {
			t.Errorf("the worker goes on: %v", err)
		}
		if i := opened(t, standby.URL("postgres"), target, Options{ReadOnly: true}).Info(); !i.Incomplete {
			t.Errorf("not incomplete: %+v", i)
		}
		refusal(t, both, target, Options{}, "")
	}
}

// Who takes back that a standby is waited for ends the runs that count on it: when that standby took over, what was
// acknowledged since would be missing, and nothing would tell. faults 2
func TestAStandbyIsWaitedForNoMore(t *testing.T) {
	t.Parallel()
	primary := pgtest.New(t)
	primary.Standby(t)
	for name, next := range map[string]func(*Store) error{
		"a commit":        func(s *Store) error { return s.Commit(t.Context(), []*checkpoint.Change{createdOf("a", "lead-a")}) },
		"a decision":      func(s *Store) error { _, err := checkpoint.AcceptLoss(t.Context(), s); return err },
		"a renewed claim": func(s *Store) error { return s.renew("a") },
	} {
		t.Run(name, func(t *testing.T) {
			waitFor(t, primary, "*")
			s := opened(t, primary.URL("postgres"), newTarget(), Options{Run: "run", Patience: time.Second})
			committed(t, s, claimOf("b"))
			waitFor(t, primary, "")
			if err := next(s); !errors.Is(err, checkpoint.ErrPlace) {
				t.Errorf("it goes on: %v", err)
			}
		})
	}
}

// Who takes it back while a commit waits has it end as if it had been waited for. Nothing leaves for what was claimed by it, also where
// a standby is waited for again by then: the commit counts once another one has been waited for. faults 2
func TestAStandbyIsWaitedForNoMoreWhileACommitWaits(t *testing.T) {
	t.Parallel()
	primary := pgtest.New(t)
	standby := primary.Standby(t)
	waiting := func(t *testing.T) (s *Store, done chan error, process int) {
		waitFor(t, primary, "*")
		s = opened(t, primary.URL("postgres"), newTarget(), Options{Run: "run", Patience: time.Hour})
		committed(t, s, claimOf("before"))
		standby.Freeze(t)
		done = committing(s, claimOf("a"))
		pgtest.Eventually(t, "the commit waits", func() bool { process = waiter(t, primary); return process != 0 })
		return s, done, process
	}
	t.Run("for good", func(t *testing.T) {
		s, done, _ := waiting(t)
		waitFor(t, primary, "")
		if err := <-done; !errors.Is(err, checkpoint.ErrPlace) {
			t.Errorf("the commit counts as waited for: %v", err)
		}
		if err := s.Guard(t.Context(), "a"); !errors.Is(err, checkpoint.ErrPlace) {
			t.Errorf("what was claimed may leave: %v", err)
		}
	})
	standby.Thaw(t)
	t.Run("for a moment", func(t *testing.T) {
		s, done, process := waiting(t)
		syscall.Kill(process, syscall.SIGSTOP) // who waits is slow to hear of it
		waitFor(t, primary, "")
		primary.Exec(t, primary.URL("postgres"), `CREATE TABLE IF NOT EXISTS unwaited ()`) // from now on nobody waits
		waitFor(t, primary, "*")
		waitsAgain(t, primary)
		syscall.Kill(process, syscall.SIGCONT)
		pgtest.Eventually(t, "the worker asks again", func() bool { return isCut(s) || len(done) > 0 })
		waits(t, s, done, "a", "a", func() { standby.Thaw(t) })
	})
}

// A worker whose commits no standby is waited for goes on beside one that has begun since, while one was: what the
// first one did last is missing when the standby takes over, whatever the newest one says.
func TestAStandbyWasWaitedForByTheNewestWorkerOnly(t *testing.T) {
	t.Parallel()
	primary := pgtest.New(t)
	standby := primary.Standby(t)
	target := newTarget()
	s := opened(t, primary.URL("postgres"), target, Options{Run: "run", NeverPromoted: true, Patience: time.Second})
	committed(t, s, claimOf("a"))
	waitFor(t, primary, "*")
	must.Do(t, opened(t, primary.URL("postgres"), target, Options{}).Close())
	waitFor(t, primary, "")
	standby.Caught(t, primary)
	standby.Cut(t)
	committed(t, s, claimOf("b"))
	primary.Kill()
	standby.Promote(t)
	refusal(t, standby.URL("postgres"), target, Options{}, "branched")
}

// A standby that was waited for takes over, and waits for none itself: a run goes on with it, and what it loses from
// then on is noticed by whoever comes next.
func TestAStandbyThatWaitsForNoneTakesOver(t *testing.T) {
	t.Parallel()
	primary := pgtest.New(t)
	standby := primary.Standby(t)
	target := newTarget()
	waitFor(t, primary, "*")
	s := opened(t, either(primary, standby), target, Options{Run: "run"})
	committed(t, s, claimOf("a"))
	primary.Kill()
	standby.Exec(t, standby.URL("postgres"), `ALTER SYSTEM SET synchronous_standby_names = ''`)
	standby.Promote(t)
	waitFor(t, standby, "")
	committed(t, s, createdOf("a", "lead-a"))
	if s.standby != "none" {
		t.Errorf("its standbys are %q", s.standby)
	}
	stood := pgtest.Value[string](t, standby.URL("postgres"), `SELECT standby || ' ' || timeline FROM leadferry.workers ORDER BY worker DESC LIMIT 1`)
	if stood != "none 2" {
		t.Errorf("noted: %s", stood)
	}
}

// A standby that was waited for takes over while the old server goes on: who works there claims nothing more, also when
// somebody cancels its wait, and the worker that has its place on the new one knows all it had claimed.
func TestTwoServersAtOnce(t *testing.T) {
	t.Parallel()
	primary := pgtest.New(t)
	standby := primary.Standby(t)
	target := newTarget()
	waitFor(t, primary, "*")
	old := joined(t, primary.URL("postgres"), target, 0, 1, nil)
	old.o.Patience = time.Second
	claim(t, old, 0, 3)
	standby.Cut(t)
	standby.Exec(t, standby.URL("postgres"), `ALTER SYSTEM SET synchronous_standby_names = ''`)
	standby.Promote(t)
	waitFor(t, standby, "")
	done := committing(old, claimOf("late"))
	next := joined(t, standby.URL("postgres"), target, 0, 1, nil)
	if n, _ := claim(t, next, 0, 3); n != 0 {
		t.Errorf("%d rows that the old worker may send are claimed again", n)
	}
	committed(t, next, claimOf("late"))
	process := 0
	pgtest.Eventually(t, "the old worker waits", func() bool { process = waiter(t, primary); return process != 0 })
	primary.Exec(t, primary.URL("postgres"), `SELECT pg_cancel_backend(`+itoa(process)+`)`)
	pgtest.Eventually(t, "it asks again", func() bool { n := waiter(t, primary); return n != 0 && n != process || len(done) > 0 })
	select {
	case err := <-done:
		t.Errorf("the old worker has a claim that the new one has too: %v", err)
	default:
	}
	primary.Kill()
	if err := <-done; err == nil {
		t.Error("the claim of the old worker is good, on a server that is gone")
	}
}
