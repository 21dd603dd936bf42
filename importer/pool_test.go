package importer

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// Who asks one row to wait asks all of them: no other row's request leaves meanwhile, a create or an update. faults 61,
// 62, 64
func TestRetryAfterHoldsTheOtherRowsToo(t *testing.T) {
	for _, status := range []int{429, 503} {
		synctest.Test(t, func(t *testing.T) {
			c := &courier{gate: newGate(time.Hour, 4), retries: 2, stopping: t.Context(), retried: func() {}}
			began := time.Now()
			told := answers{after(status, time.Minute), nil}
			ended := make(chan error)
			go func() {
				_, err := c.deliver(t.Context(), false, told.call)
				ended <- err
			}()
			synctest.Wait() // the first row has been told to wait
			for _, repeatable := range []bool{false, true} {
				_, err := c.deliver(t.Context(), repeatable, func(context.Context) error {
					if waited := time.Since(began); waited < time.Minute {
						t.Errorf("%d: another row's request left after %v", status, waited)
					}
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			}
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
}
