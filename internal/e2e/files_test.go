package e2e

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"leadferry/internal/testsupport/must"
	"leadferry/leadapi/sandbox"
)

// filesMapping reads three columns and sends two.
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

// names returns the names in the leads that the service holds, sorted.
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

// If an input changes while its rows are sent, the run says so: rows may be missing. fault 28
func TestInputThatChangesDuringTheRunIsReported(t *testing.T) {
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

// Rejects can be imported with the mapping of their file, whatever its source block says.
func TestRejectsImportWithTheSameMapping(t *testing.T) {
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
			_, line, _ := strings.Cut(out, "leadferry import ") // the command that the run prints
			line, _, _ = strings.Cut(line, "\n")                // a shell removes the quotes
			w.must(1, append([]string{"import", "--out", "again"}, strings.Fields(strings.ReplaceAll(line, "'", ""))...)...)
			w.holdsNames("Ann")
			again := w.summary("again/summary.json").Rows
			if again.Read != 1 || again.Invalid != 1 {
				t.Errorf("%+v", again)
			}
		})
	}
}

// text returns the text of a file and fails the test unless it is UTF-8.
func (w *world) text(name string) string {
	w.t.Helper()
	b, err := os.ReadFile(filepath.Join(w.dir, name))
	if err != nil || !utf8.Valid(b) {
		w.t.Fatalf("%s is not UTF-8: %v", name, err)
	}
	return string(b)
}

// init, validate and import read a workbook with titles above its table and a sum below. A second workbook is the table
// of organizations beside the mapping; messages about it name its own rows.
func TestAWorkbookWithTitlesAndATableBesideTheMapping(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sandbox.Options{})
	sheet := func(rows ...[]string) string {
		var b strings.Builder
		for _, row := range rows {
			b.WriteString("<row>")
			for _, cell := range row {
				b.WriteString(`<c t="inlineStr"><is><t>` + cell + "</t></is></c>")
			}
			b.WriteString("</row>")
		}
		return workbook(t, b.String())
	}
	rows := [][]string{{"Open leads of January"}, {}, {"Lead ID", "Name", "Email", "Dealer", "Message"}}
	for i := range 8 {
		rows = append(rows, []string{fmt.Sprint("L-", 100+i), "Ann Lee", fmt.Sprintf("a%d@x.example", i), "Auto Haus", "Hi"})
	}
	w.write("leads.xlsx", sheet(append(rows, []string{}, []string{"Grand total", "8"})...))
	w.write("dealers.xlsx", sheet([]string{"Dealer", "Organization ID"}, []string{"autohaus", organizations[0]}))
	w.must(0, "init leads.xlsx -m m.yaml")
	if m := w.mapping("m.yaml"); m.Source.SkipRows != 1 || m.Source.Footer == nil || m.KeyForm() != "{Lead ID}" {
		t.Fatalf("proposed:\n%s", w.read("m.yaml"))
	}
	w.edit("m.yaml", edit{`^# tables:`, "tables: {dealers: {file: dealers.xlsx, key: Dealer, value: Organization ID, fold: true}}"})
	w.edit("m.yaml", edit{`^# assign: .*map:`, `assign: [{organization: {from: "{Dealer}", map: dealers}}]`})
	w.must(0, "validate -m m.yaml leads.xlsx")
	w.must(0, "import -m m.yaml leads.xlsx --out none")
	if leads, err := w.service.Leads(); err != nil || len(leads) != 8 || leads[0].OwnerID != organizations[0] {
		t.Errorf("the service holds %+v: %v", leads, err)
	}
	w.write("dealers.xlsx", sheet([]string{"Dealer", "Organization ID"}, []string{"A", "o-1"}, []string{}, []string{"a ", "o-2"}))
	if out := w.must(2, "validate -m m.yaml leads.xlsx"); !strings.Contains(out, "dealers.xlsx:4: a word of the table tables.dealers is there twice, first on line 2") {
		t.Error(out)
	}
	w.write("dealers.xlsx", sheet([]string{"Dealer", "Organization ID"}, []string{"Other", "o-1"}))
	if out := w.must(1, "validate -m m.yaml leads.xlsx"); !strings.Contains(out, `8  assign[1].organization  no entry for "Auto Haus", first at leads.xlsx: row`) {
		t.Error(out)
	}
}

const naughtyMapping = `version: 1
key: "{id}"
assign: [{organization: 8a1e6f91-0951-4549-a823-213cb38eb51c}]
lead:
  type_key: test
  type_label: Test
  content: {importRef: "{@key}", text: "{text}"}
`

// Hostile texts reach the service byte for byte, except for blanks around them, from CSV
// and JSON. The terminal gets none of their control characters. faults 99, 100, 118
func TestNaughtyStrings(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile(filepath.Join(cases(t), "blns", "blns.json"))
	must.Do(t, err)
	var texts []string
	must.Do(t, json.Unmarshal(b, &texts))
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
			out := w.must(0, "import -m n.yaml", name, "--out", "none", "--log-level", "debug")
			if strings.ContainsAny(out, "\x1b\x00\x07\u202e\u200f") {
				t.Error("the terminal got control characters")
			}
			leads := w.made()
			if len(leads) != len(texts) {
				t.Errorf("%d leads, want %d", len(leads), len(texts))
			}
			for _, l := range leads {
				n, err := strconv.Atoi(fmt.Sprint(l.Content["importRef"]))
				must.Do(t, err)
				got, _ := l.Content["text"].(string)
				if want := strings.TrimSpace(texts[n]); got != want {
					t.Errorf("text %d arrived as %q, want %q", n, got, want)
				}
			}
		})
	}
}
