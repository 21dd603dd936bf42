package importer

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"leadferry/checkpoint"
	"leadferry/importer/delivery"
	"leadferry/importer/report"
	"leadferry/importer/source"
	"leadferry/internal/testsupport/must"
)

const checkedMapping = `version: 1
key: "{id}"
assign:
  - organization: "{org}"
  - locator: loc-1
    type: regions
    postal_code: "{zip}"
lead:
  type_key: t
  type_label: T
  status: {from: "{stage}", map: {Known: contacted}, else: "{}"}
  external_id: "{id}"
  content:
    name: {from: "{name}", required: true}
    email: {from: "{email}", format: email}
    zip: "{zip}"
`

const checkedHeader = "id,org,zip,stage,name,email\n"

// validated validates inputs with these texts.
func validated(t *testing.T, text string, o Options, inputs ...string) *report.Summary {
	t.Helper()
	s, err := Run(t.Context(), prepared(t, text, o, inputs...))
	must.Do(t, err)
	return s
}

// prepared writes and opens the inputs as a.csv, b.csv and so on. It changes into their folder, so that no message
// holds its path.
func prepared(t *testing.T, text string, o Options, inputs ...string) Options {
	t.Helper()
	t.Chdir(t.TempDir())
	o.Mapping, o.MappingFile.Path, o.Command, o.Log = parsed(t, text), "m.yaml", "validate", slog.New(slog.DiscardHandler)
	for i, input := range inputs {
		name := string(rune('a'+i)) + ".csv"
		must.Do(t, os.WriteFile(name, []byte(input), 0o600))
		o.Inputs = append(o.Inputs, opened(t, name, source.Options{}))
	}
	return o
}

func places(lines ...int) (list []report.Place) {
	for _, line := range lines {
		list = append(list, report.Place{File: "a.csv", Line: line, Row: line - 1})
	}
	return list
}

// Validate lists what is wrong by check, each with its first three places in all files. faults 84, 90, 102, 103
func TestValidateListsWhatIsWrongByCheck(t *testing.T) {
	rows := checkedHeader +
		"1,o-1,10115,Known,Ann,ann@example.com\n" +
		"2,o-1,,Hot,Bob,bob\n" + // status and format
		"3,,10115,,Cem,\n" +
		"4,,,,,\n" + // assign and required
		"5,o-2,,hot,Dee,d\n" +
		"6,o-2,\"10\"1\"15\",,Eve,\n" + // cannot be read
		"7,o-2,,Hot,Fay,f\n" +
		"8,o-2,,Hot,Gil,g\n" +
		"1,o-1,10115,Known,Ann,ann@example.com\n" // repeats the first key
	more := "email,name,stage,zip,org,id,extra\n,Hal,,,o-2,9,x\n"
	s := validated(t, checkedMapping, Options{}, rows, more)
	want := &report.Checks{
		Rules: []report.Reason{
			{Rule: "status", Column: "stage", Error: "lead.status is neither a status of the service nor mapped to one", Rows: 4, Examples: places(3, 6, 8)},
			{Rule: "format", Column: "email", Error: "lead.content.email is not an e-mail address", Rows: 4, Examples: places(3, 6, 8)},
			{Rule: "assign", Error: `no entry of assign has all that it needs, since these columns are empty: "org", "zip"`, Rows: 1, Examples: places(5)},
			{Rule: "required", Column: "name", Error: "lead.content.name is empty, but required", Rows: 1, Examples: places(5)},
			{Rule: "quote", Error: "text follows the quote that closes a cell", Rows: 1, Examples: places(7)},
		},
		Found: []report.Problem{{File: "m.yaml", Column: "extra", Rule: "unused", Text: "no part of the mapping uses the column"}},
		Quoting: []report.Problem{
			{File: "m.yaml", Column: "lead.status", Rule: "map", Text: `no entry for "Hot", first at a.csv:3`, Rows: 3},
			{File: "m.yaml", Column: "lead.status", Rule: "map", Text: `no entry for "hot", first at a.csv:6`, Rows: 1},
		},
		Repeats:     1,
		Assignments: []report.Organization{{ID: "o-1", Leads: 2}, {ID: "locator loc-1", Leads: 1}, {ID: "o-2", Leads: 1}},
		Projected:   report.Projected{Create: 3, Update: 3},
	}
	notes := []string{
		"No part of the mapping uses the column extra.",
		"Rows whose key is also in an earlier row: 1. Rows of one key are one lead, in file order. If their data differ, keep one row: else --changed update changes the lead at every run. For example a.csv:10 (first at a.csv:2).",
	}
	must.Same(t, want, s.Checks)
	if s.ExitCode != report.CodeAttention || s.Rows.Invalid != 6 || s.Rows.Pending != 4 || s.Rows.Read != 10 {
		t.Errorf("exit code %d, rows %+v", s.ExitCode, s.Rows)
	}
	must.Same(t, notes, s.Notes)
}

// Unreadable rows with the same problem are one check, even if the numbers in its text differ.
func TestUnreadableRowsAreCountedByWhatIsWrong(t *testing.T) {
	s := validated(t, checkedMapping, Options{}, checkedHeader+"1,1\n2,2,2\n3,3\n")
	const why = "for example: the row has 2 cells instead of 6 (hint: put quotes around a cell with the delimiter or a line break in it, and name every column in the header)"
	want := []report.Reason{{Rule: "columns", Error: why, Rows: 3, Examples: places(2, 3, 4)}}
	must.Same(t, want, s.Checks.Rules)
}

// A mapping that cannot make leads sends nothing. Repeated keys are counted nevertheless.
func TestAMappingThatCannotMakeLeadsProjectsNoRequests(t *testing.T) {
	text := "version: 1\nkey: '{id}'\nlead: {content: {name: '{name}'}}\n"
	s := validated(t, text, Options{}, "id,name\n"+strings.Repeat("1,a\n", 96))
	if p := s.Checks.Projected; p.Create != 0 || p.Update != 0 {
		t.Errorf("%d creates, %d updates", p.Create, p.Update)
	}
	if n := s.Checks.Repeats; n != 95 {
		t.Errorf("%d rows repeat a key", n)
	}
}

// Validate stops at a file that breaks off, and reports what it found until then.
func TestAFileThatBreaksOffStopsValidate(t *testing.T) {
	o := prepared(t, checkedMapping, Options{}, checkedHeader+"1,o-1,,,Ann,\n", checkedHeader+"2,o-1,,,Bob,\n")
	broken := io.MultiReader(strings.NewReader(checkedHeader+"3,o-1,,,Cem,\n"), iotest.ErrReader(errors.New("unexpected end")))
	input := opened(t, "-", source.Options{Format: source.CSV, Stdin: broken})
	o.Inputs = []*source.File{o.Inputs[0], input, o.Inputs[1]}
	s, err := Run(t.Context(), o)
	must.Do(t, err)
	if s.ExitCode != report.CodeStopped || s.Rows.Pending != 2 || !strings.Contains(s.StopReason, "unexpected end") {
		t.Errorf("%s with %d, rows %+v", s.StopReason, s.ExitCode, s.Rows)
	}
}

// lacking counts what a mapping lacks to make leads.
func lacking(c *report.Checks) (n int) {
	for _, p := range c.Found {
		if p.Rule == "mapping" {
			n++
		}
	}
	return n
}

func TestValidateSaysWhetherAMappingCanMakeLeads(t *testing.T) {
	const sync = "version: 1\nkey: '{id}'\nlead: {status: '{stage}'}\n"
	const half = sync + "assign: [{organization: '{org}'}]\n"
	const known = half + "lead_id: '{id}'\n"
	tests := []struct {
		name, mapping string
		code, lacking int
		note          string
	}{
		{"all there", checkedMapping, 0, 0, ""},
		{"for sync alone", sync, 0, 0, "is for sync only"},
		{"half", half, 1, 2, ""},
		{"with the service's IDs", known, 0, 0, "is for sync only"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			shown := new(bytes.Buffer)
			o := Options{Checking: Checking{Show: 9, Shown: shown}}
			s := validated(t, test.mapping, o, checkedHeader+"1,o-1,,open,Ann,\n")
			c := s.Checks
			if s.ExitCode != test.code || lacking(c) != test.lacking || s.Rows.Pending != 1 {
				t.Errorf("exit code %d, lacks %+v, rows %+v", s.ExitCode, c.Found, s.Rows)
			}
			if test.note != "" && !strings.Contains(strings.Join(s.Notes, "\n"), test.note) {
				t.Errorf("no %q in %q", test.note, s.Notes)
			}
			whole := test.mapping == checkedMapping
			if sent := c.Projected.Create > 0; sent != whole || (shown.Len() > 0) != whole || (len(c.Assignments) > 0) != whole {
				t.Errorf("projected %+v, %q shown, assigned %+v", c.Projected, shown, c.Assignments)
			}
		})
	}
}

// A run that sends gives its remarks on the mapping at its beginning, a dry run at its end.
func TestWhenRemarksOnTheMappingAreGiven(t *testing.T) {
	text := strings.Replace(checkedMapping, "key: \"{id}\"\n", "", 1)
	text = strings.Replace(text, "  external_id: \"{id}\"\n", "", 1)
	text = strings.Replace(text, "    zip: \"{zip}\"\n", "    password: hunter2secret\n", 1)
	want := []string{
		"m.yaml:14:15: the mapping file holds what looks like a secret: take it out; leadferry reads its own secret from LEADFERRY_CLIENT_SECRET or --client-secret-file",
		"The mapping has no key and no external_id, so a row is known by its own data. Correct it in the rejects file, which names its key: elsewhere it becomes another lead.",
		"No part of the mapping uses the columns id, extra.",
	}
	o := prepared(t, text, Options{}, strings.TrimSpace(checkedHeader)+",,extra\n")
	o.Begin = func(s *Start) error {
		if len(s.Notes)+len(s.Warnings) > 0 {
			t.Errorf("a dry run is told at its beginning: %q %q", s.Notes, s.Warnings)
		}
		return nil
	}
	s, err := Run(t.Context(), o)
	must.Do(t, err)
	nameless := "a.csv: column 7 has no name in the header: what rows hold there is never sent"
	must.Same(t, append(slices.Clip(want), nameless), s.Notes)
	o.Command = "import"
	e := newRun(o)
	must.Do(t, e.intake.bind())
	e.Begin = func(s *Start) error {
		must.Same(t, want, append(s.Warnings, s.Notes...))
		return nil
	}
	must.Do(t, e.announce())
}

// A dry run says what is left to send, given what the checkpoint knows. A repeated key is one create.
func TestADryRunProjectsWhatIsLeft(t *testing.T) {
	rows := []string{"known,a", "new,a", "new,a", "new,b", "half,a", "half,a", "other,c"}
	tr := newTrial(t, rows, Options{Checking: Checking{DryRun: true}})
	tr.remap(t, "  external_id: \"{id}\"\n")
	tr.ledger.settle(t, checkpoint.Entry{Key: "known", State: checkpoint.Created}, checkpoint.Entry{Key: "half", State: checkpoint.Partial, LeadID: "l-1"})
	tr.sender, tr.Changed = nil, IgnoreChanged
	tr.carry(t.Context())
	want := report.Projected{Create: 2, Update: 3}
	must.Same(t, want, tr.dry.found().Projected, tr.outcomes())
	if n := len(tr.service.order) + tr.ledger.Info().InDoubt; n != 0 {
		t.Errorf("%d requests or intents in a dry run", n)
	}
}

func TestUnusedColumnsOfAllJSONLRowsAreListed(t *testing.T) {
	o := prepared(t, checkedMapping, Options{})
	path := filepath.Join(t.TempDir(), "a.jsonl")
	text := `{"id":"1","org":"o","name":"A","x":1}` + "\n" + `{"id":"2","org":"o","name":"B","y":1,"x":2}` + "\n"
	must.Do(t, os.WriteFile(path, []byte(text), 0o600))
	o.Inputs = []*source.File{opened(t, path, source.Options{})}
	s, err := Run(t.Context(), o)
	must.Do(t, err)
	var unused []string
	for _, p := range s.Checks.Found {
		unused = append(unused, p.Column)
	}
	must.Same(t, []string{"x", "y"}, unused)
}

// Validate, and an import that finds everything done, end millions of rows this way.
func TestRowThatIsNotSentAllocatesNothing(t *testing.T) {
	a := &run{intake: &intake{paths: []string{""}}, collector: collector{dry: newDryRun(&Options{}, nil), tally: newTally(1), limiter: &limiter{limits: new(delivery.Limits)}, handOver: func(*item) error { return nil }}}
	it := new(item)
	for _, step := range []Step{{Action: Create}, ends(Unchanged, "")} {
		it.ending = step.ending
		allocations := testing.AllocsPerRun(100, func() {
			for _, stop := range []*Stop{a.collect(it, it.ending), a.collect(it, it.ending)} {
				if stop != nil {
					t.Fatal(stop)
				}
			}
		})
		if allocations != 0 {
			t.Errorf("a row with step %v makes %v allocations, want none", step, allocations)
		}
	}
}

const provedMapping = checkedMapping + `    row: "{@file}:{@line} of {@run}"
tests:
  - row: {id: "7", org: o-1, stage: Known, name: Ann, email: ann@example.com}
    request: {organizationID: o-1, typeKey: t, typeLabel: T, status: contacted, content: {name: Ann, email: ann@example.com}}
`

// The mapping's tests are run, and one that fails needs attention.
func TestValidateRunsTheTestsOfTheMapping(t *testing.T) {
	good := validated(t, provedMapping, Options{}, checkedHeader+"1,o-1,,,Ann,\n")
	if good.Checks.Tests != 1 || len(good.Checks.Found) > 0 || good.ExitCode != 0 {
		t.Errorf("exit code %d, %+v", good.ExitCode, good.Checks)
	}
	bad := provedMapping + `  - row: {id: "8", zip: "01234", name: Ann}
    request: {locatorID: loc-1, locationSearch: {postalCode: "01235"}, typeKey: t, typeLabel: T, content: {name: Ann, zip: "01234"}}
  - row: {id: "9", org: o-1, name: "", email: ann}
    request: {}
`
	s := validated(t, bad, Options{}, checkedHeader+"1,o-1,,,Ann,\n")
	want := []report.Problem{
		{File: "m.yaml", Line: 21, Rule: "test", Text: `locationSearch.postalCode is "01234", not "01235"`},
		{File: "m.yaml", Line: 23, Rule: "test", Text: "the row is invalid: column name: lead.content.name is empty, but required; " +
			"column email: lead.content.email is not an e-mail address"},
	}
	must.Same(t, want, s.Checks.Found)
	if s.ExitCode != report.CodeAttention || s.Outcome != "attention" || s.Rows.Pending != 1 {
		t.Errorf("%s with %d, rows %+v", s.Outcome, s.ExitCode, s.Rows)
	}
}

func TestATestWhoseRowIsLeftOutFails(t *testing.T) {
	text := strings.Replace(provedMapping, "assign:", "skip_if: 'org == \"o-1\"'\nassign:", 1)
	s := validated(t, text, Options{}, checkedHeader+"1,o-1,,,Ann,\n2,o-2,,,Bob,\n,o-1,,,,\n")
	want := []report.Problem{{File: "m.yaml", Line: 20, Rule: "test", Text: "the row is left out by skip_if"}}
	must.Same(t, want, s.Checks.Found)
	if s.Rows.Skipped != 2 || s.Rows.Pending != 1 || s.Rows.Read != 3 || s.Checks.Projected.Create != 1 {
		t.Errorf("rows %+v, projected %+v", s.Rows, s.Checks.Projected)
	}
}
