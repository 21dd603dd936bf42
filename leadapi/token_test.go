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

	"golang.org/x/oauth2"

	"leadferry/internal/testsupport/must"
)

// issuer is a service that issues numbered tokens and accepts creates with good ones.
type issuer struct {
	t       testing.TB
	mu      sync.Mutex
	grants  []string                             // one for each token request
	good    func(token int) bool                 // whether a create with the token is accepted
	grant   func(query url.Values) (int, string) // if not nil, answers token requests; status 0: give a token
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
		w.WriteHeader(201)
		fmt.Fprintf(w, `{"leadID":"lead-%d"}`, s.creates.Add(1))
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

// issue starts an issuer and a Client for it. The test moves the Client's clock.
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
	must.Same(s.t, grants, s.grants, "token requests")
}

const byAccount = "client_credentials"

func TestTokenIsRenewedOnceForAllWorkers(t *testing.T) { // faults 53, 71
	for round := range 10 {
		var expired atomic.Bool
		s := &issuer{}
		s.good = func(token int) bool { return !expired.Load() || token > 1 }
		c, _ := issue(t, s)
		must.Do(t, c.SignIn(t.Context()))
		expired.Store(true)
		var wait sync.WaitGroup
		for range 64 {
			wait.Go(func() {
				for try := 0; ; try++ {
					e := tryCreate(t, c)
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

// If the call that fetches the token is canceled, waiting calls still get one. A waiting call can be canceled, too.
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

func TestRefreshTokenComesBeforeTheAccount(t *testing.T) { // faults 73, 74, 78
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
		s := &issuer{grant: test.grant}
		c, elapsed := issue(t, s)
		succeeds(t, c)
		elapsed.Add(int64(3 * time.Hour))
		e := tryCreate(t, c)
		if (e != nil) != test.fails || e != nil && (e.Op != "token" || e.Applied != No) {
			t.Error(name, e)
		}
		s.want(test.want...)
	}
}

func TestTokenIsRenewedAtFourFifthsOfItsLife(t *testing.T) { // faults 75, 76, 77
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
			tryCreate(t, c)
			elapsed.Store(int64(early) - 1)
			tryCreate(t, c)
			s.want(byAccount)
			elapsed.Add(1)
			tryCreate(t, c)
			s.want(byAccount, "refresh_token+r/1")
			if early == life {
				return
			}
			down = true
			elapsed.Add(int64(early))
			for range 3 { // the old token is used on, and not every call tries to renew it
				succeeds(t, c)
			}
			s.want(byAccount, "refresh_token+r/1", "refresh_token+r/2", byAccount)
			elapsed.Add(int64(life - early))
			if e := tryCreate(t, c); e == nil || e.Op != "token" || s.creates.Load() != 6 {
				t.Errorf("a call with an expired token: %v", e)
			}
		})
	}
}

func TestRefusalsCountNewTokensRefusedInARow(t *testing.T) { // fault 53
	s := &issuer{good: func(token int) bool { return token == 1 || token == 5 }}
	c, elapsed := issue(t, s)
	succeeds(t, c)
	elapsed.Add(int64(2*time.Hour + 30*time.Minute))
	s.mu.Lock()
	s.good = func(token int) bool { return token == 5 || token == 9 }
	s.mu.Unlock()
	var got []int
	for range 6 {
		if e := tryCreate(t, c); e != nil {
			got = append(got, e.Refusals)
		} else {
			got = append(got, -1)
		}
	}
	// Tokens 2 and 3 came from refresh tokens and were refused. The next ones come from the account.
	must.Same(t, []int{1, 2, 3, -1, -1, -1}, got)
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

// A renewal may give a new refresh token and make the old one invalid, so the newest one is used.
func TestNewestRefreshTokenIsUsed(t *testing.T) { // faults 72, 73
	s := &issuer{}
	c, elapsed := issue(t, s)
	want := []string{byAccount}
	for renewals := range 4 {
		succeeds(t, c)
		s.want(want...)
		elapsed.Add(int64(3 * time.Hour))
		want = append(want, fmt.Sprintf("refresh_token+r/%d", renewals+1))
	}
}

// memoryStore is a TokenStore in memory that can fail.
type memoryStore struct {
	mu     sync.Mutex
	kept   oauth2.Token
	locked error // Renew fails before renew runs
	lost   error // Renew fails after renew ran, and keeps nothing
}

func (s *memoryStore) Renew(_ context.Context, renew func(oauth2.Token) oauth2.Token) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.locked != nil {
		return s.locked
	}
	next := renew(s.kept)
	if s.lost == nil {
		s.kept = next
	}
	return s.lost
}

// issueOn starts an issuer and one Client for each store, all with the same clock.
func issueOn(t *testing.T, s *issuer, stores ...TokenStore) ([]*Client, *atomic.Int64) {
	t.Helper()
	first, elapsed := issue(t, s)
	clients := make([]*Client, len(stores))
	for i, store := range stores {
		c := config("http://" + first.general.address)
		c.Now, c.Tokens = first.config.Now, store
		clients[i] = connect(t, c)
	}
	return clients, elapsed
}

// faults 72, 125, N11: processes use the token that one of them got, at first and after a renewal.
func TestProcessesShareAToken(t *testing.T) {
	store := &memoryStore{}
	s := &issuer{}
	c, elapsed := issueOn(t, s, store, store, store)
	for _, client := range c {
		succeeds(t, client)
	}
	s.want(byAccount)
	elapsed.Store(int64(2*time.Hour + 24*time.Minute)) // four fifths of its life
	for _, client := range c {
		tryCreate(t, client)
	}
	s.want(byAccount, "refresh_token+r/1")
	elapsed.Add(int64(3 * time.Hour)) // expired for all
	for i := range c {
		tryCreate(t, c[len(c)-1-i])
	}
	s.want(byAccount, "refresh_token+r/1", "refresh_token+r/2")
	must.Same(t, int64(9), s.creates.Load(), "creates accepted")
}

// faults 71, 72: a refused token is renewed once for all processes, and never taken from the store again.
func TestRefusedTokenIsNotTakenOver(t *testing.T) {
	store := &memoryStore{}
	var revoked atomic.Int64
	s := &issuer{good: func(token int) bool { return int64(token) > revoked.Load() }}
	c, _ := issueOn(t, s, store, store)
	tryCreate(t, c[0])
	tryCreate(t, c[1])
	revoked.Store(1)
	for _, client := range c {
		if e := tryCreate(t, client); e == nil || e.Status != 401 || e.Refusals != 0 {
			t.Errorf("a revoked token: %v", e)
		}
	}
	for _, client := range c {
		succeeds(t, client)
	}
	s.want(byAccount, "refresh_token+r/1")
}

// fault 77: stored times are only hints. A token whose times do not fit the clock is renewed.
func TestStoredTokenTimesAreHints(t *testing.T) {
	now := time.Now().Round(0)
	kept := func(issued, life time.Duration) oauth2.Token {
		return oauth2.Token{AccessToken: access + "0", RefreshToken: "+r/0", Expiry: now.Add(issued + life), ExpiresIn: int64(life.Seconds())}
	}
	for name, test := range map[string]struct {
		kept  oauth2.Token
		taken bool
	}{
		"young":               {kept(-time.Hour, 3*time.Hour), true},
		"just issued":         {kept(0, 3*time.Hour), true},
		"four fifths over":    {kept(-145*time.Minute, 3*time.Hour), false},
		"over":                {kept(-4*time.Hour, 3*time.Hour), false},
		"clock back a day":    {kept(23*time.Hour, 3*time.Hour), false},
		"clock on a day":      {kept(-25*time.Hour, 3*time.Hour), false},
		"no times":            {oauth2.Token{AccessToken: access + "0", RefreshToken: "+r/0"}, false},
		"ends before it came": {kept(-time.Hour, -time.Hour), false},
		"a year long":         {kept(-time.Hour, 8760*time.Hour), false},
		"not a token":         {oauth2.Token{AccessToken: "a\r\nb", RefreshToken: "+r/0", Expiry: now.Add(time.Hour), ExpiresIn: 3600}, false},
	} {
		s := &issuer{}
		c, _ := issueOn(t, s, &memoryStore{kept: test.kept})
		c[0].keeper.now = func() time.Time { return now }
		succeeds(t, c[0])
		must.Same(t, test.taken, len(s.grants) == 0, name)
		if !test.taken {
			s.want("refresh_token+r/0")
		}
	}
}

// fault 73: if a renewal fails, no other process tries the same refresh token again.
func TestSpentRefreshTokenIsForgotten(t *testing.T) {
	ended := time.Now().Add(-21 * time.Hour)
	expired := oauth2.Token{AccessToken: access + "0", RefreshToken: "+r/0", Expiry: ended, ExpiresIn: 10800}
	store := &memoryStore{kept: expired}
	down := true
	s := &issuer{grant: func(q url.Values) (int, string) {
		if down {
			return 500, ""
		}
		return 0, ""
	}}
	c, _ := issueOn(t, s, store, store)
	if e := tryCreate(t, c[0]); e == nil || e.Op != "token" {
		t.Errorf("%v", e)
	}
	must.Same(t, "", store.kept.RefreshToken, "the next process would try it again")
	down = false
	succeeds(t, c[1])
	s.want("refresh_token+r/0", byAccount, byAccount)
	must.Same(t, []any{access + "3", "+r/3"}, []any{store.kept.AccessToken, store.kept.RefreshToken}, store.kept, "kept")
}

// If the token store fails, the run goes on with tokens of its own, and never with an older token from the store.
func TestRunGoesOnWithoutItsTokenStore(t *testing.T) {
	for _, store := range []*memoryStore{{locked: errors.New("x")}, {lost: errors.New("x")}} {
		store.kept = oauth2.Token{AccessToken: access + "0", RefreshToken: "+r/0", Expiry: time.Now().Add(-time.Hour), ExpiresIn: 10800}
		s := &issuer{}
		c, elapsed := issueOn(t, s, store)
		succeeds(t, c[0])
		elapsed.Add(int64(150 * time.Minute))
		succeeds(t, c[0])
		if store.locked != nil {
			s.want(byAccount, "refresh_token+r/1")
		} else {
			s.want("refresh_token+r/0", "refresh_token+r/1")
		}
	}
}

// busyStore is a TokenStore that another process has locked.
type busyStore struct{}

func (busyStore) Renew(ctx context.Context, _ func(oauth2.Token) oauth2.Token) error {
	<-ctx.Done()
	return ctx.Err()
}

// If another process holds the store's lock, a call waits only as long as a request may take. A call canceled meanwhile
// sends nothing.
func TestWaitForTheTokenStoreEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fetched := 0
		k := &keeper{lock: make(chan struct{}, 1), now: time.Now, store: busyStore{}, patience: time.Minute, fetch: func(context.Context, string, string) (*oauth2.Token, *Error) {
			fetched++
			return &oauth2.Token{AccessToken: access, Expiry: time.Now().Add(time.Hour)}, nil
		}}
		ctx, giveUp := context.WithTimeout(t.Context(), time.Second)
		defer giveUp()
		if _, err := k.get(ctx); !errors.Is(err, context.DeadlineExceeded) || fetched != 0 {
			t.Errorf("%v, %d token requests", err, fetched)
		}
		began := time.Now()
		if _, err := k.get(t.Context()); err != nil || fetched != 1 || time.Since(began) != time.Minute {
			t.Errorf("%v, %d token requests after %v", err, fetched, time.Since(began))
		}
	})
}

// fault 78: without a leads URL nothing is created, but signing in works.
func TestClientWithoutLeadsURLSignsIn(t *testing.T) {
	s := &issuer{}
	first, _ := issue(t, s)
	c := config("http://" + first.general.address)
	c.LeadsURL, c.TrunkID = "", ""
	client := connect(t, c)
	must.Do(t, client.SignIn(t.Context()))
	if e := tryCreate(t, client); e == nil || e.Applied != No || e.Reason != ReasonRefused || s.creates.Load() != 0 {
		t.Errorf("%v", e)
	}
	s.want(byAccount)
}
