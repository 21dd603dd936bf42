package server

import (
	"context"
	"fmt"
	"strings"
)

// oldest is the oldest version of the server that will do.
const oldest = 14

// Promises refuses a server that does not promise what a ledger needs: the primary of a cluster, which keeps what it
// acknowledges. Who only reads needs no changes to be taken. Errors are *[checkpoint.OpenError], or as those of [Address.Explain].
func (s *Session) Promises(readOnly bool) error {
	var fsync, pages, commit, unchanging, encoding string
	var standby bool
	err := s.QueryRow(context.Background(), `SELECT current_setting('fsync'), current_setting('full_page_writes'),
		current_setting('synchronous_commit'), current_setting('transaction_read_only'), current_setting('server_encoding'), pg_is_in_recovery(),
		pg_backend_pid(), (SELECT backend_start FROM pg_stat_activity WHERE pid = pg_backend_pid()), pg_conf_load_time()`).
		Scan(&fsync, &pages, &commit, &unchanging, &encoding, &standby, &s.Process, &s.began, &s.loaded)
	if err != nil {
		return s.at.Explain(err)
	}
	switch {
	case standby:
		return s.at.refuse("its server is a standby, or is still recovering", "name the primary server, or all of them with target_session_attrs=read-write")
	case unchanging == "on" && !readOnly:
		return s.at.refuse("its server takes no changes: default_transaction_read_only is on", "name the server that does, or have it switched off for this user")
	case encoding != "UTF8" && encoding != "SQL_ASCII":
		return s.at.refuse("its database is in "+encoding+", which cannot hold every text that the service answers with", "make a database for it with ENCODING 'UTF8'")
	case fsync != "on":
		return s.at.refuse("its server does not promise durable commits: fsync is off", "have fsync switched on: with it off, a crash loses what was acknowledged, and leads would be made twice")
	case pages != "on":
		return s.at.refuse("its server does not promise that its files outlive a crash: full_page_writes is off", "have full_page_writes switched on")
	case commit != "on" && commit != "remote_apply":
		return s.at.refuse("its server does not keep synchronous_commit on for this session", "have whatever stands between leave sessions as they are")
	}
	return nil
}

// foreign are words by which servers give away that they speak PostgreSQL's protocol and are something else.
var foreign = []string{"CockroachDB", "-YB-", "Yugabyte", "Redshift", "Greenplum", "Materialize", "CrateDB", "QuestDB", "RisingWave", "Spanner", "DuckDB", "H2 "}

// isPostgres refuses a server that is something else by what it says of itself, before it is asked for anything that
// only PostgreSQL has.
func (s *Session) isPostgres() error {
	results, err := s.PgConn().Exec(context.Background(), `SELECT version()`).ReadAll()
	if err != nil {
		return err
	}
	version := s.PgConn().ParameterStatus("crdb_version")
	if len(results) == 1 && len(results[0].Rows) == 1 && len(results[0].Rows[0]) == 1 {
		version += string(results[0].Rows[0][0])
	}
	other := !strings.HasPrefix(version, "PostgreSQL ")
	for _, word := range foreign {
		other = other || strings.Contains(version, word)
	}
	if other {
		return s.at.refuse("its server is not PostgreSQL: "+firstWords(version), "a ledger needs PostgreSQL 14 or newer itself: what speaks its protocol need not keep its promises")
	}
	if major(version) < oldest {
		return s.at.refuse("its server is of a version before PostgreSQL 14: "+firstWords(version), "use PostgreSQL 14 or newer")
	}
	return nil
}

// major is the first number of a version.
func major(version string) (n int) {
	_, _ = fmt.Sscanf(version, "PostgreSQL %d", &n)
	return n
}

func firstWords(s string) string {
	words := strings.Fields(s)
	return strings.Join(words[:min(len(words), 2)], " ")
}

// notPooled refuses a pooler, which may hand the statements of a session to whichever connection of its own is free, unless the
// address says that this one does not. It shows by the process: the one that answers is not the one that the connection was made
// to. This comes before anything that is prepared, which a pooler would mix up.
func (s *Session) notPooled() error {
	if s.at.pooled {
		return nil
	}
	results, err := s.PgConn().Exec(context.Background(), `SELECT pg_backend_pid()`).ReadAll()
	if err != nil {
		return err
	}
	if process := string(results[0].Rows[0][0]); process != fmt.Sprint(s.PgConn().PID()) {
		return s.at.refuse("a pooler stands before its server, and may mix the statements of sessions",
			"name the server itself; where the pool keeps a connection for each session (pool_mode = session), add pooled=session to the address")
	}
	return nil
}
