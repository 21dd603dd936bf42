package sandbox

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// The built-in service account and its OAuth client. They open nothing but a sandbox.
const (
	Email        = "sandbox@example.com"
	Password     = "sandbox-password"
	ClientID     = "6c1868f0-d431-472d-b951-cfa7f6ec15bd"
	ClientSecret = "sandbox-secret"
)

// accountID is the UserID of the service account.
const accountID = "1f5f1573-3e36-43ab-81be-5112f6c70655"

// The default lifetimes ("Limits"); that of the temporary token is not shown there.
const (
	accessLife  = 3 * time.Hour
	refreshLife = 3 * 24 * time.Hour
	loginLife   = 15 * time.Minute
)

// newAuthority signs with the key of the file, so that tokens outlive the process.
func newAuthority(st *store, o Options) (*authority, error) {
	key := make([]byte, sha256.Size)
	_, _ = rand.Read(key)
	key, err := st.secret("key", key)
	if err != nil {
		return nil, err
	}
	secret := sha256.Sum256([]byte(ClientSecret))
	if _, err := st.secret(ClientID, secret[:]); err != nil {
		return nil, err
	}
	return &authority{
		key: key, now: o.Now,
		accessLife:  cmp.Or(o.AccessLife, accessLife),
		refreshLife: cmp.Or(o.RefreshLife, refreshLife),
		refresh:     map[string]grant{}, spent: map[string]time.Time{},
	}, nil
}

// login exchanges e-mail and password for a temporary token ("1. Login"), and takes no Authorization header.
func (s *Server) login(c call) (answer, error) {
	if c.Header.Get("Authorization") != "" {
		return answer{}, refuse(http.StatusBadRequest, "login takes no Authorization header")
	}
	f, err := parseBody(c.Header, c.body, fields{"email": text, "password": text})
	if err != nil {
		return answer{}, err
	}
	for _, name := range []string{"email", "password"} {
		if _, err := f.required(name); err != nil {
			return answer{}, err
		}
	}
	if f.text("email") != Email || f.text("password") != Password {
		return answer{}, refuse(http.StatusUnauthorized, "the e-mail address or the password is wrong")
	}
	return respond(http.StatusOK, struct{ Token string }{s.authority.issue(loginUse, accountID, loginLife)})
}

// client makes an OAuth client ("2. Create OAuth client"). Only a digest of its secret is kept.
func (s *Server) client(c call) (answer, error) {
	if len(c.body) > 0 {
		return answer{}, refuse(http.StatusBadRequest, "this address takes no body")
	}
	if err := s.authority.spend(c.Request); err != nil {
		return answer{}, err
	}
	id, secret, at := randomID().String(), rand.Text(), timestamp(s.now())
	hash := sha256.Sum256([]byte(secret))
	if _, err := s.store.secret(id, hash[:]); err != nil {
		return answer{}, err
	}
	return respond(http.StatusOK, struct {
		ID                                   string
		ReadOnly                             bool
		CreatedAt, UpdatedAt, Secret, Domain string
		UserID                               string
	}{ID: id, CreatedAt: at, UpdatedAt: at, Secret: secret, UserID: accountID})
}

// token grants tokens ("3. Generate access and refresh tokens", "4. Refresh access token").
func (s *Server) token(c call) (answer, error) {
	if len(c.body) > 0 {
		return answer{}, oauthRefusal(http.StatusBadRequest, "invalid_request", "this address takes no body")
	}
	q, err := tokenQuery(c.URL.RawQuery)
	if err != nil {
		return answer{}, err
	}
	id := q["client_id"]
	secret := sha256.Sum256([]byte(q["client_secret"]))
	switch known, err := s.store.known(id, secret[:]); {
	case err != nil:
		return answer{}, err
	case !known || id == "":
		return answer{}, oauthRefusal(http.StatusUnauthorized, "invalid_client", "the client or its secret is not known")
	}
	if q["grant_type"] == "refresh_token" && !s.authority.redeem(q["refresh_token"], id) {
		return answer{}, oauthRefusal(http.StatusBadRequest, "invalid_grant", "the refresh token has expired, was used before or is not known")
	}
	return respond(http.StatusOK, struct {
		AccessToken  string         `json:"access_token"`
		ExpiresIn    jsontext.Value `json:"expires_in,omitzero"`
		RefreshToken string         `json:"refresh_token"`
		TokenType    string         `json:"token_type"`
	}{
		s.authority.issue(accessUse, id, s.authority.accessLife),
		s.faults.expiresIn(s.authority.accessLife), s.authority.issueRefresh(id), "Bearer",
	})
}

// tokenQuery reads the parameters of a token request: exactly those of its grant, each once.
func tokenQuery(raw string) (map[string]string, error) {
	values, err := url.ParseQuery(raw)
	if err != nil {
		return nil, oauthRefusal(http.StatusBadRequest, "invalid_request", "the query cannot be read")
	}
	want := []string{"grant_type", "client_id", "client_secret"}
	switch values.Get("grant_type") {
	case "client_credentials":
	case "refresh_token":
		want = append(want, "refresh_token")
	default:
		return nil, oauthRefusal(http.StatusBadRequest, "unsupported_grant_type", "grant_type must be client_credentials or refresh_token")
	}
	q := make(map[string]string, len(want))
	for name, vs := range values {
		if !slices.Contains(want, name) || len(vs) > 1 {
			return nil, oauthRefusal(http.StatusBadRequest, "invalid_request", "the query has a parameter too many")
		}
		q[name] = vs[0]
	}
	for _, name := range want {
		if q[name] == "" {
			return nil, oauthRefusal(http.StatusBadRequest, "invalid_request", fmt.Sprintf("%s is required", name))
		}
	}
	return q, nil
}

// oauthRefusal is a refusal with a code that OAuth gives.
func oauthRefusal(status int, code, reason string) error {
	return &refusal{status: status, code: code, reason: reason}
}
