package bolt

import (
	"context"
	"errors"
	"maps"
	"os"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/bbolt"

	"leadferry/checkpoint"
)

// The status of a checkpoint can be asked for while a run holds it, and is the same
// afterwards; the account goes when the run ends.
func TestStatusWhileARunGoesOn(t *testing.T) {
	path := newPath(t)
	d := seeded(t, path, 20)
	odd := createdEntry("odd", "lead-odd", 1)
	odd.Status = "escalated"
	if _, err := settle(d, odd); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(resolve(d, checkpoint.Decision{Key: "doubt-0", LeadID: "lead-0"}), d.PutRun(context.Background(), checkpoint.RunInfo{ID: "r", Command: "import", Started: time.Now()})); err != nil {
		t.Fatal(err)
	}
	if _, err := settle(d, createdEntry("other", "lead-0", 1)); err != nil { // contradicts it
		t.Fatal(err)
	}
	if err := d.statusWriter.write(); err != nil {
		t.Fatal(err)
	}
	during, err := ReadStatus(path, target(), Options{})
	if err != nil || during.Process != os.Getpid() {
		t.Fatalf("process %d, %v", during.Process, err)
	}
	if _, err := ReadStatus(path, checkpoint.Target{TrunkID: "x"}, Options{}); !errors.Is(err, checkpoint.ErrTarget) {
		t.Errorf("of another target: %v", err)
	}
	d.Close()
	if _, err := os.Stat(path + ".status"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the account of a run that has ended: %v", err)
	}
	after, err := ReadStatus(path, target(), Options{})
	if err != nil || after.Process != 0 {
		t.Fatal(after.Process, err)
	}
	during.Process, during.At = 0, after.At
	if diff := cmp.Diff(during, after); diff != "" {
		t.Errorf("(-during +after):\n%s", diff)
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

// What a run left that was killed is not taken for one that goes on.
func TestStatusAfterAKill(t *testing.T) {
	path := newPath(t)
	d := seeded(t, path, 5)
	if err := d.statusWriter.write(); err != nil {
		t.Fatal(err)
	}
	killed := killed(t, path)
	account, err := os.ReadFile(path + ".status")
	if err == nil {
		err = os.WriteFile(killed+".status", account, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if s, err := ReadStatus(killed, target(), Options{}); err != nil || s.Process != 0 {
		t.Errorf("process %d, %v", s.Process, err)
	}
	if err := os.WriteFile(path+".status", account[:len(account)-9], 0o600); err != nil {
		t.Fatal(err)
	}
	if _, ok := (&Store{path: path}).readStatusFile(); ok {
		t.Error("half an account is read")
	}
}

// It is told every second of a run: old runs and what decisions were about are not read for it, so damage to them is not met.
func TestStatusReadsTheNewestRunsAlone(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a file that was not closed in order is read as a whole here")
	}
	path := newPath(t)
	d, err := Open(path, target(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range checkpoint.NewestRuns + 5 {
		if err := d.PutRun(t.Context(), checkpoint.RunInfo{ID: strconv.Itoa(i)}); err != nil {
			t.Fatal(err)
		}
	}
	err = errors.Join(claim(d, intentOf("doubt", 1)), resolve(d, checkpoint.Decision{Key: "doubt", LeadID: "lead"}))
	if _, failed := settle(d, createdEntry("other", "lead", 1)); errors.Join(err, failed) != nil { // contradicts it
		t.Fatal(err, failed)
	}
	o := attested(t, d)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	inFile(t, path, func(tx *bbolt.Tx) error {
		first := numberKey(1)
		decision, err := decodeAudit(first, tx.Bucket(inAudit).Get(first))
		decision.send = []byte("damaged")
		return errors.Join(err, tx.Bucket(inAudit).Put(first, decision.encode(first)), tx.Bucket(inRuns).Put(first, []byte("damaged")))
	})
	if d, err = Open(path, target(), o); err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	s, err := d.Status()
	if err != nil || len(s.Runs) != checkpoint.NewestRuns || s.Runs[0].ID != "5" || len(s.Contradictions) != 1 {
		t.Errorf("%+v, %v", s, err)
	}
}

// Reading changes no mode and needs none to be changed.
func TestReadingChangesNoMode(t *testing.T) {
	path := newPath(t)
	d := seeded(t, path, 5)
	d.Close()
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	r, err := Open(path, target(), Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o644 || len(r.Info().Warnings) != 1 {
		t.Errorf("%v, %q, %v", info.Mode(), r.Info().Warnings, err)
	}
}
