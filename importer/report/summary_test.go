package report

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"leadferry/internal/testsupport/must"
)

// emptySummary has all keys in their order, but those that are left out where there is nothing to say.
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

// faults 116, 118, 126
func TestSummaryIsSafeForMachines(t *testing.T) {
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
	got := b.String()
	for _, want := range []string{
		`"started_at": "2026-03-29T01:00:00.123Z"`, `"finished_at": "2026-10-25T07:30:00Z"`, `"duration_s": 1.235`,
		`"path": "a` + "\ufffd" + `.csv"`, `"location": "=Oak\\x1b"`, `"error": "` + strings.Repeat("x", 499) + `…"`,
		"\"201\": 1,\n      \"400\": 5,\n      \"401\": 2,\n      \"429\": 3,\n      \"503\": 4\n", "\"from\": \"open\",\n      \"to\": \"closedWon\",\n      \"leads\": 1",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in %s", want, got)
		}
	}
}

func TestCountsByNameAreThoseOfTheSummary(t *testing.T) {
	c := RowCounts{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14}
	b, err := json.Marshal(c)
	must.Do(t, err)
	var want map[string]int
	must.Do(t, json.Unmarshal(b, &want))
	same(t, want, c.ByName())
	same(t, 5+7+8+9+10+11+12+13, c.attention(true), "attention")
	same(t, 5+7+8+9+10+11+12+13+14, c.attention(false), "attention with pending rows")
}

func TestFailedFilesDoNotHideAnInterruption(t *testing.T) {
	for code, want := range map[int]int{0: 3, 1: 3, 5: 3, 3: 3, 4: 4, 130: 130} {
		s := &Summary{ExitCode: code}
		s.Stopped(Unwritten(errors.New("no space")))
		same(t, want, s.ExitCode, code, "becomes")
	}
}
