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

// Results are in the order in which rows ended. Sorted by file and row, they are the same
// in each of three imports of the same files. fault 85
func TestSortedResultsAreTheSameInEachRun(t *testing.T) {
	t.Parallel()
	const repeats, rows = 3, 60
	var first []string
	ended := map[string]bool{}
	for n := range repeats {
		w := newWorld(t, sandbox.Options{Faults: "create.slow:20%:5ms,seed=" + itoa(n)})
		w.leads(rows)
		w.write("leads.csv", strings.ReplaceAll(w.read("leads.csv"), organizations[2], "o-unknown"))
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
		t.Error("the rows ended in the same order each time, so this test shows nothing")
	}
}

// sorted returns file and row of each result in their order, and the results sorted by file and row, without lead IDs.
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

// While a file is imported, a second run of it with another checkpoint is refused. fault 82
func TestSecondRunWithAnotherCheckpointIsRefused(t *testing.T) {
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

// While connections break, a run has at most one connection for each request in flight and one for tokens, and closes
// the broken ones. fault 88
func TestBrokenConnectionsAreClosed(t *testing.T) {
	t.Parallel()
	const rows, concurrency = 600, 8
	w := newWorld(t, sandbox.Options{Latency: 2 * time.Millisecond, Faults: "create.drop:5%,create.cut-body:5%,create.500:5%,seed=3"})
	w.leads(rows)
	c := w.start("import -m leads.yaml leads.csv --out run -c", itoa(concurrency), "--max-in-doubt", "0")
	ended := make(chan struct{})
	go func() { defer close(ended); c.Wait() }()
	var files []int
	most := 0 // most sockets at once
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
	// About 90 connections break. Each that stayed open would count here.
	if n := slices.Max(files); n > concurrency+24 {
		t.Errorf("%d files were open at once", n)
	}
	if n := len(w.byRef()) + len(w.exported("in_doubt")); n < rows {
		t.Errorf("%d rows are made or in doubt, want %d", n, rows)
	}
}

// descriptors counts the open files of a process and its sockets; 0 if it has ended.
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
