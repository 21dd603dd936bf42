package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"time"

	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"leadferry/tools/must"
)

// options are the flags of the command that prints the table.
type options struct {
	rows int // of the inputs; all sizes are shares of it
	runs int // how many turns a figure is the median of
	full bool
	only *regexp.Regexp // numbers; nil: all
}

// fullRows is the size of the inputs for which the targets are set.
const fullRows = 1_000_000

func parseOptions(args []string, s streams) (o options, err error) {
	set := flags("[flags]: measures the numbers that leadferry must reach (also: measure sink, bare, readcsv …)", s)
	set.IntVar(&o.rows, "rows", fullRows, "rows of the inputs; each number takes its share")
	set.IntVar(&o.runs, "runs", 3, "turns; each figure is their median")
	set.BoolVar(&o.full, "full", false, "N9 and N10 with ten times the rows")
	set.Func("only", "`NUMBERS` to measure, for example 'N1|N5' (default: all)", func(names string) (err error) {
		o.only, err = regexp.Compile("^(" + names + ")$")
		return err
	})
	if err := set.Parse(args); err != nil {
		return o, err
	}
	switch {
	case set.NArg() > 0:
		return o, fmt.Errorf("%q is neither a flag nor one of sink, bare, readcsv, readjsonl, readxlsx", set.Arg(0))
	case o.rows < 100 || o.runs < 1:
		return o, errors.New("-rows is 100 at least, -runs is 1")
	}
	return o, nil
}

// most returns the largest number of rows that a number needs.
func (o *options) most() int {
	if o.full {
		return 10 * o.rows
	}
	return o.rows
}

// number is a number to reach, and how to measure it.
type number struct {
	id   string
	long bool // takes minutes whatever -rows says: skipped below the full size
	take func(*lab)
}

// runTable measures the chosen numbers and prints each at once. It goes on after one that it cannot measure.
func runTable(ctx context.Context, args []string, s streams) (err error) {
	o, err := parseOptions(args, s)
	if err != nil {
		return err
	}
	l, err := newLab(ctx, o, s)
	defer func() { err = errors.Join(err, l.close()) }()
	if err != nil {
		return err
	}
	fmt.Fprint(s.out, "| # | what | target | measured | holds |\n|---|---|---|---|---|\n")
	for _, n := range numbers {
		if o.only != nil && !o.only.MatchString(n.id) || n.long && o.rows < fullRows {
			continue
		}
		l.say("%s %s", time.Now().Format(time.TimeOnly), n.id)
		if nerr := l.take(n); nerr != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", n.id, nerr))
		}
		if ctx.Err() != nil {
			return errors.New("interrupted")
		}
	}
	fmt.Fprintf(s.out, "\n%d cores, %s/%s; %s; %s; inputs of %s rows, turns: %d\n",
		runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version(), time.Now().Format(time.DateOnly),
		grouped(o.rows), o.runs)
	return err
}

// take measures a number. If a tool is not installed, the table says so, and there is no error.
func (l *lab) take(n number) (err error) {
	defer func() {
		what := "could not be measured"
		if errors.Is(err, errNoPostgres) || errors.Is(err, exec.ErrNotFound) {
			what, err = "left out: "+err.Error(), nil
		} else if err == nil {
			return
		}
		fmt.Fprintf(l.out, "| %s | | | %s | – |\n", n.id, what)
	}()
	defer must.Catch(&err)
	l.now = n
	n.take(l)
	return nil
}

// judge prints a result.
func (l *lab) judge(what, target, measured string, holds bool) {
	fmt.Fprintf(l.out, "| %s | %s | %s | %s | %s |\n", l.now.id, what, target, measured,
		map[bool]string{true: "yes", false: "**no**"}[holds])
}

// atMost judges a figure with a limit.
func (l *lab) atMost(what, unit string, limit, got float64) {
	l.judge(what, fmt.Sprintf("≤ %v %s", limit, unit), fmt.Sprintf("%.2f %s", got, unit), got <= limit)
}

// peak judges the memory of a command, in MiB, if the system shows it.
func (l *lab) peak(command string, rows, limit int, t trial) {
	if t.peak > 0 {
		l.atMost(fmt.Sprintf("memory, %s, %s rows", command, grouped(rows)), "MiB", float64(limit),
			float64(t.peak)/mebibyte)
	}
}

// comparison is the result of two things that ran in turn: the medians of their figures and of the ratios.
type comparison struct{ ours, theirs, ratio float64 }

func (l *lab) compare(turn func() (ours, theirs float64)) comparison {
	var ours, theirs, ratios []float64
	for range l.runs {
		a, b := turn()
		ours, theirs, ratios = append(ours, a), append(theirs, b), append(ratios, a/b)
	}
	return comparison{median(ours), median(theirs), median(ratios)}
}

// rates judges a comparison of rates: ours must be at least target times theirs.
func (l *lab) rates(what string, target float64, other string, c comparison) {
	measured := fmt.Sprintf("%.2f (%s of %s/s)", c.ratio, grouped(c.ours), grouped(c.theirs))
	l.judge(what, fmt.Sprintf("≥ %.2f × %s", target, other), measured, c.ratio >= target)
}

// seconds judges a comparison of times: ours must be at most target times theirs.
func (l *lab) seconds(what string, target float64, other string, c comparison) {
	measured := fmt.Sprintf("%.2f (%.1f s beside %.1f s)", c.ratio, c.ours, c.theirs)
	l.judge(what, fmt.Sprintf("≤ %.1f × %s", target, other), measured, c.ratio <= target)
}

// median returns the middle figure, or the lower one of two in the middle.
func median(all []float64) float64 {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[(len(sorted)-1)/2]
}

// grouped writes a whole number with a comma before each group of three digits.
func grouped[N int | float64](n N) string {
	return message.NewPrinter(language.English).Sprintf("%.0f", float64(n))
}

// streams are the outputs of a command.
type streams struct{ out, err io.Writer }

// flags returns a flag set that prints mistakes and help on standard error.
func flags(heading string, s streams) *flag.FlagSet {
	set := flag.NewFlagSet("measure "+heading, flag.ContinueOnError)
	set.SetOutput(s.err)
	return set
}
