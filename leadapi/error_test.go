package leadapi

import (
	"compress/gzip"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// judgement is what the engine reads of an error.
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

// faults 38, 42, 45, 51, 52, 53, 57-60, 63-65, 70, m9, m14, m15
func TestEveryAnswerIsJudgedByItsStatus(t *testing.T) {
	is := func(status int, applied Applied, reason string) judgement {
		return judgement{Status: status, Applied: applied, Reason: reason}
	}
	long := strings.Repeat("x", maxBody+1)
	tests := map[string]struct {
		answer string
		want   judgement
	}{
		"201 without ID":             {answerText(201, `{"assignedOrganizationID":"o"}`), is(201, Yes, ReasonNoLeadID)},
		"201 empty":                  {answerText(201, ""), is(201, Yes, ReasonNoLeadID)},
		"201 ID is a number":         {answerText(201, `{"leadID":12345678901234567890}`), is(201, Yes, ReasonNoLeadID)},
		"201 ID is a path":           {answerText(201, `{"leadID":"../x"}`), is(201, Yes, ReasonNoLeadID)},
		"201 ID is dots":             {answerText(201, `{"leadID":".."}`), is(201, Yes, ReasonNoLeadID)},
		"201 ID twice":               {answerText(201, `{"leadID":"a","leadID":"b"}`), is(201, Yes, ReasonNoLeadID)},
		"201 ID in other case":       {answerText(201, `{"LEADID":"a"}`), is(201, Yes, ReasonNoLeadID)},
		"201 trailing text":          {answerText(201, createdBody+"x"), is(201, Yes, ReasonNoLeadID)},
		"201 invalid UTF-8":          {answerText(201, "{\"leadID\":\"a\",\"x\":\"\xff\"}"), is(201, Yes, ReasonNoLeadID)},
		"201 gzip bomb":              {answerText(201, zipped(strings.Repeat(" ", 1<<20)+createdBody)), is(201, Yes, ReasonNoLeadID)},
		"201 packed in another way":  {answerText(201, "\x28\xb5\x2f\xfd", "Content-Encoding: zstd"), is(201, Yes, ReasonNoLeadID)},
		"201 gzip cut":               {answerText(201, zipped(createdBody)[:40]), is(201, Yes, ReasonNoLeadID)},
		"201 gzip and more":          {answerText(201, zipped(createdBody)+"x"), is(201, Yes, ReasonNoLeadID)},
		"201 gzip":                   {answerText(201, "\x1f\x8b\x08", "Content-Encoding: gzip"), is(201, Yes, ReasonNoLeadID)},
		"201 too long":               {answerText(201, createdBody+strings.Repeat(" ", maxBody)), is(201, Yes, ReasonNoLeadID)},
		"202 without ID":             {answerText(202, `{}`), is(202, Maybe, ReasonNoLeadID)},
		"204":                        {"HTTP/1.1 204 x\r\n\r\n", is(204, Maybe, ReasonNoLeadID)},
		"101":                        {"HTTP/1.1 101 x\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n", is(101, Maybe, ReasonBadAnswer)},
		"304":                        {"HTTP/1.1 304 x\r\n\r\n", is(304, Maybe, ReasonRedirect)},
		"307 with a bad Location":    {answerText(307, "", "Location: http://%zz/"), is(307, Maybe, ReasonRedirect)},
		"400":                        {answerText(400, `{"message":"no"}`), is(400, No, ReasonRefused)},
		"400 of 1 MiB and more":      {answerText(400, long), is(400, No, ReasonRefused)},
		"401":                        {answerText(401, ""), is(401, No, ReasonUnauthorized)},
		"407":                        {answerText(407, ""), is(407, No, ReasonProxyAuth)},
		"408":                        {answerText(408, ""), is(408, Maybe, ReasonTimeout)},
		"421":                        {answerText(421, ""), is(421, No, ReasonMisdirected)},
		"425":                        {answerText(425, ""), is(425, Maybe, ReasonTimeout)},
		"429":                        {answerText(429, ""), is(429, No, ReasonThrottled)},
		"429 with Retry-After":       {answerText(429, "", "Retry-After: 7"), judgement{429, No, ReasonThrottled, true, 7 * time.Second}},
		"499":                        {answerText(499, ""), is(499, Maybe, ReasonTimeout)},
		"500":                        {answerText(500, ""), is(500, Maybe, ReasonServerError)},
		"500 with Retry-After":       {answerText(500, "", "Retry-After: 7"), judgement{500, Maybe, ReasonServerError, true, 7 * time.Second}},
		"503":                        {answerText(503, ""), is(503, Maybe, ReasonServerError)},
		"503 with Retry-After":       {answerText(503, "", "Retry-After: 0"), judgement{503, Maybe, ReasonServerError, true, 0}},
		"503 with bad Retry-After":   {answerText(503, "", "Retry-After: soon"), is(503, Maybe, ReasonServerError)},
		"600":                        {answerText(600, ""), is(600, Maybe, ReasonBadAnswer)},
		"000":                        {answerText(0, ""), is(0, Maybe, ReasonBadAnswer)},
		"not HTTP":                   {"SSH-2.0-x\r\n\r\n", is(0, Maybe, ReasonNoAnswer)},
		"headers of 70 kB":           {answerText(201, createdBody, "X: "+strings.Repeat("x", 70<<10)), is(0, Maybe, ReasonNoAnswer)},
		"informational answers":      {strings.Repeat("HTTP/1.1 103 x\r\nX: "+strings.Repeat("x", 900)+"\r\n\r\n", 100), is(0, Maybe, ReasonNoAnswer)},
		"two lengths":                {answerText(201, createdBody, "Content-Length: 3"), is(0, Maybe, ReasonNoAnswer)},
		"a negative length":          {"HTTP/1.1 201 x\r\nContent-Length: -1\r\n\r\n", is(0, Maybe, ReasonNoAnswer)},
		"an unknown transfer coding": {answerText(201, createdBody, "Transfer-Encoding: br"), is(0, Maybe, ReasonNoAnswer)},
	}
	for _, status := range []int{403, 404, 409, 410, 413, 415, 422, 431} {
		tests[fmt.Sprint(status)] = struct {
			answer string
			want   judgement
		}{answerText(status, ""), is(status, No, ReasonRefused)}
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p := answers(t, test.answer)
			e := fault(t, signedIn(t, config(p.address())))
			if e == nil {
				t.Fatal("the create succeeded")
			}
			if diff := cmp.Diff(test.want, judge(e)); diff != "" {
				t.Errorf("%v\n%s", e, diff)
			}
			if p.seen() != 1 {
				t.Errorf("%d requests arrived, want 1", p.seen())
			}
			if len([]rune(e.Message)) > 500 || e.Message == "" {
				t.Errorf("the message has %d characters", len([]rune(e.Message)))
			}
		})
	}
}

func zipped(text string) string {
	var b strings.Builder
	z := gzip.NewWriter(&b)
	io.WriteString(z, text)
	z.Close()
	return b.String()
}

// fault 51
func TestCreateTakesAnID(t *testing.T) {
	for name, test := range map[string]struct {
		answer string
		want   Created
	}{
		"201":                  {answerText(201, createdBody), Created{"lead-1", "org-1", "Main St", 201}},
		"200":                  {answerText(200, createdBody), Created{"lead-1", "org-1", "Main St", 200}},
		"202":                  {answerText(202, `{"leadID":"a","more":[1,{}]}`), Created{"a", "", "", 202}},
		"others of wrong type": {answerText(201, `{"leadID":"a","assignedOrganizationID":7,"assignedLocationName":null}`), Created{"a", "", "", 201}},
		"gzip":                 {answerText(201, zipped(createdBody), "Content-Encoding: gzip"), Created{"lead-1", "org-1", "Main St", 201}},
		"gzip, untold":         {answerText(201, zipped(createdBody)), Created{"lead-1", "org-1", "Main St", 201}},
		"byte order mark":      {answerText(201, "\ufeff"+createdBody), Created{"lead-1", "org-1", "Main St", 201}},
		"gzip with mark":       {answerText(201, zipped("\ufeff"+createdBody), "Content-Encoding: x-gzip"), Created{"lead-1", "org-1", "Main St", 201}},
		"unpacked on the way":  {answerText(201, " "+createdBody, "Content-Encoding: gzip"), Created{"lead-1", "org-1", "Main St", 201}},
		"packed, it says not":  {answerText(201, zipped(createdBody), "Content-Encoding: identity"), Created{"lead-1", "org-1", "Main St", 201}},
		"others of no pattern": {answerText(201, `{"leadID":"a","assignedOrganizationID":"=1+1","assignedLocationName":"\u001b[2J"}`), Created{"a", "", `\x1b[2J`, 201}},
		"after 1xx":            {"HTTP/1.1 103 x\r\n\r\n" + answerText(201, createdBody), Created{"lead-1", "org-1", "Main St", 201}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := signedIn(t, config(answers(t, test.answer).address())).Create(t.Context(), someLead())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(&test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
