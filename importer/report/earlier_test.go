package report

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// What a run has written as rejects is known again by the next one, in each form and with each delimiter: the same row for
// the same reason, and no other.
func TestRejectsAreKnownAgain(t *testing.T) {
	began := time.Date(2026, 11, 22, 3, 10, 0, 0, time.UTC)
	row := Reject{
		Line: 2, Key: "K, 1;\"x\"", Outcome: "conflict", Since: began, Error: "=a reason, \"quoted\"; with\ta tab",
		Names: []string{"id", "name"}, Cells: []string{"1", "a\r\nb"}, Raw: `{"id":1}`,
	}
	keyless := Reject{Line: 7, Outcome: "invalid", Since: began, Error: "not closed", Names: row.Names, Text: "x"}
	for name, in := range map[string]Input{
		"csv": {Format: "csv"}, "semicolons": {Format: "csv", Delimiter: ';'}, "tsv": {Format: "tsv", Delimiter: '\t'},
		"two bytes": {Format: "csv", Delimiter: '¦'}, "jsonl": {Format: "jsonl"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "20261122T031000Z-sync-0a1b2c3d")
			r := open(t, Files{Dir: dir, Namespaced: true})
			for _, rej := range []Reject{row, keyless} {
				rej.Namespace = "dealers"
				must(t, r.Reject(in, rej))
			}
			s := sample()
			s.RunID, s.Outcome = "0a1b2c3d", "attention"
			must(t, r.Finish(s))
			like := *s
			b := ReadBefore([]string{filepath.Dir(dir)}, "", &like)
			for what, change := range map[string]func(*Reject){
				"": func(*Reject) {}, "line": func(rej *Reject) { rej.Line = 3 }, "key": func(rej *Reject) { rej.Key = "K" },
				"namespace": func(rej *Reject) { rej.Namespace = "" }, "outcome": func(rej *Reject) { rej.Outcome = "invalid" },
				"reason": func(rej *Reject) { rej.Error += "!" },
			} {
				rej := row
				rej.Namespace = "dealers"
				change(&rej)
				at, old := b.Since(&rej)
				if want := what == "" || what == "line"; old != want || old && !at.Equal(began) {
					t.Errorf("with another %q: old %v, since %v", what, old, at)
				}
			}
			keyless.Namespace = "dealers"
			if _, old := b.Since(&keyless); !old {
				t.Error("a row without a key is not known again")
			}
			like.Command = "another"
			if ReadBefore([]string{filepath.Dir(dir)}, "", &like) != nil {
				t.Error("the run of another command counts")
			}
			if !Holds(firstRejects(r), func(namespace, key string) bool { return namespace == "dealers" && key == row.Key }) ||
				Holds(firstRejects(r), func(_, key string) bool { return key == "K" }) {
				t.Error("the file does not hold its key, or holds another one")
			}
			must(t, os.Remove(firstRejects(r)))
			like.Command = s.Command
			if ReadBefore([]string{filepath.Dir(dir)}, "", &like) != nil {
				t.Error("rejects that are gone count")
			}
		})
	}
}
