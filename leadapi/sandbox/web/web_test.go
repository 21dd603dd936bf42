package web

import (
	"bytes"
	"fmt"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"leadferry/internal/testsupport/must"
	"leadferry/leadapi/sandbox"
)

type service struct {
	t *testing.T
	*sandbox.Server
	token string
}

func newService(t *testing.T, o sandbox.Options) *service {
	t.Helper()
	server, err := sandbox.New(o)
	must.Do(t, err)
	t.Cleanup(func() { server.Close() })
	s := &service{t: t, Server: server}
	w := s.send("POST", "/v3/oauth2/token?"+url.Values{"grant_type": {"client_credentials"}, "client_id": {sandbox.ClientID}, "client_secret": {sandbox.ClientSecret}}.Encode(), "")
	s.token = regexp.MustCompile(`"access_token":"([^"]+)"`).FindStringSubmatch(w)[1]
	return s
}

// send sends a request and returns the answer, or "" if a fault drops it.
func (s *service) send(method, target, body string) string {
	defer func() { _ = recover() }()
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+s.token)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w.Body.String()
}

func (s *service) create(content string) {
	s.send("POST", "/v1/"+sandbox.TrunkID, `{"organizationID":"`+sandbox.TrunkID+`","content":`+content+`,"typeKey":"k","typeLabel":"A <b>label</b>"}`)
}

// show returns a page, which must exist.
func (s *service) show(address string) string {
	s.t.Helper()
	at, err := url.Parse(address)
	must.Do(s.t, err)
	v, found := View(s.Server, "http://127.0.0.1:8080", at)
	if !found || v.Title == "" || !v.Form {
		s.t.Fatalf("%s: %v, %+v", address, found, v)
	}
	return string(v.Main)
}

// If a create got no answer, the page finds the lead by data of its row, and shows its ID.
func TestALeadWithoutAnAnswerIsFound(t *testing.T) {
	s := newService(t, sandbox.Options{Faults: "create.drop-stored#2"})
	for i := range 3 {
		s.create(fmt.Sprintf(`{"name":"Person %d"}`, i))
	}
	leads, err := s.Leads()
	if err != nil || len(leads) != 3 {
		t.Fatal(leads, err)
	}
	found := s.show("/?q=person+1")
	for i, l := range leads {
		if strings.Contains(found, `<code class="pick">`+l.ID+`</code>`) != (i == 1) {
			t.Errorf("lead %d: %s", i, found)
		}
	}
}

func TestMoreLeadsThanAPageHolds(t *testing.T) {
	s := newService(t, sandbox.Options{})
	for i := range leadsOnPage + 1 {
		s.create(fmt.Sprintf(`{"name":"Person %d"}`, i))
	}
	const more = "There are more leads than these"
	if text := s.show("/"); strings.Count(text, `class="pick"`) != leadsOnPage || !strings.Contains(text, more) {
		t.Error(text)
	}
	if text := s.show("/?q=person+100"); strings.Count(text, `class="pick"`) != 1 || strings.Contains(text, more) {
		t.Error(text)
	}
}

func TestOtherAddressesAreNoPages(t *testing.T) {
	s := newService(t, sandbox.Options{})
	for _, address := range []string{"/lead", "/lead?id=none", "/v1/x", "/requests", "//", ""} {
		path, query, _ := strings.Cut(address, "?")
		if v, found := View(s.Server, "http://127.0.0.1:8080", &url.URL{Path: path, RawQuery: query}); found {
			t.Errorf("%q: %s", address, v.Title)
		}
	}
}

// A page shows no secret that was sent to the sandbox.
func TestNoSecretIsShown(t *testing.T) {
	s := newService(t, sandbox.Options{})
	s.create(`{"name":"Ann"}`)
	s.send("POST", "/v3/oauth2/login", `{"email":"`+sandbox.Email+`","password":"`+sandbox.Password+`"}`)
	text := s.show("/")
	for _, secret := range []string{s.token, sandbox.ClientSecret, sandbox.Password} {
		if strings.Contains(text, secret) {
			t.Errorf("the page shows %s", secret)
		}
	}
}

// FuzzView puts texts into leads and searches: none becomes an element or attribute, or an invisible character.
func FuzzView(f *testing.F) {
	for _, text := range []string{"<script>alert(1)</script>", `"><img src=x onerror=alert(1)>`, "a\u202eb", "\x00\x1b[31m", "'; --", "{{.}}", strings.Repeat("long", 3000), "\xff\xfe"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s := newService(t, sandbox.Options{})
		shape := func() (names []string) {
			for _, address := range []string{"/?" + url.Values{"q": {text}}.Encode(), "/"} {
				names = append(names, elements(t, s.show(address))...)
			}
			return names
		}
		quoted := func(text string) string {
			return strings.ReplaceAll(fmt.Sprintf("%q", "x"+strings.ToValidUTF8(text, "?")), `\x`, `\u00`)
		}
		s.create(`{"name":` + quoted(text) + `,` + quoted("k"+text) + `:` + quoted(text) + `}`)
		for _, name := range shape() {
			if name == "script" || name == "img" || strings.HasPrefix(name, "on") || name == "style" {
				t.Errorf("%q became %s", text, name)
			}
		}
	})
}

// elements returns the names of a page's elements and attributes. Invisible characters in the page fail the test.
func elements(t *testing.T, text string) (names []string) {
	if i := strings.IndexAny(text, "\x00\x1b\u202e\u200b"); i >= 0 {
		t.Errorf("an invisible character: %q", text[max(0, i-30):i+3])
	}
	root, err := html.Parse(bytes.NewReader([]byte(text)))
	must.Do(t, err)
	for n := range root.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		names = append(names, n.Data)
		for _, a := range n.Attr {
			names = append(names, a.Key)
		}
	}
	return names
}
