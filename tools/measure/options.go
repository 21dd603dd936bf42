package main

import (
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"time"
)

// options of the table.
type options struct {
	rows   int           // of the inputs; every size is a share of it
	runs   int           // turns that a figure is the median of
	wrk    time.Duration // how long wrk runs
	full   bool
	random bool
	dir    string
	only   []string // numbers; none: all
}

func parseOptions(args []string, s streams) (o options, err error) {
	set := flags("[flags]: takes the numbers that leadferry has to hold (also: measure sink|leads|readcsv|readjsonl|readxlsx|bare|closing -h)", s)
	set.IntVar(&o.rows, "rows", fullRows, "rows of the inputs; each number takes its share")
	set.IntVar(&o.runs, "runs", 3, "turns that a figure is the median of")
	set.DurationVar(&o.wrk, "wrk", 10*time.Second, "how long wrk runs each time")
	set.BoolVar(&o.full, "full", false, "N9 and N10 with ten times the rows")
	set.BoolVar(&o.random, "random-leads", false, "a sink that gives lead IDs in no order")
	set.StringVar(&o.dir, "dir", "", "`FOLDER` for a temporary folder (default: the system's); it should lie on a disk, not in memory")
	quick := set.Bool("quick", false, "rows 20000, runs 1, wrk 1s, unless they are given")
	only := set.String("only", "", "numbers to take, such as N1,N5 (default: all)")
	if err := set.Parse(args); err != nil {
		return o, err
	}
	if set.NArg() > 0 {
		return o, fmt.Errorf("%q is neither a flag nor one of sink, leads, readcsv, readjsonl, readxlsx, bare, closing", set.Arg(0))
	}
	if *quick {
		o.hasten(set)
	}
	if o.rows < 100 || o.runs < 1 || o.wrk < time.Second {
		return o, errors.New("-rows is 100 at least, -runs is 1, -wrk is 1s")
	}
	return o, o.choose(*only)
}

// hasten makes everything small that was not asked for otherwise.
func (o *options) hasten(set *flag.FlagSet) {
	given := map[string]bool{}
	set.Visit(func(f *flag.Flag) { given[f.Name] = true })
	if !given["rows"] {
		o.rows = 20_000
	}
	if !given["runs"] {
		o.runs = 1
	}
	if !given["wrk"] {
		o.wrk = time.Second
	}
}

func (o *options) choose(only string) error {
	if only == "" {
		return nil
	}
	for _, id := range strings.Split(strings.ToUpper(only), ",") {
		id = strings.TrimSpace(id)
		known := slices.ContainsFunc(numbers(), func(n number) bool { return n.id == id })
		if !known {
			return fmt.Errorf("-only %s: the numbers are N1 to N18, N21 and N22", id)
		}
		o.only = append(o.only, id)
	}
	return nil
}

func (o *options) wants(id string) bool { return len(o.only) == 0 || slices.Contains(o.only, id) }

// tenth is a tenth of the rows, three their three tenths, most the most of any number.
func (o *options) tenth() int { return o.rows / 10 }

func (o *options) three() int { return 3 * o.rows / 10 }

func (o *options) most() int {
	if o.full {
		return 10 * o.rows
	}
	return o.rows
}
