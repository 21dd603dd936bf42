//go:build unix

package e2e

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"leadferry/internal/testsupport/must"
	"leadferry/leadapi/sandbox"
)

// After one signal in mid-run, the run waits for requests in flight, withdraws claims that were not sent, and
// leaves nothing in doubt. Invariant 2; faults 4, 6.
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
			c := w.command("import -m leads.yaml leads.csv --out none --summary s.json --results r.csv --rate 50 --log-format json --quiet")
			var logged strings.Builder
			c.Stderr = &logged
			must.Do(t, c.Start())
			eventually(t, "some leads are made", func() bool { return len(w.byRef()) > 20 })
			must.Do(t, c.Process.Signal(sig))
			c.Wait()
			if code := c.ProcessState.ExitCode(); code != 130 {
				t.Errorf("exit %d, want 130", code)
			}
			s := w.summary("s.json")
			if s.Outcome != "interrupted" || s.Rows.InDoubt != 0 || s.Rows.Created != len(w.byRef()) {
				t.Errorf("summary says %s, %d in doubt, %d created; the service holds %d", s.Outcome, s.Rows.InDoubt, s.Rows.Created, len(w.byRef()))
			}
			lines := objects(t, logged.String())
			if last := lines[len(lines)-1]; last["exit_code"] != 130.0 || last["outcome"] != "interrupted" {
				t.Errorf("the log: %s", logged.String())
			}
			if n := len(w.exported("in_doubt")); n != 0 {
				t.Errorf("%d rows in doubt after a clean stop", n)
			}
			w.complete(400)
		})
	}
}

// A second signal stops the run at once. Requests without an answer are in doubt, and only those. fault 5
func TestSecondSignalStopsAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sandbox.Options{})
	h := w.hold(4)
	w.leads(100)
	c := w.command("import -m leads.yaml leads.csv --out none -c 4 --summary s.json")
	said, err := c.StderrPipe()
	must.Do(t, err)
	must.Do(t, c.Start())
	h.full(t)
	c.Process.Signal(os.Interrupt)
	first := time.Now()
	for lines := bufio.NewScanner(said); lines.Scan(); {
		if strings.Contains(lines.Text(), "Ctrl-C again stops at once") {
			time.Sleep(200 * time.Millisecond) // sooner, it would count as the first one
			c.Process.Signal(os.Interrupt)
		}
	}
	c.Wait()
	close(h.let)
	if took := time.Since(first); took > oneRequest/2 {
		t.Errorf("it ended %v after the first signal, by the time-out of what was in flight", took)
	}
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

// The process is stopped for longer than --timeout while requests are in flight. Answers that came meanwhile wait in
// the sockets, and count when it continues. Rows without an answer are in doubt. Nothing is sent again. fault 7
func TestProcessStoppedForLongerThanTheTimeOut(t *testing.T) {
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
			c := w.start("import -m leads.yaml leads.csv --out none -c", itoa(concurrency), "--timeout", timeout.String(), "--summary", "s.json")
			h.full(t)
			suspend(t, c.Process)
			if test.answered {
				close(h.let)
				eventually(t, "answers are in the sockets", func() bool { _, answered := h.counts(); return answered == concurrency })
			}
			time.Sleep(timeout + timeout/2) // the stop itself
			must.Do(t, c.Process.Signal(syscall.SIGCONT))
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
	must.Do(t, p.Signal(syscall.SIGSTOP))
	eventually(t, "the process is stopped", func() bool {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.Pid))
		if err != nil {
			t.Skipf("no way to see it here: %v", err)
		}
		_, state, _ := strings.Cut(string(b), ") ")
		return strings.HasPrefix(state, "T")
	})
}

// SIGABRT ends the program at once, by that signal and not with exit code 2, which means that nothing was sent. It
// prints the stacks of its goroutines without values of rows and secrets, and leaves no core file. Only rows that had
// begun are in doubt. A crash of the runtime ends the same way. Invariants 2 and 7; faults 6, 153
func TestSIGABRTPrintsStacksWithoutValues(t *testing.T) {
	t.Parallel()
	const rows, concurrency = 60, 4
	w := newWorld(t, sandbox.Options{})
	h := w.hold(concurrency)
	w.leads(rows)
	c := w.shell(`ulimit -c unlimited; exec "$0" import -m leads.yaml leads.csv --out none -c ` + itoa(concurrency))
	var dump bytes.Buffer
	c.Stdout, c.Stderr = &dump, &dump
	must.Do(t, c.Start())
	h.full(t)
	must.Do(t, c.Process.Signal(syscall.SIGABRT))
	c.Wait()
	ended := c.ProcessState.Sys().(syscall.WaitStatus)
	if ended.Signal() != syscall.SIGABRT || !strings.Contains(dump.String(), "SIGABRT") || !strings.Contains(dump.String(), "goroutine ") {
		t.Errorf("exit %d, by signal %d, with the dump:\n%s", ended.ExitStatus(), ended.Signal(), dump.String())
	}
	if cores, _ := filepath.Glob(filepath.Join(w.dir, "core*")); len(cores) > 0 {
		t.Errorf("core files are left: %s", cores)
	}
	for _, value := range []string{"Person ", "L0000", organizations[1], sandbox.ClientSecret, "Bearer"} {
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

// SIGHUP with an output that nobody reads, as from a closed terminal, stops the run as Ctrl-C does. Under nohup the run
// goes on to its end. faults 6, 11, 12
func TestHangupStopsTheRunInOrder(t *testing.T) {
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
		must.Do(t, err)
		c.Stdout, c.Stderr = writer, writer
		must.Do(t, c.Start())
		writer.Close()
		h.full(t)
		reader.Close()
		must.Do(t, c.Process.Signal(syscall.SIGHUP))
		close(h.let)
		c.Wait()
		s := w.summary("run/summary.json")
		if c.ProcessState.ExitCode() != code || s.Rows.InDoubt != 0 || s.Rows.Created != len(w.byRef()) || (s.Rows.Created == rows) != (code == 3) {
			t.Errorf("%s: exit %d, %s: %+v; the service holds %d", before, c.ProcessState.ExitCode(), s.Outcome, s.Rows, len(w.byRef()))
		}
		w.complete(rows)
	}
}

// waiter is a started program that waits for something.
type waiter struct {
	*exec.Cmd
	t     *testing.T
	in    io.WriteCloser
	said  bytes.Buffer // complete when it has ended
	alive *time.Timer
}

// waits starts the program with an open standard input and returns when the program handles signals.
func (w *world) waits(args ...string) *waiter {
	w.t.Helper()
	c := &waiter{Cmd: w.command(args...), t: w.t}
	c.Stdout, c.Stderr = &c.said, &c.said
	var err error
	if c.in, err = c.StdinPipe(); err != nil {
		w.t.Fatal(err)
	}
	must.Do(w.t, c.Start())
	c.alive = time.AfterFunc(time.Minute, func() { _ = c.Process.Kill() }) // so that a hang ends
	eventually(w.t, "the program has begun", func() bool { return ignores(w.t, c.Process.Pid, syscall.SIGPIPE) })
	return c
}

// ignores reports whether a process ignores a signal. The program ignores SIGPIPE once it handles other signals.
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

// signal sends signals at once and returns the exit code of the program.
func (c *waiter) signal(signals ...syscall.Signal) int {
	c.t.Helper()
	if len(signals) > 1 { // on a busy machine, they might count as several
		suspend(c.t, c.Process)
		signals = append(signals, syscall.SIGCONT)
	}
	for _, sig := range signals {
		must.Do(c.t, c.Process.Signal(sig))
	}
	_ = c.Wait()
	c.alive.Stop()
	return c.ProcessState.ExitCode()
}

// Before anything is sent, one signal ends the program, whatever it waits for. faults 6, 135
func TestFirstSignalEndsEveryWait(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sandbox.Options{})
	w.leads(3)
	must.Do(t, syscall.Mkfifo(filepath.Join(w.dir, "fifo"), 0o600))
	h := w.hold(1)
	holding := w.waits("import -m leads.yaml leads.csv --out none -c 1")
	h.full(t)
	made := len(w.byRef())
	for i, test := range []struct {
		name string
		args []string
	}{
		{"idle input of import", words("import -m leads.yaml - --format csv")},
		{"idle input of sync", words("sync -m leads.yaml - --format jsonl")},
		{"idle workbook", words("import -m leads.yaml - --format xlsx")},
		{"idle input of validate", words("validate -m leads.yaml - --format csv")},
		{"idle input of init", words("init - --format csv -m -")},
		{"mapping from a FIFO", words("import -m fifo leads.csv")},
		{"mapping of validate from a FIFO", words("validate -m fifo leads.csv")},
		{"list of resolve", []string{"checkpoint", "resolve", "-"}},
		{"list of adopt", []string{"checkpoint", "adopt", "-"}},
		{"list from a FIFO", []string{"checkpoint", "resolve", "fifo"}},
		{"lock", words("import -m leads.yaml leads.csv --wait 1h")},
		{"lock of a command", words("checkpoint resolve --none-created --yes --wait 1h")},
		{"password", words("login --email someone@example.com --new-client")},
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
		t.Errorf("the service holds %d leads, before it held %d", n, made)
	}
	time.AfterFunc(time.Second, func() { close(h.let) }) // the run waits for what is in flight
	if code := holding.signal(syscall.SIGTERM, syscall.SIGHUP); code != 130 {
		t.Errorf("the run that held the lock: exit %d\n%s", code, &holding.said)
	}
	if n := len(w.exported("in_doubt")); n != 0 {
		t.Errorf("%d rows in doubt: signals within a moment are one", n)
	}
}

// Standard input stays open, but no more rows come. A signal, --max-duration or --max-creates still ends the run in
// order: rows that were sent are settled, and the summary is complete. faults 6, 135
func TestRunEndsInOrderAtIdleInput(t *testing.T) {
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
			c := w.waits(append(words("import -m leads.yaml - --format csv --out run"), test.flags...)...)
			header, row, _ := strings.Cut(w.read("leads.csv"), "\n")
			row, _, _ = strings.Cut(row, "\n")
			fmt.Fprintln(c.in, header)
			for i := range 300 { // wide rows: reading begins with 64 KiB
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

// --min-rows holds the rows of standard input back until that many have come.
func TestMinRowsHoldsBackStandardInput(t *testing.T) {
	t.Parallel()
	const rows = 2000
	w := newWorld(t, sandbox.Options{})
	w.leads(rows)
	lines := strings.SplitAfter(w.read("leads.csv"), "\n")
	c := w.waits("import -m leads.yaml - --format csv --out none --min-rows", itoa(rows))
	submit := func(lines []string) {
		_, err := io.WriteString(c.in, strings.Join(lines, ""))
		must.Do(t, err)
	}
	submit(lines[:rows])    // the header is one of them
	time.Sleep(time.Second) // time enough to send rows that are not held back
	w.holds(0)
	submit(lines[rows:])
	c.in.Close()
	if err := c.Wait(); err != nil {
		t.Errorf("%v\n%s", err, c.said.String())
	}
	w.holds(rows)
}
