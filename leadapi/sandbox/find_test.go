package sandbox

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// names are those of leads, in the order in which they are found.
func names(leads []Lead) (found []string) {
	for _, l := range leads {
		found = append(found, l.DisplayName)
	}
	return found
}

func TestFindMatchesEveryWordInAValue(t *testing.T) {
	at := newClock()
	s := open(t, Options{now: at.now})
	ann := createLead(t, s, `{"name":"Ann Ohm","email":"ann@example.com","n":17}`)
	createLead(t, s, `{"name":"Bob \"Quick\" Lee","note":"status: ünclear"}`)
	ask(s, "POST", "/v1/"+TrunkID, `{"organizationID":"`+miami+`","content":{"name":"Cid"},"typeKey":"k","typeLabel":"Brochure","status":"onHold"}`, "Authorization", signIn(s))
	at.move(70 * time.Second)
	createLead(t, s, `{"name":"Dee","was":"2026-05-04T09:31:00Z"}`)
	ask(s, "PATCH", "/v3/lead/"+ann, `{"ExternalID":"CRM-0007"}`, "Authorization", signIn(s))
	for query, want := range map[string][]string{
		"":        {"Dee", "Cid", `Bob "Quick" Lee`, "Ann Ohm"},
		"ann OHM": {"Ann Ohm"}, "ohm ann@": {"Ann Ohm"}, "ann bob": nil, "crm-0007": {"Ann Ohm"}, "17": {"Ann Ohm"},
		ann:       {"Ann Ohm"},
		`"quick"`: {`Bob "Quick" Lee`}, "ÜNCLEAR": {`Bob "Quick" Lee`}, "onhold brochure": {"Cid"},
		"biscayne":                 {"Cid"}, // the name of the organization
		miami:                      {"Cid"},
		"externalid":               nil, // a field is no value
		"\xff\x00":                 nil,
		" \t ":                     {"Dee", "Cid", `Bob "Quick" Lee`, "Ann Ohm"},
		"2026-05-04t09:30:00Z lee": {`Bob "Quick" Lee`}, // made in the minute after
		"2026-05-04T09:31:00Z":     {"Dee"}, "2026-05-04T11:31:00+02:00": {"Dee"}, "2026-05-04T09:31:12Z": nil,
		"not there, nowhere": nil,
	} {
		found, more, err := s.Find(query, 10)
		if d := cmp.Diff(want, names(found)); d != "" || err != nil || more {
			t.Errorf("%q: %v, %v: %s", query, err, more, d)
		}
		if found, more, err = s.Find(query, 2); len(found) != min(2, len(want)) || more != (len(want) > 2) || err != nil {
			t.Errorf("%q: two: %d, %v, %v", query, len(found), more, err)
		}
	}
}

func TestRequestsAreKeptWithoutSecrets(t *testing.T) {
	s := open(t, Options{Faults: "create.drop-stored#2"})
	first := createLead(t, s, `{}`)
	func() {
		defer func() { _ = recover() }() // no answer
		ask(s, "POST", "/v1/"+TrunkID, direct(`{"email":"secret@example.com"}`), "Authorization", signIn(s), "X-Request-ID", strings.Repeat("r", 200))
	}()
	ask(s, "POST", "/v3/oauth2/token?client_secret=secret", "")
	ask(s, "PATCH", "/v3/lead/"+strings.Repeat("x", 400), `{}`, "Authorization", "Bearer secret")
	all := s.Requests(10, func(Request) bool { return true })
	made := ledger(t, s)
	want := []Request{
		{Kind: "update", Method: "PATCH", Path: ("/v3/lead/" + strings.Repeat("x", 400))[:200], Status: 401, Reason: "the token is not accepted, or has expired"},
		{Kind: "token", Method: "POST", Path: "/v3/oauth2/token", Status: 400, Reason: all[1].Reason},
		{Kind: "create", Method: "POST", Path: "/v1/" + TrunkID, RequestID: strings.Repeat("r", 100), Fault: "drop-stored", LeadID: made[1].ID},
		{Kind: "create", Method: "POST", Path: "/v1/" + TrunkID, Status: 201, LeadID: first},
	}
	same(t, "", cmp.Diff(want, all, cmp.FilterPath(func(p cmp.Path) bool { return p.String() == "At" }, cmp.Ignore())))
	if strings.Contains(fmt.Sprint(all), "secret") {
		t.Errorf("a secret is kept: %v", all)
	}
	if few := s.Requests(1, func(r Request) bool { return r.Kind == "create" }); len(few) != 1 || few[0].LeadID != made[1].ID {
		t.Errorf("%+v", few)
	}
}
