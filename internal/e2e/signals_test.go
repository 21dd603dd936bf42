//go:build unix

package e2e

import (
	"bytes"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"leadferry/leadapi/sandbox"
)

// TestStoppedForLongerThanTheTimeOut stops the process while requests are in flight,
// for longer than they may take. Answers that came meanwhile are in the sockets when it
// wakes, and count; where none came, the rows are in doubt. Nothing is sent again.
// fault 7
func TestStoppedForLongerThanTheTimeOut(t *testing.T) {
	t.Parallel()
	const rows, concurrency, timeout = 40, 4, 3 * time.Second
	for _, test := range []struct {
		name     string
		answered bool // while the process does not run
		doubts   int
		code     int
	}{
		{"answered meanwhile", true, 0, 0},
		{"not answered", false, concurrency, 5},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, sandbox.Options{})
			h := w.hold(concurrency)
			w.leads(rows)
			c := w.command("import", "-m", "leads.yaml", "leads.csv", "--out", "none", "-c", itoa(concurrency), "--timeout", timeout.String(), "--summary", "s.json")
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			h.full(t)
			suspend(t, c.Process)
			if test.answered {
				close(h.let)
				eventually(t, "answers are in the sockets", func() bool { _, answered := h.counts(); return answered == concurrency })
			}
			time.Sleep(timeout + timeout/2) // this is the fault
			if err := c.Process.Signal(syscall.SIGCONT); err != nil {
				t.Fatal(err)
			}
			c.Wait()
			if code := c.ProcessState.ExitCode(); code != test.code {
				t.Errorf("exit %d, want %d", code, test.code)
			}
			s := w.summary("s.json")
			if s.Rows.InDoubt != test.doubts || s.Rows.Created != rows-test.doubts {
				t.Errorf("%d created, %d in doubt; want %d in doubt", s.Rows.Created, s.Rows.InDoubt, test.doubts)
			}
			for ref, n := range h.posts {
				if n != 1 {
					t.Errorf("the lead of row %s was sent %d times", ref, n)
				}
			}
			w.settle()
			w.complete(rows)
		})
	}
}

// suspend stops a process and returns when it does not run any more.
func suspend(t *testing.T, p *os.Process) {
	t.Helper()
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the process is stopped", func() bool {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.Pid))
		if err != nil {
			t.Skipf("no way to see it here: %v", err)
		}
		_, state, _ := strings.Cut(string(b), ") ")
		return strings.HasPrefix(state, "T")
	})
}

// TestAbort: SIGABRT is for whoever looks for a fault in the program, and a crash of the runtime ends as it does: by that
// signal, not with 2, which says that nothing was sent. It dies at once with the stacks of its goroutines, in which no
// value of a row and no secret stands, and leaves no image of its memory; the rows that had a slot are in doubt, and no
// others. Invariants 2 and 7; faults 6, 153
func TestAbort(t *testing.T) {
	t.Parallel()
	const rows, concurrency = 60, 4
	w := newWorld(t, sandbox.Options{})
	h := w.hold(concurrency)
	w.leads(rows)
	c := w.shell(`ulimit -c unlimited; exec "$0" import -m leads.yaml leads.csv --out none -c ` + itoa(concurrency))
	var dump bytes.Buffer
	c.Stdout, c.Stderr = &dump, &dump
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	h.full(t)
	if err := c.Process.Signal(syscall.SIGABRT); err != nil {
		t.Fatal(err)
	}
	c.Wait()
	ended := c.ProcessState.Sys().(syscall.WaitStatus)
	if ended.Signal() != syscall.SIGABRT || !strings.Contains(dump.String(), "SIGABRT") || !strings.Contains(dump.String(), "goroutine ") {
		t.Errorf("exit %d, by signal %d, with the dump:\n%s", ended.ExitStatus(), ended.Signal(), dump.String())
	}
	if cores, _ := filepath.Glob(filepath.Join(w.dir, "core*")); len(cores) > 0 {
		t.Errorf("an image of the memory was left: %s", cores)
	}
	for _, value := range []string{"Person ", "L0000", sandbox.Organizations()[1].ID, sandbox.ClientSecret, "Bearer"} {
		if strings.Contains(dump.String(), value) {
			t.Errorf("the dump holds %q", value)
		}
	}
	if n := len(w.exported("in_doubt")); n < concurrency || n > 2*concurrency {
		t.Errorf("%d rows in doubt, want the %d in flight and at most %d", n, concurrency, 2*concurrency)
	}
	w.settle()
	w.complete(rows)
}

// TestHangup: the terminal is closed in mid-run, which stops the run as Ctrl-C does: what is in flight is waited for. Without a
// terminal, too, where nobody reads what the program says any more. Who starts it under nohup wants it to go on. faults 6, 11, 12
func TestHangup(t *testing.T) {
	if signal.Ignored(syscall.SIGHUP) {
		t.Skip("the tests run under nohup, and so does the program")
	}
	t.Parallel()
	const rows, concurrency = 40, 4
	for before, code := range map[string]int{"": 130, `trap "" HUP; `: 3} { // 3: the output is gone
		w := newWorld(t, sandbox.Options{})
		h := w.hold(concurrency)
		w.leads(rows)
		c := w.shell(before + `exec "$0" import -m leads.yaml leads.csv --out run -c 4 --rate 20`) // so that it does not end before the signal is taken
		reader, writer, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		c.Stdout, c.Stderr = writer, writer
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		writer.Close()
		h.full(t)
		reader.Close()
		if err := c.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		close(h.let)
		c.Wait()
		s := w.summary("run/summary.json")
		if c.ProcessState.ExitCode() != code || s.Rows.InDoubt != 0 || s.Rows.Created != len(w.byRef()) || (s.Rows.Created == rows) != (code == 3) {
			t.Errorf("%s: exit %d, %s: %+v; the service holds %d", before, c.ProcessState.ExitCode(), s.Outcome, s.Rows, len(w.byRef()))
		}
		w.complete(rows)
	}
}
