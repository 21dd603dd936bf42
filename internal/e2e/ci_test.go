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

// read decodes a sample, whose keys must all be known.
func (d *desk) read(name string, into any) {
	d.t.Helper()
	decoder := yaml.NewDecoder(strings.NewReader(sampleText(d.t, name)))
	decoder.KnownFields(true)
	if err := decoder.Decode(into); err != nil {
		d.t.Fatal(err)
	}
}

// The workflow's step passes with the samples, and annotates the row that is broken.
func TestTheWorkflowForGitHub(t *testing.T) {
	t.Parallel()
	type paths struct{ Paths []string }
	var w struct {
		Name string
		On   struct {
			Push        paths
			PullRequest paths `yaml:"pull_request"`
		}
		Permissions map[string]string
		Jobs        map[string]struct {
			RunsOn    string `yaml:"runs-on"`
			Timeout   int    `yaml:"timeout-minutes"`
			Container string
			Steps     []struct{ Uses, Name, Run string }
		}
	}
	d := newDesk(t)
	d.read("ci/github.yaml", &w)
	steps := w.Jobs["validate"].Steps
	if len(steps) != 2 || !strings.HasPrefix(steps[0].Uses, "actions/checkout@") || len(w.On.Push.Paths) == 0 || w.Permissions["contents"] != "read" {
		t.Fatalf("%+v", w)
	}
	if ok, out := d.sh(steps[1].Run); !ok {
		t.Errorf("the samples fail:\n%s", out)
	}
	d.spoil()
	if ok, out := d.sh(steps[1].Run); ok || !strings.Contains(out, "::error file=leads/leads.csv,title=format,line=2::column email: ") {
		t.Errorf("a broken row:\n%s", out)
	}
}

// The job's script passes with the samples, and leaves a list in which the broken row is a
// problem.
func TestTheJobForGitLab(t *testing.T) {
	t.Parallel()
	var w map[string]struct {
		Image struct {
			Name       string
			Entrypoint []string
		}
		Rules     []struct{ Changes []string }
		Script    []string
		Artifacts struct {
			When     string
			ExpireIn string `yaml:"expire_in"`
			Paths    []string
		}
	}
	d := newDesk(t)
	d.read("ci/gitlab.yaml", &w)
	job := w["validate-leads"]
	if len(job.Rules) != 1 || job.Artifacts.When != "always" || len(job.Artifacts.Paths) != 1 {
		t.Fatalf("%+v", w)
	}
	script := strings.Join(job.Script, "\n")
	failures := func() int {
		b, err := os.ReadFile(filepath.Join(d.dir, job.Artifacts.Paths[0]))
		if err != nil {
			t.Fatal(err)
		}
		return strings.Count(string(b), "\n") - 1
	}
	if ok, out := d.sh(script); !ok || failures() != 0 {
		t.Errorf("the samples fail:\n%s", out)
	}
	d.spoil()
	if ok, out := d.sh(script); ok || failures() != 1 {
		t.Errorf("a broken row: %d failures\n%s", failures(), out)
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
