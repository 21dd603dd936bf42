package propose

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"leadferry/internal/testsupport/must"
	"leadferry/mapping"
)

// hostile are headers and cells that YAML, placeholders or comments could trip over.
var hostile = []string{
	"", " ", "{", "}", "{{", "{a}", "a}b", "{x", "@key", "@file", "*", "<<", "- a", "? a", ": ", "a: b", "#", "a #b", "'", `"`, `\`, "a\nb", "a\r\n# key: x",
	"\t", "é", "日本", "😀", "\u2028", "\ufeff", "\x00", "\xff", "true", "null", "~", "0x1F", "1e3", "2026-01-02", "&a", "*a", "!tag", "%", "`", "a,b", "[a]",
	"---", "...", "email", "Email", "E-Mail", "id", "status", "Status", "name", "phone", "dealer_id", "password", "a.b", "attributes", "attributes.type",
	"leadferry_line", "leadferry", "state", "importRef", strings.Repeat("x", 500), strings.Repeat("\u202e", 200), "{}", `{"a":1}`, `{"type":"Lead","b":{"c":[1,{"d":"x"}]}}`,
	"[1,2]", "NULL", "n/a", "-", "Open", "Won", "Closed - Lost", "a@b.co", "A@B.co", "+49 30 123456", "01067", "8a1e6f91-0951-4549-a823-213cb38eb51c",
	"4.9E+11", "p:+4930123456", "1", "2", "3", "5", "Anna", "Anna Lee", "4111111111111111", "x y", "DECIDE", "{@key}", "\u00a0", "a\u00a0", "rest", "\"*\": rest",
}

func words64() *rapid.Generator[string] {
	return rapid.OneOf(rapid.SampledFrom(hostile), rapid.StringN(0, 12, 40), rapid.StringMatching(`[A-Za-z_ ]{1,12}`))
}

// usual are columns as files of leads have them, with cells that mostly fit.
var usual = map[string][]string{
	"Lead ID": {"L-1", "L-2", "L-3", "L-4", "L-5", "L-6", "L-7", ""}, "id": {"1", "2", "3", "4", "5"},
	"Email": {"a@b.co", "b@b.co", "C@b.co", "d..d@b.co", "", "x"}, "Phone": {"+49 30 123456", "030/12345678", "4.9E+11", "p:+4930123456", ""},
	"First Name": {"Anna", "Uwe", "Null", ""}, "Last Name": {"Lee", "Kranz", "NULL"}, "Name": {"Anna Lee", "Uwe Kranz", ""}, "Middle Name": {"B.", ""},
	"Status": {"New", "Won", "Zebra", "Lost", ""}, "Stage": {"Open", "In Progress", "Gnu"}, "lead_pipeline_stage_id": {"1", "5", "0"},
	"dealer_id": {"8a1e6f91-0951-4549-a823-213cb38eb51c", "8a1e6f91-0951-4549-a823-213cb38eb51d", ""}, "Dealer": {"Shelby Cars", "D-1001"},
	"ZIP": {"01067", "2134", "90210", "z:50667"}, "City": {"Bonn", "Köln", ""}, "Street": {"High Street 1", ""}, "Country": {"DE", "France", "NO"},
	"Message": {"Please call me about two vans, and soon.", ""}, "Created": {"2026-01-02", "03/01/2026", "15/01/2026"}, "Password": {"x"}, "Nr.": {"1", "2"},
	"attributes": {`{"type":"Lead","referenceId":"LeadRef1"}`, `{"type":"Lead","referenceId":"LeadRef2"}`}, "emails": {`[{"value":"a@b.co"}]`, `[]`, `[{"value":"x"}]`},
}

func inputs() *rapid.Generator[Input] {
	names := slices.Sorted(maps.Keys(usual))
	return rapid.Custom(func(t *rapid.T) Input {
		in := Input{
			File: words64().Draw(t, "file"),
			Source: mapping.Source{
				Format:    rapid.SampledFrom([]string{"csv", "tsv", "jsonl", "xlsx", ""}).Draw(t, "format"),
				Delimiter: rapid.OneOf(rapid.Just(rune(0)), rapid.SampledFrom([]rune(";,\t|#: -\u2028\x07{'"))).Draw(t, "delimiter"),
				Encoding:  rapid.SampledFrom([]string{"", "", "utf-8", "windows-1252"}).Draw(t, "encoding"),
				Sheet:     rapid.SampledFrom([]string{"", "", "Leads 1", "a: #b"}).Draw(t, "sheet"),
			},
			Complete: rapid.Bool().Draw(t, "complete"),
			Unread:   Unread{rapid.IntRange(0, 1).Draw(t, "bad"), 7, "the row has 3 cells"},
		}
		var pools [][]string
		for range rapid.IntRange(0, 12).Draw(t, "columns") {
			name := rapid.SampledFrom(names).Draw(t, "usual column")
			pool := usual[name]
			if rapid.IntRange(0, 3).Draw(t, "odd") == 0 {
				name, pool = words64().Draw(t, "odd column"), rapid.SliceOfN(words64(), 1, 5).Draw(t, "odd cells")
			}
			in.Columns, pools = append(in.Columns, name), append(pools, pool)
		}
		for range rapid.IntRange(0, 12).Draw(t, "rows") {
			row := make([]string, len(in.Columns))
			for i := range row {
				row[i] = rapid.SampledFrom(pools[i]).Draw(t, "cell")
			}
			in.Rows = append(in.Rows, row)
		}
		return in
	})
}

// faults 105, 118
func TestAnyInputGetsAMappingThatLoads(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { checkProposal(t, inputs().Draw(t, "input")) })
}

type failer interface {
	Fatalf(format string, args ...any)
}

// checkProposal checks what the package promises about a proposal.
func checkProposal(t failer, in Input) {
	p, ok := proposeAny(t, in)
	if !ok {
		return
	}
	if again := propose(t, in); !bytes.Equal(p.YAML, again.YAML) || !slices.Equal(p.Notes, again.Notes) {
		t.Fatalf("the second proposal differs:\n%s\n%s", p.YAML, again.YAML)
	}
	if len(p.YAML) > 1<<20 {
		t.Fatalf("%d bytes", len(p.YAML))
	}
	m, err := mapping.Parse("m", p.YAML, nil)
	if err != nil {
		t.Fatalf("%v\n%s", err, p.YAML)
	}
	table := newDraft(in)
	if slices.Contains(table.In.Columns, "") && in.Format != "jsonl" {
		return // no reader takes a file like that
	}
	b, err := m.Bind("in", mapping.Columns{Names: table.In.Columns, Own: len(table.In.Columns), Open: in.Format == "jsonl"})
	if b == nil {
		t.Fatalf("%v\n%s", err, p.YAML)
	}
	var rec mapping.Record
	for i, row := range table.In.Rows {
		for _, problem := range b.Map(row, mapping.Env{}, &rec) {
			told := problem.Rule == "format" && bytes.Contains(p.YAML, []byte("would be refused: correct the file"))
			if problem.Rule != "status" && problem.Rule != "assign" && !told {
				t.Fatalf("row %d: %+v\n%s", i+1, problem, p.YAML)
			}
		}
	}
	for _, note := range p.Notes {
		if strings.ContainsAny(note, "\n\r\x00\x1b\u2028\u202e") {
			t.Fatalf("note %q", note)
		}
	}
}

// fault 115
func TestAProposalRepeatsNoCell(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := inputs().Draw(t, "input")
		var secrets []string
		for i := range in.Rows {
			for j := range in.Rows[i] {
				if rapid.IntRange(0, 3).Draw(t, "plant") > 0 {
					s := fmt.Sprintf("qz%05d%03d", i+10000, j)
					s = rapid.SampledFrom([]string{s, s + "@x.example", "Anna " + s, "https://" + s, `{"` + s + `":"` + s + `"}`}).Draw(t, "secret")
					in.Rows[i][j] = s
					if !strings.HasPrefix(s, "{") { // the keys of objects are names of columns
						secrets = append(secrets, s)
					}
				}
			}
		}
		p, ok := proposeAny(t, in)
		if !ok {
			return
		}
		said := string(p.YAML) + strings.Join(p.Notes, "\n")
		for _, s := range secrets {
			if strings.Contains(said, s) {
				t.Fatalf("%q is told:\n%s", s, said)
			}
		}
	})
}

func TestScalarsAreReadBackAsTheyWere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.OneOf(rapid.SampledFrom(hostile), rapid.String()).Draw(t, "text")
		s = strings.TrimSpace(strings.ToValidUTF8(strings.ReplaceAll(s, "\x00", ""), ""))
		if s == "" || len(quoted(s)) > maxNameSize {
			return
		}
		file := "version: 1\nlead:\n  content:\n    x: {from: \"{c}\", map: {" + scalar(s) + ": yes}}\n    " +
			scalar("k"+s) + ": " + scalar(strings.ReplaceAll(s, "{", "{{")) + "\n"
		m, err := mapping.Parse("m", []byte(file), nil)
		if err != nil {
			t.Fatalf("%v\n%s", err, file)
		}
		b, err := m.Bind("in", mapping.Columns{Names: []string{"c"}, Own: 1})
		must.Do(t, err)
		var rec mapping.Record
		if problems := b.Map([]string{s}, mapping.Env{}, &rec); problems != nil {
			t.Fatalf("%v\n%s", problems, file)
		}
		if f := rec.Content[1]; f.Name != "k"+s || f.Value != s {
			t.Fatalf("%q became %q and %q", s, f.Name, f.Value)
		}
	})
}

func TestScalarsThatPeopleMistakeAreQuoted(t *testing.T) {
	for text, want := range map[string]string{
		"Open - Not Contacted": "Open - Not Contacted", "yes": `"yes"`, "No": `"No"`, "1": `"1"`, "": `""`, "a: b": `"a: b"`, "a ": `"a "`, "a\nb": `"a\nb"`, "Straße": "Straße", "\u202e": `"\u202e"`,
	} {
		if got := scalar(text); got != want {
			t.Errorf("%q is written %s, want %s", text, got, want)
		}
	}
}

func TestWideFilesStayShort(t *testing.T) {
	for _, test := range []struct {
		header, first string
	}{{"%d@x.example", ""}, {"color %d", "password"}, {"password %d", "color"}, {"\x07\u202e %d " + strings.Repeat("\x01", 80), "password*"}} {
		in := Input{File: "wide.csv", Source: mapping.Source{Format: "csv"}}
		for i := range 3_000 {
			in.Columns = append(in.Columns, fmt.Sprintf(test.header, i))
		}
		in.Columns[6], in.Columns[7] = "Email", test.first // a secret, so that the others are listed
		in.Rows = [][]string{slices.Repeat([]string{"x@y.example"}, len(in.Columns))}
		p := propose(t, in)
		if _, err := mapping.Parse("m", p.YAML, nil); err != nil || len(p.YAML) > 1<<20 {
			t.Errorf("%.20s: %d bytes, %v", test.header, len(p.YAML), err)
		}
	}
}

func FuzzPropose(f *testing.F) {
	f.Add("id,email,Status", "1,a@b.example,New\n2,c@d.example,Lost", "csv")
	f.Add("attributes,Email", `{"type":"Lead"},x@y.example`, "jsonl")
	f.Add("a}b, ,{{", "x,y,z", "tsv")
	f.Fuzz(func(t *testing.T, header, body, format string) {
		in := Input{File: "f", Source: mapping.Source{Format: format, Columns: strings.Split(header, ",")}}
		for line := range strings.SplitSeq(body, "\n") {
			row := make([]string, len(in.Columns))
			copy(row, strings.Split(line, ","))
			in.Rows = append(in.Rows, row)
		}
		if len(in.Rows) > 200 || len(in.Columns) > 200 {
			return
		}
		checkProposal(t, in)
	})
}
