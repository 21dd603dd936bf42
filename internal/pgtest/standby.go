package pgtest

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Standby is a server that follows this one, which does not wait for it.
func (s *Server) Standby(t *testing.T) *Server {
	t.Helper()
	dir, err := newFolder()
	if err != nil {
		t.Fatal(err)
	}
	standby := &Server{dir: dir, bin: s.bin, settings: []string{"hot_standby=on"}}
	t.Cleanup(standby.remove)
	if err := carriedOut(filepath.Join(s.bin, "pg_basebackup"), "-h", s.dir, "-U", "postgres", "-D", standby.data(), "-R", "-X", "stream", "-c", "fast", "--no-sync"); err != nil {
		t.Fatal(err)
	}
	if err := standby.Start(); err != nil {
		t.Fatal(err)
	}
	until(t, "the standby follows", func() bool {
		return Value[int](t, s.URL("postgres"), `SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'`) > 0
	})
	return standby
}

// Caught waits until a standby has everything that its primary has.
func (s *Server) Caught(t *testing.T, primary *Server) {
	t.Helper()
	at := Value[string](t, primary.URL("postgres"), `SELECT pg_current_wal_lsn()::text`)
	until(t, "the standby has caught up", func() bool {
		return Value[bool](t, s.URL("postgres"), `SELECT pg_last_wal_replay_lsn() >= $1::pg_lsn`, at)
	})
}

// Cut ends a standby's following: what its primary does from here on does not reach it.
func (s *Server) Cut(t *testing.T) {
	t.Helper()
	s.Exec(t, s.URL("postgres"), `ALTER SYSTEM SET primary_conninfo = ''`, `SELECT pg_reload_conf()`)
	until(t, "the standby follows no more", func() bool {
		return Value[int](t, s.URL("postgres"), `SELECT count(*) FROM pg_stat_wal_receiver`) == 0
	})
}

// Promote makes a standby take over.
func (s *Server) Promote(t *testing.T) {
	t.Helper()
	if !Value[bool](t, s.URL("postgres"), `SELECT pg_promote(true, 60)`) {
		t.Fatal("the standby does not take over")
	}
}

// Pooler is PgBouncer before a server, with two connections of its own, and its address.
func Pooler(t *testing.T, s *Server, mode string) string {
	t.Helper()
	program := Program(t, "pgbouncer")
	dir := Folder(t)
	config := filepath.Join(dir, "pgbouncer.ini")
	text := fmt.Sprintf("[databases]\npostgres = host=%s port=5432 dbname=postgres user=postgres\n[pgbouncer]\nlisten_port = 6432\nlisten_addr =\nunix_socket_dir = %s\nauth_type = any\npool_mode = %s\n"+
		"default_pool_size = 4\nlogfile = %s/log\npidfile = %s/pid\n", s.dir, dir, mode, dir, dir)
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	p, ended := Command(program, config), make(chan struct{})
	if err := launch(p, ended); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Process.Kill()
		<-ended
	})
	until(t, "the pooler listens", func() bool {
		c, err := net.Dial("unix", filepath.Join(dir, ".s.PGSQL.6432"))
		return err == nil && c.Close() == nil
	})
	return "postgres://postgres@/postgres?port=6432&host=" + dir
}

func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
	}
}
