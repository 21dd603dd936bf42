package postgres

import (
	"fmt"
	"testing"

	"leadferry/checkpoint"
	"leadferry/internal/pgtest"
	"leadferry/internal/testsupport/must"
)

// 128 rows cost two round trips: one look-up, and one commit that settles these rows and claims the next.
func TestRoundTrips(t *testing.T) {
	t.Parallel()
	const half, rows = mostChanges / 2, 4 * mostChanges
	server := pgtest.Shared(t)
	p := newProxy(t, server)
	s := opened(t, p.through(server.Database(t)), newTarget(), Options{Run: "run"})
	key := func(i int) string { return fmt.Sprint("key-", i) }
	queries := make([]checkpoint.Query, rows)
	for i := range queries {
		queries[i] = checkpoint.Query{Key: key(i), LeadID: fmt.Sprint("lead-", i), ExternalID: key(i), Alike: new(checkpoint.Likeness), Entry: new(checkpoint.Entry)}
	}
	first := createdOf("first", "lead") // prepares the statements, so later round trips count alone
	committed(t, s, claimOf("first"))
	committed(t, s, first, claimOf("second"))
	committed(t, s, &checkpoint.Change{Kind: checkpoint.Withdraw, Entry: checkpoint.Entry{Key: "second", Run: "run"}})
	entryOf(t, s, "first")
	if n := p.tripsOf(func() {
		if err := s.Find(t.Context(), queries); err != nil {
			t.Error(err)
		}
	}); n != 1 {
		t.Errorf("%d round trips to look %d rows up", n, rows)
	}
	for first := -half; first < rows; first += half {
		var changes []*checkpoint.Change
		for i := max(first, 0); i < first+half; i++ {
			changes = append(changes, createdOf(key(i), fmt.Sprint("lead-", i)))
		}
		for i := first + half; i < min(first+2*half, rows); i++ {
			changes = append(changes, claimOf(key(i)))
		}
		if n := p.tripsOf(func() { committed(t, s, changes...) }); n != 1 {
			t.Errorf("%d round trips for a commit of %d changes", n, len(changes))
		}
	}
	if i := s.Info(); i.Leads != rows+1 || i.InDoubt != 0 {
		t.Errorf("%+v", i)
	}
}

// Doubts are counted page by page, so the worker can show life meanwhile. Doubts of live runs do not count.
func TestDoubtsAreCountedPageByPage(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	p, address, target := newProxy(t, server), server.Database(t), newTarget()
	dead := opened(t, address, target, Options{Run: "dead"})
	committed(t, dead, byRun("dead", claimOf("a")), byRun("dead", claimOf("z")), byRun("dead", createdOf("a", "lead")))
	must.Do(t, dead.Close())
	server.Exec(t, address, `INSERT INTO leadferry.lead_rows SELECT (jsonb_populate_record(r, jsonb_build_object('key',
		'\x' || encode(convert_to('b' || n, 'UTF8'), 'hex')))).* FROM leadferry.lead_rows r, generate_series(1, 5000) n WHERE state = 1`)
	live := opened(t, p.through(address), target, Options{Run: "live"})
	committed(t, live, byRun("live", claimOf("c")))
	l := checkpoint.NewLedger(live, checkpoint.Gathering{})
	if trips := p.tripsOf(func() {
		if n, err := l.Standing(t.Context()); err != nil || n != 1 {
			t.Errorf("%d doubts, %v", n, err)
		}
	}); trips < 4 {
		t.Errorf("all rows were read in only %d round trips", trips)
	}
	must.Do(t, l.Close())
}
