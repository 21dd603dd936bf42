// Package ledger finds the ledger that a command means, a file or a place on a server, and opens it: with what the
// run folders at hand tell of earlier ones.
package ledger

import (
	"cmp"
	"context"
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
	"leadferry/internal/cli/connection"
	"leadferry/internal/cli/exit"
	"leadferry/internal/config"
	"leadferry/internal/disk"
	"leadferry/internal/shell"
)

// Meant is a command line as far as it says which ledger is meant.
type Meant struct {
	C         *cli.Context
	Target    checkpoint.Target // empty where the command names none
	Interrupt <-chan struct{}   // ends the waits for a server
}

// Place is where a checkpoint lies, and how it is opened.
type Place struct {
	Path    string
	Target  checkpoint.Target
	Options bolt.Options      // of a file
	Server  *postgres.Options // of an address; nil: it is a file
}

// Ledger is a checkpoint as commands use it.
type Ledger interface {
	checkpoint.Store
	Status() (checkpoint.Status, error)
	// What a copy to another place needs.
	Moved() string
	SetMoved(to string) error
	Contents(ctx context.Context) (*checkpoint.Contents, error)
}

// How says in what way a checkpoint is opened.
type How struct {
	ReadOnly bool
	Accept   bool // an older one, by a person's word
	Moved    bool // also one that was copied to another place
}

// Open opens the checkpoint that is there.
func (at *Place) Open(how How) (Ledger, error) {
	if at.Server != nil {
		o := *at.Server
		o.ReadOnly, o.Accept, o.Moved, o.Require = how.ReadOnly, how.Accept, how.Moved, true
		return opened(postgres.Open(at.Path, at.Target, o))
	}
	o := at.Options
	o.ReadOnly, o.Accept, o.Moved, o.Require = how.ReadOnly, how.Accept, how.Moved, true
	return opened(bolt.Open(at.Path, at.Target, o))
}

// opened is a checkpoint that was opened, or none: a nil pointer to one would be a Ledger.
func opened[S Ledger](store S, err error) (Ledger, error) {
	if err != nil {
		return nil, err
	}
	return store, nil
}

// Path is where the checkpoint lies that is named, or the target's own.
func (m Meant) Path() (string, error) {
	if path := m.C.String("checkpoint"); checkpoint.IsAddress(path) {
		if m.C.Bool("sandbox") {
			return "", exit.Usage("--sandbox keeps its leads beside its checkpoint, which must be a file", "leadferry sandbox serves an imitation whose leads a ledger in PostgreSQL may know")
		}
		return path, nil
	} else if path != "" {
		return path, refuseOther(path)
	}
	t := m.Target
	if t.LeadsURL == "" || t.TrunkID == "" {
		return "", exit.Usage("no --leads-url and --trunk-id given, so the target is not known",
			"set them or their LEADFERRY_ variables, name a --profile or a --checkpoint, or add --sandbox to try it out without an account")
	}
	return Default(t)
}

// serverWords begin the words of a server's address.
var serverWords = []string{"host", "hostaddr", "service", "dbname", "user", "port", "sslmode"}

// RefuseName refuses the name of a checkpoint that is meant as no file: as an address, and is none of PostgreSQL, or as none.
// A file of that name would be a new one, with which every lead is made again.
func RefuseName(name string) error {
	isWord := func(word string) bool {
		key, _, found := strings.Cut(word, "=")
		return found && slices.Contains(serverWords, key)
	}
	switch {
	case checkpoint.IsAddress(name), disk.Exists(name):
		return nil
	case name == report.None || name == "-":
		return exit.Usage("--checkpoint "+name+" names no file, and nothing goes without a checkpoint, the only memory of what was made",
			"leave the flag out for the one of the target, or write ./"+name+" for a file of that name")
	case strings.TrimSpace(name) != name, len(name) > 1 && strings.ContainsRune(`"'`, rune(name[0])) && name[len(name)-1] == name[0]:
		return exit.Usage("the checkpoint's name has blanks, a line end or quotes around it that are no part of a name",
			"files with variables keep them in some places: write the name alone behind --checkpoint or in LEADFERRY_CHECKPOINT")
	case !strings.Contains(name, "://") && !slices.ContainsFunc(strings.Fields(name), isWord):
		return nil
	}
	return exit.Usage("the checkpoint's name is neither that of a file nor an address of PostgreSQL", // and may hold a password
		"an address looks like postgres://user@db.example.com/leads, or begins with host= or service=; a file is named by its path alone")
}

// refuseOther refuses a file that is named as a checkpoint and is known to be something else: what to do about a damaged
// one would be wrong for it.
func refuseOther(path string) error {
	if err := RefuseName(path); err != nil {
		return err
	}
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
		return exit.Usage(path+" is "+what+", not a checkpoint", "a checkpoint is the file that leadferry made, if any, behind --checkpoint; files with rows stand without a flag")
	}
	return nil
}

// Default is the one place where a target's checkpoint lies, whatever
// folder the program was started in.
func Default(t checkpoint.Target) (string, error) {
	dir, err := config.StateDir()
	if err != nil {
		return "", exit.Usage(fmt.Sprintf("the state directory is not known: %v", err), "set HOME, which says where the checkpoint of earlier runs lies, or name that one with --checkpoint")
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

// MakeFolder makes the checkpoint's folder, for its owner alone.
func MakeFolder(path string) error {
	if err := disk.MakeFolders(filepath.Dir(path)); err != nil {
		return exit.Usage(fmt.Sprintf("the checkpoint's folder cannot be made: %v", err), "name another file with --checkpoint")
	}
	return nil
}

// FileOptions say how a file is opened that the flags name. A sandbox may always begin
// anew, for its leads are nobody's.
func (m Meant) FileOptions() bolt.Options {
	return bolt.Options{
		Wait: m.C.Duration("wait"), AnyPlace: AnyPlace(), Require: m.C.Bool("require-checkpoint"),
		Witnesses: m.Witnesses(), Named: m.C.String("checkpoint") != "", Anew: m.C.Bool("new-checkpoint") || m.C.Bool("sandbox"),
	}
}

// Opener opens the checkpoint of a run, wherever it is kept. Where a person is asked before the run, a new one may be begun
// in the place of one that is gone.
func (m Meant) Opener(o *importer.Options, asked bool) func(require, readOnly bool) (checkpoint.Store, error) {
	path, target := o.Checkpoint, o.Target
	if checkpoint.IsAddress(path) {
		how := m.ServerOptions()
		how.Run, how.Command, how.Terms, how.Anew = o.RunID, o.Command, o.Terms, how.Anew || asked
		return func(require, readOnly bool) (checkpoint.Store, error) {
			how.Require, how.ReadOnly = require, readOnly
			return opened(postgres.Open(path, target, how))
		}
	}
	how := m.FileOptions()
	how.Anew = how.Anew || asked
	return func(require, readOnly bool) (checkpoint.Store, error) {
		how.Require, how.Used, how.ReadOnly = require, require, readOnly
		if !readOnly && !require {
			if err := MakeFolder(path); err != nil {
				return nil, err
			}
		}
		return opened(bolt.Open(path, target, how))
	}
}

// AnyPlace tells whether the user takes responsibility for where the checkpoint lies.
func AnyPlace() bool {
	yes, _ := strconv.ParseBool(os.Getenv("LEADFERRY_ANY_FILESYSTEM"))
	return yes
}

// Existing is the checkpoint that the flags name, which must be there.
func (m Meant) Existing() (Place, error) {
	path, err := m.Path()
	if err != nil {
		return Place{}, err
	}
	if checkpoint.IsAddress(path) {
		return m.existingOnServer(path)
	}
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return Place{}, exit.Usage("no checkpoint at "+path, "check --checkpoint, or the target's flags")
	}
	at := Place{Path: path, Target: m.Target, Options: m.FileOptions()}
	if at.Target.LeadsURL == "" || at.Target.TrunkID == "" {
		at.Target = checkpoint.Target{} // named by its path alone: whatever target it has
	}
	at.Options.Require = true
	return at, nil
}

// Named is a checkpoint that an argument names, which must be there.
func (m Meant) Named(name string) (Place, error) {
	if checkpoint.IsAddress(name) {
		return m.existingOnServer(name)
	}
	if err := refuseOther(name); err != nil {
		return Place{}, err
	}
	if !disk.Exists(name) {
		return Place{}, exit.Usage("no checkpoint at "+name, "check the path")
	}
	return Place{Path: name, Options: bolt.Options{AnyPlace: AnyPlace(), Witnesses: m.Witnesses(), Named: true}}, nil
}

// OpenOrMake opens the checkpoint that the flags name, and makes one where there is none, if the flags name a target.
func (m Meant) OpenOrMake() (Ledger, error) {
	path, err := m.Path()
	if err != nil {
		return nil, err
	}
	target := m.Target
	named := target.BaseURL != "" && target.LeadsURL != "" && target.TrunkID != ""
	if checkpoint.IsAddress(path) && named {
		return opened(postgres.Open(path, target, m.ServerOptions()))
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) || !named {
		at, err := m.Existing()
		if err != nil {
			return nil, err
		}
		return at.Open(How{})
	}
	if err := MakeFolder(path); err != nil {
		return nil, err
	}
	return opened(bolt.Open(path, target, m.FileOptions()))
}

// mostFolders is how many run folders are asked for what they tell, the newest.
const mostFolders = 100

// Witnesses are what the run folders at hand tell of checkpoints: those beside which this
// run's own will stand. The sandbox has none and is none: its leads are nobody's.
func (m Meant) Witnesses() (all []checkpoint.Witness) {
	if m.C.Bool("sandbox") {
		return nil
	}
	for _, s := range report.Newest(m.runParents(), mostFolders) {
		if w := witnessOf(s); w.ID != "" && w.Target != connection.SandboxTarget {
			all = append(all, w)
		}
	}
	return all
}

// runParents are the folders in which run folders stand.
func (m Meant) runParents() []string {
	parents := []string{report.RunsFolder}
	out := cmp.Or(m.C.String("out"), os.Getenv("LEADFERRY_OUT")) // commands without a run folder have no flag for it
	if out != "" && out != report.None {
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

// WitnessIn is what the run whose files lie in a folder tells; nothing, if that says none.
func WitnessIn(folder string) checkpoint.Witness {
	s, err := report.ReadWitness(filepath.Join(folder, "summary.json"))
	if err != nil {
		return checkpoint.Witness{}
	}
	return witnessOf(s)
}

// ServerOptions say how a ledger in PostgreSQL is opened that the flags name.
func (m Meant) ServerOptions() postgres.Options {
	o := postgres.Options{
		Require: m.C.Bool("require-checkpoint"), Anew: m.C.Bool("new-checkpoint"), Wait: m.C.Duration("wait"), Patience: m.C.Duration("max-wait"),
		Timeout: m.C.Duration("timeout"), Witnesses: m.Witnesses(), NeverPromoted: m.C.String("ledger-standby") == "never-promoted",
		Command: m.C.Command.Name, Interrupt: m.Interrupt,
	}
	if dir, err := config.StateDir(); err == nil {
		o.State = dir
	}
	return o
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
		lines = append(lines, fmt.Sprintf("   --base-url %s --leads-url %s --trunk-id %s", shell.Word(t.BaseURL), shell.Word(t.LeadsURL), shell.Word(t.TrunkID)))
	}
	return at, exit.Usage(fmt.Sprintf("%s holds the ledgers of %d targets:\n%s", path, len(all), strings.Join(lines, "\n")), "add the flags, or the profile, of the one that is meant")
}
