package importer

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"leadferry/checkpoint"
	"leadferry/leadapi"
)

// Who asks one row to wait asks all of them: no other row's request leaves meanwhile, a create or an update. faults 61,
// 62, 64
func TestRetryAfterHoldsTheOtherRowsToo(t *testing.T) {
	for _, status := range []int{429, 503} {
		synctest.Test(t, func(t *testing.T) {
			c := &retrier{breaker: newBreaker(time.Hour, 4, 0), retries: 2, retried: func() {}}
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
				c.breaker, c.retried = newBreaker(time.Hour, 4, 0), func() {}
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

// A token request is asked to wait like any other, and all the rows with it. faults 75, 139
func TestRetryAfterOfATokenRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &retrier{breaker: newBreaker(time.Hour, 4, 0), retries: 2, retried: func() {}}
		began := time.Now()
		told := answers{&leadapi.Error{Op: "token", Status: 503, Applied: leadapi.No, HasRetryAfter: true, RetryAfter: time.Minute}, nil}
		var group sync.WaitGroup
		group.Go(func() {
			if _, err := sendCreate(t, c, told.call); err != nil || time.Since(began) != time.Minute {
				t.Errorf("after %v: %v", time.Since(began), err)
			}
		})
		synctest.Wait() // the token request has been told
		if _, err := sendUpdate(t, c, func(context.Context) error { return nil }); err != nil || time.Since(began) < time.Minute {
			t.Errorf("another row left after %v: %v", time.Since(began), err)
		}
		group.Wait()
	})
}

// While creates go singly, and one of them hangs, the leads that were made are linked. fault 138
func TestLinksDoNotWaitForCreates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := newTrial(t, numbered(40), Options{Concurrency: 4})
		tr.remap(t, "  external_id: \"{id}\"\n")
		began := time.Now()
		tr.service.answer = func(name string, _ int) error {
			if name == "n010" || name == "n011" {
				return broken
			}
			return nil
		}
		var before sync.Map // names of the leads that were made before the one that hangs
		tr.service.arrive = func(key string) {
			if key != "k011" {
				return
			}
			tr.service.mu.Lock()
			for _, name := range tr.service.order {
				before.Store(name, true)
			}
			tr.service.mu.Unlock()
			time.Sleep(30 * time.Second)
		}
		var late atomic.Int32
		tr.service.update = func(id string) {
			if _, is := before.Load(strings.TrimPrefix(id, "lead-")); is && time.Since(began) > 10*time.Second {
				late.Add(1)
			}
		}
		tr.carry(t.Context())
		if got := tr.outcomes(); got != "created 38 in_doubt 2" || late.Load() > 0 {
			t.Errorf("%s; %d links of the leads that were made before came late", got, late.Load())
		}
	})
}

func TestAnExternalIDIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := newTrial(t, []string{"k1," + strings.Repeat("x", checkpoint.MaxKey), "k2," + strings.Repeat("x", checkpoint.MaxKey+1)}, Options{})
		tr.remap(t, "  external_id: \"{name}\"\n")
		tr.carry(t.Context())
		if got := tr.outcomes(); got != "created 1 invalid 1" {
			t.Error(got)
		}
	})
}
