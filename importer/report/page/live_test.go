package page

import (
	"bufio"
	"io"
	"net/http"
	"strings"
	"testing"

	"leadferry/importer/report"
	"leadferry/internal/testsupport/must"
)

// running is a run on its way.
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
