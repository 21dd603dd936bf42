package cli

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"leadferry/checkpoint"
	"leadferry/checkpoint/postgres"
	"leadferry/importer"
	"leadferry/importer/report"
	"leadferry/internal/cli/exit"
	"leadferry/internal/cli/inputs"
	"leadferry/internal/cli/ledger"
	"leadferry/internal/spelling"
)

// mostShards is how many workers a fleet may have.
const mostShards = 10_000

var fleetName = spelling.Form(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)

// joinFleet reads what makes the run a worker of a fleet, where anything does.
func joinFleet(c *cli.Context, in *inputs.Files, o *importer.Options) (err error) {
	name, part := c.String("fleet"), c.String("shard")
	switch {
	case name == "" && part == "":
		return nil
	case c.Bool("sandbox"):
		return exit.Usage("--sandbox is a service inside this process, so that each worker of a fleet would have "+
			"its own", "start one with leadferry sandbox, and name its address")
	case !checkpoint.IsAddress(c.String("checkpoint")):
		return exit.Usage("a fleet needs a checkpoint in PostgreSQL, which all its workers share",
			"name it with --checkpoint postgres://HOST/DATABASE; a run on one machine needs neither --fleet nor --shard")
	case name == "":
		return exit.Usage("--shard needs --fleet NAME: the workers of one run know one another by it",
			"give all of them one name, and another one for each run: in Kubernetes the job's UID, for example")
	case !fleetName().MatchString(name):
		return exit.Usage("--fleet takes 1 to 63 letters, digits, dots, underscores and hyphens",
			"for example --fleet migration-2026-05")
	case slices.Contains(in.Names, "-") && part != "":
		return exit.Usage("standard input cannot be sharded: each worker has to read all of the input",
			"name a file that all workers can read")
	}
	o.Shard = importer.Shard{Of: 1}
	if part != "" {
		if o.Shard, err = parseShard(part, os.Getenv); err != nil {
			return err
		}
	}
	if !c.IsSet("max-in-doubt") {
		o.MaxInDoubt = 4 * o.Concurrency * o.Shard.Of
	}
	o.Fleet = func(s checkpoint.Store) importer.Fleet { return s.(*postgres.Store) }
	o.Terms, err = terms(c, name, in, o)
	return err
}

// parseShard reads I/N, or finds both where a scheduler says them.
func parseShard(text string, env func(string) string) (importer.Shard, error) {
	if text == "auto" {
		return schedulersShard(env)
	}
	index, of, both := strings.Cut(text, "/")
	i, n := plainNumber(index), plainNumber(of)
	if !both || i < 0 || n < 1 || i >= n || n > mostShards {
		return importer.Shard{}, exit.Usage("--shard takes I/N, I from 0 to N-1 and N up to 10,000, or auto",
			"for example --shard 0/4 for the first of four workers")
	}
	return importer.Shard{Index: i, Of: n}, nil
}

// plainNumber is -1 for what is no number of digits alone.
func plainNumber(text string) int {
	if n, err := strconv.Atoi(text); err == nil && strconv.Itoa(n) == text {
		return n
	}
	return -1
}

// schedulers say by which variables a task of an array job knows its place and how many there are. Kubernetes does not
// say the second.
var schedulers = [...]struct{ index, count, least, step string }{
	{"JOB_COMPLETION_INDEX", "LEADFERRY_SHARDS", "", ""},
	{"AWS_BATCH_JOB_ARRAY_INDEX", "AWS_BATCH_JOB_ARRAY_SIZE", "", ""},
	{"SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_COUNT", "SLURM_ARRAY_TASK_MIN", "SLURM_ARRAY_TASK_STEP"},
}

// schedulersShard is the place that a scheduler gave this process. Numbers of Slurm's tasks begin anywhere and go up
// in steps.
func schedulersShard(env func(string) string) (part importer.Shard, err error) {
	const byHand = "name the part, such as --shard 0/4"
	var found []string
	for _, s := range schedulers {
		if env(s.index) == "" {
			continue
		}
		found = append(found, s.index)
		least, step := max(plainNumber(env(s.least)), 0), max(plainNumber(env(s.step)), 1)
		task, of := plainNumber(env(s.index)), plainNumber(env(s.count))
		part = importer.Shard{Index: (task - least) / step, Of: of}
		if task < least || (task-least)%step != 0 || part.Index >= of || of > mostShards {
			err = exit.Usage(fmt.Sprintf("--shard auto cannot be made of %s=%s and %s=%s", s.index, env(s.index),
				s.count, env(s.count)), "the array has to be complete and even, such as 0-7; for Kubernetes set "+
				"LEADFERRY_SHARDS to the job's completions; or name the part, such as --shard 3/8")
		}
	}
	switch {
	case len(found) == 0:
		err = exit.Usage("--shard auto finds no scheduler: none of JOB_COMPLETION_INDEX, AWS_BATCH_JOB_ARRAY_INDEX and "+
			"SLURM_ARRAY_TASK_ID is set", byHand+", or run it as an array job")
	case len(found) > 1:
		err = exit.Usage("--shard auto finds several schedulers: "+strings.Join(found, " and ")+" are set", byHand)
	}
	if err != nil {
		return importer.Shard{}, err
	}
	return part, nil
}

// terms are what the workers of the fleet have to agree about.
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
	for _, name := range []string{
		"limit", "max-rejects", "max-invalid", "max-in-doubt", "in-doubt", "retry-rejected",
		"read", "changed", "missing", "look-alikes", "format", "delimiter", "encoding", "sheet", "list",
	} {
		value := fmt.Sprint(c.Value(name))
		if name == "max-in-doubt" {
			value = strconv.Itoa(o.MaxInDoubt)
		}
		same("--"+name, value)
	}
	return t, nil
}

// reportFleet writes summary and page of a fleet, as a run would have left them, and ends as that run would have.
func (p *program) reportFleet(c *cli.Context, to string) error {
	s, err := p.summarizeFleet(c)
	if err != nil {
		return err
	}
	dir := filepath.Join(report.RunsFolder, "fleets", s.Fleet) // not among the runs, which are witnesses
	s.SummaryPath, s.PagePath = filepath.Join(dir, "summary.json"), cmp.Or(to, filepath.Join(dir, "report.html"))
	if err = os.MkdirAll(dir, 0o700); err == nil {
		err = report.WriteFile(s.SummaryPath, s.WriteJSON)
	}
	if err != nil {
		return exit.Stopped(fmt.Sprintf("the report could not be written: %v", err), "start this where it can be made")
	}
	if err := p.writePage(c, s, s.PagePath); err != nil {
		return err
	}
	if p.code = s.ExitCode; to != "-" {
		p.show(c, s, c.String("summary") == "-")
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
	at, err := p.ledger(c).Existing()
	if err != nil {
		return nil, err
	}
	db, err := at.Open(ledger.How{ReadOnly: true})
	if err != nil {
		return nil, err
	}
	defer db.Close()
	store := db.(*postgres.Store)
	shards, members, err := store.Members(c.Context, name)
	if err != nil {
		return nil, err
	}
	if shards == 0 {
		return nil, exit.Usage("the ledger knows no fleet "+name,
			"leadferry checkpoint workers lists workers with the names of their fleets")
	}
	s, err := report.Fleet(name, shards, members)
	if err == nil {
		s.Target = report.Target(at.Target)
	}
	return s, err
}
