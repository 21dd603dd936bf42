package e2e

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
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
	leads, err := w.service.Leads()
	if err != nil {
		w.t.Fatal(err)
	}
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
			w.must(test.code, "import", "-m", "m.yaml", test.file, "--out", "run", "--max-invalid", "0")
			w.holdsNames(test.leads...)
			if in := w.summary("run/summary.json").Inputs[0]; in.Blank != test.blank {
				t.Errorf("%d blank rows, want %d", in.Blank, test.blank)
			}
		})
	}
}

// Without a key a row without data would be a lead like any other.
func TestNoLeadFromNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sandbox.Options{})
	w.write("m.yaml", strings.Replace(filesMapping, `key: "{id}"`, "source: {null: [NULL]}", 1))
	w.write("a.csv", "id,name,note\n1,Ann,x\nNULL,,NULL\n,,\n\ufeffid,name,note\n")
	w.must(0, "import", "-m", "m.yaml", "a.csv", "--out", "run")
	w.holdsNames("Ann")
	rows := w.summary("run/summary.json").Rows
	if rows.Read != 2 || rows.Skipped != 1 {
		t.Errorf("%d rows read, %d skipped", rows.Read, rows.Skipped)
	}
}

// What could not be taken apart is imported again as the run said, uncorrected, and
// sends nothing; the rejects of that run say the same once more. Once it is filled in
// and the text is emptied it is a lead. fault 132
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

// Who takes the texts out of rejects and fills nothing in has decided nothing: the rows
// are not passed over as blank ones. faults 127, 132
func TestRejectsWhoseTextIsGoneAreNotPassedOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sandbox.Options{})
	w.write("m.yaml", strings.Replace(filesMapping, `key: "{id}"`, "source: {null: [NULL]}", 1))
	w.write("a.csv", "id,name,note\n2,Bob\n")
	w.must(1, "import", "-m", "m.yaml", "a.csv", "--out", "run", "--max-invalid", "0")
	w.write("emptied.csv", strings.Replace(w.text("run/rejects.csv"), `"2,Bob"`, "", 1))
	w.write("deleted.csv", "id,name,note,leadferry_line,leadferry_outcome,leadferry_error\n,NULL,,2,invalid,no\n")
	w.must(1, "import", "-m", "m.yaml", "emptied.csv", "deleted.csv", "--out", "again", "--max-invalid", "0")
	w.holdsNames()
	if s := w.summary("again/summary.json"); s.Rows.Invalid != 2 {
		t.Errorf("%+v", s.Rows)
	}
}

// Of several lists of objects in a JSON document, one has to be named; one that is empty is none of them. fault 96
func TestAListOfSeveralIsNamed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sandbox.Options{})
	w.write("m.yaml", filesMapping)
	w.write("a.json", `{"items": [], "contacts": [{"id":"1","name":"Ann","note":"x"}], "has_more": true}`)
	if out := w.must(0, "import", "-m", "m.yaml", "a.json", "--out", "none"); !strings.Contains(out, `the rows are those of the list "contacts"`) {
		t.Error(out)
	}
	w.holdsNames("Ann")
	w.write("b.json", `{"leads": [{"id":"2","name":"Bob","note":"x"}], "leads_part2": [{"id":"3","name":"Cy","note":"x"}]}`)
	if out := w.must(2, "import", "-m", "m.yaml", "b.json"); !strings.Contains(out, `"leads", "leads_part2"`) {
		t.Error(out)
	}
	w.must(0, "import", "-m", "m.yaml", "b.json", "--list", "leads_part2", "--out", "none")
	w.holdsNames("Ann", "Cy")
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
	out := w.must(1, "import", "-m", "m.yaml", "a.csv", "--concurrency", "1", "--out", "none")
	if <-grown; !strings.Contains(out, "a.csv changed meanwhile") || !strings.Contains(out, "Run the command again") {
		t.Error(out)
	}
	w.must(0, "import", "-m", "m.yaml", "a.csv", "--out", "none")
	if n := len(w.names()); n != 61 {
		t.Errorf("%d leads", n)
	}
}

// Rows of a file that was put together from two systems: those that are UTF-8 though
// another encoding is named are held. faults 91, 133
func TestAFileInTwoEncodings(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sandbox.Options{})
	w.write("m.yaml", filesMapping)
	w.write("a.csv", "id,name,note\n1,Zo\xeb M\xfcller,x\n2,Zoë Müller,x\n3,Ann,x\n")
	w.must(1, "import", "-m", "m.yaml", "a.csv", "--encoding", "windows-1252", "--out", "run")
	w.holdsNames("Ann", "Zoë Müller")
	rejects := w.results("run/rejects.csv")
	if len(rejects) != 1 || !strings.Contains(rejects[0]["leadferry_error"], "text in UTF-8 as well") || rejects[0]["leadferry_line"] != "3" {
		t.Errorf("rejects: %v", rejects)
	}
	w.write("h.csv", "id,näme\n1,x\n")
	if out := w.must(2, "import", "-m", "m.yaml", "h.csv", "--encoding", "latin1"); !strings.Contains(out, "h.csv:1: the header cannot be read") {
		t.Error(out)
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
	w.must(1, "import", "-m", "m.yaml", "a.xlsx", "--out", "run")
	w.holdsNames("Ann", "Cid")
	s := w.summary("run/summary.json")
	if s.Rows.Skipped != 1 || s.Inputs[0].Blank != 1 || s.Rows.Invalid != 2 {
		t.Errorf("%+v, %+v", s.Rows, s.Inputs)
	}
	rejects := w.results("run/rejects.csv")
	if len(rejects) != 2 || rejects[0]["name"] != "#REF!" || rejects[0]["leadferry_text"] != "2,#REF!,x,y" || rejects[1]["note"] != "12345678901234567890" {
		t.Errorf("rejects: %v", rejects)
	}
	w.must(1, "import", "-m", "m.yaml", "run/rejects.csv", "--format", "csv", "--out", "again")
	w.holdsNames("Ann", "Cid")
	w.write("corrected.csv", "id,name,note,helper,leadferry_line,leadferry_text\n2,Dan,x,y,3,\n")
	w.must(0, "import", "-m", "m.yaml", "corrected.csv", "--out", "none")
	w.holdsNames("Ann", "Cid", "Dan")
}

// A name that is there twice is refused where it is used, and nowhere else. fault 93
func TestAColumnThatStandsTwice(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sandbox.Options{})
	w.write("m.yaml", filesMapping)
	w.write("a.csv", "id,name,x,note,x,\n1,Ann,,y,,\n")
	w.must(0, "import", "-m", "m.yaml", "a.csv", "--out", "none")
	w.holdsNames("Ann")
	w.write("b.csv", "id,name,note,name\n1,Ann,y,Bob\n")
	if out := w.must(2, "import", "-m", "m.yaml", "b.csv", "--out", "none"); !strings.Contains(out, `b.csv has more than one column "name"`) {
		t.Error(out)
	}
}

// The rejects of a file are read by the mapping that read it, whatever that says of its
// source.
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
			out := w.must(1, "import", "-m", "m.yaml", test.file, "--out", "run")
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

// What leadferry adds to rejects is no data: neither of the key that a row's own data
// are, nor of the rest that is sent.
func TestColumnsOfARejectsFileAreNoData(t *testing.T) {
	t.Parallel()
	const note = "leadferry_line,leadferry_outcome,leadferry_error,leadferry_text"
	w := newWorld(t, sandbox.Options{})
	w.write("m.yaml", `{version: 1, assign: [{organization: "{org}"}], lead: {type_key: t, type_label: T, content: {"*": rest}}}`)
	w.write("a.csv", "org,name\n"+organization+",Ann\nnobody,Bob\n")
	w.must(1, "import", "-m", "m.yaml", "a.csv", "--out", "run")
	w.must(1, "import", "-m", "m.yaml", "run/rejects.csv", "--out", "again")
	s := w.summary("again/summary.json")
	if s.Rows.Rejected != 1 || s.Requests.Create != 0 {
		t.Errorf("the same row is another one in the rejects: %+v", s.Rows)
	}
	w.write("good.csv", "org,name,"+note+"\n"+organization+",Ann,7,rejected,=x,\n")
	w.write("good.jsonl", `{"org":"`+organization+`","name":"Ann","leadferry":{"line":7},"leadferry_x":1}`)
	w.must(0, "import", "-m", "m.yaml", "good.csv", "good.jsonl", "--out", "none")
	w.holdsNames("Ann")
	leads, err := w.service.Leads()
	if err != nil || len(leads) != 1 || len(leads[0].Content) != 1 {
		t.Errorf("leads %v: %v", leads, err)
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

// A workbook with titles above its table and a sum below is proposed, checked and imported as it
// is; another workbook beside the mapping says which organization is meant, and its faults are
// told by its own rows.
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
	w.must(0, "init", "leads.xlsx", "-m", "m.yaml")
	if m := w.mapping("m.yaml"); m.Source.SkipRows != 2 || m.Source.Footer == nil || m.KeyForm() != "{Lead ID}" {
		t.Fatalf("proposed:\n%s", w.read("m.yaml"))
	}
	w.edit("m.yaml", []edit{{`^  dealers:`, "  dealers: {file: dealers.xlsx, key: Dealer, value: Organization ID, fold: true}"}, {`Auto Haus: ""`, ""}})
	w.must(0, "validate", "-m", "m.yaml", "leads.xlsx")
	w.must(0, "import", "-m", "m.yaml", "leads.xlsx", "--out", "none")
	if leads, err := w.service.Leads(); err != nil || len(leads) != 8 || leads[0].OwnerID != sandbox.Organizations()[0].ID {
		t.Errorf("the service holds %+v: %v", leads, err)
	}
	w.write("dealers.xlsx", sheet([]string{"Dealer", "Organization ID"}, []string{"A", "o-1"}, []string{}, []string{"a ", "o-2"}))
	if out := w.must(2, "validate", "-m", "m.yaml", "leads.xlsx"); !strings.Contains(out, "dealers.xlsx:4: a word of the table tables.dealers is there twice, first on line 2") {
		t.Error(out)
	}
	w.write("dealers.xlsx", sheet([]string{"Dealer", "Organization ID"}, []string{"Other", "o-1"}))
	if out := w.must(1, "validate", "-m", "m.yaml", "leads.xlsx"); !strings.Contains(out, `8  assign[1].organization  "Auto Haus", first at leads.xlsx:4`) {
		t.Error(out)
	}
}

// What is damaged on its way unpacks to other rows up to its checksum: none of them is sent.
func TestAPackedFileThatIsDamaged(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sandbox.Options{})
	w.write("m.yaml", filesMapping)
	var packed bytes.Buffer
	z, _ := gzip.NewWriterLevel(&packed, gzip.NoCompression) // whose data lie there as they are
	_, _ = io.WriteString(z, "id,name,note\n1,Ann,x\n2,Bob,x\n")
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	damaged := strings.Replace(packed.String(), "Bob", "Rob", 1)
	w.write("a.csv.gz", damaged)
	if out := w.must(2, "import", "-m", "m.yaml", "a.csv.gz", "--out", "none"); !strings.Contains(out, "a.csv.gz: its gzip data are damaged") {
		t.Error(out)
	}
	w.holdsNames()
	w.write("a.csv.gz", packed.String())
	w.must(0, "import", "-m", "m.yaml", "a.csv.gz", "--out", "none")
	w.holdsNames("Ann", "Bob")
}
