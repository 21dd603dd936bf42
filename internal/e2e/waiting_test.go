//go:build unix

package e2e

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"leadferry/leadapi/sandbox"
)

// waiter is the program waiting for something that does not come.
type waiter struct {
	*exec.Cmd
	t     *testing.T
	in    io.WriteCloser
	said  bytes.Buffer // complete once it has ended
	alive *time.Timer
}

// waits starts the program with a standard input that stays open and waits until it
// listens to signals.
func (w *world) waits(args ...string) *waiter {
	w.t.Helper()
	c := &waiter{Cmd: w.command(args...), t: w.t}
	c.Stdout, c.Stderr = &c.said, &c.said
	var err error
	if c.in, err = c.StdinPipe(); err != nil {
		w.t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		w.t.Fatal(err)
	}
	c.alive = time.AfterFunc(time.Minute, func() { _ = c.Process.Kill() }) // so that a hang is told
	eventually(w.t, "the program has begun", func() bool { return ignores(w.t, c.Process.Pid, syscall.SIGPIPE) })
	return c
}

// ignores reports whether a process ignores a signal; the program does so with SIGPIPE
// once it listens to others.
func ignores(t *testing.T, pid int, sig syscall.Signal) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Skipf("no way to see it here: %v", err)
	}
	_, mask, _ := strings.Cut(string(b), "SigIgn:\t")
	mask, _, _ = strings.Cut(mask, "\n")
	set, err := strconv.ParseUint(mask, 16, 64)
	return err == nil && set&(1<<(sig-1)) != 0
}

// signal sends signals within a moment and returns the exit code.
func (c *waiter) signal(signals ...syscall.Signal) int {
	c.t.Helper()
	if len(signals) > 1 { // a machine that is busy lets a moment go by between them
		suspend(c.t, c.Process)
		signals = append(signals, syscall.SIGCONT)
	}
	for _, sig := range signals {
		if err := c.Process.Signal(sig); err != nil {
			c.t.Fatal(err)
		}
	}
	_ = c.Wait()
	c.alive.Stop()
	return c.ProcessState.ExitCode()
}

// TestFirstSignalEndsEveryWait: before anything is sent, one signal is enough, whatever
// the program waits for. faults 6, 135
func TestFirstSignalEndsEveryWait(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sandbox.Options{})
	w.leads(3)
	if err := syscall.Mkfifo(filepath.Join(w.dir, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	h := w.hold(1)
	holding := w.waits("import", "-m", "leads.yaml", "leads.csv", "--out", "none", "-c", "1")
	h.full(t)
	made := len(w.byRef())
	for i, test := range []struct {
		name string
		args []string
	}{
		{"idle input of import", []string{"import", "-m", "leads.yaml", "-", "--format", "csv"}},
		{"idle input of sync", []string{"sync", "-m", "leads.yaml", "-", "--format", "jsonl"}},
		{"idle workbook", []string{"import", "-m", "leads.yaml", "-", "--format", "xlsx"}},
		{"idle input of validate", []string{"validate", "-m", "leads.yaml", "-", "--format", "csv"}},
		{"idle input of init", []string{"init", "-", "--format", "csv", "-m", "-"}},
		{"mapping from a FIFO", []string{"import", "-m", "fifo", "leads.csv"}},
		{"mapping of validate from a FIFO", []string{"validate", "-m", "fifo", "leads.csv"}},
		{"list of resolve", []string{"checkpoint", "resolve", "-"}},
		{"list of adopt", []string{"checkpoint", "adopt", "-"}},
		{"list from a FIFO", []string{"checkpoint", "resolve", "fifo"}},
		{"keys of forget", []string{"checkpoint", "forget", "-"}},
		{"lock", []string{"import", "-m", "leads.yaml", "leads.csv", "--wait", "1h"}},
		{"lock of a command", []string{"checkpoint", "resolve", "--none-created", "--yes", "--wait", "1h"}},
		{"password", []string{"login", "--email", "someone@example.com", "--new-client"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := w.waits(test.args...)
			sig := []syscall.Signal{syscall.SIGINT, syscall.SIGQUIT}[i%2]
			if code := c.signal(sig); code != 130 || strings.Contains(c.said.String(), "goroutine ") {
				t.Errorf("%v: exit %d\n%s", sig, code, &c.said)
			}
		})
	}
	if n := len(w.byRef()); n != made {
		t.Errorf("the service holds %d leads, and %d before", n, made)
	}
	time.AfterFunc(time.Second, func() { close(h.let) }) // what is in flight is waited for
	if code := holding.signal(syscall.SIGTERM, syscall.SIGHUP); code != 130 {
		t.Errorf("the run that held the lock: exit %d\n%s", code, &holding.said)
	}
	if n := len(w.exported("in_doubt")); n != 0 {
		t.Errorf("%d rows in doubt: signals within a moment are one", n)
	}
}

// TestSignalAtIdleInput: rows have come and were sent, then nothing more does. The run
// ends in order, whatever ends it: what was sent is settled, and the files are complete.
// faults 6, 135
func TestSignalAtIdleInput(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		flags []string
		send  []syscall.Signal
		code  int
	}{
		{"Ctrl-C", nil, []syscall.Signal{syscall.SIGINT}, 130},
		{"--max-duration", []string{"--max-duration", "4s"}, nil, 1},
		{"--max-creates", []string{"--max-creates", "2"}, nil, 3},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, sandbox.Options{})
			w.leads(3)
			text, err := os.ReadFile(filepath.Join(w.dir, "leads.csv"))
			if err != nil {
				t.Fatal(err)
			}
			c := w.waits(append([]string{"import", "-m", "leads.yaml", "-", "--format", "csv", "--out", "run"}, test.flags...)...)
			header, row, _ := strings.Cut(string(text), "\n")
			row, _, _ = strings.Cut(row, "\n")
			fmt.Fprintln(c.in, header)
			for i := range 300 { // wide ones: reading begins with 64 KiB
				fmt.Fprintln(c.in, strings.Replace(row, "L00000", fmt.Sprintf("M%05d", i), 1)+strings.Repeat(" wide", 200))
			}
			eventually(t, "leads are made", func() bool { return len(w.byRef()) > 1 })
			if code := c.signal(test.send...); code != test.code {
				t.Errorf("exit %d, want %d\n%s", code, test.code, &c.said)
			}
			s := w.summary("run/summary.json")
			if s.Rows.InDoubt != 0 || s.Rows.Created != len(w.byRef()) || s.Rows.Created == 0 {
				t.Errorf("%s: %+v; the service holds %d", s.Outcome, s.Rows, len(w.byRef()))
			}
		})
	}
}
