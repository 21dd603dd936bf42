package e2e

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"leadferry/internal/pgtest"
	"leadferry/leadapi/sandbox"
)

// on is the command line of an import whose ledger is at an address.
func (w *world) on(address string, args ...string) []string {
	return append(words("import -m leads.yaml leads.csv --checkpoint", address, "--out", "none", "--quiet"), args...)
}

// set changes a setting of a server and waits until it holds.
func set(t *testing.T, s *pgtest.Server, name, value string) {
	t.Helper()
	s.Exec(t, s.URL("postgres"), "ALTER SYSTEM SET "+name+" = '"+value+"'", "SELECT pg_reload_conf()")
	eventually(t, "the setting holds", func() bool { return pgtest.Value[string](t, s.URL("postgres"), "SHOW "+name) == value })
}

// as returns an address with another user.
func as(user, address string) string {
	u, _ := url.Parse(address)
	u.User = url.User(user)
	return u.String()
}

// The owner prepares the ledger. The role leadferry_worker can do everything except forget, and can neither delete rows
// nor change tables. leadferry_reader can read everything except the key of the digests.
func TestLedgerRoles(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	address := server.Database(t)
	database := address[strings.LastIndex(address, "/")+1 : strings.Index(address, "?")]
	owner, worker, reader := "o_"+database, "w_"+database, "r_"+database
	server.Exec(t, address, "CREATE ROLE "+owner+" LOGIN CREATEROLE", "GRANT CREATE ON DATABASE "+database+" TO "+owner, "CREATE ROLE "+worker+" LOGIN", "CREATE ROLE "+reader+" LOGIN")
	w := newWorld(t, sandbox.Options{})
	w.leads(12)
	w.write("leads.yaml", mappingText+linkText+"  status: {from: \"{stage}\"}\n")
	stage := func(text string) {
		var b strings.Builder
		b.WriteString("id,org,name,stage\n")
		for i := range 12 {
			fmt.Fprintf(&b, "L%05d,%s,Person %d,%s\n", i, organizations[i%3], i, text)
		}
		w.write("leads.csv", b.String())
	}
	stage("open")
	for _, user := range []string{worker, reader} {
		if code, out := w.run(w.on(as(user, address))...); code != 4 || !strings.Contains(out, "checkpoint init") {
			t.Errorf("%s before the owner has prepared anything: exit %d\n%s", user, code, out)
		}
	}
	said := w.must(0, "checkpoint init", as(owner, address))
	w.must(0, "checkpoint init", as(owner, address)) // twice
	if !strings.Contains(said, "GRANT leadferry_worker TO") {
		t.Errorf("init does not say how roles are granted:\n%s", said)
	}
	if code, out := w.run(w.on(as(worker, address))...); code != 4 || !strings.Contains(out, "leadferry_worker") {
		t.Errorf("a user without a role: exit %d\n%s", code, out)
	}
	server.Exec(t, address, "GRANT leadferry_worker TO "+worker, "GRANT leadferry_reader TO "+reader)
	at := as(worker, address)
	w.must(0, w.on(at)...)
	w.must(0, w.on(at)...)
	stage("inProgress")
	command := func(name string, args ...string) []string {
		return append([]string{name, "-m", "leads.yaml", "leads.csv", "--checkpoint", at, "--out", "none", "--quiet"}, args...)
	}
	w.must(0, command("sync")...)
	w.must(0, command("reconcile", "--reconciliation", "none.csv")...)
	w.must(0, command("import", "--dry-run")...)
	w.must(0, command("import", "--fleet", "monday", "--shard", "0/2")...)
	w.must(0, command("import", "--fleet", "monday", "--shard", "1/2")...)
	if n := w.creates(); n != 12 {
		t.Errorf("%d leads were sent", n)
	}
	ledger := func(args ...string) []string {
		return append([]string{"checkpoint"}, append(args, "--checkpoint", at)...)
	}
	w.write("more.csv", "key,lead_id\nM1,lead-1\nM2,lead-2\n")
	for range 2 {
		w.must(0, ledger("adopt", "more.csv")...)
		w.must(0, ledger("check")...)
	}
	for _, args := range [][]string{{"status"}, {"workers"}, {"export"}, {"history", "L00001"}} {
		w.must(0, ledger(args...)...)
	}
	if code, out := w.run(ledger("forget", "M1")...); code == 0 || !strings.Contains(out, "owner") {
		t.Errorf("forget by a worker: exit %d\n%s", code, out)
	}
	for range 2 {
		w.must(0, "checkpoint forget M1 --checkpoint", as(owner, address))
	}
	w.must(0, ledger("check")...)
	at = as(reader, address)
	for _, args := range [][]string{{"status"}, {"workers"}, {"export"}, {"history", "L00001"}} {
		w.must(0, ledger(args...)...)
	}
	for _, args := range [][]string{w.on(at), command("import", "--dry-run"), ledger("adopt", "more.csv")} {
		if code, out := w.run(args...); code != 4 || !strings.Contains(out, "leadferry_worker") {
			t.Errorf("%v by a reader: exit %d\n%s", args, code, out)
		}
	}
	for _, view := range []string{"leads", "in_doubt", "runs", "decisions"} {
		pgtest.Value[int](t, at, "SELECT count(*) FROM leadferry."+view)
	}
	if !pgtest.Value[bool](t, at, "SELECT NOT has_table_privilege('leadferry.digest_keys', 'SELECT') AND NOT has_table_privilege('leadferry.lead_rows', 'UPDATE')") {
		t.Error("a reader can read the key of the digests, or write")
	}
	if !pgtest.Value[bool](t, as(worker, address), "SELECT NOT has_table_privilege('leadferry.lead_rows', 'DELETE') AND NOT has_schema_privilege('leadferry', 'CREATE')") {
		t.Error("a worker can delete rows or make tables")
	}
}

// While a fleet is at work, people run every command of checkpoint, twice. No lead is made twice or lost, and nobody
// can decide about a row that its worker may still send.
func TestLedgerCommandsBesideAFleet(t *testing.T) {
	t.Parallel()
	c := newCrew(t, 2, 60, sandbox.Options{})
	wake := [2]func() int{c.stopAt(c.worker(0), "answered:10"), c.stopAt(c.worker(1), "answered:10")}
	pgtest.Shared(t).Exec(t, c.ledger, `UPDATE leadferry.workers SET beat = beat + interval '1 hour'`) // so that they count as alive on a slow machine, too
	ledger := func(args ...string) (int, string) {
		if args[0] != "copy" && args[0] != "init" {
			args = append(args, "--checkpoint", c.ledger)
		}
		return c.run(append([]string{"checkpoint"}, args...)...)
	}
	c.write("adopted.csv", "key,lead_id\nM1,lead-1\nM2,lead-2\n")
	c.write("unknown.csv", "key,lead_id\nnobody,none\n")
	commands := []struct {
		code int
		args []string
	}{
		{0, []string{"status"}},
		{0, []string{"workers"}},
		{0, []string{"export"}},
		{0, []string{"export", "--state", "in_doubt"}},
		{0, []string{"check"}},
		{2, []string{"check", "--moved-here"}},
		{0, []string{"adopt", "adopted.csv"}},
		{2, []string{"resolve", "unknown.csv"}},
		{2, []string{"resolve", "--none-created"}},
		{2, []string{"resolve", "--none-created", "--yes"}},
		{0, []string{"history", "L00001"}},
		{0, []string{"forget", "M1"}},
		{0, []string{"forget", "nobody"}},
		{0, []string{"forget", "--unblock", "nobody"}},
		{4, []string{"copy", c.ledger, "elsewhere.db"}},
		{2, []string{"repair", c.ledger, "repaired.db"}},
		{0, []string{"init", c.ledger}},
	}
	for range 2 {
		for _, one := range commands {
			if code, out := ledger(one.args...); code != one.code || code == 2 && one.args[0] == "resolve" && !strings.Contains(out, "hint: ") {
				t.Errorf("checkpoint %v: exit %d, want %d\n%s", one.args, code, one.code, out)
			}
		}
	}
	for _, wake := range wake {
		if code := wake(); code != 0 {
			t.Errorf("a worker ended with %d", code)
		}
	}
	leads, keys := c.byRef(), c.keys()
	for key, id := range leads {
		if keys[key].Lead != id {
			t.Errorf("row %s: the service has the lead %s, the ledger says %+v", key, id, keys[key])
		}
	}
	if _, known := keys["M2"]; len(leads) != c.rows || !known || len(keys) != c.rows+1 {
		t.Errorf("the service has %d leads, the ledger knows %d keys", len(leads), len(keys))
	}
}

// If a trunk has a ledger in a file, a second one in PostgreSQL makes no lead before a person agrees, and the other way
// round. fault 143
func TestFileAndServerCountAsTwoLedgers(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	const other = "another checkpoint is in use for this trunk"
	begun := func(t *testing.T, first string) (*world, string) {
		w := newWorld(t, sandbox.Options{})
		w.leads(30)
		address := server.Database(t)
		w.must(0, append(importFour, "--limit", "10", "--checkpoint", strings.ReplaceAll(first, "DB", address))...)
		return w, address
	}
	refused := func(t *testing.T, w *world, place string, words ...string) {
		for _, more := range [][]string{nil, {"--yes"}, {"--out", "none"}} {
			contains(t, w.must(4, append(append(importFour, "--checkpoint", place), more...)...), words...)
		}
	}
	t.Run("file first", func(t *testing.T) {
		w, address := begun(t, "leads.db")
		refused(t, w, address, other, "leads.db", "10 leads")
		w.must(0, "checkpoint copy leads.db", address)
		w.must(0, append(importFour, "--limit", "20", "--checkpoint", address)...)
		w.holds(20)
	})
	t.Run("server first", func(t *testing.T) {
		w, _ := begun(t, "DB")
		refused(t, w, "leads.db", other, "10 leads")
		w.holds(10)
	})
	t.Run("the same service by another address, from another machine", func(t *testing.T) {
		w, address := begun(t, "DB")
		w.removeAll("state", "leadferry-runs")
		w.env = append(w.env, "LEADFERRY_LEADS_URL="+strings.Replace(w.way.LeadsURL, "127.0.0.1", "localhost", 1))
		refused(t, w, address, other, "10 leads")
		w.holds(10)
		w.must(0, "checkpoint export -o moved.csv --checkpoint", address, "--leads-url", w.way.LeadsURL)
		w.must(0, "checkpoint adopt moved.csv --checkpoint", address)
		w.must(0, append(importFour, "--limit", "20", "--checkpoint", address)...)
		w.holds(20)
	})
	t.Run("copied, run there, the file restored", func(t *testing.T) {
		w, address := begun(t, "leads.db")
		restore := w.backup("leads.db")
		w.must(0, "checkpoint copy leads.db", address)
		w.must(0, append(importFour, "--limit", "20", "--checkpoint", address)...)
		restore()
		refused(t, w, "leads.db", "it is at commit")
		w.must(0, append(importFour, "--checkpoint", address)...)
		w.holds(30)
	})
}
