package sandbox

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"leadferry/internal/testsupport/must"
)

func TestCreateAnswersWithTheAssignment(t *testing.T) {
	s := open(t, Options{})
	rest := `,"content":{},"typeKey":"k","typeLabel":"l"}`
	for name, tt := range map[string]struct{ body, organization, location string }{
		"an organization":  {`{"organizationID":"` + denver + `"` + rest, denver, ""},
		"a radius":         {`{"locatorID":"` + radiusLocator + `","locationSearch":{"searchText":"1 Elm Street, Houston"}` + rest, dallas, "Larkfield of Houston"},
		"a territory":      {`{"locatorID":"` + regionsLocator + `","locationSearch":{"postalCode":"02134"}` + rest, boston, "Larkfield of Boston"},
		"both":             {`{"locatorID":"` + MixedLocatorID + `","locationSearch":{"searchText":"Elm, 07030"}` + rest, newYork, "Larkfield of Newark"},
		"escapes in names": {`{"organization\u0049D":"` + denver + `"` + rest, denver, ""},
	} {
		w := ask(s, "POST", "/v1/"+TrunkID, tt.body, "Authorization", signIn(s))
		if w.Code != http.StatusCreated {
			t.Fatalf("%v: status %d: %s", name, w.Code, w.Body)
		}
		got := decode(t, w)
		if !isUUID(got["leadID"].(string)) {
			t.Errorf("%v: leadID is %v", name, got["leadID"])
		}
		delete(got, "leadID")
		want := map[string]any{"assignedOrganizationID": tt.organization, "assignedLocationName": tt.location}
		must.Same(t, want, got, name)
	}
}

func TestCreateKeepsWhatWasSent(t *testing.T) {
	at := newClock()
	s := open(t, Options{now: at.now})
	content := `{"name":"Ann <Lee> & Söhne","score":12345678901234567890,"opt":true,"none":null,"tags":["a",1.50]}`
	body := `{"locatorID":"` + regionsLocator + `","locationSearch":{"postalCode":"60614"},"status":"inProgress",` + direct(content)[len(`{"organizationID":"`+boston+`",`):]
	w := ask(s, "POST", "/v1/"+TrunkID, body, "Authorization", signIn(s), "User-Agent", "leadferry/1", "Accept-Language", "en")
	l := ledger(t, s)[0]
	want := Lead{
		ID: decode(t, w)["leadID"].(string), OwnerID: chicago, CreatedAt: "2026-05-04T09:30:00.120000Z", UpdatedAt: "2026-05-04T09:30:00.120000Z", Content: l.Content,
		Source: "lead-collector", Stage: "lead", Status: "inProgress", TypeKey: "contact-form", TypeLabel: "Contact form", DisplayName: "Ann <Lee> & Söhne",
	}
	want.Location.Name, want.Location.Address = "Larkfield of Chicago", "2200 Clark Street, Chicago, IL 60614"
	want.RequestMeta.ContentType, want.RequestMeta.Host, want.RequestMeta.IP = "application/json", "example.com", "192.0.2.1"
	want.RequestMeta.Locale, want.RequestMeta.URL, want.RequestMeta.UserAgent = "en", "/v1/"+TrunkID, "leadferry/1"
	must.Same(t, want, l)
	a := respond(200, l.Content)
	if got := string(a.body); got != `{"name":"Ann <Lee> & Söhne","none":null,"opt":true,"score":12345678901234567890,"tags":["a",1.50]}` {
		t.Errorf("content is %s", got)
	}
}

func TestCreateRefusesWhatTheSpecificationDoesNotAllow(t *testing.T) {
	s := open(t, Options{})
	const org, types = `"organizationID":"` + boston + `",`, `"typeKey":"k","typeLabel":"l"`
	const content = `"content":{},`
	located := func(id, search string) string {
		return `{"locatorID":"` + id + `","locationSearch":` + search + `,` + content + types + `}`
	}
	for name, tt := range map[string]struct {
		body   string
		status int
	}{
		"no body":                        {``, 415},
		"not JSON":                       {`{`, 400},
		"text behind":                    {`{` + org + content + types + `} {}`, 400},
		"null":                           {`null`, 400},
		"a byte order mark":              {"\ufeff" + direct(`{}`), 400},
		"a duplicate name in content":    {direct(`{"a":1,"a":2}`), 400},
		"invalid UTF-8":                  {direct("{\"a\":\"\xff\"}"), 400},
		"a lone surrogate":               {direct(`{"a":"\ud800"}`), 400},
		"too large":                      {direct(`{"a":"` + strings.Repeat("x", maxBody) + `"}`), 413},
		"an unknown field":               {`{"leads":[],` + org + content + types + `}`, 400},
		"no assignment":                  {`{` + content + types + `}`, 400},
		"an unknown organization":        {`{"organizationID":"o-1",` + content + types + `}`, 422},
		"organization and locator":       {`{` + org + located(radiusLocator, `{"searchText":"x"}`)[1:], 400},
		"organization and search":        {`{` + org + `"locationSearch":{},` + content + types + `}`, 400},
		"a search without locator":       {`{"locationSearch":{"searchText":"x"},` + content + types + `}`, 400},
		"an unknown locator":             {located("l-1", `{"searchText":"x"}`), 422},
		"an empty text":                  {located(radiusLocator, `{"searchText":" "}`), 400},
		"a text of wrong type":           {located(radiusLocator, `{"searchText":null}`), 400},
		"an unknown search property":     {located(radiusLocator, `{"searchText":"x","latitude":"1"}`), 400},
		"postalCode, regions and radius": {located(MixedLocatorID, `{"postalCode":"02134"}`), 400},
		"searchText, regions":            {located(regionsLocator, `{"searchText":"Boston"}`), 400},
		"both properties, regions":       {located(regionsLocator, `{"postalCode":"02134","searchText":"Boston"}`), 400},
		"no content":                     {`{` + org + types + `}`, 400},
		"null content":                   {`{` + org + `"content":null,` + types + `}`, 400},
		"no typeKey":                     {`{` + org + content + `"typeLabel":"l"}`, 400},
		"no typeLabel":                   {`{` + org + content + `"typeKey":"k"}`, 400},
		"an unknown status":              {`{"status":"Open",` + org + content + types + `}`, 422},
		"an empty status":                {`{"status":"",` + org + content + types + `}`, 422},
	} {
		refuses(t, s, ask(s, "POST", "/v1/"+TrunkID, tt.body, "Authorization", signIn(s)), tt.status, name)
	}
	must.Same(t, 0, len(ledger(t, s)), "leads are stored")
}

func TestLeadRequestsNeedTheRightHeadersAndPath(t *testing.T) {
	s := open(t, Options{})
	id, good := createLead(t, s, `{}`), signIn(s)
	temporary := "Bearer " + s.issue(loginUse, accountID, time.Hour)
	for name, tt := range map[string]struct {
		path, header, value string
		status              int
	}{
		"no token":              {"", "Authorization", "", 401},
		"another scheme":        {"", "Authorization", "Basic " + good[7:], 401},
		"a forged token":        {"", "Authorization", good[:len(good)-2] + "xx", 401},
		"a temporary token":     {"", "Authorization", temporary, 401},
		"no content type":       {"", "Content-Type", "", 415},
		"another character set": {"", "Content-Type", "application/json; charset=utf-16", 415},
		"a packed body":         {"", "Content-Encoding", "gzip", 415},
		"a query":               {"?a=1", "Accept", "*/*", 400}, "an empty query": {"?", "Accept", "*/*", 400},
		"an unknown ID": {"x", "Accept", "*/*", 404},
	} {
		headers := []string{"Authorization", good, tt.header, tt.value}
		refuses(t, s, ask(s, "POST", "/v1/"+TrunkID+tt.path, direct(`{}`), headers...), tt.status, name)
		refuses(t, s, ask(s, "PATCH", "/v3/lead/"+id+tt.path, `{"Status":"onHold"}`, headers...), tt.status, name)
	}
	if w := ask(s, "POST", "/v1/"+TrunkID, direct(`{}`), "Authorization", "bearer "+good[7:], "Content-Type", "application/json; charset=UTF-8"); w.Code != 201 {
		t.Errorf("status %d", w.Code)
	}
	if l := ledger(t, s)[0]; l.Status != "open" {
		t.Errorf("a refused update set the status %s", l.Status)
	}
}

func TestUpdateAnswersWithTheLead(t *testing.T) {
	at := newClock()
	s := open(t, Options{now: at.now})
	id := createLead(t, s, `{"name":"Ann","phone":"1"}`)
	at.move(90 * time.Second)
	w := ask(s, "PATCH", "/v3/lead/"+id, `{"Status":"closedWon","ExternalID":"crm-7","Content":{"phone":"2"}}`, "Authorization", signIn(s))
	if w.Code != http.StatusOK {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	want := map[string]any{
		"ID": id, "ReadOnly": false, "CreatedAt": "2026-05-04T09:30:00.120000Z", "UpdatedAt": "2026-05-04T09:31:30.120000Z",
		"OwnerID": boston, "Content": map[string]any{"name": "Ann", "phone": "2"},
		"Impressions": 0.0, "IsTestLead": false, "Location": map[string]any{"Name": "", "Address": ""},
		"RequestMeta": map[string]any{"ContentType": "application/json", "Host": "example.com", "IP": "192.0.2.1", "Locale": "", "URL": "/v1/" + TrunkID, "UserAgent": ""},
		"Source":      "lead-collector", "Status": "closedWon", "Stage": "lead", "TypeKey": "contact-form", "TypeLabel": "Contact form",
		"Views": 0.0, "ExternalID": "crm-7", "DisplayName": "Ann",
	}
	must.Same(t, want, decode(t, w))
}

func TestUpdateMergesContentAndLeavesTheRest(t *testing.T) {
	s := open(t, Options{now: newClock().now})
	id := createLead(t, s, `{"a":"1","b":"2"}`)
	for _, step := range []struct{ body, want string }{
		{`{"Content":{"c":"3"}}`, `open "" {"a":"1","b":"2","c":"3"}`},
		{`{"Content":{"b":7.10}}`, `open "" {"a":"1","b":7.10,"c":"3"}`},
		{`{"Content":{"a":"","c":null}}`, `open "" {"a":"","b":7.10,"c":null}`},
		{`{"Content":{}}`, `open "" {"a":"","b":7.10,"c":null}`},
		{`{"ExternalID":"x"}`, `open "x" {"a":"","b":7.10,"c":null}`},
		{`{"Status":"closedWon"}`, `closedWon "x" {"a":"","b":7.10,"c":null}`},
		{`{"Status":"open","ExternalID":""}`, `open "" {"a":"","b":7.10,"c":null}`},
	} {
		before := ledger(t, s)[0].UpdatedAt
		if w := ask(s, "PATCH", "/v3/lead/"+id, step.body, "Authorization", signIn(s)); w.Code != http.StatusOK {
			t.Fatalf("%s: status %d", step.body, w.Code)
		}
		l := ledger(t, s)[0]
		content := respond(200, l.Content)
		must.Same(t, step.want, l.Status+` "`+l.ExternalID+`" `+string(content.body), step.body)
		must.Same(t, step.body != `{"Content":{}}`, l.UpdatedAt > before, step.body, "UpdatedAt moved")
	}
}

func TestUpdateRefusesWhatTheSpecificationDoesNotAllow(t *testing.T) {
	s := open(t, Options{})
	id := createLead(t, s, `{"a":"1"}`)
	before := ledger(t, s)
	for name, tt := range map[string]struct {
		id, body string
		status   int
	}{
		"nothing":                {id, `{}`, 400},
		"an unknown field":       {id, `{"Status":"open","DisplayName":"x"}`, 400},
		"an unknown status":      {id, `{"Status":"won","ExternalID":"x"}`, 422},
		"an ID of wrong type":    {id, `{"ExternalID":7}`, 400},
		"content of wrong type":  {id, `{"Content":"x"}`, 400},
		"an unknown lead":        {newID(0), `{"Status":"open"}`, 404},
		"an ID that is no UUID":  {"lead-1", `{"Status":"open"}`, 404},
		"an escaped path":        {"..%2F..%2Fv3%2Foauth2%2Fclient", `{"Status":"open"}`, 404},
		"a UUID without hyphens": {strings.ReplaceAll(id, "-", "0"), `{"Status":"open"}`, 404},
	} {
		refuses(t, s, ask(s, "PATCH", "/v3/lead/"+tt.id, tt.body, "Authorization", signIn(s)), tt.status, name)
	}
	must.Same(t, before, ledger(t, s))
}

// names returns the display names of leads, in the same order.
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
		"externalid":               nil, // names of fields are not searched
		"\xff\x00":                 nil,
		" \t ":                     {"Dee", "Cid", `Bob "Quick" Lee`, "Ann Ohm"},
		"2026-05-04t09:30:00Z lee": {`Bob "Quick" Lee`}, // made less than a minute later
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
