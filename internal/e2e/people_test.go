package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"leadferry/leadapi/sandbox"
)

var printed = regexp.MustCompile(`(?m)^ {5,}(leadferry .*)$`)

// paste has a shell carry out a command as it was printed.
func (w *world) paste(line string) (code int, out string) {
	w.t.Helper()
	c := exec.Command("sh", "-c", line)
	c.Dir, c.Env = w.dir, append(w.env, "PATH="+filepath.Dir(binary())+":"+os.Getenv("PATH"))
	b, _ := c.CombinedOutput()
	w.keep([]string{line}, string(b))
	return c.ProcessState.ExitCode(), string(b)
}

// TestPrintedCommandsArePastedAsTheyStand: what a run prints under Next, unedited, in
// order, backwards and twice, makes no lead twice, and frees no row in doubt. faults 127
func TestPrintedCommandsArePastedAsTheyStand(t *testing.T) {
	t.Parallel()
	for _, order := range []string{"in order", "backwards"} {
		t.Run(order, func(t *testing.T) {
			w := newWorld(t, sandbox.Options{Faults: "drop-stored/5,422/7"})
			w.leads(40)
			code, out := w.run("import", "-m", "leads.yaml", "leads.csv", "--out", "run", "--checkpoint", "own.db", "-c", "1", "--max-in-doubt", "0")
			if code != 5 {
				t.Fatalf("exit %d\n%s", code, out)
			}
			doubts := w.doubts("own.db")
			var lines []string
			for _, m := range printed.FindAllStringSubmatch(out, -1) {
				lines = append(lines, m[1])
			}
			if len(lines) != 2 || doubts == 0 {
				t.Fatalf("%d in doubt, printed: %q", doubts, lines)
			}
			if order == "backwards" {
				slices.Reverse(lines)
			}
			for _, line := range slices.Concat(lines, lines) {
				if code, out := w.paste(line); strings.Contains(line, " resolve ") && code != 2 {
					t.Errorf("%s: exit %d\n%s", line, code, out)
				}
			}
			w.run("import", "-m", "leads.yaml", "leads.csv", "--out", "none", "--checkpoint", "own.db")
			w.byRef()
			if now := w.doubts("own.db"); now < doubts {
				t.Errorf("%d in doubt, %d before", now, doubts)
			}
			if _, err := os.Stat(filepath.Join(w.dir, "state", "leadferry")); err == nil {
				if files, _ := filepath.Glob(filepath.Join(w.dir, "state", "leadferry", "*.db")); len(files) > 0 {
					t.Errorf("another checkpoint was begun: %q", files)
				}
			}
		})
	}
}

func (w *world) doubts(checkpoint string) int {
	w.t.Helper()
	out := w.must(0, "checkpoint", "export", "--state", "in_doubt", "--checkpoint", checkpoint)
	return strings.Count(out, ",in_doubt,")
}

// TestASettledRowIsLinked: the next import links what a person found, though the link of a
// wrong lead was refused before, and the lead that comes back fills what was not known.
// Exports tell by which run a lead was made. faults 127
func TestASettledRowIsLinked(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sandbox.Options{Faults: "drop-stored#1"})
	w.write("leads.csv", "id,city\nA,Newark\nB,Newark\n")
	w.write("leads.yaml", `version: 1
key: "{id}"
assign:
  - {locator: `+sandbox.MixedLocatorID+`, type: regions-radius, search_text: "{city}, NJ"}
lead: {type_key: contact-form, type_label: Contact form, external_id: "{id}", content: {importRef: "{@key}"}}
`)
	run := []string{"import", "-m", "leads.yaml", "leads.csv", "--out", "none", "-c", "1"}
	w.must(5, append(run, "--summary", "first.json")...)
	w.write("wrong.csv", "key,lead_id\nA,00000000-0000-4000-8000-000000000001\n")
	w.must(0, "checkpoint", "resolve", "wrong.csv")
	w.must(1, run...) // 404
	w.write("right.csv", "key,lead_id\nA,"+w.byRef()["A"]+"\n")
	if out := w.must(0, "checkpoint", "resolve", "right.csv"); !strings.Contains(out, "1 of these had been decided otherwise") {
		t.Error(out)
	}
	w.must(0, append(run, "--summary", "last.json")...)
	lead, first, last := w.exported("")[0], w.summary("first.json"), w.summary("last.json")
	if lead["state"] != "created" || lead["lead_id"] != w.byRef()["A"] || lead["external_id"] != "A" || lead["organization_id"] == "" || lead["location"] == "" || lead["status"] != "open" {
		t.Errorf("%v", lead)
	}
	out := w.must(0, "checkpoint", "history", "A")
	for _, text := range []string{"sent, in doubt, leads.csv:2, by locator " + sandbox.MixedLocatorID, "decided by a person: it is lead 0000", "corrected by a person", "HTTP 404", "ExternalID linked"} {
		if !strings.Contains(out, text) {
			t.Errorf("the history lacks %q:\n%s", text, out)
		}
	}
	for id, want := range map[string]int{first.RunID: 2, last.RunID: 0} {
		if out := w.must(0, "checkpoint", "export", "--created-by", id); strings.Count(out, ",created,") != want {
			t.Errorf("made by %s:\n%s", id, out)
		}
	}
}

// TestPagesPastedMakeNoLeadTwice: whoever has leads, and pastes what our pages show without what they have prepared
// unseen, twice or from the last line to the first, makes none of them twice. faults 127
func TestPagesPastedMakeNoLeadTwice(t *testing.T) {
	t.Parallel()
	for _, page := range []string{"README.md", "docs/import.md", "docs/runbooks.md", "docs/scripting.md"} {
		text, err := os.ReadFile(filepath.Join(root(t), page))
		if err != nil {
			t.Fatal(err)
		}
		steps := slices.DeleteFunc(stepsOf(string(text)), func(s pageStep) bool { return s.kind != "command" })
		backwards := slices.Clone(steps)
		slices.Reverse(backwards)
		for order, steps := range map[string][]pageStep{"twice": slices.Concat(steps, steps), "backwards": backwards} {
			t.Run(filepath.Base(page)+" "+order, func(t *testing.T) {
				t.Parallel()
				r := newReader(t, "")
				r.must("cp samples/leads.yaml samples/leads.csv samples/crm.yaml samples/crm-export.csv .; leadferry import -m leads.yaml leads.csv --quiet")
				for _, s := range steps {
					r.run(s.text, 0)
				}
				r.oneOfEach(200)
			})
		}
	}
}

// oneOfEach fails unless the service holds one lead of each row.
func (r *reader) oneOfEach(rows int) {
	r.Helper()
	leads, err := r.service.Load().Leads()
	if err != nil {
		r.Fatal(err)
	}
	refs := map[any]bool{}
	for _, l := range leads {
		refs[l.Content["importRef"]] = true
	}
	if len(leads) != rows || len(refs) != rows {
		r.Errorf("%d leads of %d rows, want %d", len(leads), len(refs), rows)
	}
}
