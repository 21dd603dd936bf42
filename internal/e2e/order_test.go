package e2e

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"leadferry/leadapi/sandbox"
)

// TestResultsSortAlike: results stand in the order in which rows ended, and sorted by
// file and row they are the same in each of three imports of the same files. fault 85
func TestResultsSortAlike(t *testing.T) {
	t.Parallel()
	const repeats, rows = 3, 60
	var first []string
	ended := map[string]bool{}
	for n := range repeats {
		w := newWorld(t, sandbox.Options{Faults: "create.slow:20%:5ms,seed=" + itoa(n)})
		w.leads(rows)
		w.write("leads.csv", strings.ReplaceAll(w.read("leads.csv"), sandbox.Organizations()[2].ID, "o-unknown"))
		w.write("more.csv", strings.ReplaceAll(w.read("leads.csv"), "\nL0", "\nM0"))
		w.must(1, "import -m leads.yaml leads.csv more.csv --out none --results r.csv --max-rejects 0 -c 16 --log-level warn")
		places, lines := w.sorted("r.csv")
		ended[strings.Join(places, " ")] = true
		if n == 0 {
			first = lines
		}
		if !slices.Equal(first, lines) {
			t.Errorf("repeat %d: the sorted results differ", n)
		}
	}
	if len(ended) == 1 {
		t.Error("the rows ended in one order each time: nothing is shown")
	}
}

// sorted is a results file's places in their order, and its lines sorted by file and
// row without what the service chose.
func (w *world) sorted(name string) (places, lines []string) {
	w.t.Helper()
	results := w.results(name)
	for _, r := range results {
		places = append(places, r["file"]+" "+r["row"])
	}
	slices.SortFunc(results, func(a, b map[string]string) int {
		i, _ := strconv.Atoi(a["row"])
		j, _ := strconv.Atoi(b["row"])
		return cmp.Or(cmp.Compare(a["file"], b["file"]), cmp.Compare(i, j))
	})
	for _, r := range results {
		delete(r, "lead_id")
		lines = append(lines, fmt.Sprint(r))
	}
	return places, lines
}

// TestTwoRunsOfOneFile: a second run of a file that is being imported is refused with another checkpoint. fault 82
func TestTwoRunsOfOneFile(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sandbox.Options{})
	w.leads(1000)
	first := w.start("import -m leads.yaml leads.csv --out none --checkpoint one.db --rate 5")
	eventually(t, "the first run has begun", func() bool { return len(w.byRef()) > 0 })
	second := words("import -m leads.yaml leads.csv --out none --checkpoint two.db --limit 1")
	contains(t, w.must(4, second...), "another checkpoint is in use for this trunk")
	first.Process.Signal(os.Interrupt)
	first.Wait()
}

// TestNothingIsLeftOpen counts what a run holds open while connections break under it: at most one connection a
// request in flight, and one for tokens, and no file that stays. fault 88
func TestNothingIsLeftOpen(t *testing.T) {
	t.Parallel()
	const rows, concurrency = 600, 8
	w := newWorld(t, sandbox.Options{Latency: 2 * time.Millisecond, Faults: "create.drop:5%,create.cut-body:5%,create.500:5%,seed=3"})
	w.leads(rows)
	c := w.start("import -m leads.yaml leads.csv --out run -c", itoa(concurrency), "--max-in-doubt", "0")
	ended := make(chan struct{})
	go func() { defer close(ended); c.Wait() }()
	var files []int
	most := 0 // connections at once, as the process has them
	for running := true; running; {
		select {
		case <-ended:
			running = false
		case <-time.After(5 * time.Millisecond):
			if n, sockets := descriptors(t, c.Process); sockets > 1 {
				files, most = append(files, n), max(most, sockets)
			}
		}
	}
	if most > concurrency+1 {
		t.Errorf("%d connections at once for %d requests in flight", most, concurrency)
	}
	if n := len(files); n < 10 {
		t.Fatalf("only %d looks at the process", n)
	}
	// About ninety connections break under it: each that stays would be one of these.
	if n := slices.Max(files); n > concurrency+24 {
		t.Errorf("%d files were open at once", n)
	}
	if n := len(w.byRef()) + len(w.exported("in_doubt")); n < rows {
		t.Errorf("%d rows are made or in doubt, want %d", n, rows)
	}
}

// descriptors is how many a process has open, and how many of them are connections; none where it is gone.
func descriptors(t *testing.T, p *os.Process) (all, sockets int) {
	if _, err := os.Stat("/proc/self/fd"); err != nil {
		t.Skipf("no way to see it here: %v", err)
	}
	folder := fmt.Sprintf("/proc/%d/fd", p.Pid)
	open, _ := os.ReadDir(folder)
	for _, f := range open {
		if what, _ := os.Readlink(filepath.Join(folder, f.Name())); strings.HasPrefix(what, "socket:") {
			sockets++
		}
	}
	return len(open), sockets
}
