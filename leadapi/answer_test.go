package leadapi

import (
	"net/http"
	"strconv"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
)

// faults 61, 64, 123
func TestRetryAfterIsRead(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	const most = 15 * time.Minute
	for _, test := range []struct {
		text, date string
		want       time.Duration
		there      bool
	}{
		{"", "", 0, false},
		{"0", "", 0, true},
		{"7", "", 7 * time.Second, true},
		{" 7 ", "", 7 * time.Second, true},
		{"900", "", most, true},
		{"901", "", most, true},
		{"1000000000", "", most, true},
		{"99999999999999999999999", "", most, true},
		{"-1", "", 0, false},
		{"+1", "", 0, false},
		{"1.5", "", 0, false},
		{"1e9", "", 0, false},
		{"soon", "", 0, false},
		{"٧", "", 0, false},
		{"Sun, 01 Mar 2026 12:00:30 GMT", "", 30 * time.Second, true},
		{"Sunday, 01-Mar-26 12:00:30 GMT", "", 30 * time.Second, true},
		{"Sun Mar  1 12:00:30 2026", "", 30 * time.Second, true},
		{"Sun, 01 Mar 2026 13:00:00 GMT", "", most, true},
		{"Sun, 01 Mar 2026 11:59:00 GMT", "", 0, true},
		{"Sun, 01 Mar 2026 12:00:30 GMT", "Sun, 01 Mar 2026 12:00:20 GMT", 10 * time.Second, true},
		{"Sun, 01 Mar 2026 12:00:30 GMT", "yesterday", 30 * time.Second, true},
		{"Sun, 01 Mar 2026 12:00:30 PST", "", 0, false},
		{"2026-03-01T12:00:30Z", "", 0, false},
	} {
		h := http.Header{}
		if test.text != "" {
			h.Set("Retry-After", test.text)
		}
		h.Set("Date", test.date)
		got, there := retryAfter(h, now)
		if got != test.want || there != test.there {
			t.Errorf("%q at %q: %v, %v; want %v, %v", test.text, test.date, got, there, test.want, test.there)
		}
	}
}

// byReflection is how an answer's members are read by decode.
var byReflection = json.WithUnmarshalers(json.JoinUnmarshalers(
	json.UnmarshalFromFunc(loose[string]),
	json.UnmarshalFromFunc(loose[bool]),
	json.UnmarshalFromFunc(loose[int64]),
	json.UnmarshalFromFunc(loose[Location]),
	json.UnmarshalFromFunc(loose[RequestMeta]),
	json.UnmarshalFromFunc(loose[map[string]jsontext.Value]),
))

// scanned reads a body as the calls do, which must come to the same as reflection does.
func scanned[T any](t *testing.T, body []byte, to *T, member func(name []byte, v jsontext.Value), want *T) bool {
	ok := new(Client).members(body, member)
	wanted := json.Unmarshal(body, want, byReflection) == nil && jsontext.Value(body).Kind() == '{'
	if diff := cmp.Diff(want, to); ok != wanted || ok && diff != "" {
		t.Errorf("%q: %v, want %v %s", body, ok, wanted, diff)
	}
	return ok
}

// faults 52, 70, 118, m27: whatever comes, reading it ends without panic, in bounds, and an ID is plain.
func FuzzAnswers(f *testing.F) {
	for _, body := range []string{createdBody, leadBody, `{"error":{"message":"x"}}`, `{"access_token":"a","expires_in":1e400}`, "\xff\xfe", "[", `{"leadID":"\ud800"}`, `{"lead\u0049D":"a","LEADID":"b","x":{"y":1}}`, `{"leadID":"a","leadID":"a"}`, `{"leadID":"a","x":{"y":1,"y":1}}`, `{"leadID":"a"} {}`, `null`, `{}`, `{"leadID":null,"assignedLocationName":7}`} {
		f.Add([]byte(body), "Sun, 01 Mar 2026 12:00:30 GMT")
	}
	f.Fuzz(func(t *testing.T, body []byte, header string) {
		var lead Lead
		if scanned(t, body, &lead, lead.member, new(Lead)) && validID(lead.ID) && (len(lead.ID) > 128 || !utf8.ValidString(lead.ID)) {
			t.Errorf("ID %q", lead.ID)
		}
		type wire struct {
			LeadID         string `json:"leadID"`
			OrganizationID string `json:"assignedOrganizationID"`
			LocationName   string `json:"assignedLocationName"`
			Status         int    `json:"-"`
		}
		var made Created
		scanned(t, body, (*wire)(&made), made.member, new(wire))
		text := clean(words(body), secret)
		if n := utf8.RuneCountInString(text); n == 0 || n > 500 || !utf8.ValidString(text) {
			t.Errorf("message of %d characters", n)
		}
		for _, r := range text {
			if !strconv.IsPrint(r) {
				t.Errorf("message with %U", r)
			}
		}
		if wait, there := retryAfter(http.Header{"Retry-After": {header}, "Date": {string(body)}}, time.Now()); wait < 0 || wait > 15*time.Minute || !there && wait != 0 {
			t.Errorf("wait of %v", wait)
		}
	})
}
