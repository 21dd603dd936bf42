package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"leadferry/leadapi/sandbox"
)

// TestAgainstAFaultyService runs an import against every kind of trouble at once and
// compares both sides. faults 37-39, 42, 53, 61, 63, 64
func TestAgainstAFaultyService(t *testing.T) {
	t.Parallel()
	const rows = 400
	for _, faults := range []string{
		"429:10%,503-retry:5%,retry-after=0",
		"drop-stored:2%,drop:2%",
		"500-stored:2%,500:2%,cut-body:2%,no-id:2%,202-stored:3%",
		"revoke/150,429:5%,drop-stored:1%,retry-after=0",
	} {
		t.Run(faults, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, sandbox.Options{Faults: faults + ",seed=7"})
			w.leads(rows)
			code, out := w.run("import", "-m", "leads.yaml", "leads.csv", "--out", "none", "--summary", "s.json", "--results", "r.csv",
				"-c", "16", "--retries", "20", "--max-in-doubt", "0")
			s := w.summary("s.json")
			if s.Rows.Read != rows || s.Rows.Created+s.Rows.InDoubt != rows {
				t.Fatalf("exit %d: %+v\n%s", code, s.Rows, out)
			}
			if doubt := s.Rows.InDoubt > 0; code != 0 && !doubt || doubt && code != 5 {
				t.Errorf("exit %d with %d in doubt", code, s.Rows.InDoubt)
			}
			ledger := w.byRef()
			for _, r := range w.results("r.csv") {
				if r["outcome"] == "created" && r["lead_id"] != ledger[r["key"]] {
					t.Errorf("row %s: results say %s, the service %s", r["key"], r["lead_id"], ledger[r["key"]])
				}
			}
			if n := len(w.exported("in_doubt")); n != s.Rows.InDoubt {
				t.Errorf("%d in doubt in the checkpoint, %d in the summary", n, s.Rows.InDoubt)
			}
			for range 20 { // the service stays as it is
				w.settle()
				if code, out = w.run("import", "-m", "leads.yaml", "leads.csv", "--out", "none", "--retries", "50", "-c", "1", "--max-in-doubt", "0"); code == 0 {
					break
				}
			}
			if code != 0 {
				t.Errorf("exit %d in the end\n%s", code, out)
			}
			if n := len(w.byRef()); n != rows {
				t.Errorf("the service holds %d leads in the end, want %d", n, rows)
			}
		})
	}
}

// A page in the service's place ends a run before its first row, and nothing is made. fault 78
func TestAPageInTheServicesPlace(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sandbox.Options{})
	w.leads(10)
	page := httptest.NewServer(http.HandlerFunc(func(answer http.ResponseWriter, _ *http.Request) { fmt.Fprint(answer, "<html>Welcome</html>") }))
	defer page.Close()
	w.env = append(w.env, "LEADFERRY_BASE_URL="+page.URL)
	contains(t, w.must(3, "import", "-m", "leads.yaml", "leads.csv", "--out", "none", "--max-wait", "300ms"),
		"sign-in got no token (HTTP 200)", "Check the base URL")
	w.holds(0)
}

// TestOneRunAtATime: a second run on the same checkpoint ends at once with 4 and
// sends nothing, or waits. faults 81
func TestOneRunAtATime(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sandbox.Options{})
	h := w.hold(1)
	w.leads(200)
	first := w.command("import", "-m", "leads.yaml", "leads.csv", "--out", "none", "-c", "2")
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	h.full(t)
	if out := w.must(4, "import", "-m", "leads.yaml", "leads.csv", "--out", "none"); !strings.Contains(out, "hint: ") {
		t.Errorf("no hint: %s", out)
	}
	time.AfterFunc(200*time.Millisecond, func() { close(h.let) })
	w.must(0, "import", "-m", "leads.yaml", "leads.csv", "--out", "none", "--wait", "1m", "--summary", "s.json")
	if err := first.Wait(); err != nil {
		t.Error(err)
	}
	if s := w.summary("s.json"); s.Rows.Unchanged != 200 || s.Requests.Create != 0 {
		t.Errorf("the run that waited: %+v", s.Rows)
	}
}

func (w *world) read(name string) string {
	w.t.Helper()
	b, err := os.ReadFile(filepath.Join(w.dir, name))
	if err != nil {
		w.t.Fatal(err)
	}
	return string(b)
}
