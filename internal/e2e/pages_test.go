package e2e

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"leadferry/internal/testsupport/must"
	"leadferry/leadapi/sandbox"
)

// TestPages runs the commands in the console blocks of README and docs, each page in one shell, one after another,
// against an imitation of the service. A command must print the lines below it, where "..." matches any text, and must
// end with exit code 0, unless the next command is `echo $?`.
//
// Comments hold what readers need not see: `<!-- run: COMMANDS -->` prepares something, `<!-- service: FAULTS -->` sets
// the faults of the service from there on, and `<!-- exit: 1 0 5 -->` gives the exit codes of the next block.
func TestPages(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("the pages are written for a POSIX shell, and there is none")
	}
	pages, err := filepath.Glob(filepath.Join(root(t), "docs", "*.md"))
	if err != nil || len(pages) == 0 {
		t.Fatal("there are no pages", err)
	}
	for _, name := range append(pages, filepath.Join(root(t), "README.md")) {
		text, err := os.ReadFile(name)
		must.Do(t, err)
		if stray := loose.FindString(string(text)); stray != "" && filepath.Base(name) != "README.md" {
			t.Errorf("%s: a command outside of a console block, where no test runs it: %s", filepath.Base(name), stray)
		}
		if steps := stepsOf(string(text)); len(steps) > 0 {
			t.Run(filepath.Base(name), func(t *testing.T) {
				t.Parallel()
				newReader(t, string(text)).follow(steps)
			})
		}
	}
}

// loose matches a command of leadferry in an indented block.
var loose = regexp.MustCompile(`(?m)^    leadferry .*`)

// pageStep is one thing that a page does: a command of a console block, with what it prints, or a comment.
type pageStep struct {
	kind    string // "command", "run", "service" or "exit"
	line    int
	text    string
	prints  []string
	ofBlock int // which console block
}

var instruction = regexp.MustCompile(`(?s)^<!-- (run|service|exit): (.*?)\s*-->`)

func stepsOf(page string) (steps []pageStep) {
	lines := strings.Split(page, "\n")
	block, inside := 0, false
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		switch {
		case line == "```console":
			inside, block = true, block+1
		case line == "```":
			inside = false
		case inside && strings.HasPrefix(line, "$ "):
			steps = append(steps, pageStep{kind: "command", line: i + 1, text: line[2:], ofBlock: block})
		case inside && strings.HasPrefix(line, "> ") && len(steps) > 0:
			steps[len(steps)-1].text += "\n" + line[2:]
		case inside && len(steps) > 0:
			steps[len(steps)-1].prints = append(steps[len(steps)-1].prints, line)
		default:
			if m := instruction.FindStringSubmatch(strings.Join(lines[i:], "\n")); m != nil {
				steps = append(steps, pageStep{kind: m[1], line: i + 1, text: m[2]})
				i += strings.Count(m[0], "\n")
			}
		}
	}
	return steps
}

// reader is somebody who follows a page in an empty folder with the samples beside it.
type reader struct {
	*testing.T
	dir     string
	service atomic.Pointer[sandbox.Server]
	url     string
	shell   *exec.Cmd
	in      io.Writer
	out     *bufio.Reader
}

func newReader(t *testing.T, page string) *reader {
	r := &reader{T: t, dir: t.TempDir()}
	must.Do(t, os.CopyFS(filepath.Join(r.dir, "samples"), os.DirFS(filepath.Join(root(t), "samples"))))
	r.serve("")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) { r.service.Load().ServeHTTP(w, q) }))
	t.Cleanup(func() {
		server.Close()
		r.service.Load().Close()
	})
	r.url = server.URL
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute) // for a command that never ends
	t.Cleanup(cancel)
	r.shell = exec.CommandContext(ctx, "bash", "--norc", "--noprofile")
	r.shell.Dir = r.dir
	r.shell.Env = append(os.Environ(), "PATH="+filepath.Dir(binary())+string(os.PathListSeparator)+os.Getenv("PATH"), "HOME="+r.dir,
		"XDG_STATE_HOME="+filepath.Join(r.dir, "state"), "XDG_CONFIG_HOME="+filepath.Join(r.dir, "config"), "LEADFERRY_ANY_FILESYSTEM=1", "LEADFERRY_PASSWORD="+sandbox.Password)
	in, err := r.shell.StdinPipe()
	must.Do(t, err)
	out, into, err := os.Pipe()
	must.Do(t, err)
	r.shell.Stdout, r.shell.Stderr = into, into
	must.Do(t, r.shell.Start())
	into.Close()
	r.in, r.out = in, bufio.NewReader(out)
	t.Cleanup(func() {
		in.Close()
		r.shell.Wait()
		out.Close()
	})
	if !strings.Contains(page, "leadferry login") {
		r.must("leadferry login --profile default --email service-account@example.com --trunk-id TRUNK-ID --base-url https://api.example.com --leads-url https://leads.example.com")
	}
	return r
}

// serve starts the service again with other faults. It keeps its leads.
func (r *reader) serve(faults string) {
	r.Helper()
	if before := r.service.Load(); before != nil {
		before.Close()
	}
	s, err := sandbox.New(sandbox.Options{Path: filepath.Join(r.dir, "service.db"), Faults: faults})
	must.Do(r, err)
	r.service.Store(s)
}

// follow does what a page says.
func (r *reader) follow(steps []pageStep) {
	last, block := 0, 0
	var wanted, announced []string
	for i, s := range steps {
		switch s.kind {
		case "service":
			r.serve(s.text)
		case "run":
			r.must(s.text)
		case "exit":
			announced = strings.Fields(s.text)
		case "command":
			if s.ofBlock != block {
				block, wanted, announced = s.ofBlock, announced, nil
			}
			want := "0"
			if len(wanted) > 0 {
				want, wanted = wanted[0], wanted[1:]
			}
			printed, code := r.run(s.text, last)
			last = code
			r.Logf("line %d: %s\n%s", s.line, s.text, printed)
			shown := i+1 < len(steps) && steps[i+1].text == "echo $?"
			if strconv.Itoa(code) != want && !shown {
				r.Fatalf("line %d: %s\nends with exit code %d, and not %s as on the page:\n%s", s.line, s.text, code, want, printed)
			}
			if len(s.prints) > 0 && !fits(printed, s.prints) {
				r.Errorf("line %d: %s\nprints\n%s\nand not\n%s", s.line, s.text, printed, strings.Join(s.prints, "\n"))
			}
		}
	}
}

// must runs a command that readers do not see.
func (r *reader) must(command string) {
	r.Helper()
	if printed, code := r.run(command, 0); code != 0 {
		r.Fatalf("%s\nexit code %d:\n%s", command, code, printed)
	}
}

// run lets the shell run a command and returns its output and exit code. before is $? when it starts.
func (r *reader) run(command string, before int) (printed string, code int) {
	r.Helper()
	const mark = "\x01ended"
	fmt.Fprintf(r.in, "(exit %d)\n%s\nprintf '%s %%d\\n' $?\n", before, r.real(command), mark)
	var b strings.Builder
	for {
		line, err := r.out.ReadString('\n')
		if err != nil {
			r.Fatalf("%s: the shell has gone: %v\n%s", command, err, b.String())
		}
		text, end, found := strings.Cut(line, mark+" ")
		b.WriteString(text)
		if found {
			code, _ = strconv.Atoi(strings.TrimSpace(end))
			return r.plain(b.String()), code
		}
	}
}

// real replaces the addresses and names of examples by those of this test.
func (r *reader) real(command string) string {
	return strings.NewReplacer("https://api.example.com", r.url, "https://leads.example.com", r.url, "TRUNK-ID", (*sandbox.Directory)(nil).TrunkID(),
		"service-account@example.com", sandbox.Email).Replace(command)
}

func (r *reader) plain(text string) string { return strings.ReplaceAll(text, r.dir+"/", "/home/ann/") }

// differing matches the parts of a line that differ from run to run.
var differing = regexp.MustCompile(`leadferry-runs/\S+?-(\w+)-[0-9a-f]{8}|\b[0-9a-f]{8}\b(-[0-9a-f-]{27})?|\b\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d+)?Z?|\b\d{8}T\d{6}Z|\b\d[\dms.µ]*s\b|\b127\.0\.0\.1[_:]\d+|:\d{5}\b`)

// dots matches the "..." of a page after QuoteMeta.
const dots = `\\\.\\\.\\\.`

// fits reports whether what was printed is what a page shows, where "..." matches any text.
func fits(printed string, shown []string) bool {
	page := regexp.QuoteMeta(differing.ReplaceAllString(strings.Join(shown, "\n"), "~"))
	for _, lines := range [][2]string{{`^` + dots + `\n`, `(.*\n)?`}, {`\n` + dots + `$`, `(\n.*)?`}, {`\n` + dots + `\n`, `\n(.*\n)?`}} {
		page = regexp.MustCompile(lines[0]).ReplaceAllLiteralString(page, lines[1]) // any number of whole lines, also none
	}
	page = strings.ReplaceAll(page, `\.\.\.`, ".*?")
	truth := differing.ReplaceAllString(strings.TrimRight(printed, "\n"), "~")
	return regexp.MustCompile(`(?s)^` + page + `$`).MatchString(truth)
}
