// Package e2e runs the built program as a user would, with scripts over its command line and kills at random moments.
// It judges by the sandbox's own list of leads, never by what the program says.
package e2e

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/text/encoding/htmlindex"

	"leadferry/internal/cli"
	"leadferry/internal/pgtest"
	"leadferry/internal/testsupport/memory"
	"leadferry/internal/testsupport/must"
)

// kills is how often TestKill and TestKillSync kill at each concurrency; the long suite is
// `go test ./internal/e2e -run '^TestKill' -kills 1000 -timeout 60m -v`, or one of the two.
var kills = flag.Int("kills", 5, "how many times TestKill and TestKillSync kill at each concurrency (1, 8 and 64), at random moments")

// update writes the present output into the scripts. Read the difference.
var update = flag.Bool("update", false, "rewrite the expected outputs of the scripts")

// program links in the whole program, so that any change of it makes go test run these tests again.
var program = cli.Run

// binary is the program under test, built once.
func binary() string { return filepath.Join(os.Getenv("LEADFERRY_TEST_BIN"), "leadferry") }

func TestMain(m *testing.M) {
	flag.Parse()
	manyAtOnce()
	if program != nil {
		os.Exit(build(m.Run))
	}
}

// manyAtOnce lets four times as many tests run at a time as there are processors, unless -parallel is given: most of
// them only wait for a program that waits itself.
func manyAtOnce() {
	asked := false
	flag.Visit(func(f *flag.Flag) { asked = asked || f.Name == "test.parallel" })
	if !asked {
		flag.Set("test.parallel", strconv.Itoa(4*runtime.GOMAXPROCS(0)))
	}
}

func build(run func() int) int {
	dir, err := os.MkdirTemp("", "leadferry-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	defer pgtest.End()
	os.Setenv("LEADFERRY_TEST_BIN", dir)
	args := []string{"build", "-ldflags=-s -w", "-o", binary(), "leadferry"} // these flags halve the time of linking
	if info, _ := debug.ReadBuildInfo(); slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		args = slices.Insert(args, 1, "-race") // after a data race the program ends with 66
	}
	if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build the program: %v\n%s", err, out)
		return 1
	}
	leaveNetwork()
	os.Setenv("TMPDIR", cmp.Or(os.Getenv("TMPDIR"), memory.Folder()))
	return run()
}

// leaveNetwork removes the machine's proxies and certificates, and the LEADFERRY_ settings of whoever runs the tests.
func leaveNetwork() {
	for _, pair := range os.Environ() {
		name, _, _ := strings.Cut(pair, "=")
		small := strings.ToLower(name)
		if strings.HasSuffix(small, "_proxy") || strings.HasPrefix(small, "ssl_cert_") || strings.HasPrefix(name, "LEADFERRY_") && name != "LEADFERRY_TEST_BIN" {
			os.Unsetenv(name)
		}
	}
}

func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join("..", ".."))
	must.Do(t, err)
	return dir
}

// cases is a folder with files from other projects. Without it, the test is skipped.
func cases(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(root(t), "..", "shared", "cases")
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("no files to try it with: %v", err)
	}
	return dir
}

// TestScripts runs the scripts of testdata/script. Each begins in a folder with nothing
// but the samples, and has its own state directory.
func TestScripts(t *testing.T) {
	t.Parallel()
	samples := filepath.Join(root(t), "samples")
	w := watchScripts(t)
	testscript.RunT(w, testscript.Params{
		Dir: filepath.Join("testdata", "script"), UpdateScripts: *update,
		Setup: func(e *testscript.Env) error {
			e.Setenv("PATH", filepath.Dir(binary())+string(os.PathListSeparator)+e.Getenv("PATH"))
			e.Setenv("XDG_STATE_HOME", filepath.Join(e.WorkDir, "state"))
			e.Setenv("LEADFERRY_ANY_FILESYSTEM", "1") // the tests' folder may be on any file system
			w.look(e)
			return os.CopyFS(filepath.Join(e.WorkDir, "samples"), os.DirFS(samples))
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"plain": plain, "exits": exits, "encode": encode},
	})
}

// changing are the parts of an output that differ from run to run.
var changing = []struct {
	what *regexp.Regexp
	by   string
}{
	{regexp.MustCompile(`leadferry-runs/[0-9TZ]+-(\w+)-[0-9a-f]{8}`), "leadferry-runs/RUN-$1"},
	{regexp.MustCompile(`/\S+/state/leadferry/`), "STATE/"},
	{regexp.MustCompile(`\b\d[\d.]* m?s\b|\b\d[\dms.]*s\b`), "TIME"},
}

// plain FILE prints FILE, or stdout, with names in place of what differs from run to run.
func plain(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: plain file")
	}
	text := ts.ReadFile(args[0])
	for _, c := range changing {
		text = c.what.ReplaceAllString(text, c.by)
	}
	if _, err := ts.Stdout().Write([]byte(text)); err != nil {
		ts.Fatalf("%v", err)
	}
}

// encode LABEL FROM TO writes a file's text in another encoding.
func encode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: encode label from to")
	}
	e, err := htmlindex.Get(args[0])
	ts.Check(err)
	text, err := e.NewEncoder().String(ts.ReadFile(args[1]))
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[2]), []byte(text), 0o600))
}

// exits CODE COMMAND... runs a command that must end with that exit code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits code command...")
	}
	code := 0
	var exit *exec.ExitError
	if err := ts.Exec(args[1], args[2:]...); errors.As(err, &exit) {
		code = exit.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if strconv.Itoa(code) != args[0] {
		ts.Fatalf("exit code %d, want %s", code, args[0])
	}
}
