package importer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"leadferry/checkpoint"
	"leadferry/importer/delivery"
	"leadferry/importer/report"
	"leadferry/leadapi"
)

// fleetTwin is what a ledger keeps for a fleet, in memory.
type fleetTwin struct {
	mu      sync.Mutex
	rate    float64
	workers int
	shares  map[int]checkpoint.Progress // as each worker last reported
	next    time.Time                   // tokens are given out until then
	open    time.Time
	fenced  map[int]bool
	reports [][]byte
	silent  bool // it answers nobody
	leads   int  // that the rows share; 0: each row has its own
}

// rows returns n rows of the input.
func (s *fleetTwin) rows(n int) []string {
	rows := numbered(n)
	for i := range rows {
		if s.leads > 0 {
			rows[i] = fmt.Sprintf("k%03d,n%03d", i%s.leads, i)
		}
	}
	return rows
}

// fleetMember is one worker's view of the fleet.
type fleetMember struct {
	*fleetTwin
	index int
}

func (s fleetMember) Conclude(_ context.Context, report []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reports = append(s.reports, report)
	return nil
}

func (s fleetMember) Exchange(_ context.Context, p checkpoint.Progress) (c checkpoint.Common, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fenced[s.index] {
		return c, checkpoint.ErrFenced
	}
	if s.silent {
		return c, errors.New("too many connections")
	}
	s.shares[s.index] = p
	now := time.Now()
	if until := now.Add(p.Pause); p.Pause > 0 && until.After(s.open) {
		s.open = until
	}
	c.Pause = max(s.open.Sub(now), 0)
	for _, o := range s.shares {
		c.Read, c.Invalid, c.Sent, c.Refused, c.Doubts = c.Read+o.Read, c.Invalid+o.Invalid, c.Sent+o.Sent, c.Refused+o.Refused, c.Doubts+o.Doubts
	}
	if p.Wants {
		c.Tokens = max(1, int(s.rate/4/float64(s.workers)))
		if s.next.Before(now) {
			s.next = now
		}
		c.After = s.next.Sub(now)
		s.next = s.next.Add(time.Duration(float64(c.Tokens) / s.rate * float64(time.Second)))
	}
	return c, nil
}

// runFleet runs the workers of one fleet, each over its own rows, and returns their trials when all have ended.
func runFleet(t *testing.T, f *fleetTwin, rows int, o Options, prepare func(i int, tr *trial)) []*trial {
	f.shares, f.fenced = map[int]checkpoint.Progress{}, map[int]bool{}
	var trials []*trial
	var group sync.WaitGroup
	for i := range f.workers {
		own := o
		own.Terms = &checkpoint.Terms{Fleet: "monday"}
		own.Fleet = func(checkpoint.Store) Fleet { return fleetMember{f, i} }
		tr := newTrial(t, f.rows(rows), own)
		tr.join(tr.ledger)
		if prepare != nil {
			prepare(i, tr)
		}
		trials = append(trials, tr)
		group.Go(func() { tr.carry(t.Context()) })
	}
	group.Wait()
	return trials
}

// All workers together keep to the rate, and make use of it.
func TestRateHoldsForTheWholeFleet(t *testing.T) {
	for _, test := range []struct {
		workers, rows int
		rate          float64
	}{{1, 200, 20}, {4, 100, 40}, {4, 50, 2}, {3, 600, 1000}} {
		t.Run(fmt.Sprintf("%d at %v", test.workers, test.rate), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fleetTwin{rate: test.rate, workers: test.workers}
				var mu sync.Mutex
				var sent []time.Time
				start := time.Now()
				runFleet(t, f, test.rows, Options{Sending: Sending{Concurrency: 8, Rate: test.rate}}, func(_ int, tr *trial) {
					tr.service.arrive = func(string) {
						mu.Lock()
						defer mu.Unlock()
						sent = append(sent, time.Now())
					}
				})
				total := test.workers * test.rows
				if len(sent) != total {
					t.Fatalf("%d requests of %d", len(sent), total)
				}
				for i := range sent {
					for j := i; j < len(sent); j++ {
						span := sent[j].Sub(sent[i])
						if most := test.rate*(span.Seconds()+0.1) + 2*float64(test.workers); float64(j-i+1) > most {
							t.Fatalf("%d requests in %v", j-i+1, span)
						}
					}
				}
				if took, least := time.Since(start).Seconds(), float64(total)/test.rate; took > 1.3*least+2 {
					t.Errorf("took %.1f s of %.1f", took, least)
				}
			})
		})
	}
}

// If the service asks one worker to wait, all workers wait after their next exchange.
func TestRetryAfterHoldsTheWholeFleet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fleetTwin{workers: 3}
		start := time.Now()
		const from, until = 2 * time.Second, 62 * time.Second
		runFleet(t, f, 600, Options{Sending: Sending{Concurrency: 1, Retries: 5}}, func(i int, tr *trial) {
			tr.service.arrive = func(string) {
				time.Sleep(10 * time.Millisecond)
				if at := time.Since(start); at > from+2*pulse && at < until {
					t.Errorf("worker %d sent after %v", i, at)
				}
			}
			asked := false
			tr.service.answer = func(string, int) error {
				if i == 1 && !asked && time.Since(start) > from {
					asked = true
					return &leadapi.Error{Op: "create", Status: 429, Applied: leadapi.No, HasRetryAfter: true, RetryAfter: until - from}
				}
				return nil
			}
		})
	})
}

// If the workers together exceed a limit after their last exchange, the worker that ends last says so.
func TestTheLastWorkerReportsALimitThatTheFleetExceeded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fleetTwin{workers: 2}
		limits := delivery.Limits{MaxRejects: delivery.Share{Rows: 30}}
		trials := runFleet(t, f, 40, Options{Sending: Sending{Concurrency: 8}, Limits: limits}, func(_ int, tr *trial) {
			tr.service.answer = func(name string, _ int) error {
				if name > "n019" {
					return &leadapi.Error{Op: "create", Status: 422, Applied: leadapi.No, Reason: "validation", Message: "no"}
				}
				return nil
			}
		})
		for i, want := range []int{report.CodeAttention, report.CodeStopped} {
			s := trials[i].summary()
			trials[i].leaveFleet(s)
			if s.ExitCode != want || want == report.CodeStopped && !strings.Contains(s.StopReason, "--max-rejects") {
				t.Errorf("worker %d, which saw %d rows refused, ends with %d (%s), want %d", i, 20*(i+1), s.ExitCode, s.StopReason, want)
			}
		}
	})
}

// A worker that gets no answer about its fleet sends nothing more, and stops after --max-wait.
func TestAWorkerThatHearsNothingOfItsFleetStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fleetTwin{workers: 1, rate: 10}
		start := time.Now()
		var last time.Time // of what was sent
		trials := runFleet(t, f, 1000, Options{Sending: Sending{Concurrency: 2, Rate: 10}}, func(_ int, tr *trial) {
			tr.MaxWait = time.Minute
			tr.service.arrive = func(string) { last = time.Now() }
			go func() {
				time.Sleep(20 * time.Second)
				f.mu.Lock()
				defer f.mu.Unlock()
				f.silent = true
			}()
		})
		if took := time.Since(start); took < 80*time.Second || took > 90*time.Second || last.Sub(start) > 22*time.Second {
			t.Errorf("took %v, and sent until %v", took, last.Sub(start))
		}
		if stop := trials[0].stopped; stop == nil || stop.Code != report.CodeStopped {
			t.Errorf("stopped for %v", stop)
		}
	})
}

// A worker that a newer one has replaced sends nothing more, and says so by its exit code.
func TestAFencedWorkerStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fleetTwin{workers: 2}
		var fenced time.Time
		trials := runFleet(t, f, 1000, Options{Sending: Sending{Concurrency: 2}}, func(i int, tr *trial) {
			tr.service.arrive = func(string) {
				time.Sleep(10 * time.Millisecond)
				f.mu.Lock()
				defer f.mu.Unlock()
				if i == 0 && !fenced.IsZero() && time.Since(fenced) > 2*pulse {
					t.Error("a fenced worker went on")
				}
			}
			if i == 0 {
				go func() {
					time.Sleep(time.Second)
					f.mu.Lock()
					defer f.mu.Unlock()
					fenced, f.fenced[0] = time.Now(), true
				}()
			}
		})
		if _, code := trials[0].ending(); code != report.CodeFenced {
			t.Errorf("exit code %d", code)
		}
		if trials[0].leaveFleet(trials[0].summary()); len(f.reports) != 1 {
			t.Error("the report of the fleet lacks how it ended")
		}
		if trials[1].stopped != nil || trials[1].tally.counts.Created != 1000 {
			t.Errorf("the other one: %v, %v", trials[1].stopped, trials[1].outcomes())
		}
	})
}

// unreadableLedger cannot be read once lost reports true.
type unreadableLedger struct {
	*ledgerTwin
	lost func() bool
}

// Find fails once the ledger is lost, after it found another row's lead.
func (s unreadableLedger) Find(ctx context.Context, queries []checkpoint.Query) error {
	if s.lost() {
		*queries[0].Entry = checkpoint.Entry{Key: "k", State: checkpoint.Created, LeadID: "another row's"}
		return errDisk
	}
	return s.ledgerTwin.Find(ctx, queries)
}

// heldOnce refuses the first claim of each key that is not in held, as if another worker had it, and adds it to held.
func heldOnce(held map[string]bool) func(*checkpoint.Change) error {
	return func(c *checkpoint.Change) error {
		if c.Kind != checkpoint.Claim || held[c.Entry.Key] {
			return nil
		}
		held[c.Entry.Key] = true
		return checkpoint.ErrOtherMaySend
	}
}

// Rows that were put off get an outcome even if the run stops before their second turn.
func TestRowsThatWerePutOffHaveAnOutcome(t *testing.T) {
	const rows = 12
	for name, blind := range map[string]bool{"interrupted among them": false, "before they are looked up again": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				interrupt, held, sent := make(chan struct{}), map[string]bool{}, 0
				trials := runFleet(t, &fleetTwin{workers: 1}, rows, Options{Sending: Sending{Concurrency: 1}, Hooks: Hooks{Interrupt: interrupt}}, func(_ int, tr *trial) {
					tr.ledger.Refuse = heldOnce(held)
					tr.service.arrive = func(string) {
						if sent++; sent == 3 {
							close(interrupt)
						}
					}
					if blind {
						tr.keepIn(checkpoint.NewLedger(unreadableLedger{tr.ledger, func() bool { return len(held) == rows }}, checkpoint.Gathering{Slots: 2, Places: 1}))
					}
				})
				tr := trials[0]
				if read, ended := tr.tally.counts.Read, tr.tally.counts.Ended(); read != rows || ended != rows || len(tr.records.lines) != rows {
					t.Errorf("of %d rows %d have an outcome (%s), and %d a line", read, ended, tr.outcomes(), len(tr.records.lines))
				}
				if slices.ContainsFunc(tr.records.lines, func(it *item) bool { return it.entry.LeadID == "another row's" }) {
					t.Error("a row has the lead of another one")
				}
				if n := tr.tally.counts.Pending; n != rows-sent || tr.stopped == nil {
					t.Errorf("%d rows are pending after %d were sent; stopped for %v", n, sent, tr.stopped)
				}
			})
		})
	}
}

// No later row of the same lead overtakes a row that was put off.
func TestRowsThatWerePutOffKeepTheirOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fleetTwin{workers: 1, leads: 3}
		trials := runFleet(t, f, 600, Options{Sending: Sending{Concurrency: 4}}, func(_ int, tr *trial) {
			tr.ledger.Refuse = heldOnce(map[string]bool{"k001": true})
		})
		slices.Sort(trials[0].service.order)
		if got := trials[0].service.order; !slices.Equal(got, []string{"n000", "n001", "n002"}) {
			t.Errorf("leads are made by the rows %v, not by the first of each", got)
		}
	})
}

// --max-duration also ends rows that were put off and come after all others.
func TestMaxDurationEndsRowsThatWerePutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most = 30 * time.Second
		start, held := time.Now(), map[string]bool{"k000": true}
		trials := runFleet(t, &fleetTwin{workers: 1}, 6, Options{Sending: Sending{Concurrency: 2, MaxDuration: most}}, func(_ int, tr *trial) {
			tr.ledger.Refuse = heldOnce(held)
			tr.service.arrive = func(string) {
				if time.Since(start) > most {
					t.Error("a row is sent after the run's time")
				}
				time.Sleep(2 * most)
			}
		})
		if got, stop := trials[0].outcomes(), trials[0].stopped; got != "created 1 pending 5" || stop == nil || stop.Code != report.CodeAttention {
			t.Errorf("%s, stopped for %v", got, stop)
		}
	})
}
