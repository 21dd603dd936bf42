package e2e

import (
	"fmt"
	"strings"
	"testing"

	"leadferry/internal/pgtest"
	"leadferry/leadapi/sandbox"
)

// asleep is a fleet whose one worker stopped when the service had answered the last of its five rows.
func asleep(t *testing.T) (c *crew, wake func() (code int)) {
	t.Helper()
	c = newCrew(t, 1, 5, sandbox.Options{})
	c.places = 1
	return c, c.still(c.worker(0), "answered:5")
}

// silent has all workers be silent for minutes.
func (c *crew) silent(minutes int) {
	pgtest.Shared(c.t).Exec(c.t, c.ledger, fmt.Sprintf("UPDATE leadferry.workers SET beat = beat - interval '%d minutes'", minutes))
}

// alone is an import by itself, into the ledger of the fleet.
func (c *crew) alone(args ...string) []string { return c.on(c.ledger, args...) }

// asleepRow is the row whose answer the worker has not heard.
func (c *crew) asleepRow() string {
	for key, k := range c.keys() {
		if k.State == inDoubt {
			return key
		}
	}
	c.t.Fatalf("no row is in doubt: %v", c.keys())
	return ""
}

// A person decides about a row whose worker sleeps, not before it has been silent for a quarter of an hour. Then the answer comes:
// it counts, and the person is told.
func TestFleetLateAnswerAfterAResolve(t *testing.T) {
	t.Parallel()
	for _, decided := range []string{"none", "exists", "lead-4711"} {
		t.Run(decided, func(t *testing.T) {
			t.Parallel()
			c, wake := asleep(t)
			lastRow := c.asleepRow()
			c.write("found.csv", "key,lead_id\n"+lastRow+","+decided+"\n")
			resolve := []string{"checkpoint", "resolve", "found.csv", "--checkpoint", c.ledger}
			for range 2 { // however often it is said
				if code, out := c.run(resolve...); code == 0 || !strings.Contains(out, "may be at work still") || !strings.Contains(out, "leadferry checkpoint workers") {
					t.Errorf("decided while the worker may be at work: exit %d\n%s", code, out)
				}
				c.silent(14 / 2)
			}
			c.silent(2)
			c.must(0, resolve...)
			c.must(0, resolve...)
			if decided != "none" { // nobody sends it again
				c.must(0, c.alone()...)
			}
			if code := wake(); code != 0 && code != 6 {
				t.Errorf("the worker ended with %d", code)
			}
			c.wholeFleet()
			if k := c.keys()[lastRow]; k.Lead != c.byRef()[lastRow] {
				t.Errorf("the ledger knows %+v", k)
			}
			if out := c.must(0, "checkpoint", "status", "--checkpoint", c.ledger); strings.Contains(out, "contradicted: ") != (decided != "exists") {
				t.Errorf("after %q:\n%s", decided, out)
			}
			c.must(0, c.alone()...)
			c.wholeFleet()
			if n := c.creates(); n != c.rows {
				t.Errorf("%d leads were sent", n)
			}
		})
	}
}

// A row is sent again by --in-doubt resend, not before its worker has been silent for a quarter of an hour. Then the first answer comes:
// the second lead stays the row's, and a person is told of the first one.
func TestFleetLateAnswerAfterAResend(t *testing.T) {
	t.Parallel()
	c, wake := asleep(t)
	lastRow := c.asleepRow()
	first := c.byRef()[lastRow]
	c.silent(2) // or the run beside it would be refused
	c.must(5, c.alone("--in-doubt", "resend")...)
	c.silent(7)
	c.must(5, c.alone("--in-doubt", "resend")...)
	if n := c.creates(); n != c.rows {
		t.Fatalf("%d leads were sent, one of them twice while its answer might come", n)
	}
	c.silent(8)
	c.must(0, c.alone("--in-doubt", "resend")...)
	if code := wake(); code != 0 && code != 6 {
		t.Errorf("the worker ended with %d", code)
	}
	if out := c.must(0, "checkpoint", "status", "--checkpoint", c.ledger); !strings.Contains(out, "contradicted: ") || !strings.Contains(out, first) {
		t.Errorf("nobody is told of the lead that was made first:\n%s", out)
	}
	if k := c.keys()[lastRow]; k.Lead == first || k.Lead == "" {
		t.Errorf("the ledger knows %+v", k)
	}
	c.must(0, c.alone("--in-doubt", "resend")...)
	if n := c.creates(); n != c.rows+1 {
		t.Errorf("%d leads were sent, want one more than rows", n)
	}
	c.must(0, "checkpoint", "check", "--checkpoint", c.ledger)
}
