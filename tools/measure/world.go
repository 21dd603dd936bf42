package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// world is where the program runs: a home, a state folder and a checkpoint of its own.
type world struct {
	lab        *lab
	dir        string
	checkpoint string
	service    *service // nil: none is told
	processors int      // that the program may use; 0: all
}

func (l *lab) world(s *service) (*world, error) {
	dir, err := os.MkdirTemp(l.dir, "world-")
	return &world{lab: l, dir: dir, checkpoint: filepath.Join(dir, "checkpoint.db"), service: s}, err
}

// leave removes what the program has written.
func (w *world) leave() error { return os.RemoveAll(w.dir) }

// command is the program in this world; nothing of the user's own settings is there.
func (w *world) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, w.lab.program, args...)
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

// outcomes are rows by how they ended.
type outcomes map[string]int

// run runs a command over files and holds it to its outcomes: figures of a run in
// which rows fail would say nothing. Import and sync write all their files, as they
// do for everybody; validate writes its summary alone, as it does when it is asked to.
func (w *world) run(ctx context.Context, want outcomes, args ...string) (trial, error) {
	out := filepath.Join(w.dir, "run")
	summary := filepath.Join(w.dir, "summary.json")
	if args[0] != "validate" {
		args = append(args, "--out", out)
		defer os.RemoveAll(out)
	}
	defer os.Remove(summary) // the next run shall not be judged by it
	args = append(args, "--summary", summary)
	t, err := perform(w.command(ctx, args...))
	if err != nil {
		return t, err
	}
	text, err := os.ReadFile(summary)
	if err != nil {
		return t, err
	}
	var s struct{ Rows outcomes }
	if err := json.Unmarshal(text, &s); err != nil {
		return t, err
	}
	delete(s.Rows, "read")
	maps.DeleteFunc(s.Rows, func(_ string, rows int) bool { return rows == 0 })
	if !maps.Equal(s.Rows, want) {
		return t, fmt.Errorf("leadferry %s ended with rows %v, not %v", strings.Join(args, " "), s.Rows, want)
	}
	return t, nil
}

// send is an import or a sync with so many requests in flight.
func (w *world) send(ctx context.Context, want outcomes, command string, workers int, more ...string) (trial, error) {
	return w.run(ctx, want, append([]string{command, "-c", strconv.Itoa(workers), "-m", w.lab.path("plain.yaml")}, more...)...)
}

// size is how many bytes the checkpoint has.
func (w *world) size() (int64, error) {
	info, err := os.Stat(w.checkpoint)
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}
