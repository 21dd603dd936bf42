package importer

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"leadferry/checkpoint"
	"leadferry/checkpoint/bolt"
	"leadferry/leadapi"
	"leadferry/mapping"
)

// benchRows is how many leads the checkpoint of the benchmark knows.
const benchRows = 400 * batchRows

// BenchmarkPlan measures what becomes of a mapped row up to its step: a batch, its keys
// in order, is looked up in a checkpoint on disk, its rows' digests are made and the
// planner answers. Known rows have nothing to send; new ones are not found.
func BenchmarkPlan(b *testing.B) {
	known := benchItems(0, benchRows)
	db := knownLeads(b, known)
	tests := []struct {
		name    string
		planner Planner
		matches bool // rows are looked up as a sync does
		items   []*item
		want    Step
	}{
		{"import of known rows", importPlanner{}, false, known, ends(Unchanged, "")},
		{"import of new rows", importPlanner{}, false, benchItems(benchRows, benchRows), Step{Action: Create}},
		{"sync of known rows", syncPlanner{}, true, known, ends(Unchanged, "")},
	}
	for _, test := range tests {
		b.Run(test.name, func(b *testing.B) {
			l := &lookups{ledger: db, matches: test.matches, alikes: true, digests: newDigester(db.Digests())}
			at, room := 0, new(lookup)
			b.ReportAllocs()
			for b.Loop() {
				planBatch(b, l, room, test.planner, test.items[at:at+batchRows], test.want)
				at = (at + batchRows) % len(test.items)
			}
			b.ReportMetric(float64(b.N)*batchRows/b.Elapsed().Seconds(), "rows/s")
		})
	}
}

// planBatch plans a batch as the engine's loop does.
func planBatch(b *testing.B, l *lookups, a *lookup, p Planner, items []*item, want Step) {
	if err := l.ask(b.Context(), a, items); err != nil {
		b.Fatal(err)
	}
	for i, it := range items {
		it.digest, it.sums = checkpoint.Digest{}, nil // of the pass before
		c := l.caseOf(a, i)
		step := p.Plan(c)
		if step.Action != want.Action || step.outcome != want.outcome {
			b.Fatalf("row %s: step %d %v, want %d %v", it.rec.Key, step.Action, step.outcome, want.Action, want.outcome)
		}
	}
}

// benchItems are rows of ten content keys.
func benchItems(first, n int) []*item {
	items := make([]*item, n)
	for i := range items {
		content := make([]mapping.Field, 10)
		for k := range content {
			content[k] = mapping.Field{Name: fmt.Sprint("field", k), Value: fmt.Sprint("a value of some bytes ", first+i)}
		}
		items[i] = &item{rec: mapping.Record{
			Key: fmt.Sprintf("C-%09d", first+i), Organization: "org-1", TypeKey: "form", TypeLabel: "Form",
			Status: "open", Content: content,
		}}
	}
	return items
}

// knownLeads is a checkpoint that knows the leads of the rows as an import leaves them.
func knownLeads(b *testing.B, items []*item) *checkpoint.Ledger {
	b.Helper()
	store, err := bolt.Open(filepath.Join(b.TempDir(), "c.db"), checkpoint.Target{TrunkID: "trunk"}, bolt.Options{})
	if err != nil {
		b.Fatal(err)
	}
	db := checkpoint.NewLedger(store, checkpoint.Gathering{})
	b.Cleanup(func() {
		if err := db.Close(); err != nil {
			b.Error(err)
		}
	})
	d := newDigester(db.Digests())
	for part := range slices.Chunk(items, benchRows/4) {
		failed := make(chan error, len(part))
		for _, it := range part {
			e := checkpoint.Entry{
				Key: it.rec.Key, State: checkpoint.Created, LeadID: "lead-" + it.rec.Key, Organization: "org-1", Status: "open",
				Digest: d.ofRequest(it), Content: d.ofContent(it), Run: "run-1",
			}
			go func() {
				_, err := db.Settle(b.Context(), e)
				failed <- err
			}()
		}
		for range part {
			if err := <-failed; err != nil {
				b.Fatal(err)
			}
		}
	}
	return db
}

// instant is a service that answers at once.
type instant struct{}

func (instant) Create(_ context.Context, r *leadapi.CreateRequest) (*leadapi.Created, error) {
	return &leadapi.Created{LeadID: "lead-" + r.Content[0].Value, OrganizationID: r.OrganizationID, Status: 201}, nil
}

func (instant) Update(_ context.Context, id string, r *leadapi.UpdateRequest) (*leadapi.Lead, error) {
	return &leadapi.Lead{ID: id, ExternalID: *r.ExternalID, Status: "open"}, nil
}

// BenchmarkEngine measures an import of new rows without files and network: the engine and
// its checkpoint.
func BenchmarkEngine(b *testing.B) {
	rows := make([]string, b.N)
	for i := range rows {
		rows[i] = fmt.Sprintf("k%07d,n%07d", i, i)
	}
	tr := newTrial(b, rows, Options{Sending: Sending{Concurrency: 64}})
	store, err := bolt.Open(filepath.Join(b.TempDir(), "x.db"), checkpoint.Target{TrunkID: "trunk"}, bolt.Options{})
	if err != nil {
		b.Fatal(err)
	}
	tr.keepIn(checkpoint.NewLedger(store, checkpoint.Gathering{Slots: 128, Ahead: tr.retrier.Breaker.Ahead}))
	tr.sender, tr.recorder = instant{}, &unrecorded{items: &tr.intake.items}
	b.ReportAllocs()
	b.ResetTimer()
	tr.takeRows(b.Context())
	b.StopTimer()
	if tr.tally.outcomes[Created] != b.N {
		b.Fatal(tr.outcomes(), tr.stopped)
	}
	b.ReportMetric(float64(store.Info().Sequence), "commits")
	tr.run.ledger.Close()
}
