package bolt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"leadferry/checkpoint"
)

// Whatever page is lost, each key that the file knew is known by the new one as it was, or
// may be missing and is held. faults 19, 22, 128
func TestRepairKeepsOrHoldsWhatAFileKnew(t *testing.T) {
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
	if _, err := checkpoint.Resolve(context.Background(), d, []checkpoint.Decision{{Key: "doubt-0"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := checkpoint.Forget(context.Background(), d, []string{"key-00003"}, false); err != nil {
		t.Fatal(err)
	}
	if err := checkpoint.PutRun(context.Background(), d, checkpoint.RunInfo{ID: "run-1", Command: "import"}); err != nil {
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
	file, broken := read(t, path), newPath(t)
	page := os.Getpagesize()
	lost, nothing := 0, 0
	for at := 0; at <= len(file); at += page {
		to, left := newPath(t), bytes.Clone(file)
		clear(left[at:min(len(left), at+page)]) // the last one: nothing is lost
		content(string(left))(t, broken)
		r, err := Repair(broken, to, target(), nil, false, Options{})
		if errors.Is(err, checkpoint.ErrDamaged) { // the page from which all others are found
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
			if len(runs) != 1 || !noted || len(audit.Decisions) != 1 || errors.Join(err, noteErr, auditErr, lineageErr) != nil || r.Keys[checkpoint.NotMade] != 1 {
				t.Errorf("of a whole file: runs %v, noted %v, %d decisions, %+v", runs, noted, len(audit.Decisions), r)
			}
			if repaired.Info().ID == d.Info().ID || len(l.Ancestors) != 1 || l.Ancestors[0].ID != d.Info().ID {
				t.Errorf("ID %v after %v, before it %v", repaired.Info().ID, d.Info().ID, l.Ancestors)
			}
		}
		repaired.Close()
	}
	if lost < 100 || nothing > 1 {
		t.Errorf("%d leads were lost with a page, %d pages take all", lost, nothing)
	}
}
