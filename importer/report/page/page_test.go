package page

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"
	"pgregory.net/rapid"

	"leadferry/importer/report"
	"leadferry/internal/testsupport/must"
)

// million is an import of 1,000,000 rows with every list as long as a run makes it.
func million() *report.Summary {
	began := time.Date(2026, 11, 22, 8, 35, 31, 0, time.UTC)
	s := &report.Summary{
		RunID: "4f1c2a9b", Command: "import", Version: "0.1.0", Outcome: "attention", ExitCode: 5, StartedAt: began, DurationS: 379.4,
		FinishedAt: began.Add(379400 * time.Millisecond), ThroughputRowsPerS: 2635.7, PeakInFlight: 64,
		Inputs:     []report.Input{{Path: "export/leads-2026-11.csv", Format: "csv", Bytes: 190_112_003, Rows: 1_000_000, Blank: 12, SHA256: "5feceb66ffc86f38d952786c6d696c79c2dbc239dd4e91b46729d73a27fb57e9"}},
		Mapping:    report.File{Path: "leads.yaml", SHA256: "6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b"},
		Checkpoint: report.Checkpoint{Path: "/home/ann/.local/state/leadferry/leads.example.com-3f2a.db", ID: "9a1c", Sequence: 31, Leads: 1200},
		Target:     report.Target{BaseURL: "https://api.example.com", LeadsURL: "https://leads.example.com", TrunkID: "3f2a77c0"},
		Rows:       report.RowCounts{Read: 1_000_000, Created: 912_344, Unchanged: 86_000, Invalid: 1200, Rejected: 231, InDoubt: 225},
		Requests:   report.Requests{Create: 912_930, Token: 2, Retries: 362, ByStatus: map[string]int{"201": 912_344, "422": 231, "429": 330, "503": 25}},
		LatencyMs:  report.Latency{P50: 21.4, P90: 25.2, P95: 31.1, P99: 58.9, Max: 30012},
		Files: []report.NamedFile{
			{Name: "results", Path: "leadferry-runs/20261122T083531Z-import-4f1c2a9b/results.csv"},
			{Name: "rejects", Path: "leadferry-runs/20261122T083531Z-import-4f1c2a9b/rejects.csv"},
			{Name: "summary", Path: "leadferry-runs/20261122T083531Z-import-4f1c2a9b/summary.json"},
		},
	}
	for i := range report.MostBuckets - 3 {
		b := report.Bucket{Time: began.Add(time.Duration(i) * 1600 * time.Millisecond), Rows: 4300 + int(600*math.Sin(float64(i)/9)), P50: 21 + math.Sin(float64(i)/7), P95: 31 + 3*math.Sin(float64(i)/5), P99: 60 + 22*math.Sin(float64(i)/11)}
		b.Requests = b.Rows - 300
		switch {
		case i > 90 && i < 102:
			b.Rows, b.Requests, b.P50, b.P95, b.P99, b.Paused = 0, 0, 0, 0, 0, 1.6
		case i > 84 && i < 108:
			b.Rows, b.Requests, b.Retries, b.P99 = b.Rows/2, b.Requests/2, 12+i%9, 260
		}
		s.Timeline = append(s.Timeline, b)
	}
	for i := range 225 {
		s.InDoubt = append(s.InDoubt, report.Doubt{
			Place: report.Place{File: "export/leads-2026-11.csv", Line: 4000 + i*i%7919}, SentAt: began.Add(time.Duration(i) * time.Second),
			OrganizationID: fmt.Sprintf("0b1c77aa-%04d", i%30), Reason: "the connection broke after the request was sent",
		})
	}
	s.InDoubt = s.InDoubt[:200]
	for i := range 2000 {
		s.Organizations = append(s.Organizations, report.Organization{ID: fmt.Sprintf("0b1c77aa-%04d", i), Location: "Oak Hill Motors " + fmt.Sprint(i), Leads: 90_000 / (i + 1)})
	}
	statuses := []string{"", "open", "contacted", "inProgress", "onHold", "closedWon", "closedNotInterested", "closedBoughtUsed", "closedBoughtOtherBrand"}
	for i, from := range statuses {
		for j, to := range statuses[1:] {
			if (i*j)%4 == 1 || j == 4 {
				s.Transitions = append(s.Transitions, report.Transition{From: from, To: to, Leads: 1 + 250_000/(1+i*7+j*j)})
			}
		}
	}
	for i := range 60 {
		s.Errors = append(s.Errors, report.Reason{Outcome: []string{"invalid", "rejected", "in_doubt"}[i%3], Error: fmt.Sprintf("column \"E-mail %d\": not an e-mail address", i), Rows: 700 / (i + 1), Examples: []report.Place{{File: "export/leads-2026-11.csv", Line: 17 + i}, {File: "export/leads-2026-11.csv", Line: 190 + i}, {File: "export/leads-2026-11.csv", Line: 2041 + i}}})
	}
	s.Notes = []string{"No part of the mapping uses the columns fax, region."}
	return s
}

// reconciled is a reconciliation with a sample.
func reconciled() *report.Summary {
	s := million()
	s.Command, s.ExitCode, s.InDoubt, s.Rows = "reconcile", 1, nil, report.RowCounts{Read: 400, Unchanged: 380, Conflict: 20}
	s.Reconciliation = &report.Reconciliation{
		Verdicts: []report.VerdictCount{{Verdict: "same", Leads: 380}, {Verdict: "file_ahead", Leads: 12}, {Verdict: "service_ahead", Leads: 8}, {Verdict: "absent", Leads: 41}},
		Sample:   &report.Sample{Picked: 400, Read: 400, Differ: 20, Share: 0.05, Low: 0.032, High: 0.076},
	}
	s.Transitions, s.Organizations = nil, nil
	return s
}

// checked is a validate with something in every list.
func checked() *report.Summary {
	s := million()
	s.Command, s.DryRun, s.ExitCode, s.InDoubt, s.Requests, s.LatencyMs = "validate", true, 1, nil, report.Requests{}, report.Latency{}
	s.Rows = report.RowCounts{Read: 1000, Pending: 900, Invalid: 100}
	for i := range s.Timeline {
		s.Timeline[i] = report.Bucket{Time: s.Timeline[i].Time, Rows: 4}
	}
	s.Transitions, s.Organizations = nil, nil
	at := report.Place{File: "a.csv", Line: 7}
	s.Checks = &report.Checks{
		Rules:   []report.Reason{{Rule: "format", Column: "E-mail", Error: "not an e-mail address", Rows: 90, Examples: []report.Place{at, at, at}}},
		Repeats: 2, Assignments: []report.Organization{{ID: "o-1", Leads: 900}, {ID: "locator l-1", Leads: 3}},
		Projected: report.Projected{Create: 900}, Tests: 3,
		Found: []report.Problem{
			{File: "m.yaml", Line: 3, Rule: "test", Text: "a; b"},
			{File: "m.yaml", Rule: "mapping", Text: "no type_key", Hint: "add it"},
			{File: at.File, Line: at.Line, Rule: "guess", Text: "looks like one"},
			{File: "m.yaml", Column: "fax", Rule: "unused", Text: "no part of the mapping uses the column"},
		},
	}
	return s
}

func quiet() *report.Summary {
	return &report.Summary{RunID: "0a0a0a0a", Command: "sync", Version: "0.1.0", Outcome: "complete", Inputs: []report.Input{{Path: "a.csv", Format: "csv"}}}
}

func samples() map[string]*report.Summary {
	return map[string]*report.Summary{"import": million(), "reconcile": reconciled(), "validate": checked(), "nothing": quiet()}
}

func written(t testing.TB, s *report.Summary) string {
	t.Helper()
	var b bytes.Buffer
	must.Do(t, Write(&b, s))
	return b.String()
}

func TestPageOfAMillionRowsIsSmall(t *testing.T) {
	for name, s := range samples() {
		text := written(t, s)
		if len(text) > 150_000 {
			t.Errorf("the page of %s has %d bytes", name, len(text))
		}
		if dir := os.Getenv("PAGES"); dir != "" { // for people who look at it
			must.Do(t, os.WriteFile(filepath.Join(dir, name+".html"), []byte(text), 0o600))
		}
	}
}

func parsed(t testing.TB, text string) *html.Node {
	t.Helper()
	doc, err := html.Parse(strings.NewReader(text))
	must.Do(t, err)
	return doc
}

func attribute(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

func words(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data)
		}
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

func find(n *html.Node, fits func(*html.Node) bool) *html.Node {
	for d := range n.Descendants() {
		if d.Type == html.ElementNode && fits(d) {
			return d
		}
	}
	return nil
}

// Only files beside the page have a link. Commands can be copied.
func TestFilesBesideThePageAreLinked(t *testing.T) {
	s := million()
	s.Files = append(s.Files, report.NamedFile{Name: "page", Path: "leadferry-runs/20261122T083531Z-import-4f1c2a9b/report.html"})
	text := written(t, s)
	for _, want := range []string{`<a href="rejects.csv">`, `data-copy="leadferry import -m leads.yaml `} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s", want)
		}
	}
	s.Files[1].Path = "elsewhere/javascript:alert.csv"
	s.Files[0].Path = filepath.Dir(s.Files[0].Path) + "/javascript:alert.csv"
	if text := written(t, s); !strings.Contains(text, `href="./javascript:alert.csv"`) || strings.Contains(text, `href="elsewhere`) {
		t.Error("a name is taken for a scheme, or a file in another folder has a link")
	}
}

func TestProseMarksCommandsAsCode(t *testing.T) {
	if got, want := string(prose("see `leadferry <x>`; --max-rejects 0 goes on")), `see <code>leadferry &lt;x&gt;</code>; --max-rejects 0 goes on`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// The page shows each outcome with its number of rows.
func TestCountsAreThoseOfTheSummary(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		s := quiet()
		var c [13]int
		for i := range c {
			c[i] = rapid.OneOf(rapid.Just(0), rapid.IntRange(0, 5_000_000)).Draw(r, "rows")
			s.Rows.Read += c[i]
		}
		n := &s.Rows
		for i, p := range []*int{&n.Created, &n.Updated, &n.Unchanged, &n.Changed, &n.Skipped, &n.Invalid, &n.Rejected, &n.Failed, &n.Partial, &n.InDoubt, &n.Unmatched, &n.Conflict, &n.Pending} {
			*p = c[i]
		}
		got := map[string]string{}
		rows := find(parsed(t, written(t, s)), func(n *html.Node) bool { return attribute(n, "id") == "rows" })
		if rows != nil {
			for n := range rows.Descendants() {
				if n.Data == "tr" && n.Parent.Data == "tbody" && n.FirstChild.NextSibling != nil { // one cell alone says that there are none
					got[words(n.FirstChild.FirstChild)] = words(n.FirstChild.NextSibling)
				}
			}
		}
		for name, rows := range s.Rows.ByName() {
			if name == "read" {
				continue
			}
			if want := comma(rows); got[name] != want && (rows > 0 || got[name] != "") {
				r.Fatalf("%s: %q rows, want %s", name, got[name], want)
			}
		}
	})
}

// A page that is made from the summary's file is the page that the run wrote.
func TestPageFromAFileIsTheSame(t *testing.T) {
	for name, s := range samples() {
		var b bytes.Buffer
		must.Do(t, s.WriteJSON(&b))
		path := filepath.Join(t.TempDir(), "summary.json")
		must.Do(t, os.WriteFile(path, b.Bytes(), 0o600))
		read, err := report.Read(path)
		must.Do(t, err)
		must.Same(t, written(t, s), written(t, read), name)
	}
}

// evil is put into every text of a summary. None of it may become markup.
const evil = "\"'></title></style></script><zz onzz=1><script>zz()</script><svg onload=zz()><!--zz--><a href=javascript:zz()>&lt;zz&gt;{{zz}}\x00\x1b[31m\u202e\ud7ff"

// poison puts a text before or into every text below v.
func poison(v reflect.Value, text string) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			poison(v.Elem(), text)
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			return
		}
		for i := range v.NumField() {
			poison(v.Field(i), text)
		}
	case reflect.Slice:
		for i := range v.Len() {
			poison(v.Index(i), text)
		}
	case reflect.Map:
		if m, ok := v.Interface().(map[string]int); ok && m != nil {
			m[text] = 1
		}
	case reflect.String:
		if v.CanSet() {
			v.SetString(text + v.String())
		}
	}
}

// inert fails if data became markup, or if the page could do anything.
func inert(t testing.TB, text string) {
	t.Helper()
	for n := range parsed(t, text).Descendants() {
		switch {
		case n.Type == html.CommentNode:
			t.Errorf("a comment: %q", n.Data)
		case n.Type == html.ElementNode && slices.Contains([]string{"zz", "iframe", "object", "img", "form", "base", "foreignobject"}, strings.ToLower(n.Data)):
			t.Errorf("an element %s", n.Data)
		case n.Type == html.TextNode && n.Parent.Data != "style" && strings.ContainsAny(n.Data, "\x00\x1b\u202e"):
			t.Errorf("a text that a terminal or a reader would obey: %q", n.Data)
		}
		if n.Data == "script" && n.Type == html.ElementNode && strings.Contains(words(n), "zz") {
			t.Error("data in the script")
		}
		for _, a := range n.Attr {
			if u, err := url.Parse(a.Val); a.Key == "href" && n.Data == "a" && err == nil && u.Scheme == "" && u.Host == "" {
				continue // to a file beside the page
			}
			if strings.HasPrefix(strings.ToLower(a.Key), "on") || a.Key == "style" || a.Key == "src" || strings.HasSuffix(a.Key, "href") {
				t.Errorf("an attribute %s of %s", a.Key, n.Data)
			}
		}
	}
}

func TestDataNeverBecomeMarkup(t *testing.T) {
	for _, s := range samples() {
		outcome := s.Outcome
		poison(reflect.ValueOf(s), evil)
		s.Outcome = outcome
		inert(t, written(t, s))
	}
}

func FuzzPage(f *testing.F) {
	for _, s := range samples() {
		var b bytes.Buffer
		must.Do(f, s.WriteJSON(&b))
		f.Add(b.Bytes())
	}
	f.Add([]byte(`{"run_id":"1","command":"import","outcome":"stopped","dry_run":true,"duration_s":1e300,"rows":{"created":-5,"read":9223372036854775807,"in_doubt":9223372036854775807},` +
		`"timeline":[{"time":"9999-12-31T23:59:59Z","rows":-1,"requests":1,"p50":1e308},{"time":"0001-01-01T00:00:00Z","requests":-9223372036854775808}],"transitions":[{"leads":-1}],"organizations":[{"leads":-7}]}`))
	path := filepath.Join(f.TempDir(), "summary.json")
	f.Fuzz(func(t *testing.T, text []byte) {
		must.Do(t, os.WriteFile(path, text, 0o600))
		s, err := report.Read(path)
		if err != nil {
			return
		}
		inert(t, written(t, s))
	})
}

func running(read int) *report.Summary {
	return &report.Summary{RunID: "0a0a0a0a", Command: "import", Outcome: report.Running, Rows: report.RowCounts{Read: read, Created: read}}
}

func TestLivePageEndsWithTheFinishedOne(t *testing.T) {
	l, err := Serve("127.0.0.1:0", running(0))
	must.Do(t, err)
	get := func(path, accept string) *http.Response {
		t.Helper()
		r, err := http.NewRequest(http.MethodGet, l.URL()+path, nil)
		must.Do(t, err)
		r.Header.Set("Accept", accept)
		answer, err := http.DefaultClient.Do(r)
		must.Do(t, err)
		t.Cleanup(func() { answer.Body.Close() })
		return answer
	}
	page := func() string {
		t.Helper()
		text, err := io.ReadAll(get("", "").Body)
		must.Do(t, err)
		return string(text)
	}
	if text := page(); !strings.Contains(text, "Import is beginning") {
		t.Errorf("at first: %s", text)
	}
	s := running(50)
	s.Rows.Read, s.ThroughputRowsPerS, s.Rows.InDoubt, s.Rows.Created = 60, 10, 1, 49
	s.Total = 200
	l.Show(s)
	if text := page(); !strings.Contains(text, "needs attention") || strings.Contains(text, "needs nothing now") {
		t.Errorf("with a row in doubt: %s", text)
	}
	s = running(50)
	s.Paused = "the service <asked> to wait"
	s.Total = 200
	l.Show(s)
	if text := page(); !strings.Contains(text, "50 rows so far") || !strings.Contains(text, `<progress max="100" value="25"`) || !strings.Contains(text, "Requests wait: the service &lt;asked&gt; to wait.") {
		t.Errorf("on its way: %s", text)
	}
	if answer := get("other", ""); answer.StatusCode != http.StatusNotFound {
		t.Errorf("another page: %s", answer.Status)
	}
	events := bufio.NewReader(get("", "text/event-stream").Body)
	if _, err := events.ReadString('\n'); err != nil { // somebody follows
		t.Fatal(err)
	}
	done := running(200)
	done.Outcome = "complete"
	must.Do(t, l.End(done))
	rest, _ := io.ReadAll(events) // what comes behind the last word, if only the end, may be cut off
	if _, last, found := strings.Cut(string(rest), "event: end\n"); !found || !strings.Contains(last, "Import complete: 200 rows") {
		t.Errorf("the last word is %s", rest)
	}
}
