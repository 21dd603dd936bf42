package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"leadferry/checkpoint"
	"leadferry/checkpoint/bolt"
	"leadferry/checkpoint/postgres"
	"leadferry/importer/report"
	runpage "leadferry/importer/report/page"
	"leadferry/importer/source/sample"
	"leadferry/internal/cli/exit"
	"leadferry/internal/cli/inputs"
	"leadferry/internal/cli/ledger"
	"leadferry/internal/cli/terminal"
	"leadferry/internal/config"
	"leadferry/internal/disk"
	"leadferry/internal/machine"
	"leadferry/internal/shell"
	"leadferry/internal/spelling"
	"leadferry/mapping"
	"leadferry/mapping/propose"
)

// place is a file or a folder, existing or not, and its role in the command.
type place struct {
	path, what string
	real       string      // the absolute path with all links followed
	file       fs.FileInfo // with links followed; nil: nothing is there
}

func placeAt(path, what string) place {
	p := place{path: path, what: what, real: path}
	p.file, _ = os.Stat(path)
	if abs, err := filepath.Abs(path); err == nil {
		p.real = followed(abs)
	}
	return p
}

// followed follows the links in the existing part of an absolute path.
func followed(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil || path == filepath.Dir(path) {
		return real
	}
	return filepath.Join(followed(filepath.Dir(path)), filepath.Base(path))
}

// is reports whether two places are the same file under any names, or have the same name in any case.
func (p *place) is(q *place) bool {
	if p.file != nil && q.file != nil {
		return os.SameFile(p.file, q.file)
	}
	return strings.EqualFold(p.real, q.real)
}

// isIn reports whether a place is the folder or inside it, at any depth.
func (p *place) isIn(folder *place) bool {
	for path := p.real; ; path = filepath.Dir(path) {
		at := place{real: path}
		if at.file, _ = os.Stat(path); at.is(folder) {
			return true
		}
		if path == filepath.Dir(path) {
			return false
		}
	}
}

// overwrites reports whether the output p would overwrite q. An output may be in the run's folder under the name that
// the run would give it. Names are compared without case, as some systems do.
func (p *place) overwrites(q *place) bool {
	partial := placeAt(p.path+".partial", p.what) // its name until it is complete
	dir, name := filepath.Dir(q.real), filepath.Base(q.real)
	kind := report.RunFile(strings.ToLower(name))
	return p.is(q) || partial.is(q) ||
		p.what == "--out" && strings.EqualFold(dir, p.real) && kind != "" && "--"+kind != q.what ||
		p.what == "--rejects" && strings.EqualFold(dir, filepath.Dir(p.real)) &&
			report.FurtherRejects(filepath.Base(p.real), name)
}

// filesOf says where the run's files go. A run that sends nothing writes only the files asked for.
func filesOf(c *cli.Context, runID string) report.Files {
	o := report.Files{
		Page: runpage.Write, Dir: c.String("out"), Results: c.String("results"), Rejects: c.String("rejects"),
		Summary: c.String("summary"), Problems: c.String("problems"), ProblemValues: c.Bool("problems-values"),
		Pull: c.String("pull"), Reconciliation: c.String("reconciliation"), Reconciles: c.Command.Name == "reconcile",
	}
	switch {
	case o.Dir == "none":
		o.Dir = ""
	case o.Dir == "" && !c.Bool("dry-run") && c.Command.Name != "validate":
		began := time.Now().UTC().Format("20060102T150405Z")
		o.Dir = filepath.Join(report.RunsFolder, began+"-"+c.Command.Name+"-"+runID)
	}
	return o
}

// outputsOf returns the places that a run writes to, files and its folder. The role of each is its flag.
func outputsOf(c *cli.Context, dir string) (all []place) {
	for _, name := range []string{
		"results", "rejects", "summary", "problems", "reconciliation", "pull", "metrics", "out",
	} {
		path := c.String(name)
		if name == "out" {
			path = dir
		}
		named := !slices.Contains([]string{"", "-", report.None}, path)
		if named && (name != "problems" || path != report.Annotations) {
			all = append(all, placeAt(path, "--"+name))
		}
	}
	return all
}

// keepApart checks the rule for all outputs: none may be the checkpoint, an input, a secret or another output, and none
// may be in leadferry's own folders. It runs before anything is sent or written.
func (p *program) keepApart(c *cli.Context, outputs []place, inputs []string) error {
	kept, own := p.keptPlaces(c, inputs), p.ownFolders()
	runs := place{real: filepath.Join(placeAt(".", "").real, report.RunsFolder)} // allowed, wherever it is
	refuse := func(why string, of ...any) error { return exit.Usage(fmt.Sprintf(why, of...), "name another place") }
	for _, o := range outputs {
		at := slices.IndexFunc(own, func(folder place) bool { return o.isIn(&folder) && !o.isIn(&runs) })
		if at >= 0 {
			return refuse("%s %s is in leadferry's own folder %s", o.what, o.path, own[at].path)
		}
		for _, q := range slices.Concat(kept, outputs) {
			if o.what != q.what && o.overwrites(&q) {
				return refuse("%s %s would take the place of %s, which is %s", o.what, o.path, q.path, q.what)
			}
		}
		name := strings.TrimSuffix(strings.ToLower(filepath.Base(o.real)), ".partial")
		if bolt.IsLedger(o.real) || name == checkpoint.RunFile {
			return refuse("%s %s would take the place of a checkpoint or its witness", o.what, o.path)
		}
	}
	return nil
}

// keepOutputs checks that rule for everything a run writes.
func (p *program) keepOutputs(c *cli.Context, f report.Files, inputs []string) error {
	err := p.keepApart(c, outputsOf(c, f.Dir), inputs)
	if err != nil || f.Dir == "" {
		return err
	}
	// --out must not replace what a run to another target left: perhaps nothing else knows its leads. And until a real
	// run ends, its folder must not hold the results of a trial in the sandbox, which nobody may adopt.
	w := checkpoint.WitnessIn(f.Dir)
	isOwn := !c.Bool("dry-run") && w.Target.Canonical() == p.settings.Target().Canonical()
	if w.Ledger == "" || isOwn {
		return nil
	}
	return exit.Usage(fmt.Sprintf("--out %s would take the place of what the run %s left, which sent leads to %s",
		f.Dir, w.Run, w.Target.LeadsURL), "name another folder")
}

// ownFolders are the folders of checkpoints, tokens, clients and the configuration.
func (p *program) ownFolders() (all []place) {
	if state, err := machine.StateDir(); err == nil {
		all = append(all, placeAt(state, ""))
	}
	if dir, err := os.UserConfigDir(); err == nil {
		all = append(all, placeAt(filepath.Join(dir, "leadferry"), ""))
	}
	return append(all, placeAt(config.CredentialsFolder(p.settings.Config.Value), ""))
}

// keptPlaces are the files that no output may replace.
func (p *program) keptPlaces(c *cli.Context, inputs []string) (kept []place) {
	add := func(what string, paths ...string) {
		for _, path := range paths {
			if path != "" && path != "-" {
				kept = append(kept, placeAt(path, what))
			}
		}
	}
	if path, named := p.ledger(c).Path(); named == nil && !checkpoint.IsAddress(path) {
		for _, path := range []string{path, placeAt(path, "").real} {
			add("the checkpoint", path)
			add("a part of the checkpoint", bolt.Companions(path)...)
			add("a part of the sandbox", ledger.SandboxData(path))
		}
	}
	if state, err := machine.StateDir(); err == nil {
		entries, _ := os.ReadDir(state)
		for _, e := range entries { // they may be links
			if !e.IsDir() {
				add("a checkpoint", filepath.Join(state, e.Name()))
			}
		}
	}
	set := p.settings
	if info, err := p.In.Stat(); err == nil && info.Mode().IsRegular() && slices.Contains(inputs, "-") {
		kept = append(kept, place{path: "the file of standard input", what: "an input", file: info})
	}
	add("an input", inputs...)
	add("a table of the mapping", p.tables...)
	add("the configuration file", set.Config.Value)
	for _, name := range []string{"mapping", "directory", "client-secret-file", "client-key", "client-cert", "ca-file"} {
		add("the file of --"+name, set.Get(name))
	}
	return kept
}

// exposed returns warnings about folders in which another user could replace an output.
func exposed(outputs []place) (warnings spelling.Texts) {
	for _, o := range outputs {
		path := filepath.Dir(o.real)
		if o.what == "--out" {
			path = o.path
		}
		folder, err := os.Stat(path)
		if err != nil || !folder.IsDir() {
			continue
		}
		why := disk.Exposed(folder)
		warnings.Add(why != "", "the folder %s of %s %s: "+
			"anyone who can write there can put other files in the place of this run's", path, o.what, why)
	}
	return warnings
}

func (p *program) report(c *cli.Context) error {
	to, fleet := c.String("output"), c.String("fleet")
	switch {
	case c.NArg() > 1:
		return exit.Usage("report takes one run", "its folder or its summary; without one it is the last")
	case to == "-" && c.Bool("open"):
		return exit.Usage("--open opens a file, and -o - writes none", "leave one of them out")
	case fleet != "" && c.Args().Present():
		return exit.Usage("--fleet names what the report is about, and RUN does too", "leave one of them out")
	case fleet != "":
		return p.reportFleet(c, to)
	}
	const hint = "RUN is the folder that a run left, or its summary.json; without it the last run is meant"
	from := c.Args().First()
	if from == "" {
		last := report.Newest([]string{report.RunsFolder}, 1)
		if len(last) == 0 {
			return exit.Usage("there is no finished run in "+report.RunsFolder+" here", hint)
		}
		from = last[0].SummaryPath
		for _, w := range (&checkpoint.Witnesses{Parents: []string{report.RunsFolder}}).All() {
			if w.Open && w.Started.After(last[0].FinishedAt) {
				p.warn("a later run has no report: it did not end, or still runs: " + filepath.Dir(w.Source))
			}
		}
	}
	s, err := report.Read(from)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return exit.Usage(from+" is not there, or no finished run is in it", hint)
	case err != nil:
		return exit.Usage(err.Error(), hint)
	case to == "" && report.RunFile(filepath.Base(s.SummaryPath)) != "summary":
		return exit.Usage("the summary "+s.SummaryPath+" is in no run's folder",
			"name a file with -o FILE, such as -o page.html")
	}
	to = cmp.Or(to, filepath.Join(filepath.Dir(s.SummaryPath), "report.html"))
	if err := p.writePage(c, s, to); err != nil || to == "-" {
		return err
	}
	return p.print(spelling.EscapeLine(to) + "\n")
}

// writePage writes the page, replaces an older one, and opens it if asked.
func (p *program) writePage(c *cli.Context, s *report.Summary, to string) error {
	if to == "-" {
		return runpage.Write(&p.out, s)
	}
	inputs := checkpoint.Map(s.Inputs, func(in report.Input) string { return in.Path })
	if err := p.keepApart(c, []place{placeAt(to, "-o")}, inputs); err != nil {
		return err
	}
	name := strings.ToLower(filepath.Base(placeAt(to, "").real))
	if kind := report.RunFile(name); kind != "" && kind != "report" {
		return exit.Usage("-o "+to+" has the name of a file that a run leaves", "name another file, such as page.html")
	}
	if err := report.WriteFile(to, func(w io.Writer) error { return runpage.Write(w, s) }); err != nil {
		return exit.Stopped(fmt.Sprintf("the page could not be written: %v", err), "name another place with -o FILE")
	}
	if c.Bool("open") {
		p.warnOf("the page could not be opened", terminal.OpenFile(to))
	}
	return nil
}

// reportFleet writes the summary and the page of a fleet as if it were one run, and ends like that run.
func (p *program) reportFleet(c *cli.Context, to string) error {
	s, err := p.summarizeFleet(c)
	if err != nil {
		return err
	}
	dir := filepath.Join(report.RunsFolder, "fleets", s.Fleet) // not among the runs, which are witnesses
	s.SummaryPath, to = filepath.Join(dir, "summary.json"), cmp.Or(to, filepath.Join(dir, "report.html"))
	s.Files = []report.NamedFile{{Name: "summary", Path: s.SummaryPath}, {Name: "page", Path: to}}
	if err = os.MkdirAll(dir, 0o700); err == nil {
		err = report.WriteFile(s.SummaryPath, s.WriteJSON)
	}
	if err != nil {
		return exit.Stopped(fmt.Sprintf("the report could not be written: %v", err), "start this where it can be made")
	}
	if err := p.writePage(c, s, to); err != nil {
		return err
	}
	if p.code = s.ExitCode; to != "-" {
		p.show(s)
	}
	return nil
}

// summarizeFleet sums up the workers of a fleet from their ledger.
func (p *program) summarizeFleet(c *cli.Context) (*report.Summary, error) {
	name := c.String("fleet")
	if !checkpoint.IsAddress(c.String("checkpoint")) {
		return nil, exit.Usage("--checkpoint does not name the ledger of the fleet",
			"add --checkpoint postgres://HOST/DATABASE")
	}
	db, err := p.ledger(c).Open(ledger.How{ReadOnly: true})
	if err != nil {
		return nil, err
	}
	defer db.Close()
	store := db.(*postgres.Store)
	members, err := store.Members(c.Context, name)
	if err != nil {
		return nil, err
	}
	if len(members) == 0 {
		return nil, exit.Usage("the ledger knows no fleet "+name,
			"leadferry checkpoint workers lists workers with the names of their fleets")
	}
	return report.Fleet(name, db.Info(), members[0].Shards, members)
}

func (p *program) runInit(c *cli.Context) error {
	names, err := inputs.Names(c)
	if err != nil {
		return err
	}
	input := names[0]
	base, _, _ := strings.Cut(strings.TrimLeft(filepath.Base(input), "."), ".")
	target := cmp.Or(c.String("mapping"), base+".yaml") // in the current folder
	switch {
	case len(names) > 1:
		return exit.Usage("init reads one file", "the mapping fits every file that has the same columns")
	case input == "-" && c.String("mapping") == "":
		return exit.Usage("standard input has no name for the mapping", "name it with -m FILE, or print it with -m -")
	case target != "-" && disk.Exists(target):
		return exit.Usage(target+" is there already and is not overwritten",
			"name another file with -m, or print it with -m -")
	}
	in, err := sample.Read(inputs.Options(c, mapping.Source{}), p.In, input)
	if err != nil {
		return err
	}
	proposal, err := propose.Propose(in)
	if err != nil {
		return err
	}
	if target == "-" {
		for _, note := range proposal.Notes {
			p.say("- " + note)
		}
		return p.print(string(proposal.YAML))
	}
	err = disk.WriteNew(target, 0o644, func(w io.Writer) error {
		_, err := w.Write(proposal.YAML)
		return err
	})
	if err != nil {
		return exit.Usage(fmt.Sprintf("the mapping cannot be written: %v", err), "name another place with -m")
	}
	if p.quiet {
		return nil
	}
	text := "Wrote " + spelling.Escape(target) + ". It is a guess: read it before anything is sent.\n"
	for _, note := range proposal.Notes {
		text += "- " + spelling.Escape(note) + "\n"
	}
	return p.print(text + "Next: leadferry validate -m " + shell.Path(target) + " " + shell.Path(input) + "\n")
}

func (p *program) schema(*cli.Context) error { return p.print(string(mapping.Schema())) }
