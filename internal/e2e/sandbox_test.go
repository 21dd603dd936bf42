package e2e

import (
	"bufio"
	"os"
	"strings"
	"testing"

	"leadferry/leadapi/sandbox"
)

// TestTheSandboxCommand: the settings that it prints are all that an import needs,
// and a signal ends it in order.
func TestTheSandboxCommand(t *testing.T) {
	w := newWorld(t, sandbox.Options{})
	c := w.command("sandbox", "--addr", "127.0.0.1:0", "--faults", "429#3")
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for range 5 {
		if !lines.Scan() {
			t.Fatal("fewer than five settings")
		}
		setting, ok := strings.CutPrefix(lines.Text(), "export LEADFERRY_")
		if !ok {
			t.Fatalf("not a setting: %s", lines.Text())
		}
		w.env = append(w.env, "LEADFERRY_"+setting)
	}
	w.leads(20)
	w.must(0, "import", "-m", "leads.yaml", "leads.csv", "--out", "none", "--summary", "s.json")
	if s := w.summary("s.json"); s.Rows.Created != 20 || s.Requests.ByStatus["429"] != 1 {
		t.Errorf("%d created, answers %v", s.Rows.Created, s.Requests.ByStatus)
	}
	if err := c.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(); err != nil {
		t.Errorf("the sandbox ended with %v", err)
	}
}
