package e2e

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"leadferry/importer/report"
	"leadferry/importer/source"
	"leadferry/leadapi/sandbox"
	"leadferry/mapping"
)

// mapped are the records of a sample file by their keys.
func mapped(t *testing.T, mappingFile, input string) map[string]mapping.Record {
	t.Helper()
	samples := filepath.Join(root(t), "samples")
	text, err := os.ReadFile(filepath.Join(samples, mappingFile))
	if err != nil {
		t.Fatal(err)
	}
	m, err := mapping.Parse(mappingFile, text, nil)
	if err != nil {
		t.Fatal(err)
	}
	f, err := source.Open(filepath.Join(samples, input), source.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	binding, err := m.Bind(input, mapping.Columns{Names: f.Header().Names, Own: len(f.Header().Names)})
	if err != nil {
		t.Fatal(err)
	}
	records := map[string]mapping.Record{}
	for {
		var row source.Row
		if err := f.Next(&row); errors.Is(err, io.EOF) {
			return records
		} else if err != nil {
			t.Fatal(err)
		}
		var r mapping.Record
		if problems := binding.Map(row.Cells, mapping.Env{Line: row.Line}, &r); len(problems) > 0 {
			t.Fatalf("%s:%d: %v", input, row.Line, problems)
		}
		records[r.Key] = r
	}
}

// TestTheCRMSpeaksOfTheImportsLeads: the two mappings write the same data in the same
// way, so that only what people changed in the CRM differs.
func TestTheCRMSpeaksOfTheImportsLeads(t *testing.T) {
	t.Parallel()
	imported, exported := mapped(t, "leads.yaml", "leads.csv"), mapped(t, "crm.yaml", "crm-export.csv")
	got := map[string]int{}
	for key, now := range exported {
		was, known := imported[key]
		if !known {
			got["unknown"]++
			continue
		}
		moved := now.Status != was.Status && (now.Status != "open" || was.Status != "") // no status is open
		edited := false
		for _, f := range now.Content {
			edited = edited || f.Value != content(was, f.Name)
		}
		switch {
		case strings.HasPrefix(was.Status, "closed") && moved && !strings.HasPrefix(now.Status, "closed"):
			got["reopened"]++
		case moved && edited:
			got["status and content"]++
		case moved:
			got["status"]++
		case edited:
			got["content"]++
		default:
			got["the same"]++
		}
		if now.ExternalID != was.ExternalID {
			t.Errorf("%s: the external ID is another", key)
		}
	}
	want := map[string]int{"unknown": 1, "reopened": 1, "status": 14, "status and content": 6, "content": 8, "the same": 170}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func content(r mapping.Record, name string) string {
	for _, f := range r.Content {
		if f.Name == name {
			return f.Value
		}
	}
	return ""
}

// TestTheCRMExportOfTheNight runs the commands that crm.yaml begins with: they show
// transitions, a conflict and a row without a lead; the same again sends nothing.
func TestTheCRMExportOfTheNight(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sandbox.Options{})
	if err := os.CopyFS(filepath.Join(w.dir, "samples"), os.DirFS(filepath.Join(root(t), "samples"))); err != nil {
		t.Fatal(err)
	}
	var commands [][]string
	for line := range strings.Lines(sampleText(t, "crm.yaml")) {
		if words, ok := strings.CutPrefix(line, "#   leadferry "); ok {
			commands = append(commands, append(strings.Fields(words), "--out", "none", "--summary", "s.json"))
		}
	}
	if len(commands) != 2 {
		t.Fatalf("commands: %q", commands)
	}
	w.must(0, commands[0]...)
	for night, want := range []struct {
		updates     int
		rows        report.RowCounts
		transitions int
	}{
		{28, report.RowCounts{Read: 200, Updated: 28, Unchanged: 170, Conflict: 1, Unmatched: 1}, 20},
		{0, report.RowCounts{Read: 200, Unchanged: 198, Conflict: 1, Unmatched: 1}, 0},
	} {
		w.must(1, commands[1]...)
		s := w.summary("s.json")
		if diff := cmp.Diff(want.rows, s.Rows); diff != "" || s.Requests.Update != want.updates {
			t.Errorf("night %d: %d updates, rows %s", night+1, s.Requests.Update, diff)
		}
		moved := 0
		for _, tr := range s.Transitions {
			moved += tr.Leads
		}
		if moved != want.transitions {
			t.Errorf("night %d: transitions %v", night+1, s.Transitions)
		}
	}
}

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

// imports makes the checkpoint at a path as the samples name it.
func (m *machine) imports(checkpoint string) {
	samples := filepath.Join(root(m.t), "samples")
	m.must(0, "import", "-m", filepath.Join(samples, "leads.yaml"), filepath.Join(samples, "leads.csv"), "--out", "none", "--checkpoint", m.here(checkpoint))
}

// setting takes a variable of a sample over, unless it is one that says where the
// service is: there the test's own is meant.
func (m *machine) setting(name, value string) {
	m.t.Helper()
	switch name {
	case "LEADFERRY_BASE_URL", "LEADFERRY_LEADS_URL", "LEADFERRY_TRUNK_ID", "LEADFERRY_CLIENT_ID", "LEADFERRY_CLIENT_SECRET":
		return
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

// secretFromFile takes the secret out of the environment where a sample has it in a file.
func (m *machine) secretFromFile() { m.env = append(m.env, "LEADFERRY_CLIENT_SECRET=") }

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
