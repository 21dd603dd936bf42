package e2e

import (
	"errors"
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"leadferry/internal/testsupport/must"
	"leadferry/leadapi/sandbox"
)

// readers is how often TestReaderGoes pipes a run into a reader that goes; the long
// suite is `go test ./internal/e2e -run TestReaderGoes -readers 200 -timeout 10m`.
var readers = flag.Int("readers", 4, "how many times TestReaderGoes pipes an import into head -1")

const importAll = `"$0" import -m leads.yaml leads.csv --out run --summary -`

// TestStreamsClosed imports with streams that are closed, full, or have nobody at their other end: whatever becomes
// of what is said, the run, its folder and the checkpoint are complete. Where a stream was closed before the program
// began, the Go runtime has put /dev/null in its place, lest a file be opened under its number; nothing tells that
// from a /dev/null that was meant. faults 11, 12, 15
func TestStreamsClosed(t *testing.T) {
	t.Parallel()
	const rows = 60
	for _, test := range []struct {
		name, script string
		code         int
	}{
		{"output closed at start", `exec ` + importAll + ` >&-`, 0},
		{"all closed at start", `exec ` + importAll + ` <&- >&- 2>&-`, 0},
		{"output full", `exec ` + importAll + ` >/dev/full`, 3},
		{"both full", `exec ` + importAll + ` >/dev/full 2>&1`, 3},
		{"nobody reads the output", `exec ` + importAll + ` >&3`, 3},
		{"nobody reads either", `exec ` + importAll + ` >&3 2>&3`, 3},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if _, err := os.Stat("/dev/full"); err != nil {
				t.Skip("no /dev/full here")
			}
			w := newWorld(t, sandbox.Options{})
			w.leads(rows)
			c := w.shell(test.script)
			reader, writer, err := os.Pipe()
			must.Do(t, err)
			reader.Close()
			defer writer.Close()
			c.ExtraFiles = []*os.File{writer}
			out, err := c.CombinedOutput()
			var exit *exec.ExitError
			if err != nil && !errors.As(err, &exit) {
				t.Fatal(err)
			}
			if code := c.ProcessState.ExitCode(); code != test.code {
				t.Errorf("exit %d, want %d\n%s", code, test.code, out)
			}
			w.whole(rows)
		})
	}
}

// whole checks that a run left everything complete: the leads on the service, the checkpoint, and the run's folder.
func (w *world) whole(rows int) {
	w.t.Helper()
	ledger := w.byRef()
	results := w.results("run/results.csv")
	if len(ledger) != rows || len(results) != rows {
		w.t.Errorf("the service holds %d leads, the results %d; want %d", len(ledger), len(results), rows)
	}
	for _, r := range results {
		if r["lead_id"] == "" || r["lead_id"] != ledger[r["key"]] {
			w.t.Errorf("row %s: results say %s, the service %s", r["key"], r["lead_id"], ledger[r["key"]])
		}
	}
	if left, err := filepath.Glob(filepath.Join(w.dir, "run", "*.partial")); err != nil || len(left) > 0 {
		w.t.Errorf("left over: %v, %v", left, err)
	}
	w.must(0, "checkpoint check")
	w.complete(rows)
}

// TestReaderGoes pipes imports and what validate shows into head -1, again and again. An import's whole summary may
// be in the pipe before its reader goes, so it ends with 0 or 3, and is complete in either case. fault 11
func TestReaderGoes(t *testing.T) {
	t.Parallel()
	const rows = 30
	t.Run("validate", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, sandbox.Options{})
		w.leads(2000) // far more than a pipe holds
		out, err := w.shell(`{ "$0" validate -m leads.yaml leads.csv --show 2000 --quiet; echo "exit $?" >&2; } 2>code | head -1`).Output()
		if code := w.read("code"); err != nil || !strings.HasPrefix(string(out), "#") || !strings.Contains(code, "standard output was closed") || !strings.HasSuffix(code, "exit 3\n") {
			t.Errorf("%v: %q, and %s", err, out, code)
		}
	})
	t.Run("import", func(t *testing.T) {
		t.Parallel()
		ends := map[string]int{}
		for range *readers {
			w := newWorld(t, sandbox.Options{})
			w.leads(rows)
			out, err := w.shell(`{ ` + importAll + `; echo $? >code; } 2>told | head -1`).Output()
			code := strings.TrimSpace(w.read("code"))
			if ends[code]++; err != nil || len(out) == 0 || code != "0" && code != "3" {
				t.Errorf("%v: exit %s and %q\n%s", err, code, out, w.read("told"))
			}
			w.whole(rows)
		}
		t.Logf("%d rounds, by exit code %v", *readers, ends)
	})
}

// TestParentDies: the shell that started the program is killed in mid-run, and whoever
// read its output is gone. The program goes on to its end by itself. fault 12
func TestParentDies(t *testing.T) {
	t.Parallel()
	const rows, concurrency = 40, 4
	w := newWorld(t, sandbox.Options{})
	h := w.hold(concurrency)
	w.leads(rows)
	c := w.shell(`"$0" import -m leads.yaml leads.csv --out run -c 4 3>&-; echo never reached`)
	output, err := c.StdoutPipe()
	must.Do(t, err)
	alive, held, err := os.Pipe() // its end: nobody has standard error any more
	must.Do(t, err)
	defer alive.Close()
	c.Stderr = held
	must.Do(t, c.Start())
	held.Close()
	h.full(t)
	must.Do(t, c.Process.Kill())
	c.Process.Wait()
	output.Close()
	close(h.let)
	told, err := io.ReadAll(alive)
	if err != nil || !strings.Contains(string(told), "standard output was closed") {
		t.Errorf("%v: the program said %s", err, told)
	}
	w.whole(rows)
}

// TestDiskFullInMidRun: the checkpoint cannot grow while answers come. What the results, or the lines on standard
// error, hold settles the leads that were made, by the commands that the run prints, twice. No lead is made twice.
func TestDiskFullInMidRun(t *testing.T) {
	t.Parallel()
	for _, out := range []string{"run", "none"} {
		t.Run("--out "+out, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, sandbox.Options{Latency: 5 * time.Millisecond})
			w.leads(3000)
			c := w.shell(`ulimit -f 600; exec "$0" import -m leads.yaml leads.csv --out ` + out)
			var told strings.Builder
			c.Stderr = &told
			said, err := c.Output()
			if code := c.ProcessState.ExitCode(); code != 3 {
				t.Fatalf("exit %d, %v:\n%s%s", code, err, said, &told)
			}
			header := "key,namespace,lead_id,run_id\n"
			_, lines, found := strings.Cut(told.String(), header)
			if found != (out == "none") {
				t.Fatalf("lines on standard error: %v\n%s", found, &told)
			}
			w.write("ids.csv", header+lines)
			command := regexp.MustCompile(`leadferry checkpoint (adopt|resolve) .*`).FindString(string(said))
			if command == "" {
				t.Fatalf("no command:\n%s", said)
			}
			before := len(w.exported("in_doubt"))
			for range 2 {
				w.must(0, strings.Fields(command)[1:]...)
			}
			if after := len(w.exported("in_doubt")); before == 0 || after >= before {
				t.Errorf("%d in doubt, then %d", before, after)
			}
			w.run("import -m leads.yaml leads.csv --out none")
			w.byRef() // none twice
		})
	}
}
