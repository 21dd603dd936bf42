package postgres

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"leadferry/checkpoint"
	"leadferry/internal/pgtest"
)

// A server that cannot write now, as one whose disk is full, is asked again until it can: each change is made once, and nothing
// leaves meanwhile. One that cannot for too long ends the use of the ledger. faults 13
func TestTroublesThatPass(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	for _, code := range []string{"53100", "53200", "25006"} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			address, target := server.Database(t), newTarget()
			s := opened(t, address, target, Options{Run: "run", Patience: time.Hour})
			committed(t, s, claimOf("before"))
			server.Exec(t, address, `CREATE SEQUENCE fails`, `GRANT USAGE ON fails TO PUBLIC`,
				`CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
					IF nextval('public.fails') <= 2 THEN RAISE EXCEPTION 'no room' USING ERRCODE = '`+code+`'; END IF; RETURN NEW; END $$`,
				`CREATE TRIGGER fail BEFORE INSERT OR UPDATE ON leadferry.lead_rows FOR EACH ROW EXECUTE FUNCTION public.fail()`)
			done := make(chan error, 1)
			changes := []*checkpoint.Change{claimOf("a"), createdOf("before", "lead-before")}
			go func() { done <- s.Commit(t.Context(), changes) }()
			for lost := false; !lost; time.Sleep(time.Millisecond) {
				if lost = isCut(s); len(done) > 0 {
					break
				}
			}
			if err := <-done; err != nil || changes[0].Err != nil || changes[1].Err != nil {
				t.Fatalf("%v, %v, %v", err, changes[0].Err, changes[1].Err)
			}
			if err := s.Guard(t.Context(), "a"); err != nil {
				t.Error(err)
			}
			if e := stands(t, s, "before"); e.LeadID != "lead-before" || s.commits != 2 {
				t.Errorf("after %d commits: %+v", s.commits, e)
			}
			committed(t, s, createdOf("a", "lead-before")) // which is another one's: a transaction
			server.Exec(t, address, `SELECT setval('public.fails', 1, false)`)
			committed(t, s, by("run", createdOf("before", "lead-before")), createdOf("a", "lead-a"))

			s.o.Patience = time.Millisecond
			server.Exec(t, address, `SELECT setval('public.fails', 1, false)`)
			err := s.Commit(t.Context(), []*checkpoint.Change{claimOf("b")})
			if !errors.As(err, new(*checkpoint.ServerError)) || !strings.Contains(err.Error(), "no room") || s.Guard(t.Context(), "a") == nil {
				t.Errorf("nobody waits for room any longer: %v", err)
			}
		})
	}
}

// A server that has no room to answer a look-up, and then cannot be met for a moment, is asked again all the same.
func TestALookupOutlastsWhatPasses(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	address, target := server.Database(t), newTarget()
	committed(t, opened(t, address, target, Options{Run: "run"}), claimOf("a"))
	p := newProxy(t, server)
	s := opened(t, p.through(address), target, Options{ReadOnly: true, Patience: time.Hour})
	asked := 0
	err := s.read(t.Context(), func(c *pgx.Conn) error {
		if asked++; asked == 1 {
			p.arm(1, true) // the next connection
			return &pgconn.PgError{Severity: "ERROR", Code: "53200", Message: "out of memory"}
		}
		return c.Ping(t.Context())
	})
	if err != nil || asked != 2 {
		t.Errorf("after asking %d times: %v", asked, err)
	}
}

// A backup that is being taken is no standby, whatever the user may see of it.
func TestABackupIsNoStandby(t *testing.T) {
	server := pgtest.New(t)
	address := server.URL("postgres")
	if _, err := Init(address, Options{}); err != nil {
		t.Fatal(err)
	}
	server.Exec(t, address, `CREATE ROLE runs LOGIN`, `GRANT leadferry_worker TO runs`)
	backup := pgtest.Command(pgtest.Program(t, "pg_basebackup"), "-h", server.Socket(), "-U", "postgres", "-D", "-", "-Ft", "-X", "fetch", "-c", "fast", "--max-rate=32k")
	stream := pgtest.Command(pgtest.Program(t, "pg_basebackup"), "-h", server.Socket(), "-U", "postgres", "-D", pgtest.Folder(t)+"/copy", "-X", "stream", "-c", "fast", "--max-rate=32k", "--no-sync")
	for _, c := range []interface {
		Start() error
		Wait() error
	}{backup, stream} {
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		backup.Process.Kill()
		stream.Process.Kill()
		backup.Wait()
		stream.Wait()
	})
	eventually(t, "both go on", func() bool {
		return pgtest.Value[int](t, address, `SELECT count(*) FROM pg_stat_replication WHERE state IN ('backup', 'streaming')`) == 3
	})
	for _, user := range []string{"postgres", "runs"} {
		opened(t, server.URLAs(user, "postgres"), newTarget(), Options{Run: "run"})
	}
}

// A server whose certificate is not, or no longer, the one that its name asks for is not spoken to, and what is said names the
// certificate and no password.
func TestCertificatesThatAreRefused(t *testing.T) {
	now := time.Now()
	for name, c := range map[string]struct {
		until time.Time
		of    string
		words string
	}{
		"expired":      {now.Add(-time.Hour), "localhost", "expired"},
		"another name": {now.Add(time.Hour), "db.example.com", "localhost"},
	} {
		t.Run(name, func(t *testing.T) {
			key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
			if err != nil {
				t.Fatal(err)
			}
			template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: now.Add(-2 * time.Hour), NotAfter: c.until, DNSNames: []string{c.of}, IsCA: true, BasicConstraintsValid: true}
			der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
			if err != nil {
				t.Fatal(err)
			}
			root := filepath.Join(t.TempDir(), "root.crt")
			if err := os.WriteFile(root, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
				t.Fatal(err)
			}
			l, err := net.Listen("tcp", "localhost:0")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { l.Close() })
			go func() {
				for {
					peer, err := l.Accept()
					if err != nil {
						return
					}
					io.ReadFull(peer, make([]byte, 8)) // whether it speaks TLS
					peer.Write([]byte("S"))
					secured := tls.Server(peer, &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}})
					secured.Handshake()
					secured.Close()
				}
			}()
			t.Setenv("PGPASSWORD", "geheim")
			_, err = Open(fmt.Sprintf("postgres://me@localhost:%d/leads?sslmode=verify-full&sslrootcert=%s", l.Addr().(*net.TCPAddr).Port, root), newTarget(), Options{})
			if !errors.As(err, new(*checkpoint.ServerError)) || !strings.Contains(err.Error(), "certificate") || !strings.Contains(err.Error(), c.words) || strings.Contains(err.Error(), "geheim") {
				t.Errorf("%v", err)
			}
		})
	}
}
