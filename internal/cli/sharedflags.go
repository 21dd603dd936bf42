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
	own        = flags.Group("")
	reading    = flags.Group("Input")
	running    = flags.Group("Run")
	files      = flags.Group("Files")
	connecting = flags.Group("Connection")
)

// connectionFlags name the service. The secret has no flag: it would show in the process list.
func connectionFlags() []cli.Flag {
	return []cli.Flag{
		connecting.Name("base-url", "`URL` of the general API, without /v3"),
		connecting.Name("leads-url", "`URL` of the lead creation application, without /v1"),
		connecting.Name("trunk-id", "`ID` of the brand's trunk organization"),
		connecting.Name("client-id", "OAuth client `ID`; its secret has a file, a command or LEADFERRY_CLIENT_SECRET"),
		connecting.Name("client-secret-file", "read the OAuth secret from `FILE`, which others cannot read or write"),
		connecting.Name("client-secret-command",
			"run `COMMAND` once, without a shell, and read the OAuth secret from it"),
		connecting.Name("proxy", "use the proxy `URL` (http://, https:// or socks5://); put a password into the "+
			"variable; none: use no proxy (default: HTTPS_PROXY and NO_PROXY)"),
		connecting.Name("ca-file", "also trust the certificates in the PEM `FILE`"),
		connecting.Name("request-id-header", "send a random ID in the header `NAME` with each attempt (default: none)"),
		connecting.Name("client-cert", "show the client certificate in the PEM `FILE`, which may hold its key, too"),
		connecting.Name("client-key", "use the key in the PEM `FILE`, not encrypted, which others cannot read"),
		connecting.Name("profile", "use the settings `NAME` of the configuration file (default: default, if any)"),
		connecting.Name("config", "read the configuration `FILE` (default: leadferry/config.yaml in your "+
			"configuration directory)"),
		connecting.Bool("sandbox", "use the built-in imitation service: no account, no network"),
		connecting.Bool("sandbox-reset", "with --sandbox: delete its leads and its checkpoint first"),
		connecting.Name("directory", "with --sandbox: read your own organizations, locators and trunk from `FILE`"),
	}
}

// sourceFlags override what is detected, or what the mapping says, of a file.
func sourceFlags() []cli.Flag {
	return []cli.Flag{
		reading.Text("format", "read the input as `FORMAT`: csv, tsv, jsonl or xlsx (default: by name or content)"),
		reading.Text("delimiter", "split rows at this `CHARACTER`, or at tab (default: by content)"),
		reading.Text("encoding", "read the text in the encoding `LABEL`, such as windows-1252 (default: utf-8)"),
		reading.Text("sheet", "read the sheet `NAME` of a workbook (default: the first visible one)"),
		reading.Text("list", "read the list `NAME` of a JSON document (default: its only list of objects)"),
	}
}

// inputFlags say how files are read; import, sync and validate share them.
func inputFlags() []cli.Flag {
	mapping := reading.Name("mapping", "use the mapping `FILE`")
	mapping.Aliases = []string{"m"}
	return append(sourceFlags(), mapping,
		reading.Count("limit", 0, "read only the first `N` rows, all files together (0: all)"),
		reading.Count("min-rows", 0, "refuse inputs with fewer than `N` rows in total, as a broken export has (sync: "+
			"1 unless given)"),
		reading.Time("max-age", 0, "refuse a file that is older than `DURATION`, as last week's export is"),
	)
}

// outputFlags say where a run's files go.
func outputFlags() []cli.Flag {
	return []cli.Flag{
		files.Name("out", "write the run's files into the folder `DIR`; none: no folder (default: "+
			"leadferry-runs/TIME-COMMAND-RUN)"),
		files.Name("results", "write the results to `FILE`"),
		files.Choice("results-columns", "write these columns to the results: % (all: the input's, too, which are "+
			"personal data)", "own", "all"),
		files.Name("rejects", "write the rejects to `FILE`"),
		files.Name("problems", "write every problem of every row to `FILE` (.csv or .jsonl); github prints annotations"),
		files.Bool("problems-values", "add the values to --problems (personal data)"),
		files.Text("on-finish", "at the end, run `COMMAND`, without a shell, with the summary's path and the exit code"),
		files.Name("summary", "write the summary to `FILE`; - is standard output"),
		webFlag(),
	}
}

// metricsFlag says where a run's figures go for a monitoring system.
func metricsFlag() cli.Flag {
	return files.Name("metrics", "write the run's figures to `FILE` (.prom) as Prometheus text for node_exporter")
}

func checkpointFlags() []cli.Flag {
	return []cli.Flag{
		running.Name("checkpoint", "use the checkpoint in `FILE`, or at a postgres:// address "+
			"(default: one file per target in your state directory)"),
		running.Time("wait", 0, "wait up to `DURATION` if another run holds the checkpoint"),
		standbyFlag(),
	}
}

// standbyFlag says what holds of a server's standbys that it does not wait for.
func standbyFlag() cli.Flag {
	return running.Choice("ledger-standby", "PostgreSQL: refuse asynchronous standbys, or accept them because none "+
		"will be promoted: %",
		"refused", "never-promoted")
}

// pathFlags are the flags of runs that the environment may set as well.
func pathFlags() []cli.Flag {
	all := slices.Concat(checkpointFlags(), fleetFlags(), inputFlags(), outputFlags())
	all = append(all, metricsFlag(), reconciliationFlag(), pullFlag())
	return slices.DeleteFunc(all, func(f cli.Flag) bool { return len(f.(cli.DocGenerationFlag).GetEnvVars()) == 0 })
}

// sendFlags are those of a run that sends.
func sendFlags() []cli.Flag {
	maxInDoubt := running.Count("max-in-doubt", 0,
		"stop when more than `N` rows are in doubt, also of earlier runs (0: never)")
	maxInDoubt.DefaultText = "the larger of 20 and 4 × concurrency"
	maxRejects := running.Text("max-rejects",
		"stop when more than `N|P%` rows (or all of the first) are rejected or failed (0: never)")
	maxRejects.Value = "100"
	maxInvalid := running.Text("max-invalid",
		"stop when more than `N|P%` rows are invalid, as of a wrong file (0: never)")
	maxInvalid.Value = "50%"
	return []cli.Flag{
		running.Bool("require-checkpoint", "exit with 4 instead of starting a new checkpoint"),
		running.Text("new-checkpoint", "make leads although another checkpoint may know them: the `ID` that the "+
			"refusal printed"),
		concurrencyFlag(),
		rateFlag("send at most `N` requests per second, all workers together (0: no limit)"),
		running.Time("timeout", 30*time.Second, "wait up to `DURATION` for one request"),
		running.Count("retries", 5, "try a request up to `N` more times if that is safe"),
		running.Time("max-wait", 15*time.Minute,
			"wait up to `DURATION` for a service that cannot be reached, then stop"),
		running.Bool("dry-run", "print what would be sent; send and write nothing"),
		running.Count("show", 10, "with --dry-run: print the first `N` requests"),
		running.Choice("in-doubt", "hold rows in doubt for you to settle, or send them again: %", "hold", "resend"),
		running.Text("resend-on", "send a create again after these HTTP `CODES`, too; none: not even after 429"),
		maxInDoubt, maxRejects, maxInvalid,
		running.Count("max-creates", 0, "make at most `N` leads, then stop (0: no limit)"),
		running.Time("max-duration", 0, "take no more rows after `DURATION`; finish what has begun"),
		running.Choice("look-alikes", "hold a new key that resembles a known one (12 and 00012) as a conflict, or "+
			"create a lead: %",
			"hold", "create"),
		running.Text("new-key", "accept a file that was imported before with another key (makes a new lead of "+
			"every row): the `ID` that the refusal printed"),
		running.Choice("read", "read a lead by an update of: %; content changes nothing, external-id overwrites what "+
			"others wrote",
			"content", "external-id"),
		running.Bool("retry-rejected", "send rows again that the service rejected before"),
		files.Count("keep-runs", 0, "keep the newest `N` folders in "+report.RunsFolder+
			", and those with rejects or doubts (0: all)"),
		running.Choice("attention", "exit with 1 for % rows that need attention: new leaves out those of the run before", "all", "new"),
		running.Bool("yes", "do not ask before making leads"),
		metricsFlag(),
	}
}

func rateFlag(text string) *cli.Float64Flag {
	f := &cli.Float64Flag{Name: "rate", Usage: text, Category: string(running)}
	f.Action = func(_ *cli.Context, rate float64) error {
		if !(rate >= 0) || math.IsInf(rate, 0) {
			return exit.Usage("--rate must be a number that is not negative", "0 means no limit")
		}
		return nil
	}
	return f
}

// maxConcurrency is beyond what any service of this kind wants from one client.
const maxConcurrency = 1024

func concurrencyFlag() cli.Flag {
	f := running.Count("concurrency", 8, "send up to `N` requests at once")
	f.Aliases = []string{"c"}
	f.Action = func(_ *cli.Context, n int) error {
		if n < 1 || n > maxConcurrency {
			return exit.Usage(fmt.Sprintf("--concurrency must be from 1 to %d", maxConcurrency),
				"8 suits most services")
		}
		return nil
	}
	return f
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
		return importer.Share{}, exit.Usage("--"+name+" is neither a number nor a percentage",
			"for example 100, 5% or 0")
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
