package cli

import (
	"cmp"
	"errors"
	"slices"
	"strconv"

	"github.com/urfave/cli/v2"

	"leadferry/checkpoint"
	"leadferry/importer"
	"leadferry/internal/cli/exit"
	"leadferry/internal/cli/flags"
)

func (p *program) syncCommand() *cli.Command {
	return &cli.Command{
		Name: "sync", Usage: "reconcile Status, ExternalID and Content of known leads: send only what changed", ArgsUsage: "FILE...",
		Description: `Reads each FILE (CSV, TSV, JSONL or XLSX; - is standard input), finds the lead of
each row and sends what differs from what the service last confirmed, and nothing
else. A lead is found by key, by lead_id or by external_id of the mapping; the
checkpoint of earlier imports, or of checkpoint adopt, knows it. An empty cell
changes nothing. The same file again sends nothing.

Example, each night, with an export of the CRM:

   leadferry sync -m crm.yaml crm-export.csv --check-remote --reopen hold \
      --base-url https://api.example.com --leads-url https://leads.example.com \
      --trunk-id 3f2a... --client-id 9c1b...

Try it without an account, after leadferry import --sandbox of the same rows:
leadferry sync --sandbox -m leads.yaml changed.csv

` + sendCodes,
		Flags: slices.Concat(inputFlags(), connectionFlags(), checkpointFlags(), fleetFlags(), sendFlags(), []cli.Flag{
			flags.Choice(running, "missing", "a row whose lead is not known: %", "report", "create", "ignore"),
			checkRemoteFlag(),
			flags.Choice(running, "conflict", "a field that was changed on the service: % (report a conflict, send the file's value, keep the service's); the mapping's conflict: comes first", "report", "file", "service"),
			flags.Choice(running, "reopen", "a row that would reopen a closed lead: send it, or hold it as a conflict: %", "allow", "hold"),
			flags.Count(running, "max-clears", 20, "stop before the first if a sync would take its ExternalID from more than `N` leads (0: never)"),
			pullFlag(), pullContentFlag(),
		}, outputFlags()),
		Action: func(c *cli.Context) error {
			o, err := p.sendOptions(c)
			if err != nil {
				return err
			}
			o.Missing = importer.Missing(c.String("missing"))
			o.HoldReopen, o.Conflict = c.String("reopen") == "hold", importer.Rule(c.String("conflict"))
			o.MaxClears = c.Int("max-clears")
			if err = pulls(c, &o); err != nil {
				return err
			}
			if o.Files.Pull != "" && o.DryRun {
				return exit.Usage("--dry-run writes nothing, so there is no --pull", "leadferry reconcile --pull writes it and changes nothing")
			}
			if o.CheckRemote, err = checksRemote(c); err != nil {
				return err
			}
			return hintIfMissing(p.send(c, o, importer.Sync), unknownLeads)
		},
	}
}

// unknownLeads says why sync and reconcile do nothing without a checkpoint: they would know
// no lead.
func unknownLeads(string) string {
	return "leads are found in a checkpoint that knows them: import them first, take them over with `leadferry checkpoint adopt`, or name the file with --checkpoint"
}

// hintIfMissing gives the error of a checkpoint that is not there a hint, where it has none.
func hintIfMissing(err error, hint func(path string) string) error {
	missing := (*checkpoint.OpenError)(nil)
	if errors.Is(err, checkpoint.ErrMissing) && errors.As(err, &missing) && missing.Hint == "" {
		missing.Hint = hint(missing.Path)
	}
	return err
}

// checkAll is what --check-remote=all asks for.
const checkAll = "all"

func checkRemoteFlag() cli.Flag {
	return flags.Switch(running, "check-remote", "no lead is read", "read a lead before it is changed (`[=all]`: every lead of the file), and decide by --conflict about values that are not those last confirmed")
}

// checksRemote says which leads are read.
func checksRemote(c *cli.Context) (importer.Reads, error) {
	word := c.Generic("check-remote").(*flags.OptionalWord).String()
	changed, err := strconv.ParseBool(cmp.Or(word, "false"))
	switch {
	case word == checkAll:
		return importer.ReadAll, nil
	case err != nil:
		return importer.ReadNothing, exit.Usage("--check-remote stands alone, or is --check-remote="+checkAll, "see leadferry sync --help")
	case changed:
		return importer.ReadChanged, nil
	}
	return importer.ReadNothing, nil
}

func (p *program) reconcileCommand() *cli.Command {
	return &cli.Command{
		Name: "reconcile", Usage: "compare file, checkpoint and service, lead by lead; change nothing", ArgsUsage: "FILE...",
		Description: `Compares, for each row, the file, what the service last confirmed of its lead, and
what it holds now: Status, ExternalID and the content keys that the mapping sends. It
writes reconciliation.csv: who changed what. A lead is read by an update of no content,
which changes nothing; where the service refuses that, --read external-id writes the
ExternalID that was last confirmed again, over one that others have changed. A status
and an ExternalID that were seen are kept beside what was confirmed: a sync treats them
by --conflict.

Example, each week, 400 leads of all:

   leadferry reconcile -m crm.yaml crm-export.csv --sample 400 --rate 5 \
      --base-url https://api.example.com --leads-url https://leads.example.com \
      --trunk-id 3f2a... --client-id 9c1b...

Try it without an account, after leadferry import --sandbox of the same rows:
leadferry reconcile --sandbox -m leads.yaml leads.csv

Exit codes: 0 every row is the same, or not read on purpose; 1 some rows differ, or
their leads could not be read; 2 usage, mapping or input error; 3 stopped early,
resumable; 4 checkpoint locked, missing or damaged; 5 rows in doubt; 130 interrupted.`,
		Flags: slices.Concat(inputFlags(), connectionFlags(), checkpointFlags(), readFlags(), []cli.Flag{
			flags.Choice(running, "remote", "read these leads from the service: %; none compares file and checkpoint only", "all", "none"),
			flags.Time(running, "fresh", 0, "skip leads that were confirmed or read within `DURATION`"),
			flags.Count(running, "sample", 0, "read only `N` leads picked at random, and estimate the share that differs"),
			reconciliationFlag(),
			pullFlag(), pullContentFlag(),
		}, outputFlags()),
		Action: p.reconcile,
	}
}

func (p *program) reconcile(c *cli.Context) error {
	o, err := p.sendOptions(c)
	if err != nil {
		return err
	}
	o.Reconciling = importer.Reconciling{None: c.String("remote") == "none", Fresh: c.Duration("fresh"), Sample: c.Int("sample")}
	switch {
	case c.IsSet("sample") && o.Reconciling.Sample == 0:
		return exit.Usage("--sample 0 picks no lead", "leave it out to read all leads; --remote none reads none")
	case o.Reconciling.None && (o.Reconciling.Sample > 0 || o.Reconciling.Fresh > 0):
		return exit.Usage("--remote none reads no lead, so --sample and --fresh pick none", "leave one of them out")
	}
	o.Files.Reconciles, o.Files.Reconciliation = true, c.String("reconciliation")
	if err := pulls(c, &o); err != nil {
		return err
	}
	return hintIfMissing(p.send(c, o, importer.Reconcile), unknownLeads)
}

// readFlags are those of runs that send, but for what concerns the making of leads and the
// changing of them.
func readFlags() []cli.Flag {
	makes := []string{
		"require-checkpoint", "new-checkpoint", "dry-run", "show", "in-doubt", "resend-on", "max-in-doubt", "max-creates",
		"look-alikes", "new-key", "retry-rejected", "yes",
	}
	return slices.DeleteFunc(sendFlags(), func(f cli.Flag) bool { return slices.Contains(makes, f.Names()[0]) })
}

// pullFlag says where what the CRM should take over goes.
func pullFlag() cli.Flag {
	return flags.Name(files, "pull", "write to `FILE` what the CRM should take over: leads whose status changed on the service, as CSV in the CRM's words")
}

func pullContentFlag() cli.Flag {
	return flags.Bool(files, "pull-content", "add to the --pull file the columns whose content changed on the service (people's data)")
}

// pulls reads what the pull file is to hold.
func pulls(c *cli.Context, o *importer.Options) error {
	o.Files.Pull, o.PullContent = c.String("pull"), c.Bool("pull-content")
	if o.PullContent && o.Files.Pull == "" {
		return exit.Usage("--pull-content adds columns to the --pull file, and there is none", "name it with --pull FILE")
	}
	return nil
}

func reconciliationFlag() cli.Flag {
	return flags.Name(files, "reconciliation", "write the reconciliation to `FILE`")
}
