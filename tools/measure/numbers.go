package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"leadferry/tools/must"
)

// numbers are in the order of docs/numbers.md. N12 is `go test ./internal/e2e -run TestKill -kills 1000 -timeout 60m`.
var numbers = []number{
	{"N1", false, func(l *lab) { l.besideWrk("file", inFlight, l.rows/10, 0.95) }},
	{"N2", false, func(l *lab) { l.besideWrk("file", 256, 3*l.rows/10, 0.85) }},
	{"N3", false, func(l *lab) { l.beside(bareClient, 0, 3*l.rows/10, 0.6, 0) }},
	{"N3", true, func(l *lab) { l.beside(benthos, 0, 3*l.rows/10, 1.5, 0) }},
	{"N4", false, func(l *lab) { l.beside(bareClient, 0, 3*l.rows/10, 0, 2) }},
	{"N4", true, func(l *lab) { l.beside(benthos, 0, 3*l.rows/10, 0, 0.5) }},
	{"N5", false, func(l *lab) { l.besideReader("csv", l.rows, 0.45, "a bare encoding/csv loop") }},
	{"N5", false, func(l *lab) {
		f := leadFile{to: l.rows}
		rate := func(processors int) float64 { return l.validated(processors, f).rate(l.rows) }
		c := l.compare(func() (float64, float64) { return rate(2), rate(1) })
		l.rates("validate, CSV, GOMAXPROCS=2, "+grouped(l.rows)+" rows", 1.6, "GOMAXPROCS=1", c)
	}},
	{"N6", false, func(l *lab) { l.besideReader("jsonl", l.rows, 0.9, "a bare jsontext token loop") }},
	{"N7", false, func(l *lab) { l.nothingToSend("resume, %s finished rows", 3.5, "import") }},
	{"N8", false, func(l *lab) { l.nothingToSend("sync, %s rows, none changed", 3.5, "sync") }},
	{"N9", false, func(l *lab) { l.memory(l.rows / 10) }},
	{"N9", false, func(l *lab) { l.memory(l.most()) }},
	{"N10", false, (*lab).checkpoints},
	{"N11", false, (*lab).requests},
	{"N13", false, (*lab).start},
	{"N14", false, func(l *lab) {
		l.atMost("the program, stripped", "MB", 27, float64(must.Get(os.Stat(l.program)).Size())/1e6)
	}},
	{"N15", false, func(l *lab) { l.besideWrk("PostgreSQL", inFlight, l.rows/10, 0.95) }},
	{"N15", false, (*lab).besideTheFile},
	{"N16", false, (*lab).fleetOfFour},
	{"N17", false, (*lab).onServer},
	{"N18", false, func(l *lab) {
		l.besideReader("xlsx", l.rows/10, 1.2, "a bare excelize Rows loop")
		f := leadFile{to: l.rows / 10, format: "xlsx"}
		l.peak("validate, XLSX", f.to, 64+16*f.to/mebibyte, l.validated(0, f))
	}},
	{"N19", false, (*lab).afterAKill},
	{"N20", false, func(l *lab) {
		known := l.fill(l.rows, false)
		known.again("import")
		size := float64(must.Get(os.Stat(filepath.Join(known.out(), "report.html"))).Size()) / 1e3
		l.atMost("report.html of "+grouped(l.rows)+" rows", "KB", 150, size)
	}},
	{"N21", false, (*lab).readAll},
	{"N22", false, func(l *lab) {
		l.nothingToSend("reconcile --remote none, %s rows", 4, "reconcile", "--remote", "none")
	}},
	{"N23", true, (*lab).fromNothing},
	{"N24", true, func(l *lab) { // the whole check is .ci/run: its last line has its time
		cmd := exec.CommandContext(l.ctx, "go", "test", "-count=1", "./...")
		cmd.Dir = l.root
		l.atMost("`go test ./...`", "s", 120, must.Get(perform(cmd)).wall.Seconds())
	}},
	{"N25", false, func(l *lab) { l.beside(bareClient, slow, l.rows/10, 0, 1.1) }},
}

const (
	slow     = 20 * time.Millisecond // the latency of a real service
	inFlight = 64                    // requests, in all numbers except N2
	mebibyte = 1 << 20
)

// imported imports rows into a new checkpoint: a file, which it removes, or a database, which stays on its server.
func (l *lab) imported(s *service, ledger string, rows, workers int) trial {
	w := l.world(s)
	defer w.leave()
	if ledger != "file" {
		w.checkpoint = l.postgres().database(l.ctx)
	}
	return w.send(outcomes{"created": rows}, "import", workers, l.input(leadFile{to: rows}))
}

// wrk returns how many requests a second wrk sends. They are all the same: no client does less work for each.
func (l *lab) wrk(s *service, connections int, method, path string, body []byte) float64 {
	script := l.path("wrk.lua")
	must.Do(os.WriteFile(script, fmt.Appendf(nil, `wrk.method = "%s"
wrk.headers["Content-Type"] = "application/json"
wrk.headers["Authorization"] = "Bearer fixed"
wrk.body = [[%s]]
`, method, body), 0o600))
	out, err := exec.CommandContext(l.ctx, "wrk", "-t1", fmt.Sprintf("-c%d", connections),
		fmt.Sprintf("-d%ds", max(1, 10*l.rows/fullRows)), "-s", script, s.url+path).CombinedOutput()
	must.Do(err)
	found := regexp.MustCompile(`Requests/sec:\s+([0-9.]+)`).FindSubmatch(out)
	if found == nil || bytes.Contains(out, []byte("Non-2xx")) {
		must.Do(fmt.Errorf("wrk did not measure what it should:\n%s", out))
	}
	return must.Get(strconv.ParseFloat(string(found[1]), 64))
}

// besideWrk compares the rows a second of an import with the requests a second of wrk on as many connections.
func (l *lab) besideWrk(ledger string, workers, rows int, target float64) {
	s := l.sink(slow)
	defer s.stop()
	c := l.compare(func() (ours, theirs float64) {
		theirs = l.wrk(s, workers, "POST", "/v1/trunk", must.Get(someBody()))
		return l.imported(s, ledger, rows, workers).rate(rows), theirs
	})
	l.rates(fmt.Sprintf("import into a %s, %d in flight, %s, %s rows", ledger, workers, slow, grouped(rows)), target,
		"wrk", c)
}

// rival is a program that sends the rows of a file to a service, and keeps no checkpoint.
type rival struct {
	name string
	send func(l *lab, s *service, file string) trial
}

var (
	bareClient = rival{"a bare client without checkpoint", func(l *lab, s *service, file string) trial {
		return l.peer("bare", "-url", s.url, "-c", strconv.Itoa(inFlight), file)
	}}
	benthos = rival{"the engine of Redpanda Connect", func(l *lab, s *service, file string) trial {
		dir, program := filepath.Join(l.root, "tools", "measure", "benthos"), l.path("benthos")
		must.Get(perform(exec.CommandContext(l.ctx, "go", "build", "-C", dir, "-o", program, "tool")))
		cmd := exec.CommandContext(l.ctx, program, "run", filepath.Join(dir, "import.yaml"))
		cmd.Env = append(cmd.Environ(), "FILE="+file, "URL="+s.url)
		return must.Get(perform(cmd))
	}}
)

// beside compares an import with a rival: with a limit their user and system time, otherwise their rates.
func (l *lab) beside(r rival, latency time.Duration, rows int, target, limit float64) {
	s := l.sink(latency)
	defer s.stop()
	c := l.compare(func() (float64, float64) {
		theirs := r.send(l, s, l.input(leadFile{to: rows}))
		ours := l.imported(s, "file", rows, inFlight)
		if limit > 0 {
			return ours.cpu.Seconds(), theirs.cpu.Seconds()
		}
		return ours.rate(rows), theirs.rate(rows)
	})
	what := fmt.Sprintf("import, %d in flight, latency %s, %s rows", inFlight, latency, grouped(rows))
	if limit > 0 {
		l.seconds("processor time of an "+what, limit, r.name, c)
	} else {
		l.rates(what, target, r.name, c)
	}
}

// besideReader compares validating a file with a bare loop over it.
func (l *lab) besideReader(format string, rows int, target float64, name string) {
	f := leadFile{to: rows, format: format}
	c := l.compare(func() (float64, float64) {
		bare := l.peer("read"+format, l.input(f))
		if read := strings.TrimSpace(string(bare.out)); read != strconv.Itoa(rows) {
			must.Do(fmt.Errorf("%s read %s rows of %d", name, read, rows))
		}
		return l.validated(0, f).rate(rows), bare.rate(rows)
	})
	l.rates(fmt.Sprintf("validate, %s, ten fields, %s rows", strings.ToUpper(format), grouped(rows)), target, name, c)
}

// validated validates a file with this many processors, 0 for all. It writes no files, as people check.
func (l *lab) validated(processors int, f leadFile) trial {
	w := l.world(nil)
	defer w.leave()
	w.processors = processors
	t := must.Get(perform(w.command("validate", "-m", l.path("plain.yaml"), l.input(f))))
	if !bytes.Contains(t.out, []byte(grouped(f.to)+"  pending ")) {
		must.Do(fmt.Errorf("validate ended otherwise:\n%s", t.out))
	}
	return t
}

// nothingToSend compares a command over finished rows with validate.
func (l *lab) nothingToSend(what string, target float64, command string, more ...string) {
	known := l.fill(l.rows, false)
	before := known.service.stats()
	what = fmt.Sprintf(what, grouped(l.rows))
	l.seconds(what, target, "validate", known.besideValidate(command, more...))
	after := known.service.stats()
	l.atMost(what, "requests", 0, float64(after.Creates+after.Updates-before.Creates-before.Updates))
}

// filled is a checkpoint that knows the rows of a file, and the trial of its import.
type filled struct {
	*world
	file     leadFile
	imported trial
}

// fill imports rows without latency. Numbers that need the same rows share the checkpoint.
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

// again runs a command over the rows that the checkpoint knows.
func (f *filled) again(command string, more ...string) trial {
	return f.send(outcomes{"unchanged": f.file.to}, command, inFlight, append(more, f.lab.input(f.file))...)
}

func (f *filled) besideValidate(command string, more ...string) comparison {
	return f.lab.compare(func() (float64, float64) {
		v := f.lab.validated(0, f.file)
		return f.again(command, more...).wall.Seconds(), v.wall.Seconds()
	})
}

// added imports rows that come after those of the checkpoint, and returns the rate.
func (f *filled) added(turn int) float64 {
	rows := f.lab.rows / 10
	next := f.file
	next.from = f.file.to + turn*rows
	next.to = next.from + rows
	path := f.lab.input(next)
	defer os.Remove(path)
	return f.send(outcomes{"created": rows}, "import", inFlight, path).rate(rows)
}

// opening returns how long the program takes to start, open the checkpoint and end.
func (f *filled) opening() float64 {
	t := f.send(outcomes{"unchanged": 1}, "import", inFlight, "--limit", "1", f.lab.input(f.file))
	return t.wall.Seconds()
}

// memory measures N9: the most anonymous memory of each command.
func (l *lab) memory(rows int) {
	const sends = 64 + 2*inFlight // MiB; each request in flight has two slots
	known := l.fill(rows, false)
	l.peak("import", rows, sends, known.imported)
	l.peak("sync", rows, sends, known.again("sync"))
	l.peak("reconcile --remote none", rows, sends+8*rows/mebibyte, known.again("reconcile", "--remote", "none"))
	l.peak("validate", rows, 64+16*rows/mebibyte, l.validated(0, known.file)) // 16 bytes a row to find repeated keys
}

// checkpoints measures N10.
func (l *lab) checkpoints() {
	small, big, mixed := l.fill(l.rows/10, false), l.fill(l.most(), false), l.fill(l.most(), true)
	size := must.Get(os.Stat(big.checkpoint)).Size()
	var openings, unordered []float64
	for turn := range l.runs {
		openings = append(openings, big.opening())
		unordered = append(unordered, mixed.added(turn))
	}
	turn := -1
	growth := l.compare(func() (float64, float64) {
		turn++
		base := small.added(turn)
		return big.added(turn), base
	})
	l.atMost("checkpoint, each row", "bytes", 512, float64(size)/float64(l.most()))
	l.atMost("checkpoint, opening at "+grouped(l.most())+" rows after a clean end", "s", 1, median(openings))
	into := fmt.Sprintf("import into a checkpoint of %s rows, keys ", grouped(l.most()))
	l.rates(into+"in order", 0.5, "that into one of "+grouped(l.rows/10), growth)
	rate := median(unordered)
	l.judge(into+"random", "≥ 10,000 rows/s", grouped(rate)+" rows/s", rate >= 10_000)
}

// linked runs a command with the mapping that links every lead.
func (w *world) linked(want outcomes, command, path string) trial {
	return w.run(want, command, "-c", strconv.Itoa(inFlight), "-m", w.lab.path("linked.yaml"), path)
}

// requests measures N11 in a linked import, which sends the most requests.
func (l *lab) requests() {
	rows := l.rows / 10
	s := l.sink(0)
	defer s.stop()
	w := l.world(s)
	defer w.leave()
	w.linked(outcomes{"created": rows}, "import", l.input(leadFile{to: rows}))
	seen := s.stats()
	l.atMost("a created lead", "creates", 1, float64(seen.Creates)/float64(rows))
	l.atMost("a linked lead", "updates", 1, float64(seen.Updates)/float64(rows))
	l.atMost("a token life", "token requests", 1, float64(seen.Tokens))
	l.atMost(fmt.Sprintf("at once, %d in flight", inFlight), "connections", inFlight, float64(seen.Most))
}

// start measures N13, in a new world.
func (l *lab) start() {
	samples := filepath.Join(l.root, "samples") // the sandbox knows their organizations
	var versions, imports []float64
	for range max(5, l.runs) {
		w := l.world(nil)
		versions = append(versions, 1000*must.Get(perform(w.command("--version"))).wall.Seconds())
		imports = append(imports, w.run(outcomes{"created": 1}, "import", "--sandbox", "--limit", "1",
			"-m", filepath.Join(samples, "leads.yaml"), filepath.Join(samples, "leads.csv")).wall.Seconds())
		w.leave()
	}
	l.atMost("`leadferry --version`", "ms", 12, median(versions))
	l.atMost("import of 1 row against the sandbox", "s", 0.5, median(imports))
}

// afterAKill measures N19: opening a checkpoint whose import was killed, and adopting leads.
func (l *lab) afterAKill() {
	big := l.fill(l.rows, false)
	next := leadFile{from: 100 * l.rows, to: 100*l.rows + l.rows/10}
	killed := big.command("import", "-m", l.path("plain.yaml"), "--out", big.out(), l.input(next))
	must.Do(killed.Start())
	time.Sleep(time.Second) // time to make some leads
	_ = killed.Process.Kill()
	_ = killed.Wait() // it was killed
	l.atMost("opening after a kill -9 at "+grouped(l.rows)+" entries", "s", float64(l.rows)/1e6, big.opening())
	few, many := l.adopted(l.rows/10), l.adopted(l.rows)
	l.atMost("memory of adopt, each lead", "bytes", 350, float64(many-few)/float64(l.rows-l.rows/10))
}

// adopted returns the most memory that it takes to adopt a list of leads.
func (l *lab) adopted(leads int) int64 {
	w := l.world(&service{url: "http://127.0.0.1:1"})
	defer w.leave()
	path := filepath.Join(w.dir, "leads.csv")
	list := must.Get(os.Create(path))
	defer list.Close()
	must.Get(io.WriteString(list, "key,lead_id\n"))
	for i := range leads {
		must.Get(fmt.Fprintf(list, "C-%09d,3d0f8a52-7c41-4e19-8b06-%012x\n", i, i))
	}
	return must.Get(perform(w.command("checkpoint", "adopt", path))).peak
}

// readAll measures N21: how many leads a second reconcile reads, beside the updates of wrk on as many connections.
// Nothing has changed on either side. The run reads its first lead twice, hence the -1.
func (l *lab) readAll() {
	rows := l.rows / 10
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
	l.rates(what, 0.95, "wrk's updates", c)
	l.atMost(what, "requests a lead", 1, slices.Max(each))
}

// fromNothing measures N23: the first command of the README with empty Go caches.
func (l *lab) fromNothing() {
	w := l.world(nil)
	defer w.leave()
	readme := string(must.Get(os.ReadFile(filepath.Join(l.root, "README.md"))))
	line := regexp.MustCompile(`(?m)^    (go run .*)$`).FindStringSubmatch(readme)
	words := strings.Fields(line[1])
	cmd := exec.CommandContext(l.ctx, words[0], append(words[1:], "--out", w.out())...)
	cmd.Dir = l.root
	cmd.Env = append(w.command("").Env, "GOCACHE="+w.dir+"/cache", "GOMODCACHE="+w.dir+"/modules",
		"GOFLAGS=-modcacherw")
	l.atMost("README's first command, empty caches, processor time", "s", 85, must.Get(perform(cmd)).cpu.Seconds())
}
