package leadapi

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"time"

	"golang.org/x/oauth2"

	"leadferry/internal/testsupport/must"
)

func TestMessageIsWhatTheServiceSays(t *testing.T) { // faults 52, 118
	long := strings.Repeat("ä", 600)
	for body, want := range map[string]string{
		`{"message":"no such trunk"}`:                     "no such trunk",
		`{"Message":"no such trunk"}`:                     "no such trunk",
		`{"error":"invalid_client"}`:                      "invalid_client",
		`{"error":"e","error_description":"bad client"}`:  "bad client",
		`{"title":"Bad Request","detail":"name missing"}`: "name missing",
		`{"errors":["a"]}`:                                `{"errors":["a"]}`,
		`{"message":["a"]}`:                               `{"message":["a"]}`,
		"  plain text \n":                                 "plain text",
		"two\nlines\t\x1b[31mred\u202e\u200b":             `two\nlines\t\x1b[31mred\u202e\u200b`,
		"b\x00a\x00d\x00":                                 "a message that is no text",
		"bad \xff byte":                                   `bad \xff byte`,
		`{"message":"a\u001b[2Jb"}`:                       `a\x1b[2Jb`,
		"":                                                "no message was given",
		" ":                                               "no message was given",
		long:                                              long[:1000],
		strings.Repeat("\x01", 600):                       strings.Repeat(`\x01`, 125),
	} {
		must.Same(t, want, redact(words([]byte(body))), body)
	}
}

// If a request with credentials fails, the error shows only the status and a code of RFC 6749. fault 111
func TestAccountErrorsTellStatusAndCodeOnly(t *testing.T) {
	for body, want := range map[string]string{
		`{"error":"invalid_client","error_description":"no such secret: abc"}`: "status 400: invalid_client",
		`{"error":"invalid_grant"}`:   "status 400: invalid_grant",
		`{"error":"you said abc"}`:    "status 400: its words are not shown, for they may repeat a secret",
		`{"message":"account ended"}`: "status 400: its words are not shown, for they may repeat a secret",
		"":                            "status 400: no message was given",
	} {
		client := signedIn(t, config(answers(t, answerText(400, body)).address()))
		_, login := client.Login(t.Context(), "a@example.com", password)
		_, made := client.CreateOAuthClient(t.Context(), access)
		_, token := client.fetch(t.Context(), "client_credentials", "")
		for _, err := range []error{login, made, token} {
			if !strings.HasSuffix(err.Error(), want) {
				t.Errorf("%s: %v, want %s", body, err, want)
			}
		}
	}
}

const password = `pass"word äö/+ 0123456789`

// leaks returns the first 12 characters in a row that a text shares with a secret, in any encoding, or "".
func leaks(text string) string {
	for _, s := range []string{secret, access, refresh, password} {
		quoted, _ := json.Marshal(s)
		for _, form := range []string{s, url.QueryEscape(s), url.PathEscape(s), base64.StdEncoding.EncodeToString([]byte(s)), strings.Trim(string(quoted), `"`)} {
			for n := 0; n+12 <= len(form); n++ {
				if strings.Contains(text, form[n:n+12]) {
					return form[n : n+12]
				}
			}
		}
	}
	return ""
}

// faults 111, m10, m11: services echo the whole request in every place from which an error could copy it.
func TestNoErrorHoldsASecret(t *testing.T) {
	echo := func(w http.ResponseWriter, r *http.Request) string {
		dump, _ := httputil.DumpRequest(r, true)
		return r.RequestURI + " " + r.URL.Query().Encode() + " " + strings.Join(r.URL.Query()["client_secret"], "") + string(dump)
	}
	services := map[string]http.HandlerFunc{
		"text": func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(400)
			io.WriteString(w, echo(w, r))
		},
		"cut in the middle": func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(422)
			io.WriteString(w, strings.Repeat("x", 480)+secret+access+refresh+password)
		},
		"base64": func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(403)
			io.WriteString(w, base64.StdEncoding.EncodeToString([]byte(secret+r.URL.Query().Get("refresh_token")+r.Header.Get("Authorization"))))
		},
		"gzip": func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(400)
			io.WriteString(w, zipped(echo(w, r)))
		},
		"JSON": func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(429)
			body, _ := json.Marshal(map[string]string{"message": echo(w, r)})
			w.Write(body)
		},
		"redirect": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", "http://%zz/"+r.RequestURI)
			w.WriteHeader(302)
		},
		"success": func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, echo(w, r)) },
		"not HTTP": func(w http.ResponseWriter, r *http.Request) {
			c, _, _ := w.(http.Hijacker).Hijack()
			defer c.Close()
			io.WriteString(c, "HTTP/1.1 "+r.RequestURI+r.Header.Get("Authorization")+"\r\n\r\n")
		},
	}
	for name, h := range services {
		t.Run(name, func(t *testing.T) { wantNoSecret(t, serve(t, false, h).URL) })
	}
	t.Run("nobody", func(t *testing.T) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		must.Do(t, err)
		l.Close()
		wantNoSecret(t, "http://"+l.Addr().String())
	})
}

// wantNoSecret makes every call and wants that its error shows no secret.
func wantNoSecret(t *testing.T, address string) {
	ctx := context.Background()
	soon := time.Now().Add(time.Hour)
	calls := map[string]func(c *Client) error{
		"create": func(c *Client) error { _, err := c.Create(ctx, someLead()); return err },
		"update": func(c *Client) error { _, err := c.Update(ctx, "l-1", &UpdateRequest{}); return err },
		"login":  func(c *Client) error { _, err := c.Login(ctx, "a@example.com", password); return err },
		"client": func(c *Client) error { _, err := c.CreateOAuthClient(ctx, access); return err },
		"token": func(c *Client) error {
			c.keeper.token, c.keeper.refresh = nil, refresh
			return c.SignIn(ctx)
		},
		"refresh": func(c *Client) error { _, fault := c.fetch(ctx, "refresh_token", refresh); return fault },
	}
	for name, call := range calls {
		c := signedIn(t, config(address))
		c.keeper.token = &oauth2.Token{AccessToken: access, Expiry: soon}
		err := call(c)
		if err == nil {
			t.Errorf("%s succeeded", name)
			continue
		}
		for _, text := range []string{err.Error(), fmt.Sprintf("%+v %#v %q", err, err, err), fmt.Sprint(*err.(*Error))} {
			must.Same(t, "", leaks(text), name, text)
		}
	}
}
