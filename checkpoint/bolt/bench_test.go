package bolt

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"leadferry/checkpoint"
)

// inFlight is how many rows the benchmarks have under way at once: the slots of 64
// workers.
const inFlight = 128

// BenchmarkClaimAndSettle measures whole rows, from the claim to the settled
// outcome, with 128 under way, and reports the size of a row in the file.
func BenchmarkClaimAndSettle(b *testing.B) {
	orders := map[string]func(int) string{
		"ordered": func(i int) string { return fmt.Sprintf("row-%012d", i) },
		"random":  func(i int) string { return uuid(rand.New(rand.NewPCG(1, uint64(i)))) },
	}
	for name, key := range orders {
		b.Run(name, func(b *testing.B) {
			path := filepath.Join(b.TempDir(), "c.db")
			d, err := Open(path, target(), Options{})
			if err != nil {
				b.Fatal(err)
			}
			b.ResetTimer()
			l := claimAndSettle(b, d, b.N, key)
			b.StopTimer()
			info, err := os.Stat(path)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(info.Size())/float64(b.N), "bytes/row")
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "rows/s")
			if err := l.Close(); err != nil {
				b.Fatal(err)
			}
		})
	}
}

// BenchmarkLookup measures look-ups of known keys in file order, 256 at a time.
func BenchmarkLookup(b *testing.B) {
	const known = 200_000
	key := func(i int) string { return fmt.Sprintf("row-%012d", i) }
	d, err := Open(filepath.Join(b.TempDir(), "c.db"), target(), Options{})
	if err != nil {
		b.Fatal(err)
	}
	l := claimAndSettle(b, d, known, key)
	keys, out := make([]string, 256), make([]checkpoint.Entry, 256)
	b.ReportAllocs()
	b.ResetTimer()
	for n := 0; n < b.N; n += len(keys) {
		for i := range keys {
			keys[i] = key((n + i) % known)
		}
		if err := lookupAll(d, keys, out); err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	if err := l.Close(); err != nil {
		b.Fatal(err)
	}
}

// claimAndSettle claims and settles n rows, inFlight of them at a time, as a run does
// whose service answers at once. The ledger that it did so with is to be closed.
func claimAndSettle(b *testing.B, d *Store, n int, key func(int) string) *checkpoint.Ledger {
	b.Helper()
	l := checkpoint.NewLedger(d, checkpoint.Gathering{Slots: inFlight})
	var next atomic.Int64
	var all sync.WaitGroup
	for w := range inFlight {
		random := rand.New(rand.NewPCG(rand.Uint64(), uint64(w)))
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				if err := l.Claim(context.Background(), checkpoint.Intent{Key: key(i), File: "leads.csv", Line: i + 2, Status: "open", Run: "20260101T000000Z-1"}); err != nil {
					b.Error(err)
				}
				stored, err := l.Settle(context.Background(), createdEntry(key(i), uuid(random), i))
				if err != nil || stored.State != checkpoint.Created {
					b.Error(stored.State, err)
				}
			}
		})
	}
	all.Wait()
	return l
}
