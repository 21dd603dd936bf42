package leadapi

import (
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"leadferry/internal/testsupport/must"
)

const leadBody = `{"ID":"l-1","ReadOnly":true,"CreatedAt":"c","UpdatedAt":"u","OwnerID":"o","Content":{"a":"b","n":12345678901234567890},
"Impressions":3,"IsTestLead":true,"Location":{"Name":"Main St","Address":"1 Main St"},"RequestMeta":{"ContentType":"t","Host":"h","IP":"i","Locale":"e","URL":"w","UserAgent":"g"},
"Source":"lead-collector","Status":"open","Stage":"lead","TypeKey":"k","TypeLabel":"L","Views":4,"ExternalID":"x","DisplayName":"d","New":[{}]}`

func TestUpdateReadsTheLead(t *testing.T) {
	full := Lead{
		ID: "l-1", OwnerID: "o", LocationName: "Main St", Status: "open", ExternalID: "x", HasExternal: true,
		Content: map[string]jsontext.Value{"a": jsontext.Value(`"b"`), "n": jsontext.Value("12345678901234567890")},
	}
	for name, test := range map[string]struct {
		body string
		want Lead
	}{
		"whole":         {leadBody, full},
		"other types":   {`{"ID":"l-1","Status":7,"Content":[],"Location":"x","Views":"many","IsTestLead":0,"RequestMeta":null}`, Lead{ID: "l-1"}},
		"another case":  {`{"ID":"l-1","status":"open"}`, Lead{ID: "l-1"}},
		"null contents": {`{"ID":"l-1","Content":null,"ExternalID":null}`, Lead{ID: "l-1", HasExternal: true}},
		"no external":   {`{"ID":"l-1","Content":{},"ExternalID":""}`, Lead{ID: "l-1", Content: map[string]jsontext.Value{}, HasExternal: true}},
		"invalid ID":    {`{"ID":"l-1","ExternalID":"a\u0000b"}`, Lead{ID: "l-1"}},
	} {
		got, err := signedIn(t, config(answers(t, answerText(200, test.body)).address())).Update(t.Context(), "l-1", &UpdateRequest{})
		must.Do(t, err)
		must.Same(t, &test.want, got, name)
	}
}

func TestIDsMustBePlain(t *testing.T) { // fault 98, m31
	p := answers(t, answerText(200, leadBody))
	client := signedIn(t, config(p.address()))
	for id, good := range map[string]bool{
		"a": true, "A-9._z": true, strings.Repeat("x", 128): true, "0b1c2d3e-0000-4000-8000-000000000000": true, ".a": true,
		"": false, ".": false, "..": false, "...": false, "a/b": false, "../../v3/oauth2/client": false, "a%2fb": false, "a?b": false,
		"a b": false, "a\nb": false, "a\x00": false, "ä": false, "a#b": false, strings.Repeat("x", 129): false, "a\\b": false, "a;b": false,
	} {
		before := p.seen()
		_, err := client.Update(t.Context(), id, &UpdateRequest{})
		must.Same(t, []any{good, good}, []any{err == nil, p.seen() > before}, id, err)
		if e, ok := err.(*Error); ok && (e.Applied != No || e.Reason != ReasonRefused || e.Status != 0) {
			t.Errorf("ID %q: %v", id, e)
		}
		c := config(p.address())
		c.TrunkID = id
		if _, err := New(c); (err == nil) != good {
			t.Errorf("trunk ID %q: %v", id, err)
		}
	}
}

// fault 46: Reach creates nothing, sends no token, and is content with any answer except a request to wait.
func TestReach(t *testing.T) {
	var line, auth string
	s := serve(t, false, func(w http.ResponseWriter, r *http.Request) {
		line, auth = r.Method+" "+r.URL.Path, r.Header.Get("Authorization")
		w.WriteHeader(500)
	})
	if err := signedIn(t, config(s.URL)).Reach(t.Context()); err != nil || line != "GET /v1/trunk-1" || auth != "" {
		t.Errorf("%v: %s with %q", err, line, auth)
	}
	busy := serve(t, false, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "2")
		w.WriteHeader(429)
	})
	client := signedIn(t, config(busy.URL))
	if e, ok := client.Reach(t.Context()).(*Error); !ok || e.Status != 429 || e.RetryAfter != 2*time.Second || resting(client.leads) > 0 {
		t.Errorf("asked to wait: %v", e)
	}
	e, ok := signedIn(t, config("http://127.0.0.1:1")).Reach(t.Context()).(*Error)
	if !ok || e.Applied != No || e.Reason != ReasonConnect {
		t.Errorf("%v", e)
	}
	line = ""
	if e, ok := connect(t, config(s.URL)).Reach(t.Context()).(*Error); !ok || e.Op != "token" || !strings.HasPrefix(line, "POST ") {
		t.Errorf("without a token: %v after %s", e, line)
	}
}

func TestReservedNamesForTheRequestIDHeaderAreRefused(t *testing.T) {
	for name, good := range map[string]bool{
		"": true, "X-Request-ID": true, "x-correlation-id": true, "traceparent": false, "Request-Id": true,
		"Authorization": false, "HOST": false, "content-length": false, "Content-Foo": false, "Transfer-Encoding": false, "Connection": false, "te": false,
		"Idempotency-Key": false, "X-Idempotency-Key": false, "Accept-Language": false, "Expect": false, "Cookie": false, "Proxy-Foo": false,
		"X-Forwarded-For": false, "X-HTTP-Method-Override": false, "X Request": false, "X-Request\r\nHost": false, "X-Request:": false, "é": false,
	} {
		c := config("http://127.0.0.1:1")
		c.RequestIDHeader = name
		_, err := New(c)
		if (err == nil) != good || err != nil && !strings.Contains(err.Error(), "\nhint: ") {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// Creates and updates carry a request ID, given or new. Other requests do not, nor any without a configured header.
func TestRequestsCarryAnID(t *testing.T) {
	const given = "0b1c2d3e-0000-4000-8000-000000000001"
	for _, header := range []string{"X-Request-ID", ""} {
		var mu sync.Mutex
		seen := map[string][]string{} // by method and path
		s := serve(t, false, func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			seen[r.Method+" "+r.URL.Path] = r.Header.Values("X-Request-ID")
			switch r.Method + " " + r.URL.Path {
			case "POST /v3/oauth2/token":
				w.Write([]byte(`{"access_token":"` + access + `"}`))
			case "PATCH /v3/lead/lead-1":
				w.Write([]byte(leadBody))
			default:
				w.WriteHeader(201)
				w.Write([]byte(createdBody))
			}
		})
		c := config(s.URL)
		c.RequestIDHeader = header
		client := connect(t, c)
		lead := someLead()
		lead.RequestID = given
		if _, err := client.Create(t.Context(), lead); err != nil {
			t.Fatal(err)
		}
		if _, err := client.Update(t.Context(), "lead-1", &UpdateRequest{}); err != nil {
			t.Fatal(err)
		}
		create, update, token := seen["POST /v1/trunk-1"], seen["PATCH /v3/lead/lead-1"], seen["POST /v3/oauth2/token"]
		if header == "" {
			must.Same(t, 0, len(create)+len(update)+len(token), seen, "IDs that nobody wants")
			continue
		}
		if len(create) != 1 || create[0] != given || len(token) != 0 {
			t.Errorf("%v", seen)
		}
		if len(update) != 1 || !regexp.MustCompile(`^[A-Z2-7]{26}$`).MatchString(update[0]) {
			t.Errorf("the update's ID: %v", update)
		}
		lead.RequestID = "a\r\nb: c"
		if _, err := client.Create(t.Context(), lead); err == nil {
			t.Error("an ID with a line break is sent")
		}
	}
}
