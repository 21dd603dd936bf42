package delivery

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"leadferry/leadapi"
)

// A service that gives no token, or is not there, is waited for as long as MaxWait allows. faults 75, 33
func TestASignInThatGetsNoTokenEndsTheRun(t *testing.T) {
	for _, cause := range []*leadapi.Error{{Op: "token", Status: http.StatusBadGateway, Applied: leadapi.No}, unsentError} {
		synctest.Test(t, func(t *testing.T) {
			r := retrier(ResendOn{})
			r.Breaker, r.Reach = NewBreaker(10*time.Minute, 4, 0), func(context.Context) error { return cause }
			began := time.Now()
			_, err := sendCreate(t, r, r.Reach)
			if end, is := errors.AsType[*End](err); !is || time.Since(began) > 11*time.Minute {
				t.Errorf("after %v: %v %v", time.Since(began), end, err)
			}
		})
	}
}

// What fails to pass holds nothing, and a create that has passed does not leave once the run stops. fault 4
func TestAStopKeepsCreatesBack(t *testing.T) {
	b := NewBreaker(time.Hour, 1, 0)
	p := passes(t, b, Create)
	if !b.Leaves("create") {
		t.Error("it cannot leave")
	}
	stopping, stop := context.WithCancel(t.Context())
	stop()
	refused := new(Pass)
	if err := b.enter(stopping, Create, refused); !errors.Is(err, ErrStopping) {
		t.Error(err)
	}
	b.Conclude(refused, NothingShown)
	b.Shut()
	if b.Leaves("create") || !b.Leaves("update") {
		t.Error("a create leaves after the stop, or an update does not")
	}
	untried(b, p)
	b.Conclude(p, NothingShown)
	if b.creates.inFlight != 0 || b.inFlight != 0 {
		t.Errorf("%d creates, %d requests in flight", b.creates.inFlight, b.inFlight)
	}
}
