package postgres

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"leadferry/checkpoint"
	"leadferry/internal/pgtest"
	"leadferry/internal/testsupport/must"
)

// An emptied table, for example after a failed restore, is noticed before a run begins and makes its leads again.
func TestALedgerWithoutItsRowsIsRefused(t *testing.T) {
	server, address, target := shared(t)
	s := opened(t, address, target, Options{Run: "run"})
	committed(t, s, claimOf("a"), claimOf("b"))
	committed(t, s, createdOf("a", "lead-a"))
	s.Close()
	server.Exec(t, address, `TRUNCATE leadferry.lead_rows`)
	wantRefusal(t, address, target, Options{Run: "again"}, "none of the rows")
	wantRefusal(t, address, target, Options{Accept: "another"}, "none of the rows")
	accepted := opened(t, address, target, Options{Accept: s.id})
	if i := accepted.Info(); !i.Incomplete || !i.MayLack(&checkpoint.Entry{Key: "a"}) || i.Leads+i.InDoubt != 0 {
		t.Errorf("%+v", i)
	}
	accepted.Close()
	again := opened(t, address, target, Options{Run: "again"})
	if i := again.Info(); !i.Incomplete || again.Check(t.Context()) != nil {
		t.Errorf("%+v, %v", i, again.Check(t.Context()))
	}
	if _, err := checkpoint.AcceptLoss(t.Context(), again); err != nil {
		t.Fatal(err)
	}
	again.Close()
	last := opened(t, address, target, Options{Run: "last"})
	committed(t, last, claimOf("c"))
	if _, err := checkpoint.Forget(t.Context(), last, []string{"d"}, false); err != nil {
		t.Fatal(err)
	}
	last.Close()
	server.Exec(t, address, `TRUNCATE leadferry.forgotten`)
	wantRefusal(t, address, target, Options{}, "to forget")
	opened(t, address, target, Options{Accept: last.id}).Close()
	if i := opened(t, address, target, Options{}).Info(); !i.Incomplete || i.InDoubt != 1 || i.Keys[checkpoint.Forgotten] != 0 {
		t.Errorf("%+v", i)
	}
}

// If somebody notes that the ledger lacks something, as adopt does, a running run and one about to begin notice it.
// They claim nothing as if the ledger were complete.
func TestARunLearnsThatItsLedgerIsIncomplete(t *testing.T) {
	_, address, target := shared(t)
	run := opened(t, address, target, Options{Run: "run"})
	committed(t, run, byRun("run", claimOf("a")))
	begins := func() *Store { // it has found the ledger, but is not yet a worker
		s, err := connect(address, target, Options{Run: "begins"})
		must.Do(t, err)
		t.Cleanup(func() { s.conn.Close() })
		must.Do(t, inTurn(s.prepare, s.findLedger))
		return s
	}()
	must.Do(t, opened(t, address, target, Options{}).Alone(t.Context(), func(tx checkpoint.Tx) error { return tx.Lack("leads of a list") }))
	next := byRun("run", claimOf("b"))
	if err := run.Commit(t.Context(), []*checkpoint.Change{next}); err != nil || !errors.Is(next.Err, checkpoint.ErrRolledBack) {
		t.Errorf("a claim of the run: %v, %v", err, next.Err)
	}
	if err := begins.enlist(); err != nil && !errors.Is(err, checkpoint.ErrLocked) || begins.missing != "leads of a list" {
		t.Errorf("the run that begins knows that the ledger lacks %q: %v", begins.missing, err)
	}
}

// A row in a state that this version does not know is an error; Scan must not skip it.
func TestAnUnknownStateIsDamage(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	for _, state := range []int{-1, 6} {
		address, target := server.Database(t), newTarget()
		s := opened(t, address, target, Options{Run: "run"})
		committed(t, s, byRun("run", claimOf("a")))
		server.Exec(t, address, fmt.Sprintf(`UPDATE leadferry.lead_rows SET state = %d`, state))
		err := s.Scan(t.Context(), checkpoint.Filter{}, func(checkpoint.KeptKey) error { return nil })
		if !errors.Is(err, checkpoint.ErrDamaged) {
			t.Errorf("state %d: %v", state, err)
		}
	}
}

// AcceptLoss accepts only the loss that was known when the ledger was opened.
func TestALossThatGrewIsNotAccepted(t *testing.T) {
	server, address, target := shared(t)
	opened(t, address, target, Options{}).Close()
	lose := func() {
		server.Exec(t, address, `UPDATE leadferry.ledgers SET missing = 'something', since = nextval('leadferry.commits')`)
	}
	lose()
	person := opened(t, address, target, Options{})
	lose()
	var why *checkpoint.OpenError
	if _, err := checkpoint.AcceptLoss(t.Context(), person); !errors.As(err, &why) || !strings.Contains(why.Text, "lost more since") {
		t.Errorf("the larger loss was accepted: %v", err)
	}
	must.Do(t, person.Close())
	person = opened(t, address, target, Options{})
	if _, err := checkpoint.AcceptLoss(t.Context(), person); err != nil || person.Info().Incomplete {
		t.Error("the known loss was not accepted: ", err)
	}
}

// No decision is taken on a ledger that was moved after the person opened it: the copy would not know of it.
func TestNoDecisionIsTakenOnAMovedLedger(t *testing.T) {
	_, address, target := shared(t)
	run := opened(t, address, target, Options{Run: "run"})
	committed(t, run, claimOf("a"))
	run.Close()
	person, mover := opened(t, address, target, Options{}), opened(t, address, target, Options{Moved: true})
	must.Do(t, mover.SetMoved("leads.db"))
	if err := mover.SetMoved("leads.db"); err != nil {
		t.Error("not moved again: ", err)
	}
	if _, err := checkpoint.Resolve(t.Context(), person, []checkpoint.Decision{{Key: "a"}}); !errors.Is(err, checkpoint.ErrGone) {
		t.Errorf("decided: %v", err)
	}
	if got := entryOf(t, person, "a"); got.State != checkpoint.InDoubt {
		t.Errorf("%+v", got)
	}
}

// Sequences that were not copied to a new server would give numbers twice. A crash empties unlogged tables.
func TestSequencesBehindAndUnloggedTablesAreRefused(t *testing.T) {
	server, address, target := shared(t)
	for range 3 {
		s := opened(t, address, target, Options{Run: "run"})
		committed(t, s, claimOf("a"))
		s.Close()
	}
	for _, sequence := range []string{"commits", "workers_worker_seq"} {
		server.Exec(t, address, `SELECT setval('leadferry.`+sequence+`', 1, false)`)
		wantRefusal(t, address, target, Options{Run: "again"}, "sequences are behind")
		server.Exec(t, address, `SELECT setval('leadferry.`+sequence+`', 10)`)
	}
	server.Exec(t, address, `ALTER TABLE leadferry.lead_rows SET UNLOGGED`)
	wantRefusal(t, address, target, Options{Run: "again"}, "lead_rows is UNLOGGED")
	if _, err := Init(address, Options{}); err != nil {
		t.Fatal(err)
	}
	server.Exec(t, address, `ALTER TABLE leadferry.lead_rows SET LOGGED`, `DO $$ BEGIN CREATE ROLE counts LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$`, `GRANT leadferry_worker TO counts`)
	opened(t, server.URLAs("counts", nameOf(address)), target, Options{Run: "last"})
}

// A standby may lack the last commits. It answers no look-up, even if the address names it.
func TestAStandbyAnswersNoLookup(t *testing.T) {
	t.Parallel()
	server := pgtest.New(t)
	standby := server.Standby(t)
	p := newProxy(t, server)
	address := "postgres://postgres@/postgres?host=" + url.QueryEscape(p.dir+","+standby.Socket())
	s := opened(t, address, newTarget(), Options{Run: "run", NeverPromoted: true, Patience: time.Minute})
	standby.Caught(t, server)
	standby.Exec(t, standby.URL("postgres"), `SELECT pg_wal_replay_pause()`)
	committed(t, s, claimOf("a"))
	p.cutAll()
	p.arm(1, true) // cuts the next connection, so the standby is tried
	if got := entryOf(t, s, "a"); got.State != checkpoint.InDoubt || p.cuts != 1 {
		t.Errorf("after %d cuts: %+v", p.cuts, got)
	}
}

// A worker that loses its connection after its last commit still ends properly.
func TestAWorkerEndsThoughItsConnectionIsLost(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	address := server.Database(t)
	p := newProxy(t, server)
	s := opened(t, p.through(address), newTarget(), Options{Run: "run"})
	committed(t, s, claimOf("a"))
	p.cutAll()
	must.Do(t, s.Close())
	if n := pgtest.Value[int](t, address, `SELECT count(*) FROM leadferry.workers WHERE ended IS NULL`); n != 0 {
		t.Error("it counts as alive")
	}
}
