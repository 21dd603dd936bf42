package e2e

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"leadferry/leadapi/sandbox"
)

// machine is a world with the files where the samples of schedules expect them, so
// far as a test may lay them out: every path of the samples has its place in it.
type machine struct {
	*world
	places []string // of the samples and here, alternating
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	w := newWorld(t, sandbox.Options{})
	places := []string{}
	for _, p := range []string{"/etc/leadferry", "/srv/crm", "/var/lib/prometheus/node-exporter", "/var/lib/leadferry", "/state"} {
		here := filepath.Join(w.dir, p)
		if err := os.MkdirAll(here, 0o700); err != nil {
			t.Fatal(err)
		}
		places = append(places, p, here)
	}
	samples := filepath.Join(root(t), "samples")
	for from, to := range map[string]string{"crm.yaml": "etc/leadferry/crm.yaml", "crm-export.csv": "srv/crm/crm-export.csv"} {
		text, err := os.ReadFile(filepath.Join(samples, from))
		if err != nil {
			t.Fatal(err)
		}
		w.write(to, string(text))
	}
	w.write("etc/leadferry/client-secret", sandbox.ClientSecret+"\n")
	return &machine{w, places}
}

// here puts the places of this machine in the place of the sample's.
func (m *machine) here(text string) string { return strings.NewReplacer(m.places...).Replace(text) }

// ledgerOf is the checkpoint that a sample names, if it names one.
func (m *machine) ledgerOf(args []string) []string {
	for _, arg := range args {
		if strings.HasPrefix(arg, "--checkpoint=") {
			return []string{m.here(arg)}
		}
	}
	if i := slices.Index(args, "--checkpoint"); i >= 0 {
		return []string{args[i], m.here(args[i+1])}
	}
	return nil
}

// imports makes the checkpoint of a sample's command.
func (m *machine) imports(args []string) {
	samples := filepath.Join(root(m.t), "samples")
	m.must(0, append([]string{"import", "-m", filepath.Join(samples, "leads.yaml"), filepath.Join(samples, "leads.csv"), "--out", "none"}, m.ledgerOf(args)...)...)
}

// setting takes a variable of a sample over, unless it is one that says where the
// service is: there the test's own is meant.
func (m *machine) setting(name, value string) {
	m.t.Helper()
	switch name {
	case "LEADFERRY_BASE_URL", "LEADFERRY_LEADS_URL", "LEADFERRY_TRUNK_ID", "LEADFERRY_CLIENT_ID", "LEADFERRY_CLIENT_SECRET":
		return
	case "LEADFERRY_CLIENT_SECRET_FILE":
		m.env = append(m.env, "LEADFERRY_CLIENT_SECRET=")
	}
	m.env = append(m.env, name+"="+m.here(value))
	if !strings.HasPrefix(name, "LEADFERRY_") {
		return
	}
	help, err := exec.Command(binary(), "help", "sync", "--all").Output()
	connection, _ := exec.Command(binary(), "help", "connection").Output()
	if err != nil || !strings.Contains(string(help)+string(connection), "$"+name) {
		m.t.Errorf("no flag of sync takes %s", name)
	}
}

// night runs a command as the schedule would and says what went to its streams. The
// exit code must be that of a night with two rows that need attention.
func (m *machine) night(c *exec.Cmd) (out, told string) {
	m.t.Helper()
	var stdout, stderr strings.Builder
	c.Env, c.Stdout, c.Stderr = m.env, &stdout, &stderr
	_ = c.Run() // the exit code is what counts
	if code := c.ProcessState.ExitCode(); code != 1 {
		m.t.Fatalf("exit code %d, want 1\n%s%s", code, stdout.String(), stderr.String())
	}
	return stdout.String(), stderr.String()
}

// objects fails the test unless each line is one JSON object with a level and a message.
func objects(t *testing.T, text string) (lines []map[string]any) {
	t.Helper()
	for scan := bufio.NewScanner(strings.NewReader(text)); scan.Scan(); {
		var o map[string]any
		if err := json.Unmarshal(scan.Bytes(), &o); err != nil || o["level"] == nil || o["msg"] == nil {
			t.Errorf("no log line: %s", scan.Text())
		}
		lines = append(lines, o)
	}
	return lines
}
