package postgres

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"leadferry/checkpoint"
	"leadferry/internal/pgtest"
	"leadferry/internal/testsupport/must"
)

// tryJoin opens a ledger for a worker of a fleet.
func tryJoin(t *testing.T, address string, target checkpoint.Target, shard, shards int, change func(*checkpoint.Terms)) (*Store, error) {
	t.Helper()
	terms := &checkpoint.Terms{Fleet: "monday", Shard: shard, Shards: shards, Same: []checkpoint.Term{{Name: "the mapping", Value: "1"}}}
	if change != nil {
		change(terms)
	}
	s, err := Open(address, target, Options{Run: fmt.Sprintf("run-%d", targets.Add(1)), Terms: terms})
	if err == nil {
		t.Cleanup(func() { s.Close() })
	}
	return s, err
}

func joined(t *testing.T, address string, target checkpoint.Target, shard, shards int, change func(*checkpoint.Terms)) *Store {
	t.Helper()
	s, err := tryJoin(t, address, target, shard, shards, change)
	must.Do(t, err)
	return s
}

// claim claims keys and returns how many claims succeeded, and the last refusal.
func claim(t *testing.T, s *Store, from, to int) (n int, refused error) {
	t.Helper()
	var changes []*checkpoint.Change
	for i := from; i < to; i++ {
		changes = append(changes, &checkpoint.Change{Kind: checkpoint.Claim, Entry: checkpoint.Entry{Key: fmt.Sprintf("key-%04d", i), State: checkpoint.InDoubt, Run: s.o.Run, Updated: time.Now()}})
	}
	must.Do(t, s.Commit(context.Background(), changes))
	for _, c := range changes {
		if c.Err != nil {
			refused = c.Err
			continue
		}
		n++
	}
	return n, refused
}

func settle(t *testing.T, s *Store, i int, state checkpoint.State) error {
	t.Helper()
	c := &checkpoint.Change{Kind: checkpoint.Settle, Entry: checkpoint.Entry{Key: fmt.Sprintf("key-%04d", i), State: state, Updated: time.Now()}}
	if state.HasLead() {
		c.Entry.LeadID = fmt.Sprintf("lead-%d", i)
	}
	must.Do(t, s.Commit(context.Background(), []*checkpoint.Change{c}))
	return c.Err
}

// A worker whose terms differ from the fleet's is refused with the reason. The others work on.
func TestAWorkerWithOtherTermsIsRefused(t *testing.T) {
	_, address, target := shared(t)
	first := joined(t, address, target, 0, 4, nil)
	for want, change := range map[string]func(*checkpoint.Terms){
		"the number of shards is not that": func(t *checkpoint.Terms) { t.Shards = 5 },
		"--rate is not that":               func(t *checkpoint.Terms) { t.Rate = 10 },
		"--max-creates is not that":        func(t *checkpoint.Terms) { t.MaxCreates = 7 },
		"the mapping is not that":          func(t *checkpoint.Terms) { t.Same[0].Value = "2" },
		"input 1 is not that":              func(t *checkpoint.Terms) { t.Same = append(t.Same, checkpoint.Term{Name: "input 1", Value: "x"}) },
	} {
		_, err := tryJoin(t, address, target, 0, 4, change)
		if !errors.Is(err, checkpoint.ErrTerms) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if n, err := claim(t, first, 0, 3); n != 3 || err != nil {
		t.Errorf("the first worker claimed %d: %v", n, err)
	}
	joined(t, address, target, 0, 9, func(t *checkpoint.Terms) { t.Fleet = "tuesday" })
}

// The newest worker of a shard fences only the earlier ones of that shard. They may still settle their claims.
func TestTheNewestWorkerOfAShardFencesTheOthers(t *testing.T) {
	_, address, target := shared(t)
	old, other := joined(t, address, target, 0, 2, nil), joined(t, address, target, 1, 2, nil)
	claim(t, old, 0, 5)
	next := joined(t, address, target, 0, 2, nil)
	if n, err := claim(t, old, 5, 8); n != 0 || !errors.Is(err, checkpoint.ErrFenced) {
		t.Errorf("a fenced worker claimed %d: %v", n, err)
	}
	if _, err := old.Exchange(t.Context(), checkpoint.Progress{}); !errors.Is(err, checkpoint.ErrFenced) {
		t.Errorf("Exchange of a fenced worker: %v", err)
	}
	if n, _ := claim(t, next, 0, 5); n != 0 {
		t.Errorf("%d keys were claimed twice", n)
	}
	for i := range 5 {
		if err := settle(t, old, i, checkpoint.Created); err != nil {
			t.Errorf("a late answer was refused: %v", err)
		}
	}
	for _, s := range []*Store{next, other} {
		if _, err := s.Exchange(t.Context(), checkpoint.Progress{}); err != nil {
			t.Error(err)
		}
	}
	if n, err := claim(t, other, 5, 8); n != 3 || err != nil {
		t.Errorf("the other shard claimed %d: %v", n, err)
	}
	if n := next.Info(); n.Leads != 5 || n.InDoubt != 3 {
		t.Errorf("%d leads and %d doubts", n.Leads, n.InDoubt)
	}
}

// beginRun begins a run as the importer does: it stores the start and attaches a witness.
func beginRun(t *testing.T, s *Store, ws *checkpoint.Witnesses) {
	t.Helper()
	err := checkpoint.PutRun(t.Context(), s, checkpoint.RunInfo{ID: s.o.Run})
	one, failed := ws.Begin(s, checkpoint.Witness{Run: s.o.Run}, "")
	if errors.Join(err, failed) != nil {
		t.Fatal(err, failed)
	}
	s.Attest(one)
}

// judged returns why witnesses refuse a run that is about to begin, or nil.
func judged(t *testing.T, s *Store, ws *checkpoint.Witnesses) error {
	t.Helper()
	v, err := checkpoint.Judge(t.Context(), s, ws, true, nil)
	must.Do(t, err)
	return v.Refuse("")
}

// A worker's witness counts only its own commits. Later commits of other workers do not make it look like a loss.
func TestAWorkersWitnessCountsOnlyItsOwnCommits(t *testing.T) {
	server, address, target := shared(t)
	ws := &checkpoint.Witnesses{Book: t.TempDir()}
	first, other := joined(t, address, target, 0, 2, nil), joined(t, address, target, 1, 2, nil)
	beginRun(t, first, ws)
	claim(t, first, 0, 5)
	beginRun(t, other, ws)
	claim(t, other, 5, 9)
	command := opened(t, address, target, Options{})
	begun, err := ws.Begin(command, checkpoint.Witness{}, "")
	must.Do(t, err)
	first.Close()
	other.Close()
	if err := judged(t, opened(t, address, target, Options{}), ws); err != nil {
		t.Errorf("beside a command: %v", err)
	}
	must.Do(t, errors.Join(command.Close(), begun.End("")))
	server.Exec(t, address, `UPDATE leadferry.workers SET seq = seq - 1 WHERE worker = `+itoa(int(other.worker)))
	if err := judged(t, opened(t, address, target, Options{}), ws); !errors.Is(err, checkpoint.ErrRolledBack) {
		t.Errorf("a commit is lost: %v", err)
	}
}

// However many workers claim at once, the fleet makes at most --max-creates leads. A claim without lead is given back.
func TestMaxCreatesHoldsForTheWholeFleet(t *testing.T) {
	_, address, target := shared(t)
	const most = 50
	var group sync.WaitGroup
	var stores [4]*Store
	var got [4]int
	for i := range stores {
		stores[i] = joined(t, address, target, i, 4, func(t *checkpoint.Terms) { t.MaxCreates = most })
	}
	for i, s := range stores {
		group.Go(func() {
			for at := range 6 {
				n, err := claim(t, s, i*1000+at*5, i*1000+at*5+5)
				if got[i] += n; err != nil && !errors.Is(err, checkpoint.ErrEnough) {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	if sum := got[0] + got[1] + got[2] + got[3]; sum != most {
		t.Fatalf("%d claims of %d: %v", sum, most, got)
	}
	for i, n := range got {
		if n > 0 {
			must.Do(t, settle(t, stores[i], i*1000, checkpoint.Rejected))
			break
		}
	}
	if n, err := claim(t, stores[3], 9000, 9002); n != 1 || !errors.Is(err, checkpoint.ErrEnough) {
		t.Errorf("%d claims, want 1, since one was given back: %v", n, err)
	}
}

// If the resend of a row in doubt is rejected or withdrawn, the row stays in doubt and --max-creates gets it back.
func TestAResendThatMakesNoLeadGivesItsShareBack(t *testing.T) {
	_, address, target := shared(t)
	join := func() *Store {
		return joined(t, address, target, 0, 1, func(t *checkpoint.Terms) { t.MaxCreates = 3 })
	}
	first := join()
	committed(t, first, byRun("first", claimOf("a")), byRun("first", claimOf("b")))
	must.Do(t, first.Close())
	second := join()
	made := func() int64 {
		return pgtest.Value[int64](t, address, `SELECT made FROM leadferry.budget`)
	}
	for _, end := range []*checkpoint.Change{
		{Kind: checkpoint.Settle, Entry: checkpoint.Entry{Key: "a", State: checkpoint.Rejected}},
		{Kind: checkpoint.Withdraw, Entry: checkpoint.Entry{Key: "b"}},
	} {
		committed(t, second, byRun("second", claimOf(end.Entry.Key)))
		if n := made(); n != 3 {
			t.Fatalf("%d leads while a row is sent again", n)
		}
		key := end.Entry.Key
		committed(t, second, byRun("second", end))
		if e := entryOf(t, second, key); e.State != checkpoint.InDoubt || e.Run != "first" || made() != 2 {
			t.Errorf("%d leads, and the row is %+v", made(), e)
		}
	}
}

// Exchange adds up the requests of all workers, the rows of each shard's newest worker, and the doubts of the dead.
func TestExchangeAddsUpWhatWorkersReport(t *testing.T) {
	address, target := pgtest.Shared(t).Database(t), newTarget()
	tell := func(s *Store, p checkpoint.Progress) checkpoint.Common {
		t.Helper()
		c, err := s.Exchange(t.Context(), p)
		must.Do(t, err)
		return c
	}
	rated := func(t *checkpoint.Terms) { t.Rate = 120 }
	first, dead := joined(t, address, target, 2, 3, rated), joined(t, address, target, 0, 3, rated)
	claim(t, dead, 0, 7)
	tell(dead, checkpoint.Progress{Counts: checkpoint.Counts{Read: 100, Invalid: 10, Sent: 90, Refused: 5, Doubts: 1}})
	next, other := joined(t, address, target, 0, 3, rated), joined(t, address, target, 1, 3, rated)
	tell(next, checkpoint.Progress{Counts: checkpoint.Counts{Read: 50, Invalid: 6, Sent: 2, Refused: 1, Doubts: 1}})
	got := tell(other, checkpoint.Progress{Counts: checkpoint.Counts{Read: 30, Invalid: 3, Sent: 4, Refused: 2, Doubts: 2}, Pause: time.Minute, Wants: true})
	if got.Pause < 50*time.Second || got.Pause > time.Minute || got.Tokens != 10 || got.After > time.Second/80*10 {
		t.Errorf("heard %+v", got)
	}
	got.Pause, got.After, got.Tokens = 0, 0, 0
	if want := (checkpoint.Common{Counts: checkpoint.Counts{Read: 80, Invalid: 9, Sent: 96, Refused: 8, Doubts: 1 + 2}}); got != want {
		t.Errorf("heard %+v, want %+v", got, want)
	}
	doubts := func(s *Store) [2]int {
		l := checkpoint.Ledger{Store: s}
		standing, err := l.Standing(t.Context())
		must.Do(t, err)
		return [2]int{standing, tell(s, checkpoint.Progress{Counts: checkpoint.Counts{Doubts: 1}}).Doubts}
	}
	before := doubts(first) // first joined before the others
	claim(t, next, 7, 9)
	must.Do(t, next.Close())
	// Rows in doubt count for the fleet while their worker may still settle them. After that a person must decide.
	if a, b, c := before, doubts(first), doubts(joined(t, address, target, 0, 3, rated)); a != [2]int{0, 7 + 1 + 1 + 2} || b != [2]int{0, 7 + 2 + 1 + 2} || c != [2]int{9, 1 + 1 + 2} {
		t.Errorf("%v in doubt, then %v, and for a worker that begins then %v", a, b, c)
	}
	pgtest.Shared(t).Exec(t, address, `UPDATE leadferry.ledgers SET missing = 'leads'`)
	if n := doubts(first)[1]; n != 1+1+1+2+1 { // a worker that ended may have held rows
		t.Errorf("%d in doubt in a ledger that is incomplete", n)
	}
	next = joined(t, address, target, 0, 3, rated)
	var end time.Duration // when the last reserved request may be sent
	for range 8 {
		got = tell(next, checkpoint.Progress{Wants: true})
		if got.Tokens != 10 || got.Pause < 50*time.Second {
			t.Fatalf("heard %+v", got)
		}
		end = max(end, got.After)
	}
	if end < 300*time.Millisecond || end > 8*125*time.Millisecond {
		t.Errorf("90 requests were given away until %v", end)
	}
	// The server's clock is put back by a day.
	pgtest.Shared(t).Exec(t, address, `UPDATE leadferry.fleets SET given = given + interval '1 day', opens = opens + interval '1 day'`)
	if got = tell(next, checkpoint.Progress{Wants: true}); got.Pause != 0 || got.After > 2*time.Minute {
		t.Errorf("waits for a time that was noted before the clock was set back: %+v", got)
	}
	if got = tell(next, checkpoint.Progress{Pause: time.Minute}); got.Pause > time.Minute || got.Pause < 50*time.Second {
		t.Errorf("a pause that begins now: %+v", got)
	}
}

// Exchange waits only a short time for locks of others, because the worker must show life meanwhile.
func TestAnExchangeDoesNotWaitLongForALock(t *testing.T) {
	_, address, target := shared(t)
	s := joined(t, address, target, 0, 1, nil)
	other, err := pgx.Connect(t.Context(), address)
	must.Do(t, err)
	defer other.Close(context.Background())
	_, err = other.PgConn().Exec(t.Context(), `BEGIN; SELECT FROM leadferry.fleets FOR UPDATE`).ReadAll()
	must.Do(t, err)
	began := time.Now()
	if _, err := s.Exchange(t.Context(), checkpoint.Progress{Pause: time.Minute}); err == nil || time.Since(began) > 20*time.Second {
		t.Errorf("%v after %v", err, time.Since(began))
	}
	must.Do(t, other.Close(t.Context()))
	if _, err := s.Exchange(t.Context(), checkpoint.Progress{Pause: time.Minute}); err != nil {
		t.Errorf("and then: %v", err)
	}
}

// A refused worker drops a new ledger, but never while another worker begins to use it.
func TestALedgerIsNotRemovedUnderAWorker(t *testing.T) {
	t.Parallel()
	address := pgtest.Shared(t).Database(t)
	opened(t, address, newTarget(), Options{}) // makes the schema
	for range 10 {
		target := newTarget()
		var group sync.WaitGroup
		for shard := range 4 {
			group.Go(func() {
				s, err := tryJoin(t, address, target, shard, 4, nil)
				if err != nil {
					t.Error(err)
					return
				}
				if shard > 0 {
					s.Drop()
				} else if err := s.Commit(t.Context(), []*checkpoint.Change{claimOf("a")}); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
	}
}

// The move of a ledger waits for a run that is just beginning, and is then refused because of it.
func TestALedgerIsNotMovedUnderARun(t *testing.T) {
	_, address, target := shared(t)
	s := opened(t, address, target, Options{})
	run, err := pgx.Connect(t.Context(), address)
	must.Do(t, err)
	defer run.Close(context.Background())
	if _, err := run.Exec(t.Context(), `BEGIN; SELECT FROM leadferry.ledgers FOR UPDATE; INSERT INTO leadferry.workers (ledger, run) SELECT ledger, 'run' FROM leadferry.ledgers`); err != nil {
		t.Fatal(err)
	}
	moved := make(chan error, 1)
	go func() { moved <- s.SetMoved("elsewhere.db") }()
	pgtest.Eventually(t, "it is waited for", func() bool {
		return pgtest.Value[bool](t, address, `SELECT EXISTS (SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock')`)
	})
	if _, err := run.Exec(t.Context(), `COMMIT`); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(<-moved, s.Close()); !errors.Is(err, checkpoint.ErrLocked) {
		t.Errorf("moved from under a run: %v", err)
	}
	if n := pgtest.Value[int](t, address, `SELECT count(*) FROM leadferry.workers WHERE ended IS NULL`); n != 1 {
		t.Errorf("%d live workers, want 1: the refused move is still one", n)
	}
}

// A copy descends from the commit its source had when it was moved, so showing life meanwhile must not be a commit.
func TestShowingLifeIsNoCommit(t *testing.T) {
	server, address, target := shared(t)
	s := opened(t, address, target, Options{})
	before := s.Info().Sequence
	server.Exec(t, address, `UPDATE leadferry.workers SET beat = beat - interval '2 minutes'`)
	must.Do(t, s.showLife())
	if beats := pgtest.Value[bool](t, address, `SELECT beat > now() - interval '1 minute' FROM leadferry.workers`); !beats || s.Info().Sequence != before {
		t.Errorf("life shown: %v; the sequence went from %d to %d", beats, before, s.Info().Sequence)
	}
}

// PostgreSQL plans queries while tables are empty, but the plans must suit full tables: no query reads a whole ledger.
func TestQueryPlansLookUpEachKey(t *testing.T) {
	t.Parallel()
	s := opened(t, pgtest.Shared(t).Database(t), newTarget(), Options{})
	anything := regexp.MustCompile(`workers|Index Only Scan using forgotten_pkey `) // small, or stops at its first row
	for name, statement := range map[string]string{"find": statement("find"), "write": statement("write")} {
		d, err := s.conn.Prepare(t.Context(), name, statement)
		must.Do(t, err)
		rows, err := s.conn.Query(t.Context(), "EXPLAIN EXECUTE "+name+"(1"+strings.Repeat(", NULL", len(d.ParamOIDs)-1)+")", pgx.QueryExecModeSimpleProtocol)
		must.Do(t, err)
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		must.Do(t, err)
		for i, line := range lines {
			if strings.HasSuffix(line, "Cond: (ledger = $1)") && !anything.MatchString(lines[i-1]) {
				t.Errorf("%s reads the whole ledger:\n%s\n%s", name, lines[i-1], line)
			}
			if strings.Contains(line, "Seq Scan") {
				t.Errorf("%s reads a whole table: %s", name, line)
			}
		}
	}
}
