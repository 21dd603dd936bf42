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
	t.Parallel()
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
	t.Parallel()
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
