package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"leadferry/checkpoint"
	"leadferry/checkpoint/storetest"
	"leadferry/internal/pgtest"
	"leadferry/internal/testsupport/must"
)

func claimOf(key string) *checkpoint.Change {
	return &checkpoint.Change{Kind: checkpoint.Claim, Resend: true, Entry: checkpoint.Entry{Key: key, File: "leads.csv", Line: 2, Organization: "org", WantLink: "crm-" + key, Run: "run"}}
}

func createdOf(key, lead string) *checkpoint.Change {
	return &checkpoint.Change{Kind: checkpoint.Settle, Entry: checkpoint.Entry{Key: key, State: checkpoint.Created, LeadID: lead, Run: "run"}}
}

// byRun sets the run of a change.
func byRun(run string, c *checkpoint.Change) *checkpoint.Change {
	c.Entry.Run = run
	return c
}

func committed(t *testing.T, s *Store, changes ...*checkpoint.Change) {
	t.Helper()
	must.Do(t, s.Commit(t.Context(), changes))
	for _, c := range changes {
		if c.Err != nil {
			t.Fatalf("%s: %v", c.Entry.Key, c.Err)
		}
	}
}

// entryOf looks a key up.
func entryOf(t *testing.T, s *Store, key string) checkpoint.Entry { return storetest.Lookup(t, s, key) }

// wantRefusal wants that a ledger is not opened: with a [checkpoint.OpenError] that has these words and a hint.
func wantRefusal(t *testing.T, address string, target checkpoint.Target, o Options, words string) {
	t.Helper()
	s, err := Open(address, target, o)
	if err == nil {
		s.Close()
	}
	var why *checkpoint.OpenError
	if !errors.As(err, &why) || !strings.Contains(why.Text, words) || why.Hint == "" {
		t.Errorf("opened, or refused for another reason than %q: %v", words, err)
	}
}

// Wherever the connection is cut, each change is made exactly once and the worker reconnects. Each answer of the server
// has at least two messages, so cutting at every second one is enough. faults 1, 2
func TestTheConnectionIsCutAtEveryMessage(t *testing.T) {
	server, address, _ := shared(t)
	for step, after := range []bool{false, true} {
		t.Run(fmt.Sprint("of the server: ", after), func(t *testing.T) {
			t.Parallel()
			p := newProxy(t, server)
			s := opened(t, p.through(address), newTarget(), Options{Run: "run", Patience: time.Minute})
			for n, went := 1, false; !went; n += 1 + step {
				cuts := p.cuts
				p.arm(n, after)
				changeWhileCut(t, s, fmt.Sprint(n, "-"))
				p.arm(0, false)
				went = p.cuts == cuts // nothing was cut
			}
			if p.cuts < 20 {
				t.Errorf("only %d cuts", p.cuts)
			}
			must.Do(t, s.Check(t.Context()))
		})
	}
}

func changeWhileCut(t *testing.T, s *Store, name string) {
	t.Helper()
	committed(t, s, claimOf(name+"a"), claimOf(name+"b"), claimOf(name+"c"))
	must.Do(t, s.Guard(t.Context(), name+"a"))
	committed(t, s, createdOf(name+"a", name+"lead"), &checkpoint.Change{Kind: checkpoint.Withdraw, Entry: checkpoint.Entry{Key: name + "b", Run: "run"}})
	taken := createdOf(name+"c", name+"lead") // another row has this lead, so the commit needs a transaction
	committed(t, s, taken)
	if taken.Entry.Reason != checkpoint.ReasonLeadTaken {
		t.Fatalf("%s: the lead of another row was taken: %+v", name, taken.Entry)
	}
	out := make([]checkpoint.Entry, 3)
	must.Do(t, s.Find(t.Context(), []checkpoint.Query{{Key: name + "a", Entry: &out[0]}, {Key: name + "b", Entry: &out[1]}, {Key: name + "c", Entry: &out[2]}}))
	if out[0].State != checkpoint.Created || out[1].State != checkpoint.Unknown || out[2].State != checkpoint.InDoubt {
		t.Fatalf("%s: %+v", name, out)
	}
}

// A commit may need several statements. Its outcomes are durable before its claims, so a crash between two statements
// leaves no more rows in doubt than there are slots. fault 154
func TestOutcomesComeBeforeClaims(t *testing.T) {
	t.Parallel()
	const slots = mostChanges
	server := pgtest.Shared(t)
	address := server.Database(t)
	for n := 1; ; n += 3 { // a statement is four messages
		p, target := newProxy(t, server), newTarget()
		p.mu.Lock()
		p.last = true
		p.mu.Unlock()
		s := opened(t, p.through(address), target, Options{Run: "run", Patience: time.Millisecond})
		var first, next []*checkpoint.Change
		for i := range slots {
			first = append(first, claimOf(fmt.Sprint("b-", i)))
			next = append(next, createdOf(fmt.Sprint("b-", i), fmt.Sprint("lead-", i)), claimOf(fmt.Sprint("a-", i)))
		}
		committed(t, s, first...)
		p.arm(n, false)
		err := s.Commit(t.Context(), next)
		s.Close()
		after := opened(t, address, target, Options{ReadOnly: true})
		if doubts := after.Info().InDoubt; doubts > slots {
			t.Errorf("%d rows in doubt after a cut at message %d, more than the %d slots", doubts, n, slots)
		}
		after.Close()
		if err == nil { // nothing was cut
			break
		}
	}
}

// If a server has lost commits that it had acknowledged, the worker stops for good and the ledger is incomplete.
func TestLostCommitsStopTheWorker(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	for _, before := range []string{"", "what was lost before"} { // an earlier loss must not hide this one
		address := server.Database(t)
		p := newProxy(t, server)
		target := newTarget()
		opened(t, address, target, Options{}).Close()
		server.Exec(t, address, `UPDATE leadferry.ledgers SET missing = '`+before+`', since = length('`+before+`')`, `SELECT setval('leadferry.commits', 1000)`)
		lostCommits(t, server, p, address, target)
	}
}

func lostCommits(t *testing.T, server *pgtest.Server, p *proxy, address string, target checkpoint.Target) {
	t.Helper()
	terms := func(shard int) *checkpoint.Terms { return &checkpoint.Terms{Fleet: "monday", Shard: shard, Shards: 2} }
	s := opened(t, p.through(address), target, Options{Run: "run", Terms: terms(0)})
	other := opened(t, address, target, Options{Run: "other", Terms: terms(1)})
	committed(t, s, claimOf("a"))
	server.Exec(t, address, `UPDATE leadferry.workers SET commits = commits - 1 WHERE run = 'run'`, `DELETE FROM leadferry.lead_rows`) // as on a standby that lacks them
	p.cutAll()
	err := s.Commit(t.Context(), []*checkpoint.Change{claimOf("b")})
	if !errors.Is(err, checkpoint.ErrRolledBack) {
		t.Fatalf("went on: %v", err)
	}
	if err := s.Guard(t.Context(), "a"); !errors.Is(err, checkpoint.ErrRolledBack) {
		t.Errorf("the claim that is lost may be sent: %v", err)
	}
	c := claimOf("c")
	if err := other.Commit(t.Context(), []*checkpoint.Change{c}); !errors.Is(errors.Join(err, c.Err), checkpoint.ErrRolledBack) {
		t.Errorf("a commit of the other worker: %v, %v", err, c.Err)
	}
	if _, err := other.Exchange(t.Context(), checkpoint.Progress{}); !errors.Is(err, checkpoint.ErrRolledBack) {
		t.Errorf("Exchange of the other worker: %v", err)
	}
	s.Close()
	again := opened(t, address, target, Options{ReadOnly: true})
	if i := again.Info(); !i.Incomplete || !i.MayLack(&checkpoint.Entry{Key: "a"}) || !i.MayLack(&checkpoint.Entry{Key: "a", State: checkpoint.Rejected, Seq: s.seq.Load()}) {
		t.Errorf("not incomplete: %+v", i)
	}
}

// Before a request leaves for a claim older than claimTerm, a commit must confirm the claim. Its answer must come in that
// term: later, a person may have decided about the row.
func TestAnOldClaimIsRenewed(t *testing.T) {
	server, address, target := shared(t)
	s := opened(t, address, target, Options{Run: "old"})
	now, asked, late := s.claims.now(), 0, 0
	s.claims.now = func() time.Duration {
		if asked++; asked == late {
			now += 20 * time.Minute
		}
		return now
	}
	committed(t, s, claimOf("a"))
	before := s.commits
	if err := s.Guard(t.Context(), "a"); err != nil || s.commits != before {
		t.Fatalf("a new claim: %v, %d commits", err, s.commits-before)
	}
	now += 2 * claimTerm
	if err := s.Guard(t.Context(), "a"); err != nil || s.commits != before+1 {
		t.Fatalf("an old one: %v, %d commits", err, s.commits-before)
	}
	now, asked, late = now+2*claimTerm, 0, 4 // after it was found old, twice, and the renewal was asked for
	if must.Do(t, s.Guard(t.Context(), "a")); !s.claims.maySend("a") {
		t.Error("a row may be sent by a renewal whose answer came too late")
	}
	now += 2 * claimTerm
	server.Exec(t, address, `UPDATE leadferry.workers SET fenced = now()`)
	if err := s.Guard(t.Context(), "a"); !errors.Is(err, checkpoint.ErrFenced) {
		t.Errorf("a fenced worker may send: %v", err)
	}
	c := claimOf("b")
	if err := s.Commit(t.Context(), []*checkpoint.Change{c, createdOf("a", "lead")}); err != nil || !errors.Is(c.Err, checkpoint.ErrFenced) {
		t.Errorf("a fenced worker claims: %v, %v", err, c.Err)
	}
	if got := entryOf(t, s, "a"); got.State != checkpoint.Created {
		t.Errorf("the late answer of a fenced worker was not taken: %+v", got)
	}
}

// A second run is refused while the first shows life. Later it fences the first, whose claims stay in doubt until their
// own answers come.
func TestASecondRunFencesASilentFirstOneAndKeepsItsDoubts(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	address := server.Database(t)
	target := newTarget()
	first := opened(t, address, target, Options{Run: "first", Timeout: time.Hour})
	committed(t, first, byRun("first", claimOf("a")), byRun("first", claimOf("b")), byRun("first", claimOf("c")))
	wantRefusal(t, address, target, Options{Run: "second"}, "the run first")
	server.Exec(t, address, `UPDATE leadferry.workers SET beat = beat - interval '2 minutes'`)
	second := opened(t, address, target, Options{Run: "second"})
	for _, c := range []*checkpoint.Change{claimOf("a"), createdOf("a", "lead-of-another")} {
		if err := second.Commit(t.Context(), []*checkpoint.Change{c}); err != nil || !errors.Is(c.Err, checkpoint.ErrOtherMaySend) {
			t.Errorf("what another worker had claimed: %v, %v", err, c.Err)
		}
	}
	person := opened(t, address, target, Options{})
	var why *checkpoint.ListError
	for _, unblock := range []bool{true, false} {
		if _, err := checkpoint.Forget(t.Context(), person, []string{"a"}, unblock); !errors.As(err, &why) {
			t.Errorf("a row whose worker lives was freed: %v", err)
		}
	}
	if _, err := checkpoint.Resolve(t.Context(), person, []checkpoint.Decision{{Key: "a"}}); !errors.As(err, &why) {
		t.Errorf("decided while an answer may come: %v", err)
	}
	server.Exec(t, address, `UPDATE leadferry.workers SET beat = beat - interval '50 minutes' WHERE run = 'first'`)
	if _, err := checkpoint.Resolve(t.Context(), person, []checkpoint.Decision{{Key: "a"}}); !errors.As(err, &why) {
		t.Errorf("decided before the time-out of the request was over: %v", err)
	}
	second.Close()
	if err := person.SetMoved("copy.db"); err == nil {
		t.Error("copied while an answer may come")
	}
	second = opened(t, address, target, Options{Run: "second"})
	server.Exec(t, address, `UPDATE leadferry.workers SET beat = beat - interval '130 minutes' WHERE run = 'first'`)
	if _, err := checkpoint.Resolve(t.Context(), person, []checkpoint.Decision{{Key: "a"}, {Key: "b"}, {Key: "c"}}); err != nil {
		t.Fatal(err)
	}
	committed(t, second, byRun("second", claimOf("a")))
	// The first one wakes up.
	late := byRun("first", createdOf("a", "lead-a"))
	committed(t, first, late)
	if late.Entry.State != checkpoint.InDoubt {
		t.Errorf("the answer to the first send settled a row that is being sent again: %+v", late.Entry)
	}
	silent := byRun("first", createdOf("c", ""))
	silent.Entry.State = checkpoint.InDoubt
	if committed(t, first, silent); entryOf(t, second, "c").State != checkpoint.InDoubt {
		t.Error("a row that was sent after all, without an answer, may be sent again")
	}
	entryOf(t, first, "b") // now the first worker has seen the decision
	committed(t, first, byRun("first", createdOf("b", "lead-b")))
	committed(t, second, byRun("second", createdOf("a", "lead-a2")))
	audit, err := checkpoint.AuditOf(t.Context(), second)
	must.Do(t, err)
	var texts []string
	for _, d := range audit {
		for _, e := range d.Against {
			texts = append(texts, d.Key+" "+e.Text+" "+e.Other)
		}
	}
	if len(texts) != 2 || !strings.HasSuffix(texts[0], "lead-a") || !strings.HasSuffix(texts[1], "lead-b") {
		t.Errorf("late answers against a decision: %q", texts)
	}
	if got := entryOf(t, second, "b"); got.LeadID != "lead-b" {
		t.Errorf("the late answer was lost: %+v", got)
	}
}

// A worker that wakes up while a person's decision about its row is stored waits for it, and then does not send.
func TestAClaimIsNotRenewedDuringADecision(t *testing.T) {
	server, address, target := shared(t)
	s := opened(t, address, target, Options{Run: "run"})
	now := s.claims.now()
	s.claims.now = func() time.Duration { return now }
	committed(t, s, claimOf("a"))
	now += 20 * time.Minute
	server.Exec(t, address, `UPDATE leadferry.workers SET beat = beat - interval '20 minutes'`)
	person, renewed := opened(t, address, target, Options{}), make(chan error, 1)
	must.Do(t, person.Alone(t.Context(), func(tx checkpoint.Tx) error {
		go func() { renewed <- s.Guard(context.Background(), "a") }()
		for waits := false; !waits && len(renewed) == 0; {
			must.Do(t, person.conn.One(`SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted)`).Scan(&waits))
		}
		return errors.Join(tx.Load([]string{"a"}, nil), tx.Put("a", checkpoint.KeptKey{}))
	}))
	if err := <-renewed; !errors.Is(err, checkpoint.ErrOtherMaySend) {
		t.Errorf("the row may be sent: %v", err)
	}
}

// If the connection breaks at any message of a renewal, the claim is still this worker's.
func TestARenewalSurvivesACutAtEveryMessage(t *testing.T) {
	server, address, target := shared(t)
	p := newProxy(t, server)
	s := opened(t, p.through(address), target, Options{Run: "run", Patience: time.Minute})
	now := s.claims.now()
	s.claims.now = func() time.Duration { return now }
	committed(t, s, claimOf("a"))
	for n, cuts := 1, -1; p.cuts != cuts; n++ { // until a renewal ends before its n-th message
		now, cuts = now+2*claimTerm, p.cuts
		p.arm(n, true)
		must.Do(t, s.Guard(t.Context(), "a"))
		p.arm(0, false)
	}
	if p.cuts < 5 {
		t.Errorf("the connection was cut %d times", p.cuts)
	}
}

// The ledger is dropped and made anew in mid-run, and a worker there has the old worker's number. Both workers stop.
func TestAReplacedLedgerIsNoticedAfterReconnecting(t *testing.T) {
	server := pgtest.Shared(t)
	address, target := server.Database(t), newTarget()
	p := newProxy(t, server)
	s := opened(t, p.through(address), target, Options{Run: "old"})
	committed(t, s, claimOf("a"))
	server.Exec(t, address, `DROP SCHEMA leadferry CASCADE`)
	anew := opened(t, address, target, Options{Run: "new"})
	committed(t, anew, claimOf("x"))
	p.cutAll()
	for _, d := range []*Store{s, anew} { // the old worker notes the loss, which also stops the new one
		c := claimOf("b")
		if err := d.Commit(t.Context(), []*checkpoint.Change{c}); !errors.Is(errors.Join(err, c.Err), checkpoint.ErrRolledBack) {
			t.Errorf("%s goes on: %v, %v", d.o.Run, err, c.Err)
		}
	}
}

// A lead never belongs to two keys: not in one commit, and not if a worker waits for another worker's commit.
func TestALeadBelongsToOneKey(t *testing.T) {
	server, address, target := shared(t)
	s := opened(t, address, target, Options{Run: "run"})
	committed(t, s, claimOf("a"), claimOf("b"), claimOf("c"), claimOf("d"))
	committed(t, s, createdOf("c", "lead-2"))
	server.Exec(t, address, `CREATE TABLE spare AS SELECT * FROM leadferry.lead_rows WHERE key = 'c'`, `DELETE FROM leadferry.lead_ids`)
	first, second := createdOf("a", "lead-1"), createdOf("b", "lead-1")
	committed(t, s, first, second)
	other, err := pgx.Connect(t.Context(), address)
	must.Do(t, err)
	defer other.Close(context.Background())
	if _, err := other.PgConn().Exec(t.Context(), `BEGIN; INSERT INTO leadferry.lead_rows
			SELECT (jsonb_populate_record(NULL::leadferry.lead_rows, to_jsonb(r) || '{"key": "\\x65"}')).* FROM spare r;
		INSERT INTO leadferry.lead_ids SELECT ledger, 'lead-2', 'e' FROM leadferry.ledgers`).ReadAll(); err != nil {
		t.Fatal(err)
	}
	third := createdOf("d", "lead-2")
	done := make(chan error, 1)
	go func() { done <- s.Commit(context.Background(), []*checkpoint.Change{third}) }()
	for len(done) == 0 && !pgtest.Value[bool](t, address, `SELECT EXISTS (SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database())`) {
		time.Sleep(time.Millisecond)
	}
	if _, err := other.Exec(t.Context(), `COMMIT`); err != nil {
		t.Fatal(err)
	}
	must.Do(t, <-done)
	for _, c := range []*checkpoint.Change{second, third} {
		if c.Err != nil || c.Entry.State != checkpoint.InDoubt || c.Entry.Reason != checkpoint.ReasonLeadTaken {
			t.Errorf("%s: %+v, %v", c.Entry.Key, c.Entry, c.Err)
		}
	}
	if first.Entry.State != checkpoint.Created {
		t.Errorf("%+v", first.Entry)
	}
}

// Two workers never claim the same ExternalID: not while the first claim is open, not after its lead is made, and not
// at the same moment after a first claim was rejected.
func TestAnExternalIDIsClaimedOnce(t *testing.T) {
	_, address, target := shared(t)
	fleet := func(shard int) Options {
		return Options{Run: "run-" + itoa(shard), Terms: &checkpoint.Terms{Fleet: "f", Shard: shard, Shards: 2}}
	}
	one, other := opened(t, address, target, fleet(0)), opened(t, address, target, fleet(1))
	asks := func(key string) *checkpoint.Change {
		c := claimOf(key)
		c.Entry.WantLink = "x"
		return c
	}
	refused := func(s *Store, key string) {
		t.Helper()
		c := asks(key)
		if err := s.Commit(t.Context(), []*checkpoint.Change{c}); err != nil || !errors.Is(c.Err, checkpoint.ErrLinked) {
			t.Errorf("%s: %v, %v", key, err, c.Err)
		}
	}
	committed(t, one, asks("a"))
	refused(other, "b")
	rejected := &checkpoint.Change{Kind: checkpoint.Settle, Entry: checkpoint.Entry{Key: "a", State: checkpoint.Rejected, Code: 422}}
	committed(t, one, rejected)
	changes := []*checkpoint.Change{asks("c"), asks("d")}
	var both sync.WaitGroup
	for i, s := range []*Store{one, other} {
		both.Go(func() {
			if err := s.Commit(context.Background(), changes[i:i+1]); err != nil {
				t.Error(err)
			}
		})
	}
	both.Wait()
	if c, d := changes[0].Err, changes[1].Err; (c == nil) == (d == nil) || !errors.Is(cmp.Or(c, d), checkpoint.ErrLinked) {
		t.Errorf("two at once: %v, %v", c, d)
	}
	winner := one
	if changes[0].Err != nil {
		winner = other
	}
	done := createdOf(map[*Store]string{one: "c", other: "d"}[winner], "lead")
	done.Entry.ExternalID = "x"
	committed(t, winner, done)
	refused(one, "e")
	refused(other, "f")
}

// A decision locks only its own ledger, not others. A claim that waits for the lock sees the decision.
func TestDecisionsLockOnlyTheirOwnLedger(t *testing.T) {
	_, address, target := shared(t)
	s, worker, elsewhere := opened(t, address, target, Options{}), opened(t, address, target, Options{Run: "run"}), opened(t, address, newTarget(), Options{})
	if _, err := elsewhere.conn.Exec(t.Context(), `SET lock_timeout = '2s'`); err != nil {
		t.Fatal(err)
	}
	waited, claim := make(chan error, 1), claimOf("a")
	err := s.Alone(t.Context(), func(tx checkpoint.Tx) error {
		committed(t, elsewhere, claimOf("a"), createdOf("a", "lead-a"))
		go func() { waited <- worker.Commit(t.Context(), []*checkpoint.Change{claim}) }()
		for len(waited) == 0 && pgtest.Value[int](t, address, `SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`) == 0 {
			time.Sleep(time.Millisecond)
		}
		return errors.Join(tx.Erase([]string{"a"}), tx.Block(checkpoint.KeptBlock{Hash: s.Digests().Blocked("a"), At: time.Now()}))
	})
	if err = errors.Join(err, <-waited); err != nil || !errors.Is(claim.Err, checkpoint.ErrBlocked) {
		t.Errorf("a key that was forgotten while its claim waited: %v, %v", err, claim.Err)
	}
}

func TestServersThatMayLoseCommitsAreRefused(t *testing.T) {
	t.Parallel()
	for setting, words := range map[string]string{
		"fsync=off": "fsync", "full_page_writes=off": "full_page_writes", "default_transaction_read_only=on": "takes no changes",
	} {
		t.Run(setting, func(t *testing.T) {
			server := pgtest.New(t, setting)
			wantRefusal(t, server.URL("postgres"), newTarget(), Options{}, words)
		})
	}
	server := pgtest.Shared(t)
	server.Exec(t, server.URL("postgres"), `CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0`)
	wantRefusal(t, server.URL("latin"), newTarget(), Options{}, "LATIN1")
	address := server.Database(t)
	s := opened(t, address, newTarget(), Options{})
	if _, err := s.conn.Exec(t.Context(), `SET synchronous_commit = off`); err != nil {
		t.Fatal(err)
	}
	if err := s.Commit(t.Context(), []*checkpoint.Change{claimOf("a")}); !errors.Is(err, checkpoint.ErrPlace) {
		t.Errorf("committed without a promise: %v", err)
	}
	if n := pgtest.Value[int](t, address, `SELECT count(*) FROM leadferry.lead_rows`); n != 0 {
		t.Error("the claim is stored nevertheless")
	}
}

// Once a database is set read-only before a move, nothing more is claimed, but answers are still stored.
func TestNothingIsClaimedBeforeAMove(t *testing.T) {
	server, address, target := shared(t)
	s := opened(t, address, target, Options{Run: "run"})
	committed(t, s, claimOf("a"), claimOf("b"))
	server.Exec(t, server.URL("postgres"), "ALTER DATABASE "+nameOf(address)+" SET default_transaction_read_only = on")
	done, more := createdOf("a", "lead"), claimOf("c")
	err := s.Commit(t.Context(), []*checkpoint.Change{done, more})
	s.claims.drop("b") // as if it had become old
	if renewed := s.renew("b"); err != nil || done.Err != nil || !errors.Is(more.Err, checkpoint.ErrPlace) || !errors.Is(renewed, checkpoint.ErrPlace) {
		t.Errorf("%v; the answer: %v, a claim: %v, an old one: %v", err, done.Err, more.Err, renewed)
	}
	server.Exec(t, server.URL("postgres"), "ALTER ROLE postgres IN DATABASE "+nameOf(address)+" SET default_transaction_read_only = off")
	committed(t, s, claimOf("c"))
}

func TestAddressesThatAreRefused(t *testing.T) {
	for address, words := range map[string]string{
		"postgres://me:secret@db.example.com/leads":                  "password",
		"postgres://me@db.example.com/leads?password=secret":         "password",
		"host=db.example.com password=secret":                        "password",
		"host=db.example.com sslmode=require":                        "verified",
		"postgres://db.example.com/leads?sslmode=disable":            "verified",
		"postgres://127.0.0.1,db.example.com/leads?sslmode=prefer":   "verified",
		"postgres://db.example.com/leads?sslmode=verify-ca":          "verified",
		"postgres://db.example.com:port/leads?sslmode=verify-full":   "read",
		"postgres://me@db.example.com/leads?pass%77ord=secret":       "password",
		"postgres://me:se%zzcret@db.example.com/leads":               "password",
		"postgres://me:sec/ret@db.example.com/leads":                 "password",
		"host=db.example.com PASSWORD = 'secret'":                    "password",
		"host=db.example.com user=me pwd=secret":                     "password",
		"postgres://me@db.example.com/leads?pass=secret":             "password",
		"hostaddr=10.0.0.1 user=me dbname=leads":                     "hostaddr",
		"host=db.example.com sslpassword=secret sslmode=verify-full": "password",
	} {
		wantRefusal(t, address, newTarget(), Options{}, words)
		if _, err := Open(address, newTarget(), Options{}); strings.Contains(err.Error(), "cret") {
			t.Errorf("the password is shown: %v", err)
		}
	}
}

func nameOf(address string) string {
	return address[strings.LastIndex(address, "/")+1 : strings.Index(address, "?")]
}

// A restored old database is noticed in both cases: it does not know the last run, or it knows it with fewer commits.
func TestARestoredLedgerIsRefused(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	for _, later := range []string{"later", "before"} {
		address, target := server.Database(t), newTarget()
		ws := &checkpoint.Witnesses{Book: t.TempDir()}
		used := func(id string, changes ...*checkpoint.Change) {
			s := opened(t, address, target, Options{Run: id})
			beginRun(t, s, ws)
			committed(t, s, changes...)
			must.Do(t, s.Close())
		}
		used("before", claimOf("a"), createdOf("a", "lead-a"))
		name := nameOf(address)
		server.Exec(t, server.URL("postgres"), `CREATE DATABASE `+name+`_copy TEMPLATE `+name)
		used(later, claimOf("b"), createdOf("b", "lead-b"))
		server.Exec(t, server.URL("postgres"), `DROP DATABASE `+name, `ALTER DATABASE `+name+`_copy RENAME TO `+name)
		s := opened(t, address, target, Options{})
		old := s.id
		if err := judged(t, s, ws); !errors.Is(err, checkpoint.ErrRolledBack) || !strings.Contains(err.Error(), "--accept-older="+old) {
			t.Errorf("%s: %v", later, err)
		}
		if took, err := checkpoint.TakeOlder(t.Context(), s, ws, old, ""); !took || err != nil {
			t.Errorf("took %v, %v", took, err)
		}
		s.Close()
		s = opened(t, address, target, Options{Run: "again"})
		if i := s.Info(); judged(t, s, ws) != nil || !i.Incomplete || i.ID == old || !i.MayLack(&checkpoint.Entry{Key: "b"}) {
			t.Errorf("%+v, %v", i, judged(t, s, ws))
		}
	}
}

// If a ledger's schema was dropped, the running run stops and later runs do not silently begin with a new ledger.
func TestADroppedLedgerIsNotReplacedSilently(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	address, target, ws := server.Database(t), newTarget(), &checkpoint.Witnesses{Book: t.TempDir()}
	during := opened(t, address, target, Options{Run: "during"})
	beginRun(t, during, ws)
	committed(t, during, claimOf("a"), createdOf("a", "lead-a"))
	server.Exec(t, address, `DROP SCHEMA leadferry CASCADE`)
	if err := during.Commit(t.Context(), []*checkpoint.Change{claimOf("b")}); !errors.Is(err, checkpoint.ErrRolledBack) {
		t.Errorf("a commit after the ledger was dropped: %v", err)
	}
	wantRefusal(t, address, target, Options{Run: "next", Require: true}, "no ledger")
	anew := opened(t, address, target, Options{Run: "next"})
	if err := judged(t, anew, ws); !errors.Is(err, checkpoint.ErrGone) || !strings.Contains(err.Error(), "--new-checkpoint="+during.id) {
		t.Errorf("it is begun anew: %v", err)
	}
	if _, err := Open(address, target, Options{Run: "third", Require: true, Used: true}); !errors.Is(err, checkpoint.ErrMissing) {
		t.Errorf("a ledger that was never used: %v", err)
	}
}

// Somebody replaces a ledger in use by another one, in which another worker has this worker's number.
func TestAReplacedLedgerIsNoticedAtTheNextCommit(t *testing.T) {
	server, address, target := shared(t)
	s := opened(t, address, target, Options{Run: "old"})
	committed(t, s, claimOf("a"))
	server.Exec(t, address, `DROP SCHEMA leadferry CASCADE`)
	other := opened(t, address, target, Options{Run: "new"})
	committed(t, other, claimOf("x"))
	committed(t, other, createdOf("x", "lead-x"))
	c := createdOf("a", "lead-a")
	if err := s.Commit(t.Context(), []*checkpoint.Change{c}); !errors.Is(errors.Join(err, c.Err), checkpoint.ErrRolledBack) {
		t.Errorf("the old run goes on with the new ledger: %v, %v", err, c.Err)
	}
}

// A schema of another version is refused, and left as it is, for runs, readers, commands and init.
func TestAnotherSchemaIsRefused(t *testing.T) {
	server, address, target := shared(t)
	opened(t, address, target, Options{Run: "before"}).Close()
	server.Exec(t, address, `ALTER TABLE leadferry.lead_rows DROP COLUMN record`)
	for _, other := range []int{checkpoint.Format - 1, checkpoint.Format + 1} {
		server.Exec(t, address, fmt.Sprintf(`UPDATE leadferry.version SET number = %d`, other))
		for _, o := range []Options{{Run: "next"}, {ReadOnly: true}, {}} {
			wantRefusal(t, address, target, o, fmt.Sprintf("has schema version %d; this program reads version %d", other, checkpoint.Format))
		}
		if _, err := Init(address, Options{}); !errors.Is(err, checkpoint.ErrVersion) {
			t.Errorf("init: %v", err)
		}
	}
}

// A worker that wakes up can withdraw only its own claim. If another worker sent the row again meanwhile and ended
// without an answer, the row stays in doubt.
func TestALateWithdrawalLeavesTheDoubtOfAnother(t *testing.T) {
	server, address, target := shared(t)
	first := opened(t, address, target, Options{Run: "first"})
	committed(t, first, byRun("first", claimOf("a")))
	server.Exec(t, address, `UPDATE leadferry.workers SET beat = beat - interval '20 minutes'`)
	second := opened(t, address, target, Options{Run: "second"})
	committed(t, second, byRun("second", claimOf("a")))
	doubt := byRun("second", createdOf("a", ""))
	doubt.Entry.State, doubt.Entry.Code = checkpoint.InDoubt, 500
	committed(t, second, doubt)
	must.Do(t, second.Close())
	committed(t, first, byRun("first", &checkpoint.Change{Kind: checkpoint.Withdraw, Entry: checkpoint.Entry{Key: "a"}}))
	server.Exec(t, address, `UPDATE leadferry.workers SET beat = beat - interval '20 minutes'`)
	third := opened(t, address, target, Options{Run: "third"})
	if e := entryOf(t, third, "a"); e.State != checkpoint.InDoubt || e.Run != "second" || e.Code != 500 {
		t.Errorf("the doubt of the second worker is gone: %+v", e)
	}
}

// Forgetting a key does not take the claim of a live worker, even if an earlier doubt of that row names the same lead.
func TestForgettingTakesNoClaimFromALiveWorker(t *testing.T) {
	_, address, target := shared(t)
	first := opened(t, address, target, Options{Run: "first"})
	committed(t, first, byRun("first", claimOf("a")), byRun("first", claimOf("b")))
	committed(t, first, byRun("first", createdOf("a", "lead")), byRun("first", createdOf("b", "lead")))
	must.Do(t, first.Close())
	second, person := opened(t, address, target, Options{Run: "second"}), opened(t, address, target, Options{})
	committed(t, second, byRun("second", claimOf("b")))
	_, err := checkpoint.Forget(t.Context(), person, []string{"a"}, false)
	must.Do(t, err)
	decided := storetest.Resolve(person, checkpoint.Decision{Key: "b", Run: "second"})
	if !errors.As(decided, new(*checkpoint.ListError)) || second.renew("b") != nil {
		t.Errorf("decided while the answer may come: %v; the claim: %v", decided, second.renew("b"))
	}
}

// A row is sent again (--in-doubt resend), and the answer to its first send comes before or after that to the resend.
// Both leads are known.
func TestALateAnswerAfterAResendKeepsBothLeads(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	for _, answered := range []bool{true, false} {
		address, target := server.Database(t), newTarget()
		first := opened(t, address, target, Options{Run: "first"})
		committed(t, first, byRun("first", claimOf("a")), byRun("first", claimOf("b")))
		server.Exec(t, address, `UPDATE leadferry.workers SET beat = beat - interval '20 minutes'`)
		second := opened(t, address, target, Options{Run: "second"})
		committed(t, second, byRun("second", claimOf("a")), byRun("second", claimOf("b")))
		committed(t, second, byRun("second", &checkpoint.Change{Kind: checkpoint.Withdraw, Entry: checkpoint.Entry{Key: "b"}})) // not sent
		if answered {
			committed(t, second, byRun("second", createdOf("a", "lead-2")))
		}
		committed(t, first, byRun("first", createdOf("a", "lead-1")), byRun("first", createdOf("b", "lead-b")))
		if !answered {
			committed(t, second, byRun("second", createdOf("a", "lead-2")))
		}
		if e := entryOf(t, second, "b"); e.LeadID != "lead-b" {
			t.Errorf("the answer to the only send that left is lost: %+v", e)
		}
		if e := entryOf(t, second, "a"); e.LeadID != "lead-2" {
			t.Errorf("%v: the row's lead is %+v", answered, e)
		}
		st, err := checkpoint.StatusOf(t.Context(), second)
		must.Do(t, err)
		if len(st.Contradicted) != 1 || st.Contradicted[0].Against[0].Other != "lead-1" {
			t.Errorf("%v: the status does not name the other lead: %+v", answered, st.Contradicted)
		}
		must.Do(t, second.Check(t.Context()))
	}
}
