// Package pgtest starts real PostgreSQL servers for tests. They use a socket in their own folder, no port, and run as
// the user postgres if the test is root. On Linux they end with the test binary, even if that is killed. Without
// PostgreSQL the tests are skipped, or fail if LEADFERRY_TEST_REQUIRE names postgres.
package pgtest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"leadferry/internal/testsupport/memory"
	"leadferry/internal/testsupport/must"
)

// TB is a test, of the usual kind or of random ones.
type TB = rapid.TB

// Server is a PostgreSQL cluster and the process that serves it.
type Server struct {
	dir, bin string
	settings []string
	process  *exec.Cmd
	ended    chan error
	number   atomic.Int64 // of its databases
}

// shared is the one server of a test binary, for tests that do not change the server itself.
var shared struct {
	sync.Mutex
	*Server
}

// Main runs the tests of a binary, ends what they share, and exits.
func Main(m *testing.M) {
	code := m.Run()
	End()
	os.Exit(code)
}

// End ends what the tests of a binary share.
func End() {
	if shared.Server != nil {
		shared.remove()
	}
	os.RemoveAll(templates)
}

// Shared returns the server that the tests of a binary share; its TestMain must call [Main], or [End].
func Shared(t TB) *Server {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	if shared.Server == nil {
		shared.Server = start(t, nil)
	}
	return shared.Server
}

// New returns a server for one test, with settings like "fsync=off". It ends with the test.
func New(t *testing.T, settings ...string) *Server {
	t.Helper()
	s := start(t, settings)
	t.Cleanup(s.remove)
	return s
}

// Program returns the path of a program, for example pgbouncer. Without it the test is skipped.
func Program(t TB, name string) string {
	t.Helper()
	path, err := find(name)
	if err != nil {
		if strings.Contains(os.Getenv("LEADFERRY_TEST_REQUIRE"), "postgres") {
			t.Fatalf("%s is not installed, and LEADFERRY_TEST_REQUIRE asks for it", name)
		}
		t.Skip(name + " is not installed: apt install postgresql pgbouncer")
	}
	return path
}

func find(name string) (string, error) {
	for _, place := range []string{"/usr/lib/postgresql/*/bin/", "/usr/local/pgsql/bin/", "/usr/sbin/", "/usr/local/bin/"} {
		if found, _ := filepath.Glob(place + name); len(found) > 0 {
			return found[len(found)-1], nil
		}
	}
	return exec.LookPath(name)
}

// Folder makes a folder for one test. The server's user may write to it, and its path is short enough for a socket.
func Folder(t *testing.T) string {
	t.Helper()
	dir, err := newFolder()
	must.Do(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func newFolder() (string, error) {
	dir, err := os.MkdirTemp(cmp.Or(memory.Folder(), "/tmp"), "pg")
	if err == nil {
		err = giveAway(dir)
	}
	return dir, err
}

// templates is the folder of a cluster that no server has used: a copy of it is much cheaper than initdb.
var templates string

var template = sync.OnceValue(func() (err error) {
	if templates, err = newFolder(); err != nil {
		return err
	}
	initdb, _ := find("initdb")
	return runProgram(initdb, "-D", templates+"/data", "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C",
		"--no-sync", "--no-instructions", "--wal-segsize=1")
})

func start(t TB, settings []string) *Server {
	t.Helper()
	bin := filepath.Dir(Program(t, "initdb"))
	dir, err := newFolder()
	if err = errors.Join(err, template()); err != nil {
		t.Fatal(err)
	}
	s := &Server{dir: dir, bin: bin, settings: settings}
	if err = runProgram("cp", "-a", templates+"/data", s.Data()); err == nil {
		err = s.Start()
	}
	if err != nil {
		os.RemoveAll(dir)
		t.Fatal(err)
	}
	return s
}

func runProgram(name string, args ...string) error {
	out, err := Command(name, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", name, err, out)
	}
	return nil
}

// Command returns a command that runs as the server's user. On Linux it ends with the test binary.
func Command(name string, args ...string) *exec.Cmd {
	c := exec.Command(name, args...)
	c.Dir = "/tmp"
	c.Env = append(os.Environ(), "LC_ALL=C", "TZ=UTC")
	asServerUser(c)
	return c
}

// Data returns the folder of the cluster. A test may copy it while the server is stopped.
func (s *Server) Data() string { return filepath.Join(s.dir, "data") }

// Socket returns the folder of the server's socket. The port is 5432.
func (s *Server) Socket() string { return s.dir }

// Start serves the cluster and waits until it takes connections.
func (s *Server) Start() error {
	args := []string{"-D", s.Data(), "-k", s.dir}
	for _, one := range append([]string{
		"listen_addresses=", "port=5432", "shared_buffers=64MB", "max_connections=200", "unix_socket_permissions=0777",
	}, s.settings...) {
		args = append(args, "-c", one)
	}
	log, err := os.OpenFile(filepath.Join(s.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	s.process = Command(filepath.Join(s.bin, "postgres"), args...)
	s.process.Stdout, s.process.Stderr = log, log
	if s.ended, err = launch(s.process); err != nil {
		return err
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		c, err := pgx.Connect(context.Background(), s.URL("postgres"))
		if err == nil {
			return c.Close(context.Background())
		}
		if len(s.ended) > 0 || time.Now().After(end) {
			text, _ := os.ReadFile(log.Name())
			return fmt.Errorf("postgres did not start: %w\n%s", err, text)
		}
	}
}

// launch starts a process from a thread that lives until the process ends: Linux ends a process with its thread.
func launch(c *exec.Cmd) (ended chan error, err error) {
	begun, ended := make(chan error), make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		err := c.Start()
		begun <- err
		if err == nil {
			ended <- c.Wait()
		}
	}()
	return ended, <-begun
}

// Stop ends the server in order, and all its connections.
func (s *Server) Stop() { s.signal(syscall.SIGINT) }

// Kill ends the server without a checkpoint, like a crash, and all its connections. Start recovers what was durable.
func (s *Server) Kill() { s.signal(syscall.SIGQUIT) }

func (s *Server) signal(sig os.Signal) {
	if s.process != nil {
		s.process.Process.Signal(sig)
		<-s.ended
		s.process = nil
	}
}

func (s *Server) remove() {
	s.Stop()
	os.RemoveAll(s.dir)
}

// URL returns the address of a database, for the server's owner.
func (s *Server) URL(database string) string { return s.URLAs("postgres", database) }

// URLAs returns the address of a database for a user.
func (s *Server) URLAs(user, database string) string {
	return "postgres://" + user + "@/" + database + "?host=" + url.QueryEscape(s.dir)
}

// Database makes an empty database and returns its address.
func (s *Server) Database(t TB) string {
	t.Helper()
	name := fmt.Sprint("d", s.number.Add(1))
	s.Exec(t, s.URL("postgres"), "CREATE DATABASE "+name)
	return s.URL(name)
}

// Exec runs statements in the database at an address.
func (s *Server) Exec(t TB, address string, statements ...string) {
	t.Helper()
	withConn(t, address, func(c *pgx.Conn) (err error) {
		for _, one := range statements {
			_, failed := c.Exec(context.Background(), one)
			err = errors.Join(err, failed)
		}
		return err
	})
}

// Value runs a query that returns one value, in the database at an address.
func Value[T any](t TB, address, query string, args ...any) (v T) {
	t.Helper()
	withConn(t, address, func(c *pgx.Conn) error { return c.QueryRow(context.Background(), query, args...).Scan(&v) })
	return v
}

func withConn(t TB, address string, f func(*pgx.Conn) error) {
	t.Helper()
	var err error
	for tries := 3; tries > 0; tries-- { // a standby cancels a query if its recovery has to go on
		c, none := pgx.Connect(context.Background(), address)
		if err = none; err == nil {
			err = errors.Join(f(c), c.Close(context.Background()))
		}
		if err == nil || !strings.Contains(err.Error(), "conflict with recovery") {
			break
		}
	}
	must.Do(t, err)
}

// Standby starts a server that follows s, and waits until it does. s does not wait for its standby when it commits.
func (s *Server) Standby(t *testing.T) *Server {
	t.Helper()
	dir, err := newFolder()
	must.Do(t, err)
	standby := &Server{dir: dir, bin: s.bin, settings: []string{"hot_standby=on"}}
	t.Cleanup(standby.remove)
	err = runProgram(filepath.Join(s.bin, "pg_basebackup"), "-h", s.dir, "-U", "postgres", "-D", standby.Data(), "-R",
		"-X", "stream", "-c", "fast", "--no-sync")
	if err == nil {
		err = standby.Start()
	}
	must.Do(t, err)
	s.until(t, `SELECT count(*) > 0 FROM pg_stat_replication WHERE state = 'streaming'`)
	return standby
}

// Caught waits until the standby s has everything that its primary has.
func (s *Server) Caught(t *testing.T, primary *Server) {
	t.Helper()
	at := Value[string](t, primary.URL("postgres"), `SELECT pg_current_wal_lsn()::text`)
	s.until(t, `SELECT pg_last_wal_replay_lsn() >= '`+at+`'`)
}

// Cut stops the standby s from following: later changes of its primary do not reach it.
func (s *Server) Cut(t *testing.T) {
	t.Helper()
	s.Exec(t, s.URL("postgres"), `ALTER SYSTEM SET primary_conninfo = ''`, `SELECT pg_reload_conf()`)
	s.until(t, `SELECT count(*) = 0 FROM pg_stat_wal_receiver`)
}

func (s *Server) until(t *testing.T, query string) {
	t.Helper()
	Eventually(t, query, func() bool { return Value[bool](t, s.URL("postgres"), query) })
}

// Promote makes the standby s the new primary.
func (s *Server) Promote(t *testing.T) {
	t.Helper()
	if !Value[bool](t, s.URL("postgres"), `SELECT CASE WHEN pg_is_in_recovery() THEN pg_promote(true, 60) ELSE true END`) {
		t.Fatal("the standby does not take over")
	}
}

const pooling = `[databases]
postgres = host=%[1]s port=5432 dbname=postgres user=postgres
[pgbouncer]
listen_port = 6432
listen_addr =
unix_socket_dir = %[2]s
auth_type = any
pool_mode = %[3]s
default_pool_size = 4
server_round_robin = 1
logfile = %[2]s/log
pidfile = %[2]s/pid
`

// Pooler starts PgBouncer in front of a server and returns its address. PgBouncer uses its connections in turn.
func Pooler(t *testing.T, s *Server, mode string) string {
	t.Helper()
	program, dir := Program(t, "pgbouncer"), Folder(t)
	config := filepath.Join(dir, "pgbouncer.ini")
	p := Command(program, config)
	err := os.WriteFile(config, fmt.Appendf(nil, pooling, s.dir, dir, mode), 0o644)
	ended, failed := launch(p)
	if err = errors.Join(err, failed); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Process.Kill()
		<-ended
	})
	Eventually(t, "the pooler listens", func() bool {
		c, err := net.Dial("unix", filepath.Join(dir, ".s.PGSQL.6432"))
		return err == nil && c.Close() == nil
	})
	return "postgres://postgres@/postgres?port=6432&host=" + dir
}

// Eventually waits until ok returns true.
func Eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(3 * time.Minute); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
	}
}
