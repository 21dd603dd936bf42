// Package server connects to a PostgreSQL server that a ledger can rely on: its address, sessions and promises.
//
// Promises:
//
//   - A password in an address is refused and never shown. A server on another machine is verified in full.
//   - A server that is not PostgreSQL, or that does not promise durable commits, is refused; so is a pooler,
//     unless the address says that it keeps a connection for each session.
//   - A server that takes connections and does not answer is given up after a while. Nobody knows then whether it
//     carried out the last request.
//
// The package does not know the tables.
package server

import (
	"cmp"
	"errors"
	"net"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"leadferry/checkpoint"
)

// Address is where a server is, and how it is reached.
type Address struct {
	Name  string        // as it was given, which holds no secret
	Locks time.Duration // how long to wait for locks of others
}

// Parse reads an address as psql does, with environment and files. An unsafe address is a *[checkpoint.OpenError].
func Parse(name string) (*Address, error) {
	if hasPassword(name) {
		return nil, (&Address{Name: "postgres://…"}).Refuse(checkpoint.ErrAddress,
			"its address holds a password, which process lists and shell histories show",
			"put it into the file that PGPASSFILE names (a line host:port:database:user:password, mode 0600) "+
				"or into a service file")
	}
	a := &Address{Name: name, Locks: time.Minute}
	if _, _, err := a.config(); err != nil {
		return nil, err
	}
	return a, nil
}

// config returns what an address and its files say now: passwords and certificates change while a run goes on. pooled
// says that there is a pooler before the server, and that it keeps a connection for each session.
func (a *Address) config() (c *pgx.ConnConfig, pooled bool, err error) {
	refuse := func(text, hint string) error { return a.Refuse(checkpoint.ErrAddress, text, hint) }
	c, err = pgx.ParseConfig(a.Name)
	if err == nil && !isSafe(&c.Config) {
		c, err = pgx.ParseConfig(withTLS(a.Name))
	}
	if err != nil {
		return nil, false, refuse("its address cannot be read: "+reason(err),
			"it looks like postgres://user@db.example.com/leads")
	}
	pool := c.RuntimeParams["pooled"]
	switch {
	case c.RuntimeParams["hostaddr"] != "", pool != "" && pool != "session":
		return nil, false, refuse("its address has hostaddr=, or another pooled= than session",
			"name the server by host=; pooled=session says that a pooler keeps a connection for each session")
	case !isSafe(&c.Config):
		return nil, false, refuse("it is on another machine, and its connection would not be verified in full",
			"add sslmode=verify-full, and sslrootcert=FILE where the server's certificate is of an authority of "+
				"your own")
	}
	for _, word := range strings.Fields(psqlsOwn) {
		delete(c.RuntimeParams, word)
	}
	c.ConnectTimeout = min(max(c.ConnectTimeout, 10*time.Second), time.Minute)
	c.RuntimeParams["application_name"] = cmp.Or(c.RuntimeParams["application_name"], "leadferry")
	keep := net.KeepAliveConfig{Enable: true, Idle: 10 * time.Second, Interval: 5 * time.Second, Count: 3}
	c.DialFunc = (&net.Dialer{KeepAliveConfig: keep}).DialContext
	return c, pool != "", nil
}

// psqlsOwn are words in addresses that are meant for the client. A server would refuse them as settings.
const psqlsOwn = `pooled keepalives keepalives_idle keepalives_interval keepalives_count tcp_user_timeout gssencmode
	load_balance_hosts fallback_application_name sslcompression`

// Refuse says why the checkpoint at the address cannot be used; kind is the sentinel.
func (a *Address) Refuse(kind error, text, hint string) error {
	return checkpoint.Refuse(a.Name, kind, text, hint)
}

// refuse is Refuse for a server that cannot be relied on.
func (a *Address) refuse(text, hint string) error { return a.Refuse(checkpoint.ErrPlace, text, hint) }

// RefuseUnchanging refuses a server that takes no changes.
func (a *Address) RefuseUnchanging() error {
	return a.refuse("its server takes no changes: default_transaction_read_only is on",
		"if the database has moved, name its new address with --checkpoint; if not, have "+
			"default_transaction_read_only switched off for this user")
}

// Explain makes an error of the server a *[checkpoint.StoreError]. StoreErrors, damage and refusals stay as they are.
func (a *Address) Explain(err error) error {
	if err == nil || errors.As(err, new(*checkpoint.OpenError)) || errors.As(err, new(*checkpoint.StoreError)) ||
		errors.Is(err, checkpoint.ErrTerms) || errors.Is(err, checkpoint.ErrDamaged) {
		return err
	}
	text, hint := reason(err), ""
	if e := (*pgconn.PgError)(nil); errors.As(err, &e) {
		switch e.Code {
		case "28000", "28P01":
			hint = "check whether this user may connect (pg_hba.conf), and its password (PGPASSFILE)"
		case "53300":
			hint = "each run needs a connection: have max_connections raised, start fewer, or wait for room with --wait"
		case "3D000":
			hint = "check its name; if it was dropped, restore it: nothing else knows which leads were made"
		case "42P01", "3F000":
			return a.Refuse(checkpoint.ErrRolledBack, "its tables are gone: somebody has dropped them",
				"restore them from a backup: nothing else knows which leads were made")
		case "42501":
			return a.Refuse(checkpoint.ErrPlace, "this user may not do that: "+text, "grant the user the role "+
				"leadferry_worker, or leadferry_reader to look only; rows are forgotten by the owner of the schema")
		case "55P03":
			text = "somebody else holds a lock for too long (pg_blocking_pids says who, while it lasts)"
		}
	}
	return &checkpoint.StoreError{Text: "checkpoint " + a.Name + ": its server: " + text, Hint: hint, Err: err}
}

// IsPassing reports whether the server may do later what it cannot do now: it has no room, memory or connection left,
// it is a standby that nobody has promoted yet, or somebody has cancelled the statement. Nothing was done.
func IsPassing(err error) bool {
	var e *pgconn.PgError
	return errors.As(err, &e) && (strings.HasPrefix(e.Code, "53") || e.Code == "25006" || e.Code == "57014")
}

// isSafe reports whether every host of a configuration is this machine or verified in full.
func isSafe(c *pgconn.Config) bool {
	all := append([]*pgconn.FallbackConfig{{Host: c.Host, TLSConfig: c.TLSConfig}}, c.Fallbacks...)
	return !slices.ContainsFunc(all, func(f *pgconn.FallbackConfig) bool {
		verified := f.TLSConfig != nil && !f.TLSConfig.InsecureSkipVerify && f.TLSConfig.ServerName != ""
		isSocket := strings.HasPrefix(f.Host, "/") || strings.HasPrefix(f.Host, "@")
		return !verified && !isSocket && f.Host != "localhost" && !net.ParseIP(f.Host).IsLoopback()
	})
}

// withTLS adds full verification to an address, unless somebody has said how connections are verified.
func withTLS(name string) string {
	const param = "sslmode=verify-full"
	switch {
	case strings.Contains(name, "sslmode") || os.Getenv("PGSSLMODE") != "" || strings.Contains(name, "service=") ||
		os.Getenv("PGSERVICE") != "":
		return name
	case !strings.Contains(name, "://"):
		return name + " " + param
	case strings.Contains(name, "?"):
		return name + "&" + param
	}
	return name + "?" + param
}

// hasPassword reports whether an address holds a password, even if the address cannot be read.
func hasPassword(name string) bool {
	word := `(?i)(password|passwd|pwd|\bpass)\s*=`
	u, err := url.Parse(name)
	if err != nil {
		return regexp.MustCompile(word + `|://[^@]*:[^@]*@`).MatchString(name)
	}
	_, typed := u.User.Password()
	return typed || regexp.MustCompile(word).MatchString(name) || u.Query().Has("password") ||
		u.Query().Has("sslpassword")
}

// reason returns what went wrong, in one line. An address is tried with TLS and without, and may fail twice alike.
func reason(err error) string {
	lines := strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' || r == '\t' || r == '\r' })
	return strings.Join(slices.Compact(checkpoint.Map(lines, strings.TrimSpace)), " ")
}
