// Command measure measures the numbers that leadferry must reach and prints a table: the target, the result on this
// machine, and whether it reaches the target.
//
//	go -C tools run ./measure                      # all numbers at their full sizes, about a quarter of an hour
//	go -C tools run ./measure -rows 20000 -runs 1  # small sizes, to see that everything works
//	go -C tools run ./measure -only 'N1|N5' -runs 5
//	go -C tools run ./measure -full                # also memory and checkpoint at ten million rows: 15 GB of disk
//
// It builds leadferry, writes its inputs (the same bytes everywhere), and starts an imitation of the lead service in
// its own process. It runs the program as a person would, with its own state folder. Absolute figures differ from
// machine to machine and from hour to hour. So most numbers are ratios of two things that run in turn, and each figure
// is the median of several turns. The parts can also run alone:
//
//	go -C tools run ./measure sink -latency 20ms     # prints its address
//	go -C tools run ./measure readcsv leads.csv    # or readjsonl, readxlsx
//	go -C tools run ./measure bare -url ADDRESS -c 64 leads.csv
package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	"leadferry/tools/must"
)

// asMeasure in the environment makes the binary of the tests act as this command.
const asMeasure = "LEADFERRY_MEASURE=command"

func main() {
	must.Main("measure", func(ctx context.Context, args []string) error {
		return run(ctx, args, streams{os.Stdout, os.Stderr})
	})
}

// run performs one command; without a name it measures the table of numbers.
func run(ctx context.Context, args []string, s streams) error {
	name := ""
	if len(args) > 0 {
		name = args[0]
	}
	switch {
	case name == "sink":
		return runSink(ctx, args[1:], s)
	case name == "bare":
		return runBare(ctx, args[1:], s)
	case readers[name] != nil:
		return runReader(name, args[1:], s)
	}
	return runTable(ctx, args, s)
}

// openFile parses flags followed by the name of one file, and opens it.
func openFile(set *flag.FlagSet, args []string) *os.File {
	must.Do(set.Parse(args))
	if set.NArg() != 1 {
		must.Do(fmt.Errorf("%s wants one file name", set.Name()))
	}
	return must.Get(os.Open(set.Arg(0)))
}
