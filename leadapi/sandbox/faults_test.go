package sandbox

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"leadferry/internal/testsupport/must"
)

// hits returns the numbers of those of n requests that get a fault, from 1.
func hits(t *testing.T, spec, kind string, n int) (at []int) {
	t.Helper()
	fs, err := parseFaults(spec)
	must.Do(t, err)
	for i := range n {
		if fs.pick(kind) != nil {
			at = append(at, i+1)
		}
	}
	return at
}

func TestFaultsHitAsOftenAsTheyAreAskedTo(t *testing.T) {
	for _, tt := range []struct {
		spec, kind string
		want       []int
	}{
		{"", "create", nil},
		{"500/3", "create", []int{3, 6, 9}},
		{"500/3", "update", []int{3, 6, 9}},
		{"500/3", "token", nil},
		{"token.500/3", "token", []int{3, 6, 9}},
		{"drop#4", "create", []int{4}},
		{"drop#4, 429/5", "create", []int{4, 5, 10}},
		{"500:100%", "create", []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}},
		{"500:0%", "create", nil},
	} {
		if got := hits(t, tt.spec, tt.kind, 10); !slices.Equal(got, tt.want) {
			t.Errorf("%q hits %s %v, want %v", tt.spec, tt.kind, got, tt.want)
		}
	}
}

func TestChanceFollowsTheSeed(t *testing.T) {
	const n = 10_000
	one := hits(t, "500:5%,seed=1", "create", n)
	if len(one) < n*4/100 || len(one) > n*6/100 {
		t.Errorf("%d of %d hit by 5%%", len(one), n)
	}
	if !slices.Equal(one, hits(t, "seed=1,500:5%", "create", n)) {
		t.Error("the same seed hits other requests")
	}
	if slices.Equal(one, hits(t, "500:5%,seed=2", "create", n)) {
		t.Error("another seed hits the same requests")
	}
}

func TestFaultsThatMeanNothingAreRefused(t *testing.T) {
	for _, spec := range []string{
		"500", "crash:1%", "099:1%", "600:1%", "slow-stored:1%", "lead.500:1%", ".500:1%", "drop-retry:1%", "500:5", "500:x%",
		"500:NaN%", "500:101%", "500/0", "500#-1", "slow:1%:3", "slow:1%:-3s", "seed=x", "speed=1", "retry-after",
	} {
		_, err := parseFaults("429:5%," + spec)
		if err == nil || !strings.Contains(err.Error(), spec) {
			t.Errorf("%q: %v", spec, err)
		}
	}
}

func TestEveryFaultIsAcceptedAndExplained(t *testing.T) {
	for name := range faultNames {
		if _, err := parseFaults(name + ":1%"); err != nil {
			t.Error(err)
		}
		if !regexp.MustCompile(`[ ,]` + name + `\b`).MatchString(FaultHelp) {
			t.Errorf("the help does not name %s", name)
		}
	}
}

// answered sends a create and returns its answer, nil when the connection was closed without one.
func answered(s *Server) (w *httptest.ResponseRecorder) {
	defer func() {
		if recover() == http.ErrAbortHandler {
			w = nil
		}
	}()
	return ask(s, "POST", "/v1/"+TrunkID, direct(`{"name":"Ann"}`), "Authorization", signIn(s))
}

func TestFaultsStoreALeadOnlyIfTheirNameSaysSo(t *testing.T) { // faults 37, 42, 51–60, 63–65
	for _, tt := range []struct {
		fault         string
		status, leads int
		leadID        bool
	}{
		{"500", 500, 0, false},
		{"500-stored", 500, 1, false},
		{"400", 400, 0, false},
		{"401", 401, 0, false},
		{"200", 200, 0, false},
		{"200-stored", 200, 1, true},
		{"204-stored", 204, 1, false},
		{"307", 307, 0, false},
		{"503-stored-retry", 503, 1, false},
		{"drop", 0, 0, false},
		{"drop-stored", 0, 1, false},
	} {
		s := open(t, Options{Faults: tt.fault + "#1"})
		w := answered(s)
		status, body := 0, ""
		if w != nil {
			status, body = w.Code, w.Body.String()
		}
		if n := len(ledger(t, s)); status != tt.status || n != tt.leads {
			t.Errorf("%v: status %d, %d leads", tt.fault, status, n)
		}
		if tt.status != 204 && strings.Contains(body, "leadID") != tt.leadID {
			t.Errorf("%v: the body is %s", tt.fault, body)
		}
		must.Same(t, 1, s.Counts()["create"][tt.status], s.Counts(), "counted", tt.fault)
		if w := answered(s); w == nil || w.Code != 201 {
			t.Error(tt.fault, "the next request has the fault, too")
		}
	}
}

func TestRetryAfterIsGivenInEveryForm(t *testing.T) { // faults 61, 64
	for faults, want := range map[string]string{
		"429#1": "1", "503-retry#1,retry-after=7": "7", "429#1,retry-after=1e9": "1e9", "429#1,retry-after=-1": "-1",
		"429#1,retry-after=none": "", "503#1": "",
	} {
		must.Same(t, want, answered(open(t, Options{Faults: faults})).Header().Get("Retry-After"), faults)
	}
}

func TestRevokedTokensAreRefusedAndNewOnesAreNot(t *testing.T) { // faults 53, 71
	s := open(t, Options{Faults: "revoke#2"})
	old := signIn(s)[len("Bearer "):]
	for i, want := range []int{201, 401, 401} {
		must.Same(t, want, createStatus(s, old), i+1, "status")
	}
	must.Same(t, 201, createStatus(s, signIn(s)[len("Bearer "):]), "a new token: status")
}

func TestTokenRequestsHaveFaultsToo(t *testing.T) { // faults 73, 75
	s := open(t, Options{Faults: "token.500#2,token.cut-body#3"})
	first := decode(t, tokens(s, "grant_type", "client_credentials"))
	if w := tokens(s, "grant_type", "client_credentials"); w.Code != 500 {
		t.Errorf("status %d", w.Code)
	}
	func() {
		defer func() { _ = recover() }()
		tokens(s, "grant_type", "refresh_token", "refresh_token", first["refresh_token"].(string))
	}()
	refuses(t, s, tokens(s, "grant_type", "refresh_token", "refresh_token", first["refresh_token"].(string)), 400)
}
