package postgres

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"leadferry/internal/pgtest"
)

// What speaks PostgreSQL's protocol and is something else is refused by what it says of itself.
func TestServersThatAreSomethingElse(t *testing.T) {
	for version, words := range map[string]string{
		"CockroachDB CCL v24.1.0 (x86_64-pc-linux-gnu)":                   "CockroachDB",
		"PostgreSQL 11.2-YB-2.20.0.0-b0 on x86_64-pc-linux-gnu":           "not PostgreSQL",
		"PostgreSQL 8.0.2 on i686-pc-linux-gnu, compiled, Redshift 1.0.6": "not PostgreSQL",
		"Materialize v0.100": "Materialize",
		"PostgreSQL 13.14 (Debian 13.14-1) on x86_64-pc-linux-gnu": "before PostgreSQL 14",
		"PostgreSQL 9.6.24 on x86_64-pc-linux-gnu":                 "before PostgreSQL 14",
	} {
		dir := t.TempDir()
		l, err := net.Listen("unix", filepath.Join(dir, ".s.PGSQL.5432"))
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				go imitate(c, version)
			}
		}()
		refusal(t, "postgres://me@/leads?host="+dir, newTarget(), Options{}, words)
		l.Close()
	}
}

// imitate serves somebody who asks for nothing but the version.
func imitate(c net.Conn, version string) {
	defer c.Close()
	b := pgproto3.NewBackend(c, c)
	if _, err := b.ReceiveStartupMessage(); err != nil {
		return
	}
	b.Send(&pgproto3.AuthenticationOk{})
	b.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
	for b.Flush() == nil {
		m, err := b.Receive()
		if err != nil {
			return
		}
		if _, asks := m.(*pgproto3.Query); asks {
			b.Send(&pgproto3.RowDescription{Fields: []pgproto3.FieldDescription{{Name: []byte("version"), DataTypeOID: 25, DataTypeSize: -1, TypeModifier: -1}}})
			b.Send(&pgproto3.DataRow{Values: [][]byte{[]byte(version)}})
			b.Send(&pgproto3.CommandComplete{CommandTag: []byte("SELECT 1")})
			b.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
		}
	}
}

// A pooler that mixes sessions is refused; one that keeps them apart serves.
func TestPoolers(t *testing.T) {
	program := pgtest.Program(t, "pgbouncer")
	server := pgtest.Shared(t)
	address := server.Database(t)
	database := address[strings.LastIndex(address, "/")+1 : strings.Index(address, "?")]
	for mode, words := range map[string]string{"transaction": "pool", "session": ""} {
		t.Run(mode, func(t *testing.T) {
			dir := pgtest.Folder(t)
			config := fmt.Sprintf("[databases]\n%s = host=%s\n[pgbouncer]\nlisten_addr =\nunix_socket_dir = %s\nlisten_port = 5432\nauth_type = any\npool_mode = %s\nignore_startup_parameters = extra_float_digits\n",
				database, server.Socket(), dir, mode)
			file := filepath.Join(dir, "ini")
			if err := os.WriteFile(file, []byte(strings.Replace(config, database+" = ", database+" = user=postgres ", 1)), 0o644); err != nil {
				t.Fatal(err)
			}
			c := pgtest.Command(program, "-q", file)
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { c.Process.Kill(); c.Wait() })
			for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
				if c, err := net.Dial("unix", filepath.Join(dir, ".s.PGSQL.5432")); err == nil {
					c.Close()
					break
				}
			}
			through := "postgres://postgres@/" + database + "?host=" + dir
			if words != "" {
				if s, err := Open(through, newTarget(), Options{Run: "run"}); err == nil {
					s.Close()
					t.Error("a pooler that mixes sessions was taken")
				}
				return
			}
			s := opened(t, through, newTarget(), Options{Run: "run"})
			committed(t, s, claimOf("a"), createdOf("a", "lead-pooled"))
		})
	}
}
