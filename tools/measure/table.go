package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
)

// number is one line of the table of numbers to hold, and the way to take it.
type number struct {
	id    string
	sized bool // it says something at full size only: short runs are mostly start and end
	take  func(*lab, context.Context) ([]finding, error)
}

// finding is one line of the printed table.
type finding struct {
	what, target, measured, held string
}

// fullRows is the size of the inputs for which the targets were set.
const fullRows = 1_000_000

// The words for whether a number holds.
const (
	holds   = "yes"
	fails   = "**no**"
	unknown = "–"
)

func verdict(ok bool) string {
	if ok {
		return holds
	}
	return fails
}

func numbers() []number {
	return []number{
		{"N1", true, (*lab).besideWrk64},
		{"N2", true, (*lab).besideWrk256},
		{"N3", true, (*lab).besideBare},
		{"N4", true, (*lab).processor},
		{"N5", true, (*lab).validateCSV},
		{"N6", true, (*lab).validateJSONL},
		{"N7", true, (*lab).resume},
		{"N8", true, (*lab).sync},
		{"N9", true, (*lab).memory},
		{"N10", true, (*lab).checkpoints},
		{"N11", false, (*lab).requests},
		{"N12", false, (*lab).doubt},
		{"N13", false, (*lab).start},
		{"N14", false, (*lab).binary},
		{"N15", true, (*lab).ledgerOnServer},
		{"N16", true, (*lab).fleetOfFour},
		{"N17", true, (*lab).resumeOnServer},
		{"N18", true, (*lab).validateXLSX},
		{"N21", true, (*lab).readAll},
		{"N22", true, (*lab).readNone},
	}
}

// runTable takes the numbers that are wanted and prints each as it is found. What
// could not be taken does not keep the others from being taken.
func runTable(ctx context.Context, args []string, s streams) (err error) {
	o, err := parseOptions(args, s)
	if err != nil {
		return err
	}
	l, err := newLab(ctx, o, s.err)
	defer func() { err = errors.Join(err, l.close()) }()
	if err != nil {
		return err
	}
	fmt.Fprint(s.out, "| # | what | target | measured | holds |\n|---|---|---|---|---|\n")
	for _, n := range numbers() {
		if !o.wants(n.id) {
			continue
		}
		l.say("%s %s", time.Now().Format(time.TimeOnly), n.id)
		found, nerr := n.take(l, ctx)
		for _, f := range found {
			if n.sized && l.rows < fullRows {
				f.held = unknown
			}
			fmt.Fprintf(s.out, "| %s | %s | %s | %s | %s |\n", n.id, f.what, f.target, f.measured, f.held)
		}
		if ctx.Err() != nil {
			return errors.New("interrupted")
		}
		if errors.Is(nerr, errNoPostgres) {
			fmt.Fprintf(s.out, "| %s | | | PostgreSQL is not installed | %s |\n", n.id, unknown)
			continue
		}
		if nerr != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", n.id, nerr))
			fmt.Fprintf(s.out, "| %s | | | could not be taken | %s |\n", n.id, unknown)
		}
	}
	l.machine(s.out)
	return err
}

// machine prints where and when the figures were taken.
func (l *lab) machine(w io.Writer) {
	fmt.Fprintf(w, "\n%s, %d cores, %s/%s, files on %s; %s; %s; inputs of %s rows, turns: %d\n",
		processorName(), runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, fileSystem(l.dir), runtime.Version(),
		time.Now().Format(time.DateOnly), grouped(l.rows), l.runs)
	if l.rows < fullRows {
		fmt.Fprintf(w, "The sizes are below those that the targets were set for, so N1 to N10, N15 to N18, N21 and N22 are not judged.\n")
	}
}

// processorName is what Linux calls the processor.
func processorName() string {
	text, _ := os.ReadFile("/proc/cpuinfo") // elsewhere there is none
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "unknown processor"
}

// fileSystem is the type of the file system that a folder lies on, as Linux names it.
func fileSystem(dir string) string {
	text, _ := os.ReadFile("/proc/mounts") // elsewhere there is none
	kind, longest := "an unknown file system", ""
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) < 3 || len(f[1]) < len(longest) {
			continue
		}
		if at := strings.TrimSuffix(f[1], "/"); dir == at || strings.HasPrefix(dir, at+"/") {
			kind, longest = f[2], f[1]
		}
	}
	return kind
}

// median is the middle one of some figures, or the lower of the two in the middle.
func median(all []float64) float64 {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	return sorted[(len(sorted)-1)/2]
}

// grouped writes a number with commas between groups of three digits.
func grouped[N int | int64 | float64](n N) string {
	digits := fmt.Sprintf("%.0f", float64(n))
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
