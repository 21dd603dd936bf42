package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"leadferry/internal/testsupport/must"
	"leadferry/leadapi/sandbox"
)

// TestAgainstAFaultyService runs imports against mixes of faults and compares results,
// checkpoint and service. faults 37-39, 42, 53, 61, 63, 64
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
			code, out := w.run("import -m leads.yaml leads.csv --out none --summary s.json --results r.csv -c 16 --retries 20 --max-in-doubt 0")
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
			for n := 0; code != 0 && n < 20; n++ { // the service goes on failing
				w.settle()
				code, out = w.run("import -m leads.yaml leads.csv --out none --retries 50 -c 1 --max-in-doubt 0")
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

// A second run on the same checkpoint ends at once with 4. With --wait, it waits for the first. faults 81
func TestOneRunAtATime(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sandbox.Options{})
	h := w.hold(1)
	w.leads(200)
	first := w.start("import -m leads.yaml leads.csv --out none -c 2")
	h.full(t)
	if out := w.must(4, "import -m leads.yaml leads.csv --out none"); !strings.Contains(out, "hint: ") {
		t.Errorf("no hint: %s", out)
	}
	time.AfterFunc(200*time.Millisecond, func() { close(h.let) })
	w.must(0, "import -m leads.yaml leads.csv --out none --wait 1m --summary s.json")
	must.Do(t, first.Wait())
	if s := w.summary("s.json"); s.Rows.Unchanged != 200 || s.Requests.Create != 0 {
		t.Errorf("the run that waited: %+v", s.Rows)
	}
}

func (w *world) read(name string) string {
	w.t.Helper()
	b, err := os.ReadFile(filepath.Join(w.dir, name))
	must.Do(w.t, err)
	return string(b)
}

// creates is how many creates came to the service, whatever it answered.
func (w *world) creates() (n int) {
	for _, answers := range w.service.Counts()["create"] {
		n += answers
	}
	return n
}

// Results and summary say if the service assigned another organization than the row asked for. fault 67
func TestAnotherOrganizationIsReported(t *testing.T) {
	t.Parallel()
	const remark = "the service assigned another organization than the row asked for"
	for name, link := range map[string]string{"linked": answered(200, rightLead), "not linked": answered(404, `{"message":"no such lead"}`)} {
		t.Run(name, func(t *testing.T) {
			w := newRawTrial(t, rawScript{act: rawAct{say: link}, update: true, from: 1, times: always})
			w.peer.script.store = name == "linked"
			w.peer.elsewhere = "org-of-others"
			w.rows(2)
			w.write("leads.yaml", rawMapping+linkText)
			_, out := w.run("import -m leads.yaml leads.csv --out run")
			for _, r := range w.results("run/results.csv") {
				if !strings.Contains(r["error"], remark) || r["organization_id"] != "org-of-others" {
					t.Errorf("%s: %s with %q\n%s", r["key"], r["outcome"], r["error"], out)
				}
			}
			if !strings.Contains(w.read("run/summary.json"), remark) {
				t.Error("the summary does not say so")
			}
		})
	}
}

// A panic in any goroutine on a row's way ends the run in order: exit 3 with a sentence, settled rows stay settled, few
// rows are in doubt, and no value of a row is shown. The next run does the rest. fault 9
func TestPanicEndsTheRunInOrder(t *testing.T) {
	t.Parallel()
	const planted, rows = "planted-in-a-row", 30
	for _, test := range []struct {
		point string
		nth   int
		doubt int
	}{
		{"before claim", 9, 0},        // in a lane, with nothing claimed
		{"commit settle", 3, 8},       // in the ledger's goroutine: no answer can be stored any more
		{"answered", 9, 1},            // in a lane
		{"before link", 5, 0},         // in a lane, with a lead that is made
		{"after results line", 9, 0},  // in the writer
		{"before run is noted", 1, 0}, // after the last row
	} {
		t.Run(test.point, func(t *testing.T) {
			t.Parallel()
			path, err := crashing()
			must.Do(t, err)
			w := newWorld(t, sandbox.Options{})
			w.leads(rows)
			w.write("leads.yaml", mappingText+linkText)
			c := w.command("import -m leads.yaml leads.csv -c 4 --out run --no-progress")
			c.Path = path
			c.Env = append(slices.Clone(c.Env), fmt.Sprintf("LEADFERRY_FAILPOINT=%s:%d", test.point, test.nth), "LEADFERRY_FAILPOINT_PANIC="+planted)
			var said bytes.Buffer
			c.Stdout, c.Stderr = &said, &said
			must.Do(t, c.Start())
			alive := time.AfterFunc(30*time.Second, func() { _ = c.Process.Kill() }) // so that a hang ends
			err = c.Wait()
			alive.Stop()
			out := said.Bytes()
			if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
				t.Fatal(err)
			}
			if code := c.ProcessState.ExitCode(); code != 3 || strings.Contains(string(out), planted) || strings.Contains(string(out), "goroutine ") ||
				strings.Contains(string(out), "incomplete") ||
				!strings.Contains(strings.Join(strings.Fields(string(out)), " "), "internal error (string at ") {
				t.Fatalf("exit %d\n%s", code, out)
			}
			if n := len(w.exported("in_doubt")); n > test.doubt {
				t.Errorf("%d rows in doubt, want at most %d\n%s", n, test.doubt, out)
			}
			w.settle()
			w.complete(rows)
			w.linked()
		})
	}
}
