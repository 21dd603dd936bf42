package leadapi

import (
	"context"
	"net/url"
	"strings"
	"time"

	"golang.org/x/oauth2"
)

// OAuthClient is the answer to CreateOAuthClient (section "OAuth client"). The service never shows Secret again.
type OAuthClient struct {
	ID        string `json:"ID"`
	ReadOnly  bool   `json:"ReadOnly"`
	CreatedAt string `json:"CreatedAt"`
	UpdatedAt string `json:"UpdatedAt"`
	Secret    string `json:"Secret"`
	Domain    string `json:"Domain"`
	UserID    string `json:"UserID"`
}

// Login exchanges a service account's e-mail and password for a temporary token (section "1. Login").
func (c *Client) Login(ctx context.Context, email, password string) (string, error) {
	body := append(appendText(appendText([]byte{'{'}, "email", email), "password", password), '}')
	var a struct {
		Token string `json:"Token"`
	}
	_, fault := c.do(ctx, call{
		op: "login", method: "POST", host: c.general, target: c.base + "/v3/oauth2/login", body: body, success: 200,
	}, func(body []byte) bool { return decode(body, &a) && validToken(a.Token) })
	if fault != nil {
		return "", fault
	}
	return a.Token, nil
}

// CreateOAuthClient makes an OAuth client with a temporary token (section "2. Create OAuth client"). It cannot be deleted here.
func (c *Client) CreateOAuthClient(ctx context.Context, jwt string) (*OAuthClient, error) {
	if !validToken(jwt) {
		return nil, &Error{Op: "client", Reason: ReasonRefused, Message: "the temporary token has characters that a token cannot have; nothing was sent"}
	}
	client := new(OAuthClient)
	_, fault := c.do(ctx, call{
		op: "client", method: "POST", host: c.general, target: c.base + "/v3/oauth2/client", bearer: jwt, success: 201,
	}, func(body []byte) bool { return decode(body, client) && validID(client.ID) && client.Secret != "" })
	if fault != nil {
		return nil, fault
	}
	return client, nil
}

// SignIn obtains a token, unless there is a good one already, so that a wrong account is found before the first lead.
func (c *Client) SignIn(ctx context.Context) error {
	_, err := source{ctx, c.keeper}.Token()
	return err
}

// fetch makes one token request (sections 3 and 4). The life of the token counts from before the request.
func (c *Client) fetch(ctx context.Context, grant, refresh string) (*oauth2.Token, *Error) {
	query := url.Values{"grant_type": {grant}, "client_id": {c.id}, "client_secret": {c.secret}}
	if refresh != "" {
		query.Set("refresh_token", refresh)
	}
	var a struct {
		Access  string  `json:"access_token"`
		Refresh string  `json:"refresh_token"`
		Seconds float64 `json:"expires_in"`
	}
	began := c.now()
	_, fault := c.do(ctx, call{
		op: "token", method: "POST", host: c.general, target: c.base + "/v3/oauth2/token?" + query.Encode(), success: 200,
	}, func(body []byte) bool { return decode(body, &a) && validToken(a.Access) })
	if fault != nil {
		fault.Applied = No // of the lead request that asked for a token, nothing has left
		return nil, fault
	}
	if !validToken(a.Refresh) {
		a.Refresh = ""
	}
	return &oauth2.Token{AccessToken: a.Access, RefreshToken: a.Refresh, Expiry: began.Add(lifetime(a.Seconds))}, nil
}

// longestLife is the longest life of a token that is believed.
const longestLife = 30 * 24 * time.Hour

// lifetime is how long a token is used. The service's word is a hint: nonsense counts as the specified default (section "Limits"),
// and a life too short to work with is stretched, since a 401 renews the token in any case.
func lifetime(seconds float64) time.Duration {
	if !(seconds > 0 && seconds <= longestLife.Seconds()) {
		return 3 * time.Hour
	}
	return max(time.Duration(seconds*float64(time.Second)), renewPause)
}

// validToken tells whether a token may stand in a header: visible ASCII, at most 16 KiB.
func validToken(token string) bool {
	return token != "" && len(token) <= 16<<10 && !strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' })
}
