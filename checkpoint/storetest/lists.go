package storetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"leadferry/checkpoint"
)

func adoptedLeadsAreKnownAndTheirDataIsNot(t *testing.T, b Backend) {
	d := b.open(t)
	list := []checkpoint.Entry{
		{Key: "b", LeadID: "0b1c2d3e-0000-4000-8000-000000000001", ExternalID: "crm-1", Status: "closedWon", Organization: "org"},
		{Key: "a", LeadID: "lead.2", Digest: d.Digests().Sum([]byte("x"))},
	}
	adopted(t, d, checkpoint.AdoptResult{Leads: 2}, list...)
	for _, want := range list {
		got := Lookup(t, d, want.Key)
		if got.State != checkpoint.Created || got.LeadID != want.LeadID || got.ExternalID != want.ExternalID || got.Status != want.Status || got.Digest != (checkpoint.Digest{}) || got.Content != nil {
			t.Errorf("%+v", got)
		}
		if err := Claim(d, IntentOf(want.Key, 1)); !errors.Is(err, checkpoint.ErrKnown) {
			t.Errorf("claimed: %v", err)
		}
	}
	if stored, err := Settle(d, CreatedEntry("c", "lead.2", 1)); err != nil || stored.Reason != checkpoint.ReasonLeadTaken {
		t.Errorf("its lead under another key: %+v, %v", stored, err)
	}
	before := contents(t, d)
	adopted(t, d, checkpoint.AdoptResult{Known: 2}, list...)
	equal(t, "after the same list again", before, contents(t, d))
}

func adoptRefusesAListAsAWhole(t *testing.T, b Backend) {
	d := b.open(t)
	for _, e := range []checkpoint.Entry{CreatedEntry("known", "lead-1", 1), {Key: "refused", State: checkpoint.Rejected, Code: 422}} {
		settled(t, d, e)
	}
	claimed(t, d, IntentOf("doubt", 1))
	good := checkpoint.Entry{Key: "good", LeadID: "lead-9"}
	for name, bad := range map[string]checkpoint.Entry{
		"no key":           {LeadID: "lead-2"},
		"long key":         {Key: strings.Repeat("k", checkpoint.MaxKey+1), LeadID: "lead-2"},
		"no ID":            {Key: "a"},
		"no ID, partial":   {Key: "a", State: checkpoint.Partial},
		"bad ID":           {Key: "a", LeadID: "../lead"},
		"dots":             {Key: "a", LeadID: ".."},
		"long ID":          {Key: "a", LeadID: strings.Repeat("1", 129)},
		"key twice":        {Key: "good", LeadID: "lead-2"},
		"ID twice":         {Key: "a", LeadID: "lead-9"},
		"ID of another":    {Key: "a", LeadID: "lead-1"},
		"another ID":       {Key: "known", LeadID: "lead-2"},
		"in doubt":         {Key: "doubt", LeadID: "lead-2"},
		"long texts":       {Key: "a", LeadID: "lead-2", Location: strings.Repeat("n", 1<<20) + "s", ExternalID: "e"},
		"forgotten, state": {Key: "a", LeadID: "lead-2", State: checkpoint.Forgotten},
	} {
		before := contents(t, d)
		if _, err := d.Adopt(context.Background(), checkpoint.ListOf(good, bad)); !isListError(err, 1, bad.Key) {
			t.Errorf("%s: %v", name, err)
		}
		equal(t, name+", taken in part", before, contents(t, d))
	}
}

// What a list says of a lead whose ID nobody knew completes it; its data are known.
func adoptCompletesALeadWithoutID(t *testing.T, b Backend) {
	d := b.open(t)
	in := IntentOf("k", 1)
	in.WantLink, in.Digest = "crm-1", d.Digests().Sum([]byte("data"))
	claimed(t, d, in)
	resolved(t, d, checkpoint.Decision{Key: "k", Exists: true})
	adopted(t, d, checkpoint.AdoptResult{Leads: 1}, checkpoint.Entry{Key: "k", LeadID: "lead-1", Status: "onHold"})
	if got := Lookup(t, d, "k"); got.State != checkpoint.Partial || got.LeadID != "lead-1" || got.WantLink != "crm-1" || got.Digest != in.Digest || got.Status != "onHold" {
		t.Errorf("%+v", got)
	}
}

// A lead ID that people gave can be corrected, also crosswise; what the service gave, not.
func adoptCorrectsWhatPeopleGave(t *testing.T, b Backend) {
	d := b.open(t)
	doubted(t, d, "c", "d")
	wrong := []checkpoint.Entry{{Key: "a", LeadID: "lead-b", ExternalID: "crm-a", Status: "closedWon"}, {Key: "b", LeadID: "lead-a"}}
	adopted(t, d, checkpoint.AdoptResult{Leads: 2}, wrong...)
	resolved(t, d, checkpoint.Decision{Key: "c", LeadID: "lead-x"}, checkpoint.Decision{Key: "d", LeadID: "lead-d"})
	moved := Lookup(t, d, "a")
	for i := range 14 {
		moved.Digest = checkpoint.Digest{byte(i + 1)}
		settled(t, d, moved)
	}
	right := []checkpoint.Entry{{Key: "a", LeadID: "lead-a"}, {Key: "b", LeadID: "lead-b", Status: "onHold"}, {Key: "c", LeadID: "lead-c"}}
	adopted(t, d, checkpoint.AdoptResult{Leads: 3, Corrected: 3}, right...)
	for _, want := range []checkpoint.Entry{
		{Key: "a", State: checkpoint.Partial, LeadID: "lead-a", WantLink: "crm-a"},
		{Key: "b", State: checkpoint.Created, LeadID: "lead-b", Status: "onHold"},
		{Key: "c", State: checkpoint.Partial, LeadID: "lead-c", WantLink: "crm-c"},
	} {
		got := Lookup(t, d, want.Key)
		got.Run, got.Updated, got.Seq = "", want.Updated, 0
		equal(t, want.Key, want, got)
	}
	if events := history(t, d, "a"); events[0].Act&checkpoint.Adopted == 0 || events[len(events)-1].Act&checkpoint.Adopted == 0 {
		t.Errorf("%+v", events)
	}
	adopted(t, d, checkpoint.AdoptResult{Known: 3}, right...)
	settled(t, d, CreatedEntry("made", "lead-m", 1))
	for _, list := range [][]checkpoint.Entry{
		{{Key: "made", LeadID: "lead-n"}},
		{{Key: "b", LeadID: "lead-b"}, {Key: "a", LeadID: "lead-b"}},
		{{Key: "b", LeadID: "lead-9", State: checkpoint.InDoubt}, {Key: "a", LeadID: "lead-b"}},
		{{Key: "a", LeadID: "lead-d"}},
	} {
		if _, err := d.Adopt(context.Background(), checkpoint.ListOf(list...)); !isListError(err, len(list)-1, list[len(list)-1].Key) {
			t.Errorf("%+v: %v", list, err)
		}
	}
}

// Two leads are exchanged, though more entries stand between them than a Store looks at together.
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
		if now := Lookup(t, d, want.Key); how != checkpoint.ByLeadID || got.Key != want.Key || now.State != checkpoint.Created || now.LeadID != want.LeadID {
			t.Errorf("%s: found %d, %+v; stands as %+v", want.LeadID, how, got, now)
		}
	}
}

// A status that nobody specified stays as it is.
func adoptKeepsAnUnknownStatus(t *testing.T, b Backend) {
	d := b.open(t)
	long := strings.Repeat("ü", checkpoint.MaxStatus+9)
	adopted(t, d, checkpoint.AdoptResult{Leads: 2, Unspecified: 2}, checkpoint.Entry{Key: "a", LeadID: "lead-1", Status: "escalated"}, checkpoint.Entry{Key: "b", LeadID: "lead-2", Status: long})
	d = d.again(t)
	if a, b := Lookup(t, d, "a").Status, Lookup(t, d, "b").Status; a != "escalated" || b != strings.Repeat("ü", checkpoint.MaxStatus) {
		t.Errorf("%q, %q", a, b)
	}
	if checkpoint.KnownStatus("escalated") || !checkpoint.KnownStatus("open") {
		t.Error("which statuses the specification names")
	}
}

// An export of everything, adopted by a new file: leads are known, doubts stay
// doubts, refused rows are left out, and what was forgotten stays so.
func exportIsAdoptedByANewCheckpoint(t *testing.T, b Backend) {
	old := b.open(t)
	seed(t, old)
	partial := CreatedEntry("partial", "lead-p", 1)
	partial.State, partial.ExternalID, partial.WantLink = checkpoint.Partial, "", "crm-p"
	taken := CreatedEntry("taken", Lookup(t, old, "key-00001").LeadID, 1)
	for _, e := range []checkpoint.Entry{partial, taken} {
		settled(t, old, e)
	}
	resolved(t, old, checkpoint.Decision{Key: "doubt-1", Exists: true})
	list := contents(t, old)
	d := b.open(t)
	forgotten(t, d, checkpoint.ForgetResult{Unknown: 1}, "key-00003")
	adopted(t, d, checkpoint.AdoptResult{Leads: 21, InDoubt: 3, Rejected: 3, Forgotten: 1}, list...)
	d = d.again(t)
	for _, was := range list {
		got := Lookup(t, d, was.Key)
		switch {
		case was.Key == "key-00003":
			was = checkpoint.Entry{Key: was.Key, State: checkpoint.Forgotten}
		case was.State == checkpoint.Rejected:
			was = checkpoint.Entry{Key: was.Key}
		case was.State == checkpoint.InDoubt && was.Reason == "":
			was.Reason = checkpoint.ReasonAdopted
		}
		was.Digest, was.Content = checkpoint.Digest{}, nil
		if was.Seq, got.Seq = 0, 0; was.State != checkpoint.InDoubt {
			was.Updated = got.Updated
		}
		equal(t, was.Key, was, got)
	}
	adopted(t, d, checkpoint.AdoptResult{Known: 24, Rejected: 3, Forgotten: 1}, list...)
}

// Lines that stay, and lines that come, do not get the place of one another.
func decisionsAfterForgetting(t *testing.T, b Backend) {
	d := b.open(t)
	decide := func(key string) {
		claimed(t, d, IntentOf(key, 1))
		resolved(t, d, checkpoint.Decision{Key: key})
	}
	for _, key := range []string{"a", "b", "c"} {
		decide(key)
	}
	forgotten(t, d, checkpoint.ForgetResult{Unknown: 2}, "a", "b")
	decide("d")
	decide("e")
	equal(t, "decisions", []checkpoint.Decision{{Key: "c"}, {Key: "d"}, {Key: "e"}}, decisions(t, d))
}

// aDecisionIsCorrectedOnceTheKeysBehindItAreGone: then the lead stands last, wherever it stood before.
func aDecisionIsCorrectedOnceTheKeysBehindItAreGone(t *testing.T, b Backend) {
	d := b.open(t)
	settled(t, d, CreatedEntry("z", "lead-z", 1))
	claimed(t, d, IntentOf("a", 2))
	resolved(t, d, checkpoint.Decision{Key: "a", LeadID: "wrong"})
	forgotten(t, d, checkpoint.ForgetResult{Leads: 1}, "z")
	for _, id := range []string{"wrong-too", "right"} {
		resolved(t, d, checkpoint.Decision{Key: "a", LeadID: id})
		if e := Lookup(t, d, "a"); e.State != checkpoint.Created || e.LeadID != id {
			t.Errorf("%v with %q instead of %q", e.State, e.LeadID, id)
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
		settled(t, d, checkpoint.Entry{Key: fmt.Sprintf("refused-%d", i), State: checkpoint.Rejected, Code: 422, Reason: "refused"})
	}
}

// withPerson makes a checkpoint in which a person stands everywhere that one can.
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
	if got := Lookup(t, d, "bob"); got.State != checkpoint.InDoubt || got.Reason != checkpoint.ReasonLeadTaken || got.LeadID != "" {
		t.Errorf("a neighbour's earlier doubt: %+v", got)
	}
	if i := d.Info(); i.Leads != 20 || i.InDoubt != 3 {
		t.Errorf("%d leads, %d in doubt", i.Leads, i.InDoubt)
	}
	if left := told(t, d); len(left) != 0 {
		t.Errorf("left of decisions: %q", left)
	}
}

func unblockedKeyIsNew(t *testing.T, b Backend) {
	d := b.open(t)
	withPerson(t, d)
	for _, unblock := range []bool{false, true, true} {
		if _, err := d.Forget(t.Context(), []string{"ann"}, unblock); err != nil {
			t.Fatal(err)
		}
	}
	if err := Claim(d, IntentOf("ann", 1)); err != nil {
		t.Error(err)
	}
	if counts := d.Info().Keys; counts[checkpoint.Forgotten] != 0 {
		t.Error(counts)
	}
	if _, err := d.Forget(t.Context(), []string{"ann"}, true); err != nil { // its claim, too
		t.Fatal(err)
	}
	taken := checkpoint.Change{Kind: checkpoint.Mark, Entry: checkpoint.Entry{Key: "ann", LeadID: "lead.new"}}
	outcome := checkpoint.Change{Kind: checkpoint.Settle, Entry: CreatedEntry("ann", "lead.next", 1)}
	if err := d.Commit(t.Context(), []*checkpoint.Change{&taken, &outcome}); err != nil || taken.Err != nil || outcome.Err != nil || outcome.Entry.LeadID != "lead.next" {
		t.Errorf("what was claimed before a key was forgotten counts after it: %v, %v, %v, %+v", err, taken.Err, outcome.Err, outcome.Entry)
	}
	if _, err := d.Forget(t.Context(), []string{"a", ""}, false); !isListError(err, 1, "") || Lookup(t, d, "a").State != checkpoint.Unknown {
		t.Errorf("no key: %v", err)
	}
}
