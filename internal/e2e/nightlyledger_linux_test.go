package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"leadferry/internal/pgtest"
	"leadferry/leadapi/sandbox"
)

// nightly is the CronJob with its ledger in PostgreSQL, on a cluster whose pods keep nothing.
type nightly struct {
	*machine
	job    schedule
	server *pgtest.Server
	ledger string // as the owner knows it
}

// passwordLine is where the sample says what its password file holds.
var passwordLine = regexp.MustCompile(`pgpass has one line: db\.example\.com:5432:leads:(\w+):(\w+)\)`)

// newNightly prepares a database as the sample asks for it: with a password, and a user who has no more than the role of a run.
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
	said := n.must(0, "checkpoint", "init", n.ledger)
	if !strings.Contains(said, "GRANT leadferry_worker TO") {
		t.Fatalf("init does not say what to grant:\n%s", said)
	}
	n.server.Exec(t, n.ledger, "CREATE ROLE "+user+" LOGIN PASSWORD '"+password+"'", "GRANT leadferry_worker TO "+user)
	rules := filepath.Join(n.server.Data(), "pg_hba.conf")
	old, err := os.ReadFile(rules)
	if err == nil {
		err = os.WriteFile(rules, append([]byte("local all "+user+" scram-sha-256\n"), old...), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	n.server.Exec(t, n.ledger, "SELECT pg_reload_conf()")
	n.write("pgpass", "localhost:5432:postgres:"+user+":"+password+"\n")
	n.places = append(n.places, "/etc/ledger", n.dir, "postgres://"+user+"@db.example.com/leads?sslmode=verify-full&sslrootcert=/etc/ledger/ca.crt", n.server.URLAs(user, "postgres"))
	for _, pair := range n.job.env {
		if name, value, _ := strings.Cut(pair, "="); name != "XDG_STATE_HOME" { // of each pod its own
			n.setting(name, value)
		}
	}
	return n
}

// pod is the container's command line in a folder that goes with it.
func (n *nightly) pod() *exec.Cmd {
	n.t.Helper()
	run, err := os.MkdirTemp(n.dir, "pod-")
	if err != nil {
		n.t.Fatal(err)
	}
	c := exec.Command(binary(), strings.Split(n.here(strings.Join(n.job.args, "\n")), "\n")...)
	c.Dir = run
	c.Env = append(slices.Clone(n.env), "XDG_STATE_HOME="+run, "HOME=/nonexistent", "TMPDIR=/nonexistent", "XDG_CONFIG_HOME=/nonexistent", "XDG_CACHE_HOME=/nonexistent")
	return c
}

// TestTheCronJobRunsOnPostgres: its very arguments and variables, night after night on nodes that know nothing of one another. A
// pod that is killed is not tried again, as its policy has it, and the next night goes on.
func TestTheCronJobRunsOnPostgres(t *testing.T) {
	t.Parallel()
	n := newNightly(t)
	n.job.careful(t)
	first := n.pod()
	if out, _ := first.CombinedOutput(); first.ProcessState.ExitCode() != 4 {
		t.Errorf("a sync before the import: exit %d\n%s", first.ProcessState.ExitCode(), out)
	}
	n.imports(n.job.args)
	made := len(n.leadsThere())
	killed := n.pod()
	if err := killed.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the first night sends something", func() bool { return n.updates() > 3 })
	killed.Process.Kill()
	killed.Wait()
	n.server.Exec(t, n.ledger, `UPDATE leadferry.workers SET beat = beat - interval '1 day' WHERE ended IS NULL`)
	for night := range 3 {
		before := n.updates()
		c := n.pod()
		out, told := n.inPod(c)
		if lines := objects(t, told); len(lines) != 1 || lines[0]["exit_code"] != 1.0 || out != "" {
			t.Errorf("night %d: the pod's log has %q and %q", night, out, told)
		}
		if sent := n.updates() - before; night > 0 && sent != 0 {
			t.Errorf("night %d sends %d updates, and nothing had changed", night, sent)
		}
	}
	if now := len(n.leadsThere()); now != made {
		t.Errorf("%d leads were made by the nights", now-made)
	}
	n.must(0, "checkpoint", "check", "--checkpoint", n.ledger)
}

// inPod is night with the pod's own variables.
func (n *nightly) inPod(c *exec.Cmd) (out, told string) {
	env := n.env
	defer func() { n.env = env }()
	n.env = c.Env
	return n.night(c)
}

func (n *nightly) leadsThere() []sandbox.Lead {
	n.t.Helper()
	leads, err := n.service.Leads()
	if err != nil {
		n.t.Fatal(err)
	}
	return leads
}

func (n *nightly) updates() (sum int) {
	for _, answers := range n.service.Counts()["update"] {
		sum += answers
	}
	return sum
}
