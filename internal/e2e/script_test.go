package e2e

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/text/encoding/htmlindex"
)

// TestScripts runs the scripts of testdata over the built program: each begins in an
// empty folder with the samples beside it and a state directory of its own.
func TestScripts(t *testing.T) {
	t.Parallel()
	samples, caseFiles := filepath.Join(root(t), "samples"), filepath.Join(root(t), "..", "shared", "cases")
	_, noCases := os.Stat(caseFiles)
	w := watchScripts(t)
	testscript.RunT(w, testscript.Params{
		Dir: filepath.Join("testdata", "script"), UpdateScripts: *update,
		Setup: func(e *testscript.Env) error {
			e.Setenv("PATH", filepath.Dir(binary())+string(os.PathListSeparator)+e.Getenv("PATH"))
			e.Setenv("XDG_STATE_HOME", filepath.Join(e.WorkDir, "state"))
			e.Setenv("CASES", caseFiles)
			e.Setenv("LEADFERRY_ANY_FILESYSTEM", "1") // wherever the folder of the tests lies
			w.look(e)
			return os.CopyFS(filepath.Join(e.WorkDir, "samples"), os.DirFS(samples))
		},
		Condition: func(name string) (bool, error) {
			return name == "cases" && noCases == nil, nil
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

// plain FILE prints what FILE or stdout holds, without what differs from run to run.
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
