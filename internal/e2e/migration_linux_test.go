package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"go.yaml.in/yaml/v4"

	"leadferry/internal/pgtest"
	"leadferry/internal/testsupport/must"
	"leadferry/leadapi/sandbox"
)

// migrationJob has the fields of the sample that this test needs. tools/manifests checks all of them.
type migrationJob struct {
	Spec struct {
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

// cluster runs the pods of the sample as the controller of an Indexed job would. Each pod can write to one folder.
type cluster struct {
	*array
	job migrationJob
	env map[string]string // of each pod, mostly from the sample
}

func newCluster(t *testing.T, rows int, o sandbox.Options) *cluster {
	t.Helper()
	c := &cluster{array: newArray(t, 4, rows, o), env: map[string]string{}}
	must.Do(t, yaml.Unmarshal([]byte(sampleText(t, "leadferry-migration-job.yaml")), &c.job))
	main := c.job.Spec.Template.Spec.Containers[0]
	for _, v := range main.Env {
		c.env[v.Name] = v.Value
	}
	c.env["LEADFERRY_FLEET"] = "3f1c9a52-0f6e-4c57-b6a5-2f0f8e7f9f10"
	for _, name := range []string{"PGPASSFILE", "XDG_STATE_HOME", "LEADFERRY_BASE_URL", "LEADFERRY_LEADS_URL", "LEADFERRY_TRUNK_ID", "LEADFERRY_CLIENT_ID", "LEADFERRY_CLIENT_SECRET"} {
		delete(c.env, name) // set by the cluster; a world sets its own
	}
	c.inFlight = 32
	return c
}

// pod is the container's command line for an index, not yet started.
func (c *cluster) pod(index int) *exec.Cmd {
	c.t.Helper()
	run, err := os.MkdirTemp(c.dir, "pod-")
	must.Do(c.t, err)
	var args []string
	for _, arg := range c.job.Spec.Template.Spec.Containers[0].Args {
		switch name, _, _ := strings.Cut(arg, "="); name { // paths that the job mounts
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

// run starts pods for an index until it succeeds or fails for good. It calls began with the first one.
func (c *cluster) run(index int, began func(p *os.Process)) {
	for range 9 {
		if code := c.perform(index, c.pod(index), began); code != 3 && code != 6 && code < 128 {
			return
		}
		began = nil
	}
}

// The sample's own command lines, started as the controller starts them, make each lead once.
func TestMigrationJobMakesEachLeadOnce(t *testing.T) {
	t.Parallel()
	const rows = 400
	for name, test := range map[string]struct {
		faults string
		wrong  int  // rows without an organization
		kill   bool // the first pod of index 1, once it has sent something
		code   int  // of the fleet's report
	}{
		"a pod is killed":       {kill: true},
		"rows want a person":    {wrong: 40, code: 1},
		"answers that get lost": {faults: "create.drop-stored#90", code: 5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, rows, sandbox.Options{Faults: test.faults})
			c.write("leads.csv", strings.Replace(c.text("leads.csv"), organizations[0], "", test.wrong))
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
			code, out := c.crew.run("report --fleet", c.env["LEADFERRY_FLEET"], "--checkpoint", c.ledger, "--summary", "-")
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

// nightly is the sample CronJob with its ledger in PostgreSQL. Its pods keep nothing.
type nightly struct {
	*machine
	job    schedule
	server *pgtest.Server
	ledger string // address for the owner
}

// passwordLine matches the comment of the sample that says what the password file holds.
var passwordLine = regexp.MustCompile(`pgpass has one line: db\.example\.com:5432:leads:(\w+):(\w+)\)`)

// newNightly prepares a database as the sample asks: with a password, and a user that is only a leadferry_worker.
func newNightly(t *testing.T) *nightly {
	t.Helper()
	text := sampleText(t, "leadferry-cronjob-postgres.yaml")
	n := &nightly{machine: newMachine(t), server: pgtest.New(t), job: cronJob(t, "leadferry-cronjob-postgres.yaml")}
	n.ledger = n.server.URL("postgres")
	login := passwordLine.FindStringSubmatch(text)
	if login == nil {
		t.Fatal("the sample does not say what its password file holds")
	}
	user, password := login[1], login[2]
	said := n.must(0, "checkpoint init", n.ledger)
	if !strings.Contains(said, "GRANT leadferry_worker TO") {
		t.Fatalf("init does not say what to grant:\n%s", said)
	}
	n.server.Exec(t, n.ledger, "CREATE ROLE "+user+" LOGIN PASSWORD '"+password+"'", "GRANT leadferry_worker TO "+user)
	rules := filepath.Join(n.server.Data(), "pg_hba.conf")
	old, err := os.ReadFile(rules)
	if err == nil {
		err = os.WriteFile(rules, append([]byte("local all "+user+" scram-sha-256\n"), old...), 0o600)
	}
	must.Do(t, err)
	n.server.Exec(t, n.ledger, "SELECT pg_reload_conf()")
	n.write("pgpass", "localhost:5432:postgres:"+user+":"+password+"\n")
	n.places = append(n.places, "/etc/ledger", n.dir, "postgres://"+user+"@db.example.com/leads?sslmode=verify-full&sslrootcert=/etc/ledger/ca.crt", n.server.URLAs(user, "postgres"))
	for _, pair := range n.job.env {
		if name, value, _ := strings.Cut(pair, "="); name != "XDG_STATE_HOME" { // each pod has its own
			n.setting(name, value)
		}
	}
	return n
}

// pod is the container's command line, not yet started, in its own folder.
func (n *nightly) pod() *exec.Cmd {
	n.t.Helper()
	run, err := os.MkdirTemp(n.dir, "pod-")
	must.Do(n.t, err)
	c := exec.Command(binary(), strings.Split(n.here(strings.Join(n.job.args, "\n")), "\n")...)
	c.Dir = run
	c.Env = append(slices.Clone(n.env), "XDG_STATE_HOME="+run, "HOME=/nonexistent", "TMPDIR=/nonexistent", "XDG_CONFIG_HOME=/nonexistent", "XDG_CACHE_HOME=/nonexistent")
	return c
}

// The CronJob's own arguments and variables work night after night, on nodes that share nothing. After a night whose
// pod was killed, the next one goes on.
func TestCronJobRunsOnPostgres(t *testing.T) {
	t.Parallel()
	n := newNightly(t)
	n.job.checkFlags(t)
	first := n.pod()
	if out, _ := first.CombinedOutput(); first.ProcessState.ExitCode() != 4 {
		t.Errorf("a sync before the import: exit %d\n%s", first.ProcessState.ExitCode(), out)
	}
	n.imports(n.job.args)
	made := len(n.made())
	killed := n.pod()
	must.Do(t, killed.Start())
	eventually(t, "the first night sends something", func() bool { return n.updates() > 3 })
	killed.Process.Kill()
	killed.Wait()
	n.server.Exec(t, n.ledger, `UPDATE leadferry.workers SET beat = beat - interval '1 day' WHERE ended IS NULL`)
	for night := range 3 {
		before := n.updates()
		c := n.pod()
		out, logged := n.inPod(c)
		if lines := objects(t, logged); len(lines) != 1 || lines[0]["exit_code"] != 1.0 || out != "" {
			t.Errorf("night %d: the pod's log has %q and %q", night, out, logged)
		}
		if sent := n.updates() - before; night > 0 && sent != 1 { // the read of the lead that --reopen hold holds
			t.Errorf("night %d sends %d requests, and nothing had changed", night, sent)
		}
	}
	if now := len(n.made()); now != made {
		t.Errorf("%d leads were made by the nights", now-made)
	}
	n.must(0, "checkpoint check --checkpoint", n.ledger)
}

// inPod is like night, with the variables of the pod.
func (n *nightly) inPod(c *exec.Cmd) (out, logged string) {
	env := n.env
	defer func() { n.env = env }()
	n.env = c.Env
	return n.night(c)
}

func (n *nightly) updates() (sum int) {
	for _, answers := range n.service.Counts()["update"] {
		sum += answers
	}
	return sum
}
