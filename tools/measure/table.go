package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"
)

// options of the table.
type options struct {
	rows int           // of the inputs; every size is a share of it
	runs int           // turns that a figure is the median of
	wrk  time.Duration // how long wrk runs
	full bool
	dir  string
	only []string // numbers; none: all
}

// fullRows is the size of the inputs for which the targets were set.
const fullRows = 1_000_000

func parseOptions(args []string, s streams) (o options, err error) {
	set := flags("[flags]: takes the numbers that leadferry has to hold (also: measure sink, bare, readcsv …)", s)
	set.IntVar(&o.rows, "rows", fullRows, "rows of the inputs; each number takes its share")
	set.IntVar(&o.runs, "runs", 3, "turns that a figure is the median of")
	set.DurationVar(&o.wrk, "wrk", 10*time.Second, "how long wrk runs each time")
	set.BoolVar(&o.full, "full", false, "N9 and N10 with ten times the rows")
	set.StringVar(&o.dir, "dir", "", "`FOLDER` for temporary files, on a disk and not in memory")
	quick := set.Bool("quick", false, "-rows 20000 -runs 1 -wrk 1s, unless they are given")
	only := set.String("only", "", "numbers to take, such as N1,N5 (default: all)")
	if err := set.Parse(args); err != nil {
		return o, err
	}
	if set.NArg() > 0 {
		return o, fmt.Errorf("%q is neither a flag nor one of sink, bare, readcsv, readjsonl, readxlsx", set.Arg(0))
	}
	if *quick {
		given := map[string]bool{}
		set.Visit(func(f *flag.Flag) { given[f.Name] = true })
		for name, value := range map[string]string{"rows": "20000", "runs": "1", "wrk": "1s"} {
			if !given[name] {
				_ = set.Set(name, value)
			}
		}
	}
	if o.rows < 100 || o.runs < 1 || o.wrk < time.Second {
		return o, errors.New("-rows is 100 at least, -runs is 1, -wrk is 1s")
	}
	for id := range strings.SplitSeq(strings.ToUpper(*only), ",") {
		id = strings.TrimSpace(id)
		switch {
		case slices.ContainsFunc(numbers, func(n number) bool { return n.id == id }):
			o.only = append(o.only, id)
		case *only != "":
			return o, fmt.Errorf("-only %s: the numbers are %s to %s", id, numbers[0].id, numbers[len(numbers)-1].id)
		}
	}
	return o, nil
}

func (o *options) wants(id string) bool { return len(o.only) == 0 || slices.Contains(o.only, id) }

func (o *options) tenth() int { return o.rows / 10 }

func (o *options) threeTenths() int { return 3 * o.rows / 10 }

// most are the most rows of any number.
func (o *options) most() int {
	if o.full {
		return 10 * o.rows
	}
	return o.rows
}

// number is one line of the table of numbers to hold, and the way to take it.
type number struct {
	id   string
	size sizing
	take func(*lab) []finding
}

// sizing says at which sizes a number means something.
type sizing int

const (
	anySize  sizing = iota
	fullSize        // it is not judged at smaller sizes: short runs are mostly start and end
	onlyFull        // it is not taken at smaller sizes: it has one size and takes minutes
)

// finding is one line of the printed table.
type finding struct{ what, target, measured, held string }

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

// runTable takes the numbers that are wanted and prints each as it is found. A number that cannot be taken does not
// keep the others from being taken.
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
	for _, n := range numbers {
		if !o.wants(n.id) || n.size == onlyFull && o.rows < fullRows {
			continue
		}
		l.say("%s %s", time.Now().Format(time.TimeOnly), n.id)
		found, nerr := l.take(n)
		for _, f := range found {
			if n.size == fullSize && o.rows < fullRows {
				f.held = unknown
			}
			fmt.Fprintf(s.out, "| %s | %s | %s | %s | %s |\n", n.id, f.what, f.target, f.measured, f.held)
		}
		if ctx.Err() != nil {
			return errors.New("interrupted")
		}
		if nerr != nil {
			err = errors.Join(err, nerr)
			fmt.Fprintf(s.out, "| %s | | | could not be taken | %s |\n", n.id, unknown)
		}
	}
	fmt.Fprintf(s.out, "\n%d cores, %s/%s; %s; %s; inputs of %s rows, turns: %d\n",
		runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version(), time.Now().Format(time.DateOnly), grouped(o.rows), o.runs)
	if o.rows < fullRows {
		fmt.Fprintln(s.out, "The targets were set for larger inputs: numbers that depend on the size are not judged.")
	}
	return err
}

// take takes a number. A tool that is not installed is no error: the table says so.
func (l *lab) take(n number) (found []finding, err error) {
	defer func() {
		switch why := recover().(type) {
		case nil:
		case failure:
			if errors.Is(why.error, errNoPostgres) || errors.Is(why.error, exec.ErrNotFound) {
				found = []finding{{measured: "left out: " + why.Error(), held: unknown}}
				return
			}
			err = fmt.Errorf("%s: %w", n.id, why.error)
		default:
			panic(why)
		}
	}()
	return n.take(l), nil
}

// comparison is what came of two things that ran in turn: medians of their figures and of the ratios.
type comparison struct{ ours, theirs, ratio float64 }

func (l *lab) compare(turn func() (ours, theirs float64)) comparison {
	var ours, theirs, ratios []float64
	for range l.runs {
		a, b := turn()
		ours, theirs, ratios = append(ours, a), append(theirs, b), append(ratios, a/b)
	}
	return comparison{median(ours), median(theirs), median(ratios)}
}

// rates is a finding of a comparison of rows a second: at least so much of what the other one did.
func (c comparison) rates(what string, target float64, other string) finding {
	return finding{
		what, fmt.Sprintf("≥ %.2f × %s", target, other),
		fmt.Sprintf("%.2f (%s of %s/s)", c.ratio, grouped(c.ours), grouped(c.theirs)), verdict(c.ratio >= target),
	}
}

// seconds is a finding of a comparison of times: at most so much of what the other one took.
func (c comparison) seconds(what string, target float64, other string) finding {
	return finding{
		what, fmt.Sprintf("≤ %.1f × %s", target, other),
		fmt.Sprintf("%.2f (%.1f s beside %.1f s)", c.ratio, c.ours, c.theirs), verdict(c.ratio <= target),
	}
}

// median is the middle one of some figures, or the lower of the two in the middle.
func median(all []float64) float64 {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[(len(sorted)-1)/2]
}

// grouped writes a number with commas between groups of three digits.
func grouped[N int | float64](n N) string {
	digits := fmt.Sprintf("%.0f", float64(n))
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
