package leadapi

import (
	"io"
	"net/http"
	"testing"

	"leadferry/internal/testsupport/must"
)

func TestRequestsAreWrittenByteForByte(t *testing.T) { // fault 100
	text := func(s string) *string { return &s }
	content := []ContentField{
		{Key: "zip", Value: "01234"},
		{Key: "phone", Value: "+49 30"},
		{Key: "a", Value: `<b> & "q" \ ` + "\t\r\n\x00\u2028é😀"},
		{},
		{Key: "score", Value: "-1.50e+3", Literal: true},
		{Key: "big", Value: "12345678901234567890.10", Literal: true},
		{Key: "ok", Value: "true", Literal: true},
		{Key: "tags", Value: `["a",{"b":null}]`, Literal: true},
		{Key: "seven", Value: "7"},
	}
	const contentJSON = `{"zip":"01234","phone":"+49 30","a":"<b> & \"q\" \\ \t\r\n\u0000` + "\u2028é😀" + `","":"",` +
		`"score":-1.50e+3,"big":12345678901234567890.10,"ok":true,"tags":["a",{"b":null}],"seven":"7"}`
	for name, test := range map[string]struct {
		request interface{ AppendJSON([]byte) []byte }
		want    string
	}{
		"organization": {
			&CreateRequest{OrganizationID: "o-1", LocatorID: "unused", Content: content, TypeKey: "k", TypeLabel: "L", Status: "open"},
			`{"organizationID":"o-1","content":` + contentJSON + `,"typeKey":"k","typeLabel":"L","status":"open"}`,
		},
		"radius": {
			&CreateRequest{LocatorID: "l", LocationSearch: LocationSearch{SearchText: "1 St, X"}, TypeKey: "k", TypeLabel: "L"},
			`{"locatorID":"l","locationSearch":{"searchText":"1 St, X"},"content":{},"typeKey":"k","typeLabel":"L"}`,
		},
		"regions": {
			&CreateRequest{LocatorID: "l", LocationSearch: LocationSearch{PostalCode: "01234"}, TypeKey: "k", TypeLabel: "L"},
			`{"locatorID":"l","locationSearch":{"postalCode":"01234"},"content":{},"typeKey":"k","typeLabel":"L"}`,
		},
		"nobody":            {&CreateRequest{TypeKey: "k"}, `{"content":{},"typeKey":"k","typeLabel":""}`},
		"update of nothing": {&UpdateRequest{}, `{}`},
		"update":            {&UpdateRequest{Status: text("open"), ExternalID: text(""), Content: content}, `{"Status":"open","ExternalID":"","Content":` + contentJSON + `}`},
		"content only":      {&UpdateRequest{Content: content[:1]}, `{"Content":{"zip":"01234"}}`},
	} {
		must.Same(t, "before"+test.want, string(test.request.AppendJSON([]byte("before"))), name)
	}
}

// arrival is a request as the service received it.
type arrival struct{ Line, Type, Authorization, Agent, Body string }

func TestRequestsArriveAsSpecified(t *testing.T) { // fault 99
	const lead, client = `{"ID":"lead-1"}`, `{"ID":"c-1","Secret":"s"}`
	var got arrival
	s := serve(t, false, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = arrival{r.Method + " " + r.RequestURI + " " + r.Proto, r.Header.Get("Content-Type"), r.Header.Get("Authorization"), r.UserAgent(), string(body)}
		if r.Header.Get("Accept-Encoding") != "identity" || r.ContentLength != int64(len(body)) || r.Referer() != "" {
			t.Errorf("%s has headers %v", got.Line, r.Header)
		}
		w.WriteHeader(200)
		io.WriteString(w, map[string]string{
			"/base/v3/oauth2/login": `{"Token":"jwt"}`, "/base/v3/oauth2/client": client, "/base/v3/lead/lead-1": lead, "/v1/trunk-1": createdBody,
		}[r.URL.Path])
	})
	c := config(s.URL)
	c.BaseURL, c.UserAgent = s.URL+"/base/", "leadferry/1"
	a := signedIn(t, c)
	create := someLead()
	create.Content[0].Value = "Ann\r\nX-Injected: 1"
	status := "open"
	update := &UpdateRequest{Status: &status}
	for _, test := range []struct {
		call func() error
		want arrival
	}{
		{
			func() error { _, err := a.Create(t.Context(), create); return err },
			arrival{"POST /v1/trunk-1 HTTP/1.1", "application/json", "Bearer " + access, "leadferry/1", string(create.AppendJSON(nil))},
		},
		{
			func() error { _, err := a.Update(t.Context(), "lead-1", update); return err },
			arrival{"PATCH /base/v3/lead/lead-1 HTTP/1.1", "application/json", "Bearer " + access, "leadferry/1", `{"Status":"open"}`},
		},
		{
			func() error { _, err := a.Login(t.Context(), "a@example.com", `p"w`); return err },
			arrival{"POST /base/v3/oauth2/login HTTP/1.1", "application/json", "", "leadferry/1", `{"email":"a@example.com","password":"p\"w"}`},
		},
		{
			func() error { _, err := a.CreateOAuthClient(t.Context(), "jwt"); return err },
			arrival{"POST /base/v3/oauth2/client HTTP/1.1", "", "Bearer jwt", "leadferry/1", ""},
		},
	} {
		must.Do(t, test.call())
		must.Same(t, test.want, got)
	}
}
