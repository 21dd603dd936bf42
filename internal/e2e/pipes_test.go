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

// readers is how often TestPipedIntoHead pipes an import into head. The long suite is
// `go test ./internal/e2e -run TestPipedIntoHead -readers 200 -timeout 10m`.
var readers = flag.Int("readers", 4, "how many times TestPipedIntoHead pipes an import into head -1")

const importAll = `"$0" import -m leads.yaml leads.csv --out run --summary -`

// An import whose streams are closed, full or without a reader still completes its rows, its folder and the checkpoint.
// If a stream was closed before the program began, the Go runtime opens /dev/null in its place, so that no other file
// gets its number. The program cannot see that, and ends with 0. faults 11, 12, 15
func TestRunIsCompleteWithoutItsStreams(t *testing.T) {
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

// whole fails the test unless a run left everything complete: the service's leads, its folder and the checkpoint.
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

// When head -1 has gone, validate ends with 3. The whole summary of an import may be in the pipe before that, so it
// ends with 0 or 3, and is complete in both cases. fault 11
func TestPipedIntoHead(t *testing.T) {
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
			out, err := w.shell(`{ ` + importAll + `; echo $? >code; } 2>messages | head -1`).Output()
			code := strings.TrimSpace(w.read("code"))
			if ends[code]++; err != nil || len(out) == 0 || code != "0" && code != "3" {
				t.Errorf("%v: exit %s and %q\n%s", err, code, out, w.read("messages"))
			}
			w.whole(rows)
		}
		t.Logf("%d rounds, by exit code %v", *readers, ends)
	})
}

// The shell that started an import is killed, and nobody reads its output any more. The
// import still goes on to its end. fault 12
func TestRunOutlivesItsParent(t *testing.T) {
	t.Parallel()
	const rows, concurrency = 40, 4
	w := newWorld(t, sandbox.Options{})
	h := w.hold(concurrency)
	w.leads(rows)
	c := w.shell(`"$0" import -m leads.yaml leads.csv --out run -c 4 3>&-; echo never reached`)
	output, err := c.StdoutPipe()
	must.Do(t, err)
	alive, held, err := os.Pipe() // ends when no process has standard error open
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
	printed, err := io.ReadAll(alive)
	if err != nil || !strings.Contains(string(printed), "standard output was closed") {
		t.Errorf("%v: the program said %s", err, printed)
	}
	w.whole(rows)
}

// The checkpoint cannot grow while answers come. The results, or lines on standard error, hold the IDs of those leads,
// and the command that the run prints settles their rows, also twice. No lead is made twice.
func TestDiskFullInMidRun(t *testing.T) {
	t.Parallel()
	for _, out := range []string{"run", "none"} {
		t.Run("--out "+out, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, sandbox.Options{Latency: 5 * time.Millisecond})
			w.leads(3000)
			c := w.shell(`ulimit -f 600; exec "$0" import -m leads.yaml leads.csv --out ` + out)
			var warned strings.Builder
			c.Stderr = &warned
			said, err := c.Output()
			if code := c.ProcessState.ExitCode(); code != 3 {
				t.Fatalf("exit %d, %v:\n%s%s", code, err, said, &warned)
			}
			header := "key,namespace,lead_id,run_id\n"
			_, lines, found := strings.Cut(warned.String(), header)
			if found != (out == "none") {
				t.Fatalf("lines on standard error: %v\n%s", found, &warned)
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
