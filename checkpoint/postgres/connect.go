package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"leadferry/checkpoint"
)

// IsAddress says whether a checkpoint is named by the address of a server, as psql takes it: a
// URL, or words such as service=leads or host=db.
func IsAddress(name string) bool {
	for _, prefix := range []string{"postgres://", "postgresql://", "service=", "host=", "hostaddr="} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// address is where a server is, and how it is reached.
type address struct {
	name    string // as it was given, which holds no secret
	config  *pgx.ConnConfig
	silence *silence
	locks   time.Duration // how long what others have locked is waited for
}

func refuse(name, text, hint string) error {
	return &checkpoint.OpenError{Path: Shown(name), Text: text, Hint: hint, Err: checkpoint.ErrPlace}
}

// parseAddress reads what psql would, the environment and its files included, and refuses what
// is not safe.
func parseAddress(name string) (*address, error) {
	if Shown(name) != name {
		return nil, refuse(name, "a password stands in its address, where process lists and shell histories show it",
			"leave it out: put it into the file that PGPASSFILE names (a line host:port:database:user:password, mode 0600), or into a service file")
	}
	config, err := pgx.ParseConfig(name)
	if err == nil && !isSafe(&config.Config) && !choosesTLS(name) {
		config, err = pgx.ParseConfig(withTLS(name))
	}
	if err != nil {
		return nil, refuse(name, "its address cannot be read: "+reason(err), "it looks like postgres://user@db.example.com/leads")
	}
	if !isSafe(&config.Config) {
		return nil, refuse(name, "it is on another machine, and its connection would not be verified in full",
			"add sslmode=verify-full, and sslrootcert=FILE where the server's certificate is of an authority of your own")
	}
	config.ConnectTimeout = min(max(config.ConnectTimeout, 10*time.Second), time.Minute)
	dialer := &net.Dialer{KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 10 * time.Second, Interval: 5 * time.Second, Count: 3}}
	quiet := &silence{wires: map[*wire]struct{}{}}
	config.DialFunc = quiet.over(dialer.DialContext)
	if config.RuntimeParams["application_name"] == "" {
		config.RuntimeParams["application_name"] = "leadferry"
	}
	return &address{name, config, quiet, leastSilence}, nil
}

// isSafe says whether every host of a configuration is this machine or verified in full.
func isSafe(c *pgconn.Config) bool {
	safe := func(host string, verified bool) bool { return verified || isLocal(host) }
	verified := func(f *pgconn.FallbackConfig) bool {
		return f.TLSConfig != nil && !f.TLSConfig.InsecureSkipVerify && f.TLSConfig.ServerName != ""
	}
	if !safe(c.Host, verified(&pgconn.FallbackConfig{TLSConfig: c.TLSConfig})) {
		return false
	}
	for _, f := range c.Fallbacks {
		if !safe(f.Host, verified(f)) {
			return false
		}
	}
	return true
}

// isLocal says whether a host is this machine.
func isLocal(host string) bool {
	if strings.HasPrefix(host, "/") || strings.HasPrefix(host, "@") || host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// choosesTLS says whether the user has said how connections are to be verified.
func choosesTLS(name string) bool {
	return strings.Contains(name, "sslmode") || os.Getenv("PGSSLMODE") != "" || strings.Contains(name, "service") || os.Getenv("PGSERVICE") != ""
}

func withTLS(name string) string {
	const param = "sslmode=verify-full"
	switch {
	case !strings.Contains(name, "://"):
		return name + " " + param
	case strings.Contains(name, "?"):
		return name + "&" + param
	}
	return name + "?" + param
}

// Shown is an address without its password.
func Shown(name string) string {
	if !strings.Contains(name, "://") {
		return withoutWord(name)
	}
	u, err := url.Parse(name)
	if err != nil {
		scheme, rest, _ := strings.Cut(name, "://")
		if at := strings.LastIndexByte(rest, '@'); at >= 0 && strings.Contains(rest[:at], ":") {
			return scheme + "://…@" + rest[at+1:]
		}
		return name
	}
	q := u.Query()
	_, typed := u.User.Password()
	for _, secret := range []string{"password", "sslpassword"} {
		typed = typed || q.Has(secret)
		q.Del(secret)
	}
	if !typed {
		return name
	}
	u.User, u.RawQuery = url.User(u.User.Username()), q.Encode()
	return u.String()
}

// withoutWord is an address of words without those that are secret, and what follows them.
func withoutWord(name string) string {
	for _, secret := range []string{"sslpassword", "password"} {
		for at := 0; ; {
			next := strings.Index(name[at:], secret)
			if next < 0 {
				break
			}
			at += next
			if rest := strings.TrimLeft(name[at+len(secret):], " "); strings.HasPrefix(rest, "=") {
				return strings.TrimRight(name[:at], " ")
			}
			at += len(secret)
		}
	}
	return name
}

// reason is what went wrong, in one line. The same address is tried with TLS and without, and fails twice alike.
func reason(err error) string {
	var parse *pgconn.ParseConfigError
	if errors.As(err, &parse) {
		if inner := errors.Unwrap(parse); inner != nil {
			return inner.Error()
		}
		return "it is no address of a server"
	}
	lines := strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' || r == '\t' || r == '\r' })
	for i, line := range lines {
		lines[i] = strings.TrimSpace(line)
	}
	return strings.Join(slices.Compact(lines), " ")
}

// session is one connection. What the server warns of while it writes is kept: a wait for a
// standby that was cancelled ends with a warning and no error.
type session struct {
	*pgx.Conn
	warning atomic.Pointer[string]
	process int // that serves it, and since when
	began   time.Time
}

// settings hold for the whole session. Nothing limits a statement: one that was cut off may
// have been done. What was begun and not committed is undone for certain: whoever stands still in between (a suspended
// machine, a stopped process) soon holds nobody else up, and nobody waits for a lock for ever. Plans made while tables are
// empty must not scan them when they are full.
const settings = `SET statement_timeout = 0; SET lock_timeout = %d; SET idle_in_transaction_session_timeout = %d;
SET default_transaction_isolation = 'read committed'; SET default_transaction_read_only = off; SET client_min_messages = warning;
SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off; SET jit = off; SET enable_memoize = off; SET plan_cache_mode = force_generic_plan;
SELECT set_config('synchronous_commit', CASE current_setting('synchronous_commit') WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, false)`

// abandoned is how long a transaction waits for its client.
const abandoned = 30 * time.Second

// connect opens a connection. It is the only use of a context that ends: a statement that is
// under way is never cancelled.
func (a *address) connect(ctx context.Context) (*session, error) {
	s := &session{}
	config := a.config.Copy()
	config.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) {
		if n.SeverityUnlocalized == "WARNING" || n.Severity == "WARNING" {
			text := n.Message
			s.warning.Store(&text)
		}
	}
	c, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	s.Conn = c
	if err := s.isPostgres(a.name); err != nil {
		return nil, errors.Join(err, s.close())
	}
	if _, err := c.PgConn().Exec(context.Background(), fmt.Sprintf(settings, a.locks.Milliseconds(), abandoned.Milliseconds())).ReadAll(); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// prepare makes the statements that are used again and again.
func (s *session) prepare(statements map[string]string) error {
	for name, sql := range statements {
		if _, err := s.PgConn().Prepare(context.Background(), name, sql, nil); err != nil {
			return err
		}
	}
	return nil
}

// closing is how long a server is waited for when a connection ends in order.
const closing = 2 * time.Second

func (s *session) close() error {
	if s == nil || s.Conn == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), closing)
	defer cancel()
	return s.Conn.Close(ctx)
}

// cut ends a connection at once, whatever it waits for.
func (s *session) cut() {
	if s != nil && s.Conn != nil {
		s.PgConn().Conn().Close()
	}
}

// warned is what the server has warned of since it was asked last, or nothing.
func (s *session) warned() string {
	if text := s.warning.Swap(nil); text != nil {
		return *text
	}
	return ""
}
