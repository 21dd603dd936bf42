package leadapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/oauth2"
)

// issuer is a service that issues numbered tokens and takes those that are good.
type issuer struct {
	t       testing.TB
	mu      sync.Mutex
	grants  []string                             // one a token request
	good    func(token int) bool                 // whether a create with the token is accepted
	grant   func(query url.Values) (int, string) // nil, or the answer to a token request ("" = a token)
	expires string                               // JSON of expires_in
	creates atomic.Int64
}

func (s *issuer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/v3/oauth2/token" {
		var token int
		fmt.Sscanf(r.Header.Get("Authorization"), "Bearer "+access+"%d", &token)
		if !s.good(token) {
			w.WriteHeader(401)
			return
		}
		s.creates.Add(1)
		w.WriteHeader(201)
		io.WriteString(w, createdBody)
		return
	}
	query := r.URL.Query()
	if query.Get("client_secret") != secret || query.Get("client_id") != "client-1" || r.Header["Authorization"] != nil || r.ContentLength != 0 {
		s.t.Errorf("token request of %d bytes with client %q", r.ContentLength, query.Get("client_id"))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.grants = append(s.grants, query.Get("grant_type")+query.Get("refresh_token"))
	if s.grant != nil {
		if status, body := s.grant(query); status != 0 {
			w.WriteHeader(status)
			io.WriteString(w, body)
			return
		}
	}
	fmt.Fprintf(w, `{"access_token":"%s%d","expires_in":%s,"refresh_token":"+r/%d","token_type":"Bearer"}`,
		access, len(s.grants), s.expires, len(s.grants))
}

// issue starts an issuer and a Client of it, with a clock that the test moves.
func issue(t testing.TB, s *issuer) (*Client, *atomic.Int64) {
	t.Helper()
	s.t = t
	if s.expires == "" {
		s.expires = "10800"
	}
	if s.good == nil {
		s.good = func(int) bool { return true }
	}
	var elapsed atomic.Int64
	start := time.Now()
	c := config(serve(t, false, s.ServeHTTP).URL)
	c.Now = func() time.Time { return start.Add(time.Duration(elapsed.Load())) }
	return connect(t, c), &elapsed
}

func (s *issuer) want(grants ...string) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if diff := cmp.Diff(grants, s.grants); diff != "" {
		s.t.Error("token requests:\n" + diff)
	}
}

const byAccount = "client_credentials"

// faults 53, 71
func TestTokenIsRenewedOnceForAllWorkers(t *testing.T) {
	for round := range 10 {
		var expired atomic.Bool
		s := &issuer{}
		s.good = func(token int) bool { return !expired.Load() || token > 1 }
		c, _ := issue(t, s)
		if err := c.SignIn(t.Context()); err != nil {
			t.Fatal(err)
		}
		expired.Store(true)
		var wait sync.WaitGroup
		for range 64 {
			wait.Go(func() {
				for try := 0; ; try++ {
					e := fault(t, c)
					if e == nil {
						return
					}
					if e.Status != 401 || e.Applied != No || try > 0 {
						t.Errorf("try %d: %v", try, e)
						return
					}
				}
			})
		}
		wait.Wait()
		s.want(byAccount, "refresh_token+r/1")
		if s.creates.Load() != 64 {
			t.Fatalf("round %d: %d creates accepted, want 64", round, s.creates.Load())
		}
	}
}

// A leader that gives up takes nobody with it; a waiter may give up too.
func TestWaiterOutlivesTheLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		hasty, giveUp := context.WithCancel(t.Context())
		fetched := 0
		k := &keeper{lock: make(chan struct{}, 1), now: time.Now, fetch: func(own context.Context, _, _ string) (*oauth2.Token, *Error) {
			if fetched++; fetched == 1 {
				<-own.Done()
				return nil, interrupted(own.Err(), "token", No)
			}
			return &oauth2.Token{AccessToken: access, Expiry: time.Now().Add(time.Hour)}, nil
		}}
		faults := make([]*Error, 3)
		for n, own := range []context.Context{ctx, t.Context(), hasty} {
			go func() { _, faults[n] = k.get(own) }()
			synctest.Wait() // the first leads, the others wait
		}
		giveUp()
		synctest.Wait()
		if !errors.Is(faults[2], context.Canceled) || fetched != 1 {
			t.Errorf("hasty waiter: %v, %d token requests", faults[2], fetched)
		}
		cancel()
		synctest.Wait()
		if !errors.Is(faults[0], context.Canceled) || faults[1] != nil || fetched != 2 {
			t.Errorf("leader: %v, waiter: %v, %d token requests", faults[0], faults[1], fetched)
		}
	})
}

// faults 73, 74, 78
func TestRefreshTokenComesBeforeTheAccount(t *testing.T) {
	refreshed := func(status int) func(url.Values) (int, string) {
		return func(q url.Values) (int, string) {
			if q.Get("grant_type") == "refresh_token" {
				return status, `{"error":"invalid_grant"}`
			}
			return 0, ""
		}
	}
	for name, test := range map[string]struct {
		grant func(url.Values) (int, string)
		want  []string
		fails bool
	}{
		"refreshed":    {nil, []string{byAccount, "refresh_token+r/1"}, false},
		"refused":      {refreshed(400), []string{byAccount, "refresh_token+r/1", byAccount}, false},
		"unauthorized": {refreshed(401), []string{byAccount, "refresh_token+r/1", byAccount}, false},
		"answer lost":  {refreshed(200), []string{byAccount, "refresh_token+r/1", byAccount}, false},
		"throttled":    {refreshed(429), []string{byAccount, "refresh_token+r/1"}, true},
		"out of order": {refreshed(500), []string{byAccount, "refresh_token+r/1", byAccount}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := &issuer{grant: test.grant}
			c, elapsed := issue(t, s)
			if e := fault(t, c); e != nil {
				t.Fatal(e)
			}
			elapsed.Add(int64(3 * time.Hour))
			e := fault(t, c)
			if (e != nil) != test.fails || e != nil && (e.Op != "token" || e.Applied != No) {
				t.Error(e)
			}
			s.want(test.want...)
		})
	}
}

// faults 75, 76, 77
func TestTokenIsRenewedAtFourFifthsOfItsLife(t *testing.T) {
	for expires, life := range map[string]time.Duration{
		"10800": 3 * time.Hour, "100.5": 100 * time.Second, "1": 30 * time.Second,
		"null": 3 * time.Hour, "0": 3 * time.Hour, "-5": 3 * time.Hour, `"soon"`: 3 * time.Hour,
		"1e12": 3 * time.Hour, "1e400": 3 * time.Hour, "[]": 3 * time.Hour, "1e-300": 30 * time.Second,
	} {
		t.Run(expires, func(t *testing.T) {
			down := false
			s := &issuer{expires: expires}
			s.grant = func(url.Values) (int, string) {
				if down {
					return 500, ""
				}
				return 0, ""
			}
			c, elapsed := issue(t, s)
			early := max(life*8/10, 30*time.Second)
			fault(t, c)
			elapsed.Store(int64(early) - 1)
			fault(t, c)
			s.want(byAccount)
			elapsed.Add(1)
			fault(t, c)
			s.want(byAccount, "refresh_token+r/1")
			if early == life {
				return
			}
			down = true
			elapsed.Add(int64(early))
			for range 3 { // the old token serves on, and is not renewed at each call
				if e := fault(t, c); e != nil {
					t.Error(e)
				}
			}
			s.want(byAccount, "refresh_token+r/1", "refresh_token+r/2", byAccount)
			elapsed.Add(int64(life - early))
			if e := fault(t, c); e == nil || e.Op != "token" || s.creates.Load() != 6 {
				t.Errorf("a call with an expired token: %v", e)
			}
		})
	}
}

// fault 53
func TestRefusalsCountNewTokensRunning(t *testing.T) {
	s := &issuer{good: func(token int) bool { return token == 1 || token == 5 }}
	c, elapsed := issue(t, s)
	if e := fault(t, c); e != nil {
		t.Fatal(e)
	}
	elapsed.Add(int64(2*time.Hour + 30*time.Minute))
	s.mu.Lock()
	s.good = func(token int) bool { return token == 5 || token == 9 }
	s.mu.Unlock()
	var got []int
	for range 6 {
		if e := fault(t, c); e != nil {
			got = append(got, e.Refusals)
		} else {
			got = append(got, -1)
		}
	}
	// Tokens 2 and 3 came by refresh and were refused; what follows comes by the account.
	if diff := cmp.Diff([]int{1, 2, 3, -1, -1, -1}, got); diff != "" {
		t.Error(diff)
	}
	s.want(byAccount, "refresh_token+r/1", "refresh_token+r/2", byAccount, byAccount)
}

func TestUnreadableTokenIsRefused(t *testing.T) {
	for _, body := range []string{"", "{}", `{"access_token":""}`, `{"access_token":"a b"}`, `{"access_token":"a\r\nX: y"}`, `{"access_token":7}`, `{"access_token":"a","access_token":"b"}`} {
		c, _ := issue(t, &issuer{grant: func(url.Values) (int, string) { return 200, body }})
		if e := c.SignIn(t.Context()).(*Error); e.Reason != ReasonBadAnswer || e.Applied != No {
			t.Errorf("%s: %v", body, e)
		}
	}
}

// Each renewal may give another refresh token, and the one before is worth nothing then: the newest one is kept.
// faults 72, 73
func TestNewestRefreshTokenIsUsed(t *testing.T) {
	s := &issuer{}
	c, elapsed := issue(t, s)
	want := []string{byAccount}
	for renewals := range 4 {
		if e := fault(t, c); e != nil {
			t.Fatal(e)
		}
		s.want(want...)
		elapsed.Add(int64(3 * time.Hour))
		want = append(want, fmt.Sprintf("refresh_token+r/%d", renewals+1))
	}
}
