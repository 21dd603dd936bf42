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

// setStandbys sets which standbys the server waits for; "" is none.
func setStandbys(t *testing.T, s *pgtest.Server, names string) {
	t.Helper()
	s.Exec(t, s.URL("postgres"), `ALTER SYSTEM SET synchronous_standby_names = '`+names+`'`, `SELECT pg_reload_conf()`)
	pgtest.Eventually(t, "the setting holds", func() bool {
		return pgtest.Value[string](t, s.URL("postgres"), `SHOW synchronous_standby_names`) == names
	})
}

// syncWaiter returns the process that waits for a standby, or 0.
func syncWaiter(t *testing.T, s *pgtest.Server) int {
	return pgtest.Value[int](t, s.URL("postgres"), `SELECT coalesce(max(pid), 0) FROM pg_stat_activity WHERE wait_event = 'SyncRep'`)
}

// awaitWaitingCommits returns once commits wait for a standby that does not answer. The setting takes a while to work.
func awaitWaitingCommits(t *testing.T, s *pgtest.Server) {
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

// isCut reports whether a Store lost its connection: it sends nothing until it is connected again.
func isCut(s *Store) bool { return s.claims.lost.Load() }

func startCommit(s *Store, changes ...*checkpoint.Change) chan error {
	done := make(chan error, 1)
	go func() { done <- s.Commit(context.Background(), changes) }()
	return done
}

// wantHeldUntil wants that until goOn is called the commit is not done and no request may leave for the two keys.
func wantHeldUntil(t *testing.T, s *Store, done chan error, one, other string, goOn func()) {
	t.Helper()
	may := make(chan error, 2)
	go func() { may <- s.Guard(context.Background(), one) }()
	go func() { may <- s.Guard(context.Background(), other) }()
	select {
	case err := <-done:
		t.Errorf("the commit counts as done: %v", err)
	case err := <-may:
		t.Errorf("Guard returned before the commit was done: %v", err)
	case <-time.After(20 * time.Millisecond):
		goOn()
		must.Do(t, errors.Join(<-done, <-may, <-may))
	}
}

// If somebody cancels the wait for a standby, PostgreSQL reports success although the commit may be lost. The worker
// sends nothing until a later commit has been waited for to its end. faults 2
func TestACancelledWaitForAStandbyIsNoSuccess(t *testing.T) {
	t.Parallel()
	server := pgtest.New(t)
	address := server.URL("postgres")
	s := opened(t, address, newTarget(), Options{Run: "run", Patience: time.Hour})
	committed(t, s, claimOf("before"))
	setStandbys(t, server, "gone")
	t.Cleanup(func() {
		server.Exec(t, address, `ALTER SYSTEM SET synchronous_standby_names = ''`, `SELECT pg_reload_conf()`)
	})
	awaitWaitingCommits(t, server)
	server.Exec(t, address, `SELECT pg_cancel_backend(`+itoa(syncWaiter(t, server))+`)`)
	pgtest.Eventually(t, "nobody waits", func() bool { return syncWaiter(t, server) == 0 })
	done := startCommit(s, claimOf("a"))
	for cancelled := 0; cancelled < 3; cancelled++ {
		process := 0
		pgtest.Eventually(t, "a commit waits for the standby", func() bool { process = syncWaiter(t, server); return process != 0 || len(done) > 0 })
		if process == 0 {
			t.Fatalf("the commit counts as done: %v", <-done)
		}
		server.Exec(t, address, `SELECT pg_cancel_backend(`+itoa(process)+`)`)
		pgtest.Eventually(t, "the wait is over", func() bool { return syncWaiter(t, server) != process })
	}
	pgtest.Eventually(t, "the worker asks again", func() bool { return syncWaiter(t, server) != 0 || len(done) > 0 })
	wantHeldUntil(t, s, done, "a", "before", func() { setStandbys(t, server, "") })
	if e := entryOf(t, s, "a"); e.State != checkpoint.InDoubt {
		t.Errorf("the claim is not stored: %+v", e)
	}
}

// A server that hangs with open connections is not waited for forever: the commit fails as unknown, and the use of the
// ledger ends. What the server still does when it wakes up makes no lead twice.
func TestAServerThatHangsEndsTheUseOfItsLedger(t *testing.T) {
	t.Parallel()
	server := pgtest.New(t)
	address, target := server.URL("postgres"), newTarget()
	s := opened(t, address, target, Options{Run: "run", Patience: time.Millisecond})
	committed(t, s, claimOf("a"))
	server.Freeze(t)
	s.silence = 50 * time.Millisecond
	done := startCommit(s, createdOf("a", "lead-a"), claimOf("b"))
	err := <-done
	if !errors.As(err, new(*checkpoint.StoreError)) || !strings.Contains(err.Error(), "does not answer") {
		t.Errorf("a server that does not answer: %v", err)
	}
	if err := s.Guard(t.Context(), "a"); err == nil {
		t.Error("a request may leave though nobody knows whether its claim is stored")
	}
	if i := s.Info(); i.ID != s.id {
		t.Errorf("Info forgot what was known: %+v", i)
	}
	s.Close()
	server.Thaw(t)
	again := opened(t, address, target, Options{})
	if e := entryOf(t, again, "a"); (e.State != checkpoint.InDoubt || e.LeadID != "") && (e.State != checkpoint.Created || e.LeadID != "lead-a") {
		t.Errorf("the claim is gone: %+v", e)
	}
	must.Do(t, again.Check(t.Context()))
}

// Neither a worker that hangs in a transaction nor somebody else's lock blocks others for ever.
func TestNobodyWaitsForALockForEver(t *testing.T) {
	_, address, target := shared(t)
	s := opened(t, address, target, Options{Run: "run"})
	var idle string
	if err := s.conn.QueryRow(t.Context(), `SHOW idle_in_transaction_session_timeout`).Scan(&idle); err != nil || idle != "30s" {
		t.Errorf("a hanging worker holds its locks for %s, %v", idle, err)
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

// A server process hangs just before it commits. The worker reconnects and commits again. When the old process wakes
// up, it must not commit, too.
func TestAServerProcessThatWakesUpCommitsNothing(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	address := server.Database(t)
	s := opened(t, address, newTarget(), Options{Run: "run", Patience: time.Hour})
	committed(t, s, claimOf("a"))
	old := int(s.conn.PgConn().PID())
	must.Do(t, syscall.Kill(old, syscall.SIGSTOP))
	t.Cleanup(func() { syscall.Kill(old, syscall.SIGCONT) })
	done := startCommit(s, createdOf("a", "lead-a"), claimOf("b"))
	time.Sleep(pause) // the commit is under way
	s.conn.Cut()      // as a network does
	must.Do(t, <-done)
	committed(t, s, createdOf("b", "lead-b"))
	syscall.Kill(old, syscall.SIGCONT)
	pgtest.Eventually(t, "the process ends", func() bool { return syscall.Kill(old, 0) != nil })
	if e := entryOf(t, s, "a"); e.LeadID != "lead-a" {
		t.Errorf("the outcome is lost: %+v", e)
	}
	if n := pgtest.Value[uint64](t, address, `SELECT commits FROM leadferry.workers WHERE run = 'run'`); n != s.commits {
		t.Errorf("the server counts %d commits, the worker %d", n, s.commits)
	}
}

// either returns an address that leads to the one of two servers that accepts writes.
func either(a, b *pgtest.Server) string {
	return "postgres://postgres@/postgres?host=" + url.QueryEscape(a.Socket()+","+b.Socket()) + "&target_session_attrs=read-write"
}

// A promoted standby that was not waited for may lack the last commits. Every worker stops, even one that lost nothing,
// and no run begins as if the ledger were complete. faults 2
func TestNobodyGoesOnWithAStandbyThatWasNotWaitedFor(t *testing.T) {
	t.Parallel()
	for _, caught := range []bool{true, false} {
		primary := pgtest.New(t)
		standby, target := primary.Standby(t), newTarget()
		wantRefusal(t, primary.URL("postgres"), target, Options{}, "waits for none of them")
		wantRefusal(t, standby.URL("postgres"), target, Options{}, "standby")
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
		wantRefusal(t, both, target, Options{}, "")
	}
}

// If an operator stops the server from waiting for its standby, runs that rely on it end. Otherwise a promotion could
// lose commits and nobody would notice. faults 2
func TestRunsEndWhenTheirStandbyIsNoLongerWaitedFor(t *testing.T) {
	t.Parallel()
	primary := pgtest.New(t)
	primary.Standby(t)
	for name, next := range map[string]func(*Store) error{
		"a commit":        func(s *Store) error { return s.Commit(t.Context(), []*checkpoint.Change{createdOf("a", "lead-a")}) },
		"a decision":      func(s *Store) error { _, err := checkpoint.AcceptLoss(t.Context(), s); return err },
		"a renewed claim": func(s *Store) error { return s.renew("a") },
	} {
		t.Run(name, func(t *testing.T) {
			setStandbys(t, primary, "*")
			s := opened(t, primary.URL("postgres"), newTarget(), Options{Run: "run", Patience: time.Second})
			committed(t, s, claimOf("b"))
			setStandbys(t, primary, "")
			if err := next(s); !errors.Is(err, checkpoint.ErrPlace) {
				t.Errorf("it goes on: %v", err)
			}
		})
	}
}

// Switching the wait off lets a waiting commit end as if it had been waited for. Nothing may leave for its claims, even
// if the wait is on again by then. The commit counts once another commit has been waited for. faults 2
func TestACommitDoesNotCountWhenItsWaitIsSwitchedOff(t *testing.T) {
	t.Parallel()
	primary := pgtest.New(t)
	standby := primary.Standby(t)
	waiting := func(t *testing.T) (s *Store, done chan error, process int) {
		setStandbys(t, primary, "*")
		s = opened(t, primary.URL("postgres"), newTarget(), Options{Run: "run", Patience: time.Hour})
		committed(t, s, claimOf("before"))
		standby.Freeze(t)
		done = startCommit(s, claimOf("a"))
		pgtest.Eventually(t, "the commit waits", func() bool { process = syncWaiter(t, primary); return process != 0 })
		return s, done, process
	}
	t.Run("for good", func(t *testing.T) {
		s, done, _ := waiting(t)
		setStandbys(t, primary, "")
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
		syscall.Kill(process, syscall.SIGSTOP) // the waiting process learns of it late
		setStandbys(t, primary, "")
		primary.Exec(t, primary.URL("postgres"), `CREATE TABLE IF NOT EXISTS unwaited ()`) // from now on nobody waits
		setStandbys(t, primary, "*")
		awaitWaitingCommits(t, primary)
		syscall.Kill(process, syscall.SIGCONT)
		pgtest.Eventually(t, "the worker asks again", func() bool { return isCut(s) || len(done) > 0 })
		wantHeldUntil(t, s, done, "a", "a", func() { standby.Thaw(t) })
	})
}

// The first worker's commits wait for no standby, those of a newer one did. After a promotion the last commits of the
// first are missing, so the standby is refused.
func TestAStandbyThatOneWorkerDidNotWaitForIsRefused(t *testing.T) {
	t.Parallel()
	primary := pgtest.New(t)
	standby := primary.Standby(t)
	target := newTarget()
	s := opened(t, primary.URL("postgres"), target, Options{Run: "run", NeverPromoted: true, Patience: time.Second})
	committed(t, s, claimOf("a"))
	setStandbys(t, primary, "*")
	must.Do(t, opened(t, primary.URL("postgres"), target, Options{}).Close())
	setStandbys(t, primary, "")
	standby.Caught(t, primary)
	standby.Cut(t)
	committed(t, s, claimOf("b"))
	primary.Kill()
	standby.Promote(t)
	wantRefusal(t, standby.URL("postgres"), target, Options{}, "branched")
}

// A standby that was waited for is promoted and has no standby itself. The run goes on with it. The workers table notes
// this, so that later runs notice what the server loses from then on.
func TestARunGoesOnWithAPromotedStandby(t *testing.T) {
	t.Parallel()
	primary := pgtest.New(t)
	standby := primary.Standby(t)
	target := newTarget()
	setStandbys(t, primary, "*")
	s := opened(t, either(primary, standby), target, Options{Run: "run"})
	committed(t, s, claimOf("a"))
	primary.Kill()
	standby.Exec(t, standby.URL("postgres"), `ALTER SYSTEM SET synchronous_standby_names = ''`)
	standby.Promote(t)
	setStandbys(t, standby, "")
	committed(t, s, createdOf("a", "lead-a"))
	if s.standby != "none" {
		t.Errorf("its standbys are %q", s.standby)
	}
	stood := pgtest.Value[string](t, standby.URL("postgres"), `SELECT standby || ' ' || timeline FROM leadferry.workers ORDER BY worker DESC LIMIT 1`)
	if stood != "none 2" {
		t.Errorf("noted: %s", stood)
	}
}

// A standby that was waited for is promoted while the old primary still runs. The worker there claims nothing more,
// even if its wait is cancelled. Its successor on the new primary knows all its claims.
func TestTheOldPrimaryClaimsNothingAfterAPromotion(t *testing.T) {
	t.Parallel()
	primary := pgtest.New(t)
	standby := primary.Standby(t)
	target := newTarget()
	setStandbys(t, primary, "*")
	old := joined(t, primary.URL("postgres"), target, 0, 1, nil)
	old.o.Patience = time.Second
	claim(t, old, 0, 3)
	standby.Cut(t)
	standby.Exec(t, standby.URL("postgres"), `ALTER SYSTEM SET synchronous_standby_names = ''`)
	standby.Promote(t)
	setStandbys(t, standby, "")
	done := startCommit(old, claimOf("late"))
	next := joined(t, standby.URL("postgres"), target, 0, 1, nil)
	if n, _ := claim(t, next, 0, 3); n != 0 {
		t.Errorf("%d rows that the old worker may send are claimed again", n)
	}
	committed(t, next, claimOf("late"))
	process := 0
	pgtest.Eventually(t, "the old worker waits", func() bool { process = syncWaiter(t, primary); return process != 0 })
	primary.Exec(t, primary.URL("postgres"), `SELECT pg_cancel_backend(`+itoa(process)+`)`)
	pgtest.Eventually(t, "it asks again", func() bool { n := syncWaiter(t, primary); return n != 0 && n != process || len(done) > 0 })
	select {
	case err := <-done:
		t.Errorf("the old and the new worker both have the claim: %v", err)
	default:
	}
	primary.Kill()
	if err := <-done; err == nil {
		t.Error("the claim of the old worker counts, on a server that is gone")
	}
}
