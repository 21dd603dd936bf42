package delivery

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"leadferry/leadapi"
)

// A create that was applied, or may have been, is sent once, whatever the status and the reason: a 201 without a lead
// ID too. faults 38, 51, 57, 63, 65, m8, m9
func TestACreateThatMayHaveBeenAppliedIsSentOnce(t *testing.T) {
	reasons := []string{
		leadapi.ReasonNoLeadID, leadapi.ReasonBadAnswer, leadapi.ReasonServerError, leadapi.ReasonTimeout,
		leadapi.ReasonNoAnswer, leadapi.ReasonRedirect, leadapi.ReasonCanceled,
	}
	known := map[int]bool{401: true, 407: true, 421: true, 429: true} // these say that it was not applied
	for code := range 600 {
		if known[code] || code > 0 && code < 200 {
			continue
		}
		for _, reason := range reasons {
			for _, applied := range []leadapi.Applied{leadapi.Maybe, leadapi.Yes} {
				answer := &leadapi.Error{Op: "create", Status: code, Applied: applied, Reason: reason}
				if n := timesSent(t, answer); n != 1 {
					t.Errorf("status %d, %s, applied: %s: sent %d times", code, reason, applied, n)
				}
			}
		}
	}
}

// timesSent is how often a create is sent to a service that always answers alike.
func timesSent(t *testing.T, answer *leadapi.Error) (sent int) {
	synctest.Test(t, func(t *testing.T) {
		c := &Retrier{Breaker: NewBreaker(time.Hour, 4, 0), Retries: 2, Retried: func() {}}
		_, err := sendCreate(t, c, func(context.Context) error {
			sent++
			return answer
		})
		if !errors.Is(err, answer) {
			t.Errorf("status %d: %v", answer.Status, err)
		}
	})
	return sent
}
