package e2e

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"leadferry/importer/report"
	"leadferry/internal/testsupport"
	"leadferry/internal/testsupport/must"
	"leadferry/leadapi/sandbox"
)

// world is an imitation of the service in this process and a folder for the program's
// files. A test sees there what the program really did.
type world struct {
	t       *testing.T
	dir     string
	service *sandbox.Server
	way     *testsupport.Way
	env     []string
	program []string // its path and first arguments; nil: binary()

	mu    sync.Mutex
	given map[string]bool // files that the test wrote itself
	said  []said
}

// organizations are some of the sandbox's made-up brand.
var organizations = []string{
	sandbox.TrunkID, "5bb7fb0f-d8d9-415b-8725-460b8ce504db", "ce9c02e4-aafb-4062-97ff-bbaaeca05990",
}

func newWorld(t *testing.T, o sandbox.Options) *world {
	t.Helper()
	return newWorldOn(t, o, testsupport.Network{})
}

// newWorldOn makes a world whose service is reached over the network n.
func newWorldOn(t *testing.T, o sandbox.Options, n testsupport.Network) *world {
	t.Helper()
	dir := t.TempDir()
	server, err := sandbox.New(o)
	must.Do(t, err)
	t.Cleanup(func() {
		must.Do(t, server.Close())
	})
	way := n.Serve(t, server)
	w := &world{t: t, dir: dir, service: server, way: way, given: map[string]bool{}}
	must.Do(t, os.Mkdir(filepath.Join(dir, "tmp"), 0o700))
	w.watch()
	w.env = append(os.Environ(),
		"XDG_STATE_HOME="+filepath.Join(dir, "state"), "XDG_CONFIG_HOME="+filepath.Join(dir, "config"),
		"XDG_CACHE_HOME="+filepath.Join(dir, "cache"), "TMPDIR="+filepath.Join(dir, "tmp"),
		"LEADFERRY_BASE_URL="+way.URL, "LEADFERRY_LEADS_URL="+way.LeadsURL, "LEADFERRY_TRUNK_ID="+sandbox.TrunkID,
		"LEADFERRY_ANY_FILESYSTEM=1", // the tests' folder may be on any file system
		"LEADFERRY_CLIENT_ID="+sandbox.ClientID, "LEADFERRY_CLIENT_SECRET="+sandbox.ClientSecret,
		"LEADFERRY_PROXY="+way.ProxyURL, "LEADFERRY_CA_FILE="+way.CA, "LEADFERRY_CLIENT_CERT="+way.Cert, "LEADFERRY_CLIENT_KEY="+way.Key,
	)
	return w
}

func itoa(n int) string { return strconv.Itoa(n) }

// words splits a line at blanks and adds further arguments, one each.
func words(line string, more ...string) []string { return append(strings.Fields(line), more...) }

// command is the program with arguments (see words), not yet started.
func (w *world) command(args ...string) *exec.Cmd {
	args = words(args[0], args[1:]...)
	program := w.program
	if program == nil {
		program = []string{binary()}
	}
	c := exec.Command(program[0], slices.Concat(program[1:], args)...)
	c.Dir, c.Env = w.dir, w.env
	c.WaitDelay = 20 * time.Second // services of wine may keep the pipes open after a command has ended
	return c
}

// start starts the program.
func (w *world) start(args ...string) *exec.Cmd {
	w.t.Helper()
	c := w.command(args...)
	must.Do(w.t, c.Start())
	return c
}

// made are the leads that the service holds.
func (w *world) made() []sandbox.Lead {
	w.t.Helper()
	leads, err := w.service.Leads()
	must.Do(w.t, err)
	return leads
}

// run runs the program to its end and returns its exit code and output.
func (w *world) run(args ...string) (code int, out string) {
	w.t.Helper()
	args = words(args[0], args[1:]...)
	c := w.command(args...)
	b, err := c.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) && !errors.Is(err, exec.ErrWaitDelay) {
		w.t.Fatal(err)
	}
	w.keep(args, string(b))
	return c.ProcessState.ExitCode(), string(b)
}

// must runs the program and fails the test unless it ends with code.
func (w *world) must(code int, args ...string) string {
	w.t.Helper()
	got, out := w.run(args...)
	if got != code {
		w.t.Fatalf("leadferry %s: exit %d, want %d\n%s", strings.Join(args, " "), got, code, out)
	}
	return out
}

func (w *world) write(name, text string) {
	w.t.Helper()
	w.given[name] = true
	must.Do(w.t, os.WriteFile(filepath.Join(w.dir, name), []byte(text), 0o600))
}

// summary is the summary of the run that wrote it to the file.
func (w *world) summary(name string) report.Summary {
	w.t.Helper()
	var s report.Summary
	must.Do(w.t, json.Unmarshal([]byte(w.read(name)), &s))
	return s
}

// table reads a CSV file of the run as one map a line.
func (w *world) table(text string) []map[string]string {
	w.t.Helper()
	records, err := csv.NewReader(strings.NewReader(strings.TrimPrefix(text, "\ufeff"))).ReadAll()
	if err != nil || len(records) == 0 {
		w.t.Fatalf("not a CSV table: %v", err)
	}
	var lines []map[string]string
	for _, r := range records[1:] {
		line := map[string]string{}
		for i, name := range records[0] {
			line[name] = r[i]
		}
		lines = append(lines, line)
	}
	return lines
}

func (w *world) results(name string) []map[string]string {
	w.t.Helper()
	return w.table(w.read(name))
}

// exported returns what checkpoint export prints, one map a key; nil if there is no checkpoint yet.
func (w *world) exported(state string) []map[string]string {
	w.t.Helper()
	args := []string{"checkpoint", "export"}
	if state != "" {
		args = append(args, "--state", state)
	}
	c := w.command(args...)
	var warned strings.Builder
	c.Stderr = &warned
	b, err := c.Output()
	w.keep(args, string(b)+warned.String())
	if strings.Contains(warned.String(), "no checkpoint at ") {
		return nil
	}
	if err != nil && !errors.Is(err, exec.ErrWaitDelay) && !strings.Contains(warned.String(), "is incomplete") {
		w.t.Fatalf("export: %v\n%s", err, warned.String())
	}
	return slices.DeleteFunc(w.table(string(b)), func(row map[string]string) bool { return row["state"] == "incomplete" })
}

// byRef returns the IDs of the service's leads by importRef, which the mapping sets to
// the row's key. Two leads with one importRef fail the test.
func (w *world) byRef() map[string]string {
	w.t.Helper()
	leads := w.made()
	ids := map[string]string{}
	for _, l := range leads {
		ref := fmt.Sprint(l.Content["importRef"])
		if ids[ref] != "" {
			w.t.Errorf("the service holds the lead of row %s twice", ref)
		}
		ids[ref] = l.ID
	}
	return ids
}

// mappingText writes the row's key into each lead, so that a test can tell whose lead it is.
const mappingText = `version: 1
key: "{id}"
assign:
  - organization: "{org}"
lead:
  type_key: contact-form
  type_label: Contact form
  content:
    name: "{name}"
    importRef: "{@key}"
`

// leads writes n good rows as leads.csv, with the mapping beside it.
func (w *world) leads(n int) {
	w.t.Helper()
	var b strings.Builder
	b.WriteString("id,org,name\n")
	for i := range n {
		fmt.Fprintf(&b, "L%05d,%s,Person %d\n", i, organizations[i%3], i)
	}
	w.write("leads.csv", b.String())
	w.write("leads.yaml", mappingText)
}

// eventually waits until ok returns true. After a minute it fails the test.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}

// id returns FLAG=ID as a refusal prints it.
func id(t *testing.T, said, flag string) string {
	t.Helper()
	_, rest, found := strings.Cut(said, flag+"=")
	if !found {
		t.Fatalf("no %s in:\n%s", flag, said)
	}
	return flag + "=" + strings.FieldsFunc(rest, func(r rune) bool { return (r < '0' || r > '9') && (r < 'a' || r > 'f') })[0]
}

// contains fails the test unless a text holds all parts.
func contains(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("no %q in:\n%s", part, text)
		}
	}
}

// holds fails the test unless the service holds the leads of so many rows, each once.
func (w *world) holds(want int) {
	w.t.Helper()
	if got := len(w.byRef()); got != want {
		w.t.Fatalf("the service holds the leads of %d rows, want %d", got, want)
	}
}

// holder is a proxy before the sandbox. It applies creates at once, but holds back the
// answers of the first few until let is closed. The very first answer is not held.
type holder struct {
	service http.Handler
	first   int           // how many answers to creates are held
	let     chan struct{} // closed: held answers leave

	mu       sync.Mutex
	posts    map[string]int // creates that came, by importRef
	held     int
	answered int // of those held
}

// hold sends the program's requests through a holder.
func (w *world) hold(first int) *holder {
	h := &holder{service: w.service, first: first, let: make(chan struct{}), posts: map[string]int{}}
	server := httptest.NewServer(h)
	w.t.Cleanup(server.Close)
	w.env = append(w.env, "LEADFERRY_BASE_URL="+server.URL, "LEADFERRY_LEADS_URL="+server.URL)
	return h
}

func (h *holder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !strings.HasPrefix(r.URL.Path, "/v1/") || r.Method != http.MethodPost {
		h.service.ServeHTTP(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	answer := httptest.NewRecorder()
	h.service.ServeHTTP(answer, r)
	held := h.note(body)
	if held {
		select {
		case <-h.let:
		case <-r.Context().Done():
			return
		}
	}
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes())
	if held && http.NewResponseController(w).Flush() == nil {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.answered++
	}
}

func (h *holder) note(body []byte) (held bool) {
	var lead struct {
		Content map[string]string `json:"content"`
	}
	_ = json.Unmarshal(body, &lead)
	h.mu.Lock()
	defer h.mu.Unlock()
	alone := len(h.posts) == 0
	h.posts[lead.Content["importRef"]]++
	if held = !alone && h.held < h.first; held {
		h.held++
	}
	return held
}

func (h *holder) counts() (held, answered int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.held, h.answered
}

// full waits until first answers are held back: as many requests are in flight.
func (h *holder) full(t *testing.T) {
	t.Helper()
	eventually(t, "requests are in flight", func() bool { held, _ := h.counts(); return held == h.first })
}

// shell is a script for sh, not yet started. In it, $0 is the program.
func (w *world) shell(script string) *exec.Cmd {
	c := exec.Command("sh", "-c", script, binary())
	c.Dir, c.Env = w.dir, w.env
	return c
}
