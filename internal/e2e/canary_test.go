package e2e

import (
	"archive/zip"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"leadferry/internal/testsupport/must"
	"leadferry/leadapi/sandbox"
)

// canaryMapping sends all columns but the last.
const canaryMapping = `version: 1
key: "{id}"
assign:
  - organization: "{org}"
  - locator: 1946f580-3cae-445c-9069-80ba1f71f6fa
    type: radius
    search_text: "{street}, {town}"
lead:
  type_key: contact-form
  type_label: Contact form
  status: "{stage}"
  external_id: "{id}"
  content:
    name: "{full name}"
    email: {from: "{mail}", format: email}
    phone: "{phone}"
    message: "{note}"
    street: "{street}"
    city: "{town}"
    importRef: "{@key}"
`

// canaryRows are the planted people as a table with a header. The later export has other
// names and notes, and one more person.
func canaryRows(later bool) [][]string {
	rows := [][]string{append([]string{"id", "org", "stage"}, plantedColumns...)}
	for i, p := range plantedPersons() {
		cells, stage := slices.Clone(p.cells), "closedWon"
		if later {
			cells[0], cells[3], stage = p.renamed, p.noted, "contacted"
		}
		org := organizations[i%3]
		if i%10 == 8 {
			org = ""
		}
		rows = append(rows, append([]string{fmt.Sprintf("K-%03d", i), org, stage}, cells...))
	}
	if later {
		last := slices.Clone(rows[len(rows)-1])
		last[0] = "K-900"
		rows = append(rows, last)
	}
	return rows
}

func (w *world) canaryFiles() {
	w.t.Helper()
	for name, later := range map[string]bool{"people": false, "later": true} {
		rows := canaryRows(later)
		var table, lines strings.Builder
		c := csv.NewWriter(&table)
		var sheet strings.Builder
		for i, row := range rows {
			object := map[string]string{}
			sheet.WriteString("<row>")
			for k, cell := range row {
				object[rows[0][k]] = cell
				row[k] = strings.ReplaceAll(cell, "\x1b", "\\x1b") // a workbook cannot hold it
				sheet.WriteString(`<c t="inlineStr"><is><t>` + html.EscapeString(row[k]) + "</t></is></c>")
			}
			sheet.WriteString("</row>")
			if b, err := json.Marshal(object); err != nil {
				w.t.Fatal(err)
			} else if i > 0 {
				lines.Write(append(b, '\n'))
			}
		}
		must.Do(w.t, c.WriteAll(canaryRows(later)))
		w.write(name+".csv", table.String())
		w.write(name+".jsonl", lines.String())
		w.write(name+".xlsx", workbook(w.t, sheet.String()))
	}
	w.write("people.yaml", canaryMapping)
	w.write("password", canaryPassword+"\n")
	w.write("wrong", strings.ReplaceAll(canaryPassword, "Q", "q")+"\n")
}

// workbook packs the rows of a sheet as Excel does.
func workbook(t *testing.T, rows string) string {
	t.Helper()
	const (
		packageNS = ` xmlns="http://schemas.openxmlformats.org/package/2006/relationships"`
		relation  = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
		mainNS    = ` xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"`
	)
	relations := func(kind, target string) string {
		return "<Relationships" + packageNS + `><Relationship Id="rId1" Type="` + relation + "/" + kind + `" Target="` + target + `"/></Relationships>`
	}
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for name, text := range map[string]string{
		"[Content_Types].xml":        `<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"/>`,
		"_rels/.rels":                relations("officeDocument", "xl/workbook.xml"),
		"xl/_rels/workbook.xml.rels": relations("worksheet", "sheet1.xml"),
		"xl/workbook.xml":            "<workbook" + mainNS + ` xmlns:r="` + relation + `"><sheets><sheet name="Sheet1" sheetId="1" r:id="rId1"/></sheets></workbook>`,
		"xl/sheet1.xml":              "<worksheet" + mainNS + "><sheetData>" + rows + "</sheetData></worksheet>",
	} {
		part, err := z.Create(name)
		if err == nil {
			_, err = io.WriteString(part, text)
		}
		must.Do(t, err)
	}
	must.Do(t, z.Close())
	return b.String()
}

// scribe runs commands one after another and keeps their output in files of the world, so that the scan reads it, too.
type scribe struct {
	*world
	runs int
}

// recorded is the program, not yet started, with its output in files and umask 0.
func (s *scribe) recorded(args ...string) *exec.Cmd {
	s.t.Helper()
	args = words(args[0], args[1:]...)
	s.runs++
	name := filepath.Join(s.dir, "said", fmt.Sprintf("%02d %s", s.runs, strings.ReplaceAll(strings.Join(args, " "), "/", "_")))
	open := func(ending string) *os.File {
		f, err := os.OpenFile(name+ending, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		must.Do(s.t, err)
		s.t.Cleanup(func() { f.Close() })
		return f
	}
	c := s.shell(`umask 0; exec "$0" "$@"`)
	c.Args = append(c.Args, args...)
	c.Stdout, c.Stderr = open(".out"), open(".err")
	return c
}

// ends runs a command that must end with the code. Input is a file of the world.
func (s *scribe) ends(code int, input string, args ...string) {
	s.t.Helper()
	c := s.recorded(args...)
	if input != "" {
		f, err := os.Open(filepath.Join(s.dir, input))
		must.Do(s.t, err)
		defer f.Close()
		c.Stdin = f
	}
	if err := c.Run(); c.ProcessState.ExitCode() != code {
		b, _ := os.ReadFile(c.Stderr.(*os.File).Name())
		s.t.Errorf("leadferry %s: exit %d (%v), want %d\n%s", strings.Join(args, " "), c.ProcessState.ExitCode(), err, code, b)
	}
}

// answered runs a command that is refused because another checkpoint is in use for the trunk. It returns the command
// with the --new-checkpoint that the refusal prints.
func (s *scribe) answered(args ...string) []string {
	s.t.Helper()
	c := s.recorded(args...)
	_ = c.Run()
	said, err := os.ReadFile(c.Stderr.(*os.File).Name())
	if err != nil || c.ProcessState.ExitCode() != 4 {
		s.t.Fatalf("exit %d, %v\n%s", c.ProcessState.ExitCode(), err, said)
	}
	return append(words(args[0], args[1:]...), id(s.t, string(said), "--new-checkpoint"))
}

// TestNothingLeaks plants hundreds of values in columns and settings, runs every kind of command with them against a
// service that repeats all it hears, and looks for them in all output and files.
// Invariant 7; faults 111, 113-116, 119, 120
func TestNothingLeaks(t *testing.T) {
	t.Parallel()
	w, p := parroted(t)
	w.canaryFiles()
	must.Do(t, os.Mkdir(filepath.Join(w.dir, "said"), 0o700))
	s := &scribe{world: w}
	s.signIn()
	s.look()
	s.carry()
	s.keepInStep()
	s.die(p)
	s.settleAndForget()

	f := newFinder(slices.Concat(plantedPeople(), plantedSecrets()))
	if w.scan(f) == 0 {
		t.Logf("%d values and secrets, %d encodings, %d forms, %d commands: no hit", len(f.canaries), len(encodings), len(f.needles), s.runs)
	}
	w.modes("state", "config", "run", "runs", "tmp", "named")
	s.theScanIsNotBlind(f, p)
}

// signIn logs in with wrong and right passwords, from standard input and the environment.
func (s *scribe) signIn() {
	debug := words("--log-level debug login --email service@example.com")
	s.ends(3, "wrong", debug...)
	s.ends(3, "wrong", append(debug, "--log-format", "json")...)
	s.ends(0, "password", append(debug, "--trunk-id", sandbox.TrunkID)...)
	right := s.env
	s.env = append(slices.Clone(right), "LEADFERRY_PASSWORD="+canaryPassword)
	s.ends(2, "", debug...)
	s.env = append(slices.Clone(right), "LEADFERRY_CLIENT_ID=client-1", "LEADFERRY_CLIENT_SECRET="+strings.ReplaceAll(canarySecret, "K", "k"))
	s.ends(3, "", "import -m people.yaml people.csv --out runs/wrong")
	s.env = right
	s.ends(0, "", "config show")
}

// look runs the commands that read rows and send nothing.
func (s *scribe) look() {
	for _, name := range []string{"people.csv", "people.jsonl", "people.xlsx"} {
		s.ends(0, "", "init", name, "-m", "guess-"+name+".yaml")
		s.ends(1, "", "--log-level debug validate -m people.yaml", name, "--out", "runs/check-"+name, "--summary", "-")
		s.ends(1, "", "--log-format json validate -m people.yaml", name)
	}
	s.ends(0, "", "init people.csv -m -")
	s.ends(1, "", "validate -m people.yaml people.csv --show 100")
	s.ends(1, "", "import -m people.yaml people.csv --dry-run --show 100")
	// A mapping that fits badly: statuses and numbers from the wrong columns.
	s.write("wrong.yaml", strings.NewReplacer(`status: "{stage}"`, `status: "{full name}"`, `"{phone}"`, `{from: "{phone}", as: number}`,
		`message: "{note}"`, `message: {expr: 'int(note)'}`, `"{street}"`+"\n", `{from: "{street}", map: {a: b}}`+"\n", `"{town}"`+"\n    import", `{from: "{town}", format: date}`+"\n    import").Replace(canaryMapping))
	s.ends(1, "", "--log-level debug validate -m wrong.yaml people.csv --summary - --out runs/wrong-mapping")
	s.ends(1, "", "--log-level debug import -m wrong.yaml people.csv --max-rejects 0 --out runs/wrong-import")
}

// anyway are flags that keep a run going through any number of rejects and doubts.
var anyway = words("--max-rejects 0 --max-in-doubt 0 --retries 0")

// carry imports rows with all outcomes, from all formats.
func (s *scribe) carry() {
	imports := func(code int, name string, more ...string) {
		s.ends(code, "", slices.Concat(words("--log-level debug import -m people.yaml", name), anyway, more)...)
	}
	imports(5, "people.csv", "--out", "run", "--metrics", "people.prom")
	must.Do(s.t, os.Mkdir(filepath.Join(s.dir, "named"), 0o700))
	imports(5, "people.csv", "--results", "named/r.csv", "--rejects", "named/rejects.csv", "--summary", "named/s.json", "--log-format", "json", "--retry-rejected")
	anew := func(name string, more ...string) {
		s.ends(5, "", s.answered(slices.Concat(words("--log-level debug import -m people.yaml", name), anyway, more)...)...)
	}
	anew("people.jsonl", "--out", "runs/jsonl", "--summary", "-", "--checkpoint", "state/jsonl.db")
	anew("people.xlsx", "--out", "runs/xlsx", "--quiet", "--checkpoint", "state/xlsx.db", "--log-format", "json")
	anew("later.csv", "--out", "runs/changed", "--changed", "update")
}

// keepInStep runs syncs with changes, conflicts and an unknown person.
func (s *scribe) keepInStep() {
	sync := func(code int, name string, more ...string) {
		s.ends(code, "", slices.Concat(words("--log-level debug sync -m people.yaml", name), anyway, more)...)
	}
	sync(5, "people.csv", "--out", "runs/sync-1")
	sync(5, "later.csv", "--out", "runs/sync-2", "--reopen", "hold", "--check-remote")
	sync(5, "later.jsonl", "--out", "runs/sync-3", "--log-format", "json")
	sync(5, "people.csv", "--dry-run", "--show", "100")
	s.ends(5, "", slices.Concat(words("sync -m people.yaml later.csv --missing create --out runs/sync-4"), anyway)...)
}

// die looks at a run from outside and aborts it in mid-run.
func (s *scribe) die(p *parrot) {
	args := s.answered("--log-level debug import -m people.yaml people.csv --checkpoint state/killed.db --out runs/killed")
	hang := make(chan struct{})
	p.mu.Lock()
	p.hang, p.asked = hang, 0
	p.mu.Unlock()
	c := s.recorded(args...)
	must.Do(s.t, c.Start())
	defer func() { // also if the test fails before
		_ = c.Process.Kill()
		_ = c.Wait()
		close(hang)
		p.mu.Lock()
		p.hang = nil
		p.mu.Unlock()
	}()
	eventually(s.t, "requests are in flight", func() bool {
		if b, _ := os.ReadFile(c.Stderr.(*os.File).Name()); strings.Contains(string(b), "leadferry: ") {
			s.t.Fatalf("%s", b)
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.asked >= 9
	})
	s.seenFromOutside(c.Process.Pid)
	must.Do(s.t, c.Process.Signal(syscall.SIGABRT)) // with a trace of all goroutines
	_ = c.Wait()
}

// seenFromOutside writes into the world's folder what other users can read about a process.
func (s *scribe) seenFromOutside(pid int) {
	if runtime.GOOS != "linux" {
		return
	}
	for _, name := range []string{"cmdline", "environ", "comm", "status", "maps"} {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(s.dir, "said", "process-"+name), b, 0o600)
		}
		must.Do(s.t, err)
	}
	if b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid)); err == nil && len(b) > 0 {
		s.t.Errorf("the program has children: %s", b)
	}
}

// settleAndForget runs the commands that people use by hand.
func (s *scribe) settleAndForget() {
	s.ends(0, "", "checkpoint export")
	s.ends(0, "", "checkpoint export --format jsonl")
	s.ends(0, "", "checkpoint history K-000")
	s.ends(0, "", "checkpoint status")
	s.ends(0, "", "checkpoint resolve --none-created --yes")
	s.write("known.csv", "key,lead_id,status\nK-950,lead-950,open\n")
	s.ends(0, "", "checkpoint adopt known.csv")
	s.ends(0, "", "checkpoint check")
	s.ends(0, "", "checkpoint forget K-007")
	s.ends(0, "", "checkpoint export")
}

// theScanIsNotBlind fails the test unless the scan finds the values where they are allowed.
func (s *scribe) theScanIsNotBlind(f *finder, p *parrot) {
	s.t.Helper()
	s.onTheWire(f, p)
	for name, least := range map[string]int{"run/rejects.csv": 300, "said/*--show*.out": 300, "runs/jsonl/rejects.jsonl": 300} {
		paths, err := filepath.Glob(filepath.Join(s.dir, name))
		if err != nil || len(paths) == 0 {
			s.t.Errorf("no %s", name)
			continue
		}
		b, err := os.ReadFile(paths[0])
		if n := len(f.find(string(b))); err != nil || n < least {
			s.t.Errorf("%s holds %d planted values, want %d or more (%v)", name, n, least, err)
		}
	}
	for _, name := range []string{"config/leadferry/credentials/*.json", "state/leadferry/tokens/*.json"} {
		paths, err := filepath.Glob(filepath.Join(s.dir, name))
		if err != nil || len(paths) == 0 {
			s.t.Errorf("no %s", name)
			continue
		}
		if b, err := os.ReadFile(paths[0]); err != nil || len(f.find(string(b))) == 0 {
			s.t.Errorf("%s holds no secret (%v)", name, err)
		}
	}
}

// onTheWire fails the test unless the service heard all values of valid rows, except the column memo.
func (s *scribe) onTheWire(f *finder, p *parrot) {
	p.mu.Lock()
	defer p.mu.Unlock()
	heard := map[string]bool{}
	for _, h := range f.find(p.heard.String()) {
		heard[h.canary.value] = true
	}
	for i, person := range plantedPersons() {
		for k, value := range person.cells[:6] {
			if i%10 != 4 && !heard[value] {
				s.t.Errorf("the service never heard the %s of row %d", plantedColumns[k], i)
			}
		}
		if heard[person.cells[6]] {
			s.t.Errorf("the service heard the memo of row %d", i)
		}
	}
}
