package cli

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"leadferry/checkpoint"
	"leadferry/checkpoint/postgres"
	"leadferry/importer"
	"leadferry/internal/cli/exit"
	"leadferry/internal/cli/inputs"
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
	var found []string
	for _, s := range schedulers {
		if env(s.index) == "" {
			continue
		}
		found = append(found, s.index)
		least, step := max(plainNumber(env(s.least)), 0), max(plainNumber(env(s.step)), 1)
		task, of := plainNumber(env(s.index)), plainNumber(env(s.count))
		if part = (importer.Shard{Index: (task - least) / step, Of: of}); task < least || (task-least)%step != 0 ||
			part.Index >= of || of > mostShards {
			err = exit.Usage(fmt.Sprintf("--shard auto cannot be made of %s=%s and %s=%s", s.index, env(s.index),
				s.count, env(s.count)),
				"the array has to be complete and even, such as 0-7; for Kubernetes set LEADFERRY_SHARDS to the "+
					"job's completions; or name the part, such as --shard 3/8")
		}
	}
	switch len(found) {
	case 0:
		return importer.Shard{}, exit.Usage("--shard auto finds no scheduler: none of JOB_COMPLETION_INDEX, "+
			"AWS_BATCH_JOB_ARRAY_INDEX and SLURM_ARRAY_TASK_ID is set",
			"name the part, such as --shard 0/4, or run it as an array job")
	case 1:
		if err != nil {
			return importer.Shard{}, err
		}
		return part, nil
	}
	return importer.Shard{}, exit.Usage("--shard auto finds several schedulers: "+strings.Join(found, " and ")+
		" are set", "name the part, such as --shard 0/4")
}

// terms are what the workers of the fleet have to agree about.
func terms(c *cli.Context, fleet string, in *inputs.Files, o *importer.Options) (*checkpoint.Terms, error) {
	t := &checkpoint.Terms{
		Fleet: fleet, Shard: o.Shard.Index, Shards: o.Shard.Of, MaxCreates: o.MaxCreates,
		Rate: o.Rate,
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
