package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"leadferry/internal/testsupport/must"
	"leadferry/leadapi/sandbox"
)

// paste runs a printed command in a shell.
func (w *world) paste(line string) (code int, out string) {
	w.t.Helper()
	c := exec.Command("sh", "-c", line)
	c.Dir, c.Env = w.dir, append(w.env, "PATH="+filepath.Dir(binary())+":"+os.Getenv("PATH"))
	b, _ := c.CombinedOutput()
	w.keep([]string{line}, string(b))
	return c.ProcessState.ExitCode(), string(b)
}

// After a person has settled a row, the next import links its lead, also if an earlier link of a wrong lead was
// refused, and stores what the answer says of the lead. Exports can select leads by the run that made them. faults 127
func TestNextImportLinksASettledRow(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sandbox.Options{Faults: "drop-stored#1"})
	w.write("leads.csv", "id,city\nA,Newark\nB,Newark\n")
	w.write("leads.yaml", `version: 1
key: "{id}"
assign:
  - {locator: `+sandbox.MixedLocatorID+`, type: regions-radius, search_text: "{city}, NJ"}
lead: {type_key: contact-form, type_label: Contact form, external_id: "{id}", content: {importRef: "{@key}"}}
`)
	run := words("import -m leads.yaml leads.csv --out none -c 1")
	w.must(5, append(run, "--summary", "first.json")...)
	w.write("wrong.csv", "key,lead_id\nA,00000000-0000-4000-8000-000000000001\n")
	w.must(0, "checkpoint resolve wrong.csv")
	w.must(1, run...) // 404
	w.write("right.csv", "key,lead_id\nA,"+w.byRef()["A"]+"\n")
	if out := w.must(0, "checkpoint resolve right.csv"); !strings.Contains(out, "1 of these had been decided") {
		t.Error(out)
	}
	w.must(0, append(run, "--summary", "last.json")...)
	lead, first, last := w.exported("")[0], w.summary("first.json"), w.summary("last.json")
	if lead["state"] != "created" || lead["lead_id"] != w.byRef()["A"] || lead["external_id"] != "A" || lead["organization_id"] == "" || lead["location"] == "" || lead["status"] != "open" {
		t.Errorf("%v", lead)
	}
	out := w.must(0, "checkpoint history A")
	for _, text := range []string{"sent, in doubt, leads.csv:2, by locator " + sandbox.MixedLocatorID, "decided by a person: it is lead 0000", "HTTP 404", "ExternalID linked"} {
		if !strings.Contains(out, text) {
			t.Errorf("the history lacks %q:\n%s", text, out)
		}
	}
	for id, want := range map[string]int{first.RunID: 2, last.RunID: 0} {
		if out := w.must(0, "checkpoint export --created-by", id); strings.Count(out, ",created,") != want {
			t.Errorf("made by %s:\n%s", id, out)
		}
	}
}

// A person with leads pastes all commands of a page, without its hidden preparations, and again from the last to the
// first. No lead is made twice. faults 127
func TestPagesPastedMakeNoLeadTwice(t *testing.T) {
	t.Parallel()
	for _, page := range []string{
		"README.md", "docs/connection.md", "docs/finishing.md", "docs/getting-started.md", "docs/import.md", "docs/nightly.md",
		"docs/runbooks.md", "docs/scripting.md",
	} {
		text, err := os.ReadFile(filepath.Join(root(t), page))
		must.Do(t, err)
		steps := slices.DeleteFunc(stepsOf(string(text)), func(s pageStep) bool { return s.kind != "command" })
		backwards := slices.Clone(steps)
		slices.Reverse(backwards)
		t.Run(filepath.Base(page), func(t *testing.T) {
			t.Parallel()
			r := newReader(t, "")
			r.must("cp samples/leads.yaml samples/leads.csv samples/crm.yaml samples/crm-export.csv .; leadferry import -m leads.yaml leads.csv --quiet")
			for _, s := range slices.Concat(steps, backwards) {
				r.run(s.text, 0)
			}
			r.oneOfEach(200)
		})
	}
}

// oneOfEach fails unless the service holds one lead of each row.
func (r *reader) oneOfEach(rows int) {
	r.Helper()
	leads, err := r.service.Load().Leads()
	must.Do(r, err)
	refs := map[any]bool{}
	for _, l := range leads {
		refs[l.Content["importRef"]] = true
	}
	if len(leads) != rows || len(refs) != rows {
		r.Errorf("%d leads of %d rows, want %d", len(leads), len(refs), rows)
	}
}

// desk is a folder with the samples' mapping and rows as leads/leads.yaml and
// leads/leads.csv, and the program in the search path.
type desk struct {
	t   *testing.T
	dir string
}

func newDesk(t *testing.T) *desk {
	d := &desk{t, t.TempDir()}
	d.write("leads/leads.yaml", sampleText(t, "leads.yaml"))
	d.write("leads/leads.csv", sampleText(t, "leads.csv"))
	return d
}

func (d *desk) write(name, text string) {
	d.t.Helper()
	path := filepath.Join(d.dir, name)
	must.Do(d.t, os.MkdirAll(filepath.Dir(path), 0o700))
	must.Do(d.t, os.WriteFile(path, []byte(text), 0o700))
}

// spoil breaks a row of leads.csv.
func (d *desk) spoil() {
	d.write("leads/leads.csv", strings.Replace(sampleText(d.t, "leads.csv"), "@example.com", " at example.com", 1))
}

// sh runs a line of a script and says whether it ended well.
func (d *desk) sh(line string) (ok bool, out string) {
	d.t.Helper()
	c := exec.Command("sh", "-ec", line)
	c.Dir = d.dir
	c.Env = append(os.Environ(), "PATH="+filepath.Dir(binary())+":"+os.Getenv("PATH"), "XDG_STATE_HOME="+d.dir, "XDG_CONFIG_HOME="+d.dir,
		"HOME="+d.dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=x", "GIT_AUTHOR_EMAIL=x@example.com", "GIT_COMMITTER_NAME=x", "GIT_COMMITTER_EMAIL=x@example.com")
	b, err := c.CombinedOutput()
	return err == nil, string(b)
}

// The CI jobs in samples pass with good rows and report a broken row: GitHub's as an annotation of the file, GitLab's
// in a list that it keeps.
func TestCIJobsReportABrokenRow(t *testing.T) {
	t.Parallel()
	var github struct {
		Jobs map[string]struct{ Steps []struct{ Uses, Run string } }
	}
	var gitlab map[string]struct {
		Script    []string
		Artifacts struct{ Paths []string }
	}
	for name, into := range map[string]any{"ci/github.yaml": &github, "ci/gitlab.yaml": &gitlab} {
		must.Do(t, yaml.Unmarshal([]byte(sampleText(t, name)), into))
	}
	job := gitlab["validate-leads"]
	for script, reported := range map[string]string{
		github.Jobs["validate"].Steps[1].Run: "::error file=leads/leads.csv,title=format,line=2::column email: ",
		job.Script[0]:                        "leads/leads.csv,2,1,email,format,",
	} {
		script += " || { cat problems.csv; exit 1; }"
		d := newDesk(t)
		d.write("problems.csv", "")
		if ok, out := d.sh(script); !ok {
			t.Errorf("the samples fail:\n%s", out)
		}
		d.spoil()
		if ok, out := d.sh(script); ok || !strings.Contains(out, reported) {
			t.Errorf("a broken row:\n%s", out)
		}
	}
	if len(job.Artifacts.Paths) != 1 || job.Artifacts.Paths[0] != "problems.csv" {
		t.Errorf("GitLab keeps %q", job.Artifacts.Paths)
	}
}

// The hook accepts good rows and refuses broken ones that are staged, also if the file on disk is good again.
func TestPreCommitHookRefusesABrokenRow(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git")
	}
	d := newDesk(t)
	must := func(line string) {
		t.Helper()
		if ok, out := d.sh(line); !ok {
			t.Fatalf("%s:\n%s", line, out)
		}
	}
	must("git init -q . && mkdir -p .git/hooks")
	d.write(".git/hooks/pre-commit", sampleText(t, "ci/pre-commit"))
	must("git add leads && git commit -qm good")
	d.spoil()
	must("git add leads")
	d.write("leads/leads.csv", sampleText(t, "leads.csv"))
	if ok, out := d.sh("git commit -qm bad"); ok || !strings.Contains(out, "1 of 200 rows needs attention") {
		t.Errorf("a broken row:\n%s", out)
	}
	must("git reset -q --hard && echo x > other && git add other && git commit -qm other")
}
