package cli

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"leadferry/importer"
	"leadferry/importer/report"
)

func (p *program) importCommand() *cli.Command {
	return &cli.Command{
		Name: "import", Usage: "create leads, then link ExternalID; resumable", ArgsUsage: "FILE...",
		Description: `Reads each FILE (CSV, TSV, JSONL or XLSX; - is standard input), maps its rows and
makes one lead of each, exactly once: what was done is kept in the checkpoint, so the
same command can be run again after any stop and sends only what is left.

Example:

   export LEADFERRY_CLIENT_SECRET=...
   leadferry import -m leads.yaml leads.csv \
      --base-url https://api.example.com --leads-url https://leads.example.com \
      --trunk-id 3f2a... --client-id 9c1b...

Try it without an account: leadferry import --sandbox -m leads.yaml leads.csv

Exit codes: 0 no row needs attention; 1 some rows do, see the rejects file;
2 usage, mapping or input error, nothing was sent; 3 stopped early, resumable;
4 checkpoint locked, missing or damaged; 5 rows in doubt; 130 interrupted.`,
		Flags:  slices.Concat(inputFlags(), connectionFlags(), checkpointFlags(), sendFlags(), importFlags(), outputFlags()),
		Action: p.runImport,
	}
}

func (p *program) runImport(c *cli.Context) error { return p.send(c, importer.Import) }

// send carries out a run that sends.
func (p *program) send(c *cli.Context, run func(context.Context, importer.Options) (*report.Summary, error)) (err error) {
	o, err := p.importOptions(c)
	if err != nil {
		return err
	}
	in, err := p.openInputs(c, &o)
	if err != nil {
		return err
	}
	defer in.close()
	s, err := p.connection(c, &o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	return p.conduct(c, in, o, run)
}

// importOptions turns the flags into options, before any file is touched.
func (p *program) importOptions(c *cli.Context) (importer.Options, error) {
	now := time.Now()
	o := importer.Options{
		Command: c.Command.Name, Version: Version, RunID: p.ending.Load().run, Interrupt: p.interrupt,
		Limit: c.Int("limit"), Rate: c.Float64("rate"), Retries: c.Int("retries"),
		MaxWait: c.Duration("max-wait"), MaxDuration: c.Duration("max-duration"),
		ResendInDoubt: c.String("in-doubt") == "resend", RetryRejected: c.Bool("retry-rejected"),
		CreateAlikes: c.String("look-alikes") == "create", NewColumns: c.Bool("new-columns"), NewKey: c.Bool("new-key"),
		DryRun: c.Bool("dry-run"), NoRepeats: c.Bool("no-repeats"), Show: c.Int("show"),
	}
	var errs [8]error
	errs[0] = positive(c)
	o.Concurrency, errs[1] = concurrency(c)
	o.Limits, errs[2] = limits(c)
	o.ResendOn, errs[3] = resendOn(c.String("resend-on"))
	errs[4] = oneOf(c, "in-doubt", "hold", "resend")
	errs[5] = choices(c, &o)
	o.Log, errs[6] = p.logger(c)
	errs[7] = oneOf(c, "look-alikes", "hold", "create")
	for _, err := range errs {
		if err != nil {
			return o, err
		}
	}
	o.Files = filesOf(c, o.RunID, now, o.DryRun)
	return o, nil
}

// connection finds the service and the checkpoint that belongs to it.
func (p *program) connection(c *cli.Context, o *importer.Options) (*service, error) {
	path, err := checkpointPath(c)
	if err != nil {
		return nil, err
	}
	s, err := connect(c, path, !o.DryRun)
	if err != nil {
		return nil, err
	}
	o.Opening = opening(c)
	o.Opening.Anew = o.Opening.Anew || p.asks(c, *o)
	o.Checkpoint, o.Target, o.Client = path, s.target, s.client
	o.Client.Trace = trace(o.Log)
	o.Client.Concurrency, o.Client.Timeout = o.Concurrency, c.Duration("timeout")
	o.Client.UserAgent = "leadferry/" + Version
	return s, nil
}

// checkpointPath is the one named, or the target's own.
func checkpointPath(c *cli.Context) (string, error) {
	if path := c.String("checkpoint"); path != "" {
		return path, nil
	}
	t := targetOf(c)
	if t.LeadsURL == "" || t.TrunkID == "" {
		return "", usage("no --leads-url and --trunk-id given, so the target is not known",
			"set them or their LEADFERRY_ variables, name a --checkpoint, or add --sandbox to try it out without an account")
	}
	return defaultCheckpoint(t)
}
