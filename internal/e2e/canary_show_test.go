package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"leadferry/internal/testsupport/must"
	"leadferry/leadapi/sandbox"
)

// hostile is what a terminal, a log or a spreadsheet would act upon: a formula, an escape sequence,
// a C1 control, marks of direction, line ends and a forged log line.
const hostile = "=1+2\x1b[2J\u009b31m\u202ea\u2066b\u200f\r\nlevel=ERROR msg=forged\u2028\x07\x7f"

// hostileAnswer is a text of that kind in answers of the service. It repeats no row.
const hostileAnswer = "@no\x1b]0;title\x07\u0085\u202d\u2067\r\nlevel=WARN msg=faked\x00"

// hostileService answers everything with hostile texts: names of places, refusals.
func hostileService(w *world) {
	server := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		say := func(status int, v any) {
			out.WriteHeader(status)
			_ = json.NewEncoder(out).Encode(v)
		}
		switch {
		case strings.HasPrefix(r.URL.Path, "/v3/oauth2/"):
			w.service.ServeHTTP(out, r)
		case r.Method == http.MethodPatch:
			say(http.StatusUnprocessableEntity, map[string]string{"message": hostileAnswer})
		case strings.Contains(string(body), "refuse"):
			say(http.StatusUnprocessableEntity, map[string]string{"message": hostileAnswer})
		case strings.Contains(string(body), "throttle"):
			out.Header().Set("Retry-After", "0")
			say(http.StatusTooManyRequests, map[string]string{"message": hostileAnswer})
		default:
			say(http.StatusCreated, map[string]string{"leadID": "lead-1", "assignedOrganizationID": "org-1", "assignedLocationName": hostile})
		}
	}))
	w.t.Cleanup(server.Close)
	w.env = append(w.env, "LEADFERRY_BASE_URL="+server.URL, "LEADFERRY_LEADS_URL="+server.URL)
}

// harmless fails the test for every character of an output that a terminal acts upon or that does not show.
func harmless(t *testing.T, what, text string) {
	t.Helper()
	for i, r := range text {
		if r != '\n' && !unicode.IsGraphic(r) {
			t.Errorf("%s has %q at %d: …%q", what, r, i, text[max(0, i-60):i])
			return
		}
	}
	if strings.Contains("\n"+text, "\nlevel=ERROR msg=forged") || strings.Contains(text, "\nlevel=WARN msg=faked") || strings.Contains(text, "leadferry: level=ERROR") {
		t.Errorf("%s has a forged log line", what)
	}
}

// Hostile texts are in cells, headers, file names and answers of the service. Output for people and log lines show them
// escaped, and one event of the log is one line. In the files, texts of the service begin no formula, and the row's own
// cells are unchanged. faults 117, 118
func TestHostileTextsAreShownEscaped(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sandbox.Options{})
	hostileService(w)
	column, file := "text"+hostile, "=1+2\x1b[2J\u202e\u009b\nlevel=ERROR msg=forged\n.csv"
	quote := func(s string) string { return `"` + strings.ReplaceAll(s, `"`, `""`) + `"` }
	head := "id,org,name," + quote(column) + "," + quote("unused"+hostile) + "\n"
	row := func(id, name string) string {
		return id + ",org-1," + name + "," + quote(hostile) + "," + quote(hostile) + "\n"
	}
	w.write(file, head+row("=K1", "made")+row("-K2", "refuse")+row("+K3", "throttle")+row("@K4", quote(hostile))+"K5,org-1\n"+row("=K1", "again"))
	w.write("l.yaml", `version: 1
key: "{id}"
assign: [{organization: "{org}"}]
lead:
  type_key: a
  type_label: b
  external_id: "{id}"
  content: {name: {from: "{name}", format: '/^[a-z]*$/'}, `+strconv.QuoteToASCII("key"+hostile)+": "+strconv.QuoteToASCII("{"+column+"}")+"}\n")
	for i, args := range [][]string{
		{"validate", "-m", "l.yaml", file},
		{"init", file, "-m", "-"},
		{"import", "-m", "l.yaml", file, "--dry-run"},
		{"import", "-m", "l.yaml", file, "--out", "run", "--retries", "0", "--max-rejects", "0"},
		{"import", "-m", "l.yaml", file, "--out", "none", "--changed", "update", "--retries", "0", "--max-rejects", "0", "--checkpoint", "c" + hostile + ".db"},
		{"sync", "-m", "l.yaml", file, "--out", "none", "--checkpoint", "none" + hostile + ".db"},
		{"checkpoint", "history", "=K1"},
		{"checkpoint", "status"},
		{"checkpoint", "forget", "K" + hostile},
		{"checkpoint", "resolve", file},
		{"checkpoint", "adopt", file},
		{"checkpoint", "export", "--checkpoint", "none" + hostile + ".db"},
		{"import", "-m", "none" + hostile, file},
		{"import", "-m", "l.yaml", "none" + hostile},
		{"import", "-m", "l.yaml", file, "--sheet", hostile, "--retries", "0", "--out", "none"},
		{"import", "-m", "l.yaml", file, "--no-such" + hostile},
		{"import", "-m", "l.yaml", file, "--limit", hostile},
		{"config", "show", "--trunk-id", hostile, "--profile", "a" + hostile},
		{"--quiet", "no" + hostile},
	} {
		_, out := w.run(args...)
		harmless(t, fmt.Sprintf("%d: leadferry %q", i, args), out)
		if args[0] == "init" || args[0] == "config" { // they have no log
			continue
		}
		_, out = w.run(append(words("--log-format json --log-level debug"), args...)...)
		harmless(t, fmt.Sprintf("%d: leadferry --log-format json %q", i, args), out)
	}
	for i, r := range w.results("run/results.csv") {
		harmless(t, "the results' error", r["error"]+r["location"])
		if strings.ContainsAny((r["error"] + " ")[:1]+(r["location"] + " ")[:1], "=+-@") {
			t.Errorf("result %d begins a formula: %q, %q", i, r["error"], r["location"])
		}
		if r["outcome"] == "partial" && !strings.HasPrefix(r["location"], "'=1+2") {
			t.Errorf("location %q is not defused", r["location"])
		}
	}
	if text := w.read("run/rejects.csv"); !strings.Contains(text, `HTTP 422 (refused): @no\x1b]0;title\a\u0085\u202d\u2067\r\nlevel=WARN msg=faked\x00`) {
		t.Errorf("the rejects do not show what the service said:\n%s", text)
	}
	own := 0
	for _, r := range w.table(w.read("run/rejects.csv")) {
		harmless(t, "the rejects' error", r["leadferry_error"])
		if r["id"] != "" && r["org"] == "org-1" && r[strings.ReplaceAll(column, "\r\n", "\n")] == strings.ReplaceAll(hostile, "\r\n", "\n") && strings.ContainsAny(r["id"][:1], "=-+@") {
			own++
		}
	}
	if own < 4 {
		t.Errorf("%d rejects have their own cells as they were, want 4 or more:\n%q", own, w.read("run/rejects.csv"))
	}
	for _, k := range w.exported("") {
		if !slices.Contains([]string{"=K1", "-K2", "+K3", "@K4"}, k["key"]) {
			t.Errorf("the export altered a key: %q", k["key"])
		}
	}
	harmless(t, "the summary", w.read("run/summary.json"))
}

// helps puts the help of a command and of the commands below it into all.
func (w *world) helps(all map[string]string, prefix ...string) {
	help := w.must(0, append(slices.Clone(prefix), "--help", "--all")...)
	all[strings.Join(prefix, " ")] = help
	_, list, _ := strings.Cut(help, "\nCOMMANDS:\n")
	list, _, _ = strings.Cut(list, "\n\n")
	for line := range strings.Lines(list) {
		if name, _, _ := strings.Cut(strings.TrimPrefix(line, "   "), " "); name != "" { // "": the line continues the one before
			w.helps(all, append(slices.Clone(prefix), name)...)
		}
	}
}

// No flag of any command takes a secret. The refusal of such a flag does not repeat what was typed. fault 112
func TestNoFlagTakesASecret(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sandbox.Options{})
	flag := regexp.MustCompile(`(?m)^ +(--.*?)(?:  |$)`)
	commands, flags := map[string]string{"help connection": w.must(0, "help connection")}, 0
	w.helps(commands)
	for c, help := range commands {
		for _, m := range flag.FindAllStringSubmatch(help, -1) {
			flags++
			if regexp.MustCompile(`secret|password|token`).MatchString(m[1]) && !strings.HasPrefix(m[1], "--client-secret-file ") && !strings.HasPrefix(m[1], "--client-secret-command ") {
				t.Errorf("leadferry %s has %s", c, m[1])
			}
		}
	}
	if len(commands) < 16 || flags < 80 {
		t.Errorf("only %d commands and %d flags were found", len(commands), flags)
	}
	f := newFinder(plantedSecrets())
	for _, c := range []string{"import --client-secret", "login --email a@example.com --password", "checkpoint status --token"} {
		for _, between := range []string{"=", " "} {
			reportHits(t, f, "what leadferry "+c+" printed", w.must(2, strings.Fields(c+between+canarySecret)...), 0)
		}
	}
}

// After forget, and once the runs' folders are deleted, no file of the program holds a trace of a person. fault 120
func TestForgetLeavesNothing(t *testing.T) {
	t.Parallel()
	w, _ := parroted(t)
	w.canaryFiles()
	w.write("secret", canarySecret)
	w.env = append(w.env, "LEADFERRY_CLIENT_ID=client-1", "LEADFERRY_CLIENT_SECRET_FILE=secret", "LEADFERRY_TRUNK_ID="+sandbox.TrunkID)
	w.write("forgettable.yaml", strings.ReplaceAll(canaryMapping, `"{id}"`, `"{memo}"`))
	w.write("one.csv", strings.ReplaceAll(w.read("people.csv"), "\r", ""))
	w.run("import -m forgettable.yaml one.csv --out run --max-rejects 0 --max-in-doubt 0 --retries 0")
	var keys []string
	var traces []canary
	for _, k := range w.exported("") {
		keys = append(keys, k["key"])
		for _, value := range []string{k["key"], k["lead_id"], k["external_id"]} {
			if len(value) >= pieceLength {
				traces = append(traces, canary{value: value})
			}
		}
	}
	if len(keys) < 60 || len(traces) < 100 {
		t.Fatalf("%d keys and %d traces in the checkpoint", len(keys), len(traces))
	}
	w.must(0, append([]string{"checkpoint", "forget"}, keys...)...)
	must.Do(t, os.RemoveAll(filepath.Join(w.dir, "run")))
	w.mu.Lock()
	w.said = nil // what was printed before
	w.mu.Unlock()
	w.scan(newFinder(slices.Concat(traces, plantedPeople())))
}

// Commands that send connect to the service only, and the others to nobody: no update
// check, no telemetry, no name server. fault 121
func TestOnlyTheServiceIsContacted(t *testing.T) {
	t.Parallel()
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("strace is not installed")
	}
	w := newWorld(t, sandbox.Options{})
	w.leads(20)
	w.write("password", sandbox.Password+"\n")
	address := regexp.MustCompile(`LEADFERRY_BASE_URL=http://127\.0\.0\.1:(\d+)`).FindStringSubmatch(strings.Join(w.env, "\n"))
	own := "sin_port=htons(" + address[1] + `), sin_addr=inet_addr("127.0.0.1")`
	for _, c := range []struct {
		args  []string
		sends bool
	}{
		{words("import -m leads.yaml leads.csv --out none"), true},
		{words("sync -m leads.yaml leads.csv --out none"), false},
		{[]string{"login", "--email", sandbox.Email, "--new-client"}, true},
		{words("validate -m leads.yaml leads.csv"), false},
		{words("init leads.csv -m -"), false},
		{[]string{"config", "show"}, false},
		{[]string{"checkpoint", "status"}, false},
		{[]string{"--version"}, false},
	} {
		trace := filepath.Join(w.dir, "trace")
		run := w.command(c.args...)
		run.Path, run.Args = strace, append([]string{strace, "-f", "-s", "4096", "-e", "trace=connect,sendto,sendmsg,bind,listen", "-o", trace, binary()}, c.args...)
		stdin, err := os.Open(filepath.Join(w.dir, "password"))
		must.Do(t, err)
		run.Stdin = stdin
		out, err := run.CombinedOutput()
		stdin.Close()
		if strings.Contains(string(out), "ptrace") {
			t.Skipf("strace may not trace here: %s", out)
		}
		w.keep(c.args, string(out))
		if err != nil {
			t.Fatalf("%v: %v\n%s", c.args, err, out)
		}
		connects := 0
		w.given["trace"] = true
		for line := range strings.Lines(w.read("trace")) {
			switch {
			case strings.Contains(line, "connect(") && strings.Contains(line, own):
				connects++
			case strings.Contains(line, "+++ exited"), strings.Contains(line, "--- SIG"), strings.Contains(line, "resumed>"):
			case strings.Contains(line, "???("): // the process ended before this thread made its call
			default:
				t.Errorf("leadferry %s: %s", strings.Join(c.args, " "), line)
			}
		}
		if c.sends != (connects > 0) {
			t.Errorf("leadferry %s: %d connections to the service", strings.Join(c.args, " "), connects)
		}
	}
}
