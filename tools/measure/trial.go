package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"leadferry/tools/must"
)

// trial is one run of a process, from start to end.
type trial struct {
	wall time.Duration
	cpu  time.Duration // user and system
	peak int64         // the most bytes of anonymous memory seen; 0: the system does not show it
	out  []byte
}

// rate returns how many rows a second the trial did, if it did this many.
func (t trial) rate(rows int) float64 { return float64(rows) / t.wall.Seconds() }

// perform runs a command to its end and measures it. An exit code other than 0 is an error.
func perform(cmd *exec.Cmd) (t trial, err error) {
	var out, said bytes.Buffer
	began := time.Now()
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Start(); err != nil {
		return t, err
	}
	ended := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() { t.peak = watchMemory(cmd.Process.Pid, ended) })
	err = cmd.Wait()
	t.wall = time.Since(began)
	close(ended)
	watch.Wait()
	if err != nil {
		return t, fmt.Errorf("%s: %w\n%s%s", cmd, err, out.Bytes(), said.Bytes())
	}
	t.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	t.out = out.Bytes()
	return t, nil
}

// rssAnon matches the line of anonymous memory in a status file of Linux.
var rssAnon = regexp.MustCompile(`(?m)^RssAnon:\s+(\d+) kB`)

// watchMemory returns the most anonymous memory that a process has until it ends; 0: the system does not show it.
func watchMemory(pid int, ended <-chan struct{}) (most int64) {
	for {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if found := rssAnon.FindSubmatch(text); found != nil {
			most = max(most, must.Get(strconv.ParseInt(string(found[1]), 10, 64))<<10)
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ended:
			return most
		}
	}
}

// world is a place where the program runs, with its own home, state folder and checkpoint.
type world struct {
	lab        *lab
	dir        string
	checkpoint string
	service    *service // nil: none
	processors int      // the program may use this many; 0: all
}

func (l *lab) world(s *service) *world {
	dir := must.Get(os.MkdirTemp(l.dir, "world-"))
	return &world{lab: l, dir: dir, checkpoint: filepath.Join(dir, "checkpoint.db"), service: s}
}

// leave removes what the program wrote.
func (w *world) leave() { must.Do(os.RemoveAll(w.dir)) }

// command returns the program as a command in this world, without the user's own settings.
func (w *world) command(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(w.lab.ctx, w.lab.program, args...)
	cmd.Dir = w.dir
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "LEADFERRY_") && !strings.HasPrefix(v, "XDG_") && !strings.HasPrefix(v, "HOME=") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	for _, name := range []string{"HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "TMPDIR"} {
		cmd.Env = append(cmd.Env, name+"="+w.dir)
	}
	if w.processors > 0 {
		cmd.Env = append(cmd.Env, fmt.Sprintf("GOMAXPROCS=%d", w.processors))
	}
	if w.service != nil {
		cmd.Env = append(cmd.Env,
			"LEADFERRY_BASE_URL="+w.service.url, "LEADFERRY_LEADS_URL="+w.service.url, "LEADFERRY_TRUNK_ID=trunk",
			"LEADFERRY_CLIENT_ID=client", "LEADFERRY_CLIENT_SECRET=secret", "LEADFERRY_CHECKPOINT="+w.checkpoint)
	}
	return cmd
}

// outcomes count rows by outcome.
type outcomes map[string]int

// run runs a command and requires its outcomes: the time of a run with failed rows means nothing. Commands write all
// their files, which stay until the next run.
func (w *world) run(want outcomes, args ...string) trial {
	summary := filepath.Join(w.dir, "summary.json")
	must.Do(os.RemoveAll(w.out()))
	must.Do(os.RemoveAll(summary))
	t := must.Get(perform(w.command(append(args, "--out", w.out(), "--summary", summary)...)))
	var s struct{ Rows outcomes }
	must.Do(json.Unmarshal(must.Get(os.ReadFile(summary)), &s))
	delete(s.Rows, "read")
	maps.DeleteFunc(s.Rows, func(_ string, rows int) bool { return rows == 0 })
	if !maps.Equal(s.Rows, want) {
		must.Do(fmt.Errorf("leadferry %s ended with rows %v, not %v", strings.Join(args, " "), s.Rows, want))
	}
	return t
}

func (w *world) out() string { return filepath.Join(w.dir, "run") }

// send runs a command that may send, with workers requests in flight.
func (w *world) send(want outcomes, command string, workers int, more ...string) trial {
	return w.run(want, append([]string{command, "-c", strconv.Itoa(workers), "-m", w.lab.path("plain.yaml")},
		more...)...)
}

// service is a sink that runs in its own process.
type service struct {
	url string
	cmd *exec.Cmd
}

// sink starts a sink. It runs until it is stopped or the lab closes.
func (l *lab) sink(latency time.Duration, more ...string) *service {
	s := &service{cmd: exec.CommandContext(l.ctx, l.self,
		append([]string{"sink", "-latency", latency.String()}, more...)...)}
	s.cmd.Env = append(s.cmd.Environ(), asMeasure)
	s.cmd.Stderr = l.err
	out := must.Get(s.cmd.StdoutPipe())
	must.Do(s.cmd.Start())
	l.sinks = append(l.sinks, s)
	s.url = strings.TrimSpace(must.Get(bufio.NewReader(out).ReadString('\n')))
	return s
}

// stop ends the sink and waits for it. A second call does nothing.
func (s *service) stop() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

// stats asks the sink for its counters.
func (s *service) stats() (got stats) {
	res := must.Get(http.Get(s.url + "/stats"))
	defer res.Body.Close()
	must.Do(json.NewDecoder(res.Body).Decode(&got))
	return got
}
