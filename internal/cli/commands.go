package cli

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"leadferry/importer/report"
	"leadferry/internal/cli/checkpointcmd"
	"leadferry/internal/cli/exit"
	"leadferry/internal/cli/flags"
	"leadferry/internal/cli/terminal"
	"leadferry/leadapi/sandbox"
)

// commands are those of the program, as help lists them.
func (p *program) commands() []*cli.Command {
	command := func(name, arguments, usage string, do cli.ActionFunc, its ...[]cli.Flag) *cli.Command {
		return &cli.Command{Name: name, ArgsUsage: arguments, Usage: usage, Action: do, Flags: slices.Concat(its...)}
	}
	above := func(name, usage string, its ...*cli.Command) *cli.Command {
		return &cli.Command{Name: name, Usage: usage, Action: p.help, Subcommands: its}
	}
	imitation := command("sandbox", "", "a local imitation of the service, for trying out and for tests", p.sandbox,
		sandboxFlags())
	imitation.Description = fmt.Sprintf(description("sandbox"), sandbox.Email, sandbox.Password, sandbox.FaultHelp,
		strings.ReplaceAll(sandbox.DirectoryHelp, "\n", "\n   "))
	return []*cli.Command{
		command("init", "FILE", "guess a mapping from a file's header and first rows", p.runInit, sourceFlags(),
			[]cli.Flag{
				short("m", files.Name("mapping", "write the mapping to `FILE`; - is standard output (default: the "+
					"input's name, .yaml)")),
			}),
		command("validate", "FILE...", "dry run: read, map and check every row; send nothing", p.validate, inputFlags(),
			outputFlags(), []cli.Flag{
				running.Count("show", 0, "print the first `N` requests that would be sent"),
				rateFlag("say how long the requests take at `N` a second"),
				running.Bool("strict", "also fail on repeated keys, unused columns, words without an entry, and "+
					"values left out"),
				running.Text("tolerate", "exit with 0 if at most `N|P%` rows are bad"),
			}),
		command("import", "FILE...", "create leads, then link ExternalID; resumable", p.runImport, inputFlags(),
			connectionFlags(), checkpointFlags(), fleetFlags(), sendFlags(), []cli.Flag{
				running.Choice("changed", "count, update or ignore rows whose lead exists and whose data changed: %",
					"report", "update", "ignore"),
			}, outputFlags()),
		command("sync", "FILE...", "send what changed in Status, ExternalID and Content of known leads", p.sync,
			inputFlags(), connectionFlags(), checkpointFlags(), fleetFlags(), sendFlags(), syncFlags(), outputFlags()),
		command("reconcile", "FILE...", "compare file, checkpoint and service, lead by lead; change nothing",
			p.reconcile, inputFlags(), connectionFlags(), checkpointFlags(), readFlags(), []cli.Flag{
				running.Choice("remote", "read leads from the service: %; none compares file and checkpoint only",
					"all", "none"),
				running.Time("fresh", 0, "skip leads that were confirmed or read within `DURATION`"),
				running.Count("sample", 0, "read the leads of `N` rows drawn at random, and estimate the share that "+
					"differs"),
				reconciliationFlag(), pullFlag(),
			}, outputFlags()),
		command("report", "[RUN]", "the page of a finished run: whether it worked, what needs you", p.report,
			connectionFlags(), []cli.Flag{
				short("o", own.Name("output", "write the page to `FILE`; - is standard output (default: report.html "+
					"in the run)")),
				own.Bool("open", "open the page in the browser"),
				running.Name("fleet", "report all workers of the fleet `NAME` as one run, from the ledger"),
				running.Name("checkpoint", "read the ledger at this postgres:// `ADDRESS`"),
				files.Text("summary", "with --fleet: `-` prints the summary as JSON"),
			}),
		command("login", "", "exchange e-mail and password for an OAuth client, stored for later runs", p.login,
			[]cli.Flag{
				own.Name("email", "the service account's `E-MAIL` address"),
				own.Bool("new-client", "make another client although the profile has one; the old one stays"),
				own.Time("timeout", 30*time.Second, "wait up to `DURATION` for one request"),
			}, connectionFlags()),
		above("config", "show every effective setting and where it comes from, or check whether they work",
			command("show", "", "each setting, its value and its origin; secrets masked", p.configShow,
				connectionFlags(), pathFlags(), []cli.Flag{
					own.Bool("all", "list settings that are not set, too"),
					own.Bool("json", "print a JSON array of objects with name, value and from"),
				}),
			command("check", "", "whether address, proxy, TLS and sign-in work, step by step", p.configCheck,
				connectionFlags(), []cli.Flag{
					running.Time("timeout", 10*time.Second,
						"wait up to `DURATION` for an answer (10s for a connection)"),
					own.Bool("json", "print a JSON array of steps"),
				}),
		),
		imitation,
		command("schema", "", "print the JSON Schema of the mapping file, for editors", p.schema),
		above("checkpoint", "look at what is known of the leads, and settle rows in doubt", p.checkpointCommands()...),
		command("explain", "[NAME]", "an outcome, exit code, rule or message: what it means, what to do", p.explain),
		command("completion", strings.Join(shells, "|"), "print what makes a shell complete command lines",
			p.completion),
	}
}

// checkpointCommands are those of package checkpointcmd, with the flags that they share.
func (p *program) checkpointCommands() []*cli.Command {
	commands := checkpointcmd.Commands(func(c *cli.Context) *checkpointcmd.Command {
		return &checkpointcmd.Command{
			Selection: p.ledger(c), In: p.In, Out: &p.out, Say: p.say(c), Warn: p.warn, Person: p.person(c),
			Shown: terminal.Is(p.Out), Hold: p.hold.Take,
			Apart: func(path string) error { return p.keepApart(c, []place{placeAt(path, "-o")}, nil) },
		}
	})
	for _, c := range commands {
		switch {
		case slices.Contains([]string{"copy", "init"}, c.Name): // which name theirs
			c.Flags = append(c.Flags, standbyFlag())
		case c.Name != "repair":
			c.Flags = append(c.Flags, checkpointFlags()...)
		}
		c.Flags = append(c.Flags, connectionFlags()...)
	}
	return commands
}

// short gives a flag a name of one letter, too.
func short(letter string, f *cli.StringFlag) cli.Flag {
	f.Aliases = []string{letter}
	return f
}

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
	return append(sourceFlags(), short("m", reading.Name("mapping", "use the mapping `FILE`")),
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
		running.Choice("attention", "exit with 1 for % rows that need attention: new leaves out those of the run "+
			"before", "all", "new"),
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

// fleetFlags make a run a worker of a fleet.
func fleetFlags() []cli.Flag {
	return []cli.Flag{
		running.Name("fleet", "work in the fleet `NAME`: all its workers share a checkpoint in PostgreSQL, limits "+
			"and rate"),
		running.Name("shard", "take part `I/N` of the rows, from 0/N on, by the hash of their keys; auto: as "+
			"Kubernetes (with LEADFERRY_SHARDS), AWS Batch or Slurm say"),
	}
}

// syncFlags say what sync does where others changed a lead, and where none is known.
func syncFlags() []cli.Flag {
	return []cli.Flag{
		running.Choice("missing", "a row whose lead is not known: %", "report", "create", "ignore"),
		running.Switch("check-remote", "no lead is read",
			"read a lead before it is changed (`[=all]`: every lead of the file), and hold what others changed "+
				"by --conflict"),
		running.Choice("conflict", "a field that was changed on the service: report it as a conflict, send the "+
			"file's value, or keep the service's: %; the mapping's conflict: comes first", "report", "file",
			"service"),
		running.Choice("reopen", "send a row that would reopen a closed lead, or hold it as a conflict: %", "allow",
			"hold"),
		pullFlag(),
	}
}

// readFlags are those of sendFlags that do not concern the making and changing of leads, for reconcile.
func readFlags() []cli.Flag {
	makes := []string{
		"require-checkpoint", "new-checkpoint", "dry-run", "show", "in-doubt", "resend-on", "max-in-doubt",
		"max-creates", "look-alikes", "new-key", "retry-rejected", "yes",
	}
	return slices.DeleteFunc(sendFlags(), func(f cli.Flag) bool { return slices.Contains(makes, f.Names()[0]) })
}

func reconciliationFlag() cli.Flag {
	return files.Name("reconciliation", "write the reconciliation to `FILE`")
}

func pullFlag() cli.Flag {
	return files.Name("pull", "write the leads whose status changed on the service to `FILE`, as CSV in the CRM's words")
}

// webFlag asks for the run's page while it goes on.
func webFlag() cli.Flag {
	f := files.Switch("web", "no page",
		"show the run's page live in a browser on this machine (`[=ADDRESS]`; else a free port)")
	f.EnvVars = []string{flags.Variable("web")}
	return f
}

// metricsFlag says where a run's figures go for a monitoring system.
func metricsFlag() cli.Flag {
	return files.Name("metrics", "write the run's figures to `FILE` (.prom) as Prometheus text for node_exporter")
}

func sandboxFlags() []cli.Flag {
	addr := own.Name("addr", "listen on this loopback `ADDRESS`; port 0 takes a free one")
	addr.Value = "127.0.0.1:8080"
	return []cli.Flag{
		addr,
		own.Time("idle-close", 0, "close connections that were idle for `DURATION`"),
		own.Time("latency", 0, "delay every answer by `DURATION`"),
		own.Text("faults", "make requests go wrong as `SPEC` says, see above"),
		own.Name("directory", "read your own organizations, locators and trunk from `FILE`, see above"),
		own.Name("data", "keep the leads in `FILE`; without one they are gone at the end"),
		own.Switch("web", "no page", "show its leads, requests and faults on a page (`[=ADDRESS]`; else a "+
			"free port)"),
	}
}
