package e2e

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"leadferry/internal/pgtest"
	"leadferry/internal/testsupport/must"
	"leadferry/leadapi/sandbox"
)

// fleetSeed repeats one round of TestFleetMix. A round that fails logs its seed.
var fleetSeed = flag.Uint64("fleetseed", 0, "the seed of the one round that TestFleetMix tries; 0: as many random rounds as -fleetrounds says")

// storm is a fleet that meets random disasters.
type storm struct {
	*crew
	random  *rand.Rand
	server  *pgtest.Server // the one that new workers use
	standby *pgtest.Server // follows server; nil: none
	waits   bool           // server waits for the standby
	old     *pgtest.Server // goes on after a standby took its place; nil: none
	lossy   bool           // a takeover may have lost commits
	taken   bool           // the server waited for a standby that did not exist, and no longer does
	hands   []*hand
	events  []string // what happened, in order
}

// hand is a worker that runs, or has ended.
type hand struct {
	cmd    *exec.Cmd
	shard  int
	said   *strings.Builder
	ended  chan struct{}
	paused bool
	killed bool
	left   bool // it works on a server that another one has replaced
}

// TestFleetMix kills, pauses, continues and replaces workers. It kills and freezes their server, ends its connections,
// lets it wait for a standby that does not exist, and replaces it by a standby. Meanwhile a person settles doubts. No
// lead is made twice or lost, and no death leaves more in doubt than it may.
func TestFleetMix(t *testing.T) {
	t.Parallel()
	for range *fleetRounds {
		seed := *fleetSeed
		if seed == 0 {
			seed = rand.Uint64()
		}
		if t.Run("round", func(t *testing.T) { mix(t, seed) }); t.Failed() || *fleetSeed != 0 {
			return
		}
	}
}

func mix(t *testing.T, seed uint64) {
	t.Logf("repeat it with -run TestFleetMix -fleetseed %d", seed)
	s := &storm{random: rand.New(rand.NewPCG(seed, 19))}
	s.server = pgtest.New(t)
	s.crew = newCrewOn(t, s.server.URL("postgres"), 1+s.random.IntN(3), 150, sandbox.Options{Latency: time.Duration(2+s.random.IntN(15)) * time.Millisecond})
	if s.random.IntN(2) == 0 {
		s.standby = s.server.Standby(t)
		if s.waits = s.random.IntN(3) > 0; s.waits {
			set(t, s.server, "synchronous_standby_names", "*")
		}
	}
	t.Cleanup(func() {
		if s.release(); t.Failed() {
			t.Log(strings.Join(s.events, "\n"))
		}
	})
	disasters := []func(){s.start, s.start, s.start, s.kill, s.pause, s.pause, s.resume, s.cut, s.crash, s.freeze, s.cancel, s.person, s.promote}
	for shard := range s.shards {
		s.begin(shard)
	}
	for range 14 {
		time.Sleep(time.Duration(s.random.IntN(80)) * time.Millisecond)
		disasters[s.random.IntN(len(disasters))]()
	}
	s.calm()
}

func (s *storm) note(format string, args ...any) {
	s.events = append(s.events, fmt.Sprintf(format, args...))
}

// begin starts a worker of a shard.
func (s *storm) begin(shard int) {
	h := &hand{shard: shard, said: &strings.Builder{}, ended: make(chan struct{})}
	h.cmd = s.hired(shard)
	h.cmd.Stdout, h.cmd.Stderr = h.said, h.said
	must.Do(s.t, h.cmd.Start())
	go func() { defer close(h.ended); h.cmd.Wait() }()
	s.hands = append(s.hands, h)
	s.note("%d: begins on %d", h.cmd.Process.Pid, shard)
}

// hired is a worker of a shard, not yet started.
func (s *storm) hired(shard int) *exec.Cmd {
	args := []string{"--max-wait", "2s", "--wait", "20s", "--timeout", "5s"}
	if s.standby != nil && !s.waits {
		args = append(args, "--ledger-standby", "never-promoted")
	}
	return s.worker(shard, args...)
}

func (s *storm) start() { s.begin(s.random.IntN(s.shards)) }

// some returns a random worker that has not ended and fits is, or nil.
func (s *storm) some(is func(*hand) bool) *hand {
	fit := slices.DeleteFunc(slices.Clone(s.hands), func(h *hand) bool { return over(h.ended, 0) || !is(h) })
	if len(fit) == 0 {
		return nil
	}
	return fit[s.random.IntN(len(fit))]
}

func (s *storm) signal(sig syscall.Signal, is func(*hand) bool) *hand {
	h := s.some(is)
	if h != nil {
		h.cmd.Process.Signal(sig)
		s.note("%d: %v", h.cmd.Process.Pid, sig)
	}
	return h
}

func (s *storm) kill() {
	if h := s.signal(syscall.SIGKILL, func(*hand) bool { return true }); h != nil {
		h.killed = true
		<-h.ended
	}
}

func (s *storm) pause() {
	if h := s.signal(syscall.SIGSTOP, func(h *hand) bool { return !h.paused }); h != nil {
		h.paused = true
	}
}

func (s *storm) resume() {
	if h := s.signal(syscall.SIGCONT, func(h *hand) bool { return h.paused }); h != nil {
		h.paused = false
	}
}

// cut ends connections.
func (s *storm) cut() {
	s.note("connections are cut")
	s.server.Exec(s.t, s.server.URL("postgres"), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'leadferry' AND random() < 0.7`)
}

// crash kills all processes of the server and starts it again.
func (s *storm) crash() {
	s.note("the server is killed")
	s.server.Kill()
	time.Sleep(time.Duration(s.random.IntN(300)) * time.Millisecond)
	must.Do(s.t, s.server.Start())
}

func (s *storm) freeze() {
	s.note("the server is frozen")
	s.server.Freeze(s.t)
	time.Sleep(time.Duration(s.random.IntN(500)) * time.Millisecond)
	s.server.Thaw(s.t)
}

// cancel makes the server wait for a standby that does not exist, and cancels those waits.
func (s *storm) cancel() {
	s.note("waits for a standby are cancelled")
	before := pgtest.Value[string](s.t, s.server.URL("postgres"), "SHOW synchronous_standby_names")
	set(s.t, s.server, "synchronous_standby_names", "gone")
	for range 1 + s.random.IntN(3) {
		time.Sleep(time.Duration(s.random.IntN(100)) * time.Millisecond)
		s.server.Exec(s.t, s.server.URL("postgres"), `SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'`)
	}
	s.server.Exec(s.t, s.server.URL("postgres"), "ALTER SYSTEM SET synchronous_standby_names = '"+before+"'", "SELECT pg_reload_conf()")
	s.taken = s.taken || before == ""
}

// person settles what killed workers have left in doubt, as if 20 minutes had passed.
func (s *storm) person() {
	var dead []string
	for _, h := range s.hands {
		if h.killed && !h.left {
			dead = append(dead, fmt.Sprint(h.cmd.Process.Pid))
		}
	}
	if len(dead) == 0 || s.lossy || !pgtest.Value[bool](s.t, s.ledger, `SELECT to_regclass('leadferry.lead_rows') IS NOT NULL`) {
		return
	}
	s.arrived()
	of := ` WHERE process IN (` + strings.Join(dead, ", ") + `)`
	s.server.Exec(s.t, s.ledger, `UPDATE leadferry.workers SET beat = beat - interval '20 minutes'`+of)
	keys := pgtest.Value[string](s.t, s.ledger, `SELECT coalesce(string_agg(convert_from(key, 'UTF8'), ' '), '') FROM leadferry.lead_rows WHERE state = 4 AND worker IN (SELECT worker FROM leadferry.workers`+of+`)`)
	if keys == "" {
		return
	}
	found, list := s.byRef(), "key,lead_id\n"
	for _, key := range strings.Fields(keys) {
		id := found[key]
		if id == "" {
			id = "none"
		}
		list += key + "," + id + "\n"
	}
	s.write("found.csv", list)
	code, out := s.run("checkpoint resolve found.csv --checkpoint", s.ledger)
	s.note("a person settles %s: %d %s", keys, code, out)
}

// promote lets the standby take over. If the server waited for it, it has all commits, and the old server goes on.
func (s *storm) promote() {
	if s.standby == nil || s.random.IntN(2) == 0 {
		return
	}
	if !s.waits && !pgtest.Value[bool](s.t, s.standby.URL("postgres"), `SELECT to_regclass('leadferry.members') IS NOT NULL AND (xpath('/row/n/text()', query_to_xml('SELECT count(*) AS n FROM leadferry.workers', false, true, '')))[1]::text <> '0'`) {
		return // it has never heard of the ledger, so no run could notice the loss
	}
	s.note("a standby takes over")
	if s.waits {
		s.old = s.server
	} else {
		s.lossy = true
		s.standby.Cut(s.t)
		time.Sleep(100 * time.Millisecond)
		s.server.Kill()
	}
	s.standby.Exec(s.t, s.standby.URL("postgres"), `ALTER SYSTEM SET synchronous_standby_names = ''`, `ALTER SYSTEM SET primary_conninfo = ''`)
	s.standby.Promote(s.t)
	set(s.t, s.standby, "synchronous_standby_names", "")
	s.server, s.standby, s.waits = s.standby, nil, false
	s.ledger = s.server.URL("postgres")
	for _, h := range s.hands {
		h.left = true
	}
}

// release kills the workers that are left.
func (s *storm) release() {
	for _, h := range s.hands {
		h.cmd.Process.Kill()
		<-h.ended
		s.note("%d said: %s", h.cmd.Process.Pid, h.said)
	}
}

// calm lets all workers end and judges what they left.
func (s *storm) calm() {
	if s.old != nil {
		s.old.Kill()
	}
	for _, h := range s.hands {
		if h.cmd.Process.Signal(syscall.SIGCONT); !over(h.ended, 2*time.Minute) {
			h.cmd.Process.Signal(syscall.SIGABRT) // it prints the stacks of all goroutines
			over(h.ended, 10*time.Second)
			s.t.Fatalf("the worker %d does not end", h.cmd.Process.Pid)
		}
		code := h.cmd.ProcessState.ExitCode()
		s.note("%d: exit %d", h.cmd.Process.Pid, code)
		switch {
		case code == 0 || code == 5 || code == 6:
			continue
		case code != 3 && (code != -1 || !h.killed) && (code != 4 || !s.lossy && !h.left && !s.taken): // refused: this machine knows newer commits, or the server waits for no standby now
			s.t.Errorf("a worker ended with %d\n%s", code, h.said)
		}
		s.deaths++
	}
	if s.lossy {
		s.afterLoss()
	}
	for shard := range s.shards {
		s.ended(s.hired(shard), 0, 5)
	}
	if doubts := s.judge(); len(s.keys()) != s.rows {
		s.t.Errorf("the ledger knows %d rows of %d, %d of them in doubt", len(s.keys()), s.rows, doubts)
	}
	s.must(0, "checkpoint check --checkpoint", s.ledger)
}

// knownWhole reports whether no worker learned of a commit that the standby lacks. Then all that may have gone on had
// begun while the server waited for a standby that never answered.
func (s *storm) knownWhole() bool {
	return pgtest.Value[bool](s.t, s.ledger, `SELECT bool_and(standby = 'waited for') FROM leadferry.workers 
		WHERE worker = (SELECT max(worker) FROM leadferry.workers)
			OR ended IS NULL AND fenced IS NULL AND beat > (SELECT max(beat) - interval '15 minutes' FROM leadferry.workers)`)
}

// afterLoss checks a ledger that has lost commits: no worker begins with it before a person accepts it, and then
// unknown rows are held in doubt.
func (s *storm) afterLoss() {
	s.deaths = s.rows // whatever was lost
	if s.knownWhole() {
		return
	}
	before := s.creates()
	refused := s.hired(0)
	said, _ := refused.CombinedOutput()
	if code := refused.ProcessState.ExitCode(); code != 4 {
		s.t.Errorf("a worker ended with %d\n%s", code, said)
	}
	s.must(0, "checkpoint check", id(s.t, string(said), "--accept-older"), "--checkpoint", s.ledger)
	for shard := range s.shards {
		s.ended(s.hired(shard), 0, 5)
	}
	if n := s.creates(); n != before {
		s.t.Errorf("%d leads were made that the ledger may have known", n-before)
	}
}
