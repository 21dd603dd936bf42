package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"leadferry/internal/pgtest"
	"leadferry/internal/testsupport/must"
	"leadferry/leadapi/sandbox"
)

// stoppedFleet is a fleet whose one worker stopped when the service had answered the last of its five rows.
func stoppedFleet(t *testing.T) (c *crew, wake func() (code int)) {
	t.Helper()
	c = newCrew(t, 1, 5, sandbox.Options{})
	c.inFlight = 1
	return c, c.stopAt(c.worker(0), "answered:5")
}

// silentFor sets the last sign of all workers back by minutes, once the server has carried out their statements.
func (c *crew) silentFor(minutes int) {
	const active = `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state = 'active'`
	eventually(c.t, "nothing is under way", func() bool { return pgtest.Value[int](c.t, c.ledger, active) == 1 }) // this query
	pgtest.Shared(c.t).Exec(c.t, c.ledger, fmt.Sprintf("UPDATE leadferry.workers SET beat = beat - interval '%d minutes'", minutes))
}

// alone is an import outside of the fleet, with its ledger.
func (c *crew) alone(args ...string) []string { return c.on(c.ledger, args...) }

// doubtfulRow is the row whose answer the stopped worker has not read.
func (c *crew) doubtfulRow() string {
	for key, k := range c.keys() {
		if k.State == inDoubt {
			return key
		}
	}
	c.t.Fatalf("no row is in doubt: %v", c.keys())
	return ""
}

// A person can decide about a row only when its worker has been silent for a quarter of an hour. If the answer comes
// after that, it counts, and checkpoint status says that it contradicts the person.
func TestFleetLateAnswerAfterAResolve(t *testing.T) {
	t.Parallel()
	for _, decided := range []string{"none", "exists", "lead-4711"} {
		t.Run(decided, func(t *testing.T) {
			t.Parallel()
			c, wake := stoppedFleet(t)
			lastRow := c.doubtfulRow()
			c.write("found.csv", "key,lead_id\n"+lastRow+","+decided+"\n")
			resolve := words("checkpoint resolve found.csv --checkpoint", c.ledger)
			contains(t, c.must(0, "checkpoint workers --checkpoint", c.ledger), "1 row in doubt may still get")
			for range 2 { // repeating it does not help
				if code, out := c.run(resolve...); code == 0 || !strings.Contains(out, "may be at work still") || !strings.Contains(out, "leadferry checkpoint workers") {
					t.Errorf("decided while the worker may be at work: exit %d\n%s", code, out)
				}
				c.silentFor(14 / 2)
			}
			c.silentFor(2)
			c.must(0, resolve...)
			c.must(0, resolve...)
			if decided != "none" { // the row is not sent again
				c.must(0, c.alone()...)
			}
			if code := wake(); code != 0 && code != 6 {
				t.Errorf("the worker ended with %d", code)
			}
			c.wholeFleet()
			if k := c.keys()[lastRow]; k.Lead != c.byRef()[lastRow] {
				t.Errorf("the ledger knows %+v", k)
			}
			if out := c.must(0, "checkpoint status --checkpoint", c.ledger); strings.Contains(out, "contradicted: ") != (decided != "exists") {
				t.Errorf("after %q:\n%s", decided, out)
			}
			c.must(0, c.alone()...)
			c.wholeFleet()
			if n := c.creates(); n != c.rows {
				t.Errorf("%d leads were sent", n)
			}
		})
	}
}

// --in-doubt resend sends a row again only when its worker has been silent for a quarter of an hour. If the first
// answer comes after that, the row keeps its second lead, and checkpoint status names the first one.
func TestFleetLateAnswerAfterAResend(t *testing.T) {
	t.Parallel()
	c, wake := stoppedFleet(t)
	lastRow := c.doubtfulRow()
	first := c.byRef()[lastRow]
	c.silentFor(2) // otherwise a run beside the worker is refused
	c.must(5, c.alone("--in-doubt", "resend")...)
	c.silentFor(7)
	c.must(5, c.alone("--in-doubt", "resend")...)
	if n := c.creates(); n != c.rows {
		t.Fatalf("%d leads were sent, one of them twice while its answer might come", n)
	}
	c.silentFor(8)
	c.must(0, c.alone("--in-doubt", "resend")...)
	if code := wake(); code != 0 && code != 6 {
		t.Errorf("the worker ended with %d", code)
	}
	if out := c.must(0, "checkpoint status --checkpoint", c.ledger); !strings.Contains(out, "contradicted: ") || !strings.Contains(out, first) {
		t.Errorf("status does not name the lead that was made first:\n%s", out)
	}
	if k := c.keys()[lastRow]; k.Lead == first || k.Lead == "" {
		t.Errorf("the ledger knows %+v", k)
	}
	c.must(0, c.alone("--in-doubt", "resend")...)
	if n := c.creates(); n != c.rows+1 {
		t.Errorf("%d leads were sent, want one more than rows", n)
	}
	c.must(0, "checkpoint check --checkpoint", c.ledger)
}

// strict is a crew whose ledger asks for a password and takes few connections.
type strict struct {
	*crew
	server *pgtest.Server
	owner  string // address for the user that made the database
}

func newStrict(t *testing.T, shards, rows int) *strict {
	t.Helper()
	server := pgtest.New(t, "max_connections=12")
	s := &strict{server: server, owner: server.URL("postgres")}
	s.crew = newCrewOn(t, server.URLAs("runs", "postgres"), shards, rows, sandbox.Options{Latency: 10 * time.Millisecond})
	s.must(0, "checkpoint init", s.owner)
	server.Exec(t, s.owner, "CREATE ROLE runs LOGIN", "GRANT leadferry_worker TO runs")
	rules := filepath.Join(server.Data(), "pg_hba.conf")
	old, err := os.ReadFile(rules)
	if err == nil {
		err = os.WriteFile(rules, append([]byte("local all runs scram-sha-256\n"), old...), 0o600)
	}
	must.Do(t, err)
	server.Exec(t, s.owner, "SELECT pg_reload_conf()")
	s.env = append(s.env, "PGPASSFILE="+filepath.Join(s.dir, "pgpass"))
	s.password("first")
	s.remembers("first")
	return s
}

// password changes the password on the server.
func (s *strict) password(word string) {
	s.t.Helper()
	s.server.Exec(s.t, s.owner, "ALTER ROLE runs PASSWORD '"+word+"'")
}

// remembers changes the password in the password file.
func (s *strict) remembers(word string) { s.write("pgpass", "*:*:*:runs:"+word+"\n") }

// hangUp ends all connections of the user runs, as a server does when it shuts down.
func (s *strict) hangUp() {
	s.t.Helper()
	s.server.Exec(s.t, s.owner, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'runs'")
}

// wholeFleet looks at the ledger as its owner, who needs no password.
func (s *strict) wholeFleet() {
	s.t.Helper()
	address := s.ledger
	defer func() { s.ledger = address }()
	s.ledger = s.owner
	s.crew.wholeFleet()
}

// begun starts a worker for the only shard, which stops in the midst of its rows.
func (s *strict) begun(args ...string) (wake func() (code int), said *strings.Builder) {
	s.t.Helper()
	c, said := s.worker(0, args...), new(strings.Builder)
	c.Stdout, c.Stderr = said, said
	return s.stopAt(c, "answered:20"), said
}

// A worker survives lost connections, and a new password that is in the password file. Otherwise it names PGPASSFILE.
func TestWorkerReconnectsWithANewPassword(t *testing.T) {
	t.Parallel()
	s := newStrict(t, 1, 200)
	wake, said := s.begun("--max-wait", "30s")
	s.hangUp()
	s.password("second")
	s.remembers("second")
	s.hangUp()
	if code := wake(); code != 0 {
		t.Errorf("exit %d\n%s", code, said.String())
	}
	s.wholeFleet()

	s = newStrict(t, 1, 200)
	wake, said = s.begun("--max-wait", "1s")
	s.password("second")
	s.hangUp()
	if code := wake(); code != 3 || !strings.Contains(said.String(), "PGPASSFILE") {
		t.Errorf("a password that the file lacks: exit %d\n%s", code, said.String())
	}
	if code, out := s.run(s.on(s.ledger)...); code != 3 || !strings.Contains(out, "PGPASSFILE") {
		t.Errorf("the same at the start: exit %d\n%s", code, out)
	}
	s.remembers("second")
	s.deaths = 1
	s.ended(s.worker(0), 0, 5)
	s.wholeFleet()
}

// If the server has too few connections for all workers, some wait for others to end. Workers that have begun go on.
func TestWorkersWaitForConnections(t *testing.T) {
	t.Parallel()
	s := newStrict(t, 10, 300)
	s.together(func(shard int) { s.ended(s.worker(shard, "--wait", "5m"), 0) })
	s.wholeFleet()

	s = newStrict(t, 1, 200)
	wake, said := s.begun()
	s.server.Exec(t, s.owner, "ALTER ROLE runs CONNECTION LIMIT 1")
	if out, _ := s.worker(0).CombinedOutput(); !strings.Contains(string(out), "needs a connection") {
		t.Errorf("a worker without room says:\n%s", out)
	}
	if code := wake(); code != 0 {
		t.Errorf("the one that had room ends with %d\n%s", code, said.String())
	}
	s.wholeFleet()
}
