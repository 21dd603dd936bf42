package sandbox

import (
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"leadferry/internal/testsupport/must"
)

func tokens(s *Server, pairs ...string) *httptest.ResponseRecorder {
	q := url.Values{"client_id": {ClientID}, "client_secret": {ClientSecret}}
	for i := 0; i < len(pairs); i += 2 {
		if q.Set(pairs[i], pairs[i+1]); pairs[i+1] == "" {
			q.Del(pairs[i])
		}
	}
	return ask(s, "POST", "/v3/oauth2/token?"+q.Encode(), "")
}

func createStatus(s *Server, access any) int {
	return ask(s, "POST", "/v1/"+TrunkID, direct(`{}`), "Authorization", "Bearer "+access.(string)).Code
}

func TestLoginMakesAClientThatGetsTokens(t *testing.T) {
	at := newClock()
	s := open(t, Options{now: at.now})
	w := ask(s, "POST", "/v3/oauth2/login", `{"email":"`+Email+`","password":"`+Password+`"}`)
	got := decode(t, w)
	if w.Code != 200 || len(got) != 1 {
		t.Fatalf("status %d: %v", w.Code, got)
	}
	temporary := "Bearer " + got["Token"].(string)
	w = ask(s, "POST", "/v3/oauth2/client", "", "Authorization", temporary)
	client := decode(t, w)
	want := map[string]any{
		"ID": client["ID"], "ReadOnly": false, "CreatedAt": "2026-05-04T09:30:00.120000Z", "UpdatedAt": "2026-05-04T09:30:00.120000Z",
		"Secret": client["Secret"], "Domain": "", "UserID": accountID,
	}
	if d := cmp.Diff(want, client); d != "" || w.Code != 200 {
		t.Fatalf("status %d %s", w.Code, d)
	}
	if !isUUID(client["ID"].(string)) || len(client["Secret"].(string)) < 20 {
		t.Errorf("client %v", client)
	}
	refuses(t, s, ask(s, "POST", "/v3/oauth2/client", "", "Authorization", temporary), 401)
	w = tokens(s, "grant_type", "client_credentials", "client_id", client["ID"].(string), "client_secret", client["Secret"].(string))
	must.Same(t, 201, createStatus(s, decode(t, w)["access_token"]), "status")
}

func TestLoginAndClientRefuseWhatTheSpecificationDoesNotAllow(t *testing.T) {
	s := open(t, Options{})
	good := `{"email":"` + Email + `","password":"` + Password + `"}`
	temporary := "Bearer " + s.issue(loginUse, accountID, loginLife)
	for name, tt := range map[string]struct {
		target, body, authorization string
		status                      int
	}{
		"a wrong password":         {"login", `{"email":"` + Email + `","password":"x"}`, "", 401},
		"no password":              {"login", `{"email":"` + Email + `"}`, "", 400},
		"an unknown field":         {"login", `{"user":"x",` + good[1:], "", 400},
		"no login body":            {"login", "", "", 415},
		"a login query":            {"login?x=1", good, "", 400},
		"login with authorization": {"login", good, temporary, 400},
		"no temporary token":       {"client", "", "", 401},
		"an access token":          {"client", "", signIn(s), 401},
		"a client body":            {"client", "{}", temporary, 400},
	} {
		refuses(t, s, ask(s, "POST", "/v3/oauth2/"+tt.target, tt.body, "Authorization", tt.authorization), tt.status, name)
	}
}

func TestTokensExpireAndAreRenewed(t *testing.T) {
	at := newClock()
	s := open(t, Options{now: at.now})
	w := tokens(s, "grant_type", "client_credentials")
	first := decode(t, w)
	want := map[string]any{"access_token": first["access_token"], "expires_in": 10800.0, "refresh_token": first["refresh_token"], "token_type": "Bearer"}
	if d := cmp.Diff(want, first); d != "" || w.Code != 200 {
		t.Fatalf("status %d %s", w.Code, d)
	}
	at.move(accessLife - time.Millisecond)
	must.Same(t, 201, createStatus(s, first["access_token"]), "a living token: status")
	at.move(time.Millisecond)
	must.Same(t, 401, createStatus(s, first["access_token"]), "an expired token: status")
	second := decode(t, tokens(s, "grant_type", "refresh_token", "refresh_token", first["refresh_token"].(string)))
	if second["refresh_token"] == first["refresh_token"] || createStatus(s, second["access_token"]) != 201 {
		t.Error("the refresh token is the same, or the access token is not good")
	}
	// faults 73, 74
	refuses(t, s, tokens(s, "grant_type", "refresh_token", "refresh_token", first["refresh_token"].(string)), 400)
	at.move(refreshLife)
	refuses(t, s, tokens(s, "grant_type", "refresh_token", "refresh_token", second["refresh_token"].(string)), 400)
}

func TestTokenRequestsAreStrict(t *testing.T) {
	s := open(t, Options{})
	refresh := decode(t, tokens(s, "grant_type", "client_credentials"))["refresh_token"].(string)
	const good = "/v3/oauth2/token?client_id=" + ClientID + "&client_secret=" + ClientSecret
	for name, tt := range map[string]struct {
		target, body string
		status       int
		code         string
	}{
		"an unknown grant":      {good + "&grant_type=password", "", 400, "unsupported_grant_type"},
		"a parameter too many":  {good + "&grant_type=client_credentials&scope=x", "", 400, "invalid_request"},
		"a parameter twice":     {good + "&grant_type=client_credentials&client_id=" + ClientID, "", 400, "invalid_request"},
		"an unknown refresh":    {good + "&grant_type=refresh_token&refresh_token=x", "", 400, "invalid_grant"},
		"no secret":             {"/v3/oauth2/token?grant_type=client_credentials&client_id=" + ClientID, "", 400, "invalid_request"},
		"a wrong secret":        {good + "x&grant_type=client_credentials", "", 401, "invalid_client"}, // faults 78
		"parameters in a body":  {"/v3/oauth2/token", `grant_type=client_credentials`, 400, "invalid_request"},
		"the key's own name":    {"/v3/oauth2/token?grant_type=client_credentials&client_secret=x&client_id=key", "", 401, "invalid_client"},
		"refresh, wrong secret": {good + "x&grant_type=refresh_token&refresh_token=" + refresh, "", 401, "invalid_client"},
	} {
		w := ask(s, "POST", tt.target, tt.body)
		code := decode(t, w)["error"]
		refuses(t, s, w, tt.status, name)
		must.Same(t, tt.code, code, "error", name)
	}
	if w := tokens(s, "grant_type", "refresh_token", "refresh_token", refresh); w.Code != 200 {
		t.Errorf("a refused request used up the refresh token: status %d", w.Code)
	}
}

func TestARefreshTokenWorksOnlyForItsClient(t *testing.T) {
	s := open(t, Options{})
	refresh := s.issue(refreshUse, "another client", time.Hour)
	refuses(t, s, tokens(s, "grant_type", "refresh_token", "refresh_token", refresh), 400)
	if !s.spend(refreshUse, refresh, "another client") {
		t.Error("another client used it up")
	}
}
