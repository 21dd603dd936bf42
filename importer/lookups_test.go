package importer

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"leadferry/checkpoint"
	"leadferry/checkpoint/storetest"
	"leadferry/mapping"
)

// A batch is looked up while the rows before it are sent. What is acted on meanwhile is looked up once more; what was acted
// on before is known.
func TestWhatABatchMayNotKnowYet(t *testing.T) {
	db := checkpoint.NewLedger(storetest.NewMemory(checkpoint.Target{TrunkID: "trunk"}), checkpoint.Gathering{})
	defer db.Close()
	l := &lookups{ledger: db, digests: newDigester(db.Digests()), touched: map[leadName]int64{}}
	before, meanwhile, after := itemOf("before"), itemOf("meanwhile"), itemOf("after")
	act := func(it *item) {
		t.Helper()
		l.touch([]leadName{{text: it.rec.Key}})
		if _, err := db.Settle(t.Context(), checkpoint.Entry{Key: it.rec.Key, State: checkpoint.Created, LeadID: "lead-" + it.rec.Key}); err != nil {
			t.Fatal(err)
		}
	}
	read := func() *lookup {
		t.Helper()
		a := new(lookup)
		if l.look(t.Context(), a, []*item{before, meanwhile, after}); a.failed != nil {
			t.Fatal(a.failed)
		}
		return a
	}
	l.turn(read())
	act(before)
	batch := read()
	act(meanwhile)
	l.turn(batch)
	act(after)
	for i, it := range []*item{before, meanwhile, after} {
		c := l.caseOf(batch, i)
		ns := l.names(c)
		if known, touched := c.Known.State.HasLead(), l.stale(&ns, batch); known == touched || touched != (it != before) {
			t.Errorf("%s: known %v, touched %v", it.rec.Key, known, touched)
		}
		var again lookup
		if l.look(t.Context(), &again, []*item{it}); again.failed != nil || again.known[0].LeadID != "lead-"+it.rec.Key || l.stale(&ns, &again) {
			t.Errorf("%s: %+v, %v", it.rec.Key, again.known[0], again.failed)
		}
	}
	l.turn(read())
	if len(l.touched) > 0 {
		t.Errorf("it has not forgotten %v", l.touched)
	}
}

func itemOf(key string) *item { return &item{rec: mapping.Record{Key: key}} }

// away is a ledger that gives no answer.
type away struct {
	*ledgerTwin
	asked func()
}

// Find waits as long as it may.
func (a away) Find(ctx context.Context, _ []checkpoint.Query, _ []checkpoint.Entry, _ []checkpoint.Match) error {
	a.asked()
	<-ctx.Done()
	return ctx.Err()
}

// The first signal ends a run that waits for a checkpoint which is away: nothing would be done with its answer. So does the end of its
// time.
func TestNobodyWaitsForAnswersOfNoUse(t *testing.T) {
	for name, signal := range map[string]bool{"a signal": true, "its time": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				interrupt := make(chan struct{})
				tr := newTrial(t, numbered(3), Options{Sending: Sending{MaxDuration: time.Minute}, Hooks: Hooks{Interrupt: interrupt}})
				ledger := away{tr.ledger, sync.OnceFunc(func() {
					if signal {
						close(interrupt)
					}
				})}
				tr.keepIn(checkpoint.NewLedger(ledger, checkpoint.Gathering{Slots: 2, Ahead: tr.retrier.Breaker.Ahead}))
				tr.carry(t.Context())
				want := CodeAttention
				if signal {
					want = CodeInterrupted
				}
				if tr.stopped == nil || tr.stopped.Code != want || tr.tally.counts.Read != 0 {
					t.Errorf("stopped for %+v, %d rows read", tr.stopped, tr.tally.counts.Read)
				}
			})
		})
	}
}
