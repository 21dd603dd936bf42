package cli

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"
	"golang.org/x/net/publicsuffix"

	"leadferry/checkpoint"
	"leadferry/checkpoint/bolt"
	"leadferry/importer/report"
	"leadferry/leadapi"
	"leadferry/leadapi/sandbox"
)

// sandboxTarget is the target of --sandbox: the same whatever port it listens on.
var sandboxTarget = checkpoint.Target{BaseURL: "sandbox", LeadsURL: "sandbox", TrunkID: sandbox.TrunkID}

// target is the service that is meant, as far as that is known.
func (s *settings) target() checkpoint.Target {
	if s.sandbox {
		return sandboxTarget
	}
	return checkpoint.Target{BaseURL: leadapi.Canonical(s.get("base-url")), LeadsURL: leadapi.Canonical(s.get("leads-url")), TrunkID: s.get("trunk-id")}
}

// target is the one of the command's settings; nothing, where it has none.
func (p *program) target() checkpoint.Target {
	if s := p.settings.Load(); s != nil {
		return s.target()
	}
	return checkpoint.Target{}
}

// mixedRegions says when the two addresses belong to different registered domains.
func mixedRegions(t checkpoint.Target) string {
	base, leads := registered(t.BaseURL), registered(t.LeadsURL)
	if base == leads {
		return ""
	}
	return fmt.Sprintf("the base URL (%s) and the leads URL (%s) belong to different domains: is one of the US and one of the EU?", base, leads)
}

func registered(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	if d, err := publicsuffix.EffectiveTLDPlusOne(u.Hostname()); err == nil {
		return d
	}
	return u.Hostname()
}

// stateDir is leadferry's folder in the user's state directory, or among the user's own
// application data where there is none.
func stateDir() (string, error) {
	switch runtime.GOOS {
	case "darwin", "ios", "windows", "plan9":
		dir, err := os.UserConfigDir()
		return filepath.Join(dir, "leadferry", "state"), err
	}
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "leadferry"), nil
	}
	home, err := os.UserHomeDir()
	return filepath.Join(home, ".local", "state", "leadferry"), err
}

// checkpointPath is the checkpoint that is named, or the target's own.
func (p *program) checkpointPath(c *cli.Context) (string, error) {
	if path := c.String("checkpoint"); path != "" {
		return path, nil
	}
	t := p.target()
	if t.LeadsURL == "" || t.TrunkID == "" {
		return "", usage("no --leads-url and --trunk-id given, so the target is not known",
			"set them or their LEADFERRY_ variables, name a --checkpoint, or add --sandbox to try it out without an account")
	}
	return defaultCheckpoint(t)
}

// defaultCheckpoint is the one place where a target's checkpoint lies, whatever
// folder the program was started in.
func defaultCheckpoint(t checkpoint.Target) (string, error) {
	dir, err := stateDir()
	if err != nil {
		return "", usage(fmt.Sprintf("the state directory is not known: %v", err), "name a file with --checkpoint")
	}
	if t == sandboxTarget {
		return filepath.Join(dir, "sandbox.db"), nil
	}
	u, err := url.Parse(t.LeadsURL)
	if err != nil || u.Hostname() == "" {
		return "", usage("--leads-url is not an address", "it looks like https://leads.example.com")
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
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return usage(fmt.Sprintf("the checkpoint's folder cannot be made: %v", err), "name another file with --checkpoint")
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

// anyPlace tells whether the user takes responsibility for where the checkpoint lies.
func anyPlace() bool {
	yes, _ := strconv.ParseBool(os.Getenv("LEADFERRY_ANY_FILESYSTEM"))
	return yes
}

// existing is the checkpoint that the flags name, which must be there.
func (p *program) existing(c *cli.Context) (path string, o bolt.Options, t checkpoint.Target, err error) {
	if path, err = p.checkpointPath(c); err != nil {
		return path, o, t, err
	}
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return path, o, t, usage("no checkpoint at "+path, "check --checkpoint, or the target's flags")
	}
	if t = p.target(); t.LeadsURL == "" || t.TrunkID == "" {
		t = checkpoint.Target{} // named by its path alone: whatever target it has
	}
	o = opening(c)
	o.Require = true
	return path, o, t, nil
}

// openCheckpoint opens one that must be there.
func (p *program) openCheckpoint(c *cli.Context, readOnly bool) (*bolt.Store, error) {
	path, o, target, err := p.existing(c)
	if err != nil {
		return nil, err
	}
	o.ReadOnly = readOnly
	return bolt.Open(path, target, o)
}

// withCheckpoint opens the checkpoint that is named, which must be there, as long as f takes.
func (p *program) withCheckpoint(c *cli.Context, readOnly bool, f func(*bolt.Store) error) error {
	db, err := p.openCheckpoint(c, readOnly)
	if err != nil {
		return err
	}
	return errors.Join(f(db), db.Close())
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
