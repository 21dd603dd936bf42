package postgres

import (
	"context"
	"fmt"
	"testing"
	"time"

	"leadferry/checkpoint"
	"leadferry/internal/pgtest"
)

// BenchmarkClaimAndSettle is the life of a row in the ledger, at 64 rows in flight: each commit settles 64 and claims 64 others.
func BenchmarkClaimAndSettle(b *testing.B) {
	const most = 64
	address := pgtest.Shared(b).Database(b)
	s, err := Open(address, newTarget(), Options{Run: "run"})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { s.Close() })
	content := make([]checkpoint.ContentDigest, 10)
	b.ResetTimer()
	for n := -most; n < b.N; n += most {
		now := time.Now()
		var changes []*checkpoint.Change
		for i := range most {
			e := checkpoint.Entry{Key: fmt.Sprintf("%d", 1_000_000+n+i), File: "leads.csv", Line: n + i, Run: "run", Digest: checkpoint.Digest{1}, Content: content, Updated: now}
			if n >= 0 {
				e.State, e.LeadID, e.Organization, e.Location, e.Status = checkpoint.Created, fmt.Sprintf("7d3f1c52-0000-4000-8000-%012d", n+i), "3c7d", "Berlin", "open"
				changes = append(changes, &checkpoint.Change{Kind: checkpoint.Settle, Entry: e})
			}
			e.Key, e.Organization = fmt.Sprintf("%d", 1_000_000+n+i+most), "3c7d"
			changes = append(changes, &checkpoint.Change{Kind: checkpoint.Claim, Entry: e})
		}
		if err := s.Commit(context.Background(), changes); err != nil {
			b.Fatal(err)
		}
		for _, c := range changes {
			if c.Err != nil {
				b.Fatal(c.Err)
			}
		}
	}
}
