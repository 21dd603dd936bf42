package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

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
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		d.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
		d.t.Fatal(err)
	}
}

// spoil breaks a row.
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

// What CI systems run passes with the samples, and tells of a row that is broken: GitHub in the changes of a pull request, GitLab
// by a list that it keeps.
func TestTheJobsOfCISystems(t *testing.T) {
	t.Parallel()
	var github struct {
		Jobs map[string]struct{ Steps []struct{ Uses, Run string } }
	}
	var gitlab map[string]struct {
		Script    []string
		Artifacts struct{ Paths []string }
	}
	for name, into := range map[string]any{"ci/github.yaml": &github, "ci/gitlab.yaml": &gitlab} {
		if err := yaml.Unmarshal([]byte(sampleText(t, name)), into); err != nil {
			t.Fatal(err)
		}
	}
	job := gitlab["validate-leads"]
	for script, told := range map[string]string{
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
		if ok, out := d.sh(script); ok || !strings.Contains(out, told) {
			t.Errorf("a broken row:\n%s", out)
		}
	}
	if len(job.Artifacts.Paths) != 1 || job.Artifacts.Paths[0] != "problems.csv" {
		t.Errorf("GitLab keeps %q", job.Artifacts.Paths)
	}
}

// The hook lets good rows into a commit, and no broken ones, though the folder holds good
// ones again.
func TestThePreCommitHook(t *testing.T) {
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
