package report

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"leadferry/internal/testsupport/must"
)

// found is a summary with a problem of every kind that checks know.
func found() *Summary {
	s := &Summary{Mapping: File{Path: "m.yaml"}, Checks: &Checks{
		Strict: 1,
		Found: []Problem{
			{File: "m.yaml", Line: 1, Rule: "mapping", Text: "assign is missing", Hint: "add it"},
			{File: "m.yaml", Line: 9, Rule: "test", Text: "one; two"},
			{File: "a.csv", Line: 8, Rule: "lost", Text: "a quote is never closed"},
			{File: "m.yaml", Column: "extra", Rule: "unused", Text: "nothing uses it"},
		},
		Quoting: []Problem{
			{File: "m.yaml", Column: "lead.status", Rule: "map", Text: `no entry for "Hot", first at a.csv:3`, Rows: 2},
			{File: "a.csv", Line: 5, Row: 4, Rule: "repeated", Text: "the key is already at a.csv:2"},
			{File: "m.yaml", Rule: "repeated", Text: "and 1 row more"},
		},
	}}
	return s
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
	must.Do(t, err)
	for _, batch := range batches {
		must.Do(t, r.Problems(batch))
	}
	must.Do(t, r.Finish(s))
	if ending == Annotations {
		return printed.String()
	}
	b, err := os.ReadFile(f.Problems)
	must.Do(t, err)
	return string(b)
}

func evilProblem() []Problem {
	return []Problem{{File: "a,b:c%.csv", Line: 3, Row: 2, Column: "=x\u202e", Rule: "format", Text: "@is\r\n<no> & \"date\"\x1b[31m"}}
}

func TestProblemsInEachForm(t *testing.T) {
	for ending, want := range map[string]string{
		".csv": `file,line,row,column,rule,text
"a,b:c%.csv",3,2,'=x\u202e,format,"'@is\r\n<no> & ""date""\x1b[31m"
m.yaml,1,,,mapping,assign is missing (hint: add it)
m.yaml,9,,,test,one; two
m.yaml,,,lead.status,map,"no entry for ""Hot"", first at a.csv:3 (2 rows)"
a.csv,8,,,lost,a quote is never closed
m.yaml,,,extra,unused,nothing uses it
a.csv,5,4,,repeated,the key is already at a.csv:2
m.yaml,,,,repeated,and 1 row more
`,
		".jsonl": `{"file":"a,b:c%.csv","line":3,"row":2,"column":"=x\\u202e","rule":"format","text":"@is\\r\\n<no> & \"date\"\\x1b[31m"}
{"file":"m.yaml","line":1,"rule":"mapping","text":"assign is missing (hint: add it)"}
{"file":"m.yaml","line":9,"rule":"test","text":"one; two"}
{"file":"m.yaml","column":"lead.status","rule":"map","text":"no entry for \"Hot\", first at a.csv:3 (2 rows)"}
{"file":"a.csv","line":8,"rule":"lost","text":"a quote is never closed"}
{"file":"m.yaml","column":"extra","rule":"unused","text":"nothing uses it"}
{"file":"a.csv","line":5,"row":4,"rule":"repeated","text":"the key is already at a.csv:2"}
{"file":"m.yaml","rule":"repeated","text":"and 1 row more"}
`,
		Annotations: `::error file=a%2Cb%3Ac%25.csv,title=format,line=3::column =x\u202e: @is\r\n<no> & "date"\x1b[31m
::error file=m.yaml,title=mapping,line=1::assign is missing (hint: add it)
::error file=m.yaml,title=test,line=9::one; two
::error file=m.yaml,title=map::column lead.status: no entry for "Hot", first at a.csv:3 (2 rows)
::error file=a.csv,title=lost,line=8::a quote is never closed
::error file=m.yaml,title=unused::column extra: nothing uses it
::error file=a.csv,title=repeated,line=5::the key is already at a.csv:2
::error file=m.yaml,title=repeated::and 1 row more
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
