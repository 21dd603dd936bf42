package bolt

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"leadferry/checkpoint"
)

// While a run holds a checkpoint, its status is what the book says of that run; a run that was killed is none.
func TestStatusWhileARunGoesOn(t *testing.T) {
	path, o := newPath(t), Options{Witnesses: &checkpoint.Witnesses{Book: t.TempDir(), Page: "http://127.0.0.1/page"}}
	d := seeded(t, path, 20)
	odd := createdEntry("odd", "lead-odd", 1)
	odd.Status = "escalated"
	if _, err := settle(d, odd); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(resolve(d, checkpoint.Decision{Key: "doubt-0", LeadID: "lead-0"}), checkpoint.PutRun(context.Background(), d, checkpoint.RunInfo{ID: "r", Command: "import", Started: time.Now()})); err != nil {
		t.Fatal(err)
	}
	if _, err := settle(d, createdEntry("other", "lead-0", 1)); err != nil { // contradicts it
		t.Fatal(err)
	}
	run, err := o.Witnesses.Begin(t.Context(), d, checkpoint.Witness{Run: "r", Command: "import", Process: 42}, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	killed := killed(t, path)
	if text := read(t, filepath.Join(o.Witnesses.Book, d.Info().ID+".json")); true {
		text = bytes.ReplaceAll(text, []byte(path), []byte(killed))
		if err := os.WriteFile(filepath.Join(o.Witnesses.Book, "killed.json"), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if s, err := ReadStatus(killed, target(), o); err != nil || s.Holder != nil || s.Keys[checkpoint.Created] == 0 {
		t.Errorf("of a run that was killed: %+v, %v", s, err)
	}
	if w, goesOn := o.Witnesses.Holder(resolved(killed)); goesOn {
		t.Errorf("a run that was killed goes on: %+v", w)
	}
	during, err := ReadStatus(path, target(), o)
	if err != nil || during.Holder == nil || during.Holder.Process != 42 || during.Holder.Folder == "" || during.Holder.Page == "" || during.Path != d.path {
		t.Fatalf("%+v, %v", during, err)
	}
	if _, err := ReadStatus(path, checkpoint.Target{TrunkID: "x"}, o); !errors.Is(err, checkpoint.ErrTarget) {
		t.Errorf("of another target: %v", err)
	}
	if _, err := Open(path, target(), o); err == nil || !strings.Contains(err.Error(), "process 42") {
		t.Errorf("a second opener is not told who holds it: %v", err)
	}
	if err := errors.Join(d.Close(), run.End("")); err != nil {
		t.Fatal(err)
	}
	after, err := ReadStatus(path, target(), o)
	if err != nil || after.Holder != nil {
		t.Fatal(after.Holder, err)
	}
	want := map[string]int{"": 1, "inProgress": 20, "unknown": 1}
	if !maps.Equal(after.Statuses, want) || len(after.Contradictions) != 1 || len(after.Runs) != 1 {
		t.Errorf("%+v", after)
	}
	d = opened(t, path, Options{})
	if err := resolve(d, checkpoint.Decision{Key: "doubt-0", LeadID: "lead-00"}); err != nil {
		t.Fatal(err)
	}
	if s, err := d.Status(); err != nil || len(s.Contradictions) != 0 {
		t.Errorf("a corrected decision is contradicted still: %+v, %v", s.Contradictions, err)
	}
}
