package bolt

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"leadferry/checkpoint"
)

func contradictions(t *testing.T, d *Store) (all []checkpoint.Contradiction) {
	t.Helper()
	if err := d.Contradictions(context.Background(), func(c checkpoint.Contradiction) error { all = append(all, c); return nil }); err != nil {
		t.Fatal(err)
	}
	return all
}

// Evidence that comes after a decision and does not fit it is kept once; evidence
// about rows that nobody decided about is none.
func TestEvidenceAgainstADecisionIsKept(t *testing.T) {
	now := time.UnixMilli(1_770_000_000_000).UTC()
	path := newPath(t)
	d := opened(t, path, Options{Now: func() time.Time { return now }})
	decided := []checkpoint.Decision{{Key: "given", LeadID: "lead-1"}, {Key: "gone", LeadID: "lead-2"}, {Key: "free"}, {Key: "there", Exists: true}}
	for _, one := range append(decided, checkpoint.Decision{Key: "undecided"}) {
		if err := claim(d, intentOf(one.Key, 1)); err != nil {
			t.Fatal(err)
		}
	}
	if err := resolve(d, decided...); err != nil {
		t.Fatal(err)
	}
	at := now
	now = now.Add(time.Hour)
	for range 2 {
		for _, e := range []checkpoint.Entry{
			createdEntry("other", "lead-1", 1),
			{Key: "gone", State: checkpoint.Partial, LeadID: "lead-2", Code: 404},
			{Key: "free", State: checkpoint.Rejected, Code: 409},
			{Key: "undecided", State: checkpoint.Rejected, Code: 409},
			{Key: "given", State: checkpoint.Created, LeadID: "lead-1", Code: 200},
			{Key: "there", State: checkpoint.Created, Code: 404},
			createdEntry("own", "lead-7", 1),
			{Key: "own", State: checkpoint.Partial, LeadID: "lead-7", Code: 404},
			createdEntry("own too", "lead-7", 1),
		} {
			if _, err := settle(d, e); err != nil {
				t.Fatal(err)
			}
		}
	}
	want := []checkpoint.Contradiction{
		{Decision: decided[0], Decided: at, Found: now, Other: "other", Text: evidence(leadOfAnother)},
		{Decision: decided[1], Decided: at, Found: now, Text: evidence(noSuchLead)},
		{Decision: decided[2], Decided: at, Found: now, Text: evidence(alreadyThere)},
	}
	if diff := cmp.Diff(want, contradictions(t, d)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	d.Close()
	d = opened(t, path, Options{})
	if got := contradictions(t, d); len(got) != 3 {
		t.Errorf("after opening again: %+v", got)
	}
	if r, err := d.Forget(context.Background(), []string{"other"}, false); err != nil || r.InDoubt != 1 || len(contradictions(t, d)) != 2 {
		t.Errorf("a forgotten key is still named: %+v, %v", r, err)
	}
}

// A later decision is what counts.
func TestEvidenceAgainstAnOldDecisionIsNone(t *testing.T) {
	d := opened(t, newPath(t), Options{})
	for _, one := range []checkpoint.Decision{{Key: "k"}, {Key: "k", LeadID: "lead-1"}} {
		if err := claim(d, intentOf("k", 1)); err != nil {
			t.Fatal(err)
		}
		if err := resolve(d, one); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := settle(d, checkpoint.Entry{Key: "k", State: checkpoint.Rejected, Code: 409}); err != nil {
		t.Fatal(err)
	}
	if got := contradictions(t, d); len(got) != 0 {
		t.Errorf("%+v", got)
	}
}
