package cli

import (
	"os"
	"path/filepath"
	"slices"

	"github.com/urfave/cli/v2"

	"leadferry/checkpoint"
	"leadferry/importer/report"
)

// mostFolders is how many run folders are asked, the newest.
const mostFolders = 100

// opening says how the checkpoint is opened that the flags name. A sandbox may always begin
// anew, for its leads are nobody's.
func opening(c *cli.Context) checkpoint.Options {
	return checkpoint.Options{
		Wait: c.Duration("wait"), AnyPlace: anyPlace(), Require: c.Bool("require-checkpoint"),
		Witnesses: witnesses(c), Named: c.String("checkpoint") != "", Anew: c.Bool("new-checkpoint") || c.Bool("sandbox"),
	}
}

// witnesses are what the run folders at hand tell of checkpoints: those beside which this
// run's own will stand. The sandbox has none and is none: its leads are nobody's.
func witnesses(c *cli.Context) (all []checkpoint.Witness) {
	if c.Bool("sandbox") {
		return nil
	}
	for _, s := range report.Old(runParents(c), mostFolders) {
		if w := witnessOf(s); w.ID != "" && w.Target != sandboxTarget {
			all = append(all, w)
		}
	}
	return all
}

// runParents are the folders in which run folders stand.
func runParents(c *cli.Context) []string {
	parents := []string{runsFolder}
	out := c.String("out")
	if out == "" {
		out = os.Getenv("LEADFERRY_OUT") // of commands that have no run folder of their own
	}
	if out != "" && out != "none" {
		if whole, err := filepath.Abs(out); err == nil {
			out = whole
		}
		if parent := filepath.Dir(out); !slices.ContainsFunc(parents, func(p string) bool { return sameFile(p, parent) }) {
			parents = append(parents, parent)
		}
	}
	return parents
}

// witnessOf is what a summary tells of the checkpoint that its run used; nothing, if it used
// none.
func witnessOf(s *report.Summary) checkpoint.Witness {
	if s.Checkpoint.Path == "" || s.Checkpoint.ID == "" {
		return checkpoint.Witness{}
	}
	w := checkpoint.Witness{
		Source: s.SummaryPath, Path: s.Checkpoint.Path, ID: s.Checkpoint.ID, Sequence: s.Checkpoint.Sequence, Leads: s.Checkpoint.Leads,
		Ended: s.FinishedAt, Target: checkpoint.Target(s.Target),
	}
	if !s.DryRun && s.Requests.Create+s.Requests.Update > 0 {
		w.Run = s.RunID
		w.Made = min(s.Requests.Create, s.Rows.Created+s.Rows.Partial+s.Rows.InDoubt)
	}
	return w
}

// witnessIn is what the run whose files lie in a folder tells; nothing, if that says none.
func witnessIn(folder string) checkpoint.Witness {
	s, err := report.ReadOld(filepath.Join(folder, "summary.json"))
	if err != nil {
		return checkpoint.Witness{}
	}
	return witnessOf(s)
}
