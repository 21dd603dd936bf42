package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"leadferry/importer/report"
	"leadferry/leadapi/sandbox"
)

// TestFleetLimits: two workers keep one limit together, of which neither comes to more than a part by itself; the requests that
// came to the service, and what became of them, are counted there and in the ledger.
func TestFleetLimits(t *testing.T) {
	t.Parallel()
	// Doubts far apart and in no rhythm: else one of the workers, which take turns, could get four in a row.
	doubts, at := make([]string, 60), 0
	for i := range doubts {
		at += 17 + i*i%7
		doubts[i] = fmt.Sprintf("create.500-stored#%d", at)
	}
	for name, test := range map[string]struct {
		faults  string
		invalid int // rows at the beginning of the file
		flags   []string
		limit   int
		of      func(report.RowCounts) int
	}{
		"invalid":  {invalid: 60, flags: []string{"--max-invalid", "40"}, limit: 40, of: func(c report.RowCounts) int { return c.Invalid }},
		"rejects":  {faults: "create.422/3", flags: []string{"--max-rejects", "40"}, limit: 40, of: func(c report.RowCounts) int { return c.Rejected }},
		"in doubt": {faults: strings.Join(doubts, ","), flags: []string{"--max-in-doubt", "20"}, limit: 20, of: func(c report.RowCounts) int { return c.InDoubt }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const rows = 1200
			c := newCrew(t, 2, rows, sandbox.Options{Faults: test.faults})
			if test.invalid > 0 {
				c.write("leads.csv", strings.Replace(c.text("leads.csv"), sandbox.Organizations()[0].ID, "", test.invalid))
			}
			c.together(func(shard int) {
				c.ended(c.worker(shard, append(test.flags, "--rate", "80", "--summary", fmt.Sprintf("s%d.json", shard))...), 3)
			})
			sum := 0
			for shard := range c.shards {
				s := c.summary(fmt.Sprintf("s%d.json", shard))
				if sum += test.of(s.Rows); !strings.Contains(s.StopReason, test.flags[0]) {
					t.Errorf("worker %d stopped: %s", shard, s.StopReason)
				}
			}
			if sum <= test.limit || sum > 2*test.limit {
				t.Errorf("%d rows beyond the limit %d of the fleet, or not", sum, test.limit)
			}
			c.deaths = rows
			if c.judge(); len(c.byRef()) > rows/2 {
				t.Errorf("%d leads were made of %d rows", len(c.byRef()), rows)
			}
			if code, out := c.run("report", "--fleet", "monday", "--checkpoint", c.ledger, "--summary", "-"); code != 3 || !strings.Contains(out, test.flags[0]) {
				t.Errorf("the report of the fleet ends with %d:\n%s", code, out)
			}
		})
	}
}

// TestFleetPace: workers together take the time that their common rate asks for, and the pause that the service asks one of
// them for holds for all.
func TestFleetPace(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		faults string
		least  time.Duration // that each of them takes
	}{
		"rate":  {"", 1700 * time.Millisecond},
		"pause": {"create.429#20,retry-after=4", 4 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCrew(t, 2, 160, sandbox.Options{Faults: test.faults})
			c.together(func(shard int) {
				start := time.Now()
				if c.ended(c.worker(shard, "--rate", "80"), 0); time.Since(start) < test.least {
					t.Errorf("worker %d took %v", shard, time.Since(start))
				}
			})
			c.wholeFleet()
		})
	}
}
