package report

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"leadferry/internal/testsupport/must"
)

// faulty is a validation that found something of every kind.
func faulty() *Summary {
	s := checked()
	s.Outcome, s.ExitCode = "attention", 1
	s.Inputs = []Input{{Path: "leads.csv"}}
	s.Rows = RowCounts{Read: 1200, Invalid: 40, Skipped: 10, Pending: 1150}
	s.Errors = []Reason{{Outcome: "invalid", Error: "column Stage: not a status", Rows: 30, Examples: []Place{{File: "leads.csv", Line: 7}}}}
	at := func(line int) Place { return Place{File: "leads.csv", Line: line} }
	s.Checks = &Checks{
		Rules: []Reason{
			{Rule: "status", Column: "Stage", Error: "lead.status is neither a status of the service nor mapped to one", Rows: 30, Examples: []Place{at(7), at(9), at(12)}},
			{Rule: "duplicate_key", Column: "", Error: "a key is there twice", Rows: 2, Examples: []Place{at(17), at(18)}},
		},
		Quoting: []Problem{
			{File: "leads.yaml", Column: "lead.status", Rule: "map", Text: `"Working", first at leads.csv:7`, Rows: 25},
			{File: "leads.yaml", Rule: "map", Text: "other texts, first at leads.csv:9", Rows: 5},
		},
		Repeats:     3,
		Assignments: []Organization{{ID: "o-1", Leads: 500}, {ID: "locator l-1", Leads: 90}, {ID: "others", Leads: 110}},
		Projected:   Projected{Create: 1147, Update: 1147},
		Tests:       3,
		Found: []Problem{
			{File: "leads.yaml", Line: 50, Rule: "test", Text: `content.name is "Ann", not "Ann Lee"; content.email is missing: it should be "ann@example.com"`},
			{File: "leads.yaml", Line: 1, Rule: "mapping", Text: "assign is missing, and leads cannot be created without it", Hint: `assign: [{organization: "{column}"}]`},
		},
	}
	return s
}

func TestTextShowsWhatAValidationFound(t *testing.T) {
	want := `Validation finished: 40 of 1,200 rows need attention, and 1 of 3 tests of the
mapping fails, and the mapping cannot make leads yet.
Nothing was sent: this was a check. It took 200ms.

Rows
  1,200  read
     10  skipped    left out on purpose
     40  invalid    fails a check, was not sent
  1,150  pending    good

Checks that rows fail
     30  status         column Stage: lead.status is neither a status of the
                        service nor mapped to one
                        leads.csv:7, leads.csv:9, leads.csv:12, …
      2  duplicate_key  a key is there twice
                        leads.csv:17, leads.csv:18

What the mapping lacks to make leads
  leads.yaml:1: assign is missing, and leads cannot be created without it
    hint: assign: [{organization: "{column}"}]

Tests of the mapping that fail
  leads.yaml:50: content.name is "Ann", not "Ann Lee"; content.email is missing:
    it should be "ann@example.com"

Texts that a map lacks
     25  lead.status  "Working", first at leads.csv:7
      5  other texts, first at leads.csv:9

Would be assigned
    500  o-1
    110  others
     90  locator l-1

Would be sent
  1,147 create requests and 1,147 updates (a row that repeats a key makes no
    lead of its own).

Next
  1. Complete the mapping: only you can decide what it lacks.
  2. Correct the mapping, or what its tests expect.
  3. Add the missing texts and their values to the map (statuses:
     lead.status.map in the mapping) or to its table, or give all other texts a
     value with else.
  4. Correct the 40 rows in the input, or the mapping, and run the same command
     again.
`
	must.Same(t, want, text(t, faulty(), 0))
}

func TestTextOfValidationsOneByOne(t *testing.T) {
	change := func(f func(*Summary, *Checks)) *Summary {
		s := checked()
		s.Checks = &Checks{Projected: Projected{Create: 1}}
		f(s, s.Checks)
		return s
	}
	tests := []struct {
		name         string
		summary      *Summary
		want, absent string
	}{
		{"a test fails", change(func(s *Summary, c *Checks) {
			c.Tests, c.Found = 1, []Problem{{Rule: "test"}}
			s.Outcome = "attention"
		}), "Validation finished: no row needs attention, but 1 of 1 test of the mapping fails.\n", "import -m"},
		{"only for sync", change(func(_ *Summary, c *Checks) { c.Projected = Projected{} }), "1  pending    good\n", "import -m"},
		{"organizations", change(func(_ *Summary, c *Checks) { c.Assignments = []Organization{{ID: "o-1", Leads: 1}} }), "  1  o-1\n", "Assigned to"},
		{"dry run", change(func(s *Summary, c *Checks) {
			s.Command, s.Rows.Rejected, s.Rows.Invalid = "import", 1, 1
			s.Errors = []Reason{{Outcome: "invalid", Error: "x", Rows: 1, Examples: []Place{{File: "a", Line: 1}}}, {Outcome: "rejected", Error: "HTTP 422", Rows: 1, Examples: []Place{{File: "a", Line: 1}}}}
		}), "Most frequent reasons\n  1  rejected   HTTP 422\n", "invalid    x"},
	}
	for _, tt := range tests {
		holds(t, true, text(t, tt.summary, 100), tt.want)
		holds(t, false, text(t, tt.summary, 100), tt.absent)
	}
}

func TestTextOfLongListsIsCut(t *testing.T) {
	s := checked()
	s.Checks = &Checks{Tests: 12}
	for i := range 12 {
		s.Checks.Rules = append(s.Checks.Rules, Reason{Rule: "format", Column: "", Error: fmt.Sprint("check ", i), Rows: 1, Examples: []Place{{File: "a", Line: i}}})
		s.Checks.Quoting = append(s.Checks.Quoting, Problem{Rule: "map", Text: fmt.Sprint("word ", i), Rows: 1})
		s.Checks.Found = append(s.Checks.Found, Problem{Rule: "test", File: fmt.Sprint("m.yaml ", i)})
	}
	got := text(t, s, 0)
	holds(t, true, got, "check 9\n", "2  and 2 more", "word 11", "m.yaml 9:", "  and 2 more")
	holds(t, false, got, "check 10", "m.yaml 10")
}

func TestChecksAreShownEscaped(t *testing.T) { // fault 118
	const evil = "\x1b[2Jred\u202e\nforged"
	at := Place{File: evil, Line: 1}
	s := faulty()
	s.Mapping.Path = evil
	s.Checks = &Checks{
		Rules: []Reason{{Rule: evil, Column: evil, Error: evil, Rows: 1, Examples: []Place{at}}}, Quoting: []Problem{{Rule: "map", Column: evil, Text: evil, Rows: 1}},
		Assignments: []Organization{{ID: evil, Leads: 1}},
	}
	for _, kind := range problemKinds {
		s.Checks.Found = append(s.Checks.Found, Problem{Rule: kind.rule, File: evil, Column: evil, Text: evil, Hint: evil})
	}
	holds(t, false, text(t, s, 80), "\x1b", "\u202e", "\nforged")
}

func TestSummaryHasTheChecksButNoTextsOfCells(t *testing.T) {
	s := &Summary{Checks: &Checks{
		Rules:       []Reason{{Rule: "format", Column: "A\u202eB", Error: strings.Repeat("x", 600), Rows: 4, Examples: []Place{{File: "a.csv", Line: 2}}}},
		Quoting:     []Problem{{File: "m.yaml", Column: "lead.status", Rule: "map", Text: "Hot", Rows: 2}},
		Repeats:     1,
		Assignments: []Organization{{ID: "o", Leads: 1}, {ID: "locator l", Leads: 1}},
		Projected:   Projected{Create: 3, Update: 3},
		Tests:       2,
		Found:       []Problem{{File: "m.yaml", Line: 2, Rule: "guess", Text: "a"}, {File: "m.yaml", Column: "a\u202eb", Rule: "unused", Text: "b", Hint: "c"}},
	}}
	var b bytes.Buffer
	must.Do(t, s.WriteJSON(&b))
	_, got, _ := strings.Cut(b.String(), `"checks": `)
	got, _, _ = strings.Cut(strings.Join(strings.Fields(got), ""), `,"files":`)
	want := `{"rules":[{"rule":"format","column":"A\\u202eB","error":"` + strings.Repeat("x", 499) + `…","rows":4,"examples":[{"file":"a.csv","line":2}]}],` +
		`"found":[{"file":"m.yaml","line":2,"rule":"guess","text":"a"},{"file":"m.yaml","column":"a\\u202eb","rule":"unused","text":"b","hint":"c"}],"repeats":1,"look_alikes":0,` +
		`"assignments":[{"id":"o","location":"","leads":1},{"id":"locatorl","location":"","leads":1}],` +
		`"projected":{"create":3,"update":3},"tests":2}`
	must.Same(t, want, got)
}

// found is a summary with a problem of every kind that checks know.
func found() *Summary {
	s := &Summary{Mapping: File{Path: "m.yaml"}, Checks: &Checks{
		Strict: 1,
		Found: []Problem{
			{File: "m.yaml", Line: 1, Rule: "mapping", Text: "assign is missing", Hint: "add it"},
			{File: "m.yaml", Line: 9, Rule: "test", Text: "one; two"},
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

// problemsAs returns what a run writes of its problems into a file with this ending.
func problemsAs(t *testing.T, ending string, s *Summary, batches ...[]Problem) string {
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
m.yaml,,,extra,unused,nothing uses it
a.csv,5,4,,repeated,the key is already at a.csv:2
m.yaml,,,,repeated,and 1 row more
`,
		".jsonl": `{"file":"a,b:c%.csv","line":3,"row":2,"column":"=x\\u202e","rule":"format","text":"@is\\r\\n<no> & \"date\"\\x1b[31m"}
{"file":"m.yaml","line":1,"rule":"mapping","text":"assign is missing (hint: add it)"}
{"file":"m.yaml","line":9,"rule":"test","text":"one; two"}
{"file":"m.yaml","column":"lead.status","rule":"map","text":"no entry for \"Hot\", first at a.csv:3 (2 rows)"}
{"file":"m.yaml","column":"extra","rule":"unused","text":"nothing uses it"}
{"file":"a.csv","line":5,"row":4,"rule":"repeated","text":"the key is already at a.csv:2"}
{"file":"m.yaml","rule":"repeated","text":"and 1 row more"}
`,
		Annotations: `::error file=a%2Cb%3Ac%25.csv,title=format,line=3::column =x\u202e: @is\r\n<no> & "date"\x1b[31m
::error file=m.yaml,title=mapping,line=1::assign is missing (hint: add it)
::error file=m.yaml,title=test,line=9::one; two
::error file=m.yaml,title=map::column lead.status: no entry for "Hot", first at a.csv:3 (2 rows)
::error file=m.yaml,title=unused::column extra: nothing uses it
::error file=a.csv,title=repeated,line=5::the key is already at a.csv:2
::error file=m.yaml,title=repeated::and 1 row more
`,
	} {
		must.Same(t, want, problemsAs(t, ending, found(), evilProblem()), ending)
	}
}

func TestAnnotationsAreBounded(t *testing.T) {
	batch := make([]Problem, maxAnnotations+5)
	got := problemsAs(t, Annotations, &Summary{}, batch)
	must.Same(t, maxAnnotations, strings.Count(got, "\n"))
}
