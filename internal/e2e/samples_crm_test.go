package e2e

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"leadferry/leadapi/sandbox"
)

// exports are the exports of CRMs in samples/exports, each with its mapping beside it,
// how many leads it holds, what people edit in a CRM without the lead being another one,
// and a word of the status table with its status.
var exports = []struct {
	name         string
	leads        int
	edits        []string // texts and what they become, alternating
	word, status string
}{
	{"salesforce-report", 8, []string{"@example.", "@moved.example.", `"Web"`, `"Fair"`}, `"Closed - Not Converted"`, "closedNotInterested"},
	{"salesforce-dataloader", 8, []string{"@example.", "@moved.example.", `"Web"`, `"Fair"`}, `"Working - Contacted"`, "inProgress"},
	{"hubspot", 8, []string{"@example.", "@moved.example.", `"Organic Search"`, `"Referrals"`}, `"Bad Timing"`, "onHold"},
	{"pipedrive", 8, []string{"@example.", "@moved.example.", "Website", "Fair", "Hot", "Cold"}, "", ""},
	{"zoho", 8, []string{"@example.", "@moved.example.", "Web Download", "Fair"}, "Contact in Future", "onHold"},
	{"dynamics", 8, []string{"@example.", "@moved.example.", "Web", "Fair", "/1abc==", "/2abc=="}, "No Longer Interested", "closedNotInterested"},
	{"freshsales", 8, []string{"@example.", "@moved.example.", "Organic Search", "Fair"}, "Under Review", "inProgress"},
	{"copper", 8, []string{"@example.", "@moved.example.", "Advertising", "Fair"}, "Junk", "closedNotInterested"},
	{"sugarcrm", 8, []string{"@example.", "@moved.example.", `"Web Site"`, `"Fair"`}, "Recycled", "onHold"},
	{"odoo", 8, []string{"@example.", "@moved.example.", "Search engine", "Fair"}, "Proposition", "inProgress"},
	{"bitrix24", 6, []string{"@example.", "@moved.example.", "Веб-сайт", "Выставка"}, `"Некачественный лид"`, "closedNotInterested"},
	{"krayin", 8, []string{"Two vans", "Three vans", ",1,1,1,", ",4,1,1,", ",1,7,1,", ",1,7,3,"}, "", ""},
}

// TestSamplesOfCRMs imports each export with its mapping. When its rows are edited in the
// CRM afterwards, source and address too, no lead is made a second time. Every export of the
// folder is in the table.
func TestSamplesOfCRMs(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(root(t), "samples", "exports")
	files, err := filepath.Glob(filepath.Join(folder, "*"))
	if err != nil || len(files) != 2*len(exports) {
		t.Fatalf("%d files for %d exports: %v", len(files), len(exports), err)
	}
	for _, export := range exports {
		t.Run(export.name, func(t *testing.T) {
			t.Parallel()
			file, mapping := filepath.Join(folder, export.name+".csv"), filepath.Join(folder, export.name+".yaml")
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			w := newWorld(t, sandbox.Options{})
			w.must(0, "import", "-m", mapping, file, "--out", "none", "--summary", "s.json")
			leads, err := w.service.Leads()
			if err != nil || len(leads) != export.leads {
				t.Fatalf("the service holds %d leads, want %d: %v", len(leads), export.leads, err)
			}
			if n := bytes.Count(text, []byte(export.word)); export.word != "" {
				for _, l := range leads {
					if l.Status == export.status {
						n--
					}
				}
				if n > 0 {
					t.Errorf("%d leads of status %s are missing", n, export.status)
				}
			}
			edited := strings.NewReplacer(export.edits...).Replace(string(text))
			for old := range slices.Chunk(export.edits, 2) {
				if !strings.Contains(string(text), old[0]) {
					t.Errorf("nothing to edit: %s", old[0])
				}
			}
			w.write("edited.csv", edited)
			w.must(1, "import", "-m", mapping, "edited.csv", "--out", "none", "--summary", "s.json")
			s := w.summary("s.json")
			if s.Rows.Changed == 0 || s.Rows.Changed+s.Rows.Unchanged != export.leads || s.Requests.Create != 0 {
				t.Errorf("after edits in the CRM: %+v, %d creates", s.Rows, s.Requests.Create)
			}
		})
	}
}
