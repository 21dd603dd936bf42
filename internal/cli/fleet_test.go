package cli

import (
	"strings"
	"testing"

	"leadferry/mapping"
)

func TestParseShard(t *testing.T) {
	const none = "error"
	for _, test := range []struct{ flag, env, want string }{
		{"0/4", "", "0/4"},
		{"3/4", "JOB_COMPLETION_INDEX=1", "3/4"},
		{"0/1", "", "0/1"},
		{"9999/10000", "", "9999/10000"},
		{"4/4", "", none},
		{"-1/4", "", none},
		{"0/0", "", none},
		{"0/10001", "", none},
		{"01/4", "", none},
		{"+1/4", "", none},
		{"1", "", none},
		{"1/4/2", "", none},
		{" 1/4", "", none},
		{"auto", "", none},
		{"auto", "JOB_COMPLETION_INDEX=2 LEADFERRY_SHARDS=8", "2/8"},
		{"auto", "JOB_COMPLETION_INDEX=2", none},
		{"auto", "JOB_COMPLETION_INDEX=8 LEADFERRY_SHARDS=8", none},
		{"auto", "AWS_BATCH_JOB_ARRAY_INDEX=7 AWS_BATCH_JOB_ARRAY_SIZE=8", "7/8"},
		{"auto", "AWS_BATCH_JOB_ARRAY_INDEX=7", none},
		{"auto", "SLURM_ARRAY_TASK_ID=0 SLURM_ARRAY_TASK_COUNT=4 SLURM_ARRAY_TASK_MIN=0 SLURM_ARRAY_TASK_MAX=3 SLURM_ARRAY_TASK_STEP=1", "0/4"},
		{"auto", "SLURM_ARRAY_TASK_ID=7 SLURM_ARRAY_TASK_COUNT=4 SLURM_ARRAY_TASK_MIN=1 SLURM_ARRAY_TASK_STEP=2", "3/4"},
		{"auto", "SLURM_ARRAY_TASK_ID=6 SLURM_ARRAY_TASK_COUNT=4 SLURM_ARRAY_TASK_MIN=1 SLURM_ARRAY_TASK_STEP=2", none},
		{"auto", "SLURM_ARRAY_TASK_ID=9 SLURM_ARRAY_TASK_COUNT=3 SLURM_ARRAY_TASK_MIN=1 SLURM_ARRAY_TASK_STEP=1", none},
		{"auto", "JOB_COMPLETION_INDEX=0 LEADFERRY_SHARDS=2 SLURM_ARRAY_TASK_ID=1 SLURM_ARRAY_TASK_COUNT=2", none},
		{"auto", "JOB_COMPLETION_INDEX=x LEADFERRY_SHARDS=8", none},
	} {
		values := map[string]string{}
		for pair := range strings.FieldsSeq(test.env) {
			name, value, _ := strings.Cut(pair, "=")
			values[name] = value
		}
		got, err := parseShard(test.flag, func(name string) string { return values[name] })
		want := mapping.Shard{}
		if test.want != none {
			index, of, _ := strings.Cut(test.want, "/")
			want = mapping.Shard{Index: plainNumber(index), Of: plainNumber(of)}
		}
		if got != want || (err != nil) != (test.want == none) {
			t.Errorf("%s, %s: %v, %v", test.flag, test.env, got, err)
		}
	}
}

// A worker that cannot belong to a fleet is refused before it sends anything.
func TestImpossibleFleetsAreRefused(t *testing.T) {
	d := newDesk(t, "http://127.0.0.1:1")
	t.Setenv("LEADFERRY_LEADS_URL", "http://127.0.0.1:1")
	mapping, leads := sampleFile(t, "leads.yaml"), sampleFile(t, "leads.csv")
	const server = "postgres://127.0.0.1:1/leads"
	for text, args := range map[string][]string{
		"a fleet needs a checkpoint in PostgreSQL":        {leads, "--fleet", "a", "--shard", "0/2"},
		"a fleet needs a checkpoint in PostgreSQL, which": {leads, "--fleet", "a", "--checkpoint", "leads.db"},
		"--shard needs --fleet NAME":                      {leads, "--shard", "0/2", "--checkpoint", server},
		"--shard takes I/N":                               {leads, "--shard", "2/2", "--fleet", "a", "--checkpoint", server},
		"--fleet takes 1 to 63":                           {leads, "--fleet", "a b", "--checkpoint", server},
		"standard input cannot be sharded":                {"-", "--format", "csv", "--shard", "0/2", "--fleet", "a", "--checkpoint", server},
		"--sandbox keeps its leads":                       {leads, "--sandbox", "--shard", "0/2", "--fleet", "a", "--checkpoint", server},
		"--shard auto finds no scheduler":                 {leads, "--shard", "auto", "--fleet", "a", "--checkpoint", server},
	} {
		d.must(2, "id\n", append([]string{"import", "-m", mapping}, args...), text)
	}
}
