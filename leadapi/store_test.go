package leadapi

import (
	"context"
	"errors"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/oauth2"
)

// shelf is a TokenStore in memory. It may be told to fail.
type shelf struct {
	mu     sync.Mutex
	kept   oauth2.Token
	locked error // Renew fails before renew runs
	lost   error // Renew fails after it has, and keeps nothing
}

func (s *shelf) Renew(_ context.Context, renew func(oauth2.Token) oauth2.Token) error {
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

// issueOn starts an issuer and as many Clients of it as there are stores, all by one clock.
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

// faults 72, 125, N11: what one process got, the next ones use, at first and after a renewal.
func TestProcessesTakeOverTheToken(t *testing.T) {
	store := &shelf{}
	s := &issuer{}
	c, elapsed := issueOn(t, s, store, store, store)
	for _, client := range c {
		if e := fault(t, client); e != nil {
			t.Fatal(e)
		}
	}
	s.want(byAccount)
	elapsed.Store(int64(2*time.Hour + 24*time.Minute)) // four fifths of its life
	for _, client := range c {
		fault(t, client)
	}
	s.want(byAccount, "refresh_token+r/1")
	elapsed.Add(int64(3 * time.Hour)) // over for all
	for i := range c {
		fault(t, c[len(c)-1-i])
	}
	s.want(byAccount, "refresh_token+r/1", "refresh_token+r/2")
	if s.creates.Load() != 9 {
		t.Errorf("%d creates accepted, want 9", s.creates.Load())
	}
}

// faults 71, 72: a token that was refused is renewed, once for all processes; it is never taken over again.
func TestRefusedTokenIsNotTakenOver(t *testing.T) {
	store := &shelf{}
	var revoked atomic.Int64
	s := &issuer{good: func(token int) bool { return int64(token) > revoked.Load() }}
	c, _ := issueOn(t, s, store, store)
	fault(t, c[0])
	fault(t, c[1])
	revoked.Store(1)
	for _, client := range c {
		if e := fault(t, client); e == nil || e.Status != 401 || e.Refusals != 0 {
			t.Errorf("a revoked token: %v", e)
		}
	}
	for _, client := range c {
		if e := fault(t, client); e != nil {
			t.Error(e)
		}
	}
	s.want(byAccount, "refresh_token+r/1")
}

// fault 77: times that were kept are hints. Where the clock has been set, a renewal or a 401 puts it right.
func TestKeptTimesAreHints(t *testing.T) {
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
		t.Run(name, func(t *testing.T) {
			s := &issuer{good: func(int) bool { return true }}
			c, _ := issueOn(t, s, &shelf{kept: test.kept})
			c[0].keeper.now = func() time.Time { return now }
			if e := fault(t, c[0]); e != nil {
				t.Fatal(e)
			}
			if test.taken {
				s.want()
			} else {
				s.want("refresh_token+r/0")
			}
		})
	}
}

// fault 73: a refresh token that was spent for nothing is spent for all processes.
func TestSpentRefreshTokenIsForgotten(t *testing.T) {
	store := &shelf{kept: oauth2.Token{AccessToken: access + "0", RefreshToken: "+r/0", Expiry: time.Now().Add(-21 * time.Hour), ExpiresIn: 10800}}
	down := true
	s := &issuer{grant: func(q url.Values) (int, string) {
		if down {
			return 500, ""
		}
		return 0, ""
	}}
	c, _ := issueOn(t, s, store, store)
	if e := fault(t, c[0]); e == nil || e.Op != "token" {
		t.Errorf("%v", e)
	}
	if store.kept.RefreshToken != "" {
		t.Error("the next process would try it again")
	}
	down = false
	if e := fault(t, c[1]); e != nil {
		t.Error(e)
	}
	s.want("refresh_token+r/0", byAccount, byAccount)
	if store.kept.AccessToken != access+"3" || store.kept.RefreshToken != "+r/3" {
		t.Errorf("kept: %+v", store.kept)
	}
}

// A store that fails costs a sign-in, never the run; and the token at hand is not exchanged for an older one.
func TestRunGoesOnWithoutItsStore(t *testing.T) {
	for name, store := range map[string]*shelf{"no lock": {locked: errors.New("x")}, "no room": {lost: errors.New("x")}} {
		t.Run(name, func(t *testing.T) {
			store.kept = oauth2.Token{AccessToken: access + "0", RefreshToken: "+r/0", Expiry: time.Now().Add(-time.Hour), ExpiresIn: 10800}
			s := &issuer{}
			c, elapsed := issueOn(t, s, store)
			if e := fault(t, c[0]); e != nil {
				t.Fatal(e)
			}
			elapsed.Add(int64(150 * time.Minute))
			if e := fault(t, c[0]); e != nil {
				t.Fatal(e)
			}
			if store.locked != nil {
				s.want(byAccount, "refresh_token+r/1")
			} else {
				s.want("refresh_token+r/0", "refresh_token+r/1")
			}
		})
	}
}

// busyStore is one whose lock another process has.
type busyStore struct{}

func (busyStore) Renew(ctx context.Context, _ func(oauth2.Token) oauth2.Token) error {
	<-ctx.Done()
	return ctx.Err()
}

// Another process that hangs holds nobody up for longer than a request may take; who gives up meanwhile sends nothing.
func TestWaitForTheStoreEnds(t *testing.T) {
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

// fault 78: without an address for leads nothing is created; signing in works all the same.
func TestClientWithoutLeadsURLSignsIn(t *testing.T) {
	s := &issuer{}
	first, _ := issue(t, s)
	c := config("http://" + first.general.address)
	c.LeadsURL, c.TrunkID = "", ""
	client := connect(t, c)
	if err := client.SignIn(t.Context()); err != nil {
		t.Fatal(err)
	}
	if e := fault(t, client); e == nil || e.Applied != No || e.Reason != ReasonRefused || s.creates.Load() != 0 {
		t.Errorf("%v", e)
	}
	s.want(byAccount)
}
