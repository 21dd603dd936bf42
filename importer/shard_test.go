package importer

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"leadferry/checkpoint"
	"leadferry/internal/rowkey"
	"leadferry/mapping"
)

// shardOf returns the keys of the rows that a shard takes, read as the engine reads them.
func shardOf(t testing.TB, rows []string, s mapping.Shard, limit int) (keys []string) {
	tr := newTrial(t, rows, Options{Task: Task{Shard: s, Limit: limit}})
	defer tr.run.ledger.Close()
	tr.remap(t, "  external_id: \"{name}\"\n") // at most 1,024 bytes
	out := make(chan *batch)
	go tr.intake.run(t.Context(), out)
	for b := range out {
		<-b.mapped
		if b.err != nil {
			t.Fatal(b.err)
		}
		for _, it := range b.items {
			name := it.rec.Key
			if name == "" {
				name = "line " + fmt.Sprint(it.row.Line)
			}
			keys = append(keys, name)
		}
		tr.intake.reuse(slices.Clone(b.items)) // without those of other workers
	}
	return keys
}

// A shard has its rows in file order. Rows that may have one lead fall to the same shard.
func TestShardsTogetherTakeEachRowOnce(t *testing.T) {
	const limit = 7 * batchRows
	var rows []string
	for i, row := range numbered(8 * batchRows) {
		if i%7 == 0 { // some are numbers alone, and others look like them
			row = strings.Replace(row, "k", "000", 1)
			rows = append(rows, strings.TrimLeft(row, "0"))
		}
		if rows = append(rows, row); i%9 == 0 { // the same key in a row that fails a check
			rows = append(rows, row+strings.Repeat("n", 1025))
		}
	}
	for i := 0; i < len(rows); i += 10 {
		rows[i] = "," + rows[i] // a cell too many, or no key
	}
	for _, of := range []int{1, 2, 3, 7, 64} {
		all := shardOf(t, rows, mapping.Shard{}, limit)
		place := map[string][]int{}
		for i, key := range all {
			place[key] = append(place[key], i)
		}
		total, home := 0, map[string]int{}
		for index := range of {
			last := -1
			for _, key := range shardOf(t, rows, mapping.Shard{Index: index, Of: of}, limit) {
				at := place[key][0]
				place[key] = place[key][1:]
				if at < last {
					t.Fatalf("%d/%d: %s is out of order", index, of, key)
				}
				last = at
				if other, met := home[rowkey.Fold(key)]; met && other != index {
					t.Fatalf("%s fell to %d and to %d of %d", key, other, index, of)
				}
				home[rowkey.Fold(key)] = index
				total++
			}
		}
		if total != len(all) || total != limit {
			t.Errorf("%d workers took %d rows of %d", of, total, len(all))
		}
	}
}

// unevenly returns a digest function that takes longer for smaller last digits of a key, and panics at these keys.
func unevenly(fail ...string) func(*item) {
	return func(it *item) {
		if slices.Contains(fail, it.rec.Key) {
			panic(it.rec.Key)
		}
		time.Sleep(time.Duration(255-it.rec.Key[len(it.rec.Key)-1]) * time.Microsecond)
		it.requestDigest(checkpoint.NewDigester(nil))
	}
}

// taken reads rows through several mappers. If until is not "", it ends the context at the row with this key.
func taken(t *testing.T, rows int, digest func(*item), until string) (keys []string, err error) {
	processors := runtime.GOMAXPROCS(4)
	defer runtime.GOMAXPROCS(processors)
	synctest.Test(t, func(t *testing.T) { // which waits for all goroutines
		tr := newTrial(t, numbered(rows), Options{})
		defer tr.run.ledger.Close()
		tr.intake.digest = digest
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		out := make(chan *batch)
		var group sync.WaitGroup
		group.Go(func() { tr.intake.run(ctx, out) })
		defer group.Wait()
		for b := range out {
			<-b.mapped
			for _, it := range b.items {
				keys = append(keys, it.rec.Key)
				if it.rec.Key == until {
					cancel()
				}
			}
			if err = b.err; err != nil {
				cancel()
				break
			}
		}
	})
	return keys, err
}

// Records come in file order, whichever mapper makes them and however long it takes.
func TestRecordsComeInOrder(t *testing.T) {
	const rows = 20*batchRows + 1
	keys, err := taken(t, rows, unevenly(), "")
	if err != nil || len(keys) != rows {
		t.Fatalf("%d rows of %d, %v", len(keys), rows, err)
	}
	for i, row := range numbered(rows) {
		if key, _, _ := strings.Cut(row, ","); keys[i] != key {
			t.Fatalf("%q instead of %q", keys[i], key)
		}
	}
}

// If the program panics at several rows, the error names the first of them in the file. All rows before it come, and
// none after it.
func TestFirstFailureEndsTheIntake(t *testing.T) {
	keys, err := taken(t, 20*batchRows, unevenly("k1900", "k400", "k410", "k700"), "")
	if len(keys) != 400 || err == nil || !strings.Contains(err.Error(), "leads.csv:402: ") {
		t.Errorf("%d rows, %v", len(keys), err)
	}
}

// After its context has ended, only rows that were about to be handed over come, and no goroutine goes on.
func TestIntakeEndsWithItsContext(t *testing.T) {
	if keys, err := taken(t, 20*batchRows, unevenly(), "k300"); err != nil || len(keys) > 5*batchRows {
		t.Errorf("%d rows, %v", len(keys), err)
	}
}
