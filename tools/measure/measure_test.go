package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
)

// TestMain lets the test binary act as the sink and the peers, which measurements start as separate processes.
func TestMain(m *testing.M) {
	if os.Getenv("LEADFERRY_MEASURE") == "command" {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		err := run(ctx, os.Args[1:], streams{os.Stdout, os.Stderr})
		stop()
		if err != nil {
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// TestTable measures everything at a small size: build, inputs, sink, peers, program. A run with wrong outcomes is an
// error, so a table without errors shows that all of it works.
func TestTable(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the program")
	}
	dir := t.TempDir()
	var out, note bytes.Buffer
	t.Setenv("TMPDIR", dir)
	args := []string{"-rows", "1000", "-runs", "1"}
	if err := run(t.Context(), args, streams{&out, &note}); err != nil {
		t.Fatalf("%v\n%s\n%s", err, &out, &note)
	}
	for _, want := range []string{
		"| N3 | import, 64 in flight, latency 0s, 300 rows |",
		"| N5 | validate, CSV, ten fields, 1,000 rows |",
		"| N6 | validate, JSONL, ten fields, 1,000 rows |",
		"| N7 | resume, 1,000 finished rows |",
		"| N11 | a created lead | ≤ 1 creates | 1.00 creates | yes |",
		"| N11 | a linked lead | ≤ 1 updates | 1.00 updates | yes |",
		"| N11 | a token life | ≤ 1 token requests | 1.00 token requests | yes |",
		"| N10 | checkpoint, each row |",
		"| N10 | import into a checkpoint of 1,000 rows, keys in order |",
		"| N10 | import into a checkpoint of 1,000 rows, keys random |",
		"| N13 | import of 1 row against the sandbox |",
		"| N14 |",
		"| N18 | validate, XLSX, ten fields, 100 rows |",
		"| N19 | opening after a kill -9 at 1,000 entries |",
		"| N19 | memory of adopt, each lead |",
		"| N20 | report.html of 1,000 rows |",
		"| N22 | reconcile --remote none, 1,000 rows |",
		"| N25 | processor time of an import, 64 in flight, latency 20ms, 100 rows |",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the table lacks %q", want)
		}
	}
	if lines := strings.Count(out.String(), " | 0.00 requests | yes"); lines != 3 {
		t.Errorf("resume, sync or reconcile sent something")
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if t.Failed() {
		t.Log(out.String())
	}
}

// TestInterruptedTableLeavesNothing interrupts the measurement while an import runs.
func TestInterruptedTableLeavesNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the program")
	}
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	ctx, stop := context.WithCancel(t.Context())
	note := &trigger{on: "importing ", do: stop}
	err := run(ctx, []string{"-rows", "100000", "-only", "N8"}, streams{io.Discard, note})
	if err == nil || !strings.Contains(err.Error(), "interrupted") {
		t.Errorf("it ended with %v", err)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// A run with other outcomes than expected is an error: its figures would say nothing.
func TestARunWhoseRowsEndOtherwiseIsAnError(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the program")
	}
	l, err := newLab(t.Context(), options{rows: 100, runs: 1}, streams{io.Discard, io.Discard})
	defer func() {
		if err := l.close(); err != nil {
			t.Error(err)
		}
	}()
	if err != nil {
		t.Fatal(err)
	}
	s := l.sink(0)
	var w *world
	path := l.input(leadFile{to: 10})
	err = l.take(number{take: func(l *lab) {
		w = l.world(s)
		if trial := w.send(outcomes{"created": 10}, "import", 4, path); trial.cpu == 0 {
			t.Errorf("%+v", trial)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	for what, take := range map[string]func(){
		"unchanged:10":         func() { w.send(outcomes{"created": 10}, "import", 4, path) },
		"exit status":          func() { w.send(outcomes{"created": 10}, "import", 4, path+".lost") },
		"measure.test readcsv": func() { l.peer("readcsv", path+".lost") },
	} {
		err := l.take(number{take: func(*lab) { take() }})
		if err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if seen := s.stats(); seen.Creates != 10 || seen.Most > 4 {
		t.Errorf("%+v", seen)
	}
}

// trigger does something once a text is written.
type trigger struct {
	on string
	do func()
}

func (w *trigger) Write(b []byte) (int, error) {
	if strings.Contains(string(b), w.on) {
		w.do()
	}
	return len(b), nil
}
