package importer

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"leadferry/checkpoint"
	"leadferry/importer/delivery"
	"leadferry/importer/report"
	"leadferry/leadapi"
)

func TestMaxCreatesIsNeverExceeded(t *testing.T) {
	for _, most := range []int{1, 7, 50} {
		tried(t, numbered(100), Options{Sending: Sending{Concurrency: 8}, Limits: delivery.Limits{MaxCreates: most}}, func(t *testing.T, tr *trial) {
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
			if tr.stopped == nil || tr.stopped.Code != report.CodeStopped {
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
	// So few that requests in flight at once cannot be MostDoubts in a row, in whatever order they leave.
	fewDoubts := func(name string, _ int) error {
		if atoi(name[1:])%10 == 0 {
			return broken
		}
		return nil
	}
	tests := []struct {
		name    string
		limits  delivery.Limits
		answer  func(string, int) error
		stops   bool
		invalid int // number of invalid rows at the beginning
		rows    int // 300 where it is 0
		most    int // rows that may be sent: those counted and two a worker; 0: any number
	}{
		{name: "in doubt", limits: delivery.Limits{MaxInDoubt: 5}, answer: doubt, stops: true, most: 60},
		{name: "in doubt without limit", answer: fewDoubts},
		{name: "all in doubt without limit", answer: func(string, int) error { return httpError(308) }, stops: true, most: delivery.MostDoubts},
		{name: "rejects", limits: delivery.Limits{MaxRejects: delivery.Share{Rows: 5}}, answer: refuseSome, stops: true},
		{name: "rejects within the limit", limits: delivery.Limits{MaxRejects: delivery.Share{Rows: 100}}, answer: refuseSome},
		{name: "share of rejects", limits: delivery.Limits{MaxRejects: delivery.Share{Percent: 20}}, answer: refuseSome, stops: true},
		{name: "share of rejects within the limit", limits: delivery.Limits{MaxRejects: delivery.Share{Percent: 50}}, answer: refuseSome},
		{name: "all refused alike", limits: delivery.Limits{MaxRejects: delivery.Share{Rows: 1000}}, answer: func(string, int) error { return httpError(403) }, stops: true, most: 8},
		{name: "all refused alike, never stop", answer: func(string, int) error { return httpError(403) }},
		{name: "all refused by the client itself", limits: delivery.Limits{MaxRejects: delivery.Share{Rows: 1000}}, answer: func(string, int) error { return httpError(0) }},
		{name: "invalid are no rejects", limits: delivery.Limits{MaxRejects: delivery.Share{Rows: 5}}, invalid: 200},
		{name: "invalid", limits: delivery.Limits{MaxInvalid: delivery.Share{Rows: 5}}, invalid: 6, stops: true},
		{name: "invalid within the limit", limits: delivery.Limits{MaxInvalid: delivery.Share{Rows: 5}}, invalid: 5},
		{name: "share of invalid rows", limits: delivery.Limits{MaxInvalid: delivery.Share{Percent: 50}}, invalid: 200, stops: true},
		{name: "share of invalid rows of too few", limits: delivery.Limits{MaxInvalid: delivery.Share{Percent: 50}}, invalid: 199, rows: 199},
		{name: "share of invalid rows within the limit", limits: delivery.Limits{MaxInvalid: delivery.Share{Percent: 50}}, invalid: 100},
		{name: "all refused, not alike", limits: delivery.Limits{MaxRejects: delivery.Share{Rows: 1000}}, answer: func(name string, _ int) error { return httpError(400 + atoi(name[1:])%2*4) }},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rows := numbered(cmp.Or(test.rows, 300))
				for i := range test.invalid {
					rows[i] = "," + rows[i] // without a key, and a cell too many
				}
				tr := newTrial(t, rows, Options{Sending: Sending{Concurrency: 4}, Limits: test.limits})
				tr.breaker.MaxWait = 24 * time.Hour // silence alone ends none of these
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

// A run whose time is over takes no more rows and links the leads that it has made. The first signal gives up links
// that still wait. If the service is gone, that is the reason of the stop.
func TestMaxDurationTakesNoMoreRowsAndLinksWhatWasMade(t *testing.T) {
	for _, test := range []struct {
		name           string
		rows           int
		delay, maxWait time.Duration
		gone, signal   bool // after half the time
		outcome        string
		code           int
	}{
		{"rows are left", 3000, 10 * time.Millisecond, time.Hour, false, false, "stopped", report.CodeAttention},
		{"none are left", 4, time.Minute, time.Hour, false, false, "complete", report.CodeComplete},
		{"a signal", 300, 20 * time.Millisecond, time.Hour, true, true, "interrupted", report.CodeInterrupted},
		{"a silent service", 300, 20 * time.Millisecond, time.Minute, true, false, "stopped", report.CodeStopped},
	} {
		o := Options{Sending: Sending{Concurrency: 4, MaxDuration: time.Second}}
		tried(t, numbered(test.rows), o, func(t *testing.T, tr *trial) {
			began, interrupt := time.Now(), make(chan struct{})
			tr.Interrupt = interrupt
			tr.remap(t, "  external_id: 'x-{id}'\n")
			tr.service.delay, tr.breaker.MaxWait = test.delay, test.maxWait
			tr.service.update = func(string) error {
				if test.gone && time.Since(began) > 500*time.Millisecond {
					return unsent
				}
				return nil
			}
			if test.signal {
				time.AfterFunc(10*time.Second, func() { close(interrupt) })
			}
			tr.carry(t.Context())
			outcome, code := tr.ending()
			made, n := len(tr.service.order), tr.tally.counts
			if outcome != test.outcome || code != test.code || made == 0 || n.Created+n.Partial != made || n.InDoubt > 0 ||
				(n.Partial > 0) != test.gone {
				t.Errorf("%s: %s with %d: %s; %d made", test.name, outcome, code, tr.outcomes(), made)
			}
		})
	}
}

// Rows that an earlier run saw refused are not sent now and say nothing about this run: it reaches the new rows.
func TestRefusalsOfEarlierRunsDoNotCount(t *testing.T) {
	tried(t, numbered(40), Options{Sending: Sending{Concurrency: 2}, Limits: delivery.Limits{MaxRejects: delivery.Share{Rows: 3}}}, func(t *testing.T, tr *trial) {
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

// Of two exit codes the first of 130, 4, 3, 5, 1 and 0 counts.
func TestTheWorseExitCodeCounts(t *testing.T) {
	codes := []int{report.CodeComplete, report.CodeAttention, report.CodeInDoubt, report.CodeStopped, report.CodeCheckpoint, report.CodeInterrupted}
	for i, now := range codes {
		for j, then := range codes {
			if got, want := report.WorseExitCode(now, then), codes[max(i, j)]; got != want {
				t.Errorf("%d after %d: %v", then, now, got)
			}
		}
	}
}

// Wherever the program panics, the run settles what was sent, the counts add up, and the reason names the place in the
// program, but nothing of the row. fault 9
func TestAPanicEndsTheRunInOrder(t *testing.T) {
	for name, sabotage := range map[string]func(*trial){
		"planner": func(tr *trial) {
			planFor := tr.planFor
			tr.planFor = func(it *item) Step {
				if it.rec.Key == "k030" {
					panic(it.rec.Key)
				}
				return planFor(it)
			}
		},
		"worker": func(tr *trial) {
			tr.service.answer = func(name string, _ int) error {
				if name == "n030" {
					panic(name)
				}
				return nil
			}
		},
		"digest": func(tr *trial) { tr.intake.digest = func(it *item) { panic(it.rec.Key) } },
		"record": func(tr *trial) {
			tr.records.see = func(it *item) {
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
				if tr.stopped == nil || tr.stopped.Code != report.CodeStopped || !strings.Contains(tr.stopped.Reason, "internal error (string at importer/limits_test.go:") ||
					strings.Contains(tr.stopped.Reason, "k030") || strings.Contains(tr.stopped.Reason, "n030") {
					t.Fatalf("stopped for %v", tr.stopped)
				}
				doubt := tr.ledger.state("k030") == checkpoint.InDoubt
				if n := len(tr.service.order); n != tr.tally.counts.Created || (tr.tally.counts.InDoubt == 1) != doubt || doubt != (name == "worker") {
					t.Errorf("the service made %d, the run shows %s", n, tr.outcomes())
				}
				if n := tr.tally.counts.Ended(); n != tr.tally.counts.Read {
					t.Errorf("%d of %d rows ended, %s", n, tr.tally.counts.Read, tr.outcomes())
				}
			})
		})
	}
}

// A summary names 200 rows in doubt and three rows a reason, however many there are.
func TestASummaryNamesFewRowsHoweverManyThereAre(t *testing.T) {
	tally := newTally(1)
	for i := range 300 {
		it := &item{result: result{ending: ending{outcome: InDoubt, text: "no answer"}, entry: checkpoint.Entry{Line: i + 2}}}
		tally.count(it, report.Place{Line: i + 2, Row: i + 1})
	}
	if n := len(tally.doubts); n != 200 || tally.doubts[199].Line != 201 {
		t.Errorf("%d doubts, the last %+v", n, tally.doubts[n-1])
	}
	if reasons := tally.reasons.List(); len(reasons) != 1 || reasons[0].Rows != 300 || len(reasons[0].Examples) != 3 || reasons[0].Examples[2].Line != 4 {
		t.Errorf("%+v", reasons)
	}
}

// The hint is left out: it is for the person who opens the checkpoint.
func TestTheStopReasonOfADamagedCheckpointIsOneSentence(t *testing.T) {
	damaged := fmt.Errorf("look up: %w", &checkpoint.OpenError{Path: "leads.db", Text: "is damaged: a record fails its checksum", Hint: "put a copy of it back", Err: checkpoint.ErrDamaged})
	stop := ledgerFailed(damaged)
	const want = "the checkpoint leads.db is damaged: a record fails its checksum"
	if stop.Reason != want || stop.Code != report.CodeCheckpoint || !stop.Same {
		t.Errorf("%+v", stop)
	}
}

// cutOff makes the trial's network lose everything for a time: requests leave and get no answer within their 30 s. The
// result is how long after the end of that time the first create arrives.
func (tr *trial) cutOff(after, length time.Duration) (again *atomic.Int64) {
	again = new(atomic.Int64)
	from := time.Now().Add(after)
	back := from.Add(length)
	gone := func() bool { return time.Now().After(from) && time.Now().Before(back) }
	silence := &leadapi.Error{Op: "create", Applied: leadapi.Maybe, Reason: leadapi.ReasonTimeout, Message: "no answer in time"}
	var lost sync.Map // numbers of rows
	tr.service.arrive = func(key string) {
		if gone() {
			lost.Store(key[1:], true)
			time.Sleep(30 * time.Second)
		} else if time.Now().After(from) {
			again.CompareAndSwap(0, int64(time.Since(back)))
		}
	}
	tr.service.answer = func(name string, _ int) error {
		if _, is := lost.Load(name[1:]); is {
			return silence
		}
		return nil
	}
	tr.breaker.Reach = func(ctx context.Context) error {
		if !gone() {
			return nil
		}
		<-ctx.Done()
		return &leadapi.Error{Op: "reach", Applied: leadapi.Maybe, Reason: leadapi.ReasonTimeout, Message: "no answer in time"}
	}
	return again
}

// If the network loses everything, only the rows in flight and one more are in doubt, even after ten minutes. The run
// goes on within 30 s of the end. fault 46
func TestPartitionLeavesOnlyRowsInFlightInDoubt(t *testing.T) {
	for _, concurrency := range []int{1, 8, 64} {
		t.Run(fmt.Sprint(concurrency), func(t *testing.T) {
			tried(t, numbered(500), Options{Sending: Sending{Concurrency: concurrency}}, func(t *testing.T, tr *trial) {
				again := tr.cutOff(50*time.Millisecond, 10*time.Minute)
				tr.carry(t.Context())
				doubts := tr.tally.counts.InDoubt
				if doubts == 0 || doubts > concurrency+1 || tr.tally.counts.Created+doubts != 500 {
					t.Errorf("at %d in flight: %s", concurrency, tr.outcomes())
				}
				if late := time.Duration(again.Load()); late == 0 || late > 30*time.Second {
					t.Errorf("went on %v after the network was back", late)
				}
			})
		})
	}
}

// A silence longer than --max-wait ends the run and puts no further rows in doubt. fault 46
func TestPartitionForTooLongEndsTheRun(t *testing.T) {
	tried(t, numbered(500), Options{Sending: Sending{Concurrency: 8}}, func(t *testing.T, tr *trial) {
		tr.cutOff(50*time.Millisecond, 100*time.Hour)
		began := time.Now()
		tr.carry(t.Context())
		if tr.stopped == nil || tr.stopped.Code != report.CodeStopped {
			t.Fatalf("stopped for %v: %s", tr.stopped, tr.outcomes())
		}
		if took := time.Since(began); took < time.Hour || took > time.Hour+2*time.Minute {
			t.Errorf("gave up after %v, want an hour", took)
		}
		if n := tr.tally.counts.InDoubt; n == 0 || n > 9 {
			t.Errorf("%s", tr.outcomes())
		}
	})
}

// A row in doubt that is sent again and refused stays in doubt, and counts as refused, not as made.
func TestARefusedResendCountsAsRefused(t *testing.T) {
	l := limiter{limits: new(delivery.Limits), creates: 1}
	r := item{result: result{ending: ending{outcome: InDoubt}, refusedAs: 422}}
	l.created(&r, false)
	l.sent(&r)
	if l.creates != 0 || l.counts.Refused != 1 || l.counts.Doubts != 0 || l.refused != 422 {
		t.Errorf("%+v", l)
	}
}
