package e2e

import (
	"bufio"
	"os"
	"strings"
	"testing"

	"leadferry/leadapi/sandbox"
)

// serveSandbox starts leadferry sandbox and gives the program the settings that it prints, as a
// shell into which they are pasted does. stop ends it.
func (w *world) serveSandbox(args ...string) (stop func()) {
	w.t.Helper()
	c := w.command(append([]string{"sandbox", "--addr", "127.0.0.1:0"}, args...)...)
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		w.t.Fatal(err)
	}
	for lines := bufio.NewScanner(out); ; {
		if !lines.Scan() {
			w.t.Fatal("the settings have no end")
		}
		if names, end := strings.CutPrefix(lines.Text(), "unset "); end {
			for name := range strings.FieldsSeq(names) {
				w.env = append(w.env, name+"=")
			}
			break
		}
		setting, ok := strings.CutPrefix(lines.Text(), "export ")
		if !ok {
			w.t.Fatalf("not a setting: %s", lines.Text())
		}
		w.env = append(w.env, setting)
	}
	return func() {
		w.t.Helper()
		if err := c.Process.Signal(os.Interrupt); err != nil {
			w.t.Fatal(err)
		}
		if err := c.Wait(); err != nil {
			w.t.Errorf("the sandbox ended with %v", err)
		}
	}
}

// TestTheSandboxCommand: the settings that it prints are all that an import needs,
// and a signal ends it in order.
func TestTheSandboxCommand(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sandbox.Options{})
	stop := w.serveSandbox("--faults", "429#3")
	w.leads(20)
	w.must(0, "import", "-m", "leads.yaml", "leads.csv", "--out", "none", "--summary", "s.json")
	if s := w.summary("s.json"); s.Rows.Created != 20 || s.Requests.ByStatus["429"] != 1 {
		t.Errorf("%d created, answers %v", s.Rows.Created, s.Requests.ByStatus)
	}
	stop()
}
