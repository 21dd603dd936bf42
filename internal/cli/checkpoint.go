package cli

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"leadferry/checkpoint"
)

func (p *program) checkpointCommand() *cli.Command {
	shared := slices.Concat(checkpointFlags(), connectionFlags())
	return &cli.Command{
		Name: "checkpoint", Usage: "look at what is known of the leads, and settle rows in doubt",
		Description: `The checkpoint is leadferry's only memory of the leads that it made: the service
cannot be asked. Without --checkpoint the one of the target is used.

Example:

   leadferry checkpoint export --state in_doubt --sandbox

Exit codes: 0 done; 2 usage error or no checkpoint at the path; 4 the checkpoint
is locked, damaged or of another target.`,
		Subcommands: []*cli.Command{
			p.statusCommand(shared), p.exportCommand(shared), p.resolveCommand(shared),
		},
		Action: func(c *cli.Context) error { return cli.ShowSubcommandHelp(c) },
	}
}

// openCheckpoint opens one that must be there.
func openCheckpoint(c *cli.Context, readOnly bool) (*checkpoint.DB, error) {
	path, err := checkpointPath(c)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return nil, usage("no checkpoint at "+path, "check --checkpoint, or the target's flags")
	}
	target := targetOf(c)
	if target.LeadsURL == "" || target.TrunkID == "" {
		target = checkpoint.Target{} // named by its path alone: whatever target it has
	}
	return checkpoint.Open(path, target, checkpoint.Options{
		Wait: c.Duration("wait"), Require: true, ReadOnly: readOnly,
	})
}

func (p *program) statusCommand(shared []cli.Flag) *cli.Command {
	return &cli.Command{
		Name: "status", Usage: "what the checkpoint knows, and its last runs", Flags: shared,
		Description: "Example:\n\n   leadferry checkpoint status --sandbox\n\nExit codes: 0 done; 2 no checkpoint; 4 locked or damaged.",
		Action: func(c *cli.Context) (err error) {
			db, err := openCheckpoint(c, true)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, db.Close()) }()
			return p.status(db)
		},
	}
}

// recentRuns is how many runs status lists.
const recentRuns = 10

func (p *program) status(db *checkpoint.DB) error {
	counts, err := db.Counts()
	if err != nil {
		return err
	}
	t := db.Target()
	fmt.Fprintf(p.Out, "checkpoint  %s\ntarget      %s, trunk %s\n", db.Path(), t.LeadsURL, t.TrunkID)
	for _, s := range []checkpoint.State{checkpoint.Created, checkpoint.Partial, checkpoint.Rejected, checkpoint.InDoubt} {
		fmt.Fprintf(p.Out, "%-10s  %d\n", s, counts[s])
	}
	for _, text := range db.Warnings() {
		fmt.Fprintf(p.Err, "warning: %s\n", text)
	}
	runs, err := db.Runs()
	if err != nil {
		return err
	}
	if len(runs) > 0 {
		fmt.Fprintln(p.Out, "\nlast runs")
	}
	for _, r := range runs[max(0, len(runs)-recentRuns):] {
		fmt.Fprintf(p.Out, "%s  %s  %-8s  %-11s  %s\n", r.Started.UTC().Format(time.RFC3339), r.ID, r.Command, r.Outcome, countsText(r.Counts))
	}
	if counts[checkpoint.InDoubt] > 0 {
		fmt.Fprintf(p.Out, "\n%d in doubt: leadferry checkpoint export --state in_doubt lists them; find them in the console, then leadferry checkpoint resolve FILE.csv\n", counts[checkpoint.InDoubt])
	}
	return nil
}

func countsText(counts map[string]int) string {
	text := ""
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		if counts[name] > 0 {
			text += fmt.Sprintf(" %s %d", name, counts[name])
		}
	}
	if text == "" {
		return "nothing"
	}
	return text[1:]
}
