package mapping

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestANamespaceStandsBeforeTheKey(t *testing.T) {
	row := cells{"id", " 7 "}
	for file, want := range map[string]Record{
		"key: '{id}'\nlead: {external_id: 'x{id}', content: {ref: '{@key}'}}\n": {
			Key: "dealers\x1f7", ExternalID: "x 7", Content: []Field{{Name: "ref", Value: "7"}},
		},
		"lead: {external_id: '{id}'}\n": {Key: "dealers\x1f7", ExternalID: "7"},
		"":                              {Key: "dealers\x1frow-1ee7b1ea4d8e0f1b"},
	} {
		rec, problems := row.in(t, "version: 1\nnamespace: dealers\n"+file)
		if file == "" {
			plain, _ := row.in(t, "version: 1\n")
			want.Key = "dealers\x1f" + plain.Key
		}
		if len(rec.Content) == 0 {
			rec.Content = nil
		}
		if diff := cmp.Diff(want, rec); diff != "" || problems != nil {
			t.Errorf("%q: %v, record (-want +got):\n%s", file, problems, diff)
		}
	}
	rec, problems := cells{"id", ""}.in(t, "version: 1\nnamespace: dealers\nkey: '{id}'\n")
	if rec.Key != "" || len(problems) != 1 || problems[0].Rule != "key" {
		t.Errorf("an empty key: %q %v", rec.Key, problems)
	}
}

// faults 98
func TestALeadIDMustFitIntoAPath(t *testing.T) {
	file := "version: 1\nlead_id: '{id}'\n"
	if !parse(t, file).HasLeadID() || parse(t, "version: 1\n").HasLeadID() {
		t.Error("HasLeadID is wrong")
	}
	for id, ok := range map[string]bool{
		"0b1c2d3e-0000-4000-8000-000000000001": true, " a.b_c ": true, "": true, "...a": true, strings.Repeat("a", 128): true,
		".": false, "..": false, "a/b": false, "%2f": false, "a b": false, "a?b": false, "ä": false, "a\nb": false, strings.Repeat("a", 129): false,
	} {
		rec, problems := cells{"id", id}.in(t, file)
		if ok && (problems != nil || rec.LeadID != strings.TrimSpace(id)) {
			t.Errorf("%q: %q %v", id, rec.LeadID, problems)
		}
		if !ok && (rec.LeadID != "" || len(problems) != 1 || problems[0].Rule != "lead_id" || problems[0].Column != "id" ||
			problems[0].Text != "lead_id cannot be the ID of a lead: that takes 1 to 128 letters, digits, dots, underscores and hyphens") {
			t.Errorf("%q: %q %v, want a problem", id, rec.LeadID, problems)
		}
	}
}

// faults 102
func TestAStatusThatIsNoneIsTold(t *testing.T) {
	long := strings.Repeat("ä", 2000)
	for file, want := range map[string]Problem{
		"lead: {status: '{s}'}\n":                                       {Column: "s", Rule: "status", Text: "lead.status is neither a status of the service nor mapped to one", Word: "Open - Not Contacted", Value: "lead.status"},
		"lead: {status: {from: '{s}', map: {W: open}}}\n":               {Column: "s", Rule: "map", Text: "lead.status has a text that its map lacks, and there is no else", Word: "Open - Not Contacted", Value: "lead.status"},
		"lead: {status: {from: '{s}', map: {W: open}, else: '<{}>'}}\n": {Column: "s", Rule: "status", Text: "lead.status is neither a status of the service nor mapped to one", Word: "<Open - Not Contacted>", Value: "lead.status"},
		"lead: {content: {a: {from: '{s}', map: {W: open}}}}\n":         {Column: "s", Rule: "map", Text: "lead.content.a has a text that its map lacks, and there is no else", Word: "Open - Not Contacted", Value: "lead.content.a"},
	} {
		_, problems := cells{"s", "Open - Not Contacted"}.in(t, "version: 1\n"+file)
		if diff := cmp.Diff([]Problem{want}, problems); diff != "" {
			t.Errorf("%q: problems (-want +got):\n%s", file, diff)
		}
	}
	_, problems := cells{"s", long}.in(t, "version: 1\nlead: {status: '{s}'}\n")
	if len(problems) != 1 || len(problems[0].Word) > 300 {
		t.Error("a long word is told whole")
	}
}

func TestATextThatDoesNotFitAStepIsAProblem(t *testing.T) {
	file := "version: 1\nlead: {content: {p: {from: '{p}', apply: [squeeze, 'e164:DE'], required: true}}}\n"
	_, problems := cells{"p", "secret"}.in(t, file)
	want := []Problem{{Column: "p", Rule: "apply", Text: "lead.content.p does not fit the step e164:DE of its apply"}}
	if diff := cmp.Diff(want, problems); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
	_, problems = cells{"p", ""}.in(t, file)
	if len(problems) != 1 || problems[0].Rule != "required" {
		t.Errorf("an empty text: %v, want it required", problems)
	}
}

func TestAssignLooksAtTheColumnsOfExpressions(t *testing.T) {
	file := `
version: 1
assign:
  - organization: {expr: 'country == "DE" ? org : upper(org)'}
  - locator: L1
    type: regions-radius
    search_text: {expr: 'street + " " + city'}
  - locator: L2
    type: regions
    postal_code: {expr: 'zip[:3]', default: "000"}
`
	for _, tt := range []struct {
		row  cells
		want Record
	}{
		{cells{"country", "AT", "org", "o", "street", "S", "city", "C", "zip", ""}, Record{Entry: 1, Organization: "O"}},
		{cells{"country", "", "org", "o", "street", "S", "city", "C", "zip", ""}, Record{Entry: 2, Locator: "L1", SearchText: "S C"}},
		{cells{"country", "", "org", "", "street", "", "city", "C", "zip", "12345"}, Record{Entry: 3, Locator: "L2", PostalCode: "123"}},
		{cells{"country", "", "org", "", "street", "", "city", "C", "zip", ""}, Record{Entry: 3, Locator: "L2", PostalCode: "000"}},
	} {
		rec, problems := tt.row.in(t, file)
		tt.want.Key = rec.Key
		if diff := cmp.Diff(tt.want, rec); diff != "" || problems != nil {
			t.Errorf("%v, record (-want +got):\n%s", problems, diff)
		}
	}
}

func TestSearchedOnly(t *testing.T) {
	m := parse(t, `
version: 1
key: "{id}"
assign:
  - organization: "{org}"
  - locator: "L-{country}"
    type: radius
    search_text: {expr: 'street + city'}
  - locator: L
    type: regions
    postal_code: "{zip} {street}"
lead: {content: {town: "{city}", "*": rest}}
`)
	if diff := cmp.Diff([]string{"street", "zip"}, m.SearchedOnly()); diff != "" {
		t.Errorf("columns (-want +got):\n%s", diff)
	}
}

func TestPathsOfExpressionsAreKnown(t *testing.T) {
	m := parse(t, "version: 1\nskip_if: 'a.b == \"\"'\nkey: '{a.0}'\nlead: {content: {x: {expr: 'list[1].c + d + a.b'}}}\n")
	if diff := cmp.Diff([]string{"a.b", "a.0", "list.1.c"}, m.Paths()); diff != "" {
		t.Errorf("paths (-want +got):\n%s", diff)
	}
}

func TestSourceTakesEveryEncodingByAnyLabel(t *testing.T) {
	for label, want := range map[string]string{
		"latin1": "windows-1252", "ISO-8859-2": "iso-8859-2", "unicode": "utf-16le", "Shift_JIS": "shift_jis", "' gbk '": "gbk", "UTF8": "utf-8",
	} {
		if got := parse(t, "version: 1\nsource: {encoding: "+label+"}\n").Source.Encoding; got != want {
			t.Errorf("%s: %s, want %s", label, got, want)
		}
	}
	want := Source{Format: "xlsx", Sheet: " Leads 2"}
	if diff := cmp.Diff(want, parse(t, "version: 1\nsource: {format: xlsx, sheet: ' Leads 2'}\n").Source); diff != "" {
		t.Errorf("source (-want +got):\n%s", diff)
	}
}
