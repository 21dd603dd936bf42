package leadapi

import (
	"errors"
	"net/http"
	"regexp"
	"sync"
	"testing"
)

func TestNamesOfTheHeaderForRequestIDs(t *testing.T) {
	for name, good := range map[string]bool{
		"": true, "X-Request-ID": true, "x-correlation-id": true, "traceparent": false, "Request-Id": true,
		"Authorization": false, "HOST": false, "content-length": false, "Content-Foo": false, "Transfer-Encoding": false, "Connection": false, "te": false,
		"Idempotency-Key": false, "X-Idempotency-Key": false, "Accept-Language": false, "Expect": false, "Cookie": false, "Proxy-Foo": false,
		"X-Forwarded-For": false, "X-HTTP-Method-Override": false, "X Request": false, "X-Request\r\nHost": false, "X-Request:": false, "é": false,
	} {
		c := config("http://127.0.0.1:1")
		c.RequestIDHeader = name
		_, err := New(c)
		var fault *ConfigError
		if (err == nil) != good || err != nil && (!errors.As(err, &fault) || fault.Hint == "") {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// Creates and updates carry an ID, the one that is given or one of their own; nothing else does, and nothing where none is wanted.
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
			if len(create)+len(update)+len(token) != 0 {
				t.Errorf("IDs that nobody wants: %v", seen)
			}
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
