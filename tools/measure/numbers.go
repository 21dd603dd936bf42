package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// numbers are those of docs/numbers.md, in their order, but N12: `go test ./internal/e2e -run TestKill -kills 1000` judges that.
var numbers = []number{
	{"N1", fullSize, func(l *lab) []finding { return l.besideWrk(inFlight, l.tenth(), 0.95) }},
	{"N2", fullSize, func(l *lab) []finding { return l.besideWrk(256, l.threeTenths(), 0.85) }},
	{"N3", fullSize, (*lab).besideBare},
	{"N4", fullSize, (*lab).processor},
	{"N5", fullSize, (*lab).validateCSV},
	{"N6", fullSize, (*lab).validateJSONL},
	{"N7", fullSize, func(l *lab) []finding { return l.nothingToSend("resume, %s finished rows", 3.5, "import") }},
	{"N8", fullSize, func(l *lab) []finding { return l.nothingToSend("sync, %s rows, none changed", 3.5, "sync") }},
	{"N9", fullSize, (*lab).memory},
	{"N10", fullSize, (*lab).checkpoints},
	{"N11", anySize, (*lab).requests},
	{"N13", anySize, (*lab).start},
	{"N14", anySize, (*lab).binary},
	{"N15", fullSize, (*lab).ledgerOnServer},
	{"N16", fullSize, (*lab).fleetOfFour},
	{"N17", fullSize, (*lab).resumeOnServer},
	{"N18", fullSize, (*lab).validateXLSX},
	{"N19", fullSize, (*lab).afterAKill},
	{"N20", fullSize, (*lab).page},
	{"N21", fullSize, (*lab).readAll},
	{"N22", fullSize, func(l *lab) []finding {
		return l.nothingToSend("reconcile --remote none, %s rows", 4, "reconcile", "--remote", "none")
	}},
	{"N23", onlyFull, (*lab).fromNothing},
	{"N24", onlyFull, (*lab).tests},
	{"N25", fullSize, (*lab).processorBehindAService},
}

const (
	slow     = 20 * time.Millisecond // the latency of a real service
	inFlight = 64                    // requests, in all numbers but N2
	mebibyte = 1 << 20
)

// imported imports rows into a new checkpoint and leaves nothing behind.
func (l *lab) imported(s *service, rows, workers int) trial {
	w := l.world(s)
	defer w.leave()
	return w.send(outcomes{"created": rows}, "import", workers, l.input(leadFile{to: rows}))
}

// sentBare sends the same rows by the bare client.
func (l *lab) sentBare(s *service, rows int) trial {
	return l.peer("bare", "-url", s.url, "-c", strconv.Itoa(inFlight), l.input(leadFile{to: rows}))
}

// wrk is how many requests a second wrk makes, which sends the same one again and again: no client does less work.
func (l *lab) wrk(s *service, connections int, method, path string, body []byte) float64 {
	program := must(exec.LookPath("wrk"))
	script := l.path("wrk.lua")
	check(os.WriteFile(script, fmt.Appendf(nil, `wrk.method = "%s"
wrk.headers["Content-Type"] = "application/json"
wrk.headers["Authorization"] = "Bearer fixed"
wrk.body = [[%s]]
`, method, body), 0o600))
	out := must(exec.CommandContext(l.ctx, program, "-t1", fmt.Sprintf("-c%d", connections),
		fmt.Sprintf("-d%.0fs", l.options.wrk.Seconds()), "-s", script, s.url+path).CombinedOutput())
	found := regexp.MustCompile(`Requests/sec:\s+([0-9.]+)`).FindSubmatch(out)
	if found == nil || strings.Contains(string(out), "Non-2xx") {
		check(fmt.Errorf("wrk did not measure what it should:\n%s", out))
	}
	return must(strconv.ParseFloat(string(found[1]), 64))
}

func (l *lab) wrkCreates(s *service, connections int) float64 {
	return l.wrk(s, connections, "POST", "/v1/trunk", must(someBody()))
}

// besideWrk is N1 and N2: imported rows a second as a share of the requests that wrk makes on as many connections.
func (l *lab) besideWrk(workers, rows int, target float64) []finding {
	s := l.sink(slow)
	defer s.stop()
	c := l.compare(func() (ours, theirs float64) {
		theirs = l.wrkCreates(s, workers)
		return l.imported(s, rows, workers).rate(rows), theirs
	})
	what := fmt.Sprintf("import, %d in flight, %s, %s rows", workers, slow, grouped(rows))
	return []finding{c.rates(what, target, "wrk")}
}

// pairs are imports and the same rows sent by the bare client: rows a second, and processor time.
type pairs struct{ rates, times comparison }

// besideTheBareClient imports rows, in turn with the bare client.
func (l *lab) besideTheBareClient(latency time.Duration, rows int) *pairs {
	s := l.sink(latency)
	defer s.stop()
	var p pairs
	var ours, theirs []trial
	p.rates = l.compare(func() (float64, float64) {
		theirs = append(theirs, l.sentBare(s, rows))
		ours = append(ours, l.imported(s, rows, inFlight))
		last := len(ours) - 1
		return ours[last].rate(rows), theirs[last].rate(rows)
	})
	turn := -1
	p.times = l.compare(func() (float64, float64) {
		turn++
		return ours[turn].cpu.Seconds(), theirs[turn].cpu.Seconds()
	})
	return &p
}

// flatOut is without latency, once for N3 and N4.
func (l *lab) flatOut() *pairs {
	if l.flat == nil {
		l.flat = l.besideTheBareClient(0, l.threeTenths())
	}
	return l.flat
}

// besideBare is N3.
func (l *lab) besideBare() []finding {
	what := fmt.Sprintf("import, %d in flight, no latency, %s rows", inFlight, grouped(l.threeTenths()))
	return []finding{l.flatOut().rates.rates(what, 0.6, "a bare client without checkpoint")}
}

// processor is N4: user and system time of the imports of N3.
func (l *lab) processor() []finding {
	what := fmt.Sprintf("processor time of an import, no latency, %s rows", grouped(l.threeTenths()))
	return []finding{l.flatOut().times.seconds(what, 2, "a bare client without checkpoint")}
}

// processorBehindAService is N25.
func (l *lab) processorBehindAService() []finding {
	p := l.besideTheBareClient(slow, l.tenth())
	what := fmt.Sprintf("processor time of an import, %d in flight, %s, %s rows", inFlight, slow, grouped(l.tenth()))
	return []finding{p.times.seconds(what, 1.1, "a bare client without checkpoint")}
}

// validateCSV is N5.
func (l *lab) validateCSV() []finding {
	f := leadFile{to: l.rows}
	two := l.compare(func() (float64, float64) {
		return l.validated(1, f).wall.Seconds(), l.validated(2, f).wall.Seconds()
	})
	const target = 1.6
	return []finding{l.besideReader(f, "readcsv", "a bare encoding/csv loop", 0.45), {
		fmt.Sprintf("validate, CSV, GOMAXPROCS=2, %s rows", grouped(f.to)), fmt.Sprintf("≥ %.1f × GOMAXPROCS=1", target),
		fmt.Sprintf("%.2f", two.ratio), verdict(two.ratio >= target),
	}}
}

// validateJSONL is N6.
func (l *lab) validateJSONL() []finding {
	return []finding{l.besideReader(leadFile{to: l.rows, format: "jsonl"}, "readjsonl", "a bare jsontext token loop", 0.9)}
}

// validateXLSX is N18.
func (l *lab) validateXLSX() []finding {
	f := leadFile{to: l.tenth(), format: "xlsx"}
	return []finding{
		l.besideReader(f, "readxlsx", "a bare excelize Rows loop", 1.2),
		atMost(fmt.Sprintf("memory, validate, XLSX, %s rows", grouped(f.to)), 64+16*int64(f.to)/mebibyte, l.validated(0, f).peak),
	}
}

func (l *lab) besideReader(f leadFile, reader, name string, target float64) finding {
	c := l.compare(func() (float64, float64) {
		bare := l.peer(reader, l.input(f))
		if rows := strings.TrimSpace(string(bare.out)); rows != strconv.Itoa(f.to) {
			check(fmt.Errorf("%s read %s rows of %d", reader, rows, f.to))
		}
		return l.validated(0, f).rate(f.to), bare.rate(f.to)
	})
	kind := strings.ToUpper(strings.TrimPrefix(reader, "read"))
	return c.rates(fmt.Sprintf("validate, %s, ten fields, %s rows", kind, grouped(f.to)), target, name)
}

// validated validates a file with as many processors, 0 for all.
func (l *lab) validated(processors int, f leadFile, more ...string) trial {
	w := l.world(nil)
	defer w.leave()
	w.processors = processors
	args := append([]string{"validate", "-m", l.path("plain.yaml")}, more...)
	return w.run(outcomes{"pending": f.to}, append(args, l.input(f))...)
}

// nothingToSend is N7, N8 and N22: a command over rows that are done, beside validate.
func (l *lab) nothingToSend(what string, target float64, command string, more ...string) []finding {
	known := l.fill(l.rows, false)
	before := known.service.stats()
	c := l.compare(func() (float64, float64) {
		v := l.validated(0, known.file)
		return known.again(command, more...).wall.Seconds(), v.wall.Seconds()
	})
	after := known.service.stats()
	f := c.seconds(fmt.Sprintf(what, grouped(l.rows)), target, "validate, 0 requests")
	sent := after.Creates + after.Updates - before.Creates - before.Updates
	f.measured += fmt.Sprintf(", %d requests", sent)
	f.held = verdict(c.ratio <= target && sent == 0)
	return []finding{f}
}

// filled is a checkpoint that knows the rows of a file, and how its import went.
type filled struct {
	*world
	file     leadFile
	imported trial
}

// fill imports rows without latency. What it makes stays for other numbers.
func (l *lab) fill(rows int, random bool) *filled {
	name := fmt.Sprint(rows, random)
	if l.fills[name] == nil {
		l.say("%s importing %s rows for what follows", time.Now().Format(time.TimeOnly), grouped(rows))
		f := &filled{world: l.world(l.sink(0)), file: leadFile{to: rows, random: random}}
		f.imported = f.send(outcomes{"created": rows}, "import", inFlight, l.input(f.file))
		l.fills[name] = f
	}
	return l.fills[name]
}

// again runs a command over the rows of a filled checkpoint.
func (f *filled) again(command string, more ...string) trial {
	return f.send(outcomes{"unchanged": f.file.to}, command, inFlight, append(more, f.lab.input(f.file))...)
}

// added is the rate at which rows that follow those of a checkpoint are imported into it.
func (f *filled) added(turn int) float64 {
	rows := f.lab.tenth()
	next := f.file
	next.from = f.file.to + turn*rows
	next.to = next.from + rows
	path := f.lab.input(next)
	defer os.Remove(path)
	return f.send(outcomes{"created": rows}, "import", inFlight, path).rate(rows)
}

// opening is how long it takes to open the checkpoint.
func (f *filled) opening() float64 {
	t := f.send(outcomes{"unchanged": 1}, "import", inFlight, "--limit", "1", f.lab.input(f.file))
	if t.opened == 0 {
		check(fmt.Errorf("import does not say that it has opened its checkpoint"))
	}
	return t.opened.Seconds()
}

// atMost is a finding of memory.
func atMost(what string, limit, peak int64) finding {
	if peak == 0 {
		return finding{what: what, measured: "left out: this system does not show it", held: unknown}
	}
	return finding{
		what, fmt.Sprintf("≤ %d MiB", limit), fmt.Sprintf("%d MiB", peak/mebibyte), verdict(peak <= limit*mebibyte),
	}
}

// memory is N9: the most anonymous memory of each command, for few rows and for many.
func (l *lab) memory() (found []finding) {
	const sends = 64 + 2*inFlight // MiB; a request in flight has two slots
	for _, rows := range []int{l.tenth(), l.most()} {
		known, all := l.fill(rows, false), leadFile{to: rows}
		repeats := 64 + 16*int64(rows)/mebibyte // validate keeps 16 bytes a row to find repeated keys
		reconciles := sends + 8*int64(rows)/mebibyte
		of := func(command string) string { return fmt.Sprintf("memory, %s, %s rows", command, grouped(rows)) }
		found = append(
			found,
			atMost(of("import"), sends, known.imported.peak),
			atMost(of("sync"), sends, known.again("sync").peak),
			atMost(of("reconcile --remote none"), reconciles, known.again("reconcile", "--remote", "none").peak),
			atMost(of("validate"), repeats, l.validated(0, all).peak),
		)
	}
	return found
}

// checkpoints is N10.
func (l *lab) checkpoints() []finding {
	small, big := l.fill(l.tenth(), false), l.fill(l.most(), false)
	perRow := float64(must(os.Stat(big.checkpoint)).Size()) / float64(l.most())
	var openings, unordered []float64
	for range l.runs {
		openings = append(openings, big.opening())
	}
	turn := -1
	growth := l.compare(func() (float64, float64) {
		turn++
		base := small.added(turn)
		return big.added(turn), base
	})
	mixed := l.fill(l.most(), true)
	for turn := range l.runs {
		unordered = append(unordered, mixed.added(turn))
	}
	into := fmt.Sprintf("import into a checkpoint of %s rows, keys ", grouped(l.most()))
	opened, rate := median(openings), median(unordered)
	return []finding{
		{"checkpoint, bytes a row", "≤ 512", fmt.Sprintf("%.0f", perRow), verdict(perRow <= 512)},
		{
			fmt.Sprintf("checkpoint, opening at %s rows after a clean end", grouped(l.most())), "≤ 1 s",
			fmt.Sprintf("%.2f s", opened), verdict(opened <= 1),
		},
		growth.rates(into+"in order", 0.5, "that into one of "+grouped(l.tenth())),
		{into + "random", "≥ 10,000 rows/s", grouped(rate) + " rows/s", verdict(rate >= 10_000)},
	}
}

// linked is a command with the mapping that links every lead.
func (w *world) linked(want outcomes, command, path string) trial {
	return w.run(want, command, "-c", strconv.Itoa(inFlight), "-m", w.lab.path("linked.yaml"), path)
}

// requests is N11, taken from a linked import, which makes the most requests.
func (l *lab) requests() []finding {
	rows := l.tenth()
	s := l.sink(0)
	defer s.stop()
	w := l.world(s)
	defer w.leave()
	w.linked(outcomes{"created": rows}, "import", l.input(leadFile{to: rows}))
	seen := s.stats()
	creates, updates := float64(seen.Creates)/float64(rows), float64(seen.Updates)/float64(rows)
	return []finding{
		{"creates a created lead", "1.00", fmt.Sprintf("%.2f", creates), verdict(creates == 1)},
		{"updates a linked lead", "≤ 1.00", fmt.Sprintf("%.2f", updates), verdict(updates <= 1)},
		{"token requests a token life", "1", fmt.Sprint(seen.Tokens), verdict(seen.Tokens == 1)},
		{
			fmt.Sprintf("connections at once, %d in flight", inFlight), fmt.Sprintf("≤ %d", inFlight),
			fmt.Sprint(seen.Most), verdict(seen.Most <= inFlight),
		},
	}
}

// start is N13, in a world in which nothing has happened yet.
func (l *lab) start() []finding {
	samples := filepath.Join(l.root, "samples") // the sandbox knows their organizations
	var versions, imports []float64
	for range max(5, l.runs) {
		w := l.world(nil)
		versions = append(versions, must(perform(w.command("--version"))).wall.Seconds())
		imports = append(imports, w.run(outcomes{"created": 1}, "import", "--sandbox", "--limit", "1",
			"-m", filepath.Join(samples, "leads.yaml"), filepath.Join(samples, "leads.csv")).wall.Seconds())
		w.leave()
	}
	version, one := median(versions), median(imports)
	return []finding{
		{"`leadferry --version`", "≤ 12 ms", fmt.Sprintf("%.1f ms", 1000*version), verdict(version <= 0.012)},
		{"import of 1 row against the sandbox", "≤ 0.5 s", fmt.Sprintf("%.2f s", one), verdict(one <= 0.5)},
	}
}

// binary is N14.
func (l *lab) binary() []finding {
	size := float64(must(os.Stat(l.program)).Size()) / 1e6
	return []finding{{"the program, stripped", "≤ 27 MB", fmt.Sprintf("%.1f MB", size), verdict(size <= 27)}}
}

// afterAKill is N19: opening a checkpoint whose import was killed, and adopting leads.
func (l *lab) afterAKill() []finding {
	big := l.fill(l.rows, false)
	next := leadFile{from: 100 * l.rows, to: 100*l.rows + l.tenth()}
	killed := big.command("import", "-m", l.path("plain.yaml"), "--out", big.out(), l.input(next))
	killed.Stderr = &listener{then: func() { _ = killed.Process.Kill() }}
	_ = killed.Run() // it was killed
	took, limit := big.opening(), float64(l.rows)/1e6
	few, many := l.adopted(l.tenth()), l.adopted(l.rows)
	each := float64(many-few) / float64(l.rows-l.tenth())
	return []finding{
		{
			fmt.Sprintf("opening after a kill -9 at %s entries", grouped(l.rows)),
			fmt.Sprintf("≤ %.1f s (4 s for 4,000,000)", limit), fmt.Sprintf("%.1f s", took), verdict(took <= limit),
		},
		{"memory of adopt", "≤ 350 bytes a lead", fmt.Sprintf("%.0f bytes a lead", each), verdict(each <= 350)},
	}
}

// adopted is the memory of adopting leads from a list.
func (l *lab) adopted(leads int) int64 {
	w := l.world(&service{url: "http://127.0.0.1:1"})
	defer w.leave()
	path := filepath.Join(w.dir, "leads.csv")
	list := must(os.Create(path))
	defer list.Close()
	must(io.WriteString(list, "key,lead_id\n"))
	for i := range leads {
		must(fmt.Fprintf(list, "C-%09d,3d0f8a52-7c41-4e19-8b06-%012x\n", i, i))
	}
	return must(perform(w.command("checkpoint", "adopt", path))).peak
}

// page is N20. How long its figures take to gather is measured by the benchmarks of importer/report.
func (l *lab) page() []finding {
	known := l.fill(l.rows, false)
	known.again("import")
	size := float64(must(os.Stat(filepath.Join(known.out(), "report.html"))).Size()) / 1e3
	return []finding{{
		fmt.Sprintf("report.html of %s rows", grouped(l.rows)), "≤ 150 KB",
		fmt.Sprintf("%.0f KB", size), verdict(size <= 150),
	}}
}

// readAll is N21: leads that a reconciliation reads a second, beside the updates that wrk makes on as many connections.
// Neither side has changed anything. The first lead of a run is read twice: one request more, whatever the rows.
func (l *lab) readAll() []finding {
	rows := l.tenth()
	s := l.sink(slow, "-keep")
	defer s.stop()
	w := l.world(s)
	defer w.leave()
	path := l.input(leadFile{to: rows})
	w.linked(outcomes{"created": rows}, "import", path)
	var each []float64
	c := l.compare(func() (float64, float64) {
		limit := l.wrk(s, inFlight, "PATCH", "/v3/lead/"+someLead, []byte(`{"ExternalID":"C-000000001"}`))
		before := s.stats()
		t := w.linked(outcomes{"unchanged": rows}, "reconcile", path)
		after := s.stats()
		each = append(each, float64(after.Updates+after.Creates-before.Updates-before.Creates-1)/float64(rows))
		return t.rate(rows), limit
	})
	what := fmt.Sprintf("reconcile, %d in flight, %s, %s known leads", inFlight, slow, grouped(rows))
	f := c.rates(what, 0.95, "wrk's updates, 1 request a lead")
	f.measured += fmt.Sprintf(", %.2f requests a lead", median(each))
	if median(each) != 1 {
		f.held = fails
	}
	return []finding{f}
}

// fromNothing is N23: the first command of the README with empty caches of Go.
func (l *lab) fromNothing() []finding {
	w := l.world(nil)
	defer w.leave()
	readme := string(must(os.ReadFile(filepath.Join(l.root, "README.md"))))
	line := regexp.MustCompile(`(?m)^    (go run .*)$`).FindStringSubmatch(readme)
	words := strings.Fields(line[1])
	cmd := exec.CommandContext(l.ctx, words[0], append(words[1:], "--out", w.out())...)
	cmd.Dir = l.root
	cmd.Env = append(w.command("").Env, "GOCACHE="+w.dir+"/cache", "GOMODCACHE="+w.dir+"/modules", "GOFLAGS=-modcacherw")
	t := must(perform(cmd))
	return []finding{{
		"README's first command, empty caches", "≤ 85 s of processor time",
		fmt.Sprintf("%.0f s (%.0f s from start to end)", t.cpu.Seconds(), t.wall.Seconds()), verdict(t.cpu <= 85*time.Second),
	}}
}

// tests is N24; how long .ci/run takes, its last line says.
func (l *lab) tests() []finding {
	cmd := exec.CommandContext(l.ctx, "go", "test", "-count=1", "./...")
	cmd.Dir = l.root
	took := must(perform(cmd)).wall
	return []finding{{"`go test ./...`", "≤ 120 s", fmt.Sprintf("%.0f s", took.Seconds()), verdict(took <= 2*time.Minute)}}
}
