package sandbox

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"maps"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
)

// use is what a token is good for.
type use string

const (
	accessUse use = "access"
	loginUse  use = "login" // makes one OAuth client
)

// authority issues tokens and judges them ("Authentication"). Access and temporary tokens carry their
// expiry under a signature; refresh tokens are remembered, and are good once.
type authority struct {
	key                     []byte
	now                     func() time.Time
	accessLife, refreshLife time.Duration

	mu      sync.Mutex
	age     int
	refresh map[string]grant
	spent   map[string]time.Time // temporary tokens that were used, until they expire
}

// grant is what stands behind a refresh token.
type grant struct {
	client string
	until  time.Time
}

// claims is the payload of a token. Expires counts milliseconds, so that tests may be impatient.
type claims struct {
	Subject string `json:"sub"`
	Use     use    `json:"use"`
	Nonce   string `json:"jti"`
	Expires int64  `json:"exp_ms"`
	Age     int    `json:"age"` // how many times tokens were revoked before
}

// header says what signs the tokens: {"alg":"HS256","typ":"JWT"}.
const header = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9."

func (a *authority) issue(u use, subject string, life time.Duration) string {
	payload, _ := json.Marshal(claims{subject, u, rand.Text(), a.now().Add(life).UnixMilli(), a.currentAge()})
	signed := header + base64.RawURLEncoding.EncodeToString(payload)
	return signed + "." + a.sign(signed)
}

func (a *authority) sign(s string) string {
	mac := hmac.New(sha256.New, a.key)
	mac.Write([]byte(s))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// admit refuses a request that does not carry a living token of the use as its bearer ("Errors", 401).
func (a *authority) admit(r *http.Request, u use) error {
	headers := r.Header.Values("Authorization")
	if len(headers) != 1 {
		return refuse(http.StatusUnauthorized, "one Authorization header with a bearer token is required")
	}
	c, ok := a.read(bearer(headers[0]))
	switch {
	case !ok || c.Use != u || c.Age < a.currentAge():
		return refuse(http.StatusUnauthorized, "the token is not accepted")
	case a.now().UnixMilli() >= c.Expires:
		return refuse(http.StatusUnauthorized, "the token has expired")
	}
	return nil
}

func (a *authority) currentAge() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.age
}

// revoke ends the life of every access and temporary token, and returns the refusal that says so.
func (a *authority) revoke() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.age++
	return refuse(http.StatusUnauthorized, "the token is not accepted")
}

func bearer(h string) string {
	scheme, token, _ := strings.Cut(h, " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return token
}

func (a *authority) read(token string) (c claims, ok bool) {
	dot := strings.LastIndexByte(token, '.')
	if dot < len(header) || !strings.HasPrefix(token, header) {
		return c, false
	}
	signed, mac := token[:dot], token[dot+1:]
	if !hmac.Equal([]byte(mac), []byte(a.sign(signed))) {
		return c, false
	}
	payload, err := base64.RawURLEncoding.DecodeString(signed[len(header):])
	return c, err == nil && json.Unmarshal(payload, &c) == nil
}

// spend uses up the temporary token of an admitted request.
func (a *authority) spend(r *http.Request) error {
	c, _ := a.read(bearer(r.Header.Get("Authorization")))
	now := a.now()
	a.mu.Lock()
	defer a.mu.Unlock()
	maps.DeleteFunc(a.spent, func(_ string, until time.Time) bool { return now.After(until) })
	if _, used := a.spent[c.Nonce]; used {
		return refuse(http.StatusUnauthorized, "the temporary token was used before")
	}
	a.spent[c.Nonce] = time.UnixMilli(c.Expires)
	return nil
}

func (a *authority) issueRefresh(client string) string {
	token, now := rand.Text(), a.now()
	a.mu.Lock()
	defer a.mu.Unlock()
	maps.DeleteFunc(a.refresh, func(_ string, g grant) bool { return !now.Before(g.until) })
	a.refresh[token] = grant{client, now.Add(a.refreshLife)}
	return token
}

// redeem uses up a refresh token. It reports whether it was the client's and alive.
func (a *authority) redeem(token, client string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	g, found := a.refresh[token]
	if !found || g.client != client {
		return false
	}
	delete(a.refresh, token)
	return a.now().Before(g.until)
}
