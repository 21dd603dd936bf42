package cli

import (
	"errors"
	"slices"

	"github.com/urfave/cli/v2"

	"leadferry/checkpoint"
	"leadferry/importer"
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
4 checkpoint locked, missing or damaged; 5 rows in doubt; 130 interrupted.`,
		Flags: slices.Concat(inputFlags(), connectionFlags(), checkpointFlags(), sendFlags(), []cli.Flag{
			choiceFlag(running, "missing", "rows whose lead is not known: %", "report", "create", "ignore"),
			boolFlag(running, "check-remote", "before a lead is changed, read it, and hold the row as conflict when its status is not the one last confirmed"),
			choiceFlag(running, "reopen", "changes from a closed status to an open one: %; hold makes them conflicts", "allow", "hold"),
		}, outputFlags()),
		Action: func(c *cli.Context) error {
			o, err := p.sendOptions(c)
			if err != nil {
				return err
			}
			o.Missing = map[string]importer.Missing{"create": importer.MissingCreate, "ignore": importer.MissingIgnore}[c.String("missing")]
			o.CheckRemote, o.HoldReopen = c.Bool("check-remote"), c.String("reopen") == "hold"
			return unknownLeads(p.send(c, o, importer.Sync))
		},
	}
}

// unknownLeads says what a sync does without a checkpoint: nothing, for it would know
// no lead.
func unknownLeads(err error) error {
	missing := (*checkpoint.OpenError)(nil)
	if errors.Is(err, checkpoint.ErrMissing) && errors.As(err, &missing) && missing.Hint == "" {
		missing.Hint = "a sync changes leads that a checkpoint knows: import them first, take them over with `leadferry checkpoint adopt`, or name the file with --checkpoint"
	}
	return err
}
