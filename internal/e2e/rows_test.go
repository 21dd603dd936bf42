package e2e

import (
	"encoding/csv"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"leadferry/leadapi/sandbox"
)

// TestMistakes compares every row of the sample with mistakes with what is right
// for it. faults 84, 90, 91, 102, 103
func TestMistakes(t *testing.T) {
	w := newWorld(t, sandbox.Options{})
	samples := filepath.Join(root(t), "samples")
	w.must(1, "import", "-m", filepath.Join(samples, "leads.yaml"), filepath.Join(samples, "leads-with-mistakes.csv"),
		"--out", "none", "--results", "results.csv")
	f, err := os.Open(filepath.Join(samples, "leads-with-mistakes.expected.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	expected, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	byLine := map[string]map[string]string{}
	for _, r := range w.results("results.csv") {
		byLine[r["line"]] = r
	}
	if len(byLine) != len(expected)-1 {
		t.Errorf("%d results, want %d", len(byLine), len(expected)-1)
	}
	for _, want := range expected[1:] {
		got := byLine[want[0]]
		if got["row"] != want[1] || got["outcome"] != want[3] || want[3] != "invalid" && got["key"] != want[2] {
			t.Errorf("line %s: row %s %s %s, want row %s %s %s (%s)", want[0], got["row"], got["key"], got["outcome"], want[1], want[2], want[3], want[4])
		}
	}
}

// TestSamplesAreOneSetOfLeads: the JSONL sample makes the same requests as the CSV.
func TestSamplesAreOneSetOfLeads(t *testing.T) {
	w := newWorld(t, sandbox.Options{})
	samples := filepath.Join(root(t), "samples")
	shown := func(name string) string {
		out := w.must(0, "validate", "-m", filepath.Join(samples, "leads.yaml"), filepath.Join(samples, name), "--show", "1000", "--quiet")
		var bodies []string
		for line := range strings.Lines(out) {
			if strings.HasPrefix(line, "{") {
				bodies = append(bodies, line)
			}
		}
		if len(bodies) != 200 {
			t.Errorf("%s: %d requests shown, want 200", name, len(bodies))
		}
		return strings.Join(bodies, "")
	}
	if shown("leads.csv") != shown("leads.jsonl") {
		t.Error("the samples differ")
	}
}

// TestOthersFiles imports what two CRMs exported.
func TestOthersFiles(t *testing.T) {
	files := cases(t)
	samples := filepath.Join(root(t), "samples")
	tests := []struct {
		mapping, file string
		rows          int
		status        string
		contents      map[string]string // of some lead
	}{
		{"salesforce.yaml", "leads/salesforce-easy-spaces/Lead_Data.csv", 11, "open", map[string]string{"street": "04666 Havey Plaza", "title": "Founder, CTO"}},
		{"krayin.yaml", "leads/krayin/leads.csv", 2, "", nil},
	}
	for _, test := range tests {
		t.Run(test.mapping, func(t *testing.T) {
			w := newWorld(t, sandbox.Options{})
			args := []string{"import", "-m", filepath.Join(samples, test.mapping), filepath.Join(files, test.file), "--out", "none", "--summary", "s.json"}
			w.must(0, args...)
			if s := w.summary("s.json"); s.Rows.Created != test.rows {
				t.Errorf("%d created, want %d", s.Rows.Created, test.rows)
			}
			leads, err := w.service.Leads()
			if err != nil {
				t.Fatal(err)
			}
			if len(leads) != test.rows {
				t.Errorf("the service holds %d leads, want %d", len(leads), test.rows)
			}
			found := test.contents == nil
			for _, l := range leads {
				if test.status != "" && l.Status != test.status {
					t.Errorf("a lead has status %s, want %s", l.Status, test.status)
				}
				has := true
				for k, v := range test.contents {
					has = has && l.Content[k] == v
				}
				found = found || has
			}
			if !found {
				t.Errorf("no lead holds %v", test.contents)
			}
			w.must(0, args...)
			if s := w.summary("s.json"); s.Rows.Unchanged != test.rows || s.Requests.Create != 0 {
				t.Errorf("again: %d unchanged, %d creates", s.Rows.Unchanged, s.Requests.Create)
			}
		})
	}
}
