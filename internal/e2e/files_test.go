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

// No lead is made from inside a cell, nor from a row without data or a header, and the
// rows before a place where the file is lost are sent. faults m25, 90, 132
func TestNoLeadFromInsideACell(t *testing.T) {
	t.Parallel()
	letter := strings.Repeat("7,mary,line\n", 1500)
	for _, test := range []struct {
		name, file, text string
		code             int
		leads            []string
		blank            int
	}{
		{"a letter of 1,500 lines", "a.csv", "1,Ann,\"" + letter + "\"\n2,Bob,x\n", 0, []string{"Ann", "Bob"}, 0},
		{"cut inside a letter", "a.csv", "1,Ann,x\n2,Bob,\"" + letter, 3, []string{"Ann"}, 0},
		{"a quote by mistake", "a.csv", "1,Ann,x\n\"2,Bob,x\n3,Cid,\"y\"\n4,Dan,z\n", 3, []string{"Ann"}, 0},
		{"an inch mark in a letter", "a.csv", "1,Ann,x\n2,Bob,\"a 5\" pipe,\n7,mary,line\nend\"\n3,Cid,z\n", 3, []string{"Ann"}, 0},
		{"quotes that harm their row only", "a.csv", "1,Ann,x\n2,Bob,\"the \"sport\" seats\"\n3,Cid,z\n", 1, []string{"Ann", "Cid"}, 0},
		{"rows of separators", "a.csv", "1,Ann,x\n,,\n , ,\n2,Bob,y\n,,\n", 0, []string{"Ann", "Bob"}, 3},
		{"the header once more", "a.csv", "1,Ann,x\nid,name,note\n2,Bob,y\n", 0, []string{"Ann", "Bob"}, 0},
		{"the header in other letters", "a.csv", "1,Ann,x\nID,\"Name\",Note\n2,Bob,y\n", 0, []string{"Ann", "Bob"}, 0},
		{"an object inside one over several lines", "a.jsonl", `{"id":1,"name":"Ann"}` + "\n{\"id\":2,\"name\":\"Bob\",\"all\":\n" + `{"id":3,"name":"mary"}` + "\n}\n" + `{"id":4,"name":"Dan"}`, 1, []string{"Ann", "Dan"}, 0},
		{"objects that hold nothing", "a.jsonl", `{"id":1,"name":"Ann"}` + "\n{}\n" + `{"id":null,"name":""}`, 1, []string{"Ann"}, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, sandbox.Options{})
			if strings.HasSuffix(test.file, ".csv") {
				test.text = "id,name,note\n" + test.text
			}
			w.write("m.yaml", filesMapping)
			w.write(test.file, test.text)
			w.must(test.code, "import -m m.yaml", test.file, "--out", "run", "--max-invalid", "0")
			w.holdsNames(test.leads...)
			if in := w.summary("run/summary.json").Inputs[0]; in.Blank != test.blank {
				t.Errorf("%d blank rows, want %d", in.Blank, test.blank)
			}
		})
	}
}

// What could not be taken apart is imported again as the run said, uncorrected, and sends nothing; the rejects of
// that run say the same once more. Once it is filled in and the text is emptied it is a lead. fault 132
func TestRejectsThatAreNotCorrectedSendNothing(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, file, text, rejects string
		flags                     []string
	}{
		{"quotes", "a.csv", "1,Ann,x\n2,Bob,\"the \"sport\" seats\"\n", "csv", nil},
		{"cells", "a.csv", "1,Ann,x\n2,Bob\n2,Bob,,,x\n", "csv", nil},
		{"encoding", "a.csv", "1,Ann,x\n2,B\xf6b,x\n3,B\xf6b\x00,x\n", "csv", nil},
		{"another encoding", "a.csv", "1,Ann,x\n2,B\x81,x\n", "csv", []string{"--encoding", "shift_jis"}},
		{"tabs", "a.tsv", "1\tAnn\tx\n2\tBob\n", "tsv", nil},
		{"a delimiter of its own", "a.csv", "1#Ann#x\n2#Bob\n", "csv", []string{"--delimiter", "#"}},
		{"objects", "a.jsonl", `{"id":1,"name":"Ann"}` + "\n{\"id\":2,\"name\":\"B\xf6b\"}\n{\"id\":2,\"name\":\n[1]\n{\"id\":1,\"id\":2}\n{}\n", "jsonl", nil},
		{"a list", "a.json", `[{"id":1,"name":"Ann"},{"id":2,"id":3},[1],{"name":"\u0000"}]`, "jsonl", nil},
		{"objects in Latin-1", "a.jsonl", "{\"id\":1,\"name\":\"\xc4nn\"}\n{\"id\":2,\"name\":\"B\xf6b\"\n", "jsonl", []string{"--encoding", "latin1"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, sandbox.Options{})
			header, ann := "", "Ann"
			switch {
			case strings.HasSuffix(test.file, ".csv"):
				header = "id,name,note\n"
			case strings.HasSuffix(test.file, ".tsv"):
				header = "id\tname\tnote\n"
			case test.name == "objects in Latin-1":
				ann = "Änn"
			}
			if slices.Contains(test.flags, "#") {
				header = "id#name#note\n"
			}
			w.write("m.yaml", filesMapping)
			w.write(test.file, header+test.text)
			before, text := test.file, ""
			for i := range 3 {
				out := fmt.Sprintf("run%d", i)
				w.must(1, append([]string{"import", "-m", "m.yaml", before, "--out", out, "--max-invalid", "0"}, test.flags...)...)
				w.holdsNames(ann)
				before = out + "/rejects." + test.rejects
				now := w.text(before)
				if i > 1 && now != text {
					t.Errorf("the rejects of rejects are others:\n%s\n%s", text, now)
				}
				text = now
			}
		})
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

// A fault of a workbook's cell matters where its column is used; the cell stands in the
// rejects, and is sent by nobody who did not correct it. fault 132
func TestFaultsInAWorkbook(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sandbox.Options{})
	cell := func(text string) string { return `<c t="inlineStr"><is><t>` + text + `</t></is></c>` }
	row := func(cells ...string) string { return "<row>" + strings.Join(cells, "") + "</row>" }
	w.write("m.yaml", filesMapping)
	w.write("a.xlsx", workbook(t,
		row(cell("id"), cell("name"), cell("note"), cell("helper"))+
			row(cell("1"), cell("Ann"), cell("x"), `<c t="e"><v>#N/A</v></c>`)+
			row(cell("2"), `<c t="e"><v>#REF!</v></c>`, cell("x"), cell("y"))+
			row(cell(""), cell(" "))+row(cell("id"), cell("name"), cell("note"), cell("helper"))+
			row(cell("3"), cell("Bob"), `<c><v>12345678901234567890</v></c>`)+
			row(cell("4"), cell("Cid"), cell("z"))))
	w.must(1, "import -m m.yaml a.xlsx --out run")
	w.holdsNames("Ann", "Cid")
	s := w.summary("run/summary.json")
	if s.Rows.Skipped != 1 || s.Inputs[0].Blank != 1 || s.Rows.Invalid != 2 {
		t.Errorf("%+v, %+v", s.Rows, s.Inputs)
	}
	rejects := w.results("run/rejects.csv")
	if len(rejects) != 2 || rejects[0]["name"] != "#REF!" || rejects[0]["leadferry_text"] != "2,#REF!,x,y" || rejects[1]["note"] != "12345678901234567890" {
		t.Errorf("rejects: %v", rejects)
	}
	w.must(1, "import -m m.yaml run/rejects.csv --format csv --out again")
	w.holdsNames("Ann", "Cid")
	w.write("corrected.csv", "id,name,note,helper,leadferry_line,leadferry_text\n2,Dan,x,y,3,\n")
	w.must(0, "import -m m.yaml corrected.csv --out none")
	w.holdsNames("Ann", "Cid", "Dan")
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

// A workbook with titles above its table and a sum below is proposed, checked and imported as it is; another workbook
// beside the mapping says which organization is meant, and its faults are told by its own rows.
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
	w.write("dealers.xlsx", sheet([]string{"Dealer", "Organization ID"}, []string{"autohaus", sandbox.Organizations()[0].ID}))
	w.must(0, "init leads.xlsx -m m.yaml")
	if m := w.mapping("m.yaml"); m.Source.SkipRows != 2 || m.Source.Footer == nil || m.KeyForm() != "{Lead ID}" {
		t.Fatalf("proposed:\n%s", w.read("m.yaml"))
	}
	w.edit("m.yaml", edit{`^# tables:`, "tables: {dealers: {file: dealers.xlsx, key: Dealer, value: Organization ID, fold: true}}"})
	w.edit("m.yaml", edit{`^# assign: .*map:`, `assign: [{organization: {from: "{Dealer}", map: dealers}}]`})
	w.must(0, "validate -m m.yaml leads.xlsx")
	w.must(0, "import -m m.yaml leads.xlsx --out none")
	if leads, err := w.service.Leads(); err != nil || len(leads) != 8 || leads[0].OwnerID != sandbox.Organizations()[0].ID {
		t.Errorf("the service holds %+v: %v", leads, err)
	}
	w.write("dealers.xlsx", sheet([]string{"Dealer", "Organization ID"}, []string{"A", "o-1"}, []string{}, []string{"a ", "o-2"}))
	if out := w.must(2, "validate -m m.yaml leads.xlsx"); !strings.Contains(out, "dealers.xlsx:4: a word of the table tables.dealers is there twice, first on line 2") {
		t.Error(out)
	}
	w.write("dealers.xlsx", sheet([]string{"Dealer", "Organization ID"}, []string{"Other", "o-1"}))
	if out := w.must(1, "validate -m m.yaml leads.xlsx"); !strings.Contains(out, `8  assign[1].organization  no entry for "Auto Haus", first at leads.xlsx:4`) {
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

// TestNaughtyStrings: hostile texts reach the service byte for byte, whatever the
// file's format, and never the terminal. faults 99, 100, 118
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
				t.Error("the terminal got a text of the file")
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
