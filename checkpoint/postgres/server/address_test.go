package server

import (
	"fmt"
	"testing"
)

// A server on another machine is verified in full, also where nobody has said so.
func TestOtherMachinesAreVerified(t *testing.T) {
	for _, host := range []string{"db.example.com", "db.service.example.com"} {
		a, err := Parse("postgres://" + host + "/leads")
		if err != nil || a.config.TLSConfig == nil || a.config.TLSConfig.ServerName != host || len(a.config.Fallbacks) > 0 {
			t.Errorf("%s is not verified in full by default: %v", host, err)
		}
	}
}

// Words that psql takes and no server does are left out.
func TestWordsOfPsql(t *testing.T) {
	a, err := Parse("host=/tmp dbname=leads keepalives=1 keepalives_idle=30 tcp_user_timeout=1000 gssencmode=disable options='-c geqo=off'")
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(a.current().RuntimeParams); got != "map[application_name:leadferry options:-c geqo=off]" {
		t.Errorf("the server is told %s", got)
	}
}
