package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
	"golang.org/x/text/unicode/norm"

	"leadferry/checkpoint"
	"leadferry/importer/report"
	"leadferry/internal/trust"
)

// place is where a file of a run lies, or will lie, and what it is to the run.
type place struct {
	path, what string
	file       fs.FileInfo // behind links; nil: nothing is there
	folder     fs.FileInfo // that it lies in; nil: that is not there
	dir, name  string      // the same in words, links on the way followed
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

// outputs are the places that a run writes to.
type outputs struct {
	named []place // by a flag each; what is the flag
	dir   *place  // the run's folder, or nil
}

func outputsOf(f report.Files, metrics string) outputs {
	var o outputs
	for _, n := range []struct{ flag, path string }{
		{"--results", f.Results}, {"--rejects", f.Rejects}, {"--summary", f.Summary}, {"--metrics", metrics},
	} {
		if n.path != "" && n.path != "-" && n.path != report.None {
			o.named = append(o.named, placeAt(n.path, n.flag))
		}
	}
	if f.Dir != "" {
		dir := placeAt(f.Dir, "--out")
		o.dir = &dir
	}
	return o
}

// takes says which output would be written over a place, or nothing.
func (o *outputs) takes(q *place) string {
	for i := range o.named {
		p := &o.named[i]
		partial := placeAt(p.path+".partial", p.what)
		switch {
		case p.is(q), partial.is(q), p.what == "--rejects" && p.beside(q) && report.FurtherRejects(p.name, q.name):
			return p.what + " " + p.path
		}
	}
	if o.dir != nil && (o.dir.is(q) || q.in(o.dir) && report.RunFile(strings.ToLower(q.name)) != "") {
		return o.dir.what + " " + o.dir.path
	}
	return ""
}

// keepApart is the one rule for all outputs: none names the checkpoint, what the run
// reads, or another output. It is asked before anything is sent or written.
func keepApart(c *cli.Context, f report.Files, inputs []string, stdin *os.File) error {
	o := outputsOf(f, c.String("metrics"))
	if err := errors.Join(o.apart(), o.keepRun(c)); err != nil {
		return err
	}
	for _, q := range keptPlaces(c, inputs, stdin) {
		if by := o.takes(&q); by != "" {
			return usage(fmt.Sprintf("%s would take the place of %s, which is %s", by, q.path, q.what), "name another place: nothing was sent")
		}
	}
	for _, q := range keptFolders(c) {
		for _, one := range append(slices.Clone(o.named), o.folder()...) {
			if one.in(&q) || one.is(&q) {
				return usage(fmt.Sprintf("%s %s lies in %s, which is %s", one.what, one.path, q.path, q.what), "name another place: nothing was sent")
			}
		}
	}
	return nil
}

// keepRun refuses to replace what a run to a real target left by less: it may be all that is
// known of its leads.
func (o *outputs) keepRun(c *cli.Context) error {
	if o.dir == nil {
		return nil
	}
	w := witnessIn(o.dir.path)
	if w.Run == "" || w.Target == sandboxTarget {
		return nil
	}
	if settingsOf(c) != nil && !c.Bool("dry-run") && w.Target.Canonical() == targetOf(c).Canonical() {
		return nil
	}
	return usage(fmt.Sprintf("--out %s would take the place of what the run %s left there, which sent leads to %s", o.dir.path, w.Run, w.Target.LeadsURL),
		"name another folder")
}

func (o *outputs) folder() []place {
	if o.dir == nil {
		return nil
	}
	return []place{*o.dir}
}

// apart refuses two outputs in one place.
func (o *outputs) apart() error {
	for i := range o.named {
		one := &o.named[i]
		rest := outputs{named: o.named[i+1:]}
		if by := rest.takes(one); by != "" {
			return usage(fmt.Sprintf("%s and %s %s are one file", by, one.what, one.path), "give each output a file of its own: nothing was sent")
		}
		before := outputs{named: o.named[:i]}
		if by := before.takes(one); by != "" {
			return usage(fmt.Sprintf("%s and %s %s are one file", by, one.what, one.path), "give each output a file of its own: nothing was sent")
		}
		if o.dir == nil {
			continue
		}
		if kind := report.RunFile(strings.ToLower(one.name)); o.dir.is(one) || one.in(o.dir) && kind != "" && "--"+kind != one.what {
			return usage(fmt.Sprintf("%s %s stands in the way of %s %s", one.what, one.path, o.dir.what, o.dir.path), "give each output a place of its own: nothing was sent")
		}
	}
	return nil
}

// keptPlaces are the files that no output of a run may replace.
func keptPlaces(c *cli.Context, inputs []string, stdin *os.File) []place {
	var kept []place
	if info, err := stdin.Stat(); err == nil && info.Mode().IsRegular() && slices.Contains(inputs, "-") {
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
	add("the mapping", c.String("mapping"))
	for _, path := range checkpoints(c) {
		add("the checkpoint", path)
		add("a part of the checkpoint", checkpoint.Companions(path)...)
		add("a part of the sandbox", sandboxData(path))
	}
	config, files := configFiles(c)
	add("the configuration file", config)
	add("a secret", files...)
	return kept
}

// checkpoints are the one of the command and those of all targets in the state directory:
// a command without connection flags does not know which is meant.
func checkpoints(c *cli.Context) []string {
	var paths []string
	if settingsOf(c) != nil {
		path, err := checkpointPath(c)
		if err != nil {
			return nil // the command ends with this error soon
		}
		paths = append(paths, path)
		if real, err := filepath.EvalSymlinks(path); err == nil {
			paths = append(paths, real)
		}
	}
	if dir, err := stateDir(); err == nil {
		others, _ := filepath.Glob(filepath.Join(dir, "*.db"))
		paths = append(paths, others...)
	}
	return paths
}

// configFiles are the configuration file and the files of secrets that the command's
// flags, environment or profile name.
func configFiles(c *cli.Context) (config string, secrets []string) {
	s := settingsOf(c)
	if s == nil || s.sandbox { // it is kept all the same
		s = &settings{}
		s.findConfig(c)
	}
	return s.config.value, []string{s.get("client-secret-file")}
}

// keptFolders are those that hold secrets and nothing else.
func keptFolders(c *cli.Context) []place {
	var folders []place
	if config, _ := configFiles(c); config != "" {
		folders = append(folders, placeAt(filepath.Join(filepath.Dir(config), "credentials"), "for the clients that login stores"))
	}
	if dir, err := stateDir(); err == nil {
		folders = append(folders, placeAt(filepath.Join(dir, "tokens"), "for the tokens of sign-ins"))
	}
	return folders
}

// keepStreams refuses a command whose standard output or error was sent, by >> or a
// service's settings, into a file that it reads, that is its checkpoint's, or that it
// writes otherwise.
func (p *program) keepStreams(c *cli.Context, f report.Files, inputs []string) error {
	o := outputsOf(f, c.String("metrics"))
	others := append(keptPlaces(c, inputs, p.In), o.named...)
	for what, stream := range map[string]*os.File{"standard output": p.Out, "standard error": p.Err} {
		info, err := stream.Stat()
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		for _, q := range others {
			if q.file != nil && os.SameFile(info, q.file) {
				if stream == p.Err { // not a word more goes there
					p.Err = p.Out
					p.log.redirect(p.Out)
				}
				return usage(fmt.Sprintf("%s goes into %s, which is %s", what, q.path, strings.TrimPrefix(q.what, "--")), "send it somewhere else: nothing was sent")
			}
		}
	}
	return nil
}

// exposed warns of folders in which another user could put something else in the place
// of an output.
func (o *outputs) exposed() []string {
	var warnings []string
	warn := func(p *place, folder fs.FileInfo, path string) {
		if folder == nil || !folder.IsDir() {
			return
		}
		if why := trust.Exposed(folder); why != "" {
			warnings = append(warnings, fmt.Sprintf("the folder %s of %s %s: whoever may write there can put other files in the place of this run's", path, p.what, why))
		}
	}
	for i := range o.named {
		warn(&o.named[i], o.named[i].folder, o.named[i].dir)
	}
	if o.dir != nil {
		warn(o.dir, o.dir.file, o.dir.path)
	}
	return warnings
}
