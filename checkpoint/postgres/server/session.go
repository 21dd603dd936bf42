package server

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Session is one connection. It keeps the last warning: a cancelled wait for a standby ends with one and no error.
type Session struct {
	*pgx.Conn
	loaded  time.Time // when the server last read its settings
	at      *Address
	warning string
}

// settings hold for the whole session. No time-out ends a statement, a transaction or an idle session, since what was
// cut off may have been done. Only a transaction that waits for its client is ended: it is certainly undone, and a
// suspended machine soon blocks nobody. No wait for a lock is endless. A plan made while tables are empty must not scan
// them when they are full. default_transaction_read_only stays as it is, to protect a database that moves.
const settings = `SET statement_timeout = 0; SET lock_timeout = %d; SET idle_session_timeout = 0;
SET idle_in_transaction_session_timeout = '30s';
SELECT set_config(name, '0', false) FROM pg_settings WHERE name = 'transaction_timeout';
SET default_transaction_isolation = 'read committed'; SET client_min_messages = warning; SET client_encoding = 'UTF8';
SET standard_conforming_strings = on; SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off;
SET jit = off; SET enable_memoize = off; SET plan_cache_mode = force_generic_plan;
SELECT set_config('synchronous_commit', CASE current_setting('synchronous_commit') WHEN 'remote_apply' THEN
'remote_apply' ELSE 'on' END, false)`

// Meet connects within wait, or the time that a connection may take, and refuses a server that does not promise what a
// ledger needs. Errors are *[checkpoint.OpenError], or those of [Address.Explain].
func (a *Address) Meet(wait time.Duration, readOnly bool) (*Session, error) {
	config, pooled, err := a.config()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), max(wait, config.ConnectTimeout))
	defer cancel()
	s := &Session{at: a}
	config.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) {
		if n.SeverityUnlocalized == "WARNING" || n.Severity == "WARNING" {
			s.warning = n.Message
		}
	}
	if s.Conn, err = pgx.ConnectConfig(ctx, config); err != nil {
		return nil, a.Explain(err)
	}
	err = s.Within(ctx, func() error {
		err := s.isPostgres(pooled)
		if err == nil {
			err = s.Script(fmt.Sprintf(settings, a.Locks.Milliseconds()))
		}
		if err == nil {
			err = s.promises(readOnly)
		}
		return err
	})
	if err != nil {
		return nil, a.Explain(errors.Join(err, s.Close()))
	}
	s.Warned() // drop warnings that no commit caused, for example about the version of a collation
	return s, nil
}

// isPostgres refuses a server that is not PostgreSQL, before anything is prepared. It also refuses a pooler, which
// shows another process than the server, unless the address says that it keeps a connection for each session.
func (s *Session) isPostgres(pooled bool) error {
	results, err := s.PgConn().Exec(context.Background(), `SELECT version(), pg_backend_pid()`).ReadAll()
	if err != nil {
		return err
	}
	version, process := string(results[0].Rows[0][0]), string(results[0].Rows[0][1])
	if !isFit(version) {
		return s.at.refuse("its server is not PostgreSQL 14 or newer: "+version,
			"use PostgreSQL itself: what speaks its protocol need not keep its promises")
	}
	if !pooled && process != fmt.Sprint(s.PgConn().PID()) {
		return s.at.refuse("a pooler is before its server, and may mix the statements of sessions",
			"name the server itself; where the pool keeps a connection for each session (pool_mode = session), add "+
				"pooled=session to the address")
	}
	return nil
}

// isFit reports whether a server is PostgreSQL 14 or newer. Products derived from PostgreSQL add a word to the version.
func isFit(version string) bool {
	return regexp.MustCompile(`^PostgreSQL (1[4-9]|[2-9]\d)(\.\d+|devel|beta\d+|rc\d+)* (on |\()`).MatchString(version)
}

// promises refuses a standby, and a server that does not keep what it acknowledges.
func (s *Session) promises(readOnly bool) error {
	var fsync, pages, commit, unchanging, encoding string
	var standby bool
	err := s.One(`SELECT current_setting('fsync'), current_setting('full_page_writes'),
		current_setting('synchronous_commit'), current_setting('transaction_read_only'),
		current_setting('server_encoding'), pg_is_in_recovery(), pg_conf_load_time()`).
		Scan(&fsync, &pages, &commit, &unchanging, &encoding, &standby, &s.loaded)
	switch {
	case err != nil:
		return err
	case standby:
		return s.at.refuse("its server is a standby, or is still recovering",
			"name the primary server, or all of them with target_session_attrs=read-write")
	case unchanging == "on" && !readOnly:
		return s.at.RefuseUnchanging()
	case encoding != "UTF8" && encoding != "SQL_ASCII":
		return s.at.refuse("its database is in "+encoding+
			", which cannot hold every text that the service answers with",
			"make a database for it with ENCODING 'UTF8'")
	case fsync != "on", pages != "on", commit != "on" && commit != "remote_apply":
		return s.at.refuse(fmt.Sprintf("its server does not promise durable commits: fsync is %s, "+
			"full_page_writes %s, and synchronous_commit %s", fsync, pages, commit),
			"have all three switched on: else a crash loses what was acknowledged, and leads would be made twice")
	}
	return nil
}

// ErrSilent is the error of a session that was cut because no answer came.
var ErrSilent = errors.New("it takes connections and does not answer: whether it did what it was asked last is " +
	"not known")

// Within calls f, which asks the server. If ctx ends first, it cuts the connection: ErrSilent. Statements get no
// context: they would be cancelled when it ends, and a cancelled wait for a standby looks like success.
func (s *Session) Within(ctx context.Context, f func() error) error {
	stop := context.AfterFunc(ctx, s.Cut)
	defer stop()
	err := f()
	if err != nil && ctx.Err() != nil && s.IsClosed() {
		err = ErrSilent
	}
	return err
}

// The methods below ask the server without a context of their own: see [Session.Within] for why.

// Do carries out a statement, and says how many rows it changed.
func (s *Session) Do(statement string, args ...any) (changed int64, err error) {
	tag, err := s.Exec(context.Background(), statement, args...)
	return tag.RowsAffected(), err
}

// One asks for one row.
func (s *Session) One(query string, args ...any) pgx.Row {
	return s.QueryRow(context.Background(), query, args...)
}

// Each scans each row of an answer into places and calls f.
func (s *Session) Each(places []any, f func() error, query string, args ...any) error {
	rows, _ := s.Query(context.Background(), query, args...) // its error is that of the rows, too
	_, err := pgx.ForEachRow(rows, places, f)
	return err
}

// All returns the rows of an answer.
func All[T any](s *Session, to pgx.RowToFunc[T], query string, args ...any) ([]T, error) {
	rows, _ := s.Query(context.Background(), query, args...) // its error is that of the rows, too
	return pgx.CollectRows(rows, to)
}

// Send carries out statements in one round trip, as one transaction unless one is open.
func (s *Session) Send(b *pgx.Batch) error { return s.SendBatch(context.Background(), b).Close() }

// Script carries out statements in one text.
func (s *Session) Script(text string) error {
	_, err := s.PgConn().Exec(context.Background(), text).ReadAll()
	return err
}

// Together runs f in one transaction.
func (s *Session) Together(f func() error) error {
	return pgx.BeginFunc(context.Background(), s.Conn, func(pgx.Tx) error { return f() })
}

// Close ends a connection in order, and waits at most two seconds for the server.
func (s *Session) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	return s.Conn.Close(ctx)
}

// Cut ends a connection at once, whatever it waits for.
func (s *Session) Cut() { s.PgConn().Conn().Close() }

// Warned returns the last warning of the server since the last call, or "".
func (s *Session) Warned() string {
	text := s.warning
	s.warning = ""
	return text
}

// Reloaded reports whether the server has read its settings again since the last call, or since [Address.Meet]. A
// commit in between may have been made with other settings than its statements saw.
func (s *Session) Reloaded() (again bool, err error) {
	var loaded time.Time
	err = s.One(`SELECT pg_conf_load_time()`).Scan(&loaded)
	if again = err == nil && !loaded.Equal(s.loaded); again {
		s.loaded = loaded
	}
	return again, err
}
