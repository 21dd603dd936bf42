package e2e

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"leadferry/importer/report"
	"leadferry/internal/pgtest"
	"leadferry/internal/testsupport/must"
	"leadferry/leadapi/sandbox"
)

// fleetRounds is how often the tests of a fleet try each of their disasters. The long suite is
// `go test ./internal/e2e -run TestFleet -fleetrounds 300 -timeout 300m`.
var fleetRounds = flag.Int("fleetrounds", 1, "how many times the tests TestFleet... try each of their disasters")

// crew is a fleet of workers, the service that they send to, and the ledger that they share.
type crew struct {
	*world
	ledger   string // the address of its checkpoint
	shards   int
	rows     int
	inFlight int // of each worker
	deaths   int // workers that were killed
}

// newCrew writes rows for a fleet that has its own ledger.
func newCrew(t *testing.T, shards, rows int, o sandbox.Options) *crew {
	t.Helper()
	return newCrewOn(t, pgtest.Shared(t).Database(t), shards, rows, o)
}

// newCrewOn is newCrew for a ledger at an address.
func newCrewOn(t *testing.T, address string, shards, rows int, o sandbox.Options) *crew {
	t.Helper()
	if o.Latency == 0 {
		o.Latency = 2 * time.Millisecond
	}
	w := newWorld(t, o)
	w.leads(rows)
	return &crew{world: w, ledger: address, shards: shards, rows: rows, inFlight: 4}
}

// worker is the worker of a shard, not yet started.
func (c *crew) worker(shard int, args ...string) *exec.Cmd {
	return c.command(append(words(
		"import -m leads.yaml leads.csv --checkpoint", c.ledger, "--fleet", "monday", "--shard", fmt.Sprintf("%d/%d", shard, c.shards),
		"-c", itoa(c.inFlight), "--max-in-doubt", "0", "--out", "none", "--quiet",
	), args...)...)
}

// ended runs a worker to its end, which must have one of these exit codes.
func (c *crew) ended(w *exec.Cmd, codes ...int) int {
	c.t.Helper()
	out, err := w.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		c.t.Fatal(err)
	}
	code := w.ProcessState.ExitCode()
	if !slices.Contains(codes, code) {
		c.t.Errorf("%v: exit %d, want %v\n%s", w.Args, code, codes, out)
	}
	return code
}

// stopAt starts a worker that stops itself at a point on a row's way. wake lets it go on to its end.
func (c *crew) stopAt(w *exec.Cmd, point string) (wake func() (code int)) {
	c.t.Helper()
	path, err := crashing()
	must.Do(c.t, err)
	w.Path, w.Env = path, append(slices.Clone(w.Env), "LEADFERRY_FAILPOINT="+point, "LEADFERRY_FAILPOINT_STOP=1")
	must.Do(c.t, w.Start())
	c.t.Cleanup(func() { w.Process.Kill() })
	eventually(c.t, "the worker has stopped", func() bool { return stateOf(w.Process.Pid) == 'T' })
	return func() int {
		w.Process.Signal(syscall.SIGCONT)
		w.Wait()
		return w.ProcessState.ExitCode()
	}
}

// together calls do for all shards at once.
func (c *crew) together(do func(shard int)) {
	var group sync.WaitGroup
	for shard := range c.shards {
		group.Go(func() { do(shard) })
	}
	group.Wait()
}

// known is what the ledger says about a key.
type known struct {
	State int
	Lead  string
}

const inDoubt = 4 // as the ledger numbers states

func (c *crew) keys() map[string]known {
	c.t.Helper()
	text := pgtest.Value[string](c.t, c.ledger, `SELECT coalesce(json_object_agg(convert_from(key, 'UTF8'), json_build_object('State', state, 'Lead', lead_id)), '{}')::text
		FROM leadferry.lead_rows WHERE state > 0`)
	all := map[string]known{}
	must.Do(c.t, json.Unmarshal([]byte(text), &all))
	return all
}

// judge compares the ledger with the service: no lead is there twice, the ledger knows each or holds it in doubt, and
// deaths left no more rows in doubt than they may. It returns how many.
func (c *crew) judge() (doubts int) {
	c.t.Helper()
	c.arrived()
	leads, keys := c.byRef(), c.keys()
	for ref, id := range leads {
		if k := keys[ref]; k.State != inDoubt && k.Lead != id {
			c.t.Errorf("row %s: the service has the lead %s, the ledger says %d %q", ref, id, k.State, k.Lead)
		}
	}
	for key, k := range keys {
		if k.State == inDoubt {
			doubts++
		} else if leads[key] != k.Lead {
			c.t.Errorf("row %s: the ledger knows the lead %q, the service %q", key, k.Lead, leads[key])
		}
	}
	if most := 2 * c.inFlight * c.deaths; doubts > most {
		c.t.Errorf("%d rows in doubt by %d deaths, more than %d", doubts, c.deaths, most)
	}
	return doubts
}

// wholeFleet is judge for a fleet that is finished: the ledger must know every row.
func (c *crew) wholeFleet() {
	c.t.Helper()
	if doubts, n := c.judge(), len(c.keys()); n != c.rows {
		c.t.Errorf("the ledger knows %d rows of %d, %d of them in doubt", n, c.rows, doubts)
	}
}

// Four workers send each row once, and the fleet's report counts all. A worker with other options or rows is refused.
func TestFleetSharesTheRows(t *testing.T) {
	t.Parallel()
	c := newCrew(t, 4, 400, sandbox.Options{})
	c.together(func(shard int) {
		c.ended(c.worker(shard, "--summary", fmt.Sprintf("s%d.json", shard), "--results", fmt.Sprintf("r%d.csv", shard)), 0)
	})
	c.wholeFleet()
	var sum report.RowCounts
	rows := map[string]int{}
	for shard := range c.shards {
		s := c.summary(fmt.Sprintf("s%d.json", shard))
		if s.Fleet != "monday" || s.Shard != fmt.Sprintf("%d/4", shard) {
			t.Errorf("the summary of %d says fleet %q, shard %q", shard, s.Fleet, s.Shard)
		}
		sum.Read, sum.Created = sum.Read+s.Rows.Read, sum.Created+s.Rows.Created
		for _, r := range c.results(fmt.Sprintf("r%d.csv", shard)) {
			rows[r["row"]]++
		}
	}
	if sum.Read != 400 || sum.Created != 400 || len(rows) != 400 {
		t.Errorf("%d rows read, %d created, %d different ones in the results", sum.Read, sum.Created, len(rows))
	}
	if code, out := c.run("report --fleet monday --checkpoint", c.ledger, "--summary", "-"); code != 0 || !strings.Contains(out, `"created": 400`) {
		t.Errorf("the report of the fleet ends with %d:\n%s", code, out)
	}
	c.ended(c.worker(0, "--max-rejects", "5"), 2) // a limit that the others do not have
	c.ended(c.worker(0, "--limit", "10"), 2)      // another part of the input
	c.ended(c.command("import -m leads.yaml leads.csv --checkpoint", c.ledger, "--fleet", "monday", "--shard", "0/5", "--out", "none"), 2)
	text := c.text("leads.csv")
	c.write("leads.csv", strings.ReplaceAll(text, "Person", "Nobody"))
	c.ended(c.worker(0), 2) // another file with the same name
	c.write("leads.csv", text)
	c.ended(c.worker(0), 0) // the same bytes again
	c.wholeFleet()
}

// Workers are killed at random moments, and others take their places.
func TestFleetOfKilledWorkers(t *testing.T) {
	t.Parallel()
	for range *fleetRounds {
		c := newCrew(t, 3, 150, sandbox.Options{})
		var mu sync.Mutex
		c.together(func(shard int) {
			for range 3 {
				w := c.worker(shard)
				if err := w.Start(); err != nil {
					t.Error(err)
					return
				}
				ended := make(chan struct{})
				go func() { defer close(ended); w.Wait() }()
				if over(ended, 50*time.Millisecond+rand.N(250*time.Millisecond)) {
					break
				}
				w.Process.Kill()
				<-ended
				mu.Lock()
				c.deaths++
				mu.Unlock()
			}
			c.ended(c.worker(shard), 0, 5)
		})
		c.wholeFleet()
		c.run("report --fleet monday --checkpoint", c.ledger)
		if s := c.summary("leadferry-runs/fleets/monday/summary.json"); s.Rows.Read != c.rows || s.Rows.Created+s.Rows.Unchanged+s.Rows.InDoubt != c.rows || s.ExitCode != 0 && s.ExitCode != 5 {
			t.Errorf("the report of the fleet: exit code %d, %+v", s.ExitCode, s.Rows)
		}
	}
}

// fleetSteps are the points on a row's way at which a worker stops, is replaced, and goes on.
var fleetSteps = []struct {
	point string
	nth   int
}{
	{"before claim", 5}, {"write", 20}, {"written", 15}, {"answered", 30}, {"before run is noted", 1},
}

// A worker stops at some step and goes on when another one has its place. It settles what it claimed and ends with 6.
// No lead is made twice or lost.
func TestFleetReplacesPausedWorkers(t *testing.T) {
	t.Parallel()
	for _, step := range fleetSteps {
		t.Run(fmt.Sprintf("%s:%d", step.point, step.nth), func(t *testing.T) {
			t.Parallel()
			for range *fleetRounds {
				c := newCrew(t, 1, 60, sandbox.Options{})
				paused := c.worker(0)
				var said strings.Builder
				paused.Stdout, paused.Stderr = &said, &said
				wake := c.stopAt(paused, fmt.Sprintf("%s:%d", step.point, step.nth))
				c.deaths = 1
				c.ended(c.worker(0), 0, 5)
				c.judge()
				if code := wake(); code != 6 && (code != 0 || step.point != "before run is noted") {
					t.Errorf("the worker that was replaced ended with %d\n%s", code, said.String())
				}
				c.deaths = 0
				c.judge()
				c.ended(c.worker(0), 0) // claims that had not left were withdrawn when it went on
				c.wholeFleet()
			}
		})
	}
}

// stateOf is the letter of a process's state in /proc, for example T for stopped.
func stateOf(process int) byte {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", process))
	if _, after, found := strings.Cut(string(b), ") "); err == nil && found {
		return after[0]
	}
	return 0
}

// All workers together make no more leads than --max-creates. Each alone would reach that limit.
func TestFleetSharesOneLimitOfCreates(t *testing.T) {
	t.Parallel()
	c := newCrew(t, 3, 300, sandbox.Options{})
	c.together(func(shard int) { c.ended(c.worker(shard, "--max-creates", "70"), 3) })
	c.judge()
	if n := len(c.byRef()); n != 70 {
		t.Errorf("%d leads were made, want 70", n)
	}
}
