package e2e

import (
	"os"
	"strings"
	"testing"
	"time"

	"leadferry/internal/pgtest"
	"leadferry/leadapi/sandbox"
)

// on is a run with its ledger at an address.
func (w *world) on(address string, args ...string) []string {
	return append([]string{"import", "-m", "leads.yaml", "leads.csv", "--checkpoint", address, "--out", "none", "--quiet"}, args...)
}

// set has a server's settings hold from now on.
func set(t *testing.T, s *pgtest.Server, name, value string) {
	t.Helper()
	s.Exec(t, s.URL("postgres"), "ALTER SYSTEM SET "+name+" = '"+value+"'", "SELECT pg_reload_conf()")
	eventually(t, "the setting holds", func() bool { return pgtest.Value[string](t, s.URL("postgres"), "SHOW "+name) == value })
}

// Whatever a server does not promise, and whatever the ledger has lost, ends a run with 4 before anything is sent, and says the way out.
func TestLedgerServersThatAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sandbox.Options{})
	w.leads(3)
	server := pgtest.New(t)
	address := server.URL("postgres")
	refused := func(address, words, hint string, args ...string) {
		t.Helper()
		code, out := w.run(w.on(address, args...)...)
		_, way, _ := strings.Cut(out, "hint: ")
		if code != 4 || !strings.Contains(out, words) || !strings.Contains(way, hint) {
			t.Errorf("%s: exit %d, want 4, %q, and the way out by %q\n%s", address, code, words, hint, out)
		}
		if n := w.creates(); n != 0 {
			t.Fatalf("%d leads were sent", n)
		}
	}
	refused("postgres://me:secret@db.example.com/leads", "password", "PGPASSFILE")
	refused(pgtest.Pooler(t, server, "transaction"), "pooler", "pool_mode = session")
	set(t, server, "fsync", "off")
	refused(address, "fsync is off", "a crash loses")
	set(t, server, "fsync", "on")
	refused(address, "no ledger", "check the target", "--require-checkpoint")
	standby := server.Standby(t)
	refused(standby.URL("postgres"), "standby", "target_session_attrs=read-write")
	refused(address, "waits for none of them", "--ledger-standby never-promoted")
	w.must(0, w.on(address, "--ledger-standby", "never-promoted", "--limit", "1")...)
	standby.Caught(t, server)
	server.Stop()
	standby.Promote(t)
	before := w.creates()
	var out string
	for _, args := range [][]string{nil, {"--ledger-standby", "never-promoted"}, {"--new-checkpoint=1"}} {
		var code int
		if code, out = w.run(w.on(standby.URL("postgres"), args...)...); code != 4 || !strings.Contains(out, "history has branched") || !strings.Contains(out, "--accept-older") {
			t.Errorf("a standby has taken over: %v ends with %d\n%s", args, code, out)
		}
	}
	w.must(0, "checkpoint", "check", id(t, out, "--accept-older"), "--checkpoint", standby.URL("postgres"))
	w.must(5, w.on(standby.URL("postgres"))...) // what it may have known is held
	if n := w.creates(); n != before {
		t.Errorf("%d leads were sent that it may have known", n-before)
	}
	standby.Exec(t, standby.URL("postgres"), `UPDATE leadferry.version SET number = number + 1`)
	for _, command := range []string{"status", "workers", "export", "check"} {
		if code, out := w.run("checkpoint", command, "--checkpoint", standby.URL("postgres")); code != 4 || !strings.Contains(out, "versions up to") {
			t.Errorf("checkpoint %s of a newer schema: exit %d\n%s", command, code, out)
		}
	}
}

// A server that stands still and keeps its connections: interrupted, the run does not wait for it for longer than a request may
// take, and says so. Afterwards nothing is made twice, and nothing is lost.
func TestALedgerThatStandsStill(t *testing.T) {
	t.Parallel()
	server := pgtest.New(t)
	c := newCrewOn(t, server.URL("postgres"), 1, 300, sandbox.Options{Latency: 20 * time.Millisecond})
	run := c.worker(0, "--timeout", "2s")
	var said strings.Builder
	run.Stdout, run.Stderr = &said, &said
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "leads are made", func() bool { return c.creates() > 20 })
	server.Freeze(t)
	run.Process.Signal(os.Interrupt)
	run.Wait()
	if code := run.ProcessState.ExitCode(); code != 130 && code != 3 || !strings.Contains(said.String(), "does not answer") {
		t.Errorf("exit %d\n%s", code, said.String())
	}
	server.Thaw(t)
	c.deaths = 1
	c.judge()
	c.ended(c.worker(0), 0, 5)
	c.wholeFleet()
}
