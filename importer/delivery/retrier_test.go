package delivery

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"leadferry/leadapi"
)

// answers is a scripted service: each call takes the next answer.
type answers []error

func (a *answers) call(context.Context) error {
	err := (*a)[0]
	*a = (*a)[1:]
	return err
}

func status(code int) *leadapi.Error {
	return &leadapi.Error{Op: "create", Status: code, Applied: leadapi.Maybe}
}

func refusal(code int) *leadapi.Error {
	reason := leadapi.ReasonRefused
	if code == 429 {
		reason = leadapi.ReasonThrottled
	}
	return &leadapi.Error{Op: "create", Status: code, Applied: leadapi.No, Reason: reason}
}

func after(code int, d time.Duration) *leadapi.Error {
	e := &leadapi.Error{Op: "create", Status: code, Applied: leadapi.No, Reason: leadapi.ReasonThrottled, HasRetryAfter: true, RetryAfter: d}
	if code == 503 {
		e.Applied, e.Reason = leadapi.Maybe, leadapi.ReasonServerError
	}
	return e
}

var (
	misdirected    = &leadapi.Error{Op: "create", Status: 421, Applied: leadapi.No, Reason: leadapi.ReasonMisdirected}
	withheldAtLast = &leadapi.Error{Op: "create", Applied: leadapi.No, Reason: leadapi.ReasonHeld}

	unsentError = &leadapi.Error{Op: "create", Applied: leadapi.No, Reason: "connect"}
	broken      = &leadapi.Error{Op: "create", Applied: leadapi.Maybe, Reason: "no_answer"}
)

func unauthorized(refusals int) *leadapi.Error {
	return &leadapi.Error{Op: "create", Status: 401, Applied: leadapi.No, Reason: "unauthorized", Refusals: refusals}
}

var only429 = map[int]bool{429: true} // the default of --resend-on

// retrier returns a Breaker that allows two retries and whose service answers every GET.
func retrier(resend map[int]bool) *Breaker {
	b := NewBreaker(time.Hour, 64, 0)
	b.Retries, b.Resend, b.Reach = 2, resend, func(context.Context) error { return nil }
	return b
}

// sendCreate delivers a create and reports what it proved, as the engine does.
func sendCreate(t testing.TB, c *Breaker, call func(context.Context) error) (int, error) {
	var turn Pass
	tries, err := c.Deliver(t.Context(), t.Context(), Create, &turn, func(ctx context.Context, _ bool) error { return call(ctx) })
	shown := NothingShown
	var e *leadapi.Error
	switch {
	case err == nil:
		shown = Usable
	case !errors.As(err, &e), c.Unapplied(e):
	case e.Applied == leadapi.No && e.Status != 429:
		shown = Usable
	default:
		shown = Doubtful
	}
	c.Report(&turn, shown)
	return tries, err
}

func sendUpdate(t testing.TB, c *Breaker, call func(context.Context) error) (int, error) {
	return c.Deliver(t.Context(), t.Context(), Repeatable, new(Pass), func(ctx context.Context, _ bool) error { return call(ctx) })
}

// INTERFACE's table "When a create is sent again", and its rule for PATCH, say how often a request is sent.
// faults 42, 53, 57, 61-65
func TestDeliverSendsAsOftenAsInterfaceSays(t *testing.T) {
	tests := []struct {
		name       string
		script     answers
		repeatable bool
		resend     map[int]bool // nil: the default
		tries      int
		stops      bool
		fails      bool
		over       bool // the run ends, and this row is in doubt
	}{
		{name: "accepted at once", script: answers{nil}, tries: 1},
		{name: "not sent, then accepted", script: answers{unsentError, unsentError, nil}, tries: 1},
		{name: "401, then accepted", script: answers{unauthorized(1), nil}, tries: 2},
		{name: "new tokens refused three times running", script: answers{unauthorized(1), unauthorized(2), unauthorized(3)}, tries: 3, stops: true},
		{name: "401 for this row alone", script: answers{unauthorized(0), unauthorized(0), unauthorized(0), unauthorized(0)}, tries: 4, fails: true},
		{name: "407", script: answers{refusal(407)}, tries: 1, stops: true},
		{name: "sign-in refused", script: answers{&leadapi.Error{Op: "token", Status: 401, Applied: leadapi.No}}, stops: true},
		{name: "sign-in unavailable", script: answers{&leadapi.Error{Op: "token", Status: 503, Applied: leadapi.No}, nil}, tries: 1},
		{name: "untrusted certificate", script: answers{&leadapi.Error{Op: "create", Applied: leadapi.No, Reason: "tls"}}, stops: true},
		{name: "client certificate refused after sending", script: answers{&leadapi.Error{Op: "create", Applied: leadapi.Maybe, Reason: "client_cert"}}, tries: 1, fails: true, over: true},
		{name: "429 with Retry-After", script: answers{after(429, time.Minute), nil}, tries: 2},
		{name: "429 without", script: answers{refusal(429), nil}, tries: 2},
		{name: "429 for ever", script: answers{after(429, 1), after(429, 1), after(429, 1)}, tries: 3, fails: true},
		{name: "429 with --resend-on none", script: answers{after(429, 1)}, resend: map[int]bool{}, tries: 1, fails: true},
		{name: "503 with Retry-After", script: answers{after(503, time.Minute)}, tries: 1, fails: true},
		{name: "503 named by --resend-on", script: answers{after(503, time.Minute), nil}, resend: map[int]bool{503: true}, tries: 2},
		{name: "503 without", script: answers{status(503)}, tries: 1, fails: true},
		{name: "500", script: answers{status(500)}, tries: 1, fails: true},
		{name: "500, by --resend-on", script: answers{status(500), nil}, resend: map[int]bool{500: true}, tries: 2},
		{name: "408", script: answers{status(408)}, tries: 1, fails: true},
		{name: "broken connection", script: answers{broken}, tries: 1, fails: true},
		{name: "redirect", script: answers{status(302)}, tries: 1, fails: true},
		{name: "421 once", script: answers{misdirected, nil}, tries: 2},
		{name: "421 twice", script: answers{misdirected, misdirected}, tries: 2, fails: true},
		{name: "held back, then let go", script: answers{withheldAtLast, withheldAtLast, nil}, tries: 1},
		{name: "sign-in throttled", script: answers{&leadapi.Error{Op: "token", Status: 429, Applied: leadapi.No, HasRetryAfter: true, RetryAfter: time.Minute}, nil}, tries: 1},
		{name: "425", script: answers{status(425)}, tries: 1, fails: true},
		{name: "499", script: answers{status(499)}, tries: 1, fails: true},
		{name: "422", script: answers{refusal(422)}, tries: 1, fails: true},
		{name: "PATCH 500", script: answers{status(500), nil}, repeatable: true, tries: 2},
		{name: "PATCH 408", script: answers{status(408), nil}, repeatable: true, tries: 2},
		{name: "PATCH 425", script: answers{status(425), nil}, repeatable: true, tries: 2},
		{name: "PATCH 499", script: answers{status(499), nil}, repeatable: true, tries: 2},
		{name: "PATCH 421", script: answers{misdirected, nil}, repeatable: true, tries: 2},
		{name: "PATCH 429 with --resend-on none", script: answers{after(429, 1), nil}, repeatable: true, resend: map[int]bool{}, tries: 2},
		{name: "PATCH broken connection", script: answers{broken, broken, nil}, repeatable: true, tries: 3},
		{name: "PATCH 500 for ever", script: answers{status(500), status(500), status(500)}, repeatable: true, tries: 3, fails: true},
		{name: "PATCH 404", script: answers{refusal(404)}, repeatable: true, tries: 1, fails: true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := retrier(test.resend)
				if test.resend == nil {
					c.Resend = only429
				}
				send := sendCreate
				if test.repeatable {
					send = sendUpdate
				}
				tries, err := send(t, c, test.script.call)
				var end *Stop
				if stops := errors.As(err, &end); stops != test.stops {
					t.Errorf("stops the run: %v (%v), want %v", stops, err, test.stops)
				}
				if !test.stops && (err != nil) != test.fails {
					t.Errorf("error %v, want one: %v", err, test.fails)
				}
				if test.over != (c.Over() != nil) {
					t.Errorf("it is over: %v, want %v", c.Over(), test.over)
				}
				if tries != test.tries || len(test.script) != 0 {
					t.Errorf("sent %d times, want %d; %d answers left", tries, test.tries, len(test.script))
				}
			})
		})
	}
}

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
				synctest.Test(t, func(t *testing.T) {
					answer, sent := &leadapi.Error{Op: "create", Status: code, Applied: applied, Reason: reason}, 0
					_, err := sendCreate(t, retrier(only429), func(context.Context) error {
						sent++
						return answer
					})
					if sent != 1 || !errors.Is(err, answer) {
						t.Errorf("status %d, %s, applied: %s: sent %d times: %v", code, reason, applied, sent, err)
					}
				})
			}
		}
	}
}

func TestDeliverWaitsAsLongAsRetryAfterSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := retrier(only429)
		began := time.Now()
		script := answers{after(429, 90*time.Second), nil}
		if _, err := sendCreate(t, c, script.call); err != nil {
			t.Fatal(err)
		}
		if waited := time.Since(began); waited != 90*time.Second {
			t.Errorf("waited %v, want 90s", waited)
		}
	})
}

// After a 421, the next try asks for a new connection.
func TestNewConnectionAfterMisdirected(t *testing.T) {
	c := retrier(only429)
	script, asked := answers{unauthorized(1), misdirected, nil}, []bool{}
	_, err := c.Deliver(t.Context(), t.Context(), Repeatable, new(Pass), func(ctx context.Context, anew bool) error {
		asked = append(asked, anew)
		return script.call(ctx)
	})
	if want := []bool{false, false, true}; err != nil || !slices.Equal(asked, want) {
		t.Errorf("%v, %v, want %v", err, asked, want)
	}
}

// If the service asks one row to wait, no request of any row leaves meanwhile, create or update. faults 61, 62, 64
func TestRetryAfterHoldsTheOtherRowsToo(t *testing.T) {
	for _, status := range []int{429, 503} {
		synctest.Test(t, func(t *testing.T) {
			c := retrier(only429)
			began := time.Now()
			told := answers{after(status, time.Minute), nil}
			if status == 503 {
				told = told[:1]
			}
			ended := make(chan error)
			go func() {
				_, err := sendCreate(t, c, told.call)
				ended <- err
			}()
			synctest.Wait() // the service has asked the first row to wait
			for _, send := range []func(testing.TB, *Breaker, func(context.Context) error) (int, error){sendCreate, sendUpdate} {
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
			if err := <-ended; (err != nil) != (status == 503) {
				t.Error(err)
			}
		})
	}
}

// A row that is not sent again still makes the others wait. fault 61
func TestRetryAfterOfARowThatIsGivenUpHoldsTheOthers(t *testing.T) {
	for _, resend := range []map[int]bool{only429, nil} {
		synctest.Test(t, func(t *testing.T) {
			c := retrier(resend)
			c.Retries = 0
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
	}
}

// If the service gives no token or cannot be reached, the run ends after MaxWait at the latest. faults 75, 33
func TestASignInThatGetsNoTokenEndsTheRun(t *testing.T) {
	for _, cause := range []*leadapi.Error{{Op: "token", Status: http.StatusBadGateway, Applied: leadapi.No}, unsentError} {
		synctest.Test(t, func(t *testing.T) {
			r := retrier(only429)
			r.MaxWait, r.Reach = 10*time.Minute, func(context.Context) error { return cause }
			began := time.Now()
			_, err := sendCreate(t, r, r.Reach)
			if end, is := errors.AsType[*Stop](err); !is || time.Since(began) < 8*time.Minute || time.Since(began) > 11*time.Minute {
				t.Errorf("after %v: %v %v", time.Since(began), end, err)
			}
		})
	}
}

// A request that failed to pass holds no place. Once the run stops, a create that has passed does not leave. fault 4
func TestAStopKeepsCreatesBack(t *testing.T) {
	b := NewBreaker(time.Hour, 1, 0)
	p := passes(t, b, Create)
	if !b.MayLeave("create") {
		t.Error("it cannot leave")
	}
	stopping, stop := context.WithCancel(t.Context())
	stop()
	refused := new(Pass)
	if err := b.enter(stopping, Create, refused); !errors.Is(err, ErrStopping) {
		t.Error(err)
	}
	b.Report(refused, NothingShown)
	b.Shut()
	if b.MayLeave("create") || !b.MayLeave("update") {
		t.Error("a create leaves after the stop, or an update does not")
	}
	untried(b, p)
	b.Report(p, NothingShown)
	if b.creates.inFlight != 0 || b.inFlight != 0 {
		t.Errorf("%d creates, %d requests in flight", b.creates.inFlight, b.inFlight)
	}
}
