package sandbox

import (
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"go.uber.org/goleak"

	"leadferry/internal/testsupport/must"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// clock is a clock that only the test moves.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func newClock() *clock { return &clock{at: time.Date(2026, 5, 4, 9, 30, 0, 120_000_000, time.UTC)} }

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) move(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

func open(t *testing.T, o Options) *Server {
	t.Helper()
	s, err := New(o)
	must.Do(t, err)
	t.Cleanup(func() {
		must.Do(t, s.Close())
	})
	return s
}

// ask sends a request. headers are pairs that replace headers of a good request; an empty value removes one.
func ask(s *Server, method, target, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		if r.Header.Set(headers[i], headers[i+1]); headers[i+1] == "" {
			r.Header.Del(headers[i])
		}
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

func signIn(s *Server) (authorization string) {
	return "Bearer " + s.issue(accessUse, ClientID, accessLife)
}

// Organizations of the made-up brand.
const (
	boston  = "5bb7fb0f-d8d9-415b-8725-460b8ce504db"
	denver  = "db4b4019-d184-4f29-8669-d2723a604f08"
	dallas  = "1a306ce2-9f4a-4d58-afb7-fb492f5fca05"
	newYork = "ce9c02e4-aafb-4062-97ff-bbaaeca05990"
	chicago = "8a1e6f91-0951-4549-a823-213cb38eb51c"
	miami   = "2e432cd4-4edb-4a59-89e3-2949b3995201"
)

// isUUID reports whether an ID is a UUID of version 4 or 7, as the service's are.
var isUUID = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-[47][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`).MatchString

func decode(t *testing.T, w *httptest.ResponseRecorder) map[string]any {
	t.Helper()
	if got := w.Header().Get("Content-Type"); got != "application/json" {
		t.Fatalf("status %d with the content type %q", w.Code, got)
	}
	var m map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &m); err != nil {
		t.Fatalf("status %d: %v", w.Code, err)
	}
	return m
}

// refuses wants that an answer is an error with this status. about names the request in messages.
func refuses(t *testing.T, s *Server, w *httptest.ResponseRecorder, status int, about ...any) {
	t.Helper()
	before := len(ledger(t, s))
	must.Same(t, status, w.Code, about, w.Body)
	m := decode(t, w)
	if m["error"] == "" || m["message"] == "" || len(m) != 2 {
		t.Errorf("%v: the refusal is %v", about, m)
	}
	must.Same(t, before, len(ledger(t, s)), about, "leads are stored")
}

func ledger(t *testing.T, s *Server) []Lead {
	t.Helper()
	leads, err := s.Leads()
	must.Do(t, err)
	return leads
}

func direct(content string) string {
	return `{"organizationID":"` + boston + `","content":` + content + `,"typeKey":"contact-form","typeLabel":"Contact form"}`
}

func createLead(t *testing.T, s *Server, content string) string {
	t.Helper()
	w := ask(s, "POST", "/v1/"+TrunkID, direct(content), "Authorization", signIn(s))
	if w.Code != http.StatusCreated {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	return decode(t, w)["leadID"].(string)
}

func TestUnknownAddressesAndMethodsAreRefused(t *testing.T) {
	s := open(t, Options{})
	for _, tt := range []struct {
		method, target string
		status         int
		allow          string
	}{
		{"GET", "/", 404, ""},
		{"POST", "/v1/", 404, ""},
		{"POST", "/v1/a%2Fb", 404, ""},
		{"POST", "/v2/" + TrunkID, 404, ""},
		{"PATCH", "/v3/lead/", 404, ""},
		{"GET", "/v1/" + TrunkID, 405, "POST"},
		{"POST", "/v3/lead/x", 405, "PATCH"},
		{"GET", "/v3/oauth2/token", 405, "POST"},
	} {
		w := ask(s, tt.method, tt.target, "", "Authorization", signIn(s))
		must.Same(t, tt.allow, w.Header().Get("Allow"), tt.method, tt.target, "Allow is")
		refuses(t, s, w, tt.status)
	}
}

func TestRequestsAreCountedByKindAndStatus(t *testing.T) {
	s := open(t, Options{})
	id := createLead(t, s, `{}`)
	createLead(t, s, `{}`)
	ask(s, "PATCH", "/v3/lead/"+id, `{"Status":"onHold"}`, "Authorization", signIn(s))
	ask(s, "PATCH", "/v3/lead/"+id, `{"Status":"onHold"}`)
	ask(s, "POST", "/v3/oauth2/token", "")
	ask(s, "GET", "/", "")
	want := Counts{"create": {201: 2}, "update": {200: 1, 401: 1}, "token": {400: 1}, "other": {404: 1}}
	got := s.Counts()
	must.Same(t, want, got)
	got["create"][201] = 9
	must.Same(t, 2, s.Counts()["create"][201], "the counts can be changed from outside")
}

func TestOneWriterServesManyAtOnce(t *testing.T) {
	s := open(t, Options{Path: t.TempDir() + "/leads.db"})
	shared := createLead(t, s, `{}`)
	var group sync.WaitGroup
	for i := range 16 {
		group.Go(func() {
			for range 20 {
				id := createLead(t, s, `{"name":"Ann"}`)
				key := string(rune('a' + i))
				if w := ask(s, "PATCH", "/v3/lead/"+id, `{"ExternalID":"x"}`, "Authorization", signIn(s)); w.Code != 200 {
					t.Errorf("status %d", w.Code)
				}
				ask(s, "PATCH", "/v3/lead/"+shared, `{"Content":{"`+key+`":1}}`, "Authorization", signIn(s))
			}
		})
	}
	group.Wait()
	leads := ledger(t, s)
	if len(leads) != 1+16*20 || len(leads[0].Content) != 16 {
		t.Fatalf("%d leads, %d keys in the shared one", len(leads), len(leads[0].Content))
	}
	for i, l := range leads[1:] {
		if l.ID <= leads[i].ID || l.ExternalID != "x" {
			t.Fatalf("lead %d is %s after %s, linked to %q", i+1, l.ID, leads[i].ID, l.ExternalID)
		}
	}
}

func TestAClosedSandboxRefusesRequests(t *testing.T) {
	s, err := New(Options{})
	must.Do(t, err)
	authorization, path := signIn(s), s.store.path
	must.Do(t, s.Close())
	if err := s.Close(); err != nil {
		t.Error("closing twice:", err)
	}
	if w := ask(s, "POST", "/v1/"+TrunkID, direct(`{}`), "Authorization", authorization); w.Code != 500 {
		t.Errorf("status %d", w.Code)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("the temporary file is still there: %v", err)
	}
}
