package importer

import (
	"cmp"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"leadferry/checkpoint"
	"leadferry/importer/delivery"
	"leadferry/importer/findings"
	"leadferry/importer/report"
	"leadferry/importer/source"
)

func TestMaxCreatesIsNeverExceeded(t *testing.T) {
	for _, most := range []int{1, 7, 50} {
		tried(t, numbered(100), Options{Sending: Sending{Concurrency: 8}, Limits: Limits{MaxCreates: most}}, func(t *testing.T, tr *trial) {
			tr.service.answer = func(name string, _ int) error {
				if name < "n010" {
					return httpError(422) // refused rows make no lead
				}
				return nil
			}
			tr.carry(t.Context())
			if made := len(tr.service.order); made != most {
				t.Errorf("%d leads made, want %d", made, most)
			}
			if tr.stopped == nil || tr.stopped.Code != CodeStopped {
				t.Errorf("stopped for %v", tr.stopped)
			}
		})
	}
}

func TestLimitsEndARun(t *testing.T) {
	doubt := func(name string, _ int) error {
		if atoi(name[1:])%4 == 0 {
			return broken
		}
		return nil
	}
	refuseSome := func(name string, _ int) error {
		if atoi(name[1:])%3 == 0 {
			return httpError(422)
		}
		return nil
	}
	// So few that those under way at once cannot be MostDoubts in a row, in whatever order they leave.
	fewDoubts := func(name string, _ int) error {
		if atoi(name[1:])%10 == 0 {
			return broken
		}
		return nil
	}
	tests := []struct {
		name    string
		limits  Limits
		answer  func(string, int) error
		stops   bool
		invalid int // so many rows at the beginning
		rows    int // 300 where it is 0
		most    int // rows that may be sent: those counted and two a worker; 0: any number
	}{
		{name: "in doubt", limits: Limits{MaxInDoubt: 5}, answer: doubt, stops: true, most: 60},
		{name: "in doubt without limit", answer: fewDoubts},
		{name: "all in doubt without limit", answer: func(string, int) error { return httpError(308) }, stops: true, most: delivery.MostDoubts},
		{name: "rejects", limits: Limits{MaxRejects: Share{Rows: 5}}, answer: refuseSome, stops: true},
		{name: "rejects within the limit", limits: Limits{MaxRejects: Share{Rows: 100}}, answer: refuseSome},
		{name: "share of rejects", limits: Limits{MaxRejects: Share{Percent: 20}}, answer: refuseSome, stops: true},
		{name: "share of rejects within the limit", limits: Limits{MaxRejects: Share{Percent: 50}}, answer: refuseSome},
		{name: "all refused alike", limits: Limits{MaxRejects: Share{Rows: 1000}}, answer: func(string, int) error { return httpError(403) }, stops: true, most: 8},
		{name: "all refused alike, never stop", answer: func(string, int) error { return httpError(403) }},
		{name: "all refused by the client itself", limits: Limits{MaxRejects: Share{Rows: 1000}}, answer: func(string, int) error { return httpError(0) }},
		{name: "invalid rows are no rejects", limits: Limits{MaxRejects: Share{Rows: 5}}, invalid: 200},
		{name: "invalid", limits: Limits{MaxInvalid: Share{Rows: 5}}, invalid: 6, stops: true},
		{name: "invalid within the limit", limits: Limits{MaxInvalid: Share{Rows: 5}}, invalid: 5},
		{name: "share of invalid rows", limits: Limits{MaxInvalid: Share{Percent: 50}}, invalid: 200, stops: true},
		{name: "share of invalid rows of too few", limits: Limits{MaxInvalid: Share{Percent: 50}}, invalid: 199, rows: 199},
		{name: "share of invalid rows within the limit", limits: Limits{MaxInvalid: Share{Percent: 50}}, invalid: 100},
		{name: "all refused, not alike", limits: Limits{MaxRejects: Share{Rows: 1000}}, answer: func(name string, _ int) error { return httpError(400 + atoi(name[1:])%2*4) }},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rows := numbered(cmp.Or(test.rows, 300))
				for i := range test.invalid {
					rows[i] = "," + rows[i] // without a key, and a cell too many
				}
				tr := newTrial(t, rows, Options{Sending: Sending{Concurrency: 4}, Limits: test.limits})
				tr.retrier.Breaker.MaxWait = 24 * time.Hour // silence alone ends none of these
				tr.service.answer = test.answer
				tr.carry(t.Context())
				if stops := tr.stopped != nil; stops != test.stops {
					t.Errorf("stopped: %v (%v), want %v; %s", stops, tr.stopped, test.stops, tr.outcomes())
				}
				if n := len(tr.service.sends); test.most > 0 && n > test.most {
					t.Errorf("%d rows were sent, want %d at most; %s", n, test.most, tr.outcomes())
				}
			})
		})
	}
}

// A run that is out of time takes no more rows and finishes the leads that it has made: none stays without its link. Where
// the time is over while the last rows are under way, nothing is left undone.
func TestMaxDuration(t *testing.T) {
	for _, test := range []struct {
		rows    int
		delay   time.Duration
		outcome string
		code    int
	}{{3000, 10 * time.Millisecond, "stopped", CodeAttention}, {4, time.Minute, "complete", CodeComplete}} {
		tried(t, numbered(test.rows), Options{Sending: Sending{Concurrency: 4, MaxDuration: time.Second}}, func(t *testing.T, tr *trial) {
			tr.remap(t, "  external_id: 'x-{id}'\n")
			tr.service.delay = test.delay
			tr.carry(t.Context())
			outcome, _, code := tr.verdict()
			made := len(tr.service.order)
			if outcome != test.outcome || code != test.code || made == 0 || tr.tally.outcomes[Created] != made || tr.tally.outcomes[InDoubt] != 0 {
				t.Errorf("%s with %d: %s; %d made", outcome, code, tr.outcomes(), made)
			}
		})
	}
}

// Links that a run out of time waits for are given up at the first signal, and a service
// that is gone is told as such.
func TestWhatEndsARunOutOfTime(t *testing.T) {
	for _, test := range []struct {
		name    string
		maxWait time.Duration
		signal  bool
		code    int
	}{
		{"a signal", time.Hour, true, CodeInterrupted},
		{"a silent service", time.Minute, false, CodeStopped},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				interrupt := make(chan struct{})
				tr := newTrial(t, numbered(300), Options{Sending: Sending{Concurrency: 4, MaxDuration: time.Second}, Hooks: Hooks{Interrupt: interrupt}})
				tr.retrier.Breaker.MaxWait = test.maxWait
				tr.remap(t, "  external_id: 'x-{id}'\n")
				began := time.Now()
				tr.service.unlinked = func() error {
					if time.Since(began) > 500*time.Millisecond {
						return unsent
					}
					return nil
				}
				if test.signal {
					time.AfterFunc(10*time.Second, func() { close(interrupt) })
				}
				tr.carry(t.Context())
				if _, _, code := tr.verdict(); code != test.code || tr.tally.outcomes[Partial] == 0 || tr.tally.outcomes[InDoubt] > 0 {
					t.Errorf("exit %d: %s", code, tr.outcomes())
				}
			})
		})
	}
}

// Rows that were refused in an earlier run and are not sent now say nothing about this
// run: it comes to the new ones behind them.
func TestRefusalsOfEarlierRunsDoNotCount(t *testing.T) {
	tried(t, numbered(40), Options{Sending: Sending{Concurrency: 2}, Limits: Limits{MaxRejects: Share{Rows: 3}}}, func(t *testing.T, tr *trial) {
		first := newTrial(t, numbered(30), Options{Sending: Sending{Concurrency: 2}})
		first.service.answer = func(string, int) error { return httpError(422) }
		first.carry(t.Context())
		tr.keepIn(checkpoint.NewLedger(first.ledger, checkpoint.Gathering{}))
		tr.carry(t.Context())
		if got := tr.outcomes(); got != "created 10 rejected 30" || tr.stopped != nil {
			t.Errorf("%s; stopped for %v", got, tr.stopped)
		}
	})
}

// Of several reasons to end, the first that applies of 130, 4 and 3 is told.
func TestTheReasonThatSaysMost(t *testing.T) {
	codes := []int{CodeComplete, CodeAttention, CodeInDoubt, CodeStopped, CodeCheckpoint, CodeInterrupted}
	for i, now := range codes {
		for j, then := range codes {
			if got, want := (&Stop{Code: then}).replacesCode(now), j > i && then != CodeInDoubt && then != CodeAttention; got != want {
				t.Errorf("%d after %d: %v", then, now, got)
			}
		}
	}
}

// faults 66: the second row whose answer names a known lead ID is in doubt.
func TestALeadIDThatBelongsToAnotherRow(t *testing.T) {
	tried(t, []string{"k1,same", "k2,same", "k3,other"}, Options{Sending: Sending{Concurrency: 3}}, func(t *testing.T, tr *trial) {
		tr.carry(t.Context())
		if got := tr.outcomes(); got != "created 2 in_doubt 1" {
			t.Error(got)
		}
	})
}

// A panic in a worker ends the run in order; its message, which may quote a row,
// is not shown. faults 9
func TestAPanicInAWorkerEndsTheRunInOrder(t *testing.T) {
	tried(t, numbered(50), Options{Sending: Sending{Concurrency: 4}}, func(t *testing.T, tr *trial) {
		tr.service.answer = func(name string, _ int) error {
			if name == "n010" {
				panic(fmt.Sprintf("row %s", name))
			}
			return nil
		}
		tr.carry(t.Context())
		if tr.stopped == nil || tr.stopped.Code != CodeStopped {
			t.Fatalf("stopped for %v", tr.stopped)
		}
		if got := tr.ledger.state("k010"); got != checkpoint.InDoubt {
			t.Errorf("the row is %v, want in doubt", got)
		}
		if n := len(tr.service.order); n != tr.tally.outcomes[Created] {
			t.Errorf("the service made %d, the run shows %s", n, tr.outcomes())
		}
	})
}

// faultySums quote a row when they fail.
type faultySums struct{ *checkpoint.Digester }

func (faultySums) Sum(b []byte) checkpoint.Digest { panic(string(b)) }

// Wherever the program itself fails, the run ends in order: what was sent is settled, the
// counts add up, and the reason tells where in the program, but nothing of the row.
func TestAFaultOfTheProgramEndsTheRunInOrder(t *testing.T) {
	for name, sabotage := range map[string]func(*trial){
		"planner": func(tr *trial) {
			planFor := tr.planFor
			tr.planFor = func(c *Case) Step {
				if c.it.rec.Key == "k030" {
					panic(c.it.rec.Key)
				}
				return planFor(c)
			}
		},
		"digest": func(tr *trial) { tr.intake.sums = faultySums{checkpoint.NewDigester(nil)} },
		"record": func(tr *trial) {
			tr.records.see = func(it *item, _ *result) {
				if it.rec.Key == "k030" {
					panic(it.rec.Key)
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			tried(t, numbered(50), Options{Sending: Sending{Concurrency: 4}}, func(t *testing.T, tr *trial) {
				sabotage(tr)
				tr.carry(t.Context())
				if tr.stopped == nil || tr.stopped.Code != CodeStopped || !strings.Contains(tr.stopped.Reason, "internal error (string at importer/limits_test.go:") ||
					strings.Contains(tr.stopped.Reason, "k030") {
					t.Fatalf("stopped for %v", tr.stopped)
				}
				if n := len(tr.service.order); n != tr.tally.outcomes[Created] || tr.tally.outcomes[InDoubt] != 0 {
					t.Errorf("the service made %d, the run shows %s", n, tr.outcomes())
				}
				sum := 0
				for _, n := range tr.tally.outcomes {
					sum += n
				}
				if sum != tr.tally.counts.Read {
					t.Errorf("%d rows read, %s", tr.tally.counts.Read, tr.outcomes())
				}
			})
		})
	}
}

// A summary names 200 rows in doubt and three rows a reason, however many there are.
func TestWhatATallyNamesIsBounded(t *testing.T) {
	tally := newTally(1, Limits{}, 2)
	tally.place = func(at findings.Spot) report.Place { return report.Place{Line: at.Line} }
	for i := range 300 {
		tally.count(&item{row: source.Row{Line: i + 2, Number: i + 1}}, &result{ending: ending{outcome: InDoubt, text: "no answer"}, entry: checkpoint.Entry{Line: i + 2}})
	}
	if n := len(tally.doubts); n != 200 || tally.doubts[199].Line != 201 {
		t.Errorf("%d doubts, the last %+v", n, tally.doubts[n-1])
	}
	var s report.Summary
	tally.report(&s)
	if reasons := s.Errors; len(reasons) != 1 || reasons[0].Rows != 300 || len(reasons[0].Examples) != 3 || reasons[0].Examples[2].Line != 4 {
		t.Errorf("%+v", reasons)
	}
}

// What is said of a damaged checkpoint is one sentence, without the hint that is for who opens it.
func TestHowARunWithADamagedCheckpointEnds(t *testing.T) {
	damaged := fmt.Errorf("look up: %w", &checkpoint.OpenError{Path: "leads.db", Text: "is damaged: a record fails its checksum", Hint: "put a copy of it back", Err: checkpoint.ErrDamaged})
	stop := ledgerFailed(damaged)
	const want = "the checkpoint leads.db is damaged: a record fails its checksum"
	if stop.Reason != want || stop.Code != CodeCheckpoint || !stop.Same {
		t.Errorf("%+v", stop)
	}
}
