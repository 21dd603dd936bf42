package postgres

import (
	"net"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"
)

// What speaks PostgreSQL's protocol and is something else is refused by what it says of itself.
func TestServersThatAreSomethingElse(t *testing.T) {
	for version, words := range map[string]string{
		"CockroachDB CCL v24.1.0 (x86_64-pc-linux-gnu)":                   "CockroachDB",
		"PostgreSQL 15.2-YB-2.25.0.0-b0 on x86_64-pc-linux-gnu":           "not PostgreSQL",
		"PostgreSQL 8.0.2 on i686-pc-linux-gnu, compiled, Redshift 1.0.6": "before PostgreSQL 14",
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
			b.Send(&pgproto3.RowDescription{Fields: make([]pgproto3.FieldDescription, 2)})
			b.Send(&pgproto3.DataRow{Values: [][]byte{[]byte(version), []byte("1")}})
			b.Send(&pgproto3.CommandComplete{CommandTag: []byte("SELECT 1")})
			b.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
		}
	}
}
