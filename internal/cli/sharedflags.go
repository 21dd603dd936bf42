package cli

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"leadferry/importer"
	"leadferry/importer/delivery"
	"leadferry/importer/report"
	"leadferry/internal/cli/exit"
	"leadferry/internal/cli/flags"
)

// The parts of a command's help.
const (
	connecting = "Connection"
	reading    = "Input"
	running    = "Run"
	files      = "Files"
)

func rateFlag(text string) *cli.Float64Flag {
	return &cli.Float64Flag{Name: "rate", Usage: text, Category: running, Action: func(_ *cli.Context, rate float64) error {
		if !(rate >= 0) || math.IsInf(rate, 0) {
			return exit.Usage("--rate must be a number that is not negative", "0 means no limit")
		}
		return nil
	}}
}

// connectionFlags name the service. The secret has no flag: it would show in the
// process list.
func connectionFlags() []cli.Flag {
	return []cli.Flag{
		flags.Name(connecting, "base-url", "`URL` of the general API, without /v3"),
		flags.Name(connecting, "leads-url", "`URL` of the lead creation application, without /v1"),
		flags.Name(connecting, "trunk-id", "`ID` of the brand's trunk organization"),
		flags.Name(connecting, "client-id", "OAuth client `ID`; set its secret with LEADFERRY_CLIENT_SECRET, --client-secret-file or --client-secret-command"),
		flags.Name(connecting, "client-secret-file", "read the OAuth secret from `FILE`, which belongs to you or root and which others cannot read"),
		flags.Name(connecting, "client-secret-command", "run `COMMAND` once, without a shell: its standard output is the OAuth secret"),
		flags.Name(connecting, "proxy", "send all requests through the proxy `URL`: http://, https:// or socks5://; put a password into the variable; none: no proxy (default: HTTPS_PROXY and NO_PROXY)"),
		flags.Name(connecting, "ca-file", "also trust the certificates in the PEM `FILE`"),
		flags.Name(connecting, "request-id-header", "send a random ID in the header `NAME` with each attempt; rows in doubt show it (default: none)"),
		flags.Name(connecting, "client-cert", "client certificate in a PEM `FILE`, with its key unless --client-key names it"),
		flags.Name(connecting, "client-key", "key of the client certificate in a PEM `FILE`, not encrypted, which others cannot read"),
		flags.Name(connecting, "profile", "use the settings `NAME` of the configuration file (default: those named default, if any)"),
		flags.Name(connecting, "config", "configuration `FILE` (default: leadferry/config.yaml in the user's configuration directory)"),
		flags.Bool(connecting, "sandbox", "use the built-in imitation service: no account, no network"),
		flags.Bool(connecting, "sandbox-reset", "with --sandbox: delete its leads and its checkpoint first"),
		directoryFlag(connecting, "with --sandbox: "),
	}
}

// directoryFlag names the brand that the imitation serves.
func directoryFlag(category, when string) cli.Flag {
	return flags.Name(category, "directory", when+"`FILE` with your own organizations, locators and trunk, of the form that leadferry sandbox --help shows")
}

// sourceFlags override what is detected, or what the mapping says, of a file.
func sourceFlags() []cli.Flag {
	return []cli.Flag{
		flags.Text(reading, "format", "read the input as `FORMAT`: csv, tsv, jsonl or xlsx (default: by name or content)"),
		flags.Text(reading, "delimiter", "split rows at this `CHARACTER`, or at tab (default: by content)"),
		flags.Text(reading, "encoding", "read the text in the encoding `LABEL`, such as windows-1252; a byte order mark wins (default: utf-8)"),
		flags.Text(reading, "sheet", "read the sheet `NAME` of a workbook (default: the first visible one)"),
		flags.Text(reading, "list", "read the list `NAME` of a JSON document (default: its only list of objects)"),
	}
}

// inputFlags say how files are read; import, sync and validate share them.
func inputFlags() []cli.Flag {
	mapping := flags.Name(reading, "mapping", "the mapping `FILE`")
	mapping.Aliases = []string{"m"}
	return append(sourceFlags(), mapping,
		flags.Count(reading, "limit", 0, "read only the first `N` rows, all files together (0: all)"),
		flags.Count(reading, "min-rows", 0, "refuse inputs with fewer than `N` rows in total, as a broken export has"),
		flags.Time(reading, "max-age", 0, "refuse a file that is older than `DURATION`, as last week's export is"),
	)
}

// outputFlags say where a run's files go.
func outputFlags() []cli.Flag {
	return []cli.Flag{
		flags.Name(files, "out", "write the run's files into the folder `DIR`; none: no folder (default: leadferry-runs/TIME-COMMAND-RUN)"),
		flags.Name(files, "results", "write the results to `FILE`"),
		flags.Choice(files, "results-columns", "columns of the results: %; all adds the input's own columns, which are personal data", "own", "all"),
		flags.Name(files, "rejects", "write the rejects to `FILE`"),
		flags.Name(files, "problems", "write every problem of every row to `FILE` (.csv or .jsonl); github prints annotations"),
		flags.Text(files, "on-finish", "at the end, run `COMMAND` with the path of the summary and the exit code, without a shell"),
		flags.Name(files, "summary", "write the summary to `FILE`; - is standard output"),
		webFlag(),
	}
}

// metricsFlag says where a run's figures go for a monitoring system.
func metricsFlag() cli.Flag {
	return flags.Name(files, "metrics", "write the run's figures to `FILE` as Prometheus text; node_exporter reads names that end in .prom")
}

func checkpointFlags() []cli.Flag {
	return []cli.Flag{
		flags.Name(running, "checkpoint", "use the checkpoint in `FILE`, or at a postgres:// address (default: one file per target in your state directory)"),
		flags.Time(running, "wait", 0, "wait up to `DURATION` if another run holds the checkpoint"),
		standbyFlag(),
	}
}

// standbyFlag says what becomes of a server's standbys that it does not wait for.
func standbyFlag() cli.Flag {
	return flags.Choice(running, "ledger-standby", "PostgreSQL: refuse asynchronous standbys, or accept them because none will be promoted: %", "refused", "never-promoted")
}

func newCheckpointFlag() cli.Flag {
	return flags.Text(running, "new-checkpoint", "make leads with this checkpoint although another one may know them: the `ID` that the refusal printed")
}

// pathFlags are the flags of runs that the environment may set as well.
func pathFlags() []cli.Flag {
	all := slices.Concat(checkpointFlags(), fleetFlags(), inputFlags(), outputFlags(), pullFlags(), []cli.Flag{metricsFlag(), reconciliationFlag()})
	return slices.DeleteFunc(all, func(f cli.Flag) bool { return len(f.(cli.DocGenerationFlag).GetEnvVars()) == 0 })
}

// maxConcurrency is beyond what any service of this kind wants from one client.
const maxConcurrency = 1024

// sendFlags are those of a run that sends.
func sendFlags() []cli.Flag {
	concurrency := flags.Count(running, "concurrency", 8, "send up to `N` requests at once")
	concurrency.Aliases = []string{"c"}
	concurrency.Action = func(_ *cli.Context, n int) error {
		if n < 1 || n > maxConcurrency {
			return exit.Usage(fmt.Sprintf("--concurrency must be from 1 to %d", maxConcurrency), "8 suits most services")
		}
		return nil
	}
	maxInDoubt := flags.Count(running, "max-in-doubt", 0, "stop when more than `N` rows are in doubt, including those of earlier runs (0: never)")
	maxInDoubt.DefaultText = "the larger of 20 and 4 × concurrency"
	maxRejects := flags.Text(running, "max-rejects", "stop when more than `N|P%` rows of this run were rejected or failed, or all of the first ones (0: never)")
	maxRejects.Value = "100"
	maxInvalid := flags.Text(running, "max-invalid", "stop when more than `N|P%` rows are invalid, as with a wrong file or mapping (0: never)")
	maxInvalid.Value = "50%"
	keepRuns := flags.Count(files, "keep-runs", 0, "remove the oldest folders in "+report.RunsFolder+" beyond `N`: finished runs of this target without rejects and doubts")
	keepRuns.DefaultText = "0, all"
	return []cli.Flag{
		flags.Bool(running, "require-checkpoint", "exit with 4 instead of starting a new checkpoint"),
		newCheckpointFlag(),
		concurrency,
		rateFlag("send at most `N` requests per second, all workers together (0: no limit)"),
		flags.Time(running, "timeout", 30*time.Second, "wait up to `DURATION` for one request"),
		flags.Count(running, "retries", 5, "try a request up to `N` more times if that is safe"),
		flags.Time(running, "max-wait", 15*time.Minute, "wait up to `DURATION` while the service cannot be reached, then stop"),
		flags.Bool(running, "dry-run", "print what would be sent; send and write nothing"),
		flags.Count(running, "show", 10, "with --dry-run: print the first `N` requests"),
		flags.Choice(running, "in-doubt", "a row in doubt: hold it for you to settle, or send it again: %", "hold", "resend"),
		flags.Text(running, "resend-on", "send a create again after these HTTP `CODES`, too; none: not even after 429"),
		maxInDoubt,
		maxRejects,
		maxInvalid,
		flags.Count(running, "max-creates", 0, "make at most `N` leads, then stop (0: no limit)"),
		flags.Time(running, "max-duration", 0, "take no more rows after `DURATION`; finish what has begun"),
		flags.Choice(running, "look-alikes", "a new key that resembles a known one (12 and 00012): hold it as a conflict, or create a lead: %", "hold", "create"),
		flags.Text(running, "new-key", "accept a file that was imported before with another key (makes a new lead of every row): the `ID` that the refusal printed"),
		flags.Choice(running, "read", "read a lead by an update of: %; content changes nothing, external-id overwrites one that others have changed", "content", "external-id"),
		flags.Bool(running, "retry-rejected", "send rows again that the service rejected before"),
		keepRuns,
		flags.Bool(running, "yes", "do not ask before making leads"),
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
		return importer.Share{}, exit.Usage("--"+name+" is neither a number nor a percentage", "for example 100, 5% or 0")
	case percent:
		return importer.Share{Percent: n}, nil
	}
	return importer.Share{Rows: n}, nil
}

// resendOn reads --resend-on: HTTP statuses, or none.
func resendOn(text string) (delivery.ResendOn, error) {
	r := delivery.ResendOn{Codes: map[int]bool{}}
	for word := range strings.SplitSeq(text, ",") {
		word = strings.TrimSpace(word)
		code, err := strconv.Atoi(word)
		switch {
		case text == "":
		case word == "none":
			r.NoDefault = true
		case err != nil || code < 400 || code > 599:
			return r, exit.Usage("--resend-on takes HTTP statuses from 400 to 599, or none", "for example 500,502")
		default:
			r.Codes[code] = true
		}
	}
	return r, nil
}
