package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"leadferry/checkpoint"
	"leadferry/checkpoint/bolt"
	"leadferry/checkpoint/postgres"
	"leadferry/importer"
	"leadferry/importer/report"
	"leadferry/importer/source"
	"leadferry/internal/cli/checkpointcmd"
	"leadferry/internal/cli/connection"
	"leadferry/internal/cli/exit"
	"leadferry/internal/config"
	"leadferry/internal/disk"
)

// checkpointPath is the checkpoint that is named, or the target's own.
func (p *program) checkpointPath(c *cli.Context) (string, error) {
	if path := c.String("checkpoint"); postgres.IsAddress(path) {
		if c.Bool("sandbox") {
			return "", exit.Usage("--sandbox keeps its leads beside its checkpoint, which must be a file", "leadferry sandbox serves an imitation whose leads a ledger in PostgreSQL may know")
		}
		return path, nil
	} else if path != "" {
		return path, refuseOther(path)
	}
	t := p.target()
	if t.LeadsURL == "" || t.TrunkID == "" {
		return "", exit.Usage("no --leads-url and --trunk-id given, so the target is not known",
			"set them or their LEADFERRY_ variables, name a --checkpoint, or add --sandbox to try it out without an account")
	}
	return defaultCheckpoint(t)
}

// refuseOther refuses a file that is named as a checkpoint and is known to be something else: what to do about a damaged
// one would be wrong for it.
func refuseOther(path string) error {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil // opening it as a checkpoint says why
	}
	defer f.Close()
	head := make([]byte, source.KindBytes)
	n, _ := io.ReadFull(f, head)
	if what := source.KindOf(path, head[:n]); n > 0 && what != "" && what != source.KindCheckpoint {
		return exit.Usage(path+" is "+what+", not a checkpoint", "--checkpoint takes the file that leadferry made, if any; files with rows stand without a flag")
	}
	return nil
}

// defaultCheckpoint is the one place where a target's checkpoint lies, whatever
// folder the program was started in.
func defaultCheckpoint(t checkpoint.Target) (string, error) {
	dir, err := config.StateDir()
	if err != nil {
		return "", exit.Usage(fmt.Sprintf("the state directory is not known: %v", err), "name a file with --checkpoint")
	}
	if t == connection.SandboxTarget {
		return filepath.Join(dir, "sandbox.db"), nil
	}
	u, err := url.Parse(t.LeadsURL)
	if err != nil || u.Hostname() == "" {
		return "", exit.Usage("--leads-url is not an address", "it looks like https://leads.example.com")
	}
	name := u.Hostname()
	if u.Port() != "" {
		name += "_" + u.Port()
	}
	return filepath.Join(dir, plainName(name+"-"+t.Canonical().TrunkID)+".db"), nil
}

// plainName keeps what may stand in a file name on every system.
func plainName(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '.', r == '_':
			return r
		}
		return '_'
	}, s)
}

// makeStateDir makes the checkpoint's folder, for its owner alone.
func makeStateDir(path string) error {
	if err := disk.MakeFolders(filepath.Dir(path)); err != nil {
		return exit.Usage(fmt.Sprintf("the checkpoint's folder cannot be made: %v", err), "name another file with --checkpoint")
	}
	return nil
}

// opening says how the checkpoint is opened that the flags name. A sandbox may always begin
// anew, for its leads are nobody's.
func opening(c *cli.Context) bolt.Options {
	return bolt.Options{
		Wait: c.Duration("wait"), AnyPlace: anyPlace(), Require: c.Bool("require-checkpoint"),
		Witnesses: witnesses(c), Named: c.String("checkpoint") != "", Anew: c.Bool("new-checkpoint") || c.Bool("sandbox"),
	}
}

// opener opens the checkpoint of a run, wherever it is kept.
func (p *program) opener(c *cli.Context, o *importer.Options) func(require, readOnly bool) (checkpoint.Store, error) {
	path, target := o.Checkpoint, o.Target
	if postgres.IsAddress(path) {
		return p.serverOpener(c, o)
	}
	how := opening(c)
	how.Anew = how.Anew || p.asks(c, *o)
	return func(require, readOnly bool) (checkpoint.Store, error) {
		how.Require, how.Used, how.ReadOnly = require, require, readOnly
		if !readOnly && !require {
			if err := makeStateDir(path); err != nil {
				return nil, err
			}
		}
		store, err := bolt.Open(path, target, how)
		if err != nil {
			return nil, err // not a *bolt.Store that is nil
		}
		return store, nil
	}
}

// anyPlace tells whether the user takes responsibility for where the checkpoint lies.
func anyPlace() bool {
	yes, _ := strconv.ParseBool(os.Getenv("LEADFERRY_ANY_FILESYSTEM"))
	return yes
}

// existing is the checkpoint that the flags name, which must be there.
func (p *program) existing(c *cli.Context) (checkpointcmd.Place, error) {
	path, err := p.checkpointPath(c)
	if err != nil {
		return checkpointcmd.Place{}, err
	}
	if postgres.IsAddress(path) {
		return p.existingOnServer(c, path)
	}
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return checkpointcmd.Place{}, exit.Usage("no checkpoint at "+path, "check --checkpoint, or the target's flags")
	}
	at := checkpointcmd.Place{Path: path, Target: p.target(), Options: opening(c)}
	if at.Target.LeadsURL == "" || at.Target.TrunkID == "" {
		at.Target = checkpoint.Target{} // named by its path alone: whatever target it has
	}
	at.Options.Require = true
	return at, nil
}

// openOrMakeCheckpoint makes one where there is none, if the flags name a target.
func (p *program) openOrMakeCheckpoint(c *cli.Context) (checkpointcmd.Ledger, error) {
	path, err := p.checkpointPath(c)
	if err != nil {
		return nil, err
	}
	target := p.target()
	named := target.BaseURL != "" && target.LeadsURL != "" && target.TrunkID != ""
	if postgres.IsAddress(path) && named {
		db, err := postgres.Open(path, target, p.serverOptions(c))
		if err != nil {
			return nil, err // not a *postgres.Store that is nil
		}
		return db, nil
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) || !named {
		at, err := p.existing(c)
		if err != nil {
			return nil, err
		}
		return at.Open(checkpointcmd.How{})
	}
	if err := makeStateDir(path); err != nil {
		return nil, err
	}
	db, err := bolt.Open(path, target, opening(c))
	if err != nil {
		return nil, err
	}
	return db, nil
}

// mostFolders is how many run folders are asked for what they tell, the newest.
const mostFolders = 100

// witnesses are what the run folders at hand tell of checkpoints: those beside which this
// run's own will stand. The sandbox has none and is none: its leads are nobody's.
func witnesses(c *cli.Context) (all []checkpoint.Witness) {
	if c.Bool("sandbox") {
		return nil
	}
	for _, s := range report.Old(runParents(c), mostFolders) {
		if w := witnessOf(s); w.ID != "" && w.Target != connection.SandboxTarget {
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
		if parent := filepath.Dir(out); !slices.ContainsFunc(parents, func(p string) bool { return disk.SameFile(p, parent) }) {
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
