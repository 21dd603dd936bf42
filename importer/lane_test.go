package importer

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"leadferry/checkpoint"
	"leadferry/importer/report"
	"leadferry/importer/source"
	"leadferry/internal/testsupport/must"
)

// A sync of many rows ends as if each row came in a run of its own, even if rows learn only in their turn which lead is
// theirs. Invariant 4; fault 80
func TestASyncEndsAsIfEachRowCameInARunOfItsOwn(t *testing.T) {
	for seed := range uint64(100) {
		held := func(alone bool) (leads []string) {
			r := rand.New(rand.NewPCG(seed, 0))
			keys, externals, rows := 2+r.IntN(8), 2+r.IntN(8), make([]string, 3+r.IntN(40))
			for i := range rows {
				rows[i] = fmt.Sprintf("k%d,,x-%d,open,%03d,1", r.IntN(keys), r.IntN(externals), i)
			}
			paired(t, func(t *testing.T, p *pair) {
				p.run("import", Options{}, "k0,,x-0,open,first,1", "k1,,x-1,open,first,1")
				p.service.delay = time.Duration(1+r.IntN(20)) * time.Millisecond
				for some := range slices.Chunk(rows, map[bool]int{true: 1, false: len(rows)}[alone]) {
					p.run("sync", Options{Planning: Planning{Missing: MissingCreate}}, some...)
				}
				for _, l := range p.service.leads {
					leads = append(leads, l.ExternalID+string(l.Content["name"]))
				}
			})
			slices.Sort(leads)
			return leads
		}
		must.Same(t, held(true), held(false), "seed", seed)
	}
}

// Rows that wait behind others, and rows that wait to be written, are limited by bytes too: a thousand cells of 16 MiB
// need more memory than most machines have. Invariant 6
func TestLargeRowsDoNotGather(t *testing.T) {
	s := newLanes(1)
	for i, full := range []bool{false, true} {
		s.wait(&item{row: source.Row{Size: maxWaitingBytes/2 + 1}}, []leadName{{checkpoint.ByKey, "k"}})
		if s.full() != full {
			t.Errorf("full with %d waiting: %v", i+1, !full)
		}
	}
	it := s.take()
	if s.full() {
		t.Error("still full when one has its turn")
	}
	s.leave(it)
	if s.take(); s.waiting != 0 || s.bytes != 0 {
		t.Errorf("%d rows of %d bytes wait", s.waiting, s.bytes)
	}

	w := &writer{files: new(report.Run), ended: make(chan []*item, 8)}
	for range 3 {
		must.Do(t, w.add(&item{row: source.Row{Size: batchBytes}}))
	}
	if len(w.ended) != 3 {
		t.Errorf("large rows went in %d batches, want 3", len(w.ended))
	}
	for range batchRows {
		must.Do(t, w.add(&item{row: source.Row{Size: 1}}))
	}
	if len(w.ended) != 4 {
		t.Errorf("%d batches, want 4", len(w.ended))
	}
}

// What is remembered of a large row, above all its key, does not keep the whole row in memory. Invariant 6
func TestKeysDoNotKeepTheirRows(t *testing.T) {
	for _, name := range []string{"Ann", strings.Repeat("x", largeRow)} {
		tr := newTrial(t, []string{"k1,\"" + name + "\""}, Options{})
		it := new(item)
		must.Do(t, errors.Join(tr.intake.bind(), tr.intake.readRow(tr.Inputs[0], it)))
		if tr.intake.mapRow(it); it.faults != nil || it.rec.Key != "k1" {
			t.Fatalf("%+v", it)
		}
		part := unsafe.StringData(it.rec.Key) == unsafe.StringData(it.row.Cells[0])
		if large := it.row.Size > largeRow; part == large {
			t.Errorf("a row of %d bytes: its key is a part of it: %v", it.row.Size, part)
		}
	}
}

// One lead whose answer takes ten minutes holds back only its own rows. It is not the first row, since the first create
// of all goes alone.
func TestASlowLeadHoldsBackNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rows := numbered(3000)
		for i := 100; i < 1000; i += 2 { // these wait for it
			rows[i] = fmt.Sprintf("k099,again%03d", i)
		}
		tr := newTrial(t, rows, Options{Sending: Sending{Concurrency: 4}})
		began, others := time.Now(), 0
		tr.service.arrive = func(key string) {
			if key == "k099" {
				time.Sleep(10 * time.Minute)
				tr.service.mu.Lock()
				others = len(tr.service.order)
				tr.service.mu.Unlock()
			}
		}
		tr.carry(t.Context())
		if got := tr.outcomes(); got != "created 2550 changed 450" || others != 2549 || tr.service.clash {
			t.Errorf("%s; %d leads before the slow one; two of one key at once: %v", got, others, tr.service.clash)
		}
		if took := time.Since(began); took > 10*time.Minute+time.Second {
			t.Errorf("took %v", took)
		}
	})
}

// Thousands of rows of one lead, under two keys, go one after another in file order, while other rows go on. fault 80
func TestThousandsOfRowsOfOneLeadGoInFileOrder(t *testing.T) {
	paired(t, func(t *testing.T, p *pair) {
		p.must("created 1", p.run("import", Options{}, "one,,x-1,open,start,1"))
		var rows []string
		for i := range 5000 {
			rows = append(rows, fmt.Sprintf("%s,,x-1,open,%04d,1", []string{"one", "alias"}[i%2], i))
			if i%10 == 0 {
				rows = append(rows, fmt.Sprintf("k%d,,y-%d,open,Ann,1", i, i))
			}
		}
		p.service.sent()
		p.must("created 500 updated 5000", p.run("sync", Options{Sending: Sending{Concurrency: 8}, Planning: Planning{Missing: MissingCreate}}, rows...))
		var names []string
		one := p.known("one").LeadID
		for sent := range strings.Lines(p.service.sent()) {
			if id, body, _ := strings.Cut(sent, " "); id == one {
				names = append(names, body)
			}
		}
		if len(names) != 5000 || !slices.IsSorted(names) || p.service.clash || len(p.service.leads) != 501 {
			t.Errorf("%d updates, in order %v; two at once %v; %d leads", len(names), slices.IsSorted(names), p.service.clash, len(p.service.leads))
		}
	})
}

// Two new keys with one ExternalID make one lead, wherever in the file they are.
func TestTwoKeysWithOneExternalIDMakeOneLead(t *testing.T) {
	paired(t, func(t *testing.T, p *pair) {
		var rows []string
		for i := range 300 {
			rows = append(rows, fmt.Sprintf("a%d,,x-%d,open,Ann,1", i, i), fmt.Sprintf("b%d,,x-%d,open,Ann,1", i, i/7*7))
		}
		p.run("sync", Options{Sending: Sending{Concurrency: 16}, Planning: Planning{Missing: MissingCreate}}, rows...)
		if len(p.service.leads) != 300 || p.service.clash {
			t.Errorf("%d leads of 300; two requests of one lead at once: %v", len(p.service.leads), p.service.clash)
		}
		held := map[string]string{}
		for id, l := range p.service.leads {
			if other := held[l.ExternalID]; other != "" {
				t.Errorf("%s and %s have the ExternalID %s", id, other, l.ExternalID)
			}
			held[l.ExternalID] = id
		}
	})
}

// A row and its revert in one batch are both sent, in file order.
func TestARowAndItsRevertInOneBatchAreBothSent(t *testing.T) {
	paired(t, func(t *testing.T, p *pair) {
		p.must("created 1", p.run("import", Options{}, "a,,x-a,open,Ann,1"))
		p.service.sent()
		p.must("updated 2 unchanged 1", p.run("sync", Options{Sending: Sending{Concurrency: 8}},
			"a,,x-a,contacted,Ann,1", "a,,x-a,open,Ann,1", "a,,x-a,open,Ann,1"))
		id := p.known("a").LeadID
		p.sends(id+` {"Status":"contacted"}`, id+` {"Status":"open"}`)
	})
}

// hangingLedger is a ledger that does not answer.
type hangingLedger struct {
	*ledgerTwin
	asked func()
}

// Find waits until its context ends.
func (a hangingLedger) Find(ctx context.Context, _ []checkpoint.Query) error {
	a.asked()
	<-ctx.Done()
	return ctx.Err()
}

// The first signal, or the end of --max-duration, ends a run whose checkpoint does not answer.
func TestARunEndsWhileItsCheckpointDoesNotAnswer(t *testing.T) {
	for name, signal := range map[string]bool{"a signal": true, "its time": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				interrupt := make(chan struct{})
				tr := newTrial(t, numbered(3), Options{Sending: Sending{MaxDuration: time.Minute}, Hooks: Hooks{Interrupt: interrupt}})
				ledger := hangingLedger{tr.ledger, sync.OnceFunc(func() {
					if signal {
						close(interrupt)
					}
				})}
				tr.keepIn(checkpoint.NewLedger(ledger, checkpoint.Gathering{Slots: 2, Places: 1}))
				tr.carry(t.Context())
				want := report.CodeAttention
				if signal {
					want = report.CodeInterrupted
				}
				if tr.stopped == nil || tr.stopped.Code != want || tr.tally.counts.Read != 0 {
					t.Errorf("stopped for %+v, %d rows read", tr.stopped, tr.tally.counts.Read)
				}
			})
		})
	}
}

// A run whose context has ended is interrupted and never complete, even if it has no rows left.
func TestAContextThatHasEndedInterrupts(t *testing.T) {
	tried(t, numbered(3), Options{}, func(t *testing.T, tr *trial) {
		defer tr.run.ledger.Close()
		ctx, cancel := context.WithCancel(t.Context())
		e := newEngine(ctx, tr.run)
		cancel()
		if e.endAll(); e.stopped == nil || e.stopped.Code != report.CodeInterrupted {
			t.Errorf("stopped for %+v", e.stopped)
		}
	})
}
