package e2e

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"leadferry/internal/testsupport/must"
	"leadferry/leadapi/sandbox"
)

// TestKill kills imports at random moments, with 1, 8 and 64 requests in flight, up to ten times in a row. After such a
// chain it settles rows in doubt as a person would, from the service's own leads, finishes the import and compares both
// sides. Every second chain links leads, too. Invariants 1, 2 and 3; faults 1, 3, 83, 89
func TestKill(t *testing.T) {
	t.Parallel()
	for _, m := range matrix {
		t.Run("-c "+itoa(m.concurrency), func(t *testing.T) {
			t.Parallel()
			f := figures{concurrency: m.concurrency, bound: 2 * m.concurrency}
			mappings := []string{mappingText, mappingText + linkText}
			f.often(t, func(t *testing.T) { f.chain(t, rowsFor(m.each), mappings[f.chains%2], func(*world) {}) })
			f.judge(t)
		})
	}
}

// TestKillAmongMany kills imports of shuffled rows into a checkpoint that knows so many
// leads that new entries gather in its log first.
func TestKillAmongMany(t *testing.T) {
	t.Parallel()
	f := figures{concurrency: 64, bound: 128}
	f.often(t, func(t *testing.T) { f.chain(t, rowsFor(400), mappingText, (*world).amongMany) })
	f.judge(t)
}

// manyKnown begins the keys of leads that only the checkpoint knows.
const manyKnown = "elsewhere-"

func (w *world) amongMany() {
	w.t.Helper()
	var list strings.Builder
	list.WriteString("key,lead_id\n")
	for i := range 17_000 {
		fmt.Fprintf(&list, "%s%05d,lead-%05d\n", manyKnown, i, i)
	}
	w.write("known.csv", list.String())
	w.must(0, "checkpoint adopt known.csv")
	head, rows, _ := strings.Cut(w.read("leads.csv"), "\n")
	lines := strings.Split(strings.TrimSpace(rows), "\n")
	rand.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
	w.write("leads.csv", head+"\n"+strings.Join(lines, "\n"))
}

// matrix has the numbers of requests in flight at which runs are killed, and how many rows each kill
// needs: about as many as a run finishes before its kill.
var matrix = []struct{ concurrency, each int }{{1, 12}, {8, 80}, {64, 400}}

// rowsFor is how many rows a chain of kills needs.
func rowsFor(each int) int { return each * min(*kills, chained) }

// chained is how often one import or sync is killed in a row.
const chained = 10

// figures count the kills at one concurrency.
type figures struct {
	concurrency, kills, chains, longest int
	doubts, worst, bound                int // rows put in doubt by all kills, most by one, and the limit for one
}

func (f figures) String() string {
	return fmt.Sprintf("-c %d: %d kills in %d chains of up to %d in a row; rows in doubt per kill: mean %.2f, worst %d, bound %d",
		f.concurrency, f.kills, f.chains, f.longest, float64(f.doubts)/float64(max(f.kills, 1)), f.worst, f.bound)
}

// judge fails the test if a kill put more rows in doubt than it may, and logs the figures.
func (f *figures) judge(t *testing.T) {
	t.Helper()
	if f.worst > f.bound {
		t.Errorf("%d rows fell in doubt by one kill, more than %d", f.worst, f.bound)
	}
	t.Log(*f)
}

// often runs chains, each as a subtest, until there were enough kills.
func (f *figures) often(t *testing.T, chain func(*testing.T)) {
	for f.kills < *kills && t.Run("chain", chain) {
		f.chains++
	}
}

// killed notes a kill, its number in its chain, and how many rows it put in doubt.
func (f *figures) killed(inRow, doubts int) {
	f.kills++
	f.longest = max(f.longest, inRow)
	f.doubts += doubts
	f.worst = max(f.worst, doubts)
}

// linkText makes the mapping ask for an ExternalID too.
const linkText = "  external_id: \"{id}\"\n"

// chain kills one import again and again, and completes it.
func (f *figures) chain(t *testing.T, rows int, mapping string, prepare func(*world)) {
	w := newWorld(t, sandbox.Options{Latency: 5 * time.Millisecond})
	w.leads(rows)
	w.write("leads.yaml", mapping)
	prepare(w)
	doubts := 0
	for n := 1; n <= chained && f.kills < *kills && !w.killOnce(f.concurrency); n++ {
		now := len(w.exported("in_doubt"))
		f.killed(n, now-doubts)
		doubts = now
	}
	if doubts > 0 {
		if status := w.must(0, "checkpoint status"); !strings.Contains(status, "unfinished") {
			t.Errorf("killed runs are not listed:\n%s", status)
		}
	}
	w.settle()
	w.complete(rows)
	if strings.HasSuffix(mapping, linkText) {
		w.linked()
	}
}

// linked fails the test unless every lead of the service has its row's ExternalID.
func (w *world) linked() {
	w.t.Helper()
	leads := w.made()
	for _, l := range leads {
		if l.ExternalID == "" || l.ExternalID != l.Content["importRef"] {
			w.t.Errorf("the lead of row %v is linked to %q", l.Content["importRef"], l.ExternalID)
		}
	}
}

// killOnce starts the import and kills it; true means that it ended by itself.
func (w *world) killOnce(concurrency int) bool {
	w.t.Helper()
	return w.killWithin(100*time.Millisecond, "import -m leads.yaml leads.csv -c", itoa(concurrency), "--out", "none", "--max-in-doubt", "0")
}

// killWithin starts a command and kills it at a random moment; true means that it ended by itself. Half of the moments
// count from its start, the others from its first request, which a busy machine may reach late.
func (w *world) killWithin(most time.Duration, args ...string) bool {
	w.t.Helper()
	before := w.requests()
	c := w.start(args...)
	ended := make(chan struct{})
	go func() { defer close(ended); c.Wait() }()
	delay := 20*time.Millisecond + rand.N(most)
	if rand.N(2) == 0 {
		delay = rand.N(most)
		for w.requests() == before && !over(ended, time.Millisecond) {
		}
	}
	if over(ended, delay) {
		return true
	}
	err := c.Process.Kill()
	<-ended
	if err != nil && !errors.Is(err, os.ErrProcessDone) {
		w.t.Fatal(err)
	}
	return err != nil
}

// over waits for the end of a command, at most for d, and reports whether it has ended.
func over(ended <-chan struct{}, d time.Duration) bool {
	select {
	case <-ended:
		return true
	case <-time.After(d):
		return false
	}
}

// requests is how many of any kind the service has answered.
func (w *world) requests() (n int) {
	for _, answers := range w.service.Counts() {
		for _, m := range answers {
			n += m
		}
	}
	return n
}

// arrived waits until the service has answered the requests that had left before a kill. The kernel still
// delivers what was written.
func (w *world) arrived() {
	for n, same := w.requests(), 0; same < 3; time.Sleep(100 * time.Millisecond) {
		if now := w.requests(); now != n {
			n, same = now, 0
		} else {
			same++
		}
	}
}

// settle looks up every row in doubt among the service's leads, as a person does in the console, and resolves it.
func (w *world) settle() {
	w.t.Helper()
	w.arrived()
	found := w.byRef()
	doubt := w.exported("in_doubt")
	if len(doubt) == 0 {
		return
	}
	var file strings.Builder
	file.WriteString("key,lead_id,updated_at\n")
	for _, d := range doubt {
		if d["file"] == "" || d["line"] == "" || d["updated_at"] == "" || d["organization_id"] == "" {
			w.t.Errorf("a row in doubt lacks what a person needs to find it: %v", d)
		}
		file.WriteString(d["key"] + "," + cmp.Or(found[d["key"]], "none") + "," + d["updated_at"] + "\n")
	}
	w.write("found.csv", file.String())
	w.must(0, "checkpoint resolve found.csv")
}

// complete runs the import to its end and compares both sides.
func (w *world) complete(rows int) {
	w.t.Helper()
	w.must(0, "import -m leads.yaml leads.csv --out none --summary last.json --results last.csv -c 64")
	ledger := w.byRef()
	if len(ledger) != rows {
		w.t.Errorf("the service holds %d leads, want %d", len(ledger), rows)
	}
	known := slices.DeleteFunc(w.exported(""), func(k map[string]string) bool { return strings.HasPrefix(k["key"], manyKnown) })
	if len(known) != rows {
		w.t.Errorf("the checkpoint knows %d rows, want %d", len(known), rows)
	}
	for _, k := range known {
		if k["state"] != "created" || k["lead_id"] != ledger[k["key"]] {
			w.t.Errorf("row %s: checkpoint %s %s, service %s", k["key"], k["state"], k["lead_id"], ledger[k["key"]])
		}
	}
	results := w.results("last.csv")
	if len(results) != rows {
		w.t.Errorf("%d result lines, want %d", len(results), rows)
	}
	for _, r := range results {
		if r["lead_id"] != ledger[r["key"]] {
			w.t.Errorf("row %s: results say %s, the service %s", r["key"], r["lead_id"], ledger[r["key"]])
		}
	}
}

// rounds is how often each crash point is tried, and how many commands are typed in a situation. The long suite is
// `go test ./internal/e2e -run 'TestCrash|TestWhatIsPrinted' -rounds 25 -timeout 30m`.
var rounds = flag.Int("rounds", 1, "how many times the tests TestCrash... die at each point; TestWhatIsPrintedCanBeTyped types that many times as much")

// crashing builds the program with crash points, once.
var crashing = sync.OnceValues(func() (string, error) {
	path := filepath.Join(filepath.Dir(binary()), "leadferry-failing")
	out, err := exec.Command("go", "build", "-ldflags=-s -w", "-tags", "failpoints", "-o", path, "leadferry").CombinedOutput()
	if err != nil {
		err = fmt.Errorf("build the program with its crash points: %w\n%s", err, out)
	}
	return path, err
})

// dieAt imports leads.csv until it dies at the nth arrival at a point; false means that it ended by itself.
func (w *world) dieAt(point string, nth, concurrency int) bool {
	w.t.Helper()
	path, err := crashing()
	must.Do(w.t, err)
	c := w.command("import -m leads.yaml leads.csv -c", itoa(concurrency), "--out", fmt.Sprintf("run-%s-%d", point, nth), "--max-in-doubt", "0")
	c.Path = path
	c.Env = append(slices.Clone(c.Env), fmt.Sprintf("LEADFERRY_FAILPOINT=%s:%d", point, nth))
	out, err := c.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		w.t.Fatal(err)
	}
	if status := c.ProcessState.Sys().(syscall.WaitStatus); status.Signaled() {
		return true
	}
	if code := c.ProcessState.ExitCode(); code != 0 && code != 5 { // 5: rows of earlier deaths are in doubt
		w.t.Fatalf("%s:%d: exit %d instead of a death\n%s", point, nth, code, out)
	}
	return false
}

// steps are the points on the way of one row that is created and then linked, and what the checkpoint and the service
// hold of it after a crash there. Where two numbers are given, the service may or may not have read the request.
var steps = []struct {
	point  string
	nth    int
	states string // of the row in the checkpoint
	leads  string // on the service
}{
	{"write", 1, "none", "0"}, // the token request
	{"read", 1, "none", "0"},
	{"before claim", 1, "none", "0"},
	{"commit claim", 1, "none", "0"},
	{"durable claim", 1, "in_doubt", "0"},
	{"write", 2, "in_doubt", "0"},     // head and first part of the body
	{"write", 3, "in_doubt", "0"},     // in the middle of the body
	{"written", 3, "in_doubt", "0 1"}, // the whole request
	{"read", 2, "in_doubt", "1"},
	{"answered", 1, "in_doubt", "1"},
	{"commit settle", 1, "in_doubt", "1"},
	{"durable settle", 1, "partial", "1"},
	{"before link", 1, "partial", "1"},
	{"write", 4, "partial", "1"},
	{"written", 4, "partial", "1"},
	{"read", 3, "partial", "1"},
	{"link answered", 1, "partial", "1"},
	{"commit settle", 2, "partial", "1"},
	{"durable settle", 2, "created", "1"},
	{"before results line", 1, "created", "1"},
	{"after results line", 1, "created", "1"},
	{"before run is noted", 1, "created", "1"},
	{"before files are finished", 1, "created", "1"},
}

// TestCrashSteps crashes at each step of one row's way and compares checkpoint and
// service with the table. Then it finishes the import. fault 2
func TestCrashSteps(t *testing.T) {
	t.Parallel()
	for range *rounds {
		for _, step := range steps {
			t.Run(fmt.Sprintf("%s %d", step.point, step.nth), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, sandbox.Options{})
				w.write("leads.csv", "id,org,name\nL00000,"+organizations[0]+","+strings.Repeat("a long name ", 1000)+"\n")
				w.write("leads.yaml", mappingText+linkText)
				if !w.dieAt(step.point, step.nth, 1) {
					t.Fatal("the program never reached this point")
				}
				state := "none"
				if known := w.exported(""); len(known) > 0 {
					state = known[0]["state"]
				}
				leads := itoa(len(w.byRef()))
				if !slices.Contains(strings.Fields(step.states), state) || !slices.Contains(strings.Fields(step.leads), leads) {
					t.Errorf("the checkpoint says %s, the service holds %s leads; want %s and %s", state, leads, step.states, step.leads)
				}
				if state == "in_doubt" {
					w.settle()
				}
				w.complete(1)
				w.linked()
			})
		}
	}
}

// TestCrashChains crashes up to ten times in a row at random points of an import with
// eight requests in flight. No lead is lost or made twice. faults 2, 3
func TestCrashChains(t *testing.T) {
	t.Parallel()
	const rows, concurrency = 60, 8
	for range *rounds {
		w := newWorld(t, sandbox.Options{})
		w.leads(rows)
		w.write("leads.yaml", mappingText+linkText)
		doubts := 0
		for range 10 {
			step := steps[rand.N(len(steps))]
			if !w.dieAt(step.point, 1+rand.N(rows/2), concurrency) {
				break
			}
			now := len(w.exported("in_doubt"))
			if now-doubts > 2*concurrency {
				t.Errorf("%s: %d rows fell in doubt, more than 2 × %d", step.point, now-doubts, concurrency)
			}
			doubts = now
		}
		w.settle()
		w.complete(rows)
		w.linked()
	}
}
