package postgres

import (
	"errors"
	"testing"
	"time"

	"leadferry/checkpoint"
	"leadferry/internal/pgtest"
)

// A standby that was not waited for and takes over has lost the last commits: whoever meets it stops, also the worker that knew
// more, and nobody begins with it as if nothing were missing. faults 2
func TestAStandbyThatWasNotWaitedForTakesOver(t *testing.T) {
	primary := pgtest.New(t)
	standby := primary.Standby(t)
	target := newTarget()
	refusal(t, primary.URL("postgres"), target, Options{}, "waits for none of them")
	declared := Options{NeverPromoted: true, Wait: time.Second}
	both := "postgres://postgres@/postgres?host=" + primary.Socket() + "," + standby.Socket() + "&target_session_attrs=read-write"
	s := opened(t, both, target, declared)
	committed(t, s, claimOf("a"))
	standby.Caught(t, primary)
	standby.Cut(t)
	committed(t, s, claimOf("b"), createdOf("a", "lead-a"))
	primary.Kill()
	standby.Promote(t)
	var lost *checkpoint.OpenError
	err := s.Commit(t.Context(), []*checkpoint.Change{createdOf("b", "lead-b")})
	if !errors.As(err, &lost) {
		t.Fatalf("the worker goes on with a server that has lost what it knew: %v", err)
	}
	refusal(t, both, target, Options{}, "")
}

// A pooler may hand the statements of a session to whichever connection is free: any is refused unless the address says that this
// one does not.
func TestAPoolerIsRefused(t *testing.T) {
	server := pgtest.New(t)
	for _, mode := range []string{"transaction", "statement", "session"} {
		refusal(t, pgtest.Pooler(t, server, mode), newTarget(), Options{}, "pooler")
	}
	s := opened(t, pgtest.Pooler(t, server, "session")+"&pooled=session", newTarget(), Options{})
	committed(t, s, claimOf("a"), createdOf("a", "lead-a"))
	refusal(t, server.URL("postgres")+"&pooled=transaction", newTarget(), Options{}, "pooled")
}
