package postgres

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"leadferry/checkpoint"
	"leadferry/internal/pgtest"
	"leadferry/internal/testsupport/must"
)

// A server may be unable to write for a while: its disk is full, or somebody cancels statements. Then the commit is
// tried again. Each change is made once. After Patience the use of the ledger ends. faults 13
func TestAServerThatCannotWriteIsAskedAgain(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	for _, code := range []string{"53100", "53200", "25006", "57014"} {
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
			must.Do(t, s.Guard(t.Context(), "a"))
			if e := entryOf(t, s, "before"); e.LeadID != "lead-before" || s.commits != 2 {
				t.Errorf("after %d commits: %+v", s.commits, e)
			}
			committed(t, s, createdOf("a", "lead-before")) // another row's lead: needs a transaction
			server.Exec(t, address, `SELECT setval('public.fails', 1, false)`)
			committed(t, s, byRun("run", createdOf("before", "lead-before")), createdOf("a", "lead-a"))
			s.o.Patience = time.Millisecond
			server.Exec(t, address, `SELECT setval('public.fails', 1, false)`)
			err := s.Commit(t.Context(), []*checkpoint.Change{claimOf("b")})
			if !errors.As(err, new(*checkpoint.StoreError)) || !strings.Contains(err.Error(), "no room") || s.Guard(t.Context(), "a") == nil {
				t.Errorf("after Patience: %v, or a request may still leave", err)
			}
		})
	}
}

// A look-up fails because the server is out of memory, and then the connection is cut. It is still repeated.
func TestALookupIsRepeatedAfterAPassingError(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	address, target := server.Database(t), newTarget()
	committed(t, opened(t, address, target, Options{Run: "run"}), claimOf("a"))
	p := newProxy(t, server)
	s := opened(t, p.through(address), target, Options{ReadOnly: true, Patience: time.Hour})
	asked := 0
	err := s.read(t.Context(), func() error {
		if asked++; asked == 1 {
			p.arm(1, true) // cuts the next connection
			return &pgconn.PgError{Severity: "ERROR", Code: "53200", Message: "out of memory"}
		}
		return s.conn.Ping(t.Context())
	})
	if err != nil || asked != 2 {
		t.Errorf("after asking %d times: %v", asked, err)
	}
}

// A running backup is not taken for a standby, whatever rights the user has.
func TestABackupIsNoStandby(t *testing.T) {
	t.Parallel()
	server := pgtest.New(t)
	address := server.URL("postgres")
	if _, err := Init(address, Options{}); err != nil {
		t.Fatal(err)
	}
	server.Exec(t, address, `CREATE ROLE runs LOGIN`, `GRANT leadferry_worker TO runs`,
		`ALTER SYSTEM SET wal_keep_size = '64MB'`, `SELECT pg_reload_conf()`) // one backup's checkpoint would take the other's WAL
	backup := pgtest.Command(pgtest.Program(t, "pg_basebackup"), "-h", server.Socket(), "-U", "postgres", "-D", "-", "-Ft", "-X", "fetch", "-c", "fast", "--max-rate=32k")
	stream := pgtest.Command(pgtest.Program(t, "pg_basebackup"), "-h", server.Socket(), "-U", "postgres", "-D", pgtest.Folder(t)+"/copy", "-X", "stream", "-c", "fast", "--max-rate=32k", "--no-sync")
	must.Do(t, backup.Start())
	must.Do(t, stream.Start())
	t.Cleanup(func() {
		backup.Process.Kill()
		stream.Process.Kill()
		backup.Wait()
		stream.Wait()
	})
	pgtest.Eventually(t, "both go on", func() bool {
		return pgtest.Value[int](t, address, `SELECT count(*) FROM pg_stat_replication WHERE state IN ('backup', 'streaming')`) == 3
	})
	for _, user := range []string{"postgres", "runs"} {
		opened(t, server.URLAs(user, "postgres"), newTarget(), Options{Run: "run"})
	}
}
