package postgres

import (
	"fmt"
	"testing"

	"leadferry/checkpoint"
	"leadferry/internal/pgtest"
)

// However far away the server is, 128 rows cost two round trips: a look-up, and a commit that settles them and claims
// the next 128.
func TestRoundTrips(t *testing.T) {
	t.Parallel()
	const half, rows = mostChanges / 2, 4 * mostChanges
	server := pgtest.Shared(t)
	p := newProxy(t, server)
	s := opened(t, p.through(server.Database(t)), newTarget(), Options{Run: "run"})
	key := func(i int) string { return fmt.Sprint("key-", i) }
	queries := make([]checkpoint.Query, rows)
	for i := range queries {
		queries[i] = checkpoint.Query{Key: key(i), LeadID: fmt.Sprint("lead-", i), ExternalID: key(i), Alike: new(checkpoint.Likeness)}
	}
	first := createdOf("first", "lead") // statements are prepared once
	committed(t, s, claimOf("first"))
	committed(t, s, first, claimOf("second"))
	committed(t, s, &checkpoint.Change{Kind: checkpoint.Withdraw, Entry: checkpoint.Entry{Key: "second", Run: "run"}})
	stands(t, s, "first")
	if n := p.tripsOf(func() {
		if err := s.Find(t.Context(), queries, make([]checkpoint.Entry, rows), make([]checkpoint.Match, rows)); err != nil {
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
