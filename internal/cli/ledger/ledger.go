// Package ledger finds the ledger that a command uses, in a file or on a server, and opens it. It passes on what the
// run folders at hand say about earlier ledgers.
package ledger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"leadferry/checkpoint"
	"leadferry/checkpoint/bolt"
	"leadferry/checkpoint/postgres"
	"leadferry/importer/report"
	"leadferry/importer/source"
	"leadferry/internal/cli/connection"
	"leadferry/internal/cli/exit"
	"leadferry/internal/cli/flags"
	"leadferry/internal/disk"
	"leadferry/internal/machine"
	"leadferry/internal/shell"
)

// Selection is the part of a command line that says which ledger to use.
type Selection struct {
	C         *cli.Context
	Target    checkpoint.Target // empty if the command names none
	Run       string            // ID of this start of the program
	Machine   string            // ID of this machine; "": unknown
	Unseen    bool              // the environment names the checkpoint, the command line does not
	Interrupt <-chan struct{}   // ends waiting for a server
}

// Place says where a checkpoint is.
type Place struct {
	Path   string
	Target checkpoint.Target
	by     Selection
}

// At returns the place for a path or an address.
func (m Selection) At(path string, target checkpoint.Target) Place { return Place{path, target, m} }

// Ledger is a checkpoint as commands use it.
type Ledger interface {
	checkpoint.Store
	// What a copy to another place needs.
	SetMoved(to string) error
	Contents(ctx context.Context) (*checkpoint.Contents, error)
}

// How says how to open a checkpoint.
type How struct {
	ReadOnly bool
	Makes    bool   // make it if it is missing
	Used     bool   // treat it as missing if it never knew a lead
	Check    bool   // check all of it, however it was left
	Accept   string // a person accepts the one with this ID, although it is older than known or was copied
	Moved    bool   // open it even if it was copied to another place
	Run      string // the ID of the run that opens it
	Terms    *checkpoint.Terms
}

// Open opens the checkpoint.
func (at *Place) Open(how How) (Ledger, error) {
	moved := how.Moved || how.Accept != ""
	if checkpoint.IsAddress(at.Path) {
		o := at.by.ServerOptions()
		o.Run, o.Terms = how.Run, how.Terms
		o.ReadOnly, o.Accept, o.Moved, o.Require, o.Used = how.ReadOnly, how.Accept, moved, !how.Makes, how.Used
		store, err := postgres.Open(at.Path, at.Target, o)
		if err != nil {
			return nil, err
		}
		if how.Check {
			err = store.Check(at.by.C.Context)
		}
		if err != nil {
			return nil, errors.Join(err, store.Close())
		}
		return store, nil
	}
	if how.Makes && !how.ReadOnly {
		if err := MakeFolder(at.Path); err != nil {
			return nil, err
		}
	}
	o := at.by.FileOptions()
	o.ReadOnly, o.Moved, o.Require, o.Used, o.Check = how.ReadOnly, moved, !how.Makes, how.Used, how.Check
	store, err := bolt.Open(at.Path, at.Target, o)
	if err != nil {
		return nil, err
	}
	return store, nil
}

// Path returns the path of the checkpoint: the named one, or the target's own.
func (m Selection) Path() (string, error) {
	path, t := m.C.String("checkpoint"), m.Target
	switch {
	case checkpoint.IsAddress(path) && m.C.Bool("sandbox"):
		return "", exit.Usage("--sandbox keeps its leads beside its checkpoint, which must be a file",
			"start leadferry sandbox, and use its address with the ledger in PostgreSQL")
	case m.Unseen && !checkpoint.IsAddress(path) && !filepath.IsAbs(path) && RefuseName(path) == nil:
		return "", exit.Usage("LEADFERRY_CHECKPOINT is a relative path: it would be another checkpoint in each folder",
			"write the whole path, from the root of the disk")
	case path != "":
		return path, RefuseName(path)
	case t.LeadsURL == "" || t.TrunkID == "":
		return "", exit.Usage("no --leads-url and --trunk-id given, so the target is not known",
			"set them or their LEADFERRY_ variables, name a --profile or a --checkpoint, or add --sandbox to try it "+
				"out without an account")
	}
	return Default(t)
}

// RefuseName refuses the name of a checkpoint that is not meant as a file: "none", or an address that is not
// PostgreSQL's. A file of that name would be a new checkpoint, and every lead would be made again. It also refuses a
// file whose name says that it is something else: the hints about a damaged checkpoint would be wrong for it.
func RefuseName(name string) error {
	isYAML := regexp.MustCompile(`(?i)\.ya?ml$`)
	// An address, which may hold a password, or text around a name in files of variables.
	noName := regexp.MustCompile(`://|(^|\s)[a-z]+=|^\s|\s$|^".+"$|^'.+'$|^none$|^-$`)
	info, err := os.Stat(name)
	switch {
	case checkpoint.IsAddress(name):
		return nil
	case err == nil && info.Mode().IsRegular() && (source.IsTable(name) || isYAML.MatchString(name)):
		return exit.Usage(name+" is a table or a mapping by its name, not a checkpoint",
			"--checkpoint takes a file that leadferry made; input files need no flag")
	case disk.Exists(name):
		return nil
	case noName.MatchString(name):
		return exit.Usage("the checkpoint's name is neither that of a file nor an address of PostgreSQL",
			"an address looks like postgres://user@db.example.com/leads, or begins with host= or service=; a file is "+
				"named by its path alone, without blanks or quotes around it; leave --checkpoint out for the one of "+
				"the target")
	}
	return nil
}

// Default returns the path of a target's checkpoint. It does not depend on the current folder.
func Default(t checkpoint.Target) (string, error) {
	dir, err := machine.StateDir()
	if err != nil {
		return "", exit.Usage(fmt.Sprintf("the state directory is not known: %v", err),
			"set HOME (on Windows, LOCALAPPDATA), so that earlier checkpoints are found, or give --checkpoint")
	}
	if t == connection.SandboxTarget {
		return filepath.Join(dir, "sandbox.db"), nil
	}
	u, err := url.Parse(t.LeadsURL)
	if err != nil || u.Hostname() == "" {
		return "", exit.Usage("--leads-url is not an address", "it looks like https://leads.example.com")
	}
	odd := regexp.MustCompile(`[^A-Za-z0-9._-]`) // what file names may not hold on every system
	name := u.Hostname()
	if u.Port() != "" {
		name += "_" + u.Port()
	}
	return filepath.Join(dir, odd.ReplaceAllString(name+"-"+t.Canonical().TrunkID, "_")+".db"), nil
}

// SandboxData returns where --sandbox keeps its leads: beside its checkpoint.
func SandboxData(checkpointPath string) string {
	return strings.TrimSuffix(checkpointPath, ".db") + "-service.db"
}

// MakeFolder makes the checkpoint's folder for its owner only.
func MakeFolder(path string) error {
	if err := disk.MakeFolders(filepath.Dir(path)); err != nil {
		return exit.Usage(fmt.Sprintf("the checkpoint's folder cannot be made: %v", err), disk.WayOut(err))
	}
	return nil
}

// FileOptions say how to open a file. A checkpoint of the sandbox is checked without a separate process.
func (m Selection) FileOptions() bolt.Options {
	anyPlace, _ := strconv.ParseBool(os.Getenv("LEADFERRY_ANY_FILESYSTEM"))
	return bolt.Options{
		Wait: flags.Time(m.C, "wait"), AnyPlace: anyPlace, Witnesses: m.Book(), Here: m.C.Bool("sandbox"),
	}
}

// ServerOptions say how to open a ledger in PostgreSQL.
func (m Selection) ServerOptions() postgres.Options {
	return postgres.Options{
		Wait: flags.Time(m.C, "wait"), Patience: flags.Time(m.C, "max-wait"), Timeout: flags.Time(m.C, "timeout"),
		NeverPromoted: m.C.String("ledger-standby") == "never-promoted", Command: m.C.Command.Name,
		Interrupt: m.Interrupt,
	}
}

// Place returns the checkpoint that the flags name. It must exist, unless makes is set and the flags name a target. If
// the flags name only its path, it may have any target.
func (m Selection) Place(makes bool) (Place, error) {
	path, err := m.Path()
	if err != nil || makes && m.named() {
		return m.At(path, m.Target), err
	}
	target := m.Target
	if target.LeadsURL == "" || target.TrunkID == "" {
		target = checkpoint.Target{}
	}
	return m.existing(path, target)
}

// Named returns a checkpoint that an argument names. It must exist.
func (m Selection) Named(name string) (Place, error) {
	if err := RefuseName(name); err != nil {
		return Place{}, err
	}
	return m.existing(name, checkpoint.Target{})
}

// existing returns a checkpoint that must exist. target is for a file.
func (m Selection) existing(path string, target checkpoint.Target) (Place, error) {
	if checkpoint.IsAddress(path) {
		return m.existingOnServer(path)
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return Place{}, exit.Usage("no checkpoint at "+path, "check the path, --checkpoint and the "+
			"target: --profile, or --base-url, --leads-url and --trunk-id")
	}
	return m.At(path, target), nil
}

// existingOnServer returns the ledger of the flags' target, or the only one on the server.
func (m Selection) existingOnServer(path string) (Place, error) {
	at := m.At(path, m.Target)
	all, err := postgres.Targets(path, m.ServerOptions())
	switch {
	case err != nil, m.named() && slices.Contains(all, at.Target.Canonical()):
		return at, err
	case m.named(), len(all) == 0:
		return at, exit.Usage("no checkpoint at "+path+" of this target",
			"check --checkpoint and the target's flags; a run begins the ledger of its target")
	case len(all) == 1:
		at.Target = all[0]
		return at, nil
	}
	lines := ""
	for _, t := range all {
		lines += fmt.Sprintf("\n   --base-url %s --leads-url %s --trunk-id %s", shell.Word(t.BaseURL),
			shell.Word(t.LeadsURL), shell.Word(t.TrunkID))
	}
	return at, exit.Usage(fmt.Sprintf("%s holds the ledgers of %d targets:%s", path, len(all), lines),
		"add the flags, or the profile, of the one that is meant")
}

// named reports whether the flags name a target.
func (m Selection) named() bool {
	return m.Target.BaseURL != "" && m.Target.LeadsURL != "" && m.Target.TrunkID != ""
}

// Open opens the checkpoint that the flags name.
func (m Selection) Open(how How) (Ledger, error) {
	at, err := m.Place(how.Makes)
	if err != nil {
		return nil, err
	}
	return at.Open(how)
}

// Book returns the witnesses of the user's book of ledgers, without run folders. The book says how a file was left.
func (m Selection) Book() *checkpoint.Witnesses {
	dir, err := machine.StateDir()
	if err != nil {
		return &checkpoint.Witnesses{}
	}
	return &checkpoint.Witnesses{Book: filepath.Join(dir, "ledgers")}
}

// Witnesses returns all witnesses of checkpoints: the book, and the run folders at hand. The sandbox has none.
func (m Selection) Witnesses() *checkpoint.Witnesses {
	if m.C == nil || m.C.Bool("sandbox") {
		return &checkpoint.Witnesses{Sandbox: true}
	}
	ws := m.Book()
	ws.Parents = []string{report.RunsFolder}
	if out := m.out(); out != "" && out != report.None {
		if parent := filepath.Join(out, ".."); !disk.SameFile(report.RunsFolder, parent) {
			ws.Parents = append(ws.Parents, parent)
		}
	}
	return ws
}

// out returns --out or its variable: some commands lack the flag.
func (m Selection) out() string { return cmp.Or(m.C.String("out"), os.Getenv("LEADFERRY_OUT")) }

// WithWitness calls f, which may change a checkpoint. It leaves a witness, as runs do. It refuses a checkpoint of which
// a witness knows a later state, unless older is set. If f changes nothing, no witness stays.
func (m Selection) WithWitness(db Ledger, older bool, f func() error) error {
	ctx, ws := m.C.Context, m.Witnesses()
	if ws.Sandbox || db.Info().Target == connection.SandboxTarget {
		return f()
	}
	v, err := checkpoint.Judge(ctx, db, ws, false, nil)
	if err == nil && !older {
		err = v.RefuseOlder()
	}
	if err != nil {
		return err
	}
	// the witnesses must go on describing the newer one
	if len(v.Older) > 0 || db.Info().Moved != "" || m.C.String("accept-older") != "" {
		return f()
	}
	command, now := m.C.Command.Name, time.Now()
	note := fmt.Appendf(nil, `{"command":%q,"run":%q,"at":%q}`, command, m.Run, now.UTC().Format(time.RFC3339))
	if err := checkpoint.PutNote(ctx, db, "command", note); err != nil {
		return err
	}
	folder := ""
	if m.out() != report.None {
		folder = filepath.Join(report.RunsFolder, now.UTC().Format("20060102T150405Z")+"-"+command+"-"+m.Run)
		if err := disk.MakeFolders(folder); err != nil {
			folder = ""
		}
	}
	t, err := ws.Begin(db, checkpoint.Witness{Command: command, Process: os.Getpid(), Started: now}, folder)
	if err != nil {
		return errors.Join(err, os.Remove(folder))
	}
	db.Attest(t)
	before := db.Info().Sequence
	err = f()
	if err == nil && db.Info().Sequence != before { // what f adopted or settled belongs to this machine
		if err = checkpoint.OnThisMachine(ctx, db, m.Machine, false, nil); errors.Is(err, checkpoint.ErrOtherMachine) {
			err = nil
		}
	}
	info := db.Info()
	isDropped := info.New && !info.Incomplete && info.Leads+info.InDoubt == 0
	if err != nil && info.Sequence == before || isDropped {
		t.Withdraw()
		_ = os.Remove(folder)
		_ = os.Remove(report.RunsFolder) // fails if anything else is in it
	}
	return err
}
