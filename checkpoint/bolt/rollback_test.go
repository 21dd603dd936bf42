package bolt

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"leadferry/checkpoint"
)

// faults 21, 23, m18: an older copy is refused with the way out, which works.
func TestOlderCopyIsRefusedUntilAccepted(t *testing.T) {
	path := newPath(t)
	d := seeded(t, path, 5)
	older := killed(t, path)
	if err := claim(d, intentOf("later", 1)); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	restore(t, older, path)
	for _, o := range []Options{{}, {ReadOnly: true}, {Check: true}} {
		_, err := Open(path, target(), o)
		checkRefusal(t, err, checkpoint.ErrRolledBack)
		if !strings.Contains(err.Error(), "checkpoint check --accept-older") {
			t.Errorf("no way out: %v", err)
		}
	}
	d, err := Open(path, target(), Options{Accept: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	// The newer one stays refused, and what the older one does not know is held.
	d = opened(t, path, Options{AnyPlace: true})
	some, leads := d.lacks().some, d.lacks().leads
	if e := lookup(t, d, "later"); len(d.Info().Warnings) != 1 || e.State != checkpoint.Unknown || !mayLack(d, &e) || !some || leads != 1 {
		t.Errorf("incomplete %v, %d missing, later %+v, warnings %q", some, leads, e, d.Info().Warnings)
	}
	if e := lookup(t, d, "key-00000"); mayLack(d, &e) || len(d.header.ancestors) != 1 {
		t.Errorf("%+v may be missing; before it was %v", e, d.header.ancestors)
	}
}

func restore(t *testing.T, from, to string) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// Killed right after a commit, the newest meta page damaged: bbolt would show the
// commit before. faults 21, m18
func TestLostCommitIsNoticedAfterKill(t *testing.T) {
	path := newPath(t)
	seeded(t, path, 5)
	copied := killed(t, path)
	file, err := os.ReadFile(copied)
	if err != nil {
		t.Fatal(err)
	}
	img, err := inspectBytes(t, file)
	if err != nil {
		t.Fatal(err)
	}
	file[int64(img.TxID%2)*img.PageSize+headSize+20] ^= 1
	if err := os.WriteFile(copied, file, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = Open(copied, target(), Options{})
	checkRefusal(t, err, checkpoint.ErrRolledBack)
}

func TestAnotherCheckpointInPlaceIsRefused(t *testing.T) {
	path, other := newPath(t), newPath(t)
	seeded(t, path, 5).Close()
	seeded(t, other, 50).Close()
	restore(t, other, path)
	_, err := Open(path, target(), Options{})
	checkRefusal(t, err, checkpoint.ErrRolledBack)
	restore(t, other+".seq", path+".seq") // so that the check at the end passes
}

// Without PATH.seq, or with one that cannot be read, opening goes on and says so.
func TestMissingSequenceFileIsWarnedOf(t *testing.T) {
	for name, lose := range map[string]func(string) error{
		"missing": os.Remove,
		"cut":     func(p string) error { return os.Truncate(p, 10) },
		"foreign": func(p string) error {
			return os.WriteFile(p, []byte(strings.Repeat("x", len(seqLine{}.line()))), 0o600)
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := newPath(t)
			seeded(t, path, 5).Close()
			if err := lose(path + ".seq"); err != nil {
				t.Fatal(err)
			}
			d := opened(t, path, Options{AnyPlace: true})
			if len(d.Info().Warnings) != 1 || d.Info().Leads != 5 {
				t.Errorf("warnings %q, %d leads", d.Info().Warnings, d.Info().Leads)
			}
			d.Close()
			if d = opened(t, path, Options{AnyPlace: true}); len(d.Info().Warnings) != 0 {
				t.Errorf("warnings again: %q", d.Info().Warnings)
			}
		})
	}
}

// fault 18: a checkpoint that was removed is not begun anew, unless a person says so.
func TestRemovedCheckpointIsMissed(t *testing.T) {
	path := newPath(t)
	seeded(t, path, 5).Close()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	_, err := Open(path, target(), Options{AnyPlace: true})
	checkRefusal(t, err, checkpoint.ErrMissing)
	d := opened(t, path, Options{AnyPlace: true, Anew: true})
	if !d.Info().New || !strings.Contains(d.Info().Predecessor, "counts 8 leads") {
		t.Errorf("new %v: %s", d.Info().New, d.Info().Predecessor)
	}
}

// A state folder that was copied to a second machine, with the first one going on, cannot be
// seen to be two; but the move can. fault 128
func TestAnotherMachineIsWarnedOf(t *testing.T) {
	path := newPath(t)
	host := func(id string) string {
		name := filepath.Join(t.TempDir(), "machine-id")
		content(id)(t, name)
		return name
	}
	one, two := host("0123456789abcdef0123456789abcdef\n"), host("fedcba9876543210fedcba9876543210\n")
	none, odd := filepath.Join(t.TempDir(), "none"), host("uninitialized\n")
	for i, step := range []struct {
		host     string
		warnings int
	}{{one, 0}, {one, 0}, {none, 0}, {two, 0}, {two, 0}, {one, 1}, {one, 0}, {odd, 0}, {two, 0}} {
		d, err := Open(path, target(), Options{AnyPlace: true, host: step.host})
		if err != nil {
			t.Fatal(err)
		}
		if len(d.Info().Warnings) != step.warnings {
			t.Errorf("step %d: warnings %q, want %d", i, d.Info().Warnings, step.warnings)
		}
		d.Close()
	}
}

func TestSequenceFileIsNotFollowedThroughALink(t *testing.T) {
	path := newPath(t)
	canary := newPath(t)
	content("canary")(t, canary)
	if err := os.Symlink(canary, path+".seq"); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path, target(), Options{}); err == nil {
		t.Error("opened")
	}
	if b, _ := os.ReadFile(canary); string(b) != "canary" {
		t.Error("the link was followed")
	}
}

func TestMarkReadsOnlyWhatItWrote(t *testing.T) {
	want := seqLine{id: 1<<63 + 5, seq: 12345, leads: 99, clean: true, pid: 77, host: 1<<63 + 7}
	line := want.line()
	if got, ok := parseSeqLine(line); !ok || got != want {
		t.Errorf("%+v, %v", got, ok)
	}
	for i := range line {
		bad := append([]byte(nil), line...)
		bad[i] ^= 1
		if _, ok := parseSeqLine(bad); ok {
			t.Errorf("accepted %q", bad)
		}
	}
}

// A run that begins anew by a person's wish and is killed before it sends anything answers
// for that run alone.
func TestBeginningAnewIsAskedAgain(t *testing.T) {
	path := newPath(t)
	o := Options{AnyPlace: true, Witnesses: []checkpoint.Witness{{Source: "summary.json", Path: "elsewhere.db", ID: "7", Leads: 3, Target: target()}}}
	_, err := Open(path, target(), o)
	checkRefusal(t, err, checkpoint.ErrGone)
	o.Anew = true
	d, err := Open(path, target(), o)
	if err != nil {
		t.Fatal(err)
	}
	killed := killed(t, path)
	d.Drop()
	o.Anew = false
	if _, err := Open(killed, target(), o); !errors.Is(err, checkpoint.ErrGone) {
		t.Errorf("after a kill: %v", err)
	}
	o.Anew = true
	d, err = Open(killed, target(), o)
	if err != nil || d.Info().Predecessor == "" {
		t.Fatalf("asked again: %v", err)
	}
	if err := claim(d, intentOf("k", 1)); err != nil {
		t.Fatal(err)
	}
	d.Close()
	o.Anew = false
	if d, err = Open(killed, target(), o); err != nil {
		t.Fatal(err)
	}
	d.Close()
}

// The path that is to be named instead stays what it is in a shell. fault 127
func TestAPathInAHint(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("other shells")
	}
	for path, want := range map[string]string{
		"/srv/leads.db": "/srv/leads.db", "/srv/leads of 2026.db": `'/srv/leads of 2026.db'`, "-l.db": "./-l.db", "/srv/a\tb.db": `$'/srv/a\tb.db'`,
		"postgres://ann@db/leads?sslmode=require": `'postgres://ann@db/leads?sslmode=require'`, "/srv/$HOME.db": `'/srv/$HOME.db'`, "/srv/`x`!'s.db": "'/srv/`x`!'\\''s.db'",
	} {
		if got := checkpoint.Word(path); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
