package main

import (
	"bytes"
	"encoding/csv"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"leadferry/tools/must"
)

// written is the text of a file of leads.
func written(t *testing.T, f leadFile) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "leads")
	must.Do(f.write(path))
	text := must.Get(os.ReadFile(path))
	return text
}

func records(t *testing.T, text []byte) [][]string {
	t.Helper()
	all := must.Get(csv.NewReader(bytes.NewReader(text)).ReadAll())
	return all
}

func TestFilesOfLeads(t *testing.T) {
	const rows = 5000
	text := written(t, leadFile{to: rows, seed: 1})
	if !bytes.Equal(text, written(t, leadFile{to: rows, seed: 1})) {
		t.Error("the same seed makes another file")
	}
	if bytes.Equal(text, written(t, leadFile{to: rows, seed: 2})) {
		t.Error("another seed makes the same file")
	}
	if per := len(text) / rows; per < 180 || per > 200 {
		t.Errorf("%d bytes a row, want about 190", per)
	}
	all := records(t, text)
	keys := map[string]bool{}
	for _, r := range all[1:] {
		keys[r[colKey]] = true
	}
	if len(all) != rows+1 || len(keys) != rows || !slices.Equal(all[0], columnNames[:]) {
		t.Errorf("%d records, %d keys, header %v", len(all), len(keys), all[0])
	}
	if !slices.IsSortedFunc(all[1:], func(a, b []string) int { return bytes.Compare([]byte(a[0]), []byte(b[0])) }) {
		t.Error("the keys are not in order")
	}
	if cut := records(t, written(t, leadFile{from: 40, to: 60, seed: 1})); !slices.EqualFunc(cut[1:], all[41:61], slices.Equal) {
		t.Error("a cut is no part of the file")
	}
	if random := records(t, written(t, leadFile{to: 100, seed: 1, random: true})); slices.IsSortedFunc(random[1:], func(a, b []string) int {
		return bytes.Compare([]byte(a[0]), []byte(b[0]))
	}) {
		t.Error("random keys are in order")
	}
}
