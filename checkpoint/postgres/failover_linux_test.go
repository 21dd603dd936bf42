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

// Where a pooler hands the statements of a session to whichever connection is free, a session's settings hold for others.
func TestAPoolerInTransactionModeIsRefused(t *testing.T) {
	server := pgtest.New(t)
	for mode, words := range map[string]string{"transaction": "pooler", "statement": "pooler", "session": ""} {
		t.Run(mode, func(t *testing.T) {
			address := pgtest.Pooler(t, server, mode)
			if words != "" {
				refusal(t, address, newTarget(), Options{}, words)
				return
			}
			s := opened(t, address, newTarget(), Options{})
			committed(t, s, claimOf("a"), createdOf("a", "lead-a"))
		})
	}
}
