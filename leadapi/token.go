package leadapi

import (
	"context"
	"sync"
	"time"

	"golang.org/x/oauth2"
)

// renewPause is the least time between two renewals that no 401 asked for.
const renewPause = 30 * time.Second

// keeper holds the token that all calls share, and renews it once for all of them.
type keeper struct {
	fetch    func(ctx context.Context, grant, refresh string) (*oauth2.Token, *Error)
	now      func() time.Time
	store    TokenStore    // nil: the token is this process's alone
	patience time.Duration // how long the store may wait for other processes

	mu       sync.Mutex
	token    *oauth2.Token // nil: none yet
	renewAt  time.Time     // 80 % of the token's life
	refresh  string        // "": none, or used up
	accepted bool          // a request with this token succeeded
	refused  bool          // a request with this token was answered 401
	seen     string        // the access token that the store held last
	refusals int           // tokens running that were refused and never accepted
	flight   *flight       // the renewal under way
}

// flight is one renewal, made by the call that found it needed; the others wait until it has landed.
type flight struct {
	landed chan struct{}
	token  *oauth2.Token
	fault  *Error
}

// source is the oauth2.TokenSource of one call: the keeper's token, renewed, where needed, under the call's context.
type source struct {
	ctx context.Context
	*keeper
}

var _ oauth2.TokenSource = source{}

// Token returns a token that is not known to be bad. Any error is an *[Error] with Op "token" and Applied No.
func (s source) Token() (*oauth2.Token, error) {
	for {
		token, f, leads := s.board()
		switch {
		case token != nil:
			return token, nil
		case leads:
			s.renew(s.ctx, f)
		default:
			select {
			case <-f.landed:
			case <-s.ctx.Done():
				return nil, interrupted(s.ctx.Err(), "token", No)
			}
			if f.fault != nil && f.fault.Reason == ReasonCanceled {
				continue // that was the leader's context, not ours
			}
		}
		if f.fault != nil {
			fault := *f.fault // each caller gets its own
			return nil, &fault
		}
		return f.token, nil
	}
}

// board returns the token to use or else the flight to wait for, which the caller must lead if it is a new one.
// A token that is to be renewed early is used on while that goes on.
func (k *keeper) board() (token *oauth2.Token, f *flight, leads bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.usable() && (k.flight != nil || k.now().Before(k.renewAt)) {
		return k.token, nil, false
	}
	if k.flight != nil {
		return nil, k.flight, false
	}
	k.flight = &flight{landed: make(chan struct{})}
	return nil, k.flight, true
}

func (k *keeper) usable() bool {
	return k.token != nil && !k.refused && k.now().Before(k.token.Expiry)
}

// renew leads a flight. When an early renewal fails, the token at hand serves on. A token that another process had issued
// counts as accepted: where it is refused, it has expired.
func (k *keeper) renew(ctx context.Context, f *flight) {
	r := k.request(ctx)
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case r.fault == nil:
		k.token, k.refresh, k.renewAt = r.token, r.token.RefreshToken, r.renewAt
		k.accepted, k.refused = r.shared, false
	case k.usable():
		r.token, r.fault = k.token, nil
		k.renewAt = k.now().Add(renewPause)
	}
	f.token, f.fault = r.token, r.fault
	k.flight = nil
	close(f.landed)
}

// ask asks for a token: by refresh token first, by client credentials when that fails. A refresh token is tried once, since
// the service may have used it up without our hearing of it (spent); not at all once two new tokens running were refused.
func (k *keeper) ask(ctx context.Context) (r renewal, spent bool) {
	k.mu.Lock()
	refresh, broken := k.refresh, k.refusals > 1
	k.mu.Unlock()
	if refresh != "" && !broken {
		r = k.get(ctx, "refresh_token", refresh)
		if r.fault == nil || r.fault.later() {
			return r, false
		}
		k.mu.Lock()
		k.refresh = ""
		k.mu.Unlock()
		spent = true
	}
	return k.get(ctx, "client_credentials", ""), spent
}

// get makes one token request.
func (k *keeper) get(ctx context.Context, grant, refresh string) (r renewal) {
	r.issued = k.now()
	r.token, r.fault = k.fetch(ctx, grant, refresh)
	if r.fault == nil {
		now := k.now()
		r.renewAt = now.Add(max(r.token.Expiry.Sub(now)*8/10, renewPause))
	}
	return r
}

// accept notes that a request with the token succeeded.
func (k *keeper) accept(token *oauth2.Token) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if token == k.token {
		k.accepted, k.refusals = true, 0
	}
}

// refuse notes that a request with the token was answered 401, so that the next call renews it, and returns how many
// newly issued tokens running were refused. A token that has been accepted before has merely expired.
func (k *keeper) refuse(token *oauth2.Token) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	if token == k.token && !k.refused {
		k.refused = true
		if !k.accepted {
			k.refusals++
		}
	}
	return k.refusals
}
