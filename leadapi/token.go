package leadapi

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/oauth2"
)

// OAuthClient is what CreateOAuthClient returns (section "OAuth client"). The service never shows Secret again.
type OAuthClient struct{ ID, Secret string }

// Login exchanges a service account's e-mail and password for a temporary token (section "1. Login").
func (c *Client) Login(ctx context.Context, email, password string) (token string, err error) {
	_, fault := c.do(ctx, request{
		op: "login", method: http.MethodPost, host: c.general, target: c.base + "/v3/oauth2/login",
		success: http.StatusOK, content: func(b []byte) []byte {
			return append(appendMember(appendMember(append(b, '{'), "email", email), "password", password), '}')
		},
	}, func(body []byte) bool {
		token = validText(fieldsOf(body)["Token"], validToken)
		return token != ""
	})
	if fault != nil {
		return "", fault
	}
	return token, nil
}

// CreateOAuthClient makes an OAuth client with the token that Login returned (section "2. Create OAuth client").
func (c *Client) CreateOAuthClient(ctx context.Context, jwt string) (*OAuthClient, error) {
	client := new(OAuthClient)
	_, fault := c.do(ctx, request{
		op: "client", method: http.MethodPost, host: c.general, target: c.base + "/v3/oauth2/client", bearer: jwt,
		success: http.StatusCreated,
	}, func(body []byte) bool {
		a := fieldsOf(body)
		client.ID, client.Secret = validText(a["ID"], ValidID), textOf(a["Secret"])
		return client.ID != "" && client.Secret != ""
	})
	if fault != nil {
		return nil, fault
	}
	return client, nil
}

// SignIn gets a token unless there is a good one, so that a wrong account is found before the first lead.
func (c *Client) SignIn(ctx context.Context) error {
	if _, fault := c.keeper.get(ctx); fault != nil {
		return fault
	}
	return nil
}

// fetch makes one token request (sections 3 and 4). The life of the token counts from before that request.
func (c *Client) fetch(ctx context.Context, grant, refresh string) (*oauth2.Token, *Error) {
	query := url.Values{
		"grant_type": {grant}, "client_id": {c.config.ClientID},
		"client_secret": {c.config.ClientSecret},
	}
	if refresh != "" {
		query.Set("refresh_token", refresh)
	}
	token, began := new(oauth2.Token), c.config.Now()
	_, fault := c.do(ctx, request{
		op: "token", method: http.MethodPost, host: c.general, target: c.base + "/v3/oauth2/token?" + query.Encode(),
		success: http.StatusOK,
	}, func(body []byte) bool {
		a := fieldsOf(body)
		token.AccessToken = validText(a["access_token"], validToken)
		token.RefreshToken = validText(a["refresh_token"], validToken)
		// The announced life is a hint: nonsense counts as the specified default, and a life too short to work with is
		// stretched, since a 401 renews the token in any case.
		seconds, _ := strconv.ParseFloat(string(a["expires_in"]), 64)
		if !(seconds > 0 && seconds <= longestLife.Seconds()) {
			seconds = defaultLife.Seconds()
		}
		token.ExpiresIn = int64(max(seconds, renewPause.Seconds()))
		return token.AccessToken != ""
	})
	if fault != nil {
		fault.Applied = No // nothing of the lead request has left
		return nil, fault
	}
	token.Expiry = began.Add(life(token))
	return token, nil
}

// TokenStore keeps the token of one account for several processes. The times of a kept token are only hints, because
// somebody may have set the machine's clock: a 401 says more.
type TokenStore interface {
	// Renew calls renew once with the kept token, or a zero one, and keeps what it returns. While renew runs, no other
	// process runs its own, so a refresh token is spent once. Renew waits for other processes until ctx ends. An error
	// means that renew has not run, or that what it returned is not kept.
	Renew(ctx context.Context, renew func(kept oauth2.Token) oauth2.Token) error
}

// keeper holds the token that all calls share, and renews it once for all of them.
type keeper struct {
	fetch    func(ctx context.Context, grant, refresh string) (*oauth2.Token, *Error)
	now      func() time.Time
	store    TokenStore    // nil: no other process shares the token
	patience time.Duration // how long the store may wait for other processes

	renewals atomic.Int64  // how many have ended
	lock     chan struct{} // held by a call that reads or changes the fields below, also while it renews the token
	token    *oauth2.Token // nil: none yet
	state    tokenState
	renewAt  time.Time // from then on it is renewed, although it is still good
	fault    *Error    // of the last renewal
	refusals int       // new tokens in a row that were refused
	refresh  string    // "": none, or used up
	stored   string    // the access token that the store held last
}

// tokenState is what the service has said of the token at hand.
type tokenState uint8

const (
	tokenNew      tokenState = iota // nothing
	tokenAccepted                   // a request with it succeeded
	tokenRefused                    // a request with it was answered 401
)

// get returns a token that is not known to be bad. Its error has Op "token" and Applied No. The first call that needs a
// renewal makes it; the others wait for it and share its result. If an early renewal fails, the token stays in use. A
// token of another process counts as accepted: if it is refused, it has expired.
func (k *keeper) get(ctx context.Context) (*oauth2.Token, *Error) {
	renewals := k.renewals.Load()
	select {
	case k.lock <- struct{}{}:
		defer func() { <-k.lock }()
	case <-ctx.Done():
		return nil, interrupted(ctx.Err(), "token", No)
	}
	now := k.now()
	usable := k.token != nil && k.state != tokenRefused && now.Before(k.token.Expiry)
	switch {
	case usable && now.Before(k.renewAt):
		return k.token, nil
	case k.renewals.Load() > renewals && k.fault != nil:
		fault := *k.fault // each caller gets its own
		return nil, &fault
	}
	token, state, fault := k.request(ctx)
	switch {
	case fault == nil:
		k.token, k.state, k.renewAt, k.refresh = token, state, renewAt(token), token.RefreshToken
	case usable:
		k.renewAt = k.now().Add(renewPause)
	case fault.Reason == ReasonCanceled: // this call's own end: the next one starts again
		return nil, fault
	default:
		shared := *fault
		k.renewals.Add(1)
		k.fault = &shared
		return nil, fault
	}
	k.renewals.Add(1)
	k.fault = nil
	return k.token, nil
}

// request returns the token that another process has got meanwhile, or a new one, which it keeps for others. If the
// store fails, the account signs in without it.
func (k *keeper) request(ctx context.Context) (token *oauth2.Token, state tokenState, fault *Error) {
	asked := false
	renew := func(kept oauth2.Token) oauth2.Token {
		asked = true
		if kept.AccessToken != k.stored { // another process has put it there
			k.stored, k.refresh = kept.AccessToken, kept.RefreshToken // ours was spent for it
			now := k.now()
			if validToken(kept.AccessToken) && !now.Before(issued(&kept)) && now.Before(renewAt(&kept)) {
				token, state = &kept, tokenAccepted
				return kept
			}
		}
		if token, fault = k.ask(ctx); fault == nil {
			return *token
		}
		if k.refresh == "" {
			kept.RefreshToken = ""
		}
		return kept
	}
	if k.store != nil {
		waiting, stop := context.WithTimeout(ctx, k.patience)
		defer stop()
		if err := k.store.Renew(waiting, renew); asked && err == nil && fault == nil {
			k.stored = token.AccessToken
		}
	}
	switch {
	case !asked && ctx.Err() != nil:
		fault = interrupted(ctx.Err(), "token", No)
	case !asked:
		token, fault = k.ask(ctx)
	}
	return token, state, fault
}

// life returns how long a token lives from when it was issued.
func life(t *oauth2.Token) time.Duration { return time.Duration(t.ExpiresIn) * time.Second }

func issued(t *oauth2.Token) time.Time { return t.Expiry.Add(-life(t)) }

// renewAt returns when 80 % of a token's life are over, but not before renewPause. An impossible life is over at once.
func renewAt(t *oauth2.Token) time.Time {
	if life(t) <= 0 || life(t) > longestLife {
		return issued(t)
	}
	return issued(t).Add(max(life(t)*8/10, renewPause))
}

// ask asks the service for a token, by refresh token first, then by client credentials. A refresh token is tried once:
// the service may have used it up without an answer. After two refused tokens it is not tried.
func (k *keeper) ask(ctx context.Context) (*oauth2.Token, *Error) {
	if k.refresh != "" && k.refusals < 2 {
		token, fault := k.fetch(ctx, "refresh_token", k.refresh)
		if fault == nil || fault.sparesRefreshToken() {
			return token, fault
		}
		k.refresh = ""
	}
	return k.fetch(ctx, "client_credentials", "")
}

// accept notes that a request with the token succeeded. While a renewal runs it notes nothing: answers must not wait.
func (k *keeper) accept(token *oauth2.Token) {
	select {
	case k.lock <- struct{}{}:
	default:
		return
	}
	defer func() { <-k.lock }()
	if token != k.token {
		return
	}
	k.refusals = 0
	if k.state == tokenNew {
		k.state = tokenAccepted
	}
}

// refuse notes that a request with the token was answered 401, so that the next call renews it. It returns how many new
// tokens were refused in a row. A token that was accepted before has only expired.
func (k *keeper) refuse(token *oauth2.Token) int {
	k.lock <- struct{}{}
	defer func() { <-k.lock }()
	if token != k.token {
		return k.refusals
	}
	if k.state == tokenNew {
		k.refusals++
	}
	k.state = tokenRefused
	return k.refusals
}

// validToken reports whether a header can hold the token: visible ASCII, at most 16 KiB.
func validToken(token string) bool {
	return token != "" && len(token) <= 16<<10 &&
		!strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' })
}
