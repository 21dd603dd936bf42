package server

import (
	"fmt"
	"testing"

	"leadferry/internal/testsupport/must"
)

// The certificate of a server on another machine is fully verified, even if the address does not ask for it.
func TestServersOnOtherMachinesAreVerified(t *testing.T) {
	for _, host := range []string{"db.example.com", "db.service.example.com"} {
		c, _, err := (&Address{Name: "postgres://" + host + "/leads"}).config()
		if err != nil || c.TLSConfig == nil || c.TLSConfig.ServerName != host || len(c.Fallbacks) > 0 {
			t.Errorf("%s is not verified in full by default: %v", host, err)
		}
	}
}

// Settings that psql accepts but a server does not know are left out.
func TestSettingsForPsqlAreNotSentToTheServer(t *testing.T) {
	c, _, err := (&Address{Name: "host=/tmp dbname=leads keepalives=1 keepalives_idle=30 tcp_user_timeout=1000 gssencmode=disable options='-c geqo=off'"}).config()
	must.Do(t, err)
	if got := fmt.Sprint(c.RuntimeParams); got != "map[application_name:leadferry options:-c geqo=off]" {
		t.Errorf("the server gets %s", got)
	}
}

// Other products that speak PostgreSQL's protocol, and versions before 14, are refused by their version text.
func TestOnlyPostgreSQL14AndLaterIsAccepted(t *testing.T) {
	for version, fit := range map[string]bool{
		"CockroachDB CCL v24.1.0 (x86_64-pc-linux-gnu)":                   false,
		"PostgreSQL 15.2-YB-2.25.0.0-b0 on x86_64-pc-linux-gnu":           false,
		"PostgreSQL 8.0.2 on i686-pc-linux-gnu, compiled, Redshift 1.0.6": false,
		"Materialize v0.100": false,
		"PostgreSQL 13.14 (Debian 13.14-1) on x86_64-pc-linux-gnu":         false,
		"PostgreSQL 9.6.24 on x86_64-pc-linux-gnu":                         false,
		"PostgreSQL 15.18 (Debian 15.18-0+deb12u1) on x86_64-pc-linux-gnu": true,
		"PostgreSQL 19devel on x86_64-pc-linux-gnu":                        true,
		"PostgreSQL 18rc1 on x86_64-pc-linux-gnu":                          true,
	} {
		if isFit(version) != fit {
			t.Errorf("%s: %v", version, !fit)
		}
	}
}
