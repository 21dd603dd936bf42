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
	"sync"
	"time"
)

// server is a PostgreSQL of its own, with a socket in its folder and no port. Its settings are the defaults, but that
// statements are counted.
type server struct {
	dir, bin  string
	cmd       *exec.Cmd
	databases int
}

// errNoPostgres is why the numbers of the ledger in PostgreSQL cannot be taken.
var errNoPostgres = errors.New("PostgreSQL is not installed")

// postgres starts a server, which is there until the lab closes.
func (l *lab) postgres() *server {
	if l.server != nil {
		return l.server
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if len(found) == 0 {
		check(errNoPostgres)
	}
	dir := must(os.MkdirTemp("/tmp", "pg")) // the names of sockets are short
	s := &server{dir: dir, bin: filepath.Dir(slices.Max(found))}
	l.server = s
	if os.Getuid() == 0 { // which PostgreSQL refuses
		check(exec.CommandContext(l.ctx, "chown", "postgres", s.dir).Run())
	}
	data := filepath.Join(s.dir, "data")
	_, err := s.said(l.ctx, "initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C")
	check(err)
	s.cmd = s.program(l.ctx, "postgres", "-D", data, "-k", s.dir, "-c", "listen_addresses=", "-c", "shared_buffers=256MB",
		"-c", "max_wal_size=4GB", "-c", "shared_preload_libraries=pg_stat_statements", "-c", "log_destination=stderr")
	s.cmd.Cancel = func() error { return s.cmd.Process.Signal(os.Interrupt) }
	check(s.cmd.Start())
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		_, err := s.ask(l.ctx, "CREATE EXTENSION IF NOT EXISTS pg_stat_statements")
		if err == nil {
			return s
		}
		if time.Now().After(end) || l.ctx.Err() != nil {
			check(fmt.Errorf("postgres did not start: %w", err))
		}
	}
}

func (s *server) program(ctx context.Context, name string, args ...string) *exec.Cmd {
	words := append([]string{filepath.Join(s.bin, name)}, args...)
	if os.Getuid() == 0 {
		words = append([]string{"setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"}, words...)
	}
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	return cmd
}

func (s *server) said(ctx context.Context, name string, args ...string) (string, error) {
	out, err := s.program(ctx, name, args...).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s: %w\n%s", name, err, out)
	}
	return strings.TrimSpace(string(out)), err
}

// ask carries out a statement and returns what it gives.
func (s *server) ask(ctx context.Context, statement string) (string, error) {
	return s.said(ctx, "psql", "-h", s.dir, "-U", "postgres", "-XAtqc", statement)
}

// stop ends the server and removes it.
func (s *server) stop() error {
	if s.cmd != nil && s.cmd.Process != nil {
		_ = s.cmd.Process.Signal(os.Interrupt) // after Ctrl-C it has ended already
		_ = s.cmd.Wait()
	}
	return os.RemoveAll(s.dir)
}

// onServer is a world whose checkpoint is a new database.
func (l *lab) onServer(s *service) *world {
	w, at := l.world(s), l.postgres()
	at.databases++
	name := fmt.Sprint("d", at.databases)
	must(at.ask(l.ctx, "CREATE DATABASE "+name))
	w.checkpoint = "postgres://postgres@/" + name + "?host=" + url.QueryEscape(at.dir)
	return w
}

// importedOnServer imports rows into a new ledger in PostgreSQL.
func (l *lab) importedOnServer(s *service, rows int) trial {
	w := l.onServer(s)
	defer w.leave()
	return w.send(outcomes{"created": rows}, "import", inFlight, l.input(leadFile{to: rows}))
}

// ledgerOnServer is N15.
func (l *lab) ledgerOnServer() []finding {
	what := fmt.Sprintf("import, ledger in PostgreSQL, %d in flight, ", inFlight)
	far, near := l.sink(slow), l.sink(0)
	defer far.stop()
	defer near.stop()
	rows := l.threeTenths()
	fast := l.compare(func() (float64, float64) {
		file := l.imported(near, rows, inFlight).rate(rows)
		return l.importedOnServer(near, rows).rate(rows), file
	})
	found := []finding{fast.rates(fmt.Sprintf("%sno latency, %s rows", what, grouped(rows)), 0.6, "the file")}
	if _, err := exec.LookPath("wrk"); err != nil {
		return found
	}
	slowly := l.compare(func() (float64, float64) {
		limit := l.wrkCreates(far, inFlight)
		return l.importedOnServer(far, l.tenth()).rate(l.tenth()), limit
	})
	return append(found, slowly.rates(fmt.Sprintf("%s%s, %s rows", what, slow, grouped(l.tenth())), 0.95, "wrk"))
}

// fleetOfFour is N16: four workers beside one, and how often they ask the server.
func (l *lab) fleetOfFour() []finding {
	const workers = 4
	rows := l.tenth()
	s, at := l.sink(slow), l.postgres()
	defer s.stop()
	var trips []float64
	c := l.compare(func() (float64, float64) {
		alone := l.importedOnServer(s, rows)
		must(at.ask(l.ctx, "SELECT pg_stat_statements_reset()"))
		wall := l.fleet(s, rows, workers)
		calls := must(at.ask(l.ctx, `SELECT sum(calls) FROM pg_stat_statements WHERE query LIKE '%leadferry.lead_rows%'`))
		trips = append(trips, must(strconv.ParseFloat(calls, 64))*128/float64(rows))
		return float64(rows) / wall.Seconds(), alone.rate(rows)
	})
	what := fmt.Sprintf("fleet of %d, %d in flight each, %s, %s rows", workers, inFlight, slow, grouped(rows))
	return []finding{c.rates(what, 3.5, "one worker"), {
		"claims, outcomes and look-ups per 128 rows", "≤ 3 round trips",
		fmt.Sprintf("%.1f", median(trips)), verdict(median(trips) <= 3),
	}}
}

// fleet has workers import a file together and returns how long all of them took.
func (l *lab) fleet(s *service, rows, workers int) time.Duration {
	ledger := l.onServer(s)
	defer ledger.leave()
	path := l.input(leadFile{to: rows})
	var group sync.WaitGroup
	errs := make([]error, workers)
	start := time.Now()
	for i := range workers {
		w := l.world(s)
		defer w.leave()
		w.checkpoint = ledger.checkpoint
		group.Go(func() {
			shard := fmt.Sprintf("%d/%d", i, workers)
			_, errs[i] = perform(w.command("import", "-m", l.path("plain.yaml"), "-c", strconv.Itoa(inFlight),
				"--out", "none", "--quiet", "--fleet", "measure", "--shard", shard, path))
		})
	}
	group.Wait()
	wall := time.Since(start)
	check(errors.Join(errs...))
	return wall
}

// resumeOnServer is N17: nothing to send, and copies there and back.
func (l *lab) resumeOnServer() (found []finding) {
	const most = time.Minute
	f := leadFile{to: l.rows}
	s := l.sink(0)
	defer s.stop()
	w := l.onServer(s)
	defer w.leave()
	known := &filled{world: w, file: f}
	w.send(outcomes{"created": l.rows}, "import", inFlight, l.input(f))
	for _, command := range []string{"import", "sync"} {
		c := l.compare(func() (float64, float64) {
			base := l.validated(0, f)
			return known.again(command).wall.Seconds(), base.wall.Seconds()
		})
		what := fmt.Sprintf("%s, ledger in PostgreSQL, nothing to send, %s rows", command, grouped(l.rows))
		found = append(found, c.seconds(what, 12, "validate"))
	}
	file := filepath.Join(w.dir, "copy.db")
	other := l.onServer(s)
	defer other.leave()
	for _, way := range [][]string{{w.checkpoint, file, "to a file"}, {file, other.checkpoint, "to PostgreSQL"}} {
		took := must(perform(w.command("checkpoint", "copy", way[0], way[1]))).wall
		found = append(found, finding{
			fmt.Sprintf("copy of %s leads %s", grouped(l.rows), way[2]), "≤ 60 s",
			fmt.Sprintf("%.1f s", took.Seconds()), verdict(took <= most),
		})
	}
	return found
}
