package pages

import (
	"encoding/json"
	"fmt"
	"math"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"
)

// onDisk returns the URL of a file of the desk.
func (d *desk) onDisk(name string) string {
	return (&url.URL{Scheme: "file", Path: d.path(name)}).String()
}

const crmMapping = `version: 1
key: "{id}"
assign:
  - organization: "{dealer}"
lead:
  type_key: fair
  type_label: Fair
  status: "{status}"
  external_id: "{id}"
  content:
    name: "{name}"
    email: {from: "{email}", format: email}
`

// crm returns a CSV of n leads with statuses and the organizations of [directory]. shift changes most statuses.
func crm(n, shift int) string {
	statuses := []string{"open", "contacted", "inProgress", "onHold", "closedWon", "closedNotInterested", "closedBoughtUsed", "closedBoughtOtherBrand"}
	var b strings.Builder
	b.WriteString("id,dealer,name,email,status,<script>alert(1)</script>\n")
	for i := range n {
		email := fmt.Sprintf("p%d@example.com", i)
		if i%29 == 28 {
			email = "nobody at home"
		}
		fmt.Fprintf(&b, "C-%04d,dealer-%02d,Person %d,%s,%s,x\n", i, i*i%25, i, email, statuses[(i+shift*(i%5))%len(statuses)])
	}
	return b.String()
}

// directory returns a brand of 25 organizations with [hostile] names.
func directory() string {
	var b strings.Builder
	b.WriteString("organizations:\n")
	for i := range 25 {
		name, _ := json.Marshal(fmt.Sprintf("%s Motors %d", hostile[i%len(hostile)], i))
		fmt.Fprintf(&b, "  - {id: dealer-%02d, name: %s}\n", i, name)
	}
	return b.String()
}

// The pages of real runs have no faults: validate, import, sync and reconcile, as in a migration.
func TestRunPages(t *testing.T) {
	t.Parallel()
	b := open(t)
	d := newDesk(t)
	d.write("directory.yaml", directory())
	_, settings := d.start("sandbox", "--addr", "127.0.0.1:0", "--web", "--directory", "directory.yaml", "--faults", "create.drop-stored/70,429/60,retry-after=0,update.500/40,update.422/55")
	d.take(settings)
	d.write("crm.yaml", crmMapping)
	d.write("crm.csv", crm(400, 0))
	d.run(1, "validate", "-m", "crm.yaml", "crm.csv", "--out", "validate")
	b.inspect(t, "run-validate", d.onDisk("validate/report.html"))
	d.run(5, "import", "-m", "crm.yaml", "crm.csv", "--out", "import", "--yes")
	b.inspect(t, "run-import", d.onDisk("import/report.html"))
	d.write("crm.csv", crm(400, 1))
	d.run(5, "sync", "-m", "crm.yaml", "crm.csv", "--out", "sync", "--yes", "--retries", "1")
	b.inspect(t, "run-sync", d.onDisk("sync/report.html"))
	d.write("crm.csv", crm(390, 2))
	d.run(5, "reconcile", "-m", "crm.yaml", "crm.csv", "--out", "reconcile")
	b.inspect(t, "run-reconcile", d.onDisk("reconcile/report.html"))
}

// summary is a summary.json that a test may change.
type summary map[string]any

func (d *desk) summary(name string) (s summary) {
	d.t.Helper()
	text, err := os.ReadFile(d.path(name))
	must(d.t, err)
	must(d.t, json.Unmarshal(text, &s))
	return s
}

// report makes the page of a summary and returns its URL.
func (d *desk) report(name string, s summary) string {
	d.t.Helper()
	text, err := json.Marshal(s)
	must(d.t, err)
	must(d.t, os.MkdirAll(d.path(name), 0o700))
	d.write(name+"/summary.json", string(text))
	d.run(0, "report", name+"/summary.json", "-o", name+"/report.html")
	return d.onDisk(name + "/report.html")
}

// full turns s into the summary of a run of 20 hours and a million rows, with long lists full of hostile texts.
func (s summary) full() {
	began := time.Date(2026, 5, 4, 6, 0, 0, 0, time.UTC)
	text := func(i int) string { return fmt.Sprintf("%s %d", hostile[i%len(hostile)], i) }
	place := func(i int) map[string]any { return map[string]any{"file": text(i) + ".csv", "line": i*i + 2} }
	s["started_at"], s["finished_at"], s["duration_s"] = began, began.Add(20*time.Hour), 72000.5
	s["rows"] = map[string]any{
		"read": 1_000_000, "created": 700_123, "updated": 120_000, "unchanged": 100_000, "changed": 40_000, "skipped": 20_000, "invalid": 9_000, "rejected": 5_000,
		"failed": 2_877, "partial": 1_500, "in_doubt": 212, "unmatched": 700, "conflict": 500, "pending": 88,
	}
	s["requests"] = map[string]any{"create": 705_335, "update": 131_222, "token": 12, "retries": 4_321, "by_status": map[string]any{"200": 120_000, "201": 700_123, "422": 5_000, "429": 4_300, "500": 9, "0": 212}}
	s["latency_ms"] = map[string]any{"p50": 41.25, "p90": 88.5, "p95": 120.75, "p99": 2210.5, "max": 29_998.25}
	var timeline, doubts, organizations, transitions, reasons []any
	for i := range 240 {
		wave := math.Sin(float64(i) / 9)
		b := map[string]any{"time": began.Add(time.Duration(i) * 300 * time.Second), "rows": int(4000 + 900*wave), "requests": int(4200 + 900*wave), "retries": i % 7 / 6 * 25, "p50": 40 + 9*wave, "p95": 110 + 40*wave, "p99": 400 + 1800*float64(i%31/30), "paused": 0}
		if i > 90 && i < 100 {
			b["rows"], b["requests"], b["paused"] = 0, 3, 300
		}
		timeline = append(timeline, b)
	}
	for i := range 200 {
		d := place(i % 12)
		d["sent_at"], d["organization_id"], d["reason"] = began.Add(time.Duration(i)*time.Minute), text(i+3), text(i+5)
		doubts = append(doubts, d)
	}
	statuses := []string{"open", "contacted", "inProgress", "onHold", "closedWon", "closedNotInterested", "closedBoughtUsed", "closedBoughtOtherBrand"}
	for i, from := range statuses {
		for j, to := range statuses {
			if from != to {
				transitions = append(transitions, map[string]any{"from": from, "to": to, "leads": (i*i*j*13 + j*977) * 7 % 90_001})
			}
		}
		reasons = append(reasons, map[string]any{"outcome": []string{"invalid", "rejected", "failed", "in_doubt"}[i%4], "error": text(i), "rows": 9000 / (i + 1), "examples": []any{place(i), place(i + 1), place(i + 2)}})
	}
	for i := range 60 {
		organizations = append(organizations, map[string]any{"id": text(i), "location": text(i + 1), "leads": 90_000 / (i + 1)})
	}
	s["timeline"], s["in_doubt"], s["organizations"], s["transitions"], s["errors"] = timeline, doubts, organizations, transitions, reasons
	s["inputs"] = []any{map[string]any{"path": "/data/" + strings.Repeat("a-long-folder/", 20) + "leads.csv", "format": "csv", "bytes": 123_456_789, "rows": 999_999, "blank": 17, "sha256": strings.Repeat("ab", 32)}, map[string]any{"path": text(0), "format": "xlsx", "bytes": 17, "rows": 1, "blank": 0, "sha256": ""}}
	s["outcome"], s["exit_code"], s["stop_reason"] = "attention", 5, ""
}

// Pages from changed summaries have no faults: of a million rows, of a stopped run, and of a run without rows.
func TestPagesOfSummaries(t *testing.T) {
	t.Parallel()
	b := open(t)
	d := newDesk(t)
	d.write("leads.yaml", leadsMapping)
	d.write("leads.csv", rows(30))
	d.run(0, "import", "--sandbox", "-m", "leads.yaml", "leads.csv", "--out", "run")
	s := d.summary("run/summary.json")
	s.full()
	b.inspect(t, "run-full", d.report("full", s))
	s = d.summary("run/summary.json")
	s["outcome"], s["exit_code"], s["stop_reason"] = "stopped", 3, "the service refuses to sign in: "+hostile[0]
	b.inspect(t, "run-stopped", d.report("stopped", s))
	s["outcome"], s["exit_code"] = "interrupted", 130
	for _, list := range []string{"timeline", "organizations", "transitions", "errors", "in_doubt", "inputs"} {
		s[list] = []any{}
	}
	s["rows"] = map[string]any{"read": 0}
	b.inspect(t, "run-nothing", d.report("nothing", s))
}

// The page of a running import has no faults.
func TestLivePages(t *testing.T) {
	t.Parallel()
	b := open(t)
	d := newDesk(t)
	_, settings := d.start("sandbox", "--addr", "127.0.0.1:0", "--web", "--latency", "100ms", "--faults", "429/50,drop-stored/90")
	d.take(settings)
	d.write("leads.yaml", leadsMapping)
	d.write("leads.csv", rows(50_000, hostile...))
	address, _ := d.start("import", "-m", "leads.yaml", "leads.csv", "--out", "run", "--yes", "-c", "2", "--max-in-doubt", "0", "--web")
	b.inspect(t, "run-live", address)
}

// hostile are texts that break careless pages.
var hostile = []string{
	`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `{{.}} ${x} %s`, "a\u202egpj.exe", strings.Repeat("wide", 60),
	"مرحبا بالعالم", "日本語のとても長い名前で改行されないはずのもの", "👩‍👩‍👧‍👦 family", "\u200b\u200bhidden", "o'Neil & \"Sons\"", "</td></tr></table>", "=1+1",
}

const leadsMapping = `version: 1
key: "{id}"
assign:
  - organization: 5bb7fb0f-d8d9-415b-8725-460b8ce504db
lead:
  type_key: fair
  type_label: Fair
  content:
    name: "{name}"
    email: "{email}"
    message: "{message}"
`

// rows returns a CSV of n leads, whose messages repeat texts.
func rows(n int, texts ...string) string {
	var b strings.Builder
	b.WriteString("id,name,email,message\n")
	for i := range n {
		text := "Please call me"
		if len(texts) > 0 {
			text = texts[i%len(texts)]
		}
		quoted := `"` + strings.ReplaceAll(text, `"`, `""`) + `"`
		name := fmt.Sprintf("Person %d", i)
		if len(texts) > 0 && i < len(texts) {
			name = quoted
		}
		fmt.Fprintf(&b, "K-%04d,%s,person%d@example.com,%s\n", i, name, i, quoted)
	}
	return b.String()
}

// The page of the sandbox has no faults: empty, full of hostile texts, and with a search.
func TestSandboxPages(t *testing.T) {
	t.Parallel()
	b := open(t)
	d := newDesk(t)
	address, settings := d.start("sandbox", "--addr", "127.0.0.1:0", "--web", "--faults", "drop-stored/40,429/17,retry-after=0,update.slow/50:1ms")
	d.take(settings)
	b.inspect(t, "sandbox-empty", address)
	d.write("leads.yaml", leadsMapping)
	d.write("leads.csv", rows(130, hostile...))
	d.run(5, "import", "-m", "leads.yaml", "leads.csv", "--out", "run", "--yes")
	d.write("leads.csv", strings.ReplaceAll(rows(130, hostile...), "example.com", "example.org"))
	d.run(5, "sync", "-m", "leads.yaml", "leads.csv", "--out", "run", "--yes")
	page := strings.TrimSuffix(strings.SplitAfter(address, "?")[0], "?")
	b.inspect(t, "sandbox", page)
	b.inspect(t, "sandbox-search", page+"?q=person7")
}
