package leadapi

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json"

	"leadferry/internal/testsupport/must"
)

func TestRetryAfterIsRead(t *testing.T) { // faults 61, 64, 123
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
		{"99999999999999999999999", "", most, true},
		{"-1", "", 0, false},
		{"1.5", "", 0, false},
		{"soon", "", 0, false},
		{"٧", "", 0, false},
		{"Sun, 01 Mar 2026 12:00:30 GMT", "", 30 * time.Second, true},
		{"Sun Mar  1 12:00:30 2026", "", 30 * time.Second, true},
		{"Sun, 01 Mar 2026 13:00:00 GMT", "", most, true},
		{"Sun, 01 Mar 2026 11:59:00 GMT", "", 0, true},
		{"Sun, 01 Mar 2026 12:00:30 GMT", "Sun, 01 Mar 2026 12:00:20 GMT", 10 * time.Second, true},
		{"Sun, 01 Mar 2026 12:00:30 GMT", "yesterday", 30 * time.Second, true},
		{"Sun, 01 Mar 2026 12:00:30 PST", "", 0, false},
	} {
		h := http.Header{}
		if test.text != "" {
			h.Set("Retry-After", test.text)
		}
		h.Set("Date", test.date)
		got, there := retryAfter(h, now)
		must.Same(t, []any{test.want, test.there}, []any{got, there}, test.text, test.date)
	}
}

// faults 52, 70, 118, m27: any answer is read without a panic, texts and waits are bounded, and IDs are valid.
func FuzzAnswers(f *testing.F) {
	for _, body := range []string{createdBody, leadBody, `{"error":{"message":"x"}}`, `{"access_token":"a","expires_in":1e400}`, "\xff\xfe", "[", `{"leadID":"\ud800"}`, `{"lead\u0049D":"a","LEADID":"b","x":{"y":1}}`, `{"leadID":"a","leadID":"a"}`, `{"leadID":"a","x":{"y":1,"y":1}}`, `{"leadID":"a"} {}`, `null`, `{}`, `{"leadID":null,"assignedLocationName":7}`} {
		f.Add([]byte(body), "Sun, 01 Mar 2026 12:00:30 GMT", "deflate, gzip")
	}
	f.Fuzz(func(t *testing.T, body []byte, header, packing string) {
		a := answer{Response: &http.Response{Header: http.Header{"Content-Encoding": {packing}}}, body: body, whole: true}
		a.unpack()
		plain := a.body
		var lead Lead
		var made Created
		if lead.read(plain) != (lead.ID != "") || made.read(plain, "") != (made.LeadID != "") {
			t.Errorf("%q: accepted without an ID, or refused with one", plain)
		}
		for _, id := range []string{lead.ID, lead.OwnerID, made.LeadID, made.OrganizationID} {
			if id != "" && !ValidID(id) {
				t.Errorf("ID %q", id)
			}
		}
		for _, text := range []string{lead.Status, lead.LocationName, lead.ExternalID, made.LocationName} {
			if len(text) > 4*500 || !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl) {
				t.Errorf("text %q", text)
			}
		}
		text := redact(words(body), secret)
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

// fault 134: texts of an answer that are stored or shown are checked and bounded when the answer is read.
func TestTextsOfAnAnswerAreCheckedAndBounded(t *testing.T) {
	long := strings.Repeat("x", 1<<19)
	object := func(name, text string) []byte { b, _ := json.Marshal(map[string]string{name: text}); return b }
	for status, want := range map[string]string{
		"open": "open", "waitingForParts": "waitingForParts", "Closed | Won": "Closed | Won", "in Prüfung": "in Prüfung", strings.Repeat("x", 64): strings.Repeat("x", 64),
		strings.Repeat("x", 65): "", "=1+1": "", "a\x1b[2J": "", " open": "", "a\u202eb": "", "@x": "", long: "",
	} {
		lead := new(Lead)
		if lead.read(object("Status", status)); lead.Status != want {
			t.Errorf("status %.80q: %q, want %q", status, lead.Status, want)
		}
	}
	for id, want := range map[string]string{"org-1": "org-1", "a b": "", "=1+1": "", "\x1b[2J": "", long: ""} {
		lead, made := new(Lead), new(Created)
		lead.read(object("OwnerID", id))
		made.read(object("assignedOrganizationID", id), "")
		must.Same(t, []any{want, want}, []any{lead.OwnerID, made.OrganizationID}, id)
	}
	made := new(Created)
	if made.read(object("assignedOrganizationID", "Org 7"), "Org 7"); made.OrganizationID != "Org 7" {
		t.Errorf("the organization that was asked for is read as %q", made.OrganizationID)
	}
	for name, want := range map[string]string{"Café Nord": "Café Nord", "a\x1b[2Jb": `a\x1b[2Jb`, "=1+1": "=1+1", long: long[:500], "\u202e\r\n": `\u202e\r\n`} {
		lead, made := new(Lead), new(Created)
		lead.read(append(append([]byte(`{"Location":`), object("Name", name)...), '}'))
		made.read(object("assignedLocationName", name), "")
		must.Same(t, []any{want, want}, []any{lead.LocationName, made.LocationName}, name)
	}
	for id, want := range map[string]string{"CRM 7/ü": "CRM 7/ü", "a\nb": "", long: ""} {
		lead := new(Lead)
		if lead.read(object("ExternalID", id)); lead.ExternalID != want {
			t.Errorf("ExternalID %.80q: %q, want %q", id, lead.ExternalID, want)
		}
	}
}
