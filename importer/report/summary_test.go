package report

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"leadferry/checkpoint"
	"leadferry/internal/testsupport/must"
)

// emptySummary has all keys in their order, except those that are left out when empty.
const emptySummary = `{"run_id":"","command":"","version":"","dry_run":false,"outcome":"","stop_reason":"","exit_code":0,
"started_at":"0001-01-01T00:00:00Z","finished_at":"0001-01-01T00:00:00Z","duration_s":0,"inputs":[],
"mapping":{"path":"","sha256":""},"checkpoint":{"path":"","id":"","sequence":0,"new":false,"leads":0},
"target":{"base_url":"","leads_url":"","trunk_id":""},"rows":{"read":0,"created":0,"updated":0,"unchanged":0,"changed":0,
"skipped":0,"invalid":0,"rejected":0,"failed":0,"partial":0,"in_doubt":0,"unmatched":0,"conflict":0,"pending":0},
"requests":{"create":0,"update":0,"token":0,"retries":0,"by_status":{}},
"latency_ms":{"p50":0,"p90":0,"p95":0,"p99":0,"max":0},"timeline":[],"in_doubt":[],"organizations":[],"transitions":[],
"errors":[],"throughput_rows_per_s":0,"peak_in_flight":0,"dropped_values":0,"files":[],"notes":[],"next":[]}`

func TestSummaryHasAllKeysInTheirOrder(t *testing.T) {
	var b bytes.Buffer
	must.Do(t, (&Summary{}).WriteJSON(&b))
	compact := func(text string) string { return strings.Join(strings.Fields(text), "") }
	if diff := cmp.Diff(compact(emptySummary), compact(b.String())); diff != "" || !strings.HasPrefix(b.String(), "{\n  \"run_id\": \"\",\n") {
		t.Errorf("%s%.20s", diff, b.String())
	}
}

func TestSummaryIsSafeForMachines(t *testing.T) { // faults 116, 118, 126
	s := &Summary{
		StartedAt:  time.Date(2026, 3, 29, 3, 0, 0, 123456789, time.FixedZone("east", 2*3600)),
		FinishedAt: time.Date(2026, 10, 25, 2, 30, 0, 0, time.FixedZone("west", -5*3600)),
		DurationS:  1.23456,
		Inputs:     []Input{{Path: "a\xff.csv", Format: "csv", Bytes: 9, Rows: 1, SHA256: "00"}},
		Requests:   Requests{ByStatus: map[string]int{"503": 4, "429": 3, "401": 2, "400": 5, "201": 1}},
		Organizations: []Organization{
			{"o-1", "=Oak\x1b", 2},
		},
		Transitions: []Transition{{"open", "closedWon", 1}},
		Errors:      []Reason{{Outcome: "rejected", Error: strings.Repeat("x", 600) + "\n", Rows: 1, Examples: []Place{{File: "a.csv", Line: 2}}}},
	}
	var b bytes.Buffer
	must.Do(t, s.WriteJSON(&b))
	holds(t, true, b.String(),
		`"started_at": "2026-03-29T01:00:00.123Z"`, `"finished_at": "2026-10-25T07:30:00Z"`, `"duration_s": 1.235`,
		`"path": "a`+"\ufffd"+`.csv"`, `"location": "=Oak\\x1b"`, `"error": "`+strings.Repeat("x", 499)+`…"`,
		"\"201\": 1,\n      \"400\": 5,\n      \"401\": 2,\n      \"429\": 3,\n      \"503\": 4\n", "\"from\": \"open\",\n      \"to\": \"closedWon\",\n      \"leads\": 1",
	)
}

func TestCountsByNameAreThoseOfTheSummary(t *testing.T) {
	c := RowCounts{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14}
	b, err := json.Marshal(c)
	must.Do(t, err)
	var want map[string]int
	must.Do(t, json.Unmarshal(b, &want))
	must.Same(t, want, c.ByName())
	must.Same(t, 5+7+8+9+10+11+12+13, (&Summary{Rows: c, DryRun: true}).Attention(), "attention")
	must.Same(t, 5+7+8+9+10+11+12+13+14, (&Summary{Rows: c}).Attention(), "attention with pending rows")
}

func TestFailedFilesDoNotHideWhyARunStopped(t *testing.T) {
	for code, want := range map[int]int{0: 3, 1: 3, 5: 3, 3: 3, 4: 4, 130: 130} {
		s := &Summary{ExitCode: code}
		s.Stopped(Unwritten(errors.New("no space")))
		must.Same(t, want, s.ExitCode, code, "becomes")
		must.Same(t, want == 3, s.StopReason != "", code, "is told of")
	}
}

// member is a worker that came to its end, as the ledger keeps it.
func member(t *testing.T, shard int, newest bool, s Summary) checkpoint.Member {
	t.Helper()
	start := time.Date(2026, 5, 1, 8, shard, 0, 0, time.UTC)
	s.RunID, s.Command, s.Outcome, s.StartedAt, s.FinishedAt = "r", "import", "complete", start, start.Add(time.Hour)
	var b bytes.Buffer
	must.Do(t, s.WriteJSON(&b))
	return checkpoint.Member{Shard: shard, Newest: newest, Started: start, Last: start.Add(time.Hour), Rows: []byte(`{"read":1}`), Summary: b.Bytes()}
}

func fleet(t *testing.T, shards int, members ...checkpoint.Member) *Summary {
	t.Helper()
	s, err := Fleet("monday", checkpoint.Info{Path: "postgres://db/leads"}, shards, members)
	must.Do(t, err)
	return s
}

func TestAFleetIsSummedUpAsOneRun(t *testing.T) {
	lead := func(rows RowCounts, code int) Summary {
		return Summary{
			Rows: rows, ExitCode: code, Inputs: []Input{{Path: "leads.csv", Rows: rows.Read, Blank: 2, Unread: code > 1}},
			Requests:      Requests{Create: rows.Created, ByStatus: map[string]int{"201": rows.Created}},
			LatencyMs:     Latency{P50: float64(10 * rows.Created), Max: float64(rows.Created)},
			Organizations: []Organization{{ID: "o-1", Leads: rows.Created}},
			Errors:        []Reason{{Outcome: "invalid", Error: "no key", Rows: 1, Examples: []Place{{File: "leads.csv", Line: 100 - rows.Read}}}},
		}
	}
	// The first worker of shard 0 made 10 leads before it died, the second found them and made 5 more.
	dead := member(t, 0, false, lead(RowCounts{Read: 10, Created: 10}, 3))
	second := member(t, 0, true, lead(RowCounts{Read: 20, Created: 15, InDoubt: 1, Skipped: 4}, 5))
	other := member(t, 1, true, lead(RowCounts{Read: 30, Created: 29, Invalid: 1}, 1))
	s := fleet(t, 2, dead, second, other)
	must.Same(t, RowCounts{Read: 50, Created: 44, InDoubt: 1, Skipped: 4, Invalid: 1}, s.Rows)
	if s.ExitCode != 5 || s.Outcome != "attention" || s.Fleet != "monday" || s.Shard != "" || s.DurationS != 3660 {
		t.Errorf("%d, %s, fleet %q, shard %q, %v s", s.ExitCode, s.Outcome, s.Fleet, s.Shard, s.DurationS)
	}
	if s.Requests.Create != 54 || s.Requests.ByStatus["201"] != 54 || s.Inputs[0].Rows != 50 || !s.Inputs[0].Unread || fleet(t, 1, dead, other).Inputs[0].Unread || s.Organizations[0].Leads != 54 {
		t.Errorf("%+v %+v %+v", s.Requests, s.Inputs, s.Organizations)
	}
	if len(s.Errors) != 1 || s.Errors[0].Rows != 2 || len(s.Errors[0].Examples) != 2 {
		t.Errorf("%+v", s.Errors)
	}
	must.Same(t, 290.0, s.LatencyMs.P50, "p50 is not that of the slowest worker")
	// A killed worker leaves what it had done until then.
	killed := member(t, 1, false, lead(RowCounts{Read: 10, Created: 4}, 0))
	killed.Summary = bytes.Replace(killed.Summary, []byte(`"complete"`), []byte(`"running"`), 1)
	if s := fleet(t, 2, second, killed, other); s.Requests.Create != 48 || s.Rows.Read != 50 || s.ExitCode != 5 || s.Organizations[0].Leads != 48 {
		t.Errorf("with one that was killed: %+v, %+v, exit code %d", s.Requests, s.Rows, s.ExitCode)
	}
	killed.Newest = true
	if s := fleet(t, 2, second, killed); s.Requests.Create != 19 || s.ExitCode != 3 || s.StopReason != "these shards have not ended: 1" {
		t.Errorf("with one killed, without successor: %+v, exit code %d, %q", s.Requests, s.ExitCode, s.StopReason)
	}
	going := checkpoint.Member{Shard: 1, Newest: true, Started: other.Started, Rows: []byte(`{"read":7,"created":7}`)}
	for _, test := range []struct {
		workers []checkpoint.Member
		code    int
		reason  string
	}{
		{[]checkpoint.Member{second, going}, 3, "these shards have not ended: 1"},
		{[]checkpoint.Member{second}, 3, "these shards have not ended: 1"},
		{nil, 3, "these shards have not ended: 0 and 1"},
	} {
		if s := fleet(t, 2, test.workers...); s.ExitCode != test.code || s.StopReason != test.reason || s.Outcome != "stopped" {
			t.Errorf("%d, %s, %q", s.ExitCode, s.Outcome, s.StopReason)
		}
	}
}

// Killed workers left no figures, and a limit of the fleet stays exceeded.
func TestTheNextStepsOfAFleetCanBeDoneAsPrinted(t *testing.T) {
	killed := checkpoint.Member{Newest: true, Rows: []byte(`{"read":9,"created":4}`)}
	limit := Summary{Rows: RowCounts{Read: 3, Rejected: 3}, ExitCode: 3, StopReason: "more than 2 rows (--max-rejects)"}
	late, doubts := Summary{StopReason: "the time given by --max-duration is over"}, Summary{StopReason: "more than 2 rows are in doubt (--max-in-doubt)"}
	for _, test := range []struct {
		s          *Summary
		wants, not string
	}{
		{fleet(t, 1, killed), "The run stopped early|4 of 9 rows|not known|checkpoint workers --checkpoint postgres://db/leads|the same commands", "Nothing was sent"},
		{fleet(t, 1, member(t, 0, true, Summary{Rows: RowCounts{Read: 1, InDoubt: 1}, ExitCode: 5})), "settled since|again with the same commands", "List the"},
		{fleet(t, 1, member(t, 0, true, late)), "again with the same commands", "List the"},
		{fleet(t, 1, member(t, 0, true, doubts)), "again with the same commands", "List the"},
		{fleet(t, 1, member(t, 0, true, Summary{Rows: RowCounts{Read: 1, Failed: 1}, ExitCode: 1})), "Start the workers again with the same commands for the 1 row", "same command again"},
		{fleet(t, 1, member(t, 0, true, limit)), "start all workers with another --fleet name|mapping, and start all workers", "Run the same command"},
	} {
		var b strings.Builder
		must.Do(t, test.s.WriteText(&b, 1000, false))
		for want := range strings.SplitSeq(test.wants, "|") {
			if !strings.Contains(b.String(), want) || strings.Contains(b.String(), test.not) {
				t.Errorf("wants %q, not %q:\n%s", want, test.not, b.String())
			}
		}
	}
}

// The first of 130, 4, 3, 5 and 1 that a shard has is the exit code of the fleet.
func TestTheExitCodeOfAFleetIsItsWorst(t *testing.T) {
	for _, test := range []struct {
		codes []int
		want  int
	}{{[]int{0, 0}, 0}, {[]int{0, 1}, 1}, {[]int{5, 1}, 5}, {[]int{3, 5}, 3}, {[]int{3, 4}, 4}, {[]int{130, 4}, 130}} {
		var workers []checkpoint.Member
		for shard, code := range test.codes {
			workers = append(workers, member(t, shard, true, Summary{ExitCode: code}))
		}
		must.Same(t, test.want, fleet(t, len(test.codes), workers...).ExitCode, test.codes)
	}
}
