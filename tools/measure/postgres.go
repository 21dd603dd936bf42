package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"leadferry/tools/must"
)

// server is a PostgreSQL server with a socket in its folder, no port, and few settings; it counts statements.
type server struct {
	dir, bin  string
	databases int
}

// errNoPostgres says why the numbers of the ledger in PostgreSQL cannot be measured.
var errNoPostgres = errors.New("PostgreSQL is not installed")

// postgres starts a server, which runs until the lab closes.
func (l *lab) postgres() *server {
	if l.server != nil {
		return l.server
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if len(found) == 0 {
		must.Do(errNoPostgres)
	}
	// the path of a socket must be short
	s := &server{dir: must.Get(os.MkdirTemp("/tmp", "pg")), bin: filepath.Dir(slices.Max(found))}
	l.server = s
	if os.Getuid() == 0 { // PostgreSQL refuses to run as root
		must.Do(exec.CommandContext(l.ctx, "chown", "postgres", s.dir).Run())
	}
	must.Get(s.run(l.ctx, "initdb", "-D", "data", "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C"))
	must.Get(s.run(l.ctx, "pg_ctl", "-D", "data", "-w", "-l", "log", "-o", "-k "+s.dir+
		" -c listen_addresses= -c shared_buffers=256MB "+
		"-c max_wal_size=4GB -c shared_preload_libraries=pg_stat_statements", "start"))
	must.Get(s.ask(l.ctx, "CREATE EXTENSION pg_stat_statements"))
	return s
}

// run runs one of PostgreSQL's programs in the folder of the server and returns its output.
func (s *server) run(ctx context.Context, name string, args ...string) (string, error) {
	words := append([]string{filepath.Join(s.bin, name)}, args...)
	if os.Getuid() == 0 {
		words = append([]string{"setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"}, words...)
	}
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s: %w\n%s", name, err, out)
	}
	return strings.TrimSpace(string(out)), err
}

// ask runs a statement and returns its result.
func (s *server) ask(ctx context.Context, statement string) (string, error) {
	return s.run(ctx, "psql", "-h", s.dir, "-U", "postgres", "-XAtqc", statement)
}

// stop ends the server and removes it. After Ctrl-C the server may have ended already.
func (s *server) stop() error {
	_, _ = s.run(context.Background(), "pg_ctl", "-D", "data", "-w", "-m", "immediate", "stop")
	return os.RemoveAll(s.dir)
}

// database makes a database and returns its address.
func (s *server) database(ctx context.Context) string {
	s.databases++
	name := fmt.Sprint("d", s.databases)
	must.Get(s.ask(ctx, "CREATE DATABASE "+name))
	return "postgres://postgres@/" + name + "?host=" + url.QueryEscape(s.dir)
}

// besideTheFile measures the part of N15 that has no latency.
func (l *lab) besideTheFile() {
	near := l.sink(0)
	defer near.stop()
	rows := 3 * l.rows / 10
	c := l.compare(func() (float64, float64) {
		file := l.imported(near, "file", rows, inFlight).rate(rows)
		return l.imported(near, "PostgreSQL", rows, inFlight).rate(rows), file
	})
	l.rates(fmt.Sprintf("import into a PostgreSQL, %d in flight, no latency, %s rows", inFlight, grouped(rows)), 0.6,
		"the file", c)
}

// fleetOfFour measures N16: four workers compared with one, and how often they ask the server.
func (l *lab) fleetOfFour() {
	const workers = 4
	rows := l.rows / 10
	s, at := l.sink(slow), l.postgres()
	defer s.stop()
	var trips []float64
	c := l.compare(func() (float64, float64) {
		alone := l.imported(s, "PostgreSQL", rows, inFlight)
		must.Get(at.ask(l.ctx, "SELECT pg_stat_statements_reset()"))
		wall := l.fleet(s, rows, workers)
		calls := must.Get(at.ask(l.ctx, `SELECT sum(calls) FROM pg_stat_statements WHERE query LIKE '%leadferry.lead_rows%'`))
		trips = append(trips, must.Get(strconv.ParseFloat(calls, 64))*128/float64(rows))
		return float64(rows) / wall.Seconds(), alone.rate(rows)
	})
	l.rates(fmt.Sprintf("fleet of %d, %d in flight each, %s, %s rows", workers, inFlight, slow, grouped(rows)), 3.5,
		"one worker", c)
	l.atMost("claims, outcomes and look-ups per 128 rows", "round trips", 3, median(trips))
}

// fleet makes workers import a file together and returns how long all of them took.
func (l *lab) fleet(s *service, rows, workers int) time.Duration {
	ledger, path := l.postgres().database(l.ctx), l.input(leadFile{to: rows})
	var group errgroup.Group
	start := time.Now()
	for i := range workers {
		w := l.world(s)
		defer w.leave()
		w.checkpoint = ledger
		group.Go(func() error {
			_, err := perform(w.command("import", "-m", l.path("plain.yaml"), "-c", strconv.Itoa(inFlight),
				"--out", "none", "--quiet", "--fleet", "measure", "--shard", fmt.Sprintf("%d/%d", i, workers), path))
			return err
		})
	}
	must.Do(group.Wait())
	return time.Since(start)
}

// onServer measures N17: runs with nothing to send, and copies in both directions.
func (l *lab) onServer() {
	s := l.sink(0)
	defer s.stop()
	known := &filled{world: l.world(s), file: leadFile{to: l.rows}}
	defer known.leave()
	known.checkpoint = l.postgres().database(l.ctx)
	known.send(outcomes{"created": l.rows}, "import", inFlight, l.input(known.file))
	for _, command := range []string{"import", "sync"} {
		what := fmt.Sprintf("%s, ledger in PostgreSQL, nothing to send, %s rows", command, grouped(l.rows))
		l.seconds(what, 12, "validate", known.besideValidate(command))
	}
	from := known.checkpoint
	for _, to := range []string{filepath.Join(known.dir, "copy.db"), l.postgres().database(l.ctx)} {
		took := must.Get(perform(known.command("checkpoint", "copy", from, to))).wall
		kind, _, _ := strings.Cut(filepath.Base(to), "?")
		l.atMost(fmt.Sprintf("copy of %s leads to %s", grouped(l.rows), kind), "s", 60, took.Seconds())
		from = to
	}
}
