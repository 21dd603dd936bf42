package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"leadferry/leadapi/sandbox"
)

// filesMapping sends three columns, by a key.
const filesMapping = `version: 1
key: "{id}"
assign: [{organization: "` + organization + `"}]
lead:
  type_key: t
  type_label: T
  content: {name: "{name}", note: "{note}"}
`

// organization is one that every imitation service knows.
const organization = "e35fd989-b021-4ac8-8c31-76236de8809a"

// names are the names of the leads that the service holds, sorted.
func (w *world) names() []string {
	w.t.Helper()
	leads := w.made()
	var names []string
	for _, l := range leads {
		names = append(names, fmt.Sprint(l.Content["name"]))
	}
	slices.Sort(names)
	return names
}

func (w *world) holdsNames(want ...string) {
	w.t.Helper()
	if got := w.names(); !slices.Equal(got, want) {
		w.t.Errorf("the service holds %.200q, want %.200q", got, want)
	}
}

// A file to which an export still writes while its rows are sent: rows may be missing, and the run says so. fault 28
func TestAFileThatGrowsWhileItIsSent(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sandbox.Options{Latency: 10 * time.Millisecond})
	w.write("m.yaml", filesMapping)
	rows := "id,name,note\n"
	for i := range 60 {
		rows += fmt.Sprintf("%d,Ann,x\n", i)
	}
	w.write("a.csv", rows)
	grown := make(chan bool)
	go func() {
		defer close(grown)
		for len(w.names()) == 0 {
			time.Sleep(time.Millisecond)
		}
		if err := os.WriteFile(filepath.Join(w.dir, "a.csv"), []byte(rows+"60,Bob,x\n"), 0o600); err != nil {
			t.Error(err)
		}
	}()
	out := w.must(1, "import -m m.yaml a.csv --concurrency 1 --out none")
	if <-grown; !strings.Contains(out, "a.csv changed during the run") || !strings.Contains(out, "Run the command again") {
		t.Error(out)
	}
	w.must(0, "import -m m.yaml a.csv --out none")
	if n := len(w.names()); n != 61 {
		t.Errorf("%d leads", n)
	}
}

// The rejects of a file are read by the mapping that read it, whatever that says of its source.
func TestRejectsAreReadByTheirMapping(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ source, file, text string }{
		{"{header: false, columns: [id, name, note]}", "a.csv", "1,Ann,x\n2,Bob\n"},
		{"{quote: none}", "a.tsv", "id\tname\tnote\n1\tAnn\t\"x\n2\tBob \"B\n"},
		{"{header: false, columns: [id, name, note], quote: none, delimiter: '|'}", "a.csv", "1|Ann|5\" pipe, \"\n2|\"Bob\n"},
		{"{encoding: windows-1252, delimiter: ';'}", "a.csv", "id;name;note\n1;Ann;\xe4\n2;Bob, \x81\n"},
		{"{null: ['-'], format: csv}", "a.txt", "id,name,note\n1,Ann,-\n-,-,-\n2,-,-,x\n"},
	} {
		t.Run(test.source, func(t *testing.T) {
			w := newWorld(t, sandbox.Options{})
			w.write("m.yaml", strings.Replace(filesMapping, "key:", "source: "+test.source+"\nkey:", 1))
			w.write(test.file, test.text)
			out := w.must(1, "import -m m.yaml", test.file, "--out", "run")
			w.holdsNames("Ann")
			_, line, _ := strings.Cut(out, "leadferry import ") // as the run says
			line, _, _ = strings.Cut(line, "\n")                // whose words a shell takes out of their quotes
			w.must(1, append([]string{"import", "--out", "again"}, strings.Fields(strings.ReplaceAll(line, "'", ""))...)...)
			w.holdsNames("Ann")
			again := w.summary("again/summary.json").Rows
			if again.Read != 1 || again.Invalid != 1 {
				t.Errorf("%+v", again)
			}
		})
	}
}

// text is what a file holds, which must be UTF-8.
func (w *world) text(name string) string {
	w.t.Helper()
	b, err := os.ReadFile(filepath.Join(w.dir, name))
	if err != nil || !utf8.Valid(b) {
		w.t.Fatalf("%s is not UTF-8: %v", name, err)
	}
	return string(b)
}
