package leadapi

import (
	"context"
	"time"

	"golang.org/x/oauth2"
)

// KeptToken is a token as it is kept for other processes. Its times are those of the machine's clock, which may have
// been set since: they are hints, and a 401 says more.
type KeptToken struct {
	Access, Refresh string // "" for none
	Issued, Expires time.Time
}

// TokenStore keeps the token of one account for several processes.
type TokenStore interface {
	// Renew calls renew once with the token kept, a zero one where there is none, and keeps what it returns. While renew
	// runs, no other process is in its own: so a refresh token is spent once. It waits for them until ctx ends. An error
	// means that renew has not run, or that what it returned is not kept.
	Renew(ctx context.Context, renew func(kept KeptToken) KeptToken) error
}

// lately tells whether a kept token can be used without renewing it: it was issued, by the clock, and four fifths of its
// life are not over.
func (t KeptToken) lately(now time.Time) bool {
	return validToken(t.Access) && !now.Before(t.Issued) && now.Before(t.renewAt())
}

// renewAt is when 80 % of the life of a token are over, at the earliest renewPause after it was issued.
func (t KeptToken) renewAt() time.Time {
	life := t.Expires.Sub(t.Issued)
	if life <= 0 || life > longestLife {
		return t.Issued
	}
	return t.Issued.Add(max(life*8/10, renewPause))
}

// renewal is what came of one renewal.
type renewal struct {
	token   *oauth2.Token
	issued  time.Time
	renewAt time.Time
	shared  bool // another process had it issued
	fault   *Error
}

// request renews the token: the one that another process has got meanwhile, or a new one, which is then kept for the others.
// The store is a convenience: where it cannot be used, the account signs in by itself.
func (k *keeper) request(ctx context.Context) (r renewal) {
	if k.store == nil {
		r, _ = k.ask(ctx)
		return r
	}
	waiting, stop := context.WithTimeout(ctx, k.patience)
	defer stop()
	asked, before, after := false, "", ""
	err := k.store.Renew(waiting, func(kept KeptToken) KeptToken {
		asked, before = true, kept.Access
		if k.takes(kept) {
			r = kept.renewal(k.now())
		} else {
			r, kept = k.replace(ctx, kept)
		}
		after = kept.Access
		return kept
	})
	switch {
	case asked && err == nil:
		k.see(after)
	case asked:
		k.see(before)
	case ctx.Err() != nil:
		r.fault = interrupted(ctx.Err(), "token", No)
	default:
		r, _ = k.ask(ctx)
	}
	return r
}

// replace asks for a token instead of the one kept, and returns what is to be kept now.
func (k *keeper) replace(ctx context.Context, kept KeptToken) (renewal, KeptToken) {
	r, spent := k.ask(ctx)
	if r.fault == nil {
		return r, KeptToken{r.token.AccessToken, r.token.RefreshToken, r.issued, r.token.Expiry}
	}
	if spent {
		kept.Refresh = ""
	}
	return r, kept
}

// renewal is the kept token as one that was just got. What is left of its life counts by the process's own clock from here.
func (t KeptToken) renewal(now time.Time) renewal {
	return renewal{
		token:   &oauth2.Token{AccessToken: t.Access, RefreshToken: t.Refresh, Expiry: now.Add(t.Expires.Sub(now))},
		renewAt: now.Add(t.renewAt().Sub(now)),
		shared:  true,
	}
}

// see notes what the store holds, so that what another process puts there is known.
func (k *keeper) see(access string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.seen = access
}

// takes tells whether a kept token serves instead of a new one: another process has put it there, lately. Of an older one it
// takes the refresh token: ours was spent for it.
func (k *keeper) takes(kept KeptToken) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if kept.Access == k.seen {
		return false
	}
	if kept.lately(k.now()) {
		return true
	}
	k.refresh = kept.Refresh
	return false
}
