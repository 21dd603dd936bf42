//go:build unix

package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"leadferry/internal/testsupport/must"
	"leadferry/leadapi"
)

// issuer is a service whose access tokens are good for a few requests and whose
// refresh tokens are good once, as the specification says ("Refresh access token").
type issuer struct {
	mu       sync.Mutex
	issued   int            // tokens so far
	left     int            // requests that the newest one is good for
	accounts int            // grants of client credentials
	reused   int            // refresh tokens that came twice
	updates  map[string]int // accepted ones, by process
}

func (s *issuer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.URL.Path != "/v3/oauth2/token" {
		if r.Header.Get("Authorization") != fmt.Sprintf("Bearer access-%d", s.issued) || s.left == 0 {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		s.left--
		id := strings.TrimPrefix(r.URL.Path, "/v3/lead/")
		s.updates[id]++
		json.NewEncoder(w).Encode(map[string]string{"ID": id})
		return
	}
	q := r.URL.Query()
	switch {
	case q.Get("grant_type") == "client_credentials":
		s.accounts++
	case q.Get("refresh_token") != fmt.Sprintf("refresh-%d", s.issued):
		s.reused++
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	s.issued++
	s.left = 3
	fmt.Fprintf(w, `{"access_token":"access-%[1]d","refresh_token":"refresh-%[1]d","expires_in":10800,"token_type":"Bearer"}`, s.issued)
}

const childUpdates = 100

// fault 72: two processes share a token that stops working again and again. Each time
// one of them refreshes it, and no refresh token is used twice.
func TestProcessesShareOneToken(t *testing.T) {
	s := &issuer{updates: map[string]int{}}
	server := httptest.NewServer(s)
	defer server.Close()
	dir := secretFolder(t)
	var children sync.WaitGroup
	for _, name := range []string{"one", "two"} {
		children.Go(func() {
			c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestChild$", "-test.v")
			c.Env = append(os.Environ(), "LEADFERRY_TEST_SERVICE="+server.URL, "LEADFERRY_TEST_TOKENS="+dir, "LEADFERRY_TEST_NAME="+name)
			if out, err := c.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
	children.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	want := (2*childUpdates + 2) / 3
	if s.accounts != 1 || s.reused != 0 || s.issued != want || s.updates["one"] != childUpdates || s.updates["two"] != childUpdates {
		t.Errorf("%d sign-ins by the account, %d spent refresh tokens, %d tokens (want %d), updates %v", s.accounts, s.reused, s.issued, want, s.updates)
	}
}

// TestChild is one process of TestProcessesShareOneToken.
func TestChild(t *testing.T) {
	service, name := os.Getenv("LEADFERRY_TEST_SERVICE"), os.Getenv("LEADFERRY_TEST_NAME")
	if service == "" {
		t.Skip("a part of TestProcessesShareOneToken")
	}
	f, err := OpenTokens(os.Getenv("LEADFERRY_TEST_TOKENS"), service, "c-1", "secret")
	must.Do(t, err)
	client, err := leadapi.New(leadapi.Config{BaseURL: service, ClientID: "c-1", ClientSecret: "secret", Tokens: f})
	must.Do(t, err)
	defer client.Close()
	for done := 0; done < childUpdates; {
		_, err := client.Update(t.Context(), name, &leadapi.UpdateRequest{})
		var e *leadapi.Error
		switch {
		case err == nil:
			done++
		case !errors.As(err, &e) || e.Status != http.StatusUnauthorized:
			t.Fatal(err)
		}
	}
}
