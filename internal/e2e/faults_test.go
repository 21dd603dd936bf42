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

// TestSettingsThatCannotWork: sign-in refused and a service that is not there end
// with 3 and a sentence, before the first row. faults 33, 78
func TestSettingsThatCannotWork(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sandbox.Options{})
	w.leads(10)
	base := []string{"import", "-m", "leads.yaml", "leads.csv", "--out", "none", "--summary", "s.json", "--max-wait", "300ms"}
	right := w.env

	w.env = append(right, "LEADFERRY_CLIENT_SECRET=wrong-secret-value")
	if out := w.must(3, base...); !strings.Contains(out, "sign-in was refused") || strings.Contains(out, "wrong-secret-value") {
		t.Errorf("wrong secret: %s", out)
	}
	w.env = append(right, "LEADFERRY_BASE_URL=http://127.0.0.1:1", "LEADFERRY_LEADS_URL=http://127.0.0.1:1")
	if out := w.must(3, base...); !strings.Contains(out, "cannot be reached") {
		t.Errorf("unreachable: %s", out)
	}
	page := httptest.NewServer(http.HandlerFunc(func(answer http.ResponseWriter, _ *http.Request) { fmt.Fprint(answer, "<html>Welcome</html>") }))
	defer page.Close()
	w.env = append(right, "LEADFERRY_BASE_URL="+page.URL)
	if out := w.must(3, base...); !strings.Contains(out, "sign-in got no token (HTTP 200)") || !strings.Contains(out, "Check the base URL") {
		t.Errorf("a page in the service's place: %s", out)
	}
	if n := len(w.byRef()); n != 0 {
		t.Errorf("%d leads were made", n)
	}
	if s := w.summary("s.json"); s.Outcome != "stopped" || s.ExitCode != 3 || s.Requests.Create != 0 {
		t.Errorf("summary: %s, exit code %d, %d creates", s.Outcome, s.ExitCode, s.Requests.Create)
	}
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
