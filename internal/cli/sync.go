package cli

import (
	"slices"

	"github.com/urfave/cli/v2"

	"leadferry/importer"
	"leadferry/internal/cli/exit"
	"leadferry/internal/cli/flags"
)

func (p *program) syncCommand() *cli.Command {
	return &cli.Command{
		Name: "sync", ArgsUsage: "FILE...", Usage: "send what changed in Status, ExternalID and Content of known leads",
		Flags: slices.Concat(inputFlags(), connectionFlags(), checkpointFlags(), fleetFlags(), sendFlags(), []cli.Flag{
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
		}, outputFlags()),
		Action: p.sync,
	}
}

func (p *program) sync(c *cli.Context) error {
	o, err := p.sendOptions(c)
	if err != nil {
		return err
	}
	o.Missing = importer.Missing(c.String("missing"))
	o.HoldReopen, o.Conflict = c.String("reopen") == "hold", importer.Rule(c.String("conflict"))
	switch c.Generic("check-remote").(*flags.OptionalWord).String() {
	case "", "false":
	case "true":
		o.CheckRemote = importer.ReadChanged
	case "all":
		o.CheckRemote = importer.ReadAll
	default:
		return exit.Usage("--check-remote takes no value, or is --check-remote=all", "see leadferry sync --help")
	}
	if o.Files.Pull = c.String("pull"); o.Files.Pull != "" && o.DryRun {
		return exit.Usage("--dry-run writes nothing, so there is no --pull", "use leadferry reconcile --pull")
	}
	return hintIfMissing(p.send(c, o, importer.Sync), unknownLeads)
}

// unknownLeads says why sync and reconcile do nothing without a checkpoint: they would know no lead.
func unknownLeads(string) string {
	return "leads are found in a checkpoint that knows them: import them first, " +
		"take them over with `leadferry checkpoint adopt`, or name the file with --checkpoint"
}

func (p *program) reconcileCommand() *cli.Command {
	makes := []string{ // flags of runs that send which concern the making and changing of leads
		"require-checkpoint", "new-checkpoint", "dry-run", "show", "in-doubt", "resend-on", "max-in-doubt",
		"max-creates",
		"look-alikes", "new-key", "retry-rejected", "yes",
	}
	reads := slices.DeleteFunc(sendFlags(), func(f cli.Flag) bool { return slices.Contains(makes, f.Names()[0]) })
	return &cli.Command{
		Name: "reconcile", ArgsUsage: "FILE...",
		Usage: "compare file, checkpoint and service, lead by lead; change nothing",
		Flags: slices.Concat(inputFlags(), connectionFlags(), checkpointFlags(), reads, []cli.Flag{
			running.Choice("remote", "read leads from the service: %; none compares file and checkpoint only", "all",
				"none"),
			running.Time("fresh", 0, "skip leads that were confirmed or read within `DURATION`"),
			running.Count("sample", 0, "read the leads of `N` rows drawn at random, and estimate the share that differs"),
			reconciliationFlag(), pullFlag(),
		}, outputFlags()),
		Action: p.reconcile,
	}
}

func (p *program) reconcile(c *cli.Context) error {
	o, err := p.sendOptions(c)
	if err != nil {
		return err
	}
	o.Reconciling = importer.Reconciling{Fresh: c.Duration("fresh"), Sample: c.Int("sample")}
	o.Reconciling.None = c.String("remote") == "none"
	switch {
	case c.IsSet("sample") && o.Reconciling.Sample == 0:
		return exit.Usage("--sample 0 picks no lead", "leave it out to read all leads; --remote none reads none")
	case o.Reconciling.None && (o.Reconciling.Sample > 0 || o.Reconciling.Fresh > 0):
		return exit.Usage("--remote none reads no lead, so --sample and --fresh pick none", "leave one of them out")
	}
	o.Files.Reconciles, o.Files.Reconciliation = true, c.String("reconciliation")
	o.Files.Pull = c.String("pull")
	return hintIfMissing(p.send(c, o, importer.Reconcile), unknownLeads)
}

func reconciliationFlag() cli.Flag {
	return files.Name("reconciliation", "write the reconciliation to `FILE`")
}

func pullFlag() cli.Flag {
	return files.Name("pull", "write the leads whose status changed on the service to `FILE`, as CSV in the CRM's words")
}
