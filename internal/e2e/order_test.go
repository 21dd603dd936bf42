package e2e

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"leadferry/internal/testsupport/must"
	"leadferry/leadapi/sandbox"
)

// TestResultsSortAlike: results stand in the order in which rows ended, and sorted by
// file and row they are the same in each of six imports of the same files. fault 85
func TestResultsSortAlike(t *testing.T) {
	t.Parallel()
	const repeats, rows = 6, 60
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

// TestResumeWithOtherSettings: a run that was killed goes on with other settings, and
// the same file the day after sends nothing. faults 83, 89
func TestResumeWithOtherSettings(t *testing.T) {
	t.Parallel()
	const rows = 600
	w := newWorld(t, sandbox.Options{Latency: 5 * time.Millisecond})
	w.leads(rows)
	for _, settings := range [][]string{{"-c", "2"}, {"-c", "32", "--rate", "300"}, {"-c", "1"}, {"-c", "8", "--rate", "100", "--retries", "0"}} {
		args := words("import -m leads.yaml leads.csv --out none --max-in-doubt 0")
		if w.killWithin(200*time.Millisecond, append(args, settings...)...) {
			t.Fatalf("%v: the run ended before it was killed", settings)
		}
	}
	w.settle()
	w.complete(rows)
	w.must(0, "import -m leads.yaml leads.csv --out none --summary s.json -c 3 --rate 50")
	if s := w.summary("s.json"); s.Rows.Unchanged != rows || s.Requests.Create+s.Requests.Update != 0 {
		t.Errorf("the day after: %+v, %+v", s.Rows, s.Requests)
	}
}

// TestTwoRunsOfOneFile: a run warns of another one that reads the same file at this moment. fault 82
func TestTwoRunsOfOneFile(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sandbox.Options{})
	w.leads(1000)
	first := w.start("import -m leads.yaml leads.csv --out none --checkpoint one.db --rate 5")
	eventually(t, "the first run has begun", func() bool { return len(w.byRef()) > 0 })
	const warning = "leads.csv: another run is reading this file"
	second := words("import -m leads.yaml leads.csv --out none --checkpoint two.db --limit 1")
	contains(t, w.must(4, second...), warning, "another checkpoint is in use for this trunk")
	first.Process.Signal(os.Interrupt)
	first.Wait()
	if out := w.must(4, second...); strings.Contains(out, warning) {
		t.Errorf("a warning of a run that has ended:\n%s", out)
	}
}

// TestRepeatedKeys: rows of one key are judged one after another, whatever is in flight:
// the first makes the lead, those alike are unchanged, others changed. fault 84
func TestRepeatedKeys(t *testing.T) {
	t.Parallel()
	const keys, times = 20, 6
	w := newWorld(t, sandbox.Options{Faults: "create.slow:30%:10ms"})
	w.leads(1)
	var b strings.Builder
	b.WriteString("id,org,name\n")
	for i := range keys * times {
		fmt.Fprintf(&b, "K%d,%s,Person %d of %d\n", i%keys, sandbox.Organizations()[0].ID, i%keys, i/keys/(times/2))
	}
	w.write("leads.csv", b.String())
	w.must(1, "import -m leads.yaml leads.csv --out none -c 16 --results r.csv --summary s.json")
	if n := len(w.byRef()); n != keys {
		t.Errorf("%d leads, want %d", n, keys)
	}
	s := w.summary("s.json")
	if s.Requests.Create != keys || s.Rows.Created != keys || s.Rows.Unchanged != keys*(times/2-1) || s.Rows.Changed != keys*times/2 {
		t.Errorf("%+v, %+v", s.Rows, s.Requests)
	}
	for _, r := range w.results("r.csv") {
		row, _ := strconv.Atoi(r["row"])
		want := "changed"
		switch {
		case row <= keys:
			want = "created"
		case row <= keys*times/2:
			want = "unchanged"
		}
		if r["outcome"] != want {
			t.Errorf("row %d is %s, want %s", row, r["outcome"], want)
		}
	}
}

// TestNothingIsLeftOpen counts what a run holds open while connections break under it: at most one connection a
// request in flight, and one for tokens, and no file that stays. fault 88
func TestNothingIsLeftOpen(t *testing.T) {
	t.Parallel()
	const rows, concurrency = 1200, 8
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
	// More than a hundred connections break under it: each that stays would be one of these.
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

// TestOneSlowRow: a row whose answer does not come holds up nobody but its own key, and
// costs no memory; its line comes last. faults 85, 87
func TestOneSlowRow(t *testing.T) {
	t.Parallel()
	const rows = 1500
	w := newWorld(t, sandbox.Options{})
	h := w.hold(1)
	w.leads(rows)
	c := w.start("import -m leads.yaml leads.csv --out none -c 4 --results r.csv")
	eventually(t, "all leads are made, that of the held answer too", func() bool { return w.creates() == rows })
	if kb := anonymous(t, c.Process); kb > (64+2*4)<<10 {
		t.Errorf("%d KiB in use while one row waits", kb)
	}
	if err := c.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("the run has ended without its slow row: %v", err)
	}
	close(h.let)
	must.Do(t, c.Wait())
	// Rows whose lead was made, but not recorded yet, may come behind it: as many as have slots.
	results := w.results("r.csv")
	slow := slices.ContainsFunc(results[len(results)-2*4:], func(r map[string]string) bool {
		row, _ := strconv.Atoi(r["row"])
		return row <= 2*4
	})
	if len(results) != rows || !slow {
		t.Errorf("%d results; none of the first rows stands among the last, as the slow one must", len(results))
	}
	w.complete(rows)
}

// anonymous is the memory of a process that is not a mapped file, in KiB.
func anonymous(t *testing.T, p *os.Process) (kb int) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("/proc", itoa(p.Pid), "status"))
	if err != nil {
		t.Skipf("no way to see it here: %v", err)
	}
	_, text, _ := strings.Cut(string(b), "RssAnon:")
	if _, err := fmt.Sscan(text, &kb); err != nil {
		t.Fatal(err)
	}
	return kb
}
