package storetest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"leadferry/checkpoint"
)

func historyTellsWhatWasDone(t *testing.T, b Backend) {
	run := 0
	at := func() time.Time { return time.UnixMilli(int64(1000 * run)).UTC() }
	d := b.openAt(t, at)
	step := func(e checkpoint.Entry) {
		t.Helper()
		e.Key, e.Run, e.Updated = "k", fmt.Sprint("run-", run), at()
		run++
		settled(t, d, e)
	}
	sent := func() {
		t.Helper()
		claimed(t, d, checkpoint.Entry{
			Key: "k", Run: fmt.Sprint("run-", run), WantLink: "crm",
			Updated: at().Add(-time.Millisecond),
		})
	}
	sent()
	step(checkpoint.Entry{State: checkpoint.Rejected, Code: 422})
	sent()
	step(checkpoint.Entry{State: checkpoint.InDoubt, Code: 504})
	sent() // again, although in doubt
	resolved(t, d, checkpoint.Decision{Key: "k", LeadID: "lead-1", Run: fmt.Sprint("run-", run)})
	step(checkpoint.Entry{State: checkpoint.Partial, LeadID: "lead-1", Code: 500})
	step(checkpoint.Entry{State: checkpoint.Created, LeadID: "lead-1", ExternalID: "crm", Status: "open", Code: 200})
	step(checkpoint.Entry{
		State: checkpoint.Created, LeadID: "lead-1", ExternalID: "crm", Status: "closedWon",
		Digest: checkpoint.Digest{1},
	})
	want := []string{
		"rejected +refused  422",
		"in_doubt +doubted  504",
		"in_doubt +doubted  0",
		"partial +made+decided  0",
		"partial   500",
		"created +linked+status open 200",
		"created +status+data closedWon 0",
	}
	equal(t, "history", want, acts(t, d, "k"))
	for range 5 {
		step(checkpoint.Entry{
			State: checkpoint.Created, LeadID: "lead-1", ExternalID: "crm", Status: "closedWon",
			Digest: checkpoint.Digest{2},
		})
	}
	d = d.again(t)
	events := history(t, d, "k")
	if events[0].Act != checkpoint.Refused || events[0].Run != "run-0" ||
		events[len(events)-1].Run != fmt.Sprint("run-", run-1) ||
		len(events) < 8 || events[1].Act != checkpoint.Doubted || events[2].Act != checkpoint.Doubted ||
		events[3].Act&checkpoint.Decided == 0 {
		t.Errorf("of a long history: %+v", events)
	}
	if events := history(t, d, "none"); len(events) != 0 {
		t.Errorf("of nothing: %+v", events)
	}
}

// Two leads are exchanged, though more entries are between them than a Store looks at together.
func adoptCorrectsALongListCrosswise(t *testing.T, b Backend) {
	d := b.open(t)
	list := []checkpoint.Entry{{Key: "a", LeadID: "lead-b"}}
	for i := range 2100 {
		list = append(list, checkpoint.Entry{Key: fmt.Sprint("k", i), LeadID: fmt.Sprint("lead.", i)})
	}
	list = append(list, checkpoint.Entry{Key: "z", LeadID: "lead-a"})
	adopted(t, d, checkpoint.AdoptResult{Leads: len(list)}, list...)
	list[0].LeadID, list[len(list)-1].LeadID = "lead-a", "lead-b"
	adopted(t, d, checkpoint.AdoptResult{Leads: 2, Corrected: 2, Known: len(list) - 2}, list...)
	for _, want := range []checkpoint.Entry{list[0], list[len(list)-1]} {
		got, how := sought(t, d, checkpoint.Query{Key: "none", LeadID: want.LeadID})
		if now := Lookup(t, d, want.Key); how != checkpoint.ByLeadID || got.Key != want.Key ||
			now.State != checkpoint.Created || now.LeadID != want.LeadID {
			t.Errorf("%s: found %d, %+v; stands as %+v", want.LeadID, how, got, now)
		}
	}
}

// seed makes 20 created leads, three refusals and three rows in doubt.
func seed(t TB, d checkpoint.Store) {
	t.Helper()
	for i := range 20 {
		e := CreatedEntry(fmt.Sprintf("key-%05d", i), fmt.Sprintf("0b1c2d3e-0000-4000-8000-%012d", i), i)
		if i%2 == 0 {
			e.ExternalID = fmt.Sprintf("crm-%d", i)
		}
		settled(t, d, e)
	}
	for i := range 3 {
		claimed(t, d, IntentOf(fmt.Sprintf("doubt-%d", i), i))
		settled(t, d, checkpoint.Entry{
			Key: fmt.Sprintf("refused-%d", i), State: checkpoint.Rejected, Code: 422,
			Reason: "refused",
		})
	}
}

// withPerson makes a checkpoint in which a person is everywhere that one can.
func withPerson(t TB, d checkpoint.Store) {
	t.Helper()
	seed(t, d)
	claimed(t, d, IntentOf("ann", 1))
	resolved(t, d, checkpoint.Decision{Key: "ann", LeadID: "her-lead"})
	settled(t, d, CreatedEntry("ann", "her-lead", 1))
	settled(t, d, CreatedEntry("bob", "her-lead", 2)) // contradicts the decision and falls in doubt
	claimed(t, d, IntentOf("bob", 3))                 // keeps the doubt inside a new intent
}

// A forgotten key is not sent again, and nothing else names what was known of it. fault 120
func forgottenKeyIsNotSentAgain(t *testing.T, b Backend) {
	d := b.open(t)
	withPerson(t, d)
	keys := []string{"ann", "never heard of", "doubt-1", "refused-1"}
	forgotten(t, d, checkpoint.ForgetResult{Leads: 1, Unknown: 1, InDoubt: 1, Rejected: 1}, keys...)
	d = d.again(t)
	for _, key := range keys {
		if got := Lookup(t, d, key); got.State != checkpoint.Forgotten || got.LeadID != "" {
			t.Errorf("%+v", got)
		}
		if err := Claim(d, IntentOf(key, 1)); !errors.Is(err, checkpoint.ErrBlocked) {
			t.Errorf("claim: %v", err)
		}
		if _, err := Settle(d, CreatedEntry(key, "lead-x", 1)); !errors.Is(err, checkpoint.ErrBlocked) {
			t.Errorf("settle: %v", err)
		}
	}
	if got := Lookup(t, d, "bob"); got.State != checkpoint.InDoubt {
		t.Errorf("a neighbour: %+v", got)
	}
	withdrawn(t, d, "bob")
	if got := Lookup(t, d, "bob"); got.State != checkpoint.InDoubt || got.Reason != checkpoint.ReasonLeadTaken ||
		got.LeadID != "" {
		t.Errorf("a neighbour's earlier doubt: %+v", got)
	}
	if i := d.Info(); i.Leads != 20 || i.InDoubt != 3 {
		t.Errorf("%d leads, %d in doubt", i.Leads, i.InDoubt)
	}
	if left := told(t, d); len(left) != 0 {
		t.Errorf("left of decisions: %q", left)
	}
}
