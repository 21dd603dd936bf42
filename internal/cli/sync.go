package cli

import (
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

Exit codes: 0 no row needs attention; 1 some rows do, see the rejects file;
2 usage, mapping or input error, nothing was sent; 3 stopped early, resumable;
4 checkpoint locked, missing or damaged; 5 rows in doubt; 6 a newer worker of the
fleet has this one's place; 130 interrupted.`,
		Flags: slices.Concat(inputFlags(), connectionFlags(), checkpointFlags(), fleetFlags(), sendFlags(), []cli.Flag{
			flags.Choice(running, "missing", "rows whose lead is not known: %", "report", "create", "ignore"),
			checkRemoteFlag(),
			flags.Choice(running, "conflict", "rows whose lead's status was changed on the service: % (a conflict, the file's status is sent, or the service's stays); the mapping's conflict: goes before", "report", "file", "service"),
			flags.Choice(running, "reopen", "changes from a closed status to an open one: %; hold makes them conflicts", "allow", "hold"),
			pullFlag(),
		}, outputFlags()),
		Action: func(c *cli.Context) error {
			o, err := p.sendOptions(c)
			if err != nil {
				return err
			}
			o.Missing = map[string]importer.Missing{"create": importer.MissingCreate, "ignore": importer.MissingIgnore}[c.String("missing")]
			o.HoldReopen, o.Conflict = c.String("reopen") == "hold", importer.RuleOf(c.String("conflict"))
			if o.Files.Pull = c.String("pull"); o.Files.Pull != "" && o.DryRun {
				return exit.Usage("--dry-run writes nothing, so there is no --pull", "leadferry reconcile --pull writes it and changes nothing")
			}
			o.CheckRemote = checksRemote(c)
			return hintIfMissing(p.send(c, o, importer.Sync), unknownLeads)
		},
	}
}

// unknownLeads says why sync and reconcile do nothing without a checkpoint: they would know
// no lead.
const unknownLeads = "leads are found in a checkpoint that knows them: import them first, take them over with `leadferry checkpoint adopt`, or name the file with --checkpoint"

// hintIfMissing gives the error of a checkpoint that is not there a hint, where it has none.
func hintIfMissing(err error, hint string) error {
	missing := (*checkpoint.OpenError)(nil)
	if errors.Is(err, checkpoint.ErrMissing) && errors.As(err, &missing) && missing.Hint == "" {
		missing.Hint = hint
	}
	return err
}

// checkAll is what --check-remote=all asks for.
const checkAll = "all"

func checkRemoteFlag() cli.Flag {
	return &cli.GenericFlag{
		Name: "check-remote", Value: new(flags.OptionalWord), DefaultText: "no lead is read", Category: running,
		Usage: "read a lead before it is changed (`[=all]`: every lead of the file), and decide by --conflict about a status that is not the one last confirmed",
		Action: func(c *cli.Context, value any) error {
			if word := value.(*flags.OptionalWord).String(); word != checkAll {
				if err := flags.Mislaid(c, "check-remote", func(word string) bool { return word == checkAll }); err != nil {
					return err
				}
				if _, err := strconv.ParseBool(word); err != nil {
					return exit.Usage("--check-remote stands alone, or is --check-remote="+checkAll, "see "+flags.CommandName(c)+" --help")
				}
			}
			return nil
		},
	}
}

// checksRemote says which leads are read.
func checksRemote(c *cli.Context) importer.Reads {
	word := c.Generic("check-remote").(*flags.OptionalWord).String()
	changed, _ := strconv.ParseBool(word) // was checked by the flag
	switch {
	case word == checkAll:
		return importer.ReadAll
	case changed:
		return importer.ReadChanged
	}
	return importer.ReadNothing
}
