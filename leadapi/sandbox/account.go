package sandbox

import (
	"crypto/rand"
	"net/http"
	"net/url"
	"strings"
	"time"

	"go.etcd.io/bbolt"
)

// The built-in service account and its OAuth client. Only a sandbox accepts them.
const (
	Email        = "sandbox@example.com"
	Password     = "sandbox-password"
	ClientID     = "6c1868f0-d431-472d-b951-cfa7f6ec15bd"
	ClientSecret = "sandbox-secret"
)

const accountID = "1f5f1573-3e36-43ab-81be-5112f6c70655"

// use is what a token is good for.
type use int

const (
	accessUse  use = iota + 1
	refreshUse     // makes one access token and the next refresh token
	loginUse       // makes one OAuth client

	accessLife  = 3 * time.Hour // the default lifetimes ("Limits", without the last)
	refreshLife = 3 * 24 * time.Hour
	loginLife   = 15 * time.Minute
)

// grant is what a token allows ("Authentication").
type grant struct {
	use     use
	owner   string // an OAuth client or the account
	expires time.Time
}

func (s *Server) issue(u use, owner string, life time.Duration) (token string) {
	token = rand.Text()
	s.grants.Store(token, grant{u, owner, s.options.now().Add(life)})
	return token
}

// find returns the grant of a token. alive: it is good for u, and has not expired.
func (s *Server) find(u use, token string) (g grant, alive bool) {
	v, _ := s.grants.Load(token)
	g, _ = v.(grant)
	return g, g.use == u && s.options.now().Before(g.expires)
}

// spend uses up a token that works only once. It reports whether the token was alive and belonged to the owner.
func (s *Server) spend(u use, token, owner string) bool {
	g, alive := s.find(u, token)
	return alive && g.owner == owner && s.grants.CompareAndDelete(token, g)
}

// revoke ends all access and temporary tokens.
func (s *Server) revoke() {
	s.grants.Range(func(token, g any) bool {
		if g.(grant).use != refreshUse {
			s.grants.Delete(token)
		}
		return true
	})
}

func bearer(r *http.Request) string {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return token
}

// login exchanges e-mail and password for a temporary token ("1. Login"), and takes no Authorization header.
func (s *Server) login(c call) answer {
	require(c.Header.Get("Authorization") == "", http.StatusBadRequest, "login takes no Authorization header")
	var b struct {
		Email    *string `json:"email"`
		Password *string `json:"password"`
	}
	c.read(&b)
	require(b.Email != nil && b.Password != nil, http.StatusBadRequest, "email and password are required")
	right := *b.Email == Email && *b.Password == Password
	require(right, http.StatusUnauthorized, "the e-mail address or the password is wrong")
	return respond(http.StatusOK, struct{ Token string }{s.issue(loginUse, accountID, loginLife)})
}

// client makes an OAuth client ("2. Create OAuth client"). Only a digest of its secret is kept.
func (s *Server) client(c call) answer {
	require(len(c.body) == 0, http.StatusBadRequest, "this address takes no body")
	fresh := s.spend(loginUse, bearer(c.Request), accountID)
	require(fresh, http.StatusUnauthorized, "the temporary token was used before")
	id, secret, at := newID(uint64(s.options.now().UnixMilli())), rand.Text(), s.options.now().UTC().Format(timeLayout)
	check(s.store.Update(func(tx *bbolt.Tx) error { return putClient(tx, id, secret) }))
	return respond(http.StatusOK, struct {
		ID, CreatedAt, UpdatedAt, Secret, Domain, UserID string
		ReadOnly                                         bool
	}{ID: id, CreatedAt: at, UpdatedAt: at, Secret: secret, UserID: accountID})
}

// token grants tokens ("3. Generate access and refresh tokens", "4. Refresh access token").
func (s *Server) token(c call) answer {
	oauth := func(ok bool, code, reason string) {
		if status := http.StatusBadRequest; !ok {
			if code == "invalid_client" {
				status = http.StatusUnauthorized
			}
			panic(&refusal{status: status, code: code, reason: reason})
		}
	}
	oauth(len(c.body) == 0, "invalid_request", "this address takes no body")
	q, err := url.ParseQuery(c.URL.RawQuery)
	oauth(err == nil, "invalid_request", "the query cannot be read")
	want, again := []string{"grant_type", "client_id", "client_secret"}, q.Get("grant_type") == "refresh_token"
	if again {
		want = append(want, "refresh_token")
	}
	known := again || q.Get("grant_type") == "client_credentials"
	oauth(known, "unsupported_grant_type", "grant_type must be client_credentials or refresh_token")
	for _, name := range want {
		oauth(len(q[name]) == 1 && q.Get(name) != "", "invalid_request", name+" is required, once")
	}
	oauth(len(q) == len(want), "invalid_request", "the query has a parameter too many")
	id := q.Get("client_id")
	oauth(s.store.isClient(id, q.Get("client_secret")), "invalid_client", "the client or its secret is not known")
	oauth(!again || s.spend(refreshUse, q.Get("refresh_token"), id), "invalid_grant",
		"the refresh token has expired, was used before or is not known")
	return respond(http.StatusOK, map[string]any{
		"access_token": s.issue(accessUse, id, accessLife), "expires_in": int(accessLife.Seconds()),
		"refresh_token": s.issue(refreshUse, id, refreshLife), "token_type": "Bearer",
	})
}
