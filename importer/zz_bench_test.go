package importer

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"leadferry/checkpoint"
	"leadferry/checkpoint/bolt"
	"leadferry/leadapi"
)

type instant struct{}

func (instant) Create(_ context.Context, r *leadapi.CreateRequest) (*leadapi.Created, error) {
	return &leadapi.Created{LeadID: "lead-" + r.Content[0].Value, OrganizationID: r.OrganizationID, Status: 201}, nil
}

func (instant) Update(_ context.Context, id string, r *leadapi.UpdateRequest) (*leadapi.Lead, error) {
	return &leadapi.Lead{ID: id, ExternalID: *r.ExternalID, Status: "open"}, nil
}

type none struct{ t *run }

func (n none) add(it *item, r *result) error { n.t.intake.items.put(it); return nil }

func BenchmarkEngine(b *testing.B) {
	rows := make([]string, b.N)
	for i := range rows {
		rows[i] = fmt.Sprintf("k%07d,n%07d", i, i)
	}
	tr := newTrial(b, rows, Options{Concurrency: 64})
	store, err := bolt.Open(filepath.Join(b.TempDir(), "x.db"), checkpoint.Target{TrunkID: "trunk"}, bolt.Options{})
	if err != nil {
		b.Fatal(err)
	}
	tr.keepIn(checkpoint.NewLedger(store, checkpoint.Gathering{Slots: 128, Idle: tr.retrier.breaker.idle}))
	tr.sender, tr.recorder = instant{}, none{tr.run}
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
