package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"leadferry/leadapi/sandbox"
)

// TestPanic makes the program itself fail at points on a row's way, in each of its
// goroutines. The run ends in order: exit 3 with a sentence, what was settled stays, no
// row in flight but the one at that place is in doubt, and nothing of a row is shown. The
// next run does the rest. fault 9
func TestPanic(t *testing.T) {
	t.Parallel()
	const planted, rows = "planted-in-a-row", 30
	for _, test := range []struct {
		point string
		nth   int
		doubt int
	}{
		{"before intent", 9, 0},       // a carrier, with nothing claimed
		{"commit intent", 3, 8},       // the ledger's writer
		{"commit outcome", 3, 8},      // the same: no answer can be kept any more
		{"read", 9, 1},                // a carrier, in the client
		{"answered", 9, 1},            // a carrier
		{"before link", 5, 0},         // the same, with a lead that stands
		{"after results line", 9, 0},  // the recorder
		{"before run is noted", 1, 0}, // what follows the last row
		{"before files are finished", 1, 0},
	} {
		t.Run(test.point, func(t *testing.T) {
			t.Parallel()
			path, err := crashing()
			if err != nil {
				t.Fatal(err)
			}
			w := newWorld(t, sandbox.Options{})
			w.leads(rows)
			w.write("leads.yaml", mappingText+linkText)
			c := w.command("import", "-m", "leads.yaml", "leads.csv", "-c", "4", "--out", "run", "--no-progress")
			c.Path = path
			c.Env = append(slices.Clone(c.Env), fmt.Sprintf("LEADFERRY_FAILPOINT=%s:%d", test.point, test.nth), "LEADFERRY_FAILPOINT_PANIC="+planted)
			var said bytes.Buffer
			c.Stdout, c.Stderr = &said, &said
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			alive := time.AfterFunc(30*time.Second, func() { _ = c.Process.Kill() }) // so that a hang is told
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
