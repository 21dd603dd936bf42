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
			c := &retrier{breaker: newBreaker(time.Hour, 4, 0), retries: 2, stopping: t.Context(), retried: func() {}}
			began := time.Now()
			told := answers{after(status, time.Minute), nil}
			ended := make(chan error)
			go func() {
				_, err := sendCreate(t, c, told.call)
				ended <- err
			}()
			synctest.Wait() // the first row has been told to wait
			for _, send := range []func(testing.TB, *retrier, func(context.Context) error) (int, error){sendCreate, sendUpdate} {
				_, err := send(t, c, func(context.Context) error {
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
	for name, c := range map[string]*retrier{
		"no retries": {},
		"no resends": {retries: 2, resend: ResendOn{NoDefault: true}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c.breaker, c.stopping, c.retried = newBreaker(time.Hour, 4, 0), t.Context(), func() {}
				began := time.Now()
				if _, err := sendCreate(t, c, (&answers{after(429, time.Minute)}).call); err == nil {
					t.Error("the refusal is gone")
				}
				sendCreate(t, c, func(context.Context) error {
					if waited := time.Since(began); waited < time.Minute {
						t.Errorf("the next row left after %v", waited)
					}
					return nil
				})
			})
		})
	}
}
