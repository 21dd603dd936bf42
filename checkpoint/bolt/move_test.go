package bolt

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"leadferry/checkpoint"
)

// From the first moment on in which a file is there that is to be filled from another checkpoint, no run begins on it as if
// it were new, and the same copy makes room for itself.
func TestAFileThatIsToBeFilledRefusesRuns(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.db")
	if made, err := create(path, newHeader(target(), time.Now()), record{movingKey, movingRecord(filledFrom + "elsewhere")}); !made || err != nil {
		t.Fatal(made, err)
	}
	if d, err := Open(path, target(), Options{}); !errors.Is(err, checkpoint.ErrLocked) {
		d.Close()
		t.Errorf("opened: %v", err)
	}
	if err := makeRoom(path, "another", Options{}); err == nil {
		t.Error("a copy of another checkpoint has taken its place")
	}
	if err := makeRoom(path, "elsewhere", Options{}); err != nil {
		t.Error(err)
	}
}

// What PATH.seq tells of a checkpoint that is gone keeps a new one from its place, unless that one knew nothing.
func TestNewFileInThePlaceOfOneThatIsGone(t *testing.T) {
	for leads, want := range map[uint64]error{0: nil, 1: checkpoint.ErrGone} {
		path, h := newPath(t), newHeader(target(), time.Now())
		if err := os.WriteFile(path+".seq", seqLine{id: h.id + 1, leads: leads}.line(), 0o600); err != nil {
			t.Fatal(err)
		}
		err := makeFrom(path, h, record{movingKey, movingRecord(filledFrom + "elsewhere")}, Options{Moved: true}, func(*Store) error { return nil })
		if _, missing := os.Stat(path); !errors.Is(err, want) || (missing == nil) != (want == nil) {
			t.Errorf("%d leads: %v, %v", leads, err, missing)
		}
	}
}

// A damaged file that was copied is repaired only once its copy is gone, and then as one that lacks what the copy knew.
func TestRepairOfAFileThatWasCopied(t *testing.T) {
	path, to := newPath(t), newPath(t)
	d := opened(t, path, Options{})
	if err := errors.Join(d.SetMoved(to), d.Close(), os.WriteFile(to, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := Repair(path, newPath(t), target(), nil, true, Options{}); !errors.Is(err, checkpoint.ErrGone) {
		t.Errorf("beside its copy: %v", err)
	}
	os.Remove(to)
	if d, err := Open(killed(t, path), target(), Options{Accept: true}); err != nil {
		t.Fatal(err)
	} else if err := errors.Join(d.Close(), os.WriteFile(to, nil, 0o600)); err != nil {
		t.Fatal(err)
	} else if _, err := Repair(d.path, newPath(t), target(), nil, true, Options{}); err != nil {
		t.Errorf("taken again: %v", err)
	}
	os.Remove(to)
	if r, err := Repair(path, newPath(t), target(), nil, true, Options{}); err != nil || !r.Lost {
		t.Errorf("without it: %+v, %v", r, err)
	}
}

// Results bring what a file has lost, but not what its copy knew besides, nor what a copy was not filled with yet.
func TestResultsDoNotMakeUpForACopy(t *testing.T) {
	for name, mark := range map[string]string{"copied": movedTo + newPath(t), "being filled": filledFrom + "elsewhere"} {
		whole := seeded(t, newPath(t), 3)
		whole.Close()
		path := killed(t, whole.path)
		d, err := Open(path, target(), Options{})
		if err != nil {
			t.Fatal(err)
		}
		m := seqLine{id: d.header.id, leads: d.tally.Load().known() + 1}
		err = d.setMoving(mark)
		m.seq = d.tally.Load().seq + 1
		if err := errors.Join(err, d.Close(), os.WriteFile(path+".seq", m.line(), 0o600)); err != nil {
			t.Fatal(err)
		}
		lost := []Results{{Source: "results.csv", ID: m.id.String(), Target: target(), Entries: []checkpoint.Entry{createdEntry("lost", "0b1c2d3e-0000-4000-8000-00000000aaaa", 1)}}}
		for what, results := range map[string][]Results{"alone": nil, "with results": lost} {
			to := newPath(t)
			r, err := Repair(path, to, target(), results, false, Options{})
			if err != nil || !r.Lost {
				t.Errorf("%s, %s: %+v, %v", name, what, r, err)
			}
			repaired := opened(t, to, Options{})
			if e := lookup(t, repaired, "new"); !mayLack(repaired, &e) {
				t.Errorf("%s, %s: a row that it does not know would be sent", name, what)
			}
		}
	}
}
