package bolt

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"

	"leadferry/checkpoint"
)

// damagedAt is a copy of a checkpoint, of which bytes are lost.
func damagedAt(t *testing.T, file, mark []byte, lose func([]byte) []byte) string {
	t.Helper()
	path := newPath(t)
	if err := os.WriteFile(path, lose(append([]byte(nil), file...)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path+".seq", mark, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Whatever page is lost, each key that the file knew is known by the new one as it was, or
// may be missing and is held; and those that are gone are counted. faults 19, 22, 128
func TestRepairKeepsOrCountsWhatAFileKnew(t *testing.T) {
	path := newPath(t)
	d := seeded(t, path, 400)
	for i := range 40 { // leaves pages behind that are not in use any more
		key := fmt.Sprintf("free-%d", i)
		if err := claim(d, intentOf(key, i)); err != nil {
			t.Fatal(err)
		}
		if err := withdraw(d, key); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := d.Resolve(context.Background(), []checkpoint.Decision{{Key: "doubt-0"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Forget(context.Background(), []string{"key-00003"}, false); err != nil {
		t.Fatal(err)
	}
	if err := d.PutRun(context.Background(), checkpoint.RunInfo{ID: "run-1", Command: "import"}); err != nil {
		t.Fatal(err)
	}
	claimNoting(t, d, checkpoint.Shape{Columns: []string{"a", "b"}, Key: "a"})
	if err := withdraw(d, "k"); err != nil {
		t.Fatal(err)
	}
	for i, key := range []string{"a3", "a1", "a2"} { // out of order, so that they gather
		if _, err := settle(d, createdEntry(key, fmt.Sprintf("0b1c2d3e-0000-4000-8000-%012d", i), i)); err != nil {
			t.Fatal(err)
		}
	}
	held, err := contents(d)
	if err != nil {
		t.Fatal(err)
	}
	d.Close()
	file, mark := bytesOf(t, path), bytesOf(t, path+".seq")
	page := os.Getpagesize()
	whole, lost := 0, 0
	for at := 0; at <= len(file); at += page {
		broken := damagedAt(t, file, mark, func(b []byte) []byte { // the last one: nothing is lost
			if at < len(b) {
				clear(b[at:min(len(b), at+page)])
			}
			return b
		})
		to := newPath(t)
		r, err := Repair(broken, to, target(), nil, false, Options{})
		if err != nil {
			t.Fatalf("at %d: %v", at, err)
		}
		repaired := opened(t, to, Options{})
		missing := 0
		for _, was := range held {
			is := lookup(t, repaired, was.Key)
			switch known := was.State.HasLead() || was.State == checkpoint.InDoubt; {
			case is.State == was.State && is.LeadID == was.LeadID && is.Digest == was.Digest:
			case is.State.HasLead() || !mayLack(repaired, &is):
				t.Errorf("at %d: %s was %v, is %v with lead %q", at, was.Key, was.State, is.State, is.LeadID)
			case known && is.State != checkpoint.InDoubt:
				missing++
			}
		}
		some, leads := repaired.lacks().some, int(repaired.lacks().leads)
		if some != r.Lost || leads != r.Missing || leads < missing || !some && missing > 0 {
			t.Errorf("at %d: %d missing, counted as %d, incomplete %v, result %+v", at, missing, leads, some, r)
		}
		if leads > 0 {
			lost++
		}
		if !some {
			whole++
			if got := lookup(t, repaired, "key-00003"); got.State != checkpoint.Forgotten && r.Forgotten > 0 {
				t.Errorf("at %d: what was forgotten is %v", at, got.State)
			}
		}
		if at >= len(file) {
			runs, err := repaired.Runs(context.Background())
			noted, _, noteErr := checkpoint.Noted(context.Background(), repaired, checkpoint.Shape{Columns: []string{"a", "b"}, Key: "a"})
			audit, auditErr := repaired.Audit(context.Background())
			if some || len(runs) != 1 || !noted || len(audit.Decisions) != 1 || errors.Join(err, noteErr, auditErr) != nil || r.Keys[checkpoint.NotMade] != 1 {
				t.Errorf("of a whole file: incomplete %v, runs %v, noted %v, %d decisions, %+v", some, runs, noted, len(audit.Decisions), r)
			}
			if repaired.header.id == d.header.id || !slices.Equal(repaired.header.ancestors, []fileID{d.header.id}) {
				t.Errorf("ID %v after %v, before it %v", repaired.header.id, d.header.id, repaired.header.ancestors)
			}
		}
		repaired.Close()
	}
	if whole == 0 || lost < 3 {
		t.Errorf("%d pages were lost without loss, %d with leads", whole, lost)
	}
}

func bytesOf(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// A damaged file may be an older copy, too: what is known beside it says so, and what it makes is incomplete. faults 22, 23, 128
func TestRepairOfAnOlderCopyIsIncomplete(t *testing.T) {
	path := newPath(t)
	d := seeded(t, path, 20)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	file, left := bytesOf(t, path), d.Info()
	mark, _, err := readSeq(path + ".seq")
	if err != nil {
		t.Fatal(err)
	}
	run := func(later uint64, made int) []checkpoint.Witness {
		return []checkpoint.Witness{{ID: left.ID, Sequence: left.Sequence + later, Leads: int(mark.leads), Made: made}, {ID: "1", Sequence: 1 << 40}}
	}
	marked := func(change func(m *seqLine)) seqLine {
		m := mark
		change(&m)
		return m
	}
	for name, test := range map[string]struct {
		mark      seqLine
		witnesses []checkpoint.Witness
		lost      bool
		missing   int
	}{
		"as it was left":            {mark, run(0, 0), false, 0},
		"marked later":              {marked(func(m *seqLine) { m.seq += 3; m.leads += 5 }), nil, true, 5},
		"marked later, of as many":  {marked(func(m *seqLine) { m.seq++ }), nil, true, 0},
		"marked by another":         {marked(func(m *seqLine) { m.id++ }), nil, true, 0},
		"a run left it later":       {mark, run(4, 7), true, 7},
		"a later run, and the mark": {marked(func(m *seqLine) { m.seq += 9; m.leads += 8 }), run(4, 7), true, 8},
		"an older mark":             {marked(func(m *seqLine) { m.seq--; m.leads-- }), run(2, 0), true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			broken, to := damagedAt(t, file, test.mark.line(), func(b []byte) []byte { return b }), newPath(t)
			r, err := Repair(broken, to, target(), nil, false, Options{Witnesses: test.witnesses})
			if err != nil || r.Lost != test.lost || r.Missing != test.missing {
				t.Fatalf("%v, lost %v, %d missing", err, r.Lost, r.Missing)
			}
			if got := opened(t, to, Options{}).lacks().some; got != test.lost {
				t.Errorf("incomplete %v", got)
			}
		})
	}
}
