package cli

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
	"golang.org/x/text/unicode/norm"

	"leadferry/checkpoint"
	"leadferry/checkpoint/bolt"
	"leadferry/importer/report"
	runpage "leadferry/importer/report/page"
	"leadferry/internal/cli/exit"
	"leadferry/internal/cli/ledger"
	"leadferry/internal/config"
	"leadferry/internal/disk"
)

// place is where a file of a run lies, or will lie, and what it is to the run.
type place struct {
	path, what string
	file       fs.FileInfo // behind links; nil: nothing is there
	folder     fs.FileInfo // that it lies in; nil: that is not there
	dir, name  string      // the same in words, links on the way followed
	whole      bool        // all that lies in it belongs to it
}

func placeAt(path, what string) place {
	p := place{path: path, what: what, dir: filepath.Dir(path), name: filepath.Base(path)}
	p.file, _ = os.Stat(path)
	p.folder, _ = os.Stat(p.dir)
	if abs, err := filepath.Abs(p.dir); err == nil {
		p.dir = followed(abs)
	}
	return p
}

// followed is an absolute path behind the links of what is there of it.
func followed(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil || path == filepath.Dir(path) {
		return real
	}
	return filepath.Join(followed(filepath.Dir(path)), filepath.Base(path))
}

// is reports whether two places are one: the same file, by whatever name, or two names
// in one folder of which some file systems make one, though other names apart.
func (p *place) is(q *place) bool {
	if p.file != nil && q.file != nil {
		return os.SameFile(p.file, q.file)
	}
	same := p.name == q.name || p.file == nil && q.file == nil && strings.EqualFold(norm.NFC.String(p.name), norm.NFC.String(q.name))
	return same && p.beside(q)
}

// beside reports whether two places lie in one folder.
func (p *place) beside(q *place) bool {
	if p.folder != nil && q.folder != nil {
		return os.SameFile(p.folder, q.folder)
	}
	return p.dir == q.dir
}

// in reports whether a place lies in the folder that another one is.
func (p *place) in(folder *place) bool {
	if p.folder != nil && folder.file != nil {
		return os.SameFile(p.folder, folder.file)
	}
	return p.dir == filepath.Join(folder.dir, folder.name)
}

// filesOf is where the run's files go. A run that sends nothing
// writes only what is asked for.
func filesOf(c *cli.Context, runID string, now time.Time, sendsNothing bool) report.Files {
	o := report.Files{Page: runpage.Write, Dir: c.String("out"), Results: c.String("results"), Rejects: c.String("rejects"), Summary: c.String("summary"), Problems: c.String("problems")}
	switch {
	case o.Dir == "none":
		o.Dir = ""
	case o.Dir == "" && !sendsNothing:
		o.Dir = filepath.Join(report.RunsFolder, now.UTC().Format("20060102T150405Z")+"-"+c.Command.Name+"-"+runID)
	}
	return o
}

// outputsOf are the places that a run writes to: files, and the run's folder. What each is
// to the run is its flag.
func outputsOf(f report.Files, metrics string) (all []place) {
	for _, n := range []struct{ flag, path string }{
		{"--results", f.Results}, {"--rejects", f.Rejects}, {"--summary", f.Summary}, {"--problems", f.Problems}, {"--reconciliation", f.Reconciliation}, {"--pull", f.Pull}, {"--metrics", metrics}, {"--out", f.Dir},
	} {
		if n.path != "" && n.path != "-" && n.path != report.None && !(n.flag == "--problems" && n.path == report.Annotations) {
			all = append(all, placeAt(n.path, n.flag))
		}
	}
	return all
}

// takes reports whether an output would be written over a place. A run's folder may hold
// the output that it would have made there under the same name.
func (p *place) takes(q *place) bool {
	if q.whole {
		return p.is(q) || p.in(q)
	}
	if p.what == "--out" {
		kind := report.RunFile(strings.ToLower(q.name))
		return p.is(q) || q.in(p) && kind != "" && "--"+kind != q.what
	}
	partial := placeAt(p.path+".partial", p.what)
	return p.is(q) || partial.is(q) || p.what == "--rejects" && p.beside(q) && report.FurtherRejects(p.name, q.name)
}

// keepApart is the one rule for all outputs: none names the checkpoint, what the run
// reads, or another output. It is asked before anything is sent or written.
func (p *program) keepApart(c *cli.Context, f report.Files, inputs []string) error {
	if err := report.CheckProblems(f.Problems); err != nil {
		return exit.Usage(err.Error(), "name a file such as problems.csv, or say --problems github for annotations of a workflow")
	}
	outputs, kept := outputsOf(f, c.String("metrics")), p.keptPlaces(c, inputs)
	for i, o := range outputs {
		for j, q := range outputs {
			if i != j && o.takes(&q) {
				return exit.Usage(fmt.Sprintf("%s %s and %s %s are one file", o.what, o.path, q.what, q.path), "give each output a place of its own: nothing was sent")
			}
		}
		for _, q := range kept {
			if o.takes(&q) {
				how := map[bool]string{true: "lies in", false: "would take the place of"}[q.whole]
				return exit.Usage(fmt.Sprintf("%s %s %s %s, which is %s", o.what, o.path, how, q.path, q.what), "name another place: nothing was sent")
			}
		}
	}
	if f.Dir != "" {
		if err := p.keepRun(c, f.Dir); err != nil {
			return err
		}
	}
	return p.keepStreams(append(kept, outputs...))
}

// keepRun refuses to replace files of the user's own, as in --out ., and what a run to a real target left by less: it may
// be all that is known of its leads.
func (p *program) keepRun(c *cli.Context, dir string) error {
	if path := report.Foreign(dir); path != "" {
		return exit.Usage(fmt.Sprintf("--out %s would take the place of %s, which no run has written", dir, path), "name a folder of the run's own, or move that file away")
	}
	w := ledger.WitnessIn(dir)
	again := !c.Bool("dry-run") && w.Target.Canonical() == p.target().Canonical()
	if w.Ledger == "" || again {
		return nil
	}
	return exit.Usage(fmt.Sprintf("--out %s would take the place of what the run %s left there, which sent leads to %s", dir, w.Run, w.Target.LeadsURL),
		"name another folder")
}

// keptPlaces are the files that no output of a run may replace, and the folders of secrets, in which none may lie.
func (p *program) keptPlaces(c *cli.Context, inputs []string) []place {
	var kept []place
	if info, err := p.In.Stat(); err == nil && info.Mode().IsRegular() && slices.Contains(inputs, "-") {
		kept = append(kept, place{path: "the file of standard input", what: "an input", file: info})
	}
	add := func(what string, paths ...string) {
		for _, path := range paths {
			if path != "" && path != "-" {
				kept = append(kept, placeAt(path, what))
			}
		}
	}
	add("an input", inputs...)
	if c != nil {
		add("the mapping", c.String("mapping"))
		add("the sandbox's directory", c.String("directory"))
	}
	add("a table of the mapping", p.tables...)
	for _, path := range slices.DeleteFunc(p.checkpoints(c), checkpoint.IsAddress) {
		add("the checkpoint", path)
		add("a part of the checkpoint", bolt.Companions(path)...)
		add("a part of the sandbox", sandboxData(path))
	}
	set := p.settings.Load()
	add("the configuration file", set.Config.Value)
	add("a secret", set.Get("client-secret-file"), set.Get("client-key"))
	add("a certificate", set.Get("client-cert"), set.Get("ca-file"))
	files := len(kept)
	if path := set.Config.Value; path != "" {
		add("for the clients that login stores", config.CredentialsFolder(path))
	}
	if dir, err := config.StateDir(); err == nil {
		add("for the tokens of sign-ins", filepath.Join(dir, "tokens"))
	}
	for i := range kept[files:] {
		kept[files+i].whole = true
	}
	return kept
}

// checkpoints are the one of the command and those of all targets in the state directory:
// a command without connection flags does not know which is meant.
func (p *program) checkpoints(c *cli.Context) []string {
	var paths []string
	if path, err := p.ledger(c).Path(); err == nil {
		paths = append(paths, path)
		if real, err := filepath.EvalSymlinks(path); err == nil {
			paths = append(paths, real)
		}
	}
	if dir, err := config.StateDir(); err == nil {
		others, _ := filepath.Glob(filepath.Join(dir, "*.db"))
		paths = append(paths, others...)
	}
	return paths
}

// keepStreams refuses a command whose standard output or error was sent, by >> or a
// service's settings, into a file that it reads, that is its checkpoint's, or that it
// writes otherwise.
func (p *program) keepStreams(others []place) error {
	for what, stream := range map[string]*os.File{"standard output": p.Out, "standard error": p.Err} {
		info, err := stream.Stat()
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		for _, q := range others {
			if q.file == nil || !os.SameFile(info, q.file) {
				continue
			}
			if stream == p.Err { // not a word more goes there
				p.Err = p.Out
				p.log.Redirect(p.Out)
			}
			return exit.Usage(fmt.Sprintf("%s goes into %s, which is %s", what, q.path, strings.TrimPrefix(q.what, "--")), "send it somewhere else: nothing was sent")
		}
	}
	return nil
}

// exposed warns of folders in which another user could put something else in the place
// of an output.
func exposed(outputs []place) (warnings []string) {
	for _, o := range outputs {
		path := o.dir
		if o.what == "--out" {
			path = o.path
		}
		folder, err := os.Stat(path)
		if err != nil || !folder.IsDir() {
			continue
		}
		if why := disk.Exposed(folder); why != "" {
			warnings = append(warnings, fmt.Sprintf("the folder %s of %s %s: whoever may write there can put other files in the place of this run's", path, o.what, why))
		}
	}
	return warnings
}
