package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// serving is a sink in this process that ends with the test.
func serving(t *testing.T, s *sink) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- s.serve(ctx, l) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return "http://" + l.Addr().String()
}

// ask makes one request and returns status and decoded body.
func ask(t *testing.T, method, url, token, body string) (int, map[string]any) {
	t.Helper()
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", token)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var got map[string]any
	if err := json.NewDecoder(res.Body).Decode(&got); err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, got
}

func TestSinkMakesAndLinksLeads(t *testing.T) {
	s := newSink(0)
	url := serving(t, s)
	if status, got := ask(t, "POST", url+"/v3/oauth2/token?grant_type=client_credentials", "", ""); status != 200 || got["access_token"] == "" {
		t.Errorf("token: %d %v", status, got)
	}
	last := ""
	for i, status := range statuses {
		owner := fmt.Sprintf("%s%03d", organization, 290+i)
		code, made := ask(t, "POST", url+"/v1/trunk", "Bearer x", fmt.Sprintf(`{"organizationID":"%s","content":{"a":"b"},"status":"%s"}`, owner, status))
		id := made["leadID"].(string)
		if code != 201 || len(id) != 36 || id[14] != '4' || id[19] != '8' || id <= last || made["assignedOrganizationID"] != owner {
			t.Fatalf("create: %d %v", code, made)
		}
		last = id
		code, lead := ask(t, "PATCH", url+"/v3/lead/"+id, "bearer x", fmt.Sprintf(`{"ExternalID":"x-%d"}`, i))
		if code != 200 || lead["ID"] != id || lead["ExternalID"] != fmt.Sprint("x-", i) || lead["Status"] != status || lead["OwnerID"] != owner {
			t.Errorf("link: %d %v, want status %s of %v", code, lead, status, made)
		}
	}
	got := s.stats()
	if want := (stats{Creates: 8, Updates: 8, Tokens: 1, Most: got.Most}); got != want || got.Most < 1 {
		t.Errorf("counters %+v", got)
	}
}

func TestSinkAnswersAnUpdateWithWhatItBrings(t *testing.T) {
	url := serving(t, newSink(0))
	_, lead := ask(t, "PATCH", url+"/v3/lead/"+someLead, "Bearer x", `{"Status":"onHold","Content":{"a":"}\"","b":[1,{"c":"]"}]},"ExternalID":"e"}`)
	content, _ := json.Marshal(lead["Content"])
	if lead["Status"] != "onHold" || lead["ExternalID"] != "e" || string(content) != `{"a":"}\"","b":[1,{"c":"]"}]}` {
		t.Errorf("lead %v", lead)
	}
	_, lead = ask(t, "PATCH", url+"/v3/lead/"+someLead, "Bearer x", `{}`)
	if lead["Status"] != "open" || lead["ExternalID"] != "" {
		t.Errorf("lead %v", lead)
	}
}

func TestSinkRefuses(t *testing.T) {
	s := newSink(0)
	url := serving(t, s)
	for _, test := range []struct {
		method, path, token string
		want                int
	}{
		{"POST", "/v1/trunk", "", 401},
		{"PATCH", "/v3/lead/1", "Basic x", 401},
		{"GET", "/v1/trunk", "Bearer x", 404},
		{"PATCH", "/v3/lead/a/b", "Bearer x", 404},
		{"PATCH", "/v3/lead/", "Bearer x", 404},
	} {
		if got, _ := ask(t, test.method, url+test.path, test.token, "{}"); got != test.want {
			t.Errorf("%s %s: %d, want %d", test.method, test.path, got, test.want)
		}
	}
	if got := s.refused.Load(); got != 5 {
		t.Errorf("%d refused, want 5", got)
	}
}

func TestSinkWaitsForItsLatency(t *testing.T) {
	url := serving(t, newSink(30*time.Millisecond))
	began := time.Now()
	ask(t, "POST", url+"/v1/t", "Bearer x", "{}")
	if took := time.Since(began); took < 30*time.Millisecond {
		t.Errorf("answered after %v, not 30ms", took)
	}
}
