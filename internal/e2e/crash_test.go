package e2e

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"leadferry/leadapi/sandbox"
)

// rounds is how often each crash point is tried; the long suite is
// `go test ./internal/e2e -run TestCrash -rounds 25 -timeout 30m`.
var rounds = flag.Int("rounds", 1, "how many times TestCrash dies at each of its points")

// crashing is the program built with its crash points, once.
var crashing = sync.OnceValues(func() (string, error) {
	path := filepath.Join(filepath.Dir(binary()), "leadferry-failing")
	out, err := exec.Command("go", "build", "-tags", "failpoints", "-o", path, "leadferry").CombinedOutput()
	if err != nil {
		err = fmt.Errorf("build the program with its crash points: %w\n%s", err, out)
	}
	return path, err
})

// dieAt imports leads.csv until it dies at the nth arrival at a point; false means
// that it ended by itself.
func (w *world) dieAt(point string, nth, concurrency int) bool {
	w.t.Helper()
	path, err := crashing()
	if err != nil {
		w.t.Fatal(err)
	}
	c := w.command("import", "-m", "leads.yaml", "leads.csv", "-c", itoa(concurrency), "--out", fmt.Sprintf("run-%s-%d", point, nth), "--max-in-doubt", "0")
	c.Path = path
	c.Env = append(slices.Clone(c.Env), fmt.Sprintf("LEADFERRY_FAILPOINT=%s:%d", point, nth))
	out, err := c.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		w.t.Fatal(err)
	}
	if status := c.ProcessState.Sys().(syscall.WaitStatus); status.Signaled() {
		return true
	}
	if code := c.ProcessState.ExitCode(); code != 0 && code != 5 { // 5: rows of earlier deaths are in doubt
		w.t.Fatalf("%s:%d: exit %d instead of a death\n%s", point, nth, code, out)
	}
	return false
}

// steps are the points on the way of one row that is created and then linked, and
// what the checkpoint and the service hold of it after a death there. Two states
// are given where a commit under way may have been quicker than the death.
var steps = []struct {
	point  string
	nth    int
	states string // of the row in the checkpoint
	leads  string // on the service
}{
	{"write", 1, "none", "0"}, // the token request
	{"read", 1, "none", "0"},
	{"before intent", 1, "none", "0"},
	{"commit intent", 1, "none", "0"},
	{"durable intent", 1, "in_doubt", "0"},
	{"write", 2, "in_doubt", "0"},     // head and first part of the body
	{"write", 3, "in_doubt", "0"},     // mid body
	{"written", 3, "in_doubt", "0 1"}, // all of it
	{"read", 2, "in_doubt", "1"},
	{"answered", 1, "in_doubt", "1"},
	{"commit outcome", 1, "in_doubt", "1"},
	{"durable outcome", 1, "partial", "1"},
	{"before link", 1, "partial", "1"},
	{"write", 4, "partial", "1"},
	{"written", 4, "partial", "1"},
	{"read", 3, "partial", "1"},
	{"link answered", 1, "partial", "1"},
	{"commit outcome", 2, "partial", "1"},
	{"durable outcome", 2, "created", "1"},
	{"before results line", 1, "created", "1"},
	{"after results line", 1, "created", "1"},
	{"before run is noted", 1, "created", "1"},
	{"before files are finished", 1, "created", "1"},
}

// TestCrashSteps dies at each step of one row's way and finds exactly what that
// step allows; afterwards the import is finished. fault 2
func TestCrashSteps(t *testing.T) {
	t.Parallel()
	for range *rounds {
		for _, step := range steps {
			t.Run(fmt.Sprintf("%s %d", step.point, step.nth), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, sandbox.Options{})
				w.write("leads.csv", "id,org,name\nL00000,"+sandbox.Organizations()[0].ID+","+strings.Repeat("a long name ", 1000)+"\n")
				w.write("leads.yaml", mappingText+linkText)
				if !w.dieAt(step.point, step.nth, 1) {
					t.Fatal("the program never came there")
				}
				state := "none"
				if known := w.exported(""); len(known) > 0 {
					state = known[0]["state"]
				}
				leads := itoa(len(w.byRef()))
				if !slices.Contains(strings.Fields(step.states), state) || !slices.Contains(strings.Fields(step.leads), leads) {
					t.Errorf("the checkpoint says %s, the service holds %s leads; want %s and %s", state, leads, step.states, step.leads)
				}
				w.settle()
				w.complete(1)
				w.linked()
			})
		}
	}
}

// TestCrashChains dies up to ten times in a row at random points of an import by
// eight workers, and loses and doubles nothing. faults 2, 3
func TestCrashChains(t *testing.T) {
	t.Parallel()
	const rows, concurrency = 60, 8
	for range *rounds {
		w := newWorld(t, sandbox.Options{})
		w.leads(rows)
		w.write("leads.yaml", mappingText+linkText)
		doubts := 0
		for range 10 {
			step := steps[rand.N(len(steps))]
			if !w.dieAt(step.point, 1+rand.N(rows/2), concurrency) {
				break
			}
			now := len(w.exported("in_doubt"))
			if now-doubts > 2*concurrency {
				t.Errorf("%s: %d rows fell in doubt, more than 2 × %d", step.point, now-doubts, concurrency)
			}
			doubts = now
		}
		w.settle()
		w.complete(rows)
		w.linked()
	}
}
