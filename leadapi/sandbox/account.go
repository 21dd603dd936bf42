package sandbox

import (
	"crypto/rand"
	"net/http"
	"net/url"
	"strings"
	"time"

	"go.etcd.io/bbolt"
)

// The built-in service account and its OAuth client. They open nothing but a sandbox.
const (
	Email        = "sandbox@example.com"
	Password     = "sandbox-password"
	ClientID     = "6c1868f0-d431-472d-b951-cfa7f6ec15bd"
	ClientSecret = "sandbox-secret"
)

const accountID = "1f5f1573-3e36-43ab-81be-5112f6c70655"

// The default lifetimes ("Limits"); that of the temporary token is not shown there.
const (
	accessLife  = 3 * time.Hour
	refreshLife = 3 * 24 * time.Hour
	loginLife   = 15 * time.Minute
)

// use is what a token is good for.
type use int

const (
	accessUse  use = iota + 1
	refreshUse     // makes one access token and the next refresh token
	loginUse       // makes one OAuth client
)

// grant is what a token stands for ("Authentication").
type grant struct {
	use     use
	owner   string // OAuth client or account
	expires time.Time
}

func (s *Server) issue(u use, owner string, life time.Duration) (token string) {
	token = rand.Text()
	s.grants.Store(token, grant{u, owner, s.now().Add(life)})
	return token
}

// find returns the grant of a living token.
func (s *Server) find(u use, token string) (g grant, alive bool) {
	v, _ := s.grants.Load(token)
	g, _ = v.(grant)
	return g, g.use == u && s.now().Before(g.expires)
}

// spend uses up a token that is good once, and reports whether it was alive and the owner's.
func (s *Server) spend(u use, token, owner string) bool {
	g, alive := s.find(u, token)
	return alive && g.owner == owner && s.grants.CompareAndDelete(token, g)
}

// revoke ends the life of every access and temporary token.
func (s *Server) revoke() {
	s.grants.Range(func(token, g any) bool {
		if g.(grant).use != refreshUse {
			s.grants.Delete(token)
		}
		return true
	})
}

// admit refuses a request that does not carry a living token of the use as its bearer ("Errors", 401).
func (s *Server) admit(r *http.Request, u use) error {
	headers := r.Header.Values("Authorization")
	if len(headers) != 1 {
		return refuse(http.StatusUnauthorized, "one Authorization header with a bearer token is required")
	}
	if _, alive := s.find(u, bearer(headers[0])); !alive {
		return refuse(http.StatusUnauthorized, "the token is not accepted, or has expired")
	}
	return nil
}

func bearer(header string) string {
	scheme, token, _ := strings.Cut(header, " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return token
}

// login exchanges e-mail and password for a temporary token ("1. Login"), and takes no Authorization header.
func (s *Server) login(c call) (answer, error) {
	if c.Header.Get("Authorization") != "" {
		return answer{}, refuse(http.StatusBadRequest, "login takes no Authorization header")
	}
	var b struct {
		Email    *string `json:"email"`
		Password *string `json:"password"`
	}
	if err := c.read(&b); err != nil {
		return answer{}, err
	}
	if b.Email == nil || b.Password == nil {
		return answer{}, refuse(http.StatusBadRequest, "email and password are required")
	}
	if *b.Email != Email || *b.Password != Password {
		return answer{}, refuse(http.StatusUnauthorized, "the e-mail address or the password is wrong")
	}
	return respond(http.StatusOK, struct{ Token string }{s.issue(loginUse, accountID, loginLife)}), nil
}

// client makes an OAuth client ("2. Create OAuth client"). Only a digest of its secret is kept.
func (s *Server) client(c call) (answer, error) {
	if len(c.body) > 0 {
		return answer{}, refuse(http.StatusBadRequest, "this address takes no body")
	}
	if !s.spend(loginUse, bearer(c.Header.Get("Authorization")), accountID) {
		return answer{}, refuse(http.StatusUnauthorized, "the temporary token was used before")
	}
	id, secret, at := newID(uint64(s.now().UnixMilli())), rand.Text(), s.now().UTC().Format(timeLayout)
	if err := s.store.Update(func(tx *bbolt.Tx) error { return putClient(tx, id, secret) }); err != nil {
		return answer{}, err
	}
	return respond(http.StatusOK, struct {
		ID                                   string
		ReadOnly                             bool
		CreatedAt, UpdatedAt, Secret, Domain string
		UserID                               string
	}{ID: id, CreatedAt: at, UpdatedAt: at, Secret: secret, UserID: accountID}), nil
}

// token grants tokens ("3. Generate access and refresh tokens", "4. Refresh access token").
func (s *Server) token(c call) (answer, error) {
	if len(c.body) > 0 {
		return answer{}, oauthRefusal("invalid_request", "this address takes no body")
	}
	q, err := tokenQuery(c.URL.RawQuery)
	if err != nil {
		return answer{}, err
	}
	id := q.Get("client_id")
	if !s.store.isClient(id, q.Get("client_secret")) {
		return answer{}, oauthRefusal("invalid_client", "the client or its secret is not known")
	}
	if q.Get("grant_type") == "refresh_token" && !s.spend(refreshUse, q.Get("refresh_token"), id) {
		return answer{}, oauthRefusal("invalid_grant", "the refresh token has expired, was used before or is not known")
	}
	return respond(http.StatusOK, struct {
		AccessToken  string `json:"access_token"`
		ExpiresIn    int    `json:"expires_in"`
		RefreshToken string `json:"refresh_token"`
		TokenType    string `json:"token_type"`
	}{s.issue(accessUse, id, accessLife), int(accessLife.Seconds()), s.issue(refreshUse, id, refreshLife), "Bearer"}), nil
}

// tokenQuery reads the parameters of a token request: those of its grant, each once, and no others.
func tokenQuery(raw string) (url.Values, error) {
	q, err := url.ParseQuery(raw)
	if err != nil {
		return nil, oauthRefusal("invalid_request", "the query cannot be read")
	}
	want := []string{"grant_type", "client_id", "client_secret"}
	switch q.Get("grant_type") {
	case "client_credentials":
	case "refresh_token":
		want = append(want, "refresh_token")
	default:
		return nil, oauthRefusal("unsupported_grant_type", "grant_type must be client_credentials or refresh_token")
	}
	for _, name := range want {
		if len(q[name]) != 1 || q.Get(name) == "" {
			return nil, oauthRefusal("invalid_request", name+" is required, once")
		}
	}
	if len(q) > len(want) {
		return nil, oauthRefusal("invalid_request", "the query has a parameter too many")
	}
	return q, nil
}

// oauthRefusal is a refusal with a code that OAuth gives.
func oauthRefusal(code, reason string) error {
	status := http.StatusBadRequest
	if code == "invalid_client" {
		status = http.StatusUnauthorized
	}
	return &refusal{status: status, code: code, reason: reason}
}
