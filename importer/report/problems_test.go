package report

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// found is a summary with a problem of every kind that checks know.
func found() *Summary {
	return &Summary{Mapping: File{Path: "m.yaml"}, Checks: &Checks{
		Lacking:       []Word{{Value: "lead.status", Text: "Hot", Rows: 2, Place: Place{File: "a.csv", Line: 3}}, {Value: "lead.status", Hidden: "not shown", Rows: 1, Place: Place{File: "a.csv", Line: 4}}, {Value: "lead.content.x", Text: "Z", Rows: 1, Place: Place{File: "a.csv", Line: 7}}, {Hidden: "other texts", Rows: 4, Place: Place{File: "a.csv", Line: 9}}},
		Tests:         Tests{Run: 1, Failed: 1, Failures: []Fault{{File: "m.yaml", Line: 9, Differences: []string{"one", "two"}}}},
		CannotCreate:  []Fault{{File: "m.yaml", Line: 1, Error: "assign is missing"}},
		LostFiles:     []Fault{{File: "a.csv", Line: 8, Error: "a quote is never closed"}},
		Repeats:       Repeats{Rows: 3, Places: []Repeat{{Place{File: "a.csv", Line: 5}, Place{File: "a.csv", Line: 2}, 4}}, More: []Repeat{{Place{File: "a.csv", Line: 6}, Place{File: "a.csv", Line: 2}, 5}}},
		UnusedColumns: []string{"extra"},
		Strict:        true,
	}}
}

// told is what a run writes of its problems to a file of this ending.
func told(t *testing.T, ending string, s *Summary, batches ...[]Problem) string {
	t.Helper()
	var printed bytes.Buffer
	f := Files{Problems: ending, Annotate: &printed}
	if ending != Annotations {
		f.Problems = filepath.Join(t.TempDir(), "problems"+ending)
	}
	r, err := OpenRun(f)
	must(t, err)
	for _, batch := range batches {
		must(t, r.Problems(batch))
	}
	must(t, r.Finish(s))
	if ending == Annotations {
		return printed.String()
	}
	b, err := os.ReadFile(f.Problems)
	must(t, err)
	return string(b)
}

func evilProblem() []Problem {
	return []Problem{{File: "a,b:c%.csv", Line: 3, Row: 2, Column: "=x\u202e", Rule: "format", Text: "@is\r\n<no> & \"date\"\x1b[31m"}}
}

func TestProblemsInEachForm(t *testing.T) {
	for ending, want := range map[string]string{
		".csv": `file,line,row,column,rule,text
"a,b:c%.csv",3,2,'=x\u202e,format,"'@is\r\n<no> & ""date""\x1b[31m"
m.yaml,,,lead.status,map,"the map lacks ""Hot"": 2 rows, first at a.csv:3"
m.yaml,,,lead.status,map,"the map lacks not shown: 1 row, first at a.csv:4"
m.yaml,,,lead.content.x,map,"the map lacks ""Z"": 1 row, first at a.csv:7"
m.yaml,,,,map,"the map lacks other texts: 4 rows, first at a.csv:9"
m.yaml,9,,,test,one; two
m.yaml,1,,,mapping,assign is missing
a.csv,8,,,lost,a quote is never closed
a.csv,5,4,,repeated,the key is already at a.csv:2
a.csv,6,5,,repeated,the key is already at a.csv:2
m.yaml,,,,repeated,and 1 row more
m.yaml,,,extra,unused,no part of the mapping uses the column
`,
		".jsonl": `{"file":"a,b:c%.csv","line":3,"row":2,"column":"=x\\u202e","rule":"format","text":"@is\\r\\n<no> & \"date\"\\x1b[31m"}
{"file":"m.yaml","column":"lead.status","rule":"map","text":"the map lacks \"Hot\": 2 rows, first at a.csv:3"}
{"file":"m.yaml","column":"lead.status","rule":"map","text":"the map lacks not shown: 1 row, first at a.csv:4"}
{"file":"m.yaml","column":"lead.content.x","rule":"map","text":"the map lacks \"Z\": 1 row, first at a.csv:7"}
{"file":"m.yaml","rule":"map","text":"the map lacks other texts: 4 rows, first at a.csv:9"}
{"file":"m.yaml","line":9,"rule":"test","text":"one; two"}
{"file":"m.yaml","line":1,"rule":"mapping","text":"assign is missing"}
{"file":"a.csv","line":8,"rule":"lost","text":"a quote is never closed"}
{"file":"a.csv","line":5,"row":4,"rule":"repeated","text":"the key is already at a.csv:2"}
{"file":"a.csv","line":6,"row":5,"rule":"repeated","text":"the key is already at a.csv:2"}
{"file":"m.yaml","rule":"repeated","text":"and 1 row more"}
{"file":"m.yaml","column":"extra","rule":"unused","text":"no part of the mapping uses the column"}
`,
		Annotations: `::error file=a%2Cb%3Ac%25.csv,title=format,line=3::column =x\u202e: @is\r\n<no> & "date"\x1b[31m
::error file=m.yaml,title=map::column lead.status: the map lacks "Hot": 2 rows, first at a.csv:3
::error file=m.yaml,title=map::column lead.status: the map lacks not shown: 1 row, first at a.csv:4
::error file=m.yaml,title=map::column lead.content.x: the map lacks "Z": 1 row, first at a.csv:7
::error file=m.yaml,title=map::the map lacks other texts: 4 rows, first at a.csv:9
::error file=m.yaml,title=test,line=9::one; two
::error file=m.yaml,title=mapping,line=1::assign is missing
::error file=a.csv,title=lost,line=8::a quote is never closed
::error file=a.csv,title=repeated,line=5::the key is already at a.csv:2
::error file=a.csv,title=repeated,line=6::the key is already at a.csv:2
::error file=m.yaml,title=repeated::and 1 row more
::error file=m.yaml,title=unused::column extra: no part of the mapping uses the column
`,
	} {
		same(t, want, told(t, ending, found(), evilProblem()), ending)
	}
}

func TestAnnotationsAreBounded(t *testing.T) {
	batch := make([]Problem, maxAnnotations+5)
	got := told(t, Annotations, &Summary{}, batch)
	if lines := strings.Count(got, "\n"); lines != maxAnnotations || !strings.HasSuffix(got, "(the last one shown: --problems FILE writes all)\n") {
		t.Errorf("%d lines, the last of %q", lines, got[len(got)-100:])
	}
}

func TestProblemsNeedAKnownEnding(t *testing.T) {
	for path, ok := range map[string]bool{"": true, "github": true, "a/b.CSV": true, "x.jsonl": true, "x.xml": false, "x.json": false, "x": false, "-": false} {
		if err := CheckProblems(path); (err == nil) != ok {
			t.Errorf("%q: %v", path, err)
		}
	}
}
