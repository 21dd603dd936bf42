// Package e2e tries the built program as a user would: scripts over its command
// line, and kills at random moments. The judge is the sandbox's own ledger, never
// the program's word for itself.
package e2e

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"

	"leadferry/internal/cli"
	"leadferry/internal/pgtest"
)

// kills is how often TestKill and TestKillSync kill at each concurrency; the long suite is
// `go test ./internal/e2e -run '^TestKill' -kills 1000 -timeout 60m -v`, or one of the two.
var kills = flag.Int("kills", 17, "how many times TestKill and TestKillSync kill at each concurrency (1, 8 and 64), at random moments")

// update writes what the program prints now into the scripts: read the difference.
var update = flag.Bool("update", false, "rewrite the expected outputs of the scripts")

// program is linked in, all of it, so that go test's cache takes a change of it for a change of these tests.
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

// manyAtOnce lets more tests run at a time than there are processors, unless -parallel says how many: most of
// them wait most of the time, for a program that waits itself.
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
	args := []string{"build", "-o", binary(), "leadferry"}
	if info, _ := debug.ReadBuildInfo(); slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		args = slices.Insert(args, 1, "-race") // the program ends with 66 where it races
	}
	if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build the program: %v\n%s", err, out)
		return 1
	}
	leaveNetwork()
	return run()
}

// leaveNetwork forgets how this machine reaches others, and the settings of whoever runs the tests: neither is any of theirs.
func leaveNetwork() {
	for _, pair := range os.Environ() {
		name, _, _ := strings.Cut(pair, "=")
		small := strings.ToLower(name)
		if strings.HasSuffix(small, "_proxy") || strings.HasPrefix(small, "ssl_cert_") || strings.HasPrefix(name, "LEADFERRY_") && name != "LEADFERRY_TEST_BIN" {
			os.Unsetenv(name)
		}
	}
}

// root is the project's folder.
func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// cases is the folder of files that others wrote; the test is skipped without it.
func cases(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(root(t), "..", "shared", "cases")
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("no files to try it with: %v", err)
	}
	return dir
}
