package e2e

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/text/encoding/unicode"

	"leadferry/importer/report"
	"leadferry/internal/testsupport/must"
	"leadferry/leadapi/sandbox"
	"leadferry/mapping"
)

// edit replaces the line that matches a regular expression.
type edit struct{ line, by string }

// oneOrganization is the edit of a person who sends all leads to one dealer.
var oneOrganization = edit{`ID OF THE ORGANIZATION`, "assign: [{organization: 8a1e6f91-0951-4549-a823-213cb38eb51c}]"}

// nearest is the edit of a person who lets a locator choose.
var nearest = edit{`ID OF THE ORGANIZATION`, `assign: [{locator: 1946f580-3cae-445c-9069-80ba1f71f6fa, type: radius, search_text: "{Street}, {City}, {State}, {Country}"}]`}

// proposals are the files of the shared cases that init is tried on, with the number of their leads, the edit that the
// proposal needs, and some content of one lead.
var proposals = []struct {
	file  string
	rows  int
	edit  edit
	holds map[string]any
}{
	{"leads/salesforce-easy-spaces/Lead_Data.csv", 11, nearest, map[string]any{"street": "04666 Havey Plaza", "Title": "Founder, CTO", "name": "Lorrie Geratt"}},
	{"leads/salesforce-easy-spaces/Leads.json", 11, oneOrganization, map[string]any{"name": "Serena Patterfield", "postalCode": "92165"}},
	{"leads/salesforce-ecars/Leads.json", 1, oneOrganization, map[string]any{"phone": "1-222-505-424"}},
	{"leads/krayin/leads.csv", 2, oneOrganization, map[string]any{"title": "Need more information About Product -> CyberGuard Pro"}},
	{"csv-spectrum/csvs/comma_in_quotes.csv", 1, oneOrganization, map[string]any{"name": "John Doe", "city": "Anytown, WW", "postalCode": "08123"}},
}

// Each file imports with init's proposal after one edit.
func TestProposalsImportAfterOneEdit(t *testing.T) {
	t.Parallel()
	for _, test := range proposals {
		t.Run(test.file, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(cases(t), test.file)
			w := newWorld(t, sandbox.Options{})
			w.must(0, "init", file, "-m", "m.yaml")
			contains(t, w.must(1, "validate -m m.yaml", file), "assign is missing")
			w.edit("m.yaml", test.edit)
			w.must(0, "import -m m.yaml", file, "--out", "none")
			leads, err := w.service.Leads()
			if err != nil || len(leads) != test.rows {
				t.Fatalf("the service holds %d leads, want %d: %v", len(leads), test.rows, err)
			}
			if !slices.ContainsFunc(leads, func(l sandbox.Lead) bool {
				for k, v := range test.holds {
					if l.Content[k] != v {
						return false
					}
				}
				return true
			}) {
				t.Errorf("no lead holds %v", test.holds)
			}
		})
	}
}

// Where a proposal differs from the mapping in samples/exports, it marks a guess, and validate reports it.
func TestGuessesAreMarked(t *testing.T) {
	t.Parallel()
	for _, export := range exports {
		t.Run(export.name, func(t *testing.T) {
			t.Parallel()
			sample := filepath.Join(root(t), "samples", "exports", export.name)
			w := newWorld(t, sandbox.Options{})
			w.must(0, "init", sample+".csv", "-m", "m.yaml")
			w.edit("m.yaml", oneOrganization)
			w.guessesAreMarked(sample+".yaml", sample+".csv")
		})
	}
}

// guessesAreMarked compares the proposal m.yaml with the mapping that a person wrote for the same file: key, status,
// and content fields that both have.
func (w *world) guessesAreMarked(sample, file string) {
	w.t.Helper()
	var marks []string
	got, right := w.wouldSend("m.yaml", file, "--summary", "s.json"), w.wouldSend(sample, file)
	var named []report.Problem
	for _, p := range w.summary("s.json").Checks.Found {
		if p.Rule == "guess" {
			named = append(named, p)
		}
	}
	lines := strings.Split(w.read("m.yaml"), "\n")
	for i, g := range w.mapping("m.yaml").Unconfirmed {
		marks = append(marks, lines[g.Line-1])
		if i >= len(named) || named[i].Line != g.Line || named[i].Text != g.Text {
			w.t.Errorf("validate does not name the guess of line %d", g.Line)
		}
	}
	says := func(what, guess string) {
		for _, m := range marks {
			if strings.Contains(m, guess) {
				return
			}
		}
		w.t.Errorf("%s: the proposal has %q, the sample does not, and no mark names it:\n%s", what, guess, strings.Join(marks, "\n"))
	}
	if got, want := w.mapping("m.yaml").KeyForm(), w.mapping(sample).KeyForm(); got != want {
		says("key", "key: ")
	}
	if len(got) != len(right) {
		w.t.Fatalf("%d requests, want %d", len(got), len(right))
	}
	for i, g := range got {
		switch {
		case g.Status == right[i].Status:
		case g.Status == "":
			says("status", "the leads become New")
		default:
			says("status", ": "+g.Status+"  #")
		}
		for name := range maps.Keys(g.Content) {
			if want, both := right[i].Content[name]; both && g.Content[name] != want {
				says(name, name+": ")
			}
		}
	}
}

// guessed is the part of a request that a proposal may get wrong.
type guessed struct {
	Status  string         `json:"status"`
	Content map[string]any `json:"content"`
}

// wouldSend returns the requests that a mapping makes of the rows of a file.
func (w *world) wouldSend(name, file string, more ...string) (list []guessed) {
	w.t.Helper()
	for line := range strings.Lines(w.must(0, append([]string{"validate", "-m", name, file, "--show", "1000", "--quiet"}, more...)...)) {
		if strings.HasPrefix(line, "{") {
			var r guessed
			must.Do(w.t, json.Unmarshal([]byte(line), &r))
			list = append(list, r)
		}
	}
	return list
}

func (w *world) mapping(name string) *mapping.Mapping {
	w.t.Helper()
	if !filepath.IsAbs(name) {
		name = filepath.Join(w.dir, name)
	}
	text, err := os.ReadFile(name)
	must.Do(w.t, err)
	m, err := mapping.Parse(name, text, nil)
	must.Do(w.t, err)
	return m
}

// edit changes a line of a file as a person would in an editor.
func (w *world) edit(name string, e edit) {
	w.t.Helper()
	lines := strings.Split(w.read(name), "\n")
	i := slices.IndexFunc(lines, regexp.MustCompile(e.line).MatchString)
	if i < 0 {
		w.t.Fatalf("the proposal has no line like %s:\n%s", e.line, strings.Join(lines, "\n"))
	}
	lines[i] = e.by
	w.write(name, strings.Join(lines, "\n"))
}

// init never skips a first row that it cannot read, since that may be the header and the next row a lead. It names the
// encoding, the NUL or the quote.
func TestInitNeverSkipsALineThatItCannotRead(t *testing.T) {
	t.Parallel()
	leads := strings.Repeat("Anna Muster;Weg 1;Ulm\n", 20)
	w := newWorld(t, sandbox.Options{})
	const header = "Name;Street;City\n"
	utf16, err := unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM).NewEncoder().String("Name;Straße;Ort\n" + leads)
	must.Do(t, err)
	for text, says := range map[string]string{
		"Name;Stra\xdfe;Ort\n" + leads:              `(?m)^hint: .*--encoding windows-1252 .*UTF-8`,
		"Leads f\xfcr M\xfcller\n" + header + leads: `(?m)^hint: .*--encoding windows-1252 .*UTF-8`,
		utf16:                           `(?m)^hint: .*--encoding utf-16le`,
		header + "A\x00;b;c\n" + leads:  `NUL`,
		"Name;\"Street;City\n" + leads:  `quote`,
		header + "A;\"b\"x;c\n" + leads: `quote`,
	} {
		w.write("leads.csv", text)
		out := w.must(2, "init leads.csv")
		if _, err := os.Stat(filepath.Join(w.dir, "leads.yaml")); err == nil || !regexp.MustCompile(says).MatchString(out) {
			t.Errorf("%.40q: %v, and it says:\n%swant %s", text, err, out, says)
		}
	}
	// With --encoding, init reads all leads, also below a blank line or a title.
	for name, text := range map[string]string{"blank": "\n;;\nName;Stra\xdfe;Ort\n", "titled": "Leads f\xfcr M\xfcller\n;;\nName;Stra\xdfe;Ort\n"} {
		w.write(name+".csv", text+leads)
		contains(t, w.must(0, "init", name+".csv", "--encoding", "windows-1252"), "20 rows read (the whole file)")
		contains(t, w.read(name+".yaml"), "{Straße}")
	}
}

// exports are the exports of CRMs in samples/exports: how many leads each holds, edits in the CRM that do not make
// another lead, and a word of the mapping's status table with its status.
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

// Each export in samples/exports imports with its mapping. After edits in the CRM, also of source and address, another
// import makes no lead. All exports of the folder are in the table.
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
			must.Do(t, err)
			w := newWorld(t, sandbox.Options{})
			w.must(0, "import -m", mapping, file, "--out", "none", "--summary", "s.json")
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
			w.must(1, "import -m", mapping, "edited.csv", "--out", "none", "--summary", "s.json")
			s := w.summary("s.json")
			if s.Rows.Changed == 0 || s.Rows.Changed+s.Rows.Unchanged != export.leads || s.Requests.Create != 0 {
				t.Errorf("after edits in the CRM: %+v, %d creates", s.Rows, s.Requests.Create)
			}
		})
	}
}
