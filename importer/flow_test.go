package importer

import (
	"bytes"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"leadferry/checkpoint"
	"leadferry/importer/delivery"
	"leadferry/importer/report"
	"leadferry/internal/rowkey"
	"leadferry/internal/testsupport/must"
	"leadferry/leadapi"
	"leadferry/mapping"
)

// A lead is durable as partial before its link is sent, so that a kill in between loses neither lead nor link.
// Invariant 2
func TestALeadIsPartialUntilItIsLinked(t *testing.T) {
	tried(t, numbered(20), Options{Sending: Sending{Concurrency: 4}}, func(t *testing.T, tr *trial) {
		tr.remap(t, "  external_id: \"{id}\"\n")
		tr.service.update = func(id string) error {
			key := "k" + id[len(id)-3:]
			if got := tr.ledger.state(key); got != checkpoint.Partial {
				t.Errorf("row %s is %v while it is being linked, want partial", key, got)
			}
			return nil
		}
		tr.ends(t, "created 20")
	})
}

// The run, the file, the line and the order of the mapping do not count.
func TestFingerprintChangesWithAllThatIsSent(t *testing.T) {
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
		{"a number instead of its digits", func(r *mapping.Record) { r.Content[0].Literal = true }, false},
		{"an empty value", func(r *mapping.Record) { r.Content[0].Value = "" }, false},
		{"cleared instead of left out", func(r *mapping.Record) { r.Content = append(r.Content, mapping.Field{Name: "z"}) }, false},
		{"a lead ID, which no create sends", func(r *mapping.Record) { r.LeadID = "l" }, true},
	}
	for _, test := range tests {
		r := base()
		test.change(r)
		if same := bytes.Equal(base().AppendFingerprint(nil), r.AppendFingerprint(nil)); same != test.same {
			t.Errorf("%s: same data %v, want %v", test.name, same, test.same)
		}
	}
}

func TestJSONTypesReachTheRequestAndTheDigests(t *testing.T) {
	rec := mapping.Record{Organization: "o", TypeKey: "t", TypeLabel: "T", Content: []mapping.Field{
		{Name: "text", Value: "7"},
		{Name: "number", Value: "7", Literal: true},
		{Name: "yes", Value: "true", Literal: true},
		{Name: "tags", Value: `["7"]`, Literal: true},
		{Name: "cleared"},
		{Name: "line", Value: "4", Volatile: true},
	}}
	const request = `{"organizationID":"o","content":{"text":"7","number":7,"yes":true,"tags":["7"],"cleared":"","line":"4"},"typeKey":"t","typeLabel":"T"}`
	must.Same(t, request, string(createBody(&rec)))
	var want []checkpoint.ContentDigest
	d := checkpoint.NewDigester(nil)
	for _, field := range [][2]string{{"text", "7"}, {"number", "\xff{false 7 0}"}, {"yes", "\xfftrue"}, {"tags", "\xff[\"7\"]"}, {"cleared", ""}} {
		want = append(want, checkpoint.ContentDigest{Name: d.SumName(field[0]), Value: d.SumValue(field[0], field[1])})
	}
	must.Same(t, want, (&item{rec: rec}).contentDigests(d))
}

// A row that skip_if leaves out is counted and needs no attention. Nothing is claimed or sent for it, even if an
// earlier row has its key.
func TestARowThatIsLeftOutIsNotSent(t *testing.T) {
	tried(t, []string{"k1,a", "k2,out", "k1,out", "k3,b"}, Options{Sending: Sending{Concurrency: 2}, Limits: delivery.Limits{MaxRejects: delivery.Share{Rows: 1}}}, func(t *testing.T, tr *trial) {
		tr.remap(t, "skip_if: 'name == \"out\"'\n")
		tr.ends(t, "created 2 skipped 2")
		if outcome, code := tr.ending(); outcome != "complete" || code != report.CodeComplete {
			t.Errorf("%s with %d", outcome, code)
		}
		if n := tr.service.sends["out"]; n != 0 || tr.ledger.state("k2") != checkpoint.Unknown {
			t.Errorf("sent %d times, the ledger says %v", n, tr.ledger.state("k2"))
		}
		for _, l := range tr.records.lines {
			if l.outcome == Skipped && l.text != "left out by skip_if" {
				t.Errorf("the result says %q", l.text)
			}
		}
	})
}

// With --concurrency 1, rows are sent in the order of the input.
func TestOneAtATimeGoesInTheOrderOfTheInput(t *testing.T) {
	tried(t, numbered(200), Options{Sending: Sending{Concurrency: 1}}, func(t *testing.T, tr *trial) {
		tr.carry(t.Context())
		if got := tr.outcomes(); got != "created 200" || !slices.IsSorted(tr.service.order) {
			t.Errorf("%s, in the order %v", got, tr.service.order)
		}
	})
}

// While creates go one at a time and one hangs, leads that were made before are still linked. fault 138
func TestLinksDoNotWaitForCreates(t *testing.T) {
	tried(t, numbered(40), Options{Sending: Sending{Concurrency: 4}}, func(t *testing.T, tr *trial) {
		tr.remap(t, "  external_id: \"{id}\"\n")
		began := time.Now()
		tr.service.answer = func(name string, _ int) error {
			if name == "n010" || name == "n011" {
				return broken
			}
			return nil
		}
		var before sync.Map // names of the leads that were made before the one that hangs
		tr.service.arrive = func(key string) {
			if key != "k011" {
				return
			}
			tr.service.mu.Lock()
			for _, name := range tr.service.order {
				before.Store(name, true)
			}
			tr.service.mu.Unlock()
			time.Sleep(30 * time.Second)
		}
		var late atomic.Int32
		tr.service.update = func(id string) error {
			if _, is := before.Load(strings.TrimPrefix(id, "lead-")); is && time.Since(began) > 10*time.Second {
				late.Add(1)
			}
			return nil
		}
		tr.carry(t.Context())
		if got := tr.outcomes(); got != "created 38 in_doubt 2" || late.Load() > 0 {
			t.Errorf("%s; %d links of the leads that were made before came late", got, late.Load())
		}
	})
}

func TestAnExternalIDThatIsTooLongIsInvalid(t *testing.T) {
	tried(t, []string{"k1," + strings.Repeat("x", rowkey.Longest), "k2," + strings.Repeat("x", rowkey.Longest+1)}, Options{}, func(t *testing.T, tr *trial) {
		tr.remap(t, "  external_id: \"{name}\"\n")
		tr.ends(t, "created 1 invalid 1")
	})
}

// Each attempt has its own request ID, which the ledger knows before the attempt leaves.
func TestARowInDoubtShowsTheIDOfItsLastAttempt(t *testing.T) {
	tried(t, numbered(8), Options{Sending: Sending{Concurrency: 4, Retries: 5, Client: leadapi.Config{RequestIDHeader: "X-Request-ID"}}}, func(t *testing.T, tr *trial) {
		kept := func(key string) checkpoint.Entry { return entryOf(t, tr.ledger, key) }
		tr.service.arrive = func(key string) {
			tr.service.mu.Lock()
			defer tr.service.mu.Unlock()
			for _, sent := range tr.service.ids[key] {
				if id := kept(key).RequestID; id == "" || !strings.HasPrefix(sent, id+"-") {
					t.Errorf("row %s left with ID %q, kept is %q", key, sent, id)
				}
			}
		}
		tr.service.answer = func(name string, n int) error {
			switch {
			case name == "n003" && n == 1:
				return &leadapi.Error{Op: "create", Status: 429, HasRetryAfter: true}
			case name == "n003", name == "n005":
				return httpError(500)
			}
			return nil
		}
		tr.carry(t.Context())
		all := map[string]bool{}
		for key, ids := range tr.service.ids {
			for i, id := range ids {
				if all[id] || !strings.HasSuffix(id, []string{"-1", "-2"}[i]) {
					t.Errorf("row %s, attempt %d: %s", key, i+1, id)
				}
				all[id] = true
			}
			want := ""
			if key == "k003" || key == "k005" {
				want = ids[len(ids)-1]
			}
			if got := kept(key); got.RequestID != want {
				t.Errorf("row %s: kept %+v, sent with %s", key, got, ids)
			}
		}
		if len(tr.service.ids["k003"]) != 2 || len(all) != 9 {
			t.Errorf("%v", tr.service.ids)
		}
		for i := range tr.records.lines {
			l := tr.records.lines[i]
			got := WithRequestID(l.text, &l.entry)
			if id := kept(l.rec.Key).RequestID; l.outcome == InDoubt && !strings.HasSuffix(got, "; request ID "+id) || l.outcome != InDoubt && got != l.text {
				t.Errorf("row %s: %q", l.rec.Key, got)
			}
		}
	})
}

// A row that is sent again had no lead before. The organization of its first attempt says nothing about the new lead.
func TestANewLeadIsNotReportedAsMoved(t *testing.T) {
	tr := newTrial(t, []string{"k1,a"}, Options{Planning: Planning{ResendInDoubt: true}})
	tr.remap(t, "  external_id: x-{id}\n")
	before := checkpoint.Entry{Key: "k1", Run: "before", Organization: "o-9"}
	err := tr.run.ledger.Do(t.Context(), &checkpoint.Change{Kind: checkpoint.Claim, Entry: before})
	must.Do(t, err)
	tr.ends(t, "created 1")
	if l := tr.records.lines[0]; l.remarks[ownerByOthers] || l.text != "" {
		t.Errorf("%q", l.text)
	}
}

// The results of a pending row name its lead, but not an ID from an answer that left the row in doubt: adopting these
// results would give the row the lead of another one.
func TestResultsOfAPendingRowNameItsOwnLead(t *testing.T) {
	w := &writer{inputs: make([]report.Input, 1)}
	for state, want := range map[checkpoint.State]string{checkpoint.Created: "lead-1", checkpoint.Partial: "lead-1", checkpoint.InDoubt: ""} {
		it := &item{result: result{ending: ending{outcome: Pending}, entry: checkpoint.Entry{State: state, LeadID: "lead-1"}}}
		if got := w.result(it).LeadID; got != want {
			t.Errorf("%v: %q", state, got)
		}
		if it.outcome = InDoubt; w.result(it).LeadID != "lead-1" {
			t.Errorf("%v, in doubt: the ID is not shown", state)
		}
	}
}
