package e2e

import (
	"bufio"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"leadferry/leadapi/sandbox"
)

func itoa(n int) string { return strconv.Itoa(n) }

// TestCleanStop sends one signal in mid-run: what is in flight is waited for,
// claims that were not sent are withdrawn, and nothing is in doubt. Invariant 2;
// faults 4, 6.
func TestCleanStop(t *testing.T) {
	t.Parallel()
	for _, sig := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT} {
		t.Run(sig.String(), func(t *testing.T) {
			if signal.Ignored(sig) {
				t.Skip("the tests run under nohup, and so does the program")
			}
			t.Parallel()
			w := newWorld(t, sandbox.Options{Latency: 30 * time.Millisecond})
			w.leads(400)
			c := w.command("import", "-m", "leads.yaml", "leads.csv", "--out", "none", "--summary", "s.json", "--results", "r.csv", "--rate", "50", "--log-format", "json", "--quiet")
			var told strings.Builder
			c.Stderr = &told
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			eventually(t, "some leads are made", func() bool { return len(w.byRef()) > 20 })
			if err := c.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			c.Wait()
			if code := c.ProcessState.ExitCode(); code != 130 {
				t.Errorf("exit %d, want 130", code)
			}
			s := w.summary("s.json")
			if s.Outcome != "interrupted" || s.Rows.InDoubt != 0 || s.Rows.Created != len(w.byRef()) {
				t.Errorf("summary says %s, %d in doubt, %d created; the service holds %d", s.Outcome, s.Rows.InDoubt, s.Rows.Created, len(w.byRef()))
			}
			lines := objects(t, told.String())
			if last := lines[len(lines)-1]; last["exit_code"] != 130.0 || last["outcome"] != "interrupted" {
				t.Errorf("the log: %s", told.String())
			}
			if n := len(w.exported("in_doubt")); n != 0 {
				t.Errorf("%d rows in doubt after a clean stop", n)
			}
			w.complete(400)
		})
	}
}

// TestSecondSignal stops at once: requests without an answer are in doubt, and
// only those. fault 5
func TestSecondSignal(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sandbox.Options{})
	h := w.hold(4)
	w.leads(100)
	c := w.command("import", "-m", "leads.yaml", "leads.csv", "--out", "none", "-c", "4", "--summary", "s.json")
	said, err := c.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	h.full(t)
	c.Process.Signal(os.Interrupt)
	for lines := bufio.NewScanner(said); lines.Scan(); {
		if strings.Contains(lines.Text(), "Ctrl-C again stops at once") {
			c.Process.Signal(os.Interrupt)
		}
	}
	c.Wait()
	if code := c.ProcessState.ExitCode(); code != 130 {
		t.Errorf("exit %d, want 130", code)
	}
	if n := len(w.exported("in_doubt")); n != 4 {
		t.Errorf("%d rows in doubt, want the 4 in flight", n)
	}
	if s := w.summary("s.json"); s.Outcome != "interrupted" || s.Rows.InDoubt != 4 || s.Rows.Created+s.Rows.InDoubt+s.Rows.Pending != s.Rows.Read {
		t.Errorf("%s: %+v", s.Outcome, s.Rows)
	}
	w.settle()
	w.complete(100)
}
