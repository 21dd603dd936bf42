package cli

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"leadferry/checkpoint"
	"leadferry/importer"
	"leadferry/importer/delivery"
	"leadferry/importer/report"
	"leadferry/internal/cli/exit"
	"leadferry/internal/cli/flags"
	"leadferry/internal/cli/inputs"
	"leadferry/internal/disk"
	"leadferry/internal/shell"
	"leadferry/leadapi"
	"leadferry/mapping"
	"leadferry/mapping/propose"
)

// options are what the flags say of a run. A flag that its command does not have counts for nothing.
func (p *program) options(c *cli.Context) (importer.Options, error) {
	o := importer.Options{
		Task: importer.Task{
			Command: c.Command.Name, Version: Version, RunID: p.ending.run, Log: p.logger(), Limit: c.Int("limit"),
		},
		Sending: importer.Sending{
			Concurrency: c.Int("concurrency"), Rate: c.Float64("rate"), Retries: c.Int("retries"),
			MaxWait: c.Duration("max-wait"), MaxDuration: c.Duration("max-duration"),
		},
		Limits: importer.Limits{MaxCreates: c.Int("max-creates"), MaxInDoubt: c.Int("max-in-doubt")},
		Planning: importer.Planning{
			ResendInDoubt: c.String("in-doubt") == "resend", RetryRejected: c.Bool("retry-rejected"),
			Changed: importer.ChangedRows(c.String("changed")), CreateAlikes: c.String("look-alikes") == "create",
			NewKey: c.String("new-key"), Missing: importer.Missing(c.String("missing")),
			Reconciling: importer.Reconciling{
				Fresh: c.Duration("fresh"), Sample: c.Int("sample"), None: c.String("remote") == "none",
			},
			Conflict: importer.Rule(c.String("conflict")), HoldReopen: c.String("reopen") == "hold",
			ReadByExternalID: c.String("read") == "external-id",
		},
		Checking: importer.Checking{
			DryRun: c.Bool("dry-run"), OnlyNew: c.String("attention") == "new", Strict: c.Bool("strict"),
			Show: c.Int("show"),
		},
		Keeping: importer.Keeping{
			Answer: c.String("new-checkpoint"), Require: c.Bool("require-checkpoint"),
			OwnColumns: c.String("results-columns") == "all",
		},
		Hooks: importer.Hooks{Interrupt: p.interrupt},
	}
	if !c.IsSet("max-in-doubt") {
		o.MaxInDoubt = max(20, 4*o.Concurrency)
	}
	o.Files = filesOf(c, o.RunID)
	var err error
	bound := func(flag string) (rows importer.Share) {
		if err == nil {
			rows, err = share(flag, c.String(flag))
		}
		return rows
	}
	o.MaxRejects, o.MaxInvalid, o.Tolerate = bound("max-rejects"), bound("max-invalid"), bound("tolerate")
	if err == nil {
		o.ResendOn, err = resendOn(c.String("resend-on"))
	}
	switch {
	case err != nil:
		return o, err
	case c.IsSet("show") && !o.DryRun && o.Command != "validate":
		return o, exit.Usage("--show works with --dry-run only", "add --dry-run, or leave --show out")
	}
	return o, nil
}

// share reads a flag that is a number of rows or a percentage of them; "" is none.
func share(flag, text string) (importer.Share, error) {
	number, percent := strings.CutSuffix(text, "%")
	n, err := strconv.Atoi(number)
	switch {
	case text == "":
		return importer.Share{}, nil
	case err != nil || n < 0 || percent && n > 100:
		return importer.Share{}, exit.Usage("--"+flag+" is neither a number nor a percentage",
			"for example 100, 5% or 0")
	case percent:
		return importer.Share{Percent: n}, nil
	}
	return importer.Share{Rows: n}, nil
}

// resendOn reads --resend-on: HTTP statuses, or none.
func resendOn(text string) (delivery.ResendOn, error) {
	r := delivery.ResendOn{Codes: map[int]bool{}}
	for word := range strings.SplitSeq(text, ",") {
		word = strings.TrimSpace(word)
		code, err := strconv.Atoi(word)
		switch {
		case text == "":
		case word == "none":
			r.NoDefault = true
		case err != nil || code < 400 || code > 599:
			return r, exit.Usage("--resend-on takes HTTP statuses from 400 to 599, or none", "for example 500,502")
		default:
			r.Codes[code] = true
		}
	}
	return r, nil
}

// carry is the action of a command that carries rows by run: validate sends nothing, the others do. adjust completes
// the options that are the command's own.
func (p *program) carry(run runner, adjust func(*cli.Context, *importer.Options) error) cli.ActionFunc {
	return func(c *cli.Context) error {
		o, err := p.options(c)
		if err == nil && adjust != nil {
			err = adjust(c, &o)
		}
		if err != nil {
			return err
		}
		in, err := p.openInputs(c, &o)
		if err != nil {
			return err
		}
		defer in.Close()
		if o.Command == "validate" {
			return p.conduct(c, in, o, run)
		}
		if err := joinFleet(c, in, &o); err != nil {
			return err
		}
		closeService, err := p.connect(c, &o)
		if err != nil {
			return err
		}
		err = errors.Join(p.conduct(c, in, o, run), closeService())
		if missing, is := errors.AsType[*checkpoint.OpenError](err); is && errors.Is(err, checkpoint.ErrMissing) &&
			missing.Hint == "" {
			missing.Hint = p.whenMissing(c, missing.Path)
		}
		return err
	}
}

// whenMissing says what to do where a checkpoint is asked for and is not there. Without one, sync and reconcile would
// know no lead.
func (p *program) whenMissing(c *cli.Context, path string) string {
	if c.Command.Name != "import" {
		return "leads are found in a checkpoint that knows them: import them first, take them over with `leadferry " +
			"checkpoint adopt`, or name the file with --checkpoint"
	}
	return "check the path and the target: each run prints that of its checkpoint. If it is lost: " +
		checkpoint.AdoptRuns(path, p.wayWords(c)) + " takes over the leads that run folders name. If nothing was ever " +
		"sent: import without --require-checkpoint begins a new one"
}

// validateOptions keep how the file is read, which the import that follows repeats.
func validateOptions(c *cli.Context, o *importer.Options) error {
	for _, name := range []string{"format", "delimiter", "encoding", "sheet", "list", "limit"} {
		if c.IsSet(name) {
			o.Flags = append(o.Flags, "--"+name+"="+fmt.Sprint(c.Value(name)))
		}
	}
	return nil
}

func syncOptions(c *cli.Context, o *importer.Options) error {
	switch c.Generic("check-remote").(*flags.OptionalWord).String() {
	case "", "false":
	case "true":
		o.CheckRemote = importer.ReadChanged
	case "all":
		o.CheckRemote = importer.ReadAll
	default:
		return exit.Usage("--check-remote takes no value, or is --check-remote=all", "see leadferry sync --help")
	}
	if o.Files.Pull != "" && o.DryRun {
		return exit.Usage("--dry-run writes nothing, so there is no --pull", "use leadferry reconcile --pull")
	}
	return nil
}

func reconcileOptions(c *cli.Context, o *importer.Options) error {
	switch r := o.Reconciling; {
	case c.IsSet("sample") && r.Sample == 0:
		return exit.Usage("--sample 0 picks no lead", "leave it out to read all leads; --remote none reads none")
	case r.None && (r.Sample > 0 || r.Fresh > 0):
		return exit.Usage("--remote none reads no lead, so --sample and --fresh pick none", "leave one of them out")
	}
	return nil
}

// openInputs opens all that a run reads. It refuses outputs that would take the place of any of it, and files that are
// not what the flags ask for.
func (p *program) openInputs(c *cli.Context, o *importer.Options) (*inputs.Files, error) {
	var err error
	if p.tables, err = inputs.ReadMapping(c.String("mapping"), c.Args().Slice(), o); err != nil {
		return nil, err
	}
	if err := p.refuseTarget(c, o.MappingFile.Path, o.Mapping.Target()); err != nil {
		return nil, err
	}
	in, err := inputs.Open(c, p.In, o)
	if err != nil {
		return nil, err
	}
	err = p.keepOutputs(c, o.Files, in.Names)
	if err == nil {
		err = in.Fresh(c.Duration("max-age"))
	}
	least := c.Int("min-rows")
	if o.Command == "sync" && !c.IsSet("min-rows") { // an export that went wrong must not pass for a quiet night
		least = 1
	}
	if err == nil {
		err = in.Enough(least)
	}
	if err != nil {
		in.Close()
		return nil, err
	}
	return in, nil
}

// refuseTarget refuses a run to another target than the one that the mapping names.
func (p *program) refuseTarget(c *cli.Context, path string, named mapping.Target) error {
	t := p.target().Canonical()
	want := checkpoint.Target{BaseURL: t.BaseURL, LeadsURL: leadapi.Canonical(named.LeadsURL), TrunkID: named.TrunkID}
	want = want.Canonical()
	differs := func(want, have string) bool { return want != "" && have != "" && want != have }
	if c.Bool("sandbox") ||
		!differs(want.TrunkID, t.TrunkID) && !differs(want.LeadsURL, leadapi.Canonical(t.LeadsURL)) {
		return nil
	}
	return exit.Usage(fmt.Sprintf("%s:%d: the mapping is for another target: it names %s, and this run goes to %s; "+
		"nothing was read", path, named.Line, strings.Trim(want.LeadsURL+"/"+want.TrunkID, "/"),
		t.LeadsURL+"/"+t.TrunkID),
		"name the profile or the addresses of the mapping's target, or use the mapping of this one")
}

func (p *program) runInit(c *cli.Context) error {
	names, err := inputs.Names(c)
	if err != nil {
		return err
	}
	input, target := names[0], c.String("mapping")
	if target == "" { // in the folder that the command is run in, under the input's name
		base, _, _ := strings.Cut(strings.TrimLeft(filepath.Base(input), "."), ".")
		target = base + ".yaml"
	}
	switch {
	case len(names) > 1:
		return exit.Usage("init reads one file", "the mapping fits every file that has the same columns")
	case input == "-" && c.String("mapping") == "":
		return exit.Usage("standard input has no name for the mapping", "name it with -m FILE, or print it with -m -")
	case target != "-" && disk.Exists(target):
		return exit.Usage(target+" is there already and is not overwritten",
			"name another file with -m, or print it with -m -")
	}
	in, err := inputs.Sample(c, p.In, input)
	if err != nil {
		return err
	}
	proposal, err := propose.Propose(in)
	if err != nil {
		return err
	}
	notes := ""
	for _, note := range proposal.Notes {
		notes += "- " + report.Escape(note) + "\n"
	}
	if target == "-" {
		_, _ = io.WriteString(p.say(c), notes)
		return p.print(string(proposal.YAML))
	}
	err = disk.WriteNew(target, 0o644, func(w io.Writer) error {
		_, err := w.Write(proposal.YAML)
		return err
	})
	if err != nil {
		return exit.Usage(fmt.Sprintf("the mapping cannot be written: %v", err), "name another place with -m")
	}
	if c.Bool("quiet") {
		return nil
	}
	if input != "-" {
		input = shell.Path(input)
	}
	return p.print(fmt.Sprintf("Wrote %s. It is a guess: read it before anything is sent.\n%sNext: leadferry "+
		"validate -m %s %s\n",
		report.Escape(target), notes, shell.Path(target), input))
}

func (p *program) schema(*cli.Context) error { return p.print(string(mapping.Schema())) }
