package cli

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"leadferry/importer"
	"leadferry/importer/report"
)

const (
	running = "Run"
	files   = "Files"
	reading = "Input"
)

// inputFlags say how files are read; import, sync and validate share them.
func inputFlags() []cli.Flag {
	return append(sourceFlags(),
		&cli.StringFlag{Name: "mapping", Aliases: []string{"m"}, EnvVars: []string{"LEADFERRY_MAPPING"}, Usage: "the mapping `FILE`", Category: reading},
		&cli.IntFlag{Name: "limit", Usage: "stop after the first `N` rows of the input, all files together (0: all)", Category: reading},
		&cli.IntFlag{Name: "min-rows", Usage: "refuse inputs that together hold fewer than `N` rows: an export that went wrong", Category: reading},
		&cli.DurationFlag{Name: "max-age", Usage: "refuse a file that was written longer ago than `DURATION`: last week's export", Category: reading},
	)
}

// sourceFlags override what is detected, or what the mapping says, of a file.
func sourceFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "format", Usage: "`FORMAT` of the input: csv, tsv, jsonl or xlsx (default: by name or content)", Category: reading},
		&cli.StringFlag{Name: "delimiter", Usage: "one `CHARACTER`, or tab", Category: reading},
		&cli.StringFlag{Name: "encoding", Usage: "`LABEL` of the text's encoding, such as windows-1252; a byte order mark wins (default: utf-8)", Category: reading},
		&cli.BoolFlag{Name: "trust-encoding", Usage: "take rows that are valid UTF-8 for text of the single-byte encoding that is named, too; else they are invalid", Category: reading},
		&cli.StringFlag{Name: "sheet", Usage: "`NAME` of the workbook's sheet (default: the first visible one)", Category: reading},
	}
}

// outputFlags say where a run's files go.
func outputFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "out", EnvVars: []string{"LEADFERRY_OUT"}, Usage: "the run's folder `DIR`; none writes none (default: leadferry-runs/TIME-COMMAND-RUN)", Category: files},
		&cli.StringFlag{Name: "results", EnvVars: []string{"LEADFERRY_RESULTS"}, Usage: "write the results to `FILE`", Category: files},
		&cli.StringFlag{Name: "results-columns", Value: "own", Usage: "`own|all`: all puts the rows' own columns into the results too, which are people's data", Category: files},
		&cli.StringFlag{Name: "rejects", EnvVars: []string{"LEADFERRY_REJECTS"}, Usage: "write the rejects to `FILE`", Category: files},
		&cli.StringFlag{Name: "on-finish", Usage: "when the command ends, run `COMMAND` with the summary's path and the exit code, without a shell", Category: files},
		&cli.StringFlag{Name: "summary", EnvVars: []string{"LEADFERRY_SUMMARY"}, Usage: "write the summary to `FILE`; - is standard output", Category: files},
	}
}

func checkpointFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "checkpoint", EnvVars: []string{"LEADFERRY_CHECKPOINT"}, Usage: "the checkpoint `FILE` (default: one per target in the user's state directory)", Category: running},
		&cli.DurationFlag{Name: "wait", Usage: "wait so long for the checkpoint's lock: `DURATION`", Category: running},
	}
}

func newCheckpointFlag() cli.Flag {
	return &cli.BoolFlag{Name: "new-checkpoint", Usage: "begin a new checkpoint although a run folder tells of an earlier one", Category: running}
}

// sendFlags are those of a run that sends.
func sendFlags() []cli.Flag {
	return []cli.Flag{
		&cli.BoolFlag{Name: "require-checkpoint", Usage: "exit 4 instead of starting a new checkpoint", Category: running},
		newCheckpointFlag(),
		&cli.IntFlag{Name: "concurrency", Aliases: []string{"c"}, Value: 8, Usage: "requests in flight at most: `N`", Category: running},
		&cli.Float64Flag{Name: "rate", Usage: "requests per second at most, over all workers: `N` (0: no limit)", Category: running},
		&cli.DurationFlag{Name: "timeout", Value: 30 * time.Second, Usage: "for one request: `DURATION`", Category: running},
		&cli.IntFlag{Name: "retries", Value: 5, Usage: "further tries of a request that was answered and is safe to try again: `N`", Category: running},
		&cli.DurationFlag{Name: "max-wait", Value: 15 * time.Minute, Usage: "how long the run pauses while the service cannot be reached: `DURATION`", Category: running},
		&cli.BoolFlag{Name: "dry-run", Usage: "plan against the checkpoint and print what would be sent; send and write nothing", Category: running},
		&cli.IntFlag{Name: "show", Value: 10, Usage: "with --dry-run: print the first `N` requests", Category: running},
		&cli.BoolFlag{Name: "no-repeats", Usage: "with --dry-run: do not look for repeated keys", Category: running},
		&cli.StringFlag{Name: "in-doubt", Value: "hold", Usage: "rows whose earlier send has an unknown outcome: `hold|resend`", Category: running},
		&cli.StringFlag{Name: "resend-on", Usage: "further `CODES` after which a create may be sent again; none withdraws 429 and 503 with Retry-After", Category: running},
		&cli.IntFlag{Name: "max-in-doubt", Value: -1, DefaultText: "the larger of 20 and 4 × concurrency", Usage: "stop when more than `N` rows fell in doubt in this run (0: never)", Category: running},
		&cli.StringFlag{Name: "max-rejects", Value: "100", Usage: "stop when more than `N|P%` rows sent in this run were rejected or failed, or all at its beginning (0: never)", Category: running},
		&cli.StringFlag{Name: "max-invalid", Value: "50%", Usage: "stop when more than `N|P%` rows are invalid: the wrong file or mapping (0: never)", Category: running},
		&cli.IntFlag{Name: "max-creates", Usage: "stop before more than `N` leads are made (0: no limit)", Category: running},
		&cli.DurationFlag{Name: "max-duration", Usage: "stop taking rows after this `DURATION`, finish what has begun, links included", Category: running},
		&cli.StringFlag{Name: "look-alikes", Value: "hold", Usage: "rows whose key is not known and looks like a known one, such as 12 and 00012: `hold|create`; hold makes them conflicts", Category: running},
		&cli.BoolFlag{Name: "new-columns", Usage: "take a file whose columns are not those by which leads were made, though a row's own data are its key", Category: running},
		&cli.BoolFlag{Name: "new-key", Usage: "take a file of which leads were made by another key or namespace", Category: running},
		&cli.BoolFlag{Name: "retry-rejected", Usage: "send rows again that the service refused before", Category: running},
		&cli.IntFlag{Name: "keep-runs", DefaultText: "0, all", Usage: "remove the oldest folders in " + runsFolder + " beyond `N`: finished runs of this target without rejects and doubts", Category: files},
		&cli.BoolFlag{Name: "yes", Usage: "do not ask before leads are made", Category: running},
		metricsFlag(),
	}
}

// limits reads the flags that end a run early.
func limits(c *cli.Context) (l importer.Limits, err error) {
	l.MaxCreates, l.MaxInDoubt = c.Int("max-creates"), c.Int("max-in-doubt")
	if !c.IsSet("max-in-doubt") {
		l.MaxInDoubt = max(20, 4*c.Int("concurrency"))
	}
	if l.MaxRejects, err = share(c, "max-rejects"); err == nil {
		l.MaxInvalid, err = share(c, "max-invalid")
	}
	return l, err
}

// share reads a flag that is a number of rows or a percentage of them.
func share(c *cli.Context, name string) (importer.Share, error) {
	number, percent := strings.CutSuffix(c.String(name), "%")
	n, err := strconv.Atoi(number)
	switch {
	case err != nil || n < 0 || percent && n > 100:
		return importer.Share{}, usage("--"+name+" is neither a number nor a percentage", "for example 100, 5% or 0")
	case percent:
		return importer.Share{Percent: n}, nil
	}
	return importer.Share{Rows: n}, nil
}

// resendOn reads --resend-on: HTTP statuses, or none.
func resendOn(text string) (importer.ResendOn, error) {
	r := importer.ResendOn{Codes: map[int]bool{}}
	if text == "" {
		return r, nil
	}
	for word := range strings.SplitSeq(text, ",") {
		word = strings.TrimSpace(word)
		if word == "none" {
			r.NoDefault = true
			continue
		}
		code, err := strconv.Atoi(word)
		if err != nil || code < 400 || code > 599 {
			return r, usage("--resend-on takes HTTP statuses from 400 to 599, or none", "for example 500,502")
		}
		r.Codes[code] = true
	}
	return r, nil
}

// positive checks the flags that are counts or times.
func positive(c *cli.Context) error {
	for _, name := range []string{"limit", "min-rows", "retries", "max-creates", "keep-runs", "show"} {
		if c.Int(name) < 0 {
			return usage("--"+name+" must not be negative", "0 means no limit, or none")
		}
	}
	for _, name := range []string{"wait", "timeout", "max-wait", "max-duration", "max-age"} {
		if c.Duration(name) < 0 {
			return usage("--"+name+" must not be negative", "for example 30s or 15m")
		}
	}
	if c.IsSet("max-in-doubt") && c.Int("max-in-doubt") < 0 {
		return usage("--max-in-doubt must not be negative", "0 never stops")
	}
	if rate := c.Float64("rate"); !(rate >= 0) || math.IsInf(rate, 0) {
		return usage("--rate must be a number that is not negative", "0 means no limit")
	}
	return nil
}

// maxConcurrency is beyond what any service of this kind wants from one client.
const maxConcurrency = 1024

func concurrency(c *cli.Context) (int, error) {
	n := c.Int("concurrency")
	if n < 1 || n > maxConcurrency {
		return 0, usage(fmt.Sprintf("--concurrency must be from 1 to %d", maxConcurrency), "8 suits most services")
	}
	return n, nil
}

// oneOf checks a flag that takes one of a few words.
func oneOf(c *cli.Context, name string, words ...string) error {
	for _, w := range words {
		if c.String(name) == w {
			return nil
		}
	}
	return usage("--"+name+" takes "+strings.Join(words, " or "), "see "+helpName(c)+" --help")
}

// runsFolder is where run folders stand, in the folder that the program was started in.
const runsFolder = "leadferry-runs"

// filesOf is where the run's files go. A rehearsal writes only what is asked for.
func filesOf(c *cli.Context, runID string, now time.Time, rehearsal bool) report.Files {
	o := report.Files{Dir: c.String("out"), Results: c.String("results"), Rejects: c.String("rejects"), Summary: c.String("summary")}
	switch {
	case o.Dir == "none":
		o.Dir = ""
	case o.Dir == "" && !rehearsal:
		o.Dir = filepath.Join(runsFolder, now.UTC().Format("20060102T150405Z")+"-"+c.Command.Name+"-"+runID)
	}
	return o
}

// newRunID is eight random hexadecimal digits.
func newRunID() string {
	var b [4]byte
	rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// makeStateDir makes the checkpoint's folder, for its owner alone.
func makeStateDir(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return usage(fmt.Sprintf("the checkpoint's folder cannot be made: %v", err), "name another file with --checkpoint")
	}
	return nil
}
