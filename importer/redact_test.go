package importer

import (
	"encoding/base64"
	"fmt"
	"html"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"leadferry/internal/redact"
	"leadferry/leadapi"
	"leadferry/mapping"
)

func sayings(values ...string) *mapping.Record {
	rec := &mapping.Record{Key: "K-0000000001", ExternalID: "X-0000000001", Status: "inProgress", Organization: "o-0000000001"}
	for i, v := range values {
		rec.Content = append(rec.Content, mapping.Field{Name: fmt.Sprint("f", i), Value: v})
	}
	return rec
}

// fault 116: of what a service repeats, the results and the summary have what no person
// is known by.
func TestRedacted(t *testing.T) {
	rec := sayings("Ann Lee", "ann.lee@example.com", "Li", "Working till June", "K-0000000001", "inProgress", "Müller", "Ann@x.de")
	rec.Content = append(rec.Content, mapping.Field{Name: "v", Value: "row 17 of ann.lee", Volatile: true})
	rec.SearchText, rec.PostalCode = "Görlitzer Straße 12", "02826"
	long := base64.StdEncoding.EncodeToString([]byte(`{"x":"ann.lee@example.com"}`))
	for message, want := range map[string]string{
		"email is not valid":                                      "email is not valid",
		`"Ann Lee" is too short`:                                  `"…" is too short`,
		"ANN LEE, ann.lee@example.com: Li is like Lisa":           "…, …: … is like Lisa",
		"no place for Görlitzer Straße 12 (02826)":                "no place for … (…)",
		"lead K-0000000001 of o-0000000001 is inProgress":         "lead K-0000000001 of o-0000000001 is inProgress",
		"number 402826 is not 02826x":                             "number 402826 is not 02826x",
		"in body: " + long:                                        withheld,
		"at " + url.QueryEscape("Görlitzer Straße 12"):            withheld,
		"name is " + strconv.QuoteToASCII("xGörlitzer Straße 12"): withheld,
		"it was cut: ann.lee@exam":                                withheld,
		"":                                                        "",
		`M\u00fcller is no name`:                                  withheld,
		"not m%C3%BCller":                                         withheld,
		"MÜLLER is no name":                                       "… is no name",
		"who is MrAnn@x.de?":                                      "who is Mr…?",
		"row 17 of ann.lee":                                       "…",
	} {
		if got := redacted(message, rec); got != want {
			t.Errorf("%q: %q, want %q", message, got, want)
		}
	}
}

// Whatever values there are and however they are repeated, none is left whole.
func TestNothingStaysThatIsRepeated(t *testing.T) {
	ways := map[string]func(in, s string) string{
		"as it is":    func(_, s string) string { return s },
		"small":       func(_, s string) string { return redact.Fold(s) },
		"query":       func(_, s string) string { return url.QueryEscape(s) },
		"path":        func(_, s string) string { return url.PathEscape(s) },
		"Go":          func(_, s string) string { return strconv.Quote(s) },
		"ASCII":       func(_, s string) string { return strconv.QuoteToASCII(s) },
		"hexadecimal": func(_, s string) string { return fmt.Sprintf("%X", s) },
		"base64":      func(in, s string) string { return base64.StdEncoding.EncodeToString([]byte(in + s)) },
		"HTML":        func(_, s string) string { return html.EscapeString(s) },
		"twice":       func(_, s string) string { return url.QueryEscape(url.QueryEscape(s)) },
		"base64 URL":  func(in, s string) string { return base64.RawURLEncoding.EncodeToString([]byte(in + s)) },
	}
	for name, encode := range ways {
		t.Run(name, rapid.MakeCheck(func(t *rapid.T) {
			value := rapid.StringMatching(`[a-zA-Z0-9äß東 @+"<\\\n]{12,40}`).Draw(t, "value")
			around := rapid.StringMatching(`[ -~ä]{0,20}`)
			told := encode(around.Draw(t, "in"), value)
			message := around.Draw(t, "before") + told + around.Draw(t, "behind")
			if got := redacted(message, sayings(value)); strings.Contains(got, told) {
				t.Errorf("%q stays in %q", told, got)
			}
		}))
	}
}

func TestTheRejectsFileHasTheWholeMessage(t *testing.T) {
	j := &job{it: &item{rec: *sayings("Ann Lee")}}
	j.refuse("not updated: %s", &leadapi.Error{Status: 422, Message: `no "Ann Lee"`})
	if j.text != `not updated: HTTP 422: no "…"` || j.whole != `not updated: HTTP 422: no "Ann Lee"` {
		t.Errorf("%q, whole %q", j.text, j.whole)
	}
}
