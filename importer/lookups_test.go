package importer

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"leadferry/checkpoint"
)

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
				tr.keepIn(checkpoint.NewLedger(ledger, checkpoint.Gathering{Slots: 2, Places: 1}))
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
