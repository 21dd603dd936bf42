package leadapi

import (
	"compress/gzip"
	"io"
	"strconv"
	"strings"
	"testing"
	"time"

	"leadferry/internal/explain"
	"leadferry/internal/testsupport/must"
)

// judgement has the fields of an error that the importer uses.
type judgement struct {
	Status        int
	Applied       Applied
	Reason        string
	HasRetryAfter bool
	RetryAfter    time.Duration
}

func judge(e *Error) judgement {
	return judgement{e.Status, e.Applied, e.Reason, e.HasRetryAfter, e.RetryAfter}
}

// One answer of each class; internal/e2e tests more. faults 38, 42, 45, 51, 52, 53, 57-60, 63-65, 70, m9, m14, m15
func TestEveryAnswerIsJudgedByItsStatus(t *testing.T) {
	is := func(status int, applied Applied, reason string) judgement {
		return judgement{Status: status, Applied: applied, Reason: reason}
	}
	long := strings.Repeat("x", maxBody+1)
	tests := map[string]struct {
		answer string
		want   judgement
	}{
		"201 without ID":            {answerText(201, `{"assignedOrganizationID":"o"}`), is(201, Yes, ReasonNoLeadID)},
		"201 ID twice":              {answerText(201, `{"leadID":"a","leadID":"b"}`), is(201, Yes, ReasonNoLeadID)},
		"201 gzip bomb":             {answerText(201, zipped(strings.Repeat(" ", 1<<20)+createdBody)), is(201, Yes, ReasonNoLeadID)},
		"201 packed in another way": {answerText(201, "\x28\xb5\x2f\xfd", "Content-Encoding: zstd"), is(201, Yes, ReasonNoLeadID)},
		"201 gzip cut":              {answerText(201, zipped(createdBody)[:40]), is(201, Yes, ReasonNoLeadID)},
		"201 too long":              {answerText(201, createdBody+strings.Repeat(" ", maxBody)), is(201, Yes, ReasonNoLeadID)},
		"202 without ID":            {answerText(202, `{}`), is(202, Maybe, ReasonNoLeadID)},
		"204":                       {"HTTP/1.1 204 x\r\n\r\n", is(204, Maybe, ReasonNoLeadID)},
		"101":                       {"HTTP/1.1 101 x\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n", is(101, Maybe, ReasonBadAnswer)},
		"304":                       {"HTTP/1.1 304 x\r\n\r\n", is(304, Maybe, ReasonRedirect)},
		"307 with a bad Location":   {answerText(307, "", "Location: http://%zz/"), is(307, Maybe, ReasonRedirect)},
		"400":                       {answerText(400, `{"message":"no"}`), is(400, No, ReasonRefused)},
		"400 of 1 MiB and more":     {answerText(400, long), is(400, No, ReasonRefused)},
		"401":                       {answerText(401, ""), is(401, No, ReasonUnauthorized)},
		"407":                       {answerText(407, ""), is(407, No, ReasonProxyAuth)},
		"408":                       {answerText(408, ""), is(408, Maybe, ReasonTimeout)},
		"421":                       {answerText(421, ""), is(421, No, ReasonMisdirected)},
		"429":                       {answerText(429, ""), is(429, No, ReasonThrottled)},
		"429 with Retry-After":      {answerText(429, "", "Retry-After: 7"), judgement{429, No, ReasonThrottled, true, 7 * time.Second}},
		"500":                       {answerText(500, ""), is(500, Maybe, ReasonServerError)},
		"500 with Retry-After":      {answerText(500, "", "Retry-After: 7"), judgement{500, Maybe, ReasonServerError, true, 7 * time.Second}},
		"600":                       {answerText(600, ""), is(600, Maybe, ReasonBadAnswer)},
		"headers of 70 kB":          {answerText(201, createdBody, "X: "+strings.Repeat("x", 70<<10)), is(0, Maybe, ReasonNoAnswer)},
		"informational answers":     {strings.Repeat("HTTP/1.1 103 x\r\nX: "+strings.Repeat("x", 900)+"\r\n\r\n", 100), is(0, Maybe, ReasonNoAnswer)},
	}
	for name, test := range tests {
		p := answers(t, test.answer)
		e := tryCreate(t, signedIn(t, config(p.address())))
		if e == nil {
			t.Fatal(name, "the create succeeded")
		}
		must.Same(t, test.want, judge(e), e, name)
		must.Same(t, 1, p.seen(), "requests arrived", name)
		if len([]rune(e.Message)) > 500 || e.Message == "" {
			t.Errorf("%v: the message has %d characters", name, len([]rune(e.Message)))
		}
	}
}

func zipped(text string) string {
	var b strings.Builder
	z := gzip.NewWriter(&b)
	io.WriteString(z, text)
	z.Close()
	return b.String()
}

func TestCreateReadsTheAnswer(t *testing.T) { // fault 51
	for name, test := range map[string]struct {
		answer string
		want   Created
	}{
		"201":                 {answerText(201, createdBody), Created{"lead-1", "org-1", "Main St", 201}},
		"202":                 {answerText(202, `{"leadID":"a","more":[1,{}]}`), Created{"a", "", "", 202}},
		"gzip":                {answerText(201, zipped(createdBody), "Content-Encoding: gzip"), Created{"lead-1", "org-1", "Main St", 201}},
		"gzip, unannounced":   {answerText(201, zipped(createdBody)), Created{"lead-1", "org-1", "Main St", 201}},
		"byte order mark":     {answerText(201, "\ufeff"+createdBody), Created{"lead-1", "org-1", "Main St", 201}},
		"gzip with mark":      {answerText(201, zipped("\ufeff"+createdBody), "Content-Encoding: x-gzip"), Created{"lead-1", "org-1", "Main St", 201}},
		"invalid other texts": {answerText(201, `{"leadID":"a","assignedOrganizationID":"=1+1","assignedLocationName":"\u001b[2J"}`), Created{"a", "", `\x1b[2J`, 201}},
	} {
		got, err := signedIn(t, config(answers(t, test.answer).address())).Create(t.Context(), someLead())
		must.Do(t, err)
		must.Same(t, &test.want, got, name)
	}
}

// `leadferry explain` has an entry for every status. It is that of the status's class.
func TestStatusesAreExplained(t *testing.T) {
	for status := 300; status < 600; status++ {
		_, class := appliedBy(status)
		if e, found := explain.Find(strconv.Itoa(status)); !found || e.Name != class {
			t.Errorf("%d: %q, want %q", status, e.Name, class)
		}
	}
}
