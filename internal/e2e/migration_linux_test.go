package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"go.yaml.in/yaml/v4"

	"leadferry/leadapi/sandbox"
)

// migrationJob is what the runner below has to know of the sample; its fields are held to the published types elsewhere.
type migrationJob struct {
	Spec struct {
		Completions          int
		BackoffLimitPerIndex int `yaml:"backoffLimitPerIndex"`
		PodFailurePolicy     struct {
			Rules []struct {
				Action      string
				OnExitCodes struct{ Values []int } `yaml:"onExitCodes"`
			}
		} `yaml:"podFailurePolicy"`
		Template struct {
			Spec struct {
				Containers []struct {
					Command, Args []string
					Env           []variable
				}
			}
		}
	}
}

// cluster runs the pods of the sample as the controller of an Indexed job would, each in a folder of its own, the only one
// that it may write to.
type cluster struct {
	*array
	job migrationJob
	env map[string]string // of pods; that of the sample where it fits a test
}

func newCluster(t *testing.T, rows int, o sandbox.Options) *cluster {
	t.Helper()
	c := &cluster{array: newArray(t, 4, rows, o), env: map[string]string{}}
	if err := yaml.Unmarshal([]byte(sampleText(t, "leadferry-migration-job.yaml")), &c.job); err != nil {
		t.Fatal(err)
	}
	main := c.job.Spec.Template.Spec.Containers[0]
	for _, v := range main.Env {
		c.env[v.Name] = v.Value
	}
	c.env["LEADFERRY_FLEET"] = "3f1c9a52-0f6e-4c57-b6a5-2f0f8e7f9f10"
	for _, name := range []string{"PGPASSFILE", "XDG_STATE_HOME", "LEADFERRY_BASE_URL", "LEADFERRY_LEADS_URL", "LEADFERRY_TRUNK_ID", "LEADFERRY_CLIENT_ID", "LEADFERRY_CLIENT_SECRET"} {
		delete(c.env, name) // of the cluster; the world has its own
	}
	c.places = 32
	return c
}

// pod is the container's command line for an index, not yet started.
func (c *cluster) pod(index int) *exec.Cmd {
	c.t.Helper()
	run, err := os.MkdirTemp(c.dir, "pod-")
	if err != nil {
		c.t.Fatal(err)
	}
	var args []string
	for _, arg := range c.job.Spec.Template.Spec.Containers[0].Args {
		switch name, _, _ := strings.Cut(arg, "="); name { // what the job mounts
		case "--mapping":
			arg = "--mapping=" + filepath.Join(c.dir, "leads.yaml")
		case "--checkpoint":
			arg = "--checkpoint=" + c.ledger
		case "/input/leads.csv.gz":
			arg = filepath.Join(c.dir, "leads.csv")
		}
		args = append(args, arg)
	}
	p := c.command(args...)
	p.Dir, p.Env = run, append(slices.Clone(c.crew.env), "XDG_STATE_HOME="+run, "HOME=/nonexistent", "TMPDIR=/nonexistent", "XDG_CONFIG_HOME=/nonexistent", "XDG_CACHE_HOME=/nonexistent",
		"JOB_COMPLETION_INDEX="+itoa(index))
	for name, value := range c.env {
		p.Env = append(p.Env, name+"="+value)
	}
	return p
}

// action is what the job's policy says of an exit code.
func (c *cluster) action(code int) string {
	for _, r := range c.job.Spec.PodFailurePolicy.Rules {
		if slices.Contains(r.OnExitCodes.Values, code) {
			return r.Action
		}
	}
	return "Count"
}

// run starts the pods of an index until it has ended; began is told of the first one.
func (c *cluster) run(index int, began func(p *os.Process)) {
	for counted := 0; counted <= c.job.Spec.BackoffLimitPerIndex; began = nil {
		code := c.perform(index, c.pod(index), began)
		action := c.action(code)
		if code == 0 || action == "FailIndex" || action == "FailJob" {
			return
		}
		if action != "Ignore" {
			counted++
		}
	}
}

// TestTheMigrationJob: the sample's own command lines, started as the controller starts them, make each lead once.
func TestTheMigrationJob(t *testing.T) {
	t.Parallel()
	const rows = 400
	for name, test := range map[string]struct {
		faults string
		wrong  int  // rows without an organization
		kill   bool // the first pod of index 1, once it has sent something
		code   int  // of the whole
	}{
		"all is well":           {},
		"a pod is killed":       {kill: true},
		"rows want a person":    {wrong: 40, code: 1},
		"answers that get lost": {faults: "create.drop-stored#90", code: 5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, rows, sandbox.Options{Faults: test.faults})
			c.write("leads.csv", strings.Replace(c.text("leads.csv"), sandbox.Organizations()[0].ID, "", test.wrong))
			c.together(func(index int) {
				var began func(*os.Process)
				if test.kill && index == 1 {
					began = c.once(syscall.SIGKILL)
				}
				c.run(index, began)
			})
			if test.code == 5 || test.kill {
				c.deaths = 1
			}
			doubts := c.judge()
			if n := len(c.keys()); n != rows-test.wrong {
				t.Errorf("the ledger knows %d rows of %d", n, rows-test.wrong)
			}
			want := test.code
			if test.kill && doubts > 0 {
				want = 5
			}
			code, out := c.crew.run("report", "--fleet", c.env["LEADFERRY_FLEET"], "--checkpoint", c.ledger, "--summary", "-")
			if code != want {
				t.Errorf("the report ends with %d, want %d; pods ended with %v\n%s", code, want, c.ends, out)
			}
			for index, codes := range c.ends {
				if len(codes) > 1 && (!test.kill || index != 1) {
					t.Errorf("index %d had pods that ended with %v", index, codes)
				}
			}
		})
	}
}

// TestTheMigrationJobReplacesAPod: of a node that was taken for lost, a pod may still run when its index has another one. It
// ends with 6, of which the policy makes nothing, and the other one goes on.
func TestTheMigrationJobReplacesAPod(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 400, sandbox.Options{})
	wake := c.still(c.pod(2), "answered:20") // on a node of which nobody hears
	c.together(func(index int) { c.run(index, nil) })
	if code := wake(); code != 6 || c.action(6) != "Ignore" {
		t.Errorf("the pod on the lost node ended with %d, for which the policy has %s", code, c.action(6))
	}
	c.run(2, nil) // what it had under way it has settled, and what had not left it has given back
	c.wholeFleet()
}
