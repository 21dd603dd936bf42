package report

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	"leadferry/internal/testsupport/must"
)

func TestResultsHaveTheirColumnsAndDefuseFormulas(t *testing.T) { // faults m29, 117
	r := open(t, Files{Dir: t.TempDir()})
	for _, res := range []Result{
		{File: "a.csv", Line: "2", Row: "1", Key: "k1", Outcome: "created", LeadID: "L1", ExternalID: "x-1", OrganizationID: "o-1", Location: "Oak Hill", Status: "open", HTTPStatus: "201", Attempts: "1"},
		{File: "a.csv", Line: "3", Row: "2", Key: "=k2", Outcome: "invalid", Attempts: "0", Error: `column "Email": not an e-mail address`},
		{File: "b\x1b,c.csv", Line: "9", Row: "1", Key: "-k3", Outcome: "rejected", LeadID: "+L3", Location: "@here", Status: "-", HTTPStatus: "422", Attempts: "2", Error: "=cmd\n\x1b[2J"},
	} {
		must.Do(t, r.Results([]Result{res}))
	}
	must.Do(t, r.Finish(sample()))
	const want = `file,line,row,key,outcome,lead_id,external_id,organization_id,location,status,http_status,attempts,error
a.csv,2,1,k1,created,L1,x-1,o-1,Oak Hill,open,201,1,
a.csv,3,2,=k2,invalid,,,,,,,0,"column ""Email"": not an e-mail address"
"b\x1b,c.csv",9,1,-k3,rejected,+L3,,,'@here,-,422,2,'=cmd\n\x1b[2J
`
	must.Same(t, want, read(t, r.files.Results))
}

func TestRejectedRowsAreWrittenAsTheyWereRead(t *testing.T) { // faults m29, 117
	columns, csv, long := []string{"id", "name"}, Input{Format: "csv"}, strings.Repeat("x", 600)
	of := func(line int, outcome, why string, cells ...string) Reject {
		return Reject{Line: line, Outcome: outcome, Error: why, Names: columns, Cells: cells}
	}
	whole := of(3, "invalid", "not closed", "", "")
	whole.Text = "7,\"Ann\n=" + long
	tests := []struct {
		name, own, want string // the row's own columns, and what follows the header
		in              Input
		rejects         []Reject
	}{
		{"own cells stay as they are", "id,name,", "=1+1,\"a\r\n\x1b\"\"b\"\", c \",2,,rejected,,,,'=no\\x1b,\n", csv, []Reject{of(2, "rejected", "=no\x1b", "=1+1", "a\r\n\x1b\"b\", c ")}},
		{"the delimiter stays", "id;name;", "1;x,y;2;;failed;;;;\"a;b\";\n", Input{Format: "csv", Delimiter: ';'}, []Reject{of(2, "failed", "a;b", "1", "x,y")}},
		{"a workbook's rows become CSV", "id,name,", "007,\"a,\nb\",2,,invalid,,,,,\n,x,9,,invalid,,,,,\n", Input{Format: "xlsx"}, []Reject{of(2, "invalid", "", "007", "a,\nb"), of(9, "invalid", "", "", "x")}},
		{"a record that has no columns is kept whole", "id,name,", ",,3,,invalid,,,,not closed,\"7,\"\"Ann\n=" + long + "\"\n8,,4,,invalid,,,,,\n", csv, []Reject{whole, of(4, "invalid", "", "8")}},
		{"no columns at all", "", "3,,invalid,,,,,x\n", csv, []Reject{{Line: 3, Outcome: "invalid", Text: "x"}}},
	}
	for _, tt := range tests {
		r := open(t, Files{Dir: t.TempDir()})
		for _, rej := range tt.rejects {
			must.Do(t, r.Reject(tt.in, rej))
		}
		must.Do(t, r.Finish(sample()))
		const notes = "leadferry_line,leadferry_key,leadferry_outcome,leadferry_since,leadferry_sent_at,leadferry_lead_id,leadferry_error,leadferry_text\n"
		want := "\uFEFF" + tt.own + strings.ReplaceAll(notes, ",", string(cmp.Or(tt.in.Delimiter, ','))) + tt.want
		must.Same(t, want, read(t, firstRejects(r)), tt.name)
	}
}

func TestRejectedObjectsCarryANote(t *testing.T) {
	const note = `"leadferry":{"line":7,"key":"","outcome":"invalid","lead_id":"","error":"=no <b> \\n"}`
	text := func(line string) string { return `{` + strings.TrimSuffix(note, "}") + `,"text":"` + line + `"}}` }
	tests := []struct{ name, line, want string }{
		{"as read", `{"b": 1.50, "a" :"é\u00e9", "n":12345678901234567890, "o":{"x":[ 1,2 ]}}`, `{"b":1.50,"a":"é\u00e9","n":12345678901234567890,"o":{"x":[ 1,2 ]},` + note + `}`},
		{"an earlier note goes", `{"leadferry":{"line":1},"a":1,"leadferry_text":"x","l\u0065adferry_x":2,"b":2}`, `{"a":1,"b":2,` + note + `}`},
		{"only an earlier note", `{"leadferry":1}`, `{` + note + `}`},
		{"cut", `{"a":"b`, text(`{\"a\":\"b`)},
		{"a key twice", `{"a":1,"a":2}`, text(`{\"a\":1,\"a\":2}`)},
		{"something follows", `{"a":1} x`, text(`{\"a\":1} x`)},
		{"broken UTF-8", "{\"a\":\"\xff\"}", text(`{\"a\":\"` + "\ufffd" + `\"}`)},
		{"nothing", "", `{` + note + `}`},
	}
	for _, tt := range tests {
		rej := Reject{Line: 7, Outcome: "invalid", Error: "=no <b> \n", Raw: tt.line}
		must.Same(t, tt.want, string(rej.object()), tt.name)
	}
}

func TestEachHeaderHasItsRejectsFile(t *testing.T) {
	dir := t.TempDir()
	in := []struct {
		Input
		names []string
	}{
		{Input{Format: "csv"}, []string{"id"}},
		{Input{Format: "csv"}, []string{"id", "name"}},
		{Input{Format: "csv", Delimiter: ';'}, []string{"id"}},
		{Input{Format: "jsonl"}, nil},
		{Input{Format: "tsv", Delimiter: '\t'}, []string{"id"}},
		{Input{Format: "xlsx"}, []string{"code"}},
	}
	tests := []struct{ name, rejects, want string }{
		{"in the folder", "", "rejects.csv rejects-2.csv rejects-3.csv rejects-4.jsonl rejects-5.tsv rejects-6.csv"},
		{"named", dir + "/bad.txt", "bad.txt bad-2.csv bad-3.csv bad-4.jsonl bad-5.tsv bad-6.csv"},
	}
	for _, tt := range tests {
		r := open(t, Files{Dir: dir, Rejects: tt.rejects})
		for range 2 {
			for _, i := range in {
				must.Do(t, r.Reject(i.Input, Reject{Names: i.names, Raw: "{}"}))
			}
		}
		must.Do(t, r.Finish(sample()))
		got := strings.ReplaceAll(strings.Join(rejectsPaths(r), " "), dir+"/", "")
		must.Same(t, tt.want, got, "got", tt.name)
		for i, path := range rejectsPaths(r) {
			lines := 3
			if in[i].Format == "jsonl" {
				lines = 2
			}
			must.Same(t, lines, strings.Count(read(t, path), "\n"), path, "lines", tt.name)
		}
	}
}

// Texts from outside are written as in results.
func TestAReconciliationEscapesTextsFromOutside(t *testing.T) {
	r, err := OpenRun(Files{Dir: t.TempDir(), Reconciles: true})
	must.Do(t, err)
	batch := slices.Repeat([]Compared{{File: "a\x1b.csv", Line: "2", Row: "1", Key: "=k\u202e", LeadID: "l\x00", StatusService: "x\a", Verdict: "same", ContentKeys: "=a, b", Error: "@\x9b, \"c\""}}, 32+1)
	must.Do(t, r.Reconciliation(batch))
	must.Do(t, r.Finish(sample()))
	_, lines, _ := strings.Cut(read(t, r.reconciliation.path), "\n")
	line := `a\x1b.csv,2,1,=k` + "\u202e" + `,l\x00,,,,,x\a,same,,,,"'=a, b",,"'@\x9b, ""c"""` + "\n"
	must.Same(t, strings.Repeat(line, 32+1), lines)
}
