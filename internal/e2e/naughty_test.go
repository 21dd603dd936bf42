package e2e

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"leadferry/leadapi/sandbox"
)

const naughtyMapping = `version: 1
key: "{id}"
assign: [{organization: 8a1e6f91-0951-4549-a823-213cb38eb51c}]
lead:
  type_key: test
  type_label: Test
  content: {importRef: "{@key}", text: "{text}"}
`

// TestNaughtyStrings: hostile texts reach the service byte for byte, whatever the
// file's format, and never the terminal. faults 99, 100, 118
func TestNaughtyStrings(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile(filepath.Join(cases(t), "blns", "blns.json"))
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	if err := json.Unmarshal(b, &texts); err != nil {
		t.Fatal(err)
	}
	var table, lines strings.Builder
	c, e := csv.NewWriter(&table), json.NewEncoder(&lines)
	c.Write([]string{"id", "text"})
	for i, s := range texts {
		c.Write([]string{itoa(i), s})
		e.Encode(map[string]string{"id": itoa(i), "text": s})
	}
	c.Flush()
	for name, file := range map[string]string{"n.csv": table.String(), "n.jsonl": lines.String()} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, sandbox.Options{})
			w.write(name, file)
			w.write("n.yaml", naughtyMapping)
			out := w.must(0, "import", "-m", "n.yaml", name, "--out", "none", "--log-level", "debug")
			if strings.ContainsAny(out, "\x1b\x00\x07\u202e\u200f") {
				t.Error("the terminal got a text of the file")
			}
			leads, err := w.service.Leads()
			if err != nil {
				t.Fatal(err)
			}
			if len(leads) != len(texts) {
				t.Errorf("%d leads, want %d", len(leads), len(texts))
			}
			for _, l := range leads {
				n, err := strconv.Atoi(fmt.Sprint(l.Content["importRef"]))
				if err != nil {
					t.Fatal(err)
				}
				got, _ := l.Content["text"].(string)
				if want := strings.TrimSpace(texts[n]); got != want {
					t.Errorf("text %d arrived as %q, want %q", n, got, want)
				}
			}
		})
	}
}
