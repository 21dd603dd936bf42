package importer

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	"leadferry/checkpoint"
	"leadferry/mapping"
)

// What the run itself has done since a batch was looked up counts: a row that
// repeats a key of its own batch is not made again. Invariant 4; faults 83, 84
func TestARepeatedKeyInOneBatchIsNotMadeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rows := append(numbered(30), "k000,n000", "k001,n001", "k002,other")
		tr := newTrial(t, rows, Options{Concurrency: 1})
		tr.run(t.Context())
		if got := tr.outcomes(); got != "created 30 unchanged 2 changed 1" {
			t.Error(got)
		}
		if n := len(tr.service.order); n != 30 {
			t.Errorf("the service made %d leads, want 30", n)
		}
	})
}

// A lead that is made but not linked yet is durable as partial before its link is
// sent, so that a death in between loses neither. Invariant 2
func TestALeadIsPartialUntilItIsLinked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := newTrial(t, numbered(20), Options{Concurrency: 4})
		m, err := mapping.Parse("twin.yaml", []byte(twinMapping+"  external_id: \"{id}\"\n"))
		if err != nil {
			t.Fatal(err)
		}
		tr.rows.mapping, tr.rows.names = m, nil
		if err := tr.rows.bind(); err != nil {
			t.Fatal(err)
		}
		tr.service.update = func(id string) {
			key := "k" + id[len(id)-3:]
			if got := tr.ledger.state(key); got != checkpoint.Partial {
				t.Errorf("row %s is %v while it is being linked, want partial", key, got)
			}
		}
		tr.run(t.Context())
		if got := tr.outcomes(); got != "created 20" {
			t.Error(got)
		}
	})
}

func TestRateHoldsOverAllWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := newTrial(t, numbered(21), Options{Concurrency: 8, Rate: 2})
		began := time.Now()
		tr.run(t.Context())
		if took := time.Since(began); took < 10*time.Second || took > 11*time.Second {
			t.Errorf("21 requests at 2 a second took %v, want about 10s", took)
		}
	})
}

// Neither another run, file or line nor a rearranged mapping makes a row carry other
// data; everything that is sent does.
func TestFingerprint(t *testing.T) {
	base := func() *mapping.Record {
		return &mapping.Record{
			Organization: "o", TypeKey: "t", TypeLabel: "T", Status: "open", ExternalID: "x",
			Content: []mapping.Field{{Name: "a", Value: "1"}, {Name: "b", Value: "2"}, {Name: "run", Value: "r1", Volatile: true}},
		}
	}
	tests := []struct {
		name   string
		change func(*mapping.Record)
		same   bool
	}{
		{"nothing", func(*mapping.Record) {}, true},
		{"another run", func(r *mapping.Record) { r.Content[2].Value = "r2" }, true},
		{"rearranged", func(r *mapping.Record) { r.Content[0], r.Content[1] = r.Content[1], r.Content[0] }, true},
		{"another value", func(r *mapping.Record) { r.Content[0].Value = "3" }, false},
		{"another key", func(r *mapping.Record) { r.Content[0].Name = "c" }, false},
		{"a key less", func(r *mapping.Record) { r.Content = r.Content[1:] }, false},
		{"another status", func(r *mapping.Record) { r.Status = "contacted" }, false},
		{"another organization", func(r *mapping.Record) { r.Organization = "p" }, false},
		{"a locator instead", func(r *mapping.Record) { r.Organization, r.Locator = "", "o" }, false},
		{"another link", func(r *mapping.Record) { r.ExternalID = "y" }, false},
		{"a boundary moved", func(r *mapping.Record) { r.TypeKey, r.TypeLabel = "tT", "" }, false},
	}
	for _, test := range tests {
		r := base()
		test.change(r)
		if same := bytes.Equal(fingerprint(nil, base()), fingerprint(nil, r)); same != test.same {
			t.Errorf("%s: same data %v, want %v", test.name, same, test.same)
		}
	}
}
