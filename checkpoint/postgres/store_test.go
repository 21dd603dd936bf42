package postgres

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"leadferry/checkpoint"
	"leadferry/checkpoint/storetest"
	"leadferry/internal/pgtest"
	"leadferry/internal/testsupport/must"
)

func TestMain(m *testing.M) {
	flag.Parse()
	if f := flag.Lookup("rapid.checks"); f.Value.String() == f.DefValue { // each step takes several round trips
		f.Value.Set("4")
	}
	flag.Set("test.parallel", "4") // tests mostly wait
	pgtest.Main(m)
}

var targets atomic.Int64

// newTarget returns a target that no other test has.
func newTarget() checkpoint.Target {
	n := targets.Add(1)
	return checkpoint.Target{BaseURL: "https://api.example.com", LeadsURL: fmt.Sprintf("https://leads%d.example.com", n), TrunkID: "5f0c1a52-7d0b-4a3e-9a1e-3a1c6d1f0b77"}
}

// shared makes the test parallel and returns a server that tests share, a new database on it, and a new target.
func shared(t *testing.T) (server *pgtest.Server, address string, target checkpoint.Target) {
	t.Helper()
	t.Parallel()
	server = pgtest.Shared(t)
	return server, server.Database(t), newTarget()
}

func opened(t storetest.TB, address string, target checkpoint.Target, o Options) *Store {
	t.Helper()
	s, err := Open(address, target, o)
	must.Do(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

// A ledger in PostgreSQL keeps the rules of every Store.
func TestStore(t *testing.T) {
	_, address, _ := shared(t)
	places := map[string]checkpoint.Target{}
	place := func(storetest.TB) string {
		target := newTarget()
		places[target.LeadsURL] = target
		return target.LeadsURL
	}
	storetest.Run(t, storetest.Backend{
		Place: place,
		Open: func(t storetest.TB, at string, now func() time.Time) checkpoint.Store {
			return opened(t, address, places[at], Options{Now: now})
		},
		Killed: func(t storetest.TB, from string) string {
			to := place(t)
			duplicate(t, address, places[from], places[to])
			return to
		},
		Intact: func(t storetest.TB, at string) { intact(t, address, places[at]) },
	})
}

// duplicate copies a ledger within the server to another target.
func duplicate(t storetest.TB, address string, from, to checkpoint.Target) {
	t.Helper()
	var all strings.Builder
	fmt.Fprintf(&all, `SET search_path = leadferry; INSERT INTO ledgers (id, base_url, leads_url, trunk_id)
			SELECT md5('%[2]s'), base_url, '%[2]s', trunk_id FROM ledgers WHERE leads_url = '%[1]s';
		CREATE TEMP VIEW o AS SELECT ledger FROM ledgers WHERE leads_url = '%[1]s'; CREATE TEMP VIEW n AS SELECT ledger FROM ledgers WHERE leads_url = '%[2]s';
		INSERT INTO workers (ledger, created, partial, rejected, in_doubt, not_made, forgotten, ended)
			SELECT n.ledger, sum(created), sum(partial), sum(rejected), sum(in_doubt), sum(not_made), sum(forgotten), now()
			FROM workers JOIN o USING (ledger), n GROUP BY 1;`, from.LeadsURL, to.LeadsURL)
	for _, table := range []string{"digest_keys", "lead_rows", "lead_ids", "forgotten", "notes"} {
		fmt.Fprintf(&all, `INSERT INTO %[1]s SELECT (jsonb_populate_record(r, jsonb_build_object('ledger', n.ledger, 'worker', 0))).* FROM %[1]s r JOIN o USING (ledger), n;`, table)
	}
	pgtest.Shared(t).Exec(t, address, all.String())
}

// intact fails the test unless a ledger's counts and lead owners fit its rows.
func intact(t storetest.TB, address string, target checkpoint.Target) {
	t.Helper()
	s, err := Open(address, target, Options{ReadOnly: true})
	if err != nil {
		return // it was dropped
	}
	defer s.Close()
	must.Do(t, s.Check(context.Background()))
}

func itoa(n int) string { return fmt.Sprint(n) }

// The views for people show runs and decisions.
func TestViewsOfRunsAndDecisions(t *testing.T) {
	t.Parallel()
	address := pgtest.Shared(t).Database(t)
	at := time.UnixMilli(1_770_000_000_123).UTC()
	s := opened(t, address, newTarget(), Options{Now: func() time.Time { return at }})
	for _, key := range []string{"dealers\x1f7", "odd \u2028"} {
		if _, err := storetest.Change(s, checkpoint.Claim, storetest.IntentOf(key, 1)); err != nil {
			t.Fatal(err)
		}
	}
	run := checkpoint.RunInfo{ID: "r-1", Command: "import", Started: at, Outcome: "complete", Counts: map[string]int{"created": 3}}
	must.Do(t, errors.Join(checkpoint.PutRun(t.Context(), s, run), storetest.Resolve(s, checkpoint.Decision{Key: "dealers\x1f7", LeadID: "lead-1"}, checkpoint.Decision{Key: "odd \u2028"})))
	err := s.Alone(t.Context(), func(tx checkpoint.Tx) error {
		last, err := checkpoint.LastDecision(tx, "dealers\x1f7")
		return errors.Join(err, checkpoint.NoteEvidence(tx, *last, checkpoint.MadeAfterAll, "lead-2", tx.Now()))
	})
	must.Do(t, err)
	for query, want := range map[string]string{
		`SELECT concat_ws(' ', run, command, outcome, counts->>'created', finished IS NULL, extract(epoch FROM started)::text) FROM leadferry.runs`: "r-1 import complete 3 t 1770000000.123000",
		`SELECT concat_ws('|', key, decision, contradicted, extract(epoch FROM decided)::text) FROM leadferry.decisions WHERE decision <> 'none'`:   "dealers/7|lead-1|" + checkpoint.MadeAfterAll + "|1770000000.123000",
		`SELECT key FROM leadferry.decisions WHERE decision = 'none'`:                                                                               "odd \u2028",
	} {
		if got := pgtest.Value[string](t, address, query); got != want {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
	if a, err := checkpoint.AuditOf(t.Context(), s); err != nil || len(a) != 2 || a[1].Key != "odd \u2028" {
		t.Errorf("%+v, %v", a, err)
	}
}
