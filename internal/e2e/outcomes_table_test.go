package e2e

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"strings"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/text/encoding/unicode"
)

// This file has the rows of the table that [TestOutcomeOfEachAnswerToACreate] meets. First those that differ by status.

// made expects a lead after so many POSTs.
func made(posts int) rowWant { return rowWant{outcome: "created", http: "201", posts: posts} }

// doubtful expects a row in doubt after one POST, with its HTTP status and a piece of the error.
func doubtful(http, text string) rowWant {
	return rowWant{outcome: "in_doubt", http: http, text: text, posts: 1}
}

// refusedWith expects a rejected row, with its HTTP status and a piece of the service's words.
func refusedWith(http, text string) rowWant {
	return rowWant{outcome: "rejected", http: http, text: text, posts: 1}
}

// ofTheRow is the number of the row whose values the table uses. An answer gets the values of its own row instead.
const ofTheRow = 2

const (
	ownErrorText = "the service answered with an error"
	brokenText   = "the connection broke after the request was sent"
	noIDText     = "the answer carries no usable lead ID"
	unreadText   = "the answer could not be read"
	lateText     = "no answer in time"
)

func statusRows() []outcomeRow {
	rows := []outcomeRow{
		{name: "200 with ID", faults: "51", act: rawAct{say: answered(200, createdBody(ownID))}, stored: true, want: rowWant{outcome: "created", http: "200", posts: 1}},
		{name: "202 with ID", faults: "51", act: rawAct{say: answered(202, createdBody(ownID))}, stored: true, want: rowWant{outcome: "created", http: "202", posts: 1}},
		{name: "200 without ID", faults: "51", act: rawAct{say: answered(200, "{}")}, both: true, want: doubtful("200", noIDText)},
		{name: "202 without ID", faults: "51", act: rawAct{say: answered(202, `{"state":"queued"}`)}, both: true, want: doubtful("202", noIDText)},
		{name: "204", faults: "51", act: rawAct{say: "HTTP/1.1 204 Said\r\n\r\n"}, both: true, want: doubtful("204", noIDText)},
		{name: "206 with ID", faults: "51, 65", act: rawAct{say: answered(206, createdBody(ownID))}, stored: true, want: rowWant{outcome: "created", http: "206", posts: 1}},
		{name: "299 with ID", faults: "65", act: rawAct{say: answered(299, createdBody(ownID))}, stored: true, want: rowWant{outcome: "created", http: "299", posts: 1}},
		{name: "one length said twice", act: rawAct{say: lengthTwice(createdBody(ownID), 0)}, both: true, want: doubtful("", brokenText)},
		{name: "two lengths", act: rawAct{say: lengthTwice(createdBody(ownID), 1)}, both: true, want: doubtful("", brokenText)},
		{name: "101", faults: "65", act: rawAct{say: "HTTP/1.1 101 Said\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n"}, both: true, want: doubtful("101", unreadText)},
		{name: "400 JSON", faults: "52", act: rawAct{say: answered(400, `{"message":"typeKey is not known"}`)}, want: refusedWith("400", "typeKey is not known")},
		{name: "400 text", faults: "52", act: rawAct{say: answered(400, "no such form")}, want: refusedWith("400", "no such form")},
		{name: "400 HTML", faults: "52, 70", act: rawAct{say: answered(400, "<html><h1>Bad</h1></html>", "Content-Type: text/html")}, want: refusedWith("400", "<html>")},
		{name: "400 empty", faults: "52", act: rawAct{say: answered(400, "")}, want: refusedWith("400", "no message was given")},
		{name: "400 of 10 MB", faults: "52, 45", act: rawAct{say: answered(400, strings.Repeat("no ", 10<<20/3))}, want: refusedWith("400", "no no no")},
		{name: "400 with escape codes", faults: "52, 118", act: rawAct{say: answered(400, "\x1b]0;owned\x07\x1b[2J\r\nforged=line")}, want: refusedWith("400", `\x1b[2J\r\nforged=line`)},
		{name: "400 with a formula", faults: "52, 117", act: rawAct{say: answered(400, `{"message":"=1+1"}`)}, want: refusedWith("400", "HTTP 400 (refused): =1+1")},
		{name: "400 cut", faults: "52", act: rawAct{say: "HTTP/1.1 400 Said\r\nContent-Length: 90\r\n\r\nno such", end: hangUp}, want: refusedWith("400", "no such")},
		{
			name: "422 that repeats the row", faults: "60, 116", want: refusedWith("422", "known already: "),
			act: rawAct{say: answered(422, fmt.Sprintf(`{"message":"known already: lead '%s' <%s> with \"%s\""}`, rawValues(ofTheRow)[0], rawValues(ofTheRow)[1], rawValues(ofTheRow)[2]))},
		},
		{
			name: "400 that repeats secrets", faults: "111, 116", want: refusedWith("400", "withheld"),
			act: rawAct{say: answered(400, fmt.Sprintf(`{"message":"token %s1 of %s"}`, rawAccess, rawSecret))},
		},
		{name: "401 once", faults: "53", act: rawAct{say: answered(401, "{}")}, want: made(2)},
		{name: "401 twice", faults: "53", act: rawAct{say: answered(401, "{}")}, want: made(3)},
		{name: "421 once", faults: "65", act: rawAct{say: answered(421, "{}")}, want: made(2)},
		{name: "409", faults: "58", act: rawAct{say: answered(409, `{"error":{"message":"is there already"}}`)}, want: refusedWith("409", "is there already")},
	}
	for _, status := range []int{402, 403, 404, 405, 406, 410, 411, 412, 413, 414, 415, 416, 417, 418, 422, 423, 424, 426, 428, 431, 450, 451, 498} {
		rows = append(rows, outcomeRow{
			name: itoa(status), faults: "54-56, 59, 60", act: rawAct{say: answered(status, `{"detail":"not like this"}`)},
			want: refusedWith(itoa(status), "not like this"),
		})
	}
	for _, status := range []int{408, 425, 499} {
		rows = append(rows, outcomeRow{name: itoa(status), faults: "57, 65", act: rawAct{say: answered(status, "")}, both: true, want: doubtful(itoa(status), lateText)})
	}
	for _, status := range []int{500, 501, 502, 503, 504, 505, 507, 508, 511, 520, 599} {
		rows = append(rows, outcomeRow{
			name: itoa(status), faults: "42, 63, 64, 65", act: rawAct{say: answered(status, "{}")},
			both: true, want: doubtful(itoa(status), ownErrorText),
		})
	}
	for _, status := range []int{600, 999} {
		rows = append(rows, outcomeRow{name: itoa(status), faults: "65", act: rawAct{say: answered(status, createdBody(ownID))}, both: true, want: doubtful(itoa(status), unreadText)})
	}
	return append(rows,
		outcomeRow{name: "000", faults: "65", act: rawAct{say: answered(0, createdBody(ownID))}, both: true, want: doubtful("", unreadText)},
		outcomeRow{name: "099", faults: "65", act: rawAct{say: answered(99, createdBody(ownID))}, both: true, want: doubtful("99", unreadText)},
		outcomeRow{name: "99 in two digits", faults: "65", act: rawAct{say: "HTTP/1.1 99 Said\r\nContent-Length: 0\r\n\r\n"}, both: true, want: doubtful("", brokenText)},
		outcomeRow{name: "500 with a long wait", faults: "63", act: rawAct{say: answered(500, "{}", "Retry-After: 900")}, both: true, want: doubtful("500", ownErrorText)},
	)
}

// lengthTwice is an answer that gives two lengths in one line. The second is larger by more.
func lengthTwice(body string, more int) string {
	n := len(strings.ReplaceAll(body, ownID, firstID))
	return fmt.Sprintf("HTTP/1.1 201 Said\r\nDate: Mon, 23 Nov 2026 11:00:00 GMT\r\ncontent-length: %d , %d\r\n\r\n%s", n, n+more, body)
}

func redirectRows(target string) []outcomeRow {
	var rows []outcomeRow
	for _, status := range []int{300, 301, 302, 303, 304, 305, 306, 307, 308} {
		text := answered(status, "", "Location: "+target+"/elsewhere")
		if status == 304 {
			text = "HTTP/1.1 304 Said\r\nLocation: " + target + "/\r\n\r\n"
		}
		rows = append(rows, outcomeRow{name: itoa(status), faults: "50, 65", act: rawAct{say: text}, both: true, want: doubtful(itoa(status), "the answer was a redirect")})
	}
	for name, location := range map[string]string{"to a file": "file:///etc/passwd", "to nonsense": "http://%zz/", "to itself": "/v1/other"} {
		rows = append(rows, outcomeRow{
			name: "307 " + name, faults: "50", act: rawAct{say: answered(307, "", "Location: "+location)},
			both: true, want: doubtful("307", "the answer was a redirect"),
		})
	}
	return append(rows, outcomeRow{
		name: "201 with a Location", faults: "50", stored: true, want: made(1),
		act: rawAct{say: answered(201, createdBody(ownID), "Location: "+target+"/x", "Refresh: 0; url="+target)},
	})
}

// waitRows are answers which say that the create was not applied.
func waitRows() []outcomeRow {
	var rows []outcomeRow
	for name, headers := range map[string][]string{
		"missing":     nil,
		"0 seconds":   {"Retry-After: 0"},
		"a second":    {"Retry-After: 1"},
		"a date":      {"Retry-After: Sun, 06 Nov 1994 08:49:38 GMT", "Date: Sun, 06 Nov 1994 08:49:37 GMT"},
		"text":        {"Retry-After: soon"},
		"given twice": {"Retry-After: 0", "Retry-After: 900"},
	} {
		rows = append(rows, outcomeRow{name: "429, Retry-After " + name, faults: "61", act: rawAct{say: answered(429, "{}", headers...)}, want: made(2)})
	}
	return rows
}

// secondBody is the body of a right answer to the second create.
var secondBody = createdBody("lead-00000000-002")

// ownBody is the body of a right answer to the row's create.
var ownBody = createdBody(ownID)

func bodyRows() []outcomeRow {
	var rows []outcomeRow
	utf16, _ := unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewEncoder().String(ownBody)
	bodies := map[string]string{
		"empty":                   "",
		"not JSON":                "OK",
		"HTML":                    "<html>Created</html>",
		"null":                    "null",
		"a list":                  "[" + ownBody + "]",
		"no leadID":               `{"assignedOrganizationID":"o"}`,
		"leadID elsewhere":        `{"lead":` + ownBody + `}`,
		"leadID in other letters": strings.Replace(ownBody, "leadID", "LeadId", 1),
		"leadID null":             `{"leadID":null}`,
		"leadID a number":         `{"leadID":12345678901234567890}`,
		"leadID empty":            `{"leadID":""}`,
		"leadID dots":             `{"leadID":".."}`,
		"leadID a path":           `{"leadID":"../../v3/oauth2/client"}`,
		"leadID with a blank":     `{"leadID":"a b"}`,
		"leadID with a line end":  `{"leadID":"a\nb"}`,
		"leadID with a query":     `{"leadID":"a?b=c"}`,
		"leadID of 129 letters":   `{"leadID":"` + strings.Repeat("a", 129) + `"}`,
		"leadID twice":            `{"leadID":"` + ownID + `","leadID":"` + ownID + `"}`,
		"text behind":             ownBody + "x",
		"two objects":             ownBody + ownBody,
		"cut JSON":                ownBody[:len(ownBody)-1],
		"invalid UTF-8":           strings.Replace(ownBody, `Name":"`, "Name\":\"\xff", 1),
		"UTF-16":                  utf16,
		"deep":                    strings.Repeat(`{"a":`, 50_000),
		"over 1 MiB":              ownBody + strings.Repeat(" ", 1<<20),
	}
	for name, body := range bodies {
		rows = append(rows, outcomeRow{name: "201 " + name, faults: "38, 70", act: rawAct{say: answered(201, body)}, both: true, want: doubtful("201", noIDText)})
	}
	head := func(lines string) string { return "HTTP/1.1 201 Said\r\n" + lines + "\r\n\r\n" }
	for name, act := range map[string]rawAct{
		"shorter than its length":      {say: head("Content-Length: 400") + ownBody, end: hangUp},
		"shorter, then reset":          {say: head("Content-Length: 400") + ownBody, end: reset},
		"cut in mid chunk":             {say: head("Transfer-Encoding: chunked") + "ff\r\n" + ownBody, end: hangUp},
		"without last chunk":           {say: chunked(ownBody)[:len(chunked(ownBody))-5], end: hangUp},
		"of chunked garbage":           {say: head("Transfer-Encoding: chunked") + "zz\r\n" + ownBody + "\r\n0\r\n\r\n"},
		"of huge chunks":               {say: head("Transfer-Encoding: chunked") + "ffffffffffffffff\r\n" + ownBody, end: hangUp},
		"gzip, cut":                    {say: answered(201, zipped([]byte(secondBody))[:50], "Content-Encoding: gzip")},
		"gzip bomb":                    {say: answered(201, zipped(make([]byte, 64<<20)), "Content-Encoding: gzip")},
		"without end":                  {say: head("Connection: close") + ownBody, flood: strings.Repeat(" ", 4096)},
		"chunked without end":          {say: head("Transfer-Encoding: chunked") + "1\r\n{\r\n", flood: "1\r\n \r\n"},
		"of a length that is too long": {say: answered(201, ownBody)[:50] + "0" + answered(201, ownBody)[50:], end: hangUp},
	} {
		rows = append(rows, outcomeRow{name: "201 " + name, faults: "38, 44, 45", act: act, both: true, want: doubtful("201", noIDText)})
	}
	for name, act := range map[string]rawAct{
		"called HTML":              {say: answered(201, ownBody, "Content-Type: text/html")},
		"called UTF-16":            {say: answered(201, ownBody, "Content-Type: application/json; charset=utf-16")},
		"behind a byte order mark": {say: answered(201, "\ufeff"+ownBody)},
		"with more members":        {say: answered(201, ownBody[:len(ownBody)-1]+`,"score":1e400,"more":[{}]}`)},
		"chunked":                  {say: chunked(ownBody)},
		"ended by the close":       {say: head("Connection: close") + ownBody, end: hangUp},
		"of HTTP/1.0":              {say: "HTTP/1.0 201 Said\r\n\r\n" + ownBody, end: hangUp},
		"with bare line feeds":     {say: "HTTP/1.1 201 Said\nContent-Length: " + itoa(len(ownBody)) + "\n\n" + ownBody},
		"slow but in time":         {say: answered(201, ownBody), pace: time.Millisecond},
	} {
		rows = append(rows, outcomeRow{name: "201 " + name, faults: "44, 70", act: act, stored: true, want: made(1)})
	}
	other := made(1)
	other.text = "the service assigned another organization"
	known := doubtful("201", "belongs to another row")
	return append(rows,
		outcomeRow{name: "201 longer than its length", faults: "38, 47", act: rawAct{say: head("Content-Length: 20") + ownBody}, both: true, want: doubtful("201", noIDText)},
		outcomeRow{name: "201 with another row's ID", faults: "66", act: rawAct{say: answered(201, createdBody(firstID))}, both: true, want: known},
		outcomeRow{name: "201 of another organization", faults: "67", act: rawAct{say: answered(201, strings.Replace(ownBody, rawOrg, "org-of-others", 1))}, stored: true, want: other},
	)
}

func chunked(body string) string {
	return fmt.Sprintf("HTTP/1.1 201 Said\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n%s\r\n%02X;x=y\r\n%s\r\n0\r\n\r\n",
		body[:1], len(body)-1, body[1:])
}

func zipped(b []byte) string {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	z.Write(b)
	z.Close()
	return out.String()
}

func headRows() []outcomeRow {
	var rows []outcomeRow
	inform := "HTTP/1.1 103 Hints\r\n\r\n"
	whole := answered(201, ownBody)
	for name, act := range map[string]rawAct{
		"headers of 70 kB":           {say: answered(201, ownBody, "X: "+strings.Repeat("x", 70<<10))},
		"5,000 headers":              {say: answered(201, ownBody, strings.Split(strings.Repeat("X: 0123456789\r\n", 5000)+"Y: z", "\r\n")...)},
		"100 long 1xx":               {say: strings.Repeat("HTTP/1.1 103 Hints\r\nX: "+strings.Repeat("x", 900)+"\r\n\r\n", 100) + whole},
		"1xx without end":            {flood: strings.Repeat(inform, 50), mute: true},
		"100 Continue without end":   {flood: strings.Repeat("HTTP/1.1 100 Continue\r\n\r\n", 50), mute: true},
		"a header without end":       {say: "HTTP/1.1 201 Said\r\nX: ", flood: strings.Repeat("x", 4096)},
		"no status line":             {say: "{\"leadID\":\"" + ownID + "\"}\r\n\r\n", end: hangUp},
		"HTTP/0.9":                   {say: ownBody, end: hangUp},
		"another protocol":           {say: "SSH-2.0-OpenSSH_9.9\r\n\r\n", end: hangUp},
		"no status":                  {say: "HTTP/1.1\r\nContent-Length: 0\r\n\r\n"},
		"a status of words":          {say: "HTTP/1.1 OK 201\r\nContent-Length: 0\r\n\r\n"},
		"a status of four digits":    {say: "HTTP/1.1 2010 Said\r\nContent-Length: 0\r\n\r\n"},
		"a negative status":          {say: "HTTP/1.1 -01 Said\r\nContent-Length: 0\r\n\r\n"},
		"no such version":            {say: "HTTP/x.y 201 Said\r\nContent-Length: 0\r\n\r\n"},
		"two lengths":                {say: answered(201, ownBody, "Content-Length: 3")},
		"a negative length":          {say: "HTTP/1.1 201 Said\r\nContent-Length: -1\r\n\r\n" + ownBody},
		"a length of words":          {say: "HTTP/1.1 201 Said\r\nContent-Length: all\r\n\r\n" + ownBody},
		"an unknown transfer coding": {say: answered(201, ownBody, "Transfer-Encoding: br")},
		"a header without colon":     {say: answered(201, ownBody, "no colon here")},
		"a header with NUL":          {say: answered(201, ownBody, "X: a\x00b")},
		"a cut status line":          {say: "HTTP/1.1 2", end: hangUp},
		"a cut head":                 {say: whole[:30], end: hangUp},
		"a head without its end":     {say: strings.TrimSuffix(answered(201, ""), "\r\n"), end: hangUp},
		"a head reset at its end":    {say: strings.TrimSuffix(answered(201, ""), "\r\n"), end: reset},
		"an empty line":              {say: "\r\n\r\n", end: hangUp},
		"NULs":                       {say: strings.Repeat("\x00", 1000), end: hangUp},
		"closed without an answer":   {mute: true, end: hangUp},
		"reset without an answer":    {mute: true, end: reset},
	} {
		rows = append(rows, outcomeRow{name: name, faults: "38, 45, 65", act: act, both: true, want: doubtful("", brokenText)})
	}
	for name, frames := range resets() {
		rows = append(rows, outcomeRow{name: "HTTP/2 " + name, faults: "41, m1, m2", act: rawAct{say: frames, end: hangUp}, both: true, want: doubtful("", brokenText)})
	}
	return append(rows,
		outcomeRow{name: "100 1xx", faults: "45, 65", act: rawAct{say: strings.Repeat(inform, 100) + whole}, stored: true, want: made(1)},
		outcomeRow{name: "100 Continue", faults: "65", act: rawAct{say: "HTTP/1.1 100 Continue\r\n\r\n" + whole}, stored: true, want: made(1)},
		outcomeRow{name: "two equal lengths", faults: "45", act: rawAct{say: answered(201, ownBody, "Content-Length: "+itoa(len(ownBody)))}, stored: true, want: made(1)},
	)
}

// resets are HTTP/2 frames that end a request, sent to a program that speaks HTTP/1.1.
func resets() map[string]string {
	frames := func(write func(f *http2.Framer)) string {
		var out bytes.Buffer
		f := http2.NewFramer(&out, nil)
		f.WriteSettings()
		write(f)
		return out.String()
	}
	all := map[string]string{"GOAWAY": frames(func(f *http2.Framer) { f.WriteGoAway(0, http2.ErrCodeNo, nil) })}
	for _, code := range []http2.ErrCode{http2.ErrCodeProtocol, http2.ErrCodeRefusedStream, http2.ErrCodeInternal, http2.ErrCodeCancel} {
		all[code.String()] = frames(func(f *http2.Framer) { f.WriteRSTStream(1, code) })
	}
	return all
}
