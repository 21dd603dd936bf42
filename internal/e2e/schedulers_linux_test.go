package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"leadferry/internal/testsupport/must"
	"leadferry/leadapi/sandbox"
)

// fenced returns the first block of a language below a heading of docs/fleet.md.
func fenced(t *testing.T, heading, kind string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root(t), "docs", "fleet.md"))
	must.Do(t, err)
	_, behind, found := strings.Cut(string(text), "\n## "+heading+"\n")
	_, block, begun := strings.Cut(behind, "\n```"+kind+"\n")
	block, _, ended := strings.Cut(block, "\n```\n")
	if !found || !begun || !ended {
		t.Fatalf("docs/fleet.md has no %s under %s", kind, heading)
	}
	return block + "\n"
}

// array is an array job: tasks of one command, each with the variables that its scheduler sets.
type array struct {
	*crew
	mu   sync.Mutex
	ends map[int][]int // exit codes by task, as the scheduler sees them
}

func newArray(t *testing.T, tasks, rows int, o sandbox.Options) *array {
	t.Helper()
	return &array{crew: newCrew(t, tasks, rows, o), ends: map[int][]int{}}
}

// slowly makes runs last long enough for signals.
var slowly = sandbox.Options{Latency: 20 * time.Millisecond}

// task is a command of the array, not yet started.
func (a *array) task(words []string, env ...string) *exec.Cmd {
	c := exec.Command(words[0], words[1:]...)
	c.Dir = a.dir
	c.Env = append(slices.Clone(a.env), append(env, "PATH="+filepath.Dir(binary())+":"+os.Getenv("PATH"), "LEDGER_URL="+a.ledger)...)
	return c
}

// perform runs a task to its end and returns its exit code as a shell would.
func (a *array) perform(index int, c *exec.Cmd, began func(p *os.Process)) int {
	var said strings.Builder
	c.Stdout, c.Stderr = &said, &said
	if err := c.Start(); err != nil {
		a.t.Error(err)
		return -1
	}
	if began != nil {
		began(c.Process)
	}
	c.Wait()
	code := c.ProcessState.ExitCode()
	if status, is := c.ProcessState.Sys().(syscall.WaitStatus); is && status.Signaled() {
		code = 128 + int(status.Signal())
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ends[index] = append(a.ends[index], code); code == 2 || code == 4 {
		a.t.Errorf("task %d ends with %d:\n%s", index, code, said.String())
	}
	return code
}

// once returns a function that sends a signal to a process after some leads are made.
func (a *array) once(sig syscall.Signal) func(p *os.Process) {
	return func(p *os.Process) {
		go func() {
			for a.creates() < a.rows/20 {
				time.Sleep(5 * time.Millisecond)
			}
			p.Signal(sig)
		}()
	}
}

// batchJob has the fields that the job definition in the docs uses.
type batchJob struct {
	ContainerProperties struct{ Command []string }
	RetryStrategy       struct {
		Attempts       int
		EvaluateOnExit []struct{ OnStatusReason, OnReason, OnExitCode, Action string }
	}
}

// again reports whether the first rule that fits an exit code retries it. Without a rule, it is tried again.
func (j *batchJob) again(code int) bool {
	for _, rule := range j.RetryStrategy.EvaluateOnExit {
		fits, err := path.Match(rule.OnExitCode, itoa(code))
		if rule.OnStatusReason == "" && rule.OnReason == "" && err == nil && fits {
			return strings.EqualFold(rule.Action, "RETRY")
		}
	}
	return true
}

// The job definition of the docs, run as AWS Batch runs arrays, makes each lead once, also if a container is killed.
func TestAWSBatchRunsWhatTheDocsSay(t *testing.T) {
	t.Parallel()
	const size, rows = 3, 240
	var job batchJob
	d := json.NewDecoder(strings.NewReader(fenced(t, "AWS Batch", "json")))
	d.DisallowUnknownFields()
	must.Do(t, d.Decode(&job))
	if rules := len(job.RetryStrategy.EvaluateOnExit); rules > 5 || job.RetryStrategy.Attempts > 10 {
		t.Errorf("AWS Batch takes 5 rules and 10 attempts: %d, %d", rules, job.RetryStrategy.Attempts)
	}
	for code, want := range map[int]bool{0: false, 1: false, 2: false, 3: true, 4: false, 5: false, 6: true, 130: true, 137: true, 143: false} {
		if got := job.again(code); got != want {
			t.Errorf("a container that ends with %d is tried again: %t", code, got)
		}
	}
	a := newArray(t, size, rows, slowly)
	var words []string
	for _, w := range job.ContainerProperties.Command {
		words = append(words, strings.ReplaceAll(w, "/etc/leadferry/", a.dir+"/"))
	}
	a.together(func(index int) {
		for n := range job.RetryStrategy.Attempts {
			var began func(*os.Process)
			if index == 1 && n == 0 {
				began = a.once(syscall.SIGKILL)
			}
			c := a.task(words, "AWS_BATCH_JOB_ID=0f3c2d1e-5a6b-4c7d-8e9f-0a1b2c3d4e5f:"+itoa(index), "AWS_BATCH_JOB_ARRAY_INDEX="+itoa(index),
				"AWS_BATCH_JOB_ARRAY_SIZE="+itoa(size), "AWS_BATCH_JOB_ATTEMPT="+itoa(n+1), "INPUT_FILE="+filepath.Join(a.dir, "leads.csv"))
			if !job.again(a.perform(index, c, began)) {
				return
			}
		}
	})
	a.inFlight, a.deaths = 8, 1
	a.wholeFleet()
	for index, codes := range a.ends {
		if last := codes[len(codes)-1]; last != 0 && (index != 1 || last != 5) || len(codes) > 1 && codes[0] != 137 {
			t.Errorf("task %d ended with %v", index, codes)
		}
	}
}

// The script of the docs runs as Slurm runs it, for each task of its array. One task gets the signal that comes before
// its time is over, and its shard is then run once more by number. Each lead is made once.
func TestSlurmRunsWhatTheDocsSay(t *testing.T) {
	t.Parallel()
	script := fenced(t, "Slurm", "bash")
	var last int
	if _, err := fmt.Sscanf(regexp.MustCompile(`(?m)^#SBATCH --array=.*$`).FindString(script), "#SBATCH --array=0-%d", &last); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(script, "\n#SBATCH --signal=B:TERM@") { // without B: the signal goes to job steps, and there are none
		t.Error("the script does not ask for the signal itself")
	}
	a := newArray(t, last+1, 320, slowly)
	script = strings.ReplaceAll(script, "/shared/leads.csv.gz", a.dir+"/leads.csv.gz")
	out, err := exec.Command("gzip", "-k", filepath.Join(a.dir, "leads.csv")).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	a.write("job.sh", script)
	byName := strings.Replace(script, "--shard auto", fmt.Sprintf("--shard 3/%d", a.shards), 1)
	a.write("again.sh", byName)
	env := func(index int) []string {
		return []string{
			"SLURM_ARRAY_JOB_ID=4711", "SLURM_ARRAY_TASK_ID=" + itoa(index), "SLURM_ARRAY_TASK_COUNT=" + itoa(a.shards), "SLURM_ARRAY_TASK_MIN=0",
			"SLURM_ARRAY_TASK_MAX=" + itoa(last), "SLURM_ARRAY_TASK_STEP=1", "SLURM_JOB_ID=" + itoa(4712+index),
		}
	}
	a.together(func(index int) {
		var began func(*os.Process)
		if index == 3 {
			began = a.once(syscall.SIGTERM)
		}
		a.perform(index, a.task([]string{"bash", "job.sh"}, env(index)...), began)
	})
	if codes := a.ends[3]; codes[0] != 130 && codes[0] != 0 {
		t.Errorf("the task that got the signal ended with %v", codes)
	}
	a.perform(3, a.task([]string{"bash", "again.sh"}, "SLURM_ARRAY_JOB_ID=4711"), nil)
	a.wholeFleet()
	for index, codes := range a.ends {
		if codes[len(codes)-1] != 0 {
			t.Errorf("task %d ended with %v", index, codes)
		}
	}
}
