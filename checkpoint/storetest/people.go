package storetest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"leadferry/checkpoint"
)

func decisionsSettleDoubts(t *testing.T, b Backend) {
	now := time.Date(2026, 3, 4, 5, 6, 7, 0, time.FixedZone("x", 3600))
	d := b.openAt(t, func() time.Time { return now })
	for i := range 5 {
		in := IntentOf(fmt.Sprint("k", i), i)
		if i == 1 {
			in.WantLink = "crm-1"
		}
		claimed(t, d, in)
	}
	settled(t, d, CreatedEntry("known", "lead-known", 1))
	for name, refused := range map[string]struct {
		index int
		list  []checkpoint.Decision
	}{
		"not in doubt":      {1, []checkpoint.Decision{{Key: "k0"}, {Key: "known", LeadID: "x"}}},
		"never heard of":    {0, []checkpoint.Decision{{Key: "none"}}},
		"key twice":         {1, []checkpoint.Decision{{Key: "k0"}, {Key: "k0"}}},
		"ID twice":          {2, []checkpoint.Decision{{Key: "k0", LeadID: "x"}, {Key: "k2"}, {Key: "k1", LeadID: "x"}}},
		"no ID":             {1, []checkpoint.Decision{{Key: "k0"}, {Key: "k1", LeadID: "not found"}}},
		"ID of a known key": {1, []checkpoint.Decision{{Key: "k0", LeadID: "x"}, {Key: "k1", LeadID: "lead-known"}}},
	} {
		if err := Resolve(d, refused.list...); !isListError(err, refused.index, refused.list[refused.index].Key) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if d.Info().InDoubt != 5 {
		t.Fatalf("%d in doubt: a refused list was carried out in part", d.Info().InDoubt)
	}
	made := []checkpoint.Decision{{Key: "k0", LeadID: "lead-0"}, {Key: "k1", LeadID: "lead-1"}, {Key: "k2", Exists: true}, {Key: "k3"}}
	resolved(t, d, made...)
	for i, want := range []checkpoint.State{checkpoint.Created, checkpoint.Partial, checkpoint.Created, checkpoint.NotMade, checkpoint.InDoubt} {
		if got := Lookup(t, d, fmt.Sprint("k", i)); got.State != want {
			t.Errorf("k%d is %v, want %v", i, got.State, want)
		}
	}
	equal(t, "decisions", made, decisions(t, d))
	for _, one := range audit(t, d).Decisions {
		if !one.At.Equal(now) || one.At.Location() != time.UTC {
			t.Errorf("decided at %v", one.At)
		}
	}
}

// A refusal from before does not hold back a row that a person has set free.
func decisionThatNothingWasCreatedFreesTheRow(t *testing.T, b Backend) {
	d := b.open(t)
	settled(t, d, checkpoint.Entry{Key: "k", State: checkpoint.Rejected, Code: 422, Reason: "refused"})
	claimed(t, d, IntentOf("k", 1))
	resolved(t, d, checkpoint.Decision{Key: "k"})
	if got := Lookup(t, d, "k"); got.State != checkpoint.NotMade {
		t.Errorf("still %v", got.State)
	}
	equal(t, "history", []string{"rejected +refused  422", "in_doubt +doubted open 0", "not_made +decided  0"}, acts(t, d, "k"))
	if err := Claim(d, IntentOf("k", 2)); err != nil {
		t.Errorf("sent again: %v", err)
	}
}

// faults 127
func aWrongDecisionIsCorrected(t *testing.T, b Backend) {
	at := time.UnixMilli(1_780_000_000_000).UTC()
	d := b.openAt(t, func() time.Time { return at })
	doubted(t, d, "free", "exists", "a", "b", "none")
	before := map[string]checkpoint.Entry{}
	for _, key := range []string{"free", "exists", "a", "b", "none"} {
		before[key] = Lookup(t, d, key)
	}
	wrong := []checkpoint.Decision{{Key: "free"}, {Key: "exists", Exists: true}, {Key: "a", LeadID: "lead-b"}, {Key: "b", LeadID: "lead-a"}, {Key: "none", LeadID: "lead-n"}}
	if r := resolved(t, d, wrong...); r != (checkpoint.ResolveResult{Settled: 5}) {
		t.Fatalf("%+v", r)
	}
	// The link of the wrong lead is refused meanwhile.
	stuck := Lookup(t, d, "a")
	stuck.Code, stuck.Updated = 404, at.Add(time.Hour)
	settled(t, d, stuck)
	if r := resolved(t, d, wrong...); r != (checkpoint.ResolveResult{Before: 5}) {
		t.Fatalf("the same again: %+v", r)
	}
	d.Close()
	d = b.reopen(t, d.place, func() time.Time { return at.Add(2 * time.Hour) })
	right := []checkpoint.Decision{{Key: "free", LeadID: "lead-f"}, {Key: "exists", LeadID: "lead-e"}, {Key: "a", LeadID: "lead-a"}, {Key: "b", LeadID: "lead-b"}, {Key: "none"}}
	if r := resolved(t, d, right...); r != (checkpoint.ResolveResult{Corrected: 5}) {
		t.Fatalf("%+v", r)
	}
	for _, one := range right {
		was, got := before[one.Key], Lookup(t, d, one.Key)
		if one.LeadID == "" {
			if got.State != checkpoint.NotMade {
				t.Errorf("%s: %+v", one.Key, got)
			}
			continue
		}
		was.State, was.LeadID, was.Status, was.Updated, was.Seq = checkpoint.Partial, one.LeadID, "", got.Updated, got.Seq
		equal(t, one.Key, was, got)
	}
	equal(t, "both decisions", append(wrong, right...), decisions(t, d))
	for _, key := range []string{"a", "none", "free"} {
		events := history(t, d, key)
		if events[0].Act != checkpoint.Doubted || !events[0].At.Equal(before[key].Updated) || events[0].File != "leads.csv" || events[0].Line != before[key].Line {
			t.Errorf("%s: the send before is gone: %+v", key, events)
		}
	}
	equal(t, "history", []string{"in_doubt +doubted open 0", "partial +made+decided  0", "partial   404", "partial +made+decided  0"}, acts(t, d, "a"))
}

// What was sent again since is no decision's business any more.
func aDecisionOfTheDayBeforeIsRefused(t *testing.T, b Backend) {
	d := b.open(t)
	doubted(t, d, "again", "made", "doubt")
	listed := map[string]checkpoint.Entry{}
	for _, key := range []string{"again", "made", "doubt"} {
		listed[key] = Lookup(t, d, key)
	}
	resolved(t, d, checkpoint.Decision{Key: "again"}, checkpoint.Decision{Key: "made"})
	in := IntentOf("again", 1)
	in.Updated, in.Run = in.Updated.Add(24*time.Hour), "20260102T000000Z-1"
	settled(t, d, CreatedEntry("made", "lead-1", 1))
	claimed(t, d, in)
	for name, one := range map[string]checkpoint.Decision{
		"by its time": {Key: "again", Sent: listed["again"].Updated.Truncate(time.Second)},
		"by its run":  {Key: "again", Run: listed["again"].Run},
		"made":        {Key: "made", LeadID: "lead-9"},
		"made, again": {Key: "made"},
	} {
		if err := Resolve(d, checkpoint.Decision{Key: "doubt"}, one); !isListError(err, 1, one.Key) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if d.Info().InDoubt != 2 {
		t.Errorf("%d in doubt", d.Info().InDoubt)
	}
	resolved(t, d, checkpoint.Decision{Key: "doubt", Sent: listed["doubt"].Updated.Truncate(time.Second)})
	resolved(t, d, checkpoint.Decision{Key: "again", Sent: in.Updated.Truncate(time.Second), Run: in.Run})
}

// A lead that a decision does not give up cannot be given to another row.
func aCorrectionTakesNoLeadFromAnother(t *testing.T, b Backend) {
	d := b.open(t)
	doubted(t, d, "a", "b", "c")
	resolved(t, d, checkpoint.Decision{Key: "a", LeadID: "lead-a"}, checkpoint.Decision{Key: "b", LeadID: "lead-b"})
	for _, list := range [][]checkpoint.Decision{
		{{Key: "a", LeadID: "lead-b"}},
		{{Key: "c", LeadID: "lead-a"}},
		{{Key: "b", LeadID: "lead-b"}, {Key: "a", LeadID: "lead-b"}},
		{{Key: "b", LeadID: "lead-b"}, {Key: "c", LeadID: "lead-b"}},
	} {
		if err := Resolve(d, list...); !isListError(err, len(list)-1, list[len(list)-1].Key) {
			t.Errorf("%+v: %v", list, err)
		}
	}
	if err := Resolve(d, checkpoint.Decision{Key: "c", LeadID: "lead-a"}, checkpoint.Decision{Key: "a"}); err != nil {
		t.Error("a lead that is given up:", err)
	}
	if got := Lookup(t, d, "c"); got.LeadID != "lead-a" || d.Info().InDoubt != 0 || d.Info().Leads != 2 {
		t.Errorf("%+v", got)
	}
}

// Evidence that comes after a decision and does not fit it is kept once; evidence
// about rows that nobody decided about is none.
func evidenceAgainstADecisionIsKept(t *testing.T, b Backend) {
	now := time.UnixMilli(1_770_000_000_000).UTC()
	d := b.openAt(t, func() time.Time { return now })
	decided := []checkpoint.Decision{{Key: "given", LeadID: "lead-1"}, {Key: "gone", LeadID: "lead-2"}, {Key: "free"}, {Key: "there", Exists: true}}
	for _, one := range append(decided, checkpoint.Decision{Key: "undecided"}) {
		claimed(t, d, IntentOf(one.Key, 1))
	}
	resolved(t, d, decided...)
	at := now
	now = now.Add(time.Hour)
	for range 2 {
		for _, e := range []checkpoint.Entry{
			CreatedEntry("other", "lead-1", 1),
			{Key: "gone", State: checkpoint.Partial, LeadID: "lead-2", Code: 404},
			{Key: "free", State: checkpoint.Rejected, Code: 409},
			{Key: "undecided", State: checkpoint.Rejected, Code: 409},
			{Key: "given", State: checkpoint.Created, LeadID: "lead-1", Code: 200},
			{Key: "there", State: checkpoint.Created, Code: 404},
			CreatedEntry("own", "lead-7", 1),
			{Key: "own", State: checkpoint.Partial, LeadID: "lead-7", Code: 404},
			CreatedEntry("own too", "lead-7", 1),
		} {
			settled(t, d, e)
		}
	}
	want := []checkpoint.Contradiction{
		{Decision: decided[0], Decided: at, Found: now, Other: "other", Text: checkpoint.LeadOfAnother.String()},
		{Decision: decided[1], Decided: at, Found: now, Text: checkpoint.NoSuchLead.String()},
		{Decision: decided[2], Decided: at, Found: now, Text: checkpoint.AlreadyThere.String()},
	}
	equal(t, "contradictions", want, audit(t, d).Contradictions)
	d = d.again(t)
	if got := audit(t, d).Contradictions; len(got) != 3 {
		t.Errorf("after opening again: %+v", got)
	}
	if r, err := d.Forget(context.Background(), []string{"other"}, false); err != nil || r.InDoubt != 1 || len(audit(t, d).Contradictions) != 2 {
		t.Errorf("a forgotten key is still named: %+v, %v", r, err)
	}
}

// A later decision is what counts.
func evidenceAgainstAnOldDecisionIsNone(t *testing.T, b Backend) {
	d := b.open(t)
	for _, one := range []checkpoint.Decision{{Key: "k"}, {Key: "k", LeadID: "lead-1"}} {
		in := IntentOf("k", 1)
		claimed(t, d, in)
		one.Run = in.Run // else it is refused: the row was in doubt before
		resolved(t, d, one)
	}
	settled(t, d, checkpoint.Entry{Key: "k", State: checkpoint.Rejected, Code: 409})
	if got := audit(t, d).Contradictions; len(got) != 0 {
		t.Errorf("%+v", got)
	}
}

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
		claimed(t, d, checkpoint.Entry{Key: "k", Run: fmt.Sprint("run-", run), WantLink: "crm", Updated: at().Add(-time.Millisecond)})
	}
	sent()
	step(checkpoint.Entry{State: checkpoint.Rejected, Code: 422})
	sent()
	step(checkpoint.Entry{State: checkpoint.InDoubt, Code: 504})
	sent() // again, although in doubt
	resolved(t, d, checkpoint.Decision{Key: "k", LeadID: "lead-1", Run: fmt.Sprint("run-", run)})
	step(checkpoint.Entry{State: checkpoint.Partial, LeadID: "lead-1", Code: 500})
	step(checkpoint.Entry{State: checkpoint.Created, LeadID: "lead-1", ExternalID: "crm", Status: "open", Code: 200})
	step(checkpoint.Entry{State: checkpoint.Created, LeadID: "lead-1", ExternalID: "crm", Status: "closedWon", Digest: checkpoint.Digest{1}})
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
		step(checkpoint.Entry{State: checkpoint.Created, LeadID: "lead-1", ExternalID: "crm", Status: "closedWon", Digest: checkpoint.Digest{2}})
	}
	d = d.again(t)
	events := history(t, d, "k")
	if events[0].Act != checkpoint.Refused || events[0].Run != "run-0" || events[len(events)-1].Run != fmt.Sprint("run-", run-1) ||
		len(events) < 8 || events[1].Act != checkpoint.Doubted || events[2].Act != checkpoint.Doubted || events[3].Act&checkpoint.Decided == 0 {
		t.Errorf("of a long history: %+v", events)
	}
	if events := history(t, d, "none"); len(events) != 0 {
		t.Errorf("of nothing: %+v", events)
	}
}

// A row whose create was withdrawn has no event; one in doubt shows its send.
func historyOfADoubt(t *testing.T, b Backend) {
	d := b.open(t)
	claimed(t, d, IntentOf("a", 1), IntentOf("b", 1))
	withdrawn(t, d, "b")
	equal(t, "sent", []string{"in_doubt +doubted open 0"}, acts(t, d, "a"))
	equal(t, "withdrawn", nil, acts(t, d, "b"))
}
