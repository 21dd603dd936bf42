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
			flags.Choice(running, "conflict", "a lead whose status was changed on the service: % (report a conflict, send the file's status, keep the service's); the mapping's conflict: comes first", "report", "file", "service"),
			flags.Choice(running, "reopen", "a row that would reopen a closed lead: send it, or hold it as a conflict: %", "allow", "hold"),
			pullFlag(),
		}, outputFlags()),
		Action: func(c *cli.Context) error {
			o, err := p.sendOptions(c)
			if err != nil {
				return err
			}
			o.Missing = importer.Missing(c.String("missing"))
			o.HoldReopen, o.Conflict = c.String("reopen") == "hold", importer.Rule(c.String("conflict"))
			if o.Files.Pull = c.String("pull"); o.Files.Pull != "" && o.DryRun {
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
	return flags.Switch(running, "check-remote", "no lead is read", "read a lead before it is changed (`[=all]`: every lead of the file), and decide by --conflict about a status that is not the one last confirmed")
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
what it holds now, and writes reconciliation.csv: who changed what. A lead is read by
the service's only read, an update of the ExternalID that it has already: no Status,
Content or owner is changed, but an ExternalID that was changed elsewhere is written
again. What was seen is kept beside what was confirmed: a sync treats it by --conflict.

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
			pullFlag(),
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
	o.Files.Reconciles, o.Files.Reconciliation, o.Files.Pull = true, c.String("reconciliation"), c.String("pull")
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

func reconciliationFlag() cli.Flag {
	return flags.Name(files, "reconciliation", "write the reconciliation to `FILE`")
}
