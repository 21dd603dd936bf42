package e2e

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"leadferry/leadapi/sandbox"
)

// maxEdits is how many lines of a proposal a person may have to touch.
const maxEdits = 5

// edit replaces the line that matches.
type edit struct{ line, by string }

// oneOrganization is what a person decides who sends all leads to one dealer.
var oneOrganization = edit{`ID OF THE ORGANIZATION`, "assign: [{organization: 8a1e6f91-0951-4549-a823-213cb38eb51c}]"}

// TestInit imports the lead files of CRMs with the mapping that init proposes, after
// no more edits than a person would put up with; the service's ledger is the judge.
func TestInit(t *testing.T) {
	files := filepath.Join(cases(t), "leads")
	tests := []struct {
		file  string
		rows  int
		edits []edit
		holds map[string]any // the content of some lead
	}{
		{
			"salesforce-easy-spaces/Lead_Data.csv", 11,
			[]edit{{`type: radius`, `assign: [{locator: 1946f580-3cae-445c-9069-80ba1f71f6fa, type: radius, search_text: "{Street}, {City}, {State}, {Country}"}]`}},
			map[string]any{"street": "04666 Havey Plaza", "Title": "Founder, CTO", "name": "Lorrie Geratt"},
		},
		{
			"salesforce-easy-spaces/Leads.json", 11,
			[]edit{oneOrganization},
			map[string]any{"name": "Serena Patterfield", "postalCode": "92165"},
		},
		{"salesforce-ecars/Leads.json", 1, []edit{oneOrganization}, map[string]any{"phone": "1-222-505-424"}},
		{
			"krayin/leads.csv", 2,
			[]edit{oneOrganization, {`^  # status: `, `  status: {from: "{status}", map: {"1": open}}`}},
			map[string]any{"title": "Need more information About Product -> CyberGuard Pro"},
		},
	}
	for _, test := range tests {
		t.Run(test.file, func(t *testing.T) {
			w := newWorld(t, sandbox.Options{})
			file := filepath.Join(files, test.file)
			w.must(0, "init", file, "-m", "m.yaml")
			w.must(2, "init", file, "-m", "m.yaml") // nothing is overwritten
			// What only a person can decide is named, and nothing else is wrong.
			if out := w.must(1, "validate", "-m", "m.yaml", file); !strings.Contains(out, "assign is missing") || strings.Contains(out, "invalid") {
				t.Errorf("validate of the proposal says:\n%s", out)
			}
			w.edit("m.yaml", test.edits)
			w.must(0, "validate", "-m", "m.yaml", file)
			w.must(0, "import", "-m", "m.yaml", file, "--out", "none")
			leads, err := w.service.Leads()
			if err != nil {
				t.Fatal(err)
			}
			if len(leads) != test.rows {
				t.Errorf("the service holds %d leads, want %d", len(leads), test.rows)
			}
			found := false
			for _, l := range leads {
				has := true
				for k, v := range test.holds {
					has = has && l.Content[k] == v
				}
				found = found || has
			}
			if !found {
				t.Errorf("no lead holds %v", test.holds)
			}
		})
	}
}

// edit changes lines of a file as a person would in an editor.
func (w *world) edit(name string, edits []edit) {
	w.t.Helper()
	if len(edits) > maxEdits {
		w.t.Fatalf("%d edits are too many", len(edits))
	}
	lines := strings.Split(w.read(name), "\n")
	for _, e := range edits {
		at, found := regexp.MustCompile(e.line), 0
		for i, line := range lines {
			if at.MatchString(line) && found == 0 {
				lines[i] = e.by
				found++
			}
		}
		if found == 0 {
			w.t.Fatalf("the proposal has no line like %s:\n%s", e.line, strings.Join(lines, "\n"))
		}
	}
	w.write(name, strings.Join(lines, "\n"))
}
