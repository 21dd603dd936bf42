package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"time"
)

// trial is one process from its start to its end.
type trial struct {
	wall   time.Duration
	cpu    time.Duration // user and system
	peak   int64         // bytes of anonymous memory, the most that was seen; 0: the system does not tell
	opened time.Duration // until it said which checkpoint it has opened; 0: it did not
	out    []byte
}

// rate is how many of so many rows it did in a second.
func (t trial) rate(rows int) float64 { return float64(rows) / t.wall.Seconds() }

// perform runs a command to its end and measures it. An exit code other than 0 is an
// error, for what went wrong was not measured.
func perform(cmd *exec.Cmd) (trial, error) {
	var t trial
	var out bytes.Buffer
	said := &listener{}
	cmd.Stdout, cmd.Stderr = &out, said
	said.began = time.Now()
	if err := cmd.Start(); err != nil {
		return t, err
	}
	ended := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() { t.peak = watchMemory(cmd.Process.Pid, ended) })
	err := cmd.Wait()
	t.wall = time.Since(said.began)
	close(ended)
	watch.Wait()
	if err != nil {
		return t, fmt.Errorf("%s %s: %w\n%s%s", cmd.Path, cmd.Args[1], err, out.Bytes(), said.text)
	}
	t.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	t.opened, t.out = said.opened, out.Bytes()
	return t, nil
}

// listener keeps the beginning of what a program says and notes when it names its
// checkpoint.
type listener struct {
	began  time.Time
	opened time.Duration
	text   []byte
}

const heard = 16 << 10 // bytes kept

func (l *listener) Write(b []byte) (int, error) {
	l.text = append(l.text, b[:min(len(b), heard-len(l.text))]...)
	if l.opened == 0 && bytes.Contains(l.text, []byte("checkpoint: ")) {
		l.opened = time.Since(l.began)
	}
	return len(b), nil
}

// watchMemory looks at a process until it has ended, and a last time before that.
func watchMemory(pid int, ended <-chan struct{}) (most int64) {
	path := fmt.Sprintf("/proc/%d/status", pid)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		most = max(most, anonymous(path))
		select {
		case <-tick.C:
		case <-ended:
			return most
		}
	}
}

// anonymous is the RssAnon of a status file of Linux in bytes, 0 where there is none.
func anonymous(path string) int64 {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	_, rest, _ := bytes.Cut(text, []byte("RssAnon:"))
	digits, _, _ := bytes.Cut(bytes.TrimSpace(rest), []byte(" "))
	kib, err := strconv.ParseInt(string(digits), 10, 64)
	if err != nil {
		return 0
	}
	return kib << 10
}

// peer runs this command by another name, in a process of its own.
func (l *lab) peer(ctx context.Context, args ...string) (trial, error) {
	cmd := exec.CommandContext(ctx, l.self, args...)
	cmd.Env = append(cmd.Environ(), asMeasure)
	return perform(cmd)
}
