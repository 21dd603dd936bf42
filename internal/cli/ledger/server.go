package ledger

import (
	"fmt"
	"slices"
	"strings"

	"leadferry/checkpoint"
	"leadferry/checkpoint/postgres"
	"leadferry/importer"
	"leadferry/importer/report"
	"leadferry/internal/cli/exit"
	"leadferry/internal/config"
)

// ServerOptions say how a ledger in PostgreSQL is opened that the flags name.
func (m Meant) ServerOptions() postgres.Options {
	o := postgres.Options{
		Require: m.C.Bool("require-checkpoint"), Anew: m.C.Bool("new-checkpoint"), Wait: m.C.Duration("wait"), Patience: m.C.Duration("max-wait"),
		Timeout: m.C.Duration("timeout"), Witnesses: m.witnesses(), NeverPromoted: m.C.String("ledger-standby") == "never-promoted",
		Command: m.C.Command.Name, Interrupt: m.Interrupt,
	}
	if dir, err := config.StateDir(); err == nil {
		o.State = dir
	}
	return o
}

// serverOpener opens the ledger of a run.
func (m Meant) serverOpener(o *importer.Options, asked bool) func(require, readOnly bool) (checkpoint.Store, error) {
	path, target, how := o.Checkpoint, o.Target, m.ServerOptions()
	how.Run, how.Command, how.Terms, how.Anew = o.RunID, o.Command, o.Terms, how.Anew || asked
	return func(require, readOnly bool) (checkpoint.Store, error) {
		how.Require, how.ReadOnly = require, readOnly
		return opened(postgres.Open(path, target, how))
	}
}

// existingOnServer is the ledger that the flags name: of their target, or the only one there is.
func (m Meant) existingOnServer(path string) (Place, error) {
	o := m.ServerOptions()
	at := Place{Path: path, Target: m.Target, Server: &o}
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
