package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"leadferry/internal/pgtest"
	"leadferry/leadapi/sandbox"
)

// A file first and PostgreSQL then, or the other way round, or another database by mistake: each is another ledger of the
// trunk, which makes no lead before a person has said so. fault 143
func TestFilesAndServersAreJudgedAlike(t *testing.T) {
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
		w.must(0, "checkpoint", "copy", "leads.db", address)
		w.must(0, append(importFour, "--limit", "20", "--checkpoint", address)...)
		w.holds(20)
	})
	t.Run("server first", func(t *testing.T) {
		w, _ := begun(t, "DB")
		refused(t, w, "leads.db", other, "10 leads")
		w.holds(10)
	})
	t.Run("another database", func(t *testing.T) {
		w, _ := begun(t, "DB")
		refused(t, w, server.Database(t), other)
		w.holds(10)
	})
	t.Run("copied, run there, the file restored", func(t *testing.T) {
		w, address := begun(t, "leads.db")
		restore := w.backup("leads.db")
		w.must(0, "checkpoint", "copy", "leads.db", address)
		w.must(0, append(importFour, "--limit", "20", "--checkpoint", address)...)
		restore()
		refused(t, w, "leads.db", "it is at commit")
		w.must(0, append(importFour, "--checkpoint", address)...)
		w.holds(30)
	})
	t.Run("a dump put back", func(t *testing.T) {
		w, address := begun(t, "DB")
		out, err := exec.Command(pgtest.Program(t, "pg_dump"), "-Fc", "-f", filepath.Join(w.dir, "dump"), address).CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		w.must(0, append(importFour, "--limit", "20", "--checkpoint", address)...)
		server.Exec(t, address, `DROP SCHEMA leadferry CASCADE`)
		if out, err := exec.Command(pgtest.Program(t, "pg_restore"), "-d", address, filepath.Join(w.dir, "dump")).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		refused(t, w, address, "does not know the run")
		w.holds(20)
	})
}

// Sixteen workers, each in a container with nothing of its own, twice: none is stopped by what it cannot know.
func TestAFleetWithNothingOfItsOwn(t *testing.T) {
	t.Parallel()
	c := newCrew(t, 16, 320, sandbox.Options{})
	for range 2 {
		c.together(func(shard int) {
			w := c.worker(shard)
			own := t.TempDir()
			w.Env = append(slices.Clone(w.Env), "XDG_STATE_HOME="+own, "XDG_CONFIG_HOME="+own, "HOME=/nonexistent", "TMPDIR=/nonexistent")
			c.ended(w, 0)
		})
	}
	c.holds(320)
}

// What another user wrote in the same folder may tell of leads: it refuses a checkpoint that knows none yet, by name. Root
// reads what users wrote. fault 144
func TestTheWitnessOfAnotherUser(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	w := newWorld(t, sandbox.Options{})
	w.dir = h.shared
	w.leads(20)
	as := func(uid uint32, state string, want int, more ...string) string {
		t.Helper()
		c := exec.Command(h.program, append(append([]string{}, importFour...), more...)...)
		c.Dir, c.Env = h.shared, append(slices.Clone(w.env), "XDG_STATE_HOME="+state, "HOME="+state, "XDG_CONFIG_HOME="+state, "TMPDIR="+state)
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
		out, err := c.CombinedOutput()
		if c.ProcessState == nil || c.ProcessState.ExitCode() != want {
			t.Fatalf("%v, want exit code %d\n%s", err, want, out)
		}
		return string(out)
	}
	h.ok(os.Chmod(filepath.Join(h.shared, "leads.csv"), 0o644))
	h.ok(os.Chmod(filepath.Join(h.shared, "leads.yaml"), 0o644))
	roots := t.TempDir()
	as(0, roots, 0, "--limit", "10")
	h.ok(os.Chmod(filepath.Join(h.shared, "leadferry-runs"), 0o777))
	contains(t, as(user, h.home, 4), "leadferry-runs/", "cannot be read", "permission denied")
	w.holds(10)
	answer := id(t, as(user, h.home, 4), "--new-checkpoint")
	as(user, h.home, 4, answer+"0")
	w.holds(10)
	contains(t, as(0, t.TempDir(), 4), "another checkpoint is in use for this trunk")
	w.holds(10)
}
