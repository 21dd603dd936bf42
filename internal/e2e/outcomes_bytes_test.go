package e2e

import (
	"bytes"
	"compress/gzip"
	"strings"
	"time"
	"unicode/utf16"

	"golang.org/x/net/http2"
)

// The rows of the table that differ by the bytes of the answer and the end of the
// connection.

// secondBody is the same for the second create.
var secondBody = createdBody("lead-00000000-002")

// ownBody is the body of a right answer to the row's create.
var ownBody = createdBody(ownID)

func bodyRows() []outcomeRow {
	var rows []outcomeRow
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
		"UTF-16":                  utf16Text(ownBody),
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
		"slow beyond the limit":        {say: head("Content-Length: 90000"), flood: " ", pace: 2 * time.Millisecond},
		"of a length that is too long": {say: answered(201, ownBody)[:50] + "0" + answered(201, ownBody)[50:], end: hangUp},
	} {
		row := outcomeRow{name: "201 " + name, faults: "38, 44, 45", act: act, both: true, want: doubtful("201", noIDText)}
		if strings.HasPrefix(name, "slow") {
			row.args = []string{"--timeout", "1500ms"}
		}
		rows = append(rows, row)
	}
	for name, act := range map[string]rawAct{
		"called HTML":              {say: answered(201, ownBody, "Content-Type: text/html")},
		"called UTF-16":            {say: answered(201, ownBody, "Content-Type: application/json; charset=utf-16")},
		"gzip, not asked for":      {say: answered(201, zipped([]byte(secondBody)), "Content-Encoding: gzip")},
		"gzip, not told":           {say: answered(201, zipped([]byte(secondBody)))},
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
	short := doubtful("201", noIDText)
	short.others = "created in_doubt" // what is left over comes before the next request
	other := made(1)
	other.text = "the service assigned another organization"
	known := doubtful("201", "belongs to another row")
	return append(rows,
		outcomeRow{name: "201 longer than its length", faults: "38, 47", act: rawAct{say: head("Content-Length: 20") + ownBody}, both: true, want: short},
		outcomeRow{name: "201 with another row's ID", faults: "66", act: rawAct{say: answered(201, createdBody(firstID))}, both: true, want: known},
		outcomeRow{name: "201 of another organization", faults: "67", act: rawAct{say: answered(201, strings.Replace(ownBody, rawOrg, "org-of-others", 1))}, stored: true, want: other},
	)
}

func chunked(body string) string {
	return "HTTP/1.1 201 Said\r\nTransfer-Encoding: chunked\r\n\r\n" + "1\r\n" + body[:1] + "\r\n" +
		strings.ToUpper(hex(len(body)-1)) + ";x=y\r\n" + body[1:] + "\r\n0\r\n\r\n"
}

func hex(n int) string {
	const digits = "0123456789abcdef"
	return string([]byte{digits[n>>4&15], digits[n&15]})
}

func zipped(b []byte) string {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	z.Write(b)
	z.Close()
	return out.String()
}

func utf16Text(text string) string {
	b := []byte{0xff, 0xfe}
	for _, u := range utf16.Encode([]rune(text)) {
		b = append(b, byte(u), byte(u>>8))
	}
	return string(b)
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

// resets are HTTP/2 frames that end a request, spoken to a program that asked for HTTP/1.1.
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

func wireRows() []outcomeRow {
	var rows []outcomeRow
	add := func(name, faults string, row outcomeRow) {
		row.name, row.faults = name, faults
		rows = append(rows, row)
	}
	lost := doubtful("", brokenText)
	late := doubtful("", lateText)
	limit := []string{"--timeout", "1500ms"}
	for _, n := range []int{1, 20, 300} {
		for end, how := range map[rawEnding]string{hangUp: "closed", reset: "reset"} {
			act := rawAct{take: n, mute: true, end: end}
			add(how+" after "+itoa(n)+" bytes, connection used before", "35, 36, 40", outcomeRow{act: act, want: lost})
			add(how+" after "+itoa(n)+" bytes, new connection", "35, 36", outcomeRow{act: act, from: 1, want: lost})
		}
	}
	for end, how := range map[rawEnding]string{hangUp: "closed", reset: "reset"} {
		add(how+" without an answer", "37", outcomeRow{act: rawAct{mute: true, end: end}, both: true, want: lost})
		add(how+" without an answer, new connection", "37", outcomeRow{act: rawAct{mute: true, end: end}, from: 1, both: true, want: lost})
	}
	add("silence", "39, 44", outcomeRow{act: rawAct{mute: true, end: hold}, args: limit, both: true, want: late})
	add("silence after a byte was taken", "36, 39", outcomeRow{act: rawAct{take: 1, mute: true, end: hold}, args: limit, want: late})
	add("silence in the head", "39, 44", outcomeRow{act: rawAct{say: "HTTP/1.1 201 Said\r\nX", end: hold}, args: limit, both: true, want: late})
	add("silence in the body", "38, 39", outcomeRow{act: rawAct{say: answered(201, ownBody)[:60], end: hold}, args: limit, both: true, want: doubtful("201", noIDText)})
	add("a slow head", "44", outcomeRow{act: rawAct{say: "HTTP/1.1 201 Said\r\nX: ", flood: "x", pace: 5 * time.Millisecond}, args: limit, both: true, want: late})

	// What comes unasked may be seen before the next request leaves, or behind it.
	stray := answered(201, createdBody("lead-of-nobody"))
	moment := rowWant{outcome: "created in_doubt", posts: 1, others: "created in_doubt"}
	add("an answer too many", "47", outcomeRow{act: rawAct{more: stray}, stored: true, want: moment})
	add("an answer too many before", "47", outcomeRow{act: rawAct{more: stray}, stored: true, from: 1, want: moment})
	// On a new connection nothing tells an answer that was there before the request from
	// the request's own where both cross on the way. So these name no ID, and end the
	// connection: the right answer behind them would be taken for the next row's.
	for name, early := range map[string]string{"408": answered(408, "", "Connection: close"), "500": answered(500, "", "Connection: close"), "201 without ID": answered(201, "{}", "Connection: close")} {
		add("an answer before the request, "+name, "47", outcomeRow{act: rawAct{early: early}, stored: true, from: 1, want: moment})
	}
	add("closed as it is opened", "33, 35", outcomeRow{act: rawAct{slam: true}, from: 1, want: moment})
	add("idle connection closed as it is used again", "40", outcomeRow{act: rawAct{end: hangUp}, stored: true, from: 1, want: moment})
	add("idle connection reset as it is used again", "40", outcomeRow{act: rawAct{end: reset}, stored: true, from: 1, want: moment})
	return rows
}
