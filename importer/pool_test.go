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

// A row that is not sent again makes the others wait all the same. fault 61
func TestRetryAfterOfARowThatIsGivenUp(t *testing.T) {
	for name, c := range map[string]*courier{
		"no retries": {},
		"no resends": {retries: 2, resend: ResendOn{NoDefault: true}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c.gate, c.stopping, c.retried = newGate(time.Hour, 4), t.Context(), func() {}
				began := time.Now()
				if _, err := c.deliver(t.Context(), false, (&answers{after(429, time.Minute)}).call); err == nil {
					t.Error("the refusal is gone")
				}
				c.deliver(t.Context(), false, func(context.Context) error {
					if waited := time.Since(began); waited < time.Minute {
						t.Errorf("the next row left after %v", waited)
					}
					return nil
				})
			})
		})
	}
}

// A probe of a silence that has ended tells nothing of the next one, and lets no second probe pass. fault 46
func TestProbesOfAnEarlierSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(time.Hour, 4)
		enter := func() pass {
			p, err := g.enter(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return p
		}
		slow, first := enter(), enter()
		g.unanswered(first, false)
		early := enter() // the probe of the first silence
		g.answered(slow)
		g.unanswered(enter(), false)
		second := enter() // the probe of the second one
		if !early.probe || !second.probe {
			t.Fatal("these are no probes")
		}
		g.unanswered(early, false)
		if _, wait, _ := g.try(time.Now().Add(time.Minute)); wait == 0 {
			t.Error("two probes are under way")
		}
	})
}
