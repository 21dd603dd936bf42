package postgres

import (
	"fmt"
	"testing"

	"leadferry/checkpoint"
	"leadferry/internal/pgtest"
)

// However far away the server is, 128 rows cost two round trips: a look-up, and a commit that settles them and claims the
// next 128.
func TestRoundTrips(t *testing.T) {
	const half, rows = mostChanges / 2, 4 * mostChanges
	server := pgtest.Shared(t)
	p := newProxy(t, server)
	s := opened(t, p.through(server.Database(t)), newTarget(), Options{Run: "run"})
	key := func(i int) string { return fmt.Sprint("key-", i) }
	queries := make([]checkpoint.Query, rows)
	for i := range queries {
		queries[i] = checkpoint.Query{Key: key(i), LeadID: fmt.Sprint("lead-", i), ExternalID: key(i), Alike: new(checkpoint.Likeness)}
	}
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
	if i := s.Info(); i.Leads != rows || i.InDoubt != 0 {
		t.Errorf("%+v", i)
	}
}

// Keys that stand side by side are read at one go. Where others stand between them, each is looked up, and so are those of
// the next look-ups.
func TestKeysSideBySide(t *testing.T) {
	const rows = 3 * mostChanges
	server := pgtest.Shared(t)
	p := newProxy(t, server)
	s := opened(t, p.through(server.Database(t)), newTarget(), Options{Run: "run"})
	var changes []*checkpoint.Change
	for i := range rows {
		changes = append(changes, createdOf(fmt.Sprintf("key-%04d", 2*i), fmt.Sprint("lead-", 2*i)))
	}
	committed(t, s, changes...)
	look := func(trips, step int) {
		t.Helper()
		var queries []checkpoint.Query
		for i := 0; i < 2*rows; i += step {
			queries = append(queries, checkpoint.Query{Key: fmt.Sprintf("key-%04d", i)})
		}
		out, how := make([]checkpoint.Entry, len(queries)), make([]checkpoint.Match, len(queries))
		if n := p.tripsOf(func() {
			if err := s.Find(t.Context(), queries, out, how); err != nil {
				t.Fatal(err)
			}
		}); n != trips {
			t.Errorf("%d round trips at steps of %d, want %d", n, step, trips)
		}
		for i := range queries {
			switch known := i*step%2 == 0; {
			case known && (how[i] != checkpoint.ByKey || out[i].LeadID != fmt.Sprint("lead-", i*step)):
				t.Fatalf("%s: %v %+v", queries[i].Key, how[i], out[i])
			case !known && (how[i] != checkpoint.NoMatch || out[i].State != checkpoint.Unknown):
				t.Fatalf("%s: %v %+v", queries[i].Key, how[i], out[i])
			}
		}
	}
	look(1, 2)
	look(1, 1)
	look(2, 7)
	look(1, 7)
}
