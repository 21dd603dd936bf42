package e2e

import (
	"fmt"
	"strings"
)

// The rows of the table that differ by status.

// made is a row whose lead was created, after so many POSTs.
func made(posts int) rowWant { return rowWant{outcome: "created", http: "201", posts: posts} }

// doubtful is a row in doubt after one POST, with its HTTP status and a piece of the error.
func doubtful(http, text string) rowWant {
	return rowWant{outcome: "in_doubt", http: http, text: text, exit: 5, posts: 1}
}

func refusedWith(http, text string) rowWant {
	return rowWant{outcome: "rejected", http: http, text: text, exit: 1, posts: 1}
}

func failedAfter(posts int, http string) rowWant {
	return rowWant{outcome: "failed", http: http, text: "HTTP " + http, exit: 1, posts: posts}
}

// stopped is a row that stays pending because the run stops.
func stopped(posts int, http, reason string) rowWant {
	return rowWant{outcome: "pending", http: http, exit: 3, posts: posts, others: "created pending", stop: reason}
}

const (
	ownErrorText = "the service answered with an error of its own"
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
		{name: "400 with a formula", faults: "52, 117", act: rawAct{say: answered(400, `{"message":"=1+1"}`)}, want: refusedWith("400", "HTTP 400: =1+1")},
		{name: "400 cut", faults: "52", act: rawAct{say: "HTTP/1.1 400 Said\r\nContent-Length: 90\r\n\r\nno such", end: hangUp}, want: refusedWith("400", "no such")},
		{
			name: "422 that repeats the row", faults: "60, 116", want: refusedWith("422", "is known already"),
			act: rawAct{say: answered(422, fmt.Sprintf(`{"message":"lead '%s' <%s> with \"%s\" is known already"}`, rawValues(2)[0], rawValues(2)[1], rawValues(2)[2]))},
		},
		{
			name: "400 that repeats secrets", faults: "111, 116", want: refusedWith("400", "withheld"),
			act: rawAct{say: answered(400, fmt.Sprintf(`{"message":"token %s1 of %s"}`, rawAccess, rawSecret))},
		},
		{name: "401 once", faults: "53", act: rawAct{say: answered(401, "{}")}, want: made(2)},
		{name: "401 twice", faults: "53", act: rawAct{say: answered(401, "{}")}, times: 2, want: made(3)},
		{name: "401 for good", faults: "53", act: rawAct{say: answered(401, "{}")}, times: 50, want: stopped(4, "", "refuses tokens")},
		{name: "421 once", faults: "65", act: rawAct{say: answered(421, "{}")}, want: made(2)},
		{name: "421 twice", faults: "65", act: rawAct{say: answered(421, "{}")}, times: 2, want: failedAfter(2, "421")},
		{name: "407", faults: "65", act: rawAct{say: answered(407, "", "Proxy-Authenticate: Basic")}, want: stopped(1, "", "407")},
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

// lengthTwice is an answer that says its length twice in one line, the second time so much longer.
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

// waitRows are the answers that say that the create was not applied.
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
	again := []string{"--retries", "1"}
	act := rawAct{say: answered(429, "{}", "Retry-After: 0")}
	maintenance := rawAct{say: answered(503, "{}", "Retry-After: 1", "Content-Type: application/json")}
	return append(rows,
		outcomeRow{name: "429 once with Retry-After", faults: "61", act: act, want: made(2)},
		outcomeRow{name: "429 for good", faults: "62", act: act, times: 2, args: again, want: failedAfter(2, "429")},
		outcomeRow{name: "429 without retries", faults: "62", act: act, args: []string{"--retries", "0"}, want: failedAfter(1, "429")},
		outcomeRow{name: "429 that is not trusted", faults: "61", act: act, args: []string{"--resend-on", "none"}, both: true, want: doubtful("429", "--resend-on none")},
		outcomeRow{name: "503 with Retry-After", faults: "64", act: maintenance, both: true, want: doubtful("503", ownErrorText)},
		outcomeRow{name: "503 with Retry-After and --resend-on 503", faults: "64", act: maintenance, args: []string{"--resend-on", "503"}, want: made(2)},
		outcomeRow{name: "503 for good with --resend-on 503", faults: "64", act: rawAct{say: answered(503, "{}")}, times: 2, args: append([]string{"--resend-on", "503"}, again...), want: failedAfter(2, "503")},
		outcomeRow{name: "503, Retry-After text", faults: "64", act: rawAct{say: answered(503, "{}", "Retry-After: soon")}, both: true, want: doubtful("503", ownErrorText)},
		outcomeRow{name: "503 with --resend-on 503", faults: "64", act: rawAct{say: answered(503, "{}")}, args: []string{"--resend-on", "503"}, want: made(2)},
		outcomeRow{name: "500 with --resend-on 500", faults: "63", act: rawAct{say: answered(500, "{}")}, args: []string{"--resend-on", "500"}, want: made(2)},
		outcomeRow{name: "500 for good with --resend-on 500", faults: "63", act: rawAct{say: answered(500, "{}")}, times: 2, args: append([]string{"--resend-on", "500"}, again...), want: failedAfter(2, "500")},
		outcomeRow{name: "502 with --resend-on 500", faults: "42, 63", act: rawAct{say: answered(502, "{}")}, args: []string{"--resend-on", "500"}, both: true, want: doubtful("502", ownErrorText)},
	)
}

// breakerRows are faults that meet every create of twelve; the run stops early. Where it
// stops for how rows ended, one more may be on its way by then.
func breakerRows() []outcomeRow {
	all := func(name, faults string, say string, posts int, outcomes, stop string, args ...string) outcomeRow {
		return outcomeRow{
			name: "all " + name, faults: faults, act: rawAct{say: say}, from: 1, times: always, args: args,
			want: rowWant{outcome: outcomes, exit: 3, posts: posts, stop: stop},
		}
	}
	rows := []outcomeRow{
		all("401", "53", answered(401, ""), 3, "pending", "refuses tokens"),
		all("407", "65", answered(407, ""), 1, "pending", "407"),
		all("429", "62", answered(429, "", "Retry-After: 0"), 4, "failed pending", "--max-rejects", "--retries", "0", "--max-rejects", "2"),
		all("500", "63, 138", answered(500, ""), 4, "in_doubt pending", "4 creates in a row"),
		all("302", "50, 138", answered(302, ""), 4, "in_doubt pending", "--max-in-doubt", "--max-in-doubt", "2"),
	}
	for _, status := range []int{400, 403, 404} {
		rows = append(rows, all(itoa(status), "54, 55", answered(status, ""), 3, "rejected pending", "all refused with HTTP "+itoa(status)))
	}
	partition := all("silent", "46", "", 4, "in_doubt pending", " ", "--timeout", "700ms", "--max-wait", "700ms")
	partition.act = rawAct{mute: true, end: hold}
	partition.deaf = true
	return append(rows, partition)
}
