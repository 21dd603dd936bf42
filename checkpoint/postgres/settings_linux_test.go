package postgres

import (
	"testing"
	"time"

	"leadferry/checkpoint"
	"leadferry/internal/pgtest"
	"leadferry/internal/testsupport/must"
)

// Settings of a user or database change nothing that the ledger stores, and end no session.
func TestSettingsOfAUserChangeNothing(t *testing.T) {
	server, address, target := shared(t)
	for _, setting := range []string{
		"statement_timeout = 20", "lock_timeout = 1", "idle_session_timeout = 500", "idle_in_transaction_session_timeout = 500", "search_path = pg_temp",
		"default_transaction_isolation = serializable", "synchronous_commit = off", "client_encoding = LATIN1", "standard_conforming_strings = off",
		"bytea_output = escape", "DateStyle = 'German, DMY'", "IntervalStyle = sql_standard", "TimeZone = 'Asia/Kathmandu'", "row_security = off", "client_min_messages = error",
	} {
		server.Exec(t, server.URL("postgres"), "ALTER ROLE postgres IN DATABASE "+nameOf(address)+" SET "+setting)
	}
	s := opened(t, address, target, Options{Run: "run"})
	own, met := s.conn, s.conn.PgConn().PID()
	must.Do(t, own.Script(`SELECT pg_sleep(0.05)`))
	committed(t, s, claimOf("a"), claimOf("b"))
	time.Sleep(600 * time.Millisecond) // longer than idle_session_timeout
	const place = "Łódź \U0001F680"
	done := createdOf("a", "lead-a")
	done.Entry.Location, done.Entry.ExternalID = place, "Ü-1"
	committed(t, s, done)
	if s.conn != own || s.conn.PgConn().PID() != met {
		t.Error("the Store connected again")
	}
	server.Exec(t, server.URL("postgres"), "ALTER ROLE postgres IN DATABASE "+nameOf(address)+" RESET ALL")
	other := opened(t, address, target, Options{ReadOnly: true})
	q := []checkpoint.Query{{Key: "c", ExternalID: "Ü-1", Entry: new(checkpoint.Entry)}}
	if err := other.Find(t.Context(), q); err != nil || q[0].Match != checkpoint.ByExternalID || q[0].Entry.Location != place {
		t.Errorf("another user finds %v %+v, %v", q[0].Match, q[0].Entry, err)
	}
}

// A warning at connecting says nothing about a commit. After an upgrade of its system a server always warns.
func TestAWarningAtConnectingFailsNoCommit(t *testing.T) {
	t.Parallel()
	server := pgtest.New(t)
	address := server.URL("postgres")
	server.Exec(t, address, `UPDATE pg_database SET datcollversion = '1'`)
	s := opened(t, address, newTarget(), Options{Run: "run", Patience: time.Millisecond})
	own := s.conn
	committed(t, s, claimOf("a"))
	if s.conn != own {
		t.Error("the Store connected again")
	}
	server.Exec(t, address, `SELECT pg_terminate_backend(`+itoa(int(s.conn.PgConn().PID()))+`)`)
	committed(t, s, createdOf("a", "lead-a"))
}

// A pooler may spread one session over several connections. It is refused unless the address says pooled=session.
func TestAPoolerIsRefused(t *testing.T) {
	t.Parallel()
	server := pgtest.New(t)
	for _, mode := range []string{"transaction", "statement", "session"} {
		wantRefusal(t, pgtest.Pooler(t, server, mode), newTarget(), Options{}, "pooler")
	}
	s := opened(t, pgtest.Pooler(t, server, "session")+"&pooled=session", newTarget(), Options{})
	committed(t, s, claimOf("a"), createdOf("a", "lead-a"))
	wantRefusal(t, server.URL("postgres")+"&pooled=transaction", newTarget(), Options{}, "pooled")
}
