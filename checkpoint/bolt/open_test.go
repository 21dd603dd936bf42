package bolt

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"leadferry/checkpoint"
	"leadferry/internal/testsupport/must"
)

// faults 17, 24, 25, 27: a path without a good checkpoint of this target is refused with a reason, and left as it is.
func TestOpenRefuses(t *testing.T) {
	other := target()
	other.TrunkID = "trunk-2"
	tests := map[string]struct {
		prepare func(t *testing.T, path string)
		target  checkpoint.Target
		options Options
		want    error
		text    string
	}{
		"missing, required":  {options: Options{Require: true}, want: checkpoint.ErrMissing, text: "does not exist"},
		"missing, read only": {options: Options{ReadOnly: true}, want: checkpoint.ErrMissing, text: "does not exist"},
		"size 0":             {prepare: content(""), want: checkpoint.ErrDamaged, text: "empty"},
		"text":               {prepare: content(strings.Repeat("key,lead_id\n", 2000)), want: checkpoint.ErrDamaged, text: "begin"},
		"directory":          {prepare: func(t *testing.T, path string) { os.Mkdir(path, 0o700) }, want: nil, text: "directory"},
		"other database":     {prepare: database(nil), want: checkpoint.ErrDamaged, text: "not a checkpoint"},
		"other target":       {prepare: created, target: other, want: checkpoint.ErrTarget, text: `trunk "trunk-1"`},
		"older version":      {prepare: database(func(h *header) { h.Format = checkpoint.Format - 1 }), want: checkpoint.ErrVersion, text: "format version 21; this program reads version 22"},
		"newer version":      {prepare: database(func(h *header) { h.Format = checkpoint.Format + 1 }), want: checkpoint.ErrVersion, text: "format version 23; this program reads version 22"},
		"no buckets":         {prepare: database(func(*header) {}), want: checkpoint.ErrDamaged, text: "missing"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			path := newPath(t)
			if test.prepare != nil {
				test.prepare(t, path)
			}
			_ = os.Chmod(path, 0o755) // if it exists
			before, _ := os.ReadFile(path)
			mode := modeOf(path)
			for _, beside := range Companions(path) {
				content("somebody's")(t, beside)
			}
			if test.target == (checkpoint.Target{}) {
				test.target = target()
			}
			_, err := Open(path, test.target, test.options)
			var refused *checkpoint.OpenError
			if !errors.As(err, &refused) || !strings.Contains(err.Error(), test.text) || !strings.Contains(err.Error(), path) {
				t.Fatalf("got %v, want %q", err, test.text)
			}
			if refused.Hint == "" && !errors.Is(err, checkpoint.ErrMissing) { // the command adds its hint
				t.Errorf("%v: no hint", err)
			}
			if test.want != nil && !errors.Is(err, test.want) {
				t.Errorf("%v is not %v", err, test.want)
			}
			if after, _ := os.ReadFile(path); string(after) != string(before) || modeOf(path) != mode {
				t.Errorf("the file was changed; its mode was %v and is %v", mode, modeOf(path))
			}
			for _, beside := range Companions(path) {
				if text, err := os.ReadFile(beside); string(text) != "somebody's" {
					t.Errorf("%s: %q, %v", beside, text, err)
				}
			}
		})
	}
}

func modeOf(path string) fs.FileMode {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Mode()
}

func content(s string) func(*testing.T, string) {
	return func(t *testing.T, path string) {
		must.Do(t, os.WriteFile(path, []byte(s), 0o600))
	}
}

func created(t *testing.T, path string) {
	d := open(t, path, Options{})
	must.Do(t, d.Close())
}

// database makes a bbolt file that is empty, or holds only the header that change makes.
func database(change func(*header)) func(*testing.T, string) {
	return func(t *testing.T, path string) {
		db, err := bbolt.Open(path, 0o600, nil)
		must.Do(t, err)
		err = db.Update(func(tx *bbolt.Tx) error {
			if change == nil {
				return nil
			}
			h := newHeader(target())
			change(&h)
			b, err := tx.CreateBucket(inMeta)
			return errors.Join(err, b.Put(headerKey, seal(checkpoint.Encode(&h), headerKey)))
		})
		must.Do(t, errors.Join(err, db.Close()))
	}
}

// fault 18: a new file is announced once, is private, and no other file is left.
func TestNewCheckpointIsAnnouncedAndPrivate(t *testing.T) {
	path := newPath(t)
	d := opened(t, path, Options{AnyPlace: true})
	if !d.Info().New || len(d.Info().Warnings) != 0 || d.path == "" {
		t.Error("not announced as new:", d.Info().Warnings)
	}
	must.Do(t, errors.Join(claim(d, intentOf("a", 1)), d.Close()))
	if d = opened(t, path, Options{AnyPlace: true}); d.Info().New || len(d.Info().Warnings) != 0 {
		t.Error("announced as new again:", d.Info().Warnings)
	}
	files, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(files) != 1 {
		t.Errorf("files left: %v %v", files, err)
	}
	for _, f := range files {
		if info, err := f.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v", f.Name(), info.Mode())
		}
	}
}

// If two runs start at once, the second does not replace the file of the first.
func TestFirstNewCheckpointStays(t *testing.T) {
	path := newPath(t)
	created(t, path)
	before, _ := os.ReadFile(path)
	if made, err := create(path, emptyHeader()); made || err != nil {
		t.Errorf("made %v, %v", made, err)
	}
	if after, _ := os.ReadFile(path); string(after) != string(before) {
		t.Error("the first file was replaced")
	}
	intact(t, path)
}

// fault m24
func TestWideModeIsTightened(t *testing.T) {
	path := newPath(t)
	created(t, path)
	must.Do(t, os.Chmod(path, 0o644))
	r := opened(t, path, Options{AnyPlace: true, ReadOnly: true}) // reading changes no mode
	if err := r.Close(); err != nil || modeOf(path).Perm() != 0o644 || len(r.Info().Warnings) != 0 {
		t.Errorf("read: %v, %v, %q", err, modeOf(path), r.Info().Warnings)
	}
	d := opened(t, path, Options{AnyPlace: true})
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if len(d.Info().Warnings) != 1 {
		t.Errorf("warnings: %v", d.Info().Warnings)
	}
}

// faults 81, m23: a second opening is refused. TestOneRunAtATime in internal/e2e tries this with other processes.
func TestSecondOpenerIsRefused(t *testing.T) {
	path := newPath(t)
	d := opened(t, path, Options{AnyPlace: true})
	for _, o := range []Options{{}, {ReadOnly: true}, {Wait: 120 * time.Millisecond}} {
		_, err := Open(path, target(), o)
		checkRefusal(t, err, checkpoint.ErrLocked)
	}
	if err := claim(d, intentOf("a", 1)); err != nil {
		t.Errorf("the holder was disturbed: %v", err)
	}
}

func TestReadersShareAndWriteNothing(t *testing.T) {
	path := newPath(t)
	d := seeded(t, path, 10)
	must.Do(t, d.Close())
	before := read(t, path)
	a, b := opened(t, path, Options{ReadOnly: true}), opened(t, path, Options{ReadOnly: true})
	if a.Info().Leads != 10 || b.Info().InDoubt != 3 {
		t.Errorf("%d leads, %d in doubt", a.Info().Leads, b.Info().InDoubt)
	}
	if err := claim(a, intentOf("x", 1)); err != checkpoint.ErrReadOnly {
		t.Errorf("claim: %v", err)
	}
	if err := checkpoint.PutRun(context.Background(), b, checkpoint.RunInfo{ID: "r"}); !errors.Is(err, checkpoint.ErrReadOnly) {
		t.Errorf("run: %v", err)
	}
	if after := read(t, path); string(after) != string(before) || len(filesBeside(t, path)) != 1 {
		t.Errorf("the file was changed, or another one was made: %q", filesBeside(t, path))
	}
}

// While a run holds a checkpoint, its status comes from the run's witness in the book. A killed run does not count.
func TestStatusWhileARunGoesOn(t *testing.T) {
	path, o := newPath(t), Options{Witnesses: &checkpoint.Witnesses{Book: t.TempDir(), Page: "http://127.0.0.1/page"}}
	d := seeded(t, path, 20)
	odd := createdEntry("odd", "lead-odd", 1)
	odd.Status = "escalated"
	together(t, d, checkpoint.Settle, odd)
	must.Do(t, errors.Join(resolve(d, checkpoint.Decision{Key: "doubt-0", LeadID: "lead-0"}), checkpoint.PutRun(context.Background(), d, checkpoint.RunInfo{ID: "r", Command: "import", Started: time.Now()})))
	must.Do(t, d.Alone(t.Context(), func(tx checkpoint.Tx) error {
		last, err := checkpoint.LastDecision(tx, "doubt-0")
		note := func() error {
			return checkpoint.NoteEvidence(tx, *last, checkpoint.MadeAfterAll, "lead-made", tx.Now())
		}
		return errors.Join(err, note(), note()) // stored once
	}))
	run, err := o.Witnesses.Begin(d, checkpoint.Witness{Run: "r", Command: "import", Process: 42}, t.TempDir())
	must.Do(t, err)
	killed := killed(t, path)
	if text := read(t, filepath.Join(o.Witnesses.Book, d.Info().ID+".json")); true {
		text = bytes.ReplaceAll(text, []byte(path), []byte(killed))
		must.Do(t, os.WriteFile(filepath.Join(o.Witnesses.Book, "killed.json"), text, 0o600))
	}
	if w, goesOn := o.Witnesses.Holder(resolved(killed)); goesOn {
		t.Errorf("a killed run counts as running: %+v", w)
	}
	_, err = Open(path, target(), o)
	locked, _ := errors.AsType[*checkpoint.OpenError](err)
	if !errors.Is(err, checkpoint.ErrLocked) || !strings.Contains(err.Error(), "process 42") {
		t.Fatalf("the refusal does not say who holds the checkpoint: %v", err)
	}
	during, goesOn := o.Witnesses.Holder(locked.Path)
	if !goesOn || during.Process != 42 || during.Folder == "" || during.Page == "" || during.Place != d.path {
		t.Errorf("%+v", during)
	}
	must.Do(t, errors.Join(d.Close(), run.End("")))
	if during, goesOn := o.Witnesses.Holder(locked.Path); goesOn {
		t.Errorf("an ended run counts as running: %+v", during)
	}
	d = opened(t, path, Options{})
	after, err := checkpoint.StatusOf(t.Context(), d)
	must.Do(t, err)
	if len(after.Contradicted) != 1 || len(after.Runs) != 1 {
		t.Errorf("%+v", after)
	}
	must.Do(t, resolve(d, checkpoint.Decision{Key: "doubt-0", LeadID: "lead-00"}))
	if s, err := checkpoint.StatusOf(t.Context(), d); err != nil || len(s.Contradicted) != 0 {
		t.Errorf("a corrected decision is still contradicted: %+v, %v", s.Contradicted, err)
	}
}
