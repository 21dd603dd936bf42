package bolt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/bbolt"

	"leadferry/checkpoint"
	"leadferry/internal/shell"
	"leadferry/internal/testsupport/must"
)

// salvaged reads all it can from a damaged file.
func salvaged(t *testing.T, path string, o Options) (all []checkpoint.Entry, s *Salvaged) {
	t.Helper()
	s, err := Salvage(path, o)
	must.Do(t, err)
	for _, k := range s.Keys {
		all = append(all, k.Shown().Entry)
	}
	return all, s
}

// Salvage reads exactly the entries of a good file, also through a symbolic link, and keys named like the file's own
// notes. fault 22
func TestSalvageReadsAGoodFile(t *testing.T) {
	path, name := newPath(t), newPath(t)
	d := seeded(t, path, 400)
	for i, key := range []string{"header", "note lineage", "tally", "0001", "00000001", "note 0000000000000001"} {
		_, err := settle(d, createdEntry(key, fmt.Sprintf("lead-%d", i), i))
		must.Do(t, errors.Join(err, claim(d, intentOf("doubt of "+key, i))))
	}
	forget(t, d, "key-00003")
	held, err := contents(d)
	must.Do(t, errors.Join(err, d.Close(), os.Symlink(path, name)))
	got, r := salvaged(t, name, inOwnProcess(Options{}))
	if here, _ := salvaged(t, path, Options{}); !reflect.DeepEqual(here, got) {
		t.Error("this process and a separate one read different entries")
	}
	must.Same(t, held, got, "salvaged")
	if n := r.Counts(); n[checkpoint.Forgotten] != 1 || n[checkpoint.Created] != 399+6 || n[checkpoint.InDoubt] != 3+6 {
		t.Errorf("%+v", n)
	}
}

// Salvage reads every whole record of a damaged file as it was. A settled row may come back as a doubt, but never with
// another lead. faults 19, 22
func TestSalvageReadsWhatIsWhole(t *testing.T) {
	skipIfShort(t)
	file, held := crashed(t)
	known := make(map[string]checkpoint.Entry)
	for _, e := range held {
		known[e.Key] = e
	}
	path, random := newPath(t), rand.New(rand.NewPCG(5, 5))
	page, roots := os.Getpagesize(), rootsOf(t, file)
	for round := range 24 {
		broken, least := append([]byte(nil), file...), 0
		switch round % 3 {
		case 0: // a page is lost
			lost := random.IntN(len(broken) / page)
			clear(broken[page*lost : page*(lost+1)])
			if !slices.Contains(roots, lost) {
				least = len(held) - 100
			}
		case 1:
			for range 50 {
				broken[random.IntN(len(broken))] ^= byte(1 + random.IntN(255))
			}
		case 2:
			broken = broken[:random.IntN(len(broken))]
		}
		must.Do(t, os.WriteFile(path, broken, 0o600))
		got, _ := salvaged(t, path, inOwnProcess(Options{}))
		for _, e := range got {
			was, ok := known[e.Key]
			if e.State == checkpoint.InDoubt && (!ok || was.State != checkpoint.InDoubt) {
				continue // an older record: a person must decide
			}
			if !reflect.DeepEqual(was, e) {
				t.Fatalf("round %d: wrong read:\n%s", round, cmp.Diff(was, e))
			}
		}
		if len(got) < least {
			t.Errorf("round %d: %d of %d keys read", round, len(got), len(held))
		}
	}
}

// rootsOf returns the root pages of all buckets and of the entries. Without them bbolt finds no other page.
func rootsOf(t *testing.T, file []byte) (roots []int) {
	t.Helper()
	path := newPath(t)
	content(string(file))(t, path)
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true})
	must.Do(t, err)
	defer db.Close()
	err = db.View(func(tx *bbolt.Tx) error {
		roots = []int{int(tx.Cursor().Bucket().Root()), int(tx.Bucket(inEntries).Root())}
		return nil
	})
	must.Do(t, err)
	return roots
}

func TestSalvageRefuses(t *testing.T) {
	path := newPath(t)
	if _, err := Salvage(path, Options{}); !errors.Is(err, checkpoint.ErrMissing) {
		t.Errorf("missing: %v", err)
	}
	seeded(t, path, 3)
	_, err := Salvage(path, Options{})
	checkRefusal(t, err, checkpoint.ErrLocked)
	empty := newPath(t)
	content("")(t, empty)
	if got, _ := salvaged(t, empty, inOwnProcess(Options{})); len(got) != 0 {
		t.Errorf("of nothing: %v", got)
	}
}

// Whichever page is lost, the repaired file knows each key as before, or holds it as maybe lost. faults 19, 22, 128
func TestRepairKeepsOrHoldsWhatAFileKnew(t *testing.T) {
	skipIfShort(t)
	path := newPath(t)
	d := seeded(t, path, 400)
	for i := range 40 { // leaves free pages behind
		key := fmt.Sprintf("free-%d", i)
		must.Do(t, claim(d, intentOf(key, i)))
		must.Do(t, withdraw(d, key))
	}
	must.Do(t, resolve(d, checkpoint.Decision{Key: "doubt-0"}))
	forget(t, d, "key-00003")
	must.Do(t, checkpoint.PutRun(context.Background(), d, checkpoint.RunInfo{ID: "run-1", Command: "import"}))
	claimNoting(t, d, checkpoint.Shape{Columns: []string{"a", "b"}, Key: "a"})
	must.Do(t, withdraw(d, "k"))
	for i, key := range []string{"a3", "a1", "a2"} { // out of order, so that they gather
		together(t, d, checkpoint.Settle, createdEntry(key, fmt.Sprintf("0b1c2d3e-0000-4000-8000-%012d", i), i))
	}
	held, err := contents(d)
	must.Do(t, err)
	d.Close()
	file, broken := read(t, path), newPath(t)
	page := os.Getpagesize()
	lost, nothing := 0, 0
	for at := 0; at <= len(file); at += page {
		to, left := newPath(t), bytes.Clone(file)
		clear(left[at:min(len(left), at+page)]) // in the last round nothing is lost
		content(string(left))(t, broken)
		r, err := Repair(broken, to, target(), Options{})
		if errors.Is(err, checkpoint.ErrDamaged) { // the page that leads to all others
			nothing++
			continue
		}
		if err != nil {
			t.Fatalf("at %d: %v", at, err)
		}
		repaired := opened(t, to, Options{})
		for _, was := range held {
			is := lookup(t, repaired, was.Key)
			switch {
			case is.State == was.State && is.LeadID == was.LeadID && is.Digest == was.Digest:
			case is.State.HasLead() || !mayLack(repaired, &is):
				t.Errorf("at %d: %s was %v, is %v with lead %q", at, was.Key, was.State, is.State, is.LeadID)
			case was.State.HasLead():
				lost++
			}
		}
		if got := lookup(t, repaired, "key-00003"); got.State != checkpoint.Forgotten && !mayLack(repaired, &got) {
			t.Errorf("at %d: what was forgotten is %v", at, got.State)
		}
		if at >= len(file) {
			runs, err := checkpoint.Runs(context.Background(), repaired)
			noted, _, noteErr := checkpoint.Noted(context.Background(), repaired, checkpoint.Shape{Columns: []string{"a", "b"}, Key: "a"})
			audit, auditErr := checkpoint.AuditOf(context.Background(), repaired)
			l, lineageErr := checkpoint.LineageOf(t.Context(), repaired)
			if len(runs) != 1 || !noted || len(audit) != 1 || errors.Join(err, noteErr, auditErr, lineageErr) != nil || r.Counts()[checkpoint.NotMade] != 1 {
				t.Errorf("of a whole file: runs %v, noted %v, %d decisions, %+v", runs, noted, len(audit), r.Counts())
			}
			if repaired.Info().ID == d.Info().ID || len(l.Ancestors) != 1 || l.Ancestors[0].ID != d.Info().ID {
				t.Errorf("ID %v after %v, before it %v", repaired.Info().ID, d.Info().ID, l.Ancestors)
			}
		}
		repaired.Close()
	}
	if lost < 100 || nothing > 1 {
		t.Errorf("%d leads were lost with a page, %d pages lose everything", lost, nothing)
	}
}

// If a file has lost its header, the hint says how to export its rows and adopt each list separately.
func TestRepairWithoutAHeaderPrintsTheNextSteps(t *testing.T) {
	whole, to := newPath(t), newPath(t)
	must.Do(t, seeded(t, whole, 3).Close())
	path := killed(t, whole)
	db, err := bbolt.Open(path, 0o600, nil)
	must.Do(t, err)
	lose := func(tx *bbolt.Tx) error { return tx.Bucket(inMeta).Put(headerKey, []byte("damaged")) }
	must.Do(t, errors.Join(db.Update(lose), db.Close()))
	_, err = Repair(path, to, target(), Options{})
	checkRefusal(t, err, checkpoint.ErrDamaged)
	refused, _ := errors.AsType[*checkpoint.OpenError](err)
	alone := "checkpoint adopt kept.csv --checkpoint " + shell.Path(to) + ";"
	if !strings.Contains(refused.Hint, alone) || !strings.Contains(refused.Hint, checkpoint.AdoptRuns(to, nil)) {
		t.Error(refused.Hint)
	}
}

// A damaged file that was copied is repaired only if the copy is gone, or the person took the original back into use.
func TestRepairRefusesAFileWhileItsCopyExists(t *testing.T) {
	path, to := newPath(t), newPath(t)
	d := opened(t, path, Options{})
	must.Do(t, errors.Join(d.SetMoved(to), d.Close(), os.WriteFile(to, nil, 0o600)))
	if _, err := Repair(path, newPath(t), target(), Options{}); !errors.Is(err, checkpoint.ErrGone) {
		t.Errorf("beside its copy: %v", err)
	}
	os.Remove(to)
	if d, err := Open(killed(t, path), target(), Options{Moved: true}); err != nil {
		t.Fatal(err)
	} else if err := errors.Join(renewed(t, d, "some"), d.Close(), os.WriteFile(to, nil, 0o600)); err != nil {
		t.Fatal(err)
	} else if _, err := Repair(d.path, newPath(t), target(), Options{}); err != nil {
		t.Errorf("taken again: %v", err)
	}
	os.Remove(to)
	if _, err := Repair(path, newPath(t), target(), Options{}); err != nil {
		t.Errorf("without it: %v", err)
	}
}
