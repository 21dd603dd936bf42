package cli

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"leadferry/checkpoint"
	"leadferry/checkpoint/postgres"
	"leadferry/importer"
	"leadferry/importer/delivery"
	"leadferry/importer/report"
	runpage "leadferry/importer/report/page"
	"leadferry/internal/cli/exit"
	"leadferry/internal/cli/flags"
	"leadferry/internal/cli/inputs"
	"leadferry/internal/cli/terminal"
	"leadferry/internal/garbage"
	"leadferry/internal/spelling"
	"leadferry/leadapi"
	"leadferry/mapping"
)

// options builds a run's options from the flags. A flag that the command does not have has no effect.
func (p *program) options(c *cli.Context) (importer.Options, error) {
	o := importer.Options{
		Task: importer.Task{
			Command: c.Command.Name, Version: Version, RunID: p.run, Log: p.logger(), Limit: flags.Int(c, "limit"),
		},
		Sending: importer.Sending{
			Concurrency: flags.Int(c, "concurrency"), Retries: flags.Int(c, "retries"),
			MaxWait: flags.Time(c, "max-wait"), MaxDuration: flags.Time(c, "max-duration"),
		},
		Limits: delivery.Limits{MaxCreates: flags.Int(c, "max-creates"), MaxInDoubt: flags.Int(c, "max-in-doubt")},
		Planning: importer.Planning{
			ResendInDoubt: c.String("in-doubt") == "resend", RetryRejected: c.Bool("retry-rejected"),
			Changed: c.String("changed"), CreateAlikes: c.String("look-alikes") == "create",
			NewKey: c.String("new-key"), Missing: c.String("missing"),
			Reconciling: importer.Reconciling{
				Fresh: flags.Time(c, "fresh"), Sample: flags.Int(c, "sample"), None: c.String("remote") == "none",
			},
			Conflict: mapping.Rule(c.String("conflict")), HoldReopen: c.String("reopen") == "hold",
			ReadByExternalID: c.String("read") == "external-id",
		},
		Checking: importer.Checking{
			DryRun: c.Bool("dry-run"), OnlyNew: c.String("attention") == "new", Strict: c.Bool("strict"),
			Show: flags.Int(c, "show"),
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
	if o.Files = filesOf(c, o.RunID); o.Files.Summary == "-" && !c.IsSet("show") { // standard output is JSON
		o.Show = 0
	}
	o.Rate, _ = strconv.ParseFloat(c.String("rate"), 64)
	share := func(flag string) delivery.Share { return delivery.ParseShare(c.String(flag)) }
	o.MaxRejects, o.MaxInvalid, o.Tolerate = share("max-rejects"), share("max-invalid"), share("tolerate")
	o.ResendOn = resendOn(c.String("resend-on"))
	if o.Command == "validate" { // the import after it must read the file in the same way
		o.Flags = p.typedFlags("source input", "mapping")
	}
	o.CheckRemote = map[string]importer.Reads{"true": importer.ReadChanged, "all": importer.ReadAll}[c.String("check-remote")]
	return o, checkFlags(c, &o)
}

// checkFlags refuses flags that cannot be used together.
func checkFlags(c *cli.Context, o *importer.Options) error {
	switch r := o.Reconciling; {
	case c.IsSet("show") && !o.DryRun && o.Command != "validate":
		return exit.Usage("--show works with --dry-run only", "add --dry-run, or leave --show out")
	case o.Files.Pull != "" && o.DryRun:
		return exit.Usage("--dry-run writes nothing, so there is no --pull", "use leadferry reconcile --pull")
	case c.Bool("sandbox-reset") && o.DryRun:
		return exit.Usage("--dry-run deletes nothing, so there is no --sandbox-reset", "leave one of them out")
	case c.IsSet("sample") && r.Sample == 0:
		return exit.Usage("--sample 0 picks no lead", "leave it out to read all leads; --remote none reads none")
	case r.None && (r.Sample > 0 || r.Fresh > 0):
		return exit.Usage("--remote none reads no lead, so --sample and --fresh pick none", "leave one of them out")
	}
	return nil
}

// resendOn reads --resend-on: HTTP statuses in addition to 429, or none.
func resendOn(text string) map[int]bool {
	codes := map[int]bool{429: !strings.Contains(text, "none")}
	for word := range strings.SplitSeq(text, ",") {
		if code, err := strconv.Atoi(strings.TrimSpace(word)); err == nil {
			codes[code] = true
		}
	}
	return codes
}

// runRows is the action of commands that handle rows: validate sends nothing, the others do.
func (p *program) runRows(c *cli.Context) error {
	o, err := p.options(c)
	if err != nil {
		return err
	}
	in, err := p.openInputs(c, &o)
	if err != nil {
		return err
	}
	defer in.Close()
	if o.Command == "validate" {
		return p.conduct(c, in, o)
	}
	if err := joinFleet(c, in, &o); err != nil {
		return err
	}
	closeService, err := p.connect(c, &o)
	if err != nil {
		return err
	}
	err = errors.Join(p.conduct(c, in, o), closeService())
	if missing, is := errors.AsType[*checkpoint.OpenError](err); is && errors.Is(err, checkpoint.ErrMissing) &&
		missing.Hint == "" {
		missing.Hint = "name the checkpoint that knows the leads with --checkpoint: each run prints the path of its " +
			"own. If no lead was ever made: import without --require-checkpoint begins a new one"
		if !p.settings.Sandbox {
			missing.Hint += ". If it is lost: " + checkpoint.AdoptRuns(missing.Path, p.connectionFlags()) +
				" takes over the leads that run folders name"
		}
	}
	return err
}

// openInputs opens all that a run reads. It refuses outputs that replace an input, and inputs too old or too short.
func (p *program) openInputs(c *cli.Context, o *importer.Options) (*inputs.Files, error) {
	var err error
	if p.tables, err = inputs.ReadMapping(c.String("mapping"), o); err != nil {
		return nil, err
	}
	if err := p.refuseTarget(o.MappingFile.Path, o.Mapping.Target); err != nil {
		return nil, err
	}
	in, err := inputs.Open(c, p.In, o)
	if err != nil {
		return nil, err
	}
	least := flags.Int(c, "min-rows")
	if o.Command == "sync" && !c.IsSet("min-rows") { // a failed export must not look like a night without changes
		least = 1
	}
	if err = p.keepOutputs(c, o.Files, in.Names); err == nil {
		err = in.Fresh(flags.Time(c, "max-age"))
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

// conduct makes the one call of a run, shows its progress and turns its summary into the exit code.
func (p *program) conduct(c *cli.Context, in *inputs.Files, o importer.Options) error {
	if p.ending.mistake != nil {
		return p.ending.mistake
	}
	if err := report.CheckMetrics(p.ending.metrics); err != nil {
		return exit.Usage(fmt.Sprintf("--metrics cannot be written: %v", err), "name a file; it is replaced as a whole")
	}
	live, err := serveWeb(c, func(addr string) (*runpage.Live, error) { return runpage.Serve(addr, p.newSummary()) })
	if err != nil {
		return err
	}
	p.ending.live.Store(live)
	if live != nil && o.Witnesses != nil {
		o.Witnesses.Page = live.URL()
	}
	end := p.watch(c, in, &o)
	o.CloseStdin, o.Files.Annotate = in.LetGo, &p.log
	garbage.Allow(o.Concurrency)
	requests := new(terminal.Spool) // printed once the checkpoint is closed
	o.Shown = requests
	s, err := importer.Run(c.Context, o)
	end()
	if err != nil {
		return err
	}
	err = requests.FlushTo(&p.out)
	p.show(s)
	p.warnOf("lead IDs are lost", s.WriteUnkept(p.Err))
	p.conclude(s, cmp.Or(err, p.out.lost))
	p.ending.summary.Store(s)
	return nil
}

// refuseTarget refuses a run to a target other than that of the mapping.
func (p *program) refuseTarget(path string, named mapping.Target) error {
	t := p.settings.Target()
	want := t
	want.TrunkID = cmp.Or(named.TrunkID, t.TrunkID)
	want.LeadsURL = cmp.Or(leadapi.Canonical(named.LeadsURL), t.LeadsURL)
	if p.settings.Sandbox || t.TrunkID == "" || t.LeadsURL == "" || want.Canonical() == t.Canonical() {
		return nil
	}
	return exit.Usage(fmt.Sprintf("%s:%d: the mapping is for another target: it names %s/%s, and this run goes to "+
		"%s/%s; nothing was read", path, named.Line, want.LeadsURL, want.TrunkID, t.LeadsURL, t.TrunkID),
		"name the profile or the addresses of the mapping's target, or use the mapping of this one")
}

// joinFleet reads the settings of a worker, if the run belongs to a fleet.
func joinFleet(c *cli.Context, in *inputs.Files, o *importer.Options) (err error) {
	name, part := c.String("fleet"), c.String("shard")
	switch {
	case name == "" && part == "":
		return nil
	case !checkpoint.IsAddress(c.String("checkpoint")):
		return exit.Usage("a fleet needs a checkpoint in PostgreSQL, which all its workers share",
			"name it with --checkpoint postgres://HOST/DATABASE; on one machine a run needs no --fleet and no --shard")
	case name == "":
		return exit.Usage("--shard needs --fleet NAME: the workers of one run know one another by it",
			"give all of them one name, and another one for each run: in Kubernetes the job's UID, for example")
	case slices.Contains(in.Names, "-") && part != "":
		return exit.Usage("standard input cannot be sharded: each worker has to read all of the input",
			"name a file that all workers can read")
	}
	if o.Shard, err = parseShard(cmp.Or(part, "0/1"), os.Getenv); err != nil {
		return err
	}
	if !c.IsSet("max-in-doubt") {
		o.MaxInDoubt = 4 * o.Concurrency * o.Shard.Of
	}
	o.Fleet = func(s checkpoint.Store) importer.Fleet { return s.(*postgres.Store) }
	o.Terms, err = terms(c, name, in, o)
	return err
}

// schedulers lists the variables of array jobs: a task's index, and the number of tasks, which Kubernetes lacks.
var schedulers = [...][2]string{
	{"JOB_COMPLETION_INDEX", "LEADFERRY_SHARDS"},
	{"AWS_BATCH_JOB_ARRAY_INDEX", "AWS_BATCH_JOB_ARRAY_SIZE"},
	{"SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_COUNT"},
}

// parseShard reads I/N, or takes both from a scheduler's variables.
func parseShard(text string, env func(string) string) (mapping.Shard, error) {
	least, step := 0, 1
	if text == "auto" {
		var set spelling.Texts
		for _, s := range schedulers {
			set.Add(env(s[0]) != "", "%s/%s", env(s[0]), env(s[1]))
		}
		if len(set) != 1 {
			return mapping.Shard{}, exit.Usage("--shard auto finds no scheduler, or several: of JOB_COMPLETION_INDEX,"+
				" AWS_BATCH_JOB_ARRAY_INDEX and SLURM_ARRAY_TASK_ID one must be set",
				"name the part, such as --shard 0/4, or run it as an array job")
		}
		text = set[0]
		if env("SLURM_ARRAY_TASK_ID") != "" { // Slurm's indexes may begin anywhere and go up in steps
			least = max(plainNumber(env("SLURM_ARRAY_TASK_MIN")), 0)
			step = max(plainNumber(env("SLURM_ARRAY_TASK_STEP")), 1)
		}
	}
	index, of, _ := strings.Cut(text, "/")
	ahead, n := plainNumber(index)-least, plainNumber(of)
	if ahead < 0 || ahead%step != 0 || ahead/step >= n || n > 10_000 {
		return mapping.Shard{}, exit.Usage("--shard takes I/N, I from 0 to N-1 and N up to 10,000, or auto",
			"for example --shard 0/4 for the first of four workers. auto needs an array job that is complete and even,"+
				" such as 0-7; for Kubernetes set LEADFERRY_SHARDS to the job's completions")
	}
	return mapping.Shard{Index: ahead / step, Of: n}, nil
}

// plainNumber returns the number that text is, or -1 if text is no number or has leading zeros or a plus.
func plainNumber(text string) int {
	if n, err := strconv.Atoi(text); err == nil && strconv.Itoa(n) == text {
		return n
	}
	return -1
}

// terms returns what all workers of a fleet must have in common.
func terms(c *cli.Context, fleet string, in *inputs.Files, o *importer.Options) (*checkpoint.Terms, error) {
	t := &checkpoint.Terms{
		Fleet: fleet, Shard: o.Shard.Index, Shards: o.Shard.Of, MaxCreates: o.MaxCreates, Rate: o.Rate,
	}
	same := func(name, value string) { t.Same = append(t.Same, checkpoint.Term{Name: name, Value: value}) }
	same("the command", o.Command)
	same("the mapping (its tables included)", o.MappingFile.SHA256)
	for i, name := range in.Names {
		id, err := in.Identity(name)
		if err != nil {
			return nil, exit.Usage(fmt.Sprintf("%s cannot be read: %v", name, err),
				"all workers read one input, which must not change meanwhile")
		}
		same(fmt.Sprintf("input %d", i+1), id)
	}
	for name := range strings.FieldsSeq("limit max-rejects max-invalid in-doubt retry-rejected read changed missing " +
		"look-alikes format delimiter encoding sheet list") {
		same("--"+name, cmp.Or(fmt.Sprint(c.Value(name)), "not given"))
	}
	same("--max-in-doubt (its default depends on -c)", strconv.Itoa(o.MaxInDoubt))
	return t, nil
}
