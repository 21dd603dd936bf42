package importer

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"leadferry/importer/report"
)

const provedMapping = checkedMapping + `    row: "{@file}:{@line} of {@run}"
tests:
  - row: {id: "7", org: o-1, stage: Known, name: Ann, email: ann@example.com}
    request: {organizationID: o-1, typeKey: t, typeLabel: T, status: contacted, content: {name: Ann, email: ann@example.com}}
`

// The mapping's tests are run before any row; one that fails needs attention.
func TestValidateRunsTheTestsOfTheMapping(t *testing.T) {
	good := validated(t, provedMapping, Options{}, checkedHeader+"1,o-1,,,Ann,\n")
	if diff := cmp.Diff(report.Tests{Run: 1}, good.Checks.Tests); diff != "" || good.ExitCode != 0 {
		t.Errorf("exit code %d, -want +got:\n%s", good.ExitCode, diff)
	}
	bad := provedMapping + `  - row: {id: "8", zip: "01234", name: Ann}
    request: {locatorID: loc-1, locationSearch: {postalCode: "01235"}, typeKey: t, typeLabel: T, content: {name: Ann, zip: "01234"}}
  - row: {id: "9", org: o-1, name: "", email: ann}
    request: {}
`
	s := validated(t, bad, Options{}, checkedHeader+"1,o-1,,,Ann,\n")
	want := report.Tests{Run: 3, Failed: 2, Failures: []report.Fault{
		{File: "m.yaml", Line: 21, Column: 5, Differences: []string{`locationSearch.postalCode is "01234", not "01235"`}},
		{File: "m.yaml", Line: 23, Column: 5, Differences: []string{
			"the row is invalid: column name: lead.content.name is empty, but required",
			"the row is invalid: column email: lead.content.email is not an e-mail address",
		}},
	}}
	if diff := cmp.Diff(want, s.Checks.Tests); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if s.ExitCode != CodeAttention || s.Outcome != "attention" || s.Rows.Pending != 1 {
		t.Errorf("%s with %d, rows %+v", s.Outcome, s.ExitCode, s.Rows)
	}
}

func TestATestWhoseRowIsLeftOutFails(t *testing.T) {
	text := strings.Replace(provedMapping, "assign:", "skip_if: 'org == \"o-1\"'\nassign:", 1)
	s := validated(t, text, Options{}, checkedHeader+"1,o-1,,,Ann,\n2,o-2,,,Bob,\n,o-1,,,,\n")
	want := []report.Fault{{File: "m.yaml", Line: 20, Column: 5, Differences: []string{"the row is left out by skip_if"}}}
	if diff := cmp.Diff(want, s.Checks.Tests.Failures); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if s.Rows.Skipped != 2 || s.Rows.Pending != 1 || s.Rows.Read != 3 || s.Checks.Projected.Create != 1 {
		t.Errorf("rows %+v, projected %+v", s.Rows, s.Checks.Projected)
	}
}
