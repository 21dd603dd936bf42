package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"leadferry/checkpoint"
	"leadferry/checkpoint/postgres"
	"leadferry/importer"
	"leadferry/importer/report"
	"leadferry/internal/cli/checkpointcmd"
	"leadferry/internal/cli/exit"
	"leadferry/internal/config"
)

// serverOptions say how a ledger in PostgreSQL is opened that the flags name.
func (p *program) serverOptions(c *cli.Context) postgres.Options {
	o := postgres.Options{
		Require: c.Bool("require-checkpoint"), Anew: c.Bool("new-checkpoint"), Wait: c.Duration("wait"), Patience: c.Duration("max-wait"),
		Timeout: c.Duration("timeout"), Witnesses: witnesses(c), NeverPromoted: c.String("ledger-standby") == "never-promoted",
		Command: c.Command.Name, Interrupt: p.interrupt,
	}
	if dir, err := config.StateDir(); err == nil {
		o.State = dir
	}
	return o
}

// serverOpener opens the ledger of a run.
func (p *program) serverOpener(c *cli.Context, o *importer.Options) func(require, readOnly bool) (checkpoint.Store, error) {
	path, target, how := o.Checkpoint, o.Target, p.serverOptions(c)
	how.Run, how.Command, how.Terms, how.Anew = o.RunID, o.Command, o.Terms, how.Anew || p.asks(c, *o)
	return func(require, readOnly bool) (checkpoint.Store, error) {
		how.Require, how.ReadOnly = require, readOnly
		store, err := postgres.Open(path, target, how)
		if err != nil {
			return nil, err // not a *postgres.Store that is nil
		}
		return store, nil
	}
}

// existingOnServer is the ledger that the flags name: of their target, or the only one there is.
func (p *program) existingOnServer(c *cli.Context, path string) (checkpointcmd.Place, error) {
	o := p.serverOptions(c)
	at := checkpointcmd.Place{Path: path, Target: p.target(), Server: &o}
	all, err := postgres.Targets(path, o)
	named := at.Target.BaseURL != "" && at.Target.LeadsURL != "" && at.Target.TrunkID != ""
	switch {
	case err != nil:
		return at, err
	case named && slices.Contains(all, at.Target.Canonical()):
		return at, nil
	case named:
		return at, exit.Usage("no checkpoint at "+path+" of this target", "check --checkpoint and the target's flags; a run begins the ledger of its target")
	case len(all) == 0:
		return at, exit.Usage("no checkpoint at "+path, "check --checkpoint; a run begins the ledger of its target")
	case len(all) == 1:
		at.Target = all[0]
		return at, nil
	}
	var lines []string
	for _, t := range all {
		lines = append(lines, fmt.Sprintf("   --base-url %s --leads-url %s --trunk-id %s", report.Quote(t.BaseURL), report.Quote(t.LeadsURL), report.Quote(t.TrunkID)))
	}
	return at, exit.Usage(fmt.Sprintf("%s holds the ledgers of %d targets:\n%s", path, len(all), strings.Join(lines, "\n")), "add the flags, or the profile, of the one that is meant")
}
