package storetest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"leadferry/checkpoint"
	"leadferry/internal/rowkey"
	"leadferry/internal/testsupport/must"
)

// TestRules tests the rules of package checkpoint for lists, decisions and doubts with a ledger in a file.
func TestRules(t *testing.T) {
	inAFile().run(t, []func(*testing.T, Backend){
		findsByKeyThenLeadIDThenExternalID, findNamesASimilarKey, marksChangeNothingElse, leadOfAnotherKeyLeavesDoubt,
		withdrawnResendRestoresTheEarlierDoubt, anEarlierDoubtStays, requestIDOfADoubtIsKept, decisionsSettleDoubts,
		decisionThatNothingWasCreatedFreesTheRow, aWrongDecisionIsCorrected, aDecisionOnAnEarlierSendIsRefused,
		aCorrectionTakesNoLeadFromAnother, adoptedLeadsAreKnownAndTheirDataIsNot, adoptRefusesAListAsAWhole,
		adoptCompletesALeadWithoutID, adoptSettlesUnkeptAnswers, adoptChangesNoLeadID, adoptKeepsAnUnknownStatus,
		exportIsAdoptedByANewCheckpoint, anUnblockedKeyIsNew, forgottenKeyIsNotSentAgain, shapesOutliveTheProcess,
		historyTellsWhatWasDone,
	})
}

// fault 66: if two rows settled in one commit have the same lead, the second one becomes in doubt.
func leadOfAnotherKeyLeavesDoubt(t *testing.T, b Backend) {
	for _, lead := range []string{"lead.1", "0b1c2d3e-0000-4000-8000-000000000001", "first"} {
		t.Run(lead, func(t *testing.T) {
			d := b.open(t)
			claimed(t, d, IntentOf("first", 7), IntentOf("second", 7))
			stored := Together(t, d, checkpoint.Settle, CreatedEntry("first", lead, 7), CreatedEntry("second", lead, 7))
			if first := stored[0]; first.State != checkpoint.Created {
				t.Errorf("first: %+v", first)
			}
			got := stored[1]
			if got.State != checkpoint.InDoubt || got.Reason != checkpoint.ReasonLeadTaken || got.LeadID != lead || got.File != "leads.csv" {
				t.Errorf("second: %+v", got)
			}
			must.Same(t, got, Lookup(t, d, "second"), "looked up")
			// The first may be settled again: the lead is its own.
			if again, err := Settle(d, CreatedEntry("first", lead, 8)); err != nil || again.State != checkpoint.Created {
				t.Errorf("again: %+v, %v", again, err)
			}
		})
	}
}

// If the resend of a row in doubt is withdrawn before it is sent, the row is in the same doubt as before.
func withdrawnResendRestoresTheEarlierDoubt(t *testing.T, b Backend) {
	d := b.open(t)
	claimed(t, d, IntentOf("k", 5))
	doubt := settled(t, d, checkpoint.Entry{Key: "k", State: checkpoint.InDoubt, Code: 504, Reason: "server_error"})
	claimed(t, d, IntentOf("k", 99))
	if got := Lookup(t, d, "k"); got.Line != 101 || got.Code != 0 {
		t.Errorf("sent again: %+v", got)
	}
	d = d.again(t)
	withdrawn(t, d, "k")
	if must.Same(t, doubt, Lookup(t, d, "k"), "the doubt"); d.Info().InDoubt != 1 {
		t.Errorf("%d in doubt", d.Info().InDoubt)
	}
}

// Only a resend may claim a row in doubt. The row stays in doubt unless the resend gets a lead: a refusal says nothing
// about the earlier send, and a withdrawal takes back only the claim of its own run.
func anEarlierDoubtStays(t *testing.T, b Backend) {
	d := b.open(t)
	first, again := IntentOf("a", 1), IntentOf("a", 1)
	first.Run, again.Run = "first", "again"
	claimed(t, d, first)
	unaware := &checkpoint.Change{Kind: checkpoint.Claim, Entry: again}
	if err := d.Commit(t.Context(), []*checkpoint.Change{unaware}); err != nil || !errors.Is(unaware.Err, checkpoint.ErrDoubt) {
		t.Errorf("claimed without Resend: %v, %v", err, unaware.Err)
	}
	claimed(t, d, again)
	if _, err := Change(d, checkpoint.Withdraw, first); err != nil {
		t.Fatal(err)
	}
	if e := Lookup(t, d, "a"); e.State != checkpoint.InDoubt || e.Run != "again" {
		t.Errorf("another run's claim was withdrawn: %+v", e)
	}
	refused := checkpoint.Entry{Key: "a", Run: "again", State: checkpoint.Rejected, Code: 422, Reason: "refused"}
	if e := settled(t, d, refused); e.State != checkpoint.InDoubt || e.Run != "first" {
		t.Errorf("after a refusal: %+v", e)
	}
	third := IntentOf("a", 1)
	third.Run = "third"
	claimed(t, d, again, third)
	if _, err := Change(d, checkpoint.Withdraw, third); err != nil {
		t.Fatal(err)
	}
	if err := Resolve(d, checkpoint.Decision{Key: "a"}); !isListError(err, 0, "a") {
		t.Errorf("a list that does not say which of two sends it is about: %v", err)
	}
	if e := settled(t, d, refused); e.State != checkpoint.InDoubt || e.Run != "first" {
		t.Errorf("after a refusal of the second of three: %+v", e)
	}
}

// The service's operators find a create by its request ID. A row in doubt keeps the ID of its claim, or of its last
// attempt if the outcome names one.
func requestIDOfADoubtIsKept(t *testing.T, b Backend) {
	const first, last = "0b1c2d3e-0000-4000-8000-000000000001", "0b1c2d3e-0000-4000-8000-000000000002"
	d := b.open(t)
	for key, id := range map[string]string{"known": "", "also known": last} {
		in := IntentOf(key, 1)
		in.RequestID = first
		claimed(t, d, in)
		d = d.again(t)
		if got := Lookup(t, d, key); got.RequestID != first {
			t.Errorf("%s, claimed: %+v", key, got)
		}
		settled(t, d, checkpoint.Entry{Key: key, State: checkpoint.InDoubt, RequestID: id, Reason: "timeout"})
		if got := Lookup(t, d, key); got.RequestID != cmp.Or(id, first) {
			t.Errorf("%s, in doubt: %+v", key, got)
		}
	}
}

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
	must.Same(t, made, decisions(t, d), "decisions")
	for _, one := range audit(t, d) {
		if !one.At.Equal(now) || one.At.Location() != time.UTC {
			t.Errorf("decided at %v", one.At)
		}
	}
}

// An earlier refusal does not hold back a row that a person has freed.
func decisionThatNothingWasCreatedFreesTheRow(t *testing.T, b Backend) {
	d := b.open(t)
	settled(t, d, checkpoint.Entry{Key: "k", State: checkpoint.Rejected, Code: 422, Reason: "refused", Updated: time.UnixMilli(1)})
	claimed(t, d, IntentOf("k", 1))
	resolved(t, d, checkpoint.Decision{Key: "k"})
	if got := Lookup(t, d, "k"); got.State != checkpoint.NotMade {
		t.Errorf("still %v", got.State)
	}
	must.Same(t, []string{"rejected +refused  422", "in_doubt +doubted open 0", "not_made +decided  0"}, acts(t, d, "k"), "history")
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
	if r := resolved(t, d, wrong...); r != (checkpoint.ResolveResult{}) {
		t.Fatalf("%+v", r)
	}
	// Meanwhile the service refuses to link the wrong lead.
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
		must.Same(t, was, got, one.Key)
	}
	for _, list := range [][]checkpoint.Decision{wrong, right} { // decisions of one moment are sorted by key
		slices.SortFunc(list, func(x, y checkpoint.Decision) int { return strings.Compare(x.Key, y.Key) })
	}
	must.Same(t, append(wrong, right...), decisions(t, d), "both decisions")
	for _, key := range []string{"a", "none", "free"} {
		events := history(t, d, key)
		if events[0].Act != checkpoint.Doubted || !events[0].At.Equal(before[key].Updated) || events[0].File != "leads.csv" || events[0].Line != before[key].Line {
			t.Errorf("%s: the send before is gone: %+v", key, events)
		}
	}
	must.Same(t, []string{"in_doubt +doubted open 0", "partial +made+decided  0", "partial   404", "partial +made+decided  0"}, acts(t, d, "a"), "history")
}

// A decision about a send is refused if the row was sent again or settled since.
func aDecisionOnAnEarlierSendIsRefused(t *testing.T, b Backend) {
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

// A correction cannot give a row the lead of another row, unless the same list takes it from that row.
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
	must.Same(t, before, contents(t, d), "after the same list again")
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
		"long key":         {Key: strings.Repeat("k", rowkey.Longest+1), LeadID: "lead-2"},
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
		if _, err := Adopt(d, good, bad); !isListError(err, 1, bad.Key) {
			t.Errorf("%s: %v", name, err)
		}
		must.Same(t, before, contents(t, d), name+", taken in part")
	}
}

// A list completes a lead with an unknown ID. The digest of the lead's data stays.
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

// An answer that a run could not store settles only the send of that run, and never with the lead of another row.
func adoptSettlesUnkeptAnswers(t *testing.T, b Backend) {
	d := b.open(t)
	doubted(t, d, "a", "b", "c", "d")
	settled(t, d, CreatedEntry("e", "lead-e", 1))
	run := Lookup(t, d, "a").Run
	answer := func(key, lead, run string) checkpoint.Entry {
		return checkpoint.Entry{Key: key, State: checkpoint.InDoubt, LeadID: lead, Run: run, Reason: checkpoint.ReasonUnkept}
	}
	list := []checkpoint.Entry{
		answer("a", "lead-a", run), answer("b", "lead-b", "another run"), answer("c", "lead-e", run), answer("d", "lead-f", run), {Key: "f", LeadID: "lead-f"},
	}
	adopted(t, d, checkpoint.AdoptResult{Leads: 2, Known: 3}, list...)
	for key, want := range map[string]checkpoint.State{"a": checkpoint.Partial, "b": checkpoint.InDoubt, "c": checkpoint.InDoubt, "d": checkpoint.InDoubt} {
		if got := Lookup(t, d, key); got.State != want || key == "a" && got.LeadID != "lead-a" {
			t.Errorf("%s: %+v", key, got)
		}
	}
	adopted(t, d, checkpoint.AdoptResult{Known: 5}, list...)
}

// No list changes a known lead ID, wherever it came from.
func adoptChangesNoLeadID(t *testing.T, b Backend) {
	d := b.open(t)
	doubted(t, d, "c", "d")
	adopted(t, d, checkpoint.AdoptResult{Leads: 2}, checkpoint.Entry{Key: "a", LeadID: "lead-a"}, checkpoint.Entry{Key: "b", LeadID: "lead-b"})
	resolved(t, d, checkpoint.Decision{Key: "c", LeadID: "lead-c"}, checkpoint.Decision{Key: "d", LeadID: "lead-d"})
	settled(t, d, CreatedEntry("made", "lead-m", 1))
	before := contents(t, d)
	for _, list := range [][]checkpoint.Entry{
		{{Key: "made", LeadID: "lead-n"}},
		{{Key: "c", LeadID: "lead-x"}},
		{{Key: "b", LeadID: "lead-b"}, {Key: "a", LeadID: "lead-b"}},
		{{Key: "b", LeadID: "lead-9", State: checkpoint.InDoubt}, {Key: "a", LeadID: "lead-b"}},
		{{Key: "e", LeadID: "lead-e"}, {Key: "a", LeadID: "lead-9"}},
		{{Key: "a", LeadID: "lead-d"}},
	} {
		if _, err := Adopt(d, list...); !isListError(err, len(list)-1, list[len(list)-1].Key) {
			t.Errorf("%+v: %v", list, err)
		}
	}
	must.Same(t, before, contents(t, d), "after lists that were refused")
}

// A status that the specification does not name is stored as it is, up to a maximum length.
func adoptKeepsAnUnknownStatus(t *testing.T, b Backend) {
	d := b.open(t)
	long := strings.Repeat("ü", checkpoint.MaxStatus+9)
	adopted(t, d, checkpoint.AdoptResult{Leads: 2}, checkpoint.Entry{Key: "a", LeadID: "lead-1", Status: "escalated"}, checkpoint.Entry{Key: "b", LeadID: "lead-2", Status: long})
	d = d.again(t)
	if a, b := Lookup(t, d, "a").Status, Lookup(t, d, "b").Status; a != "escalated" || b != strings.Repeat("ü", checkpoint.MaxStatus) {
		t.Errorf("%q, %q", a, b)
	}
	if slices.Contains(checkpoint.Statuses[:], "escalated") || !slices.Contains(checkpoint.Statuses[:], "open") {
		t.Error("which statuses the specification names")
	}
}

// A new checkpoint adopts an export of everything: leads are known, doubts stay doubts, rejected rows are left out, and
// forgotten keys stay forgotten.
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
	forgotten(t, d, checkpoint.ForgetResult{checkpoint.Unknown: 1}, "key-00003")
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
		must.Same(t, was, got, was.Key)
	}
	adopted(t, d, checkpoint.AdoptResult{Known: 24, Rejected: 3, Forgotten: 1}, list...)
}

func anUnblockedKeyIsNew(t *testing.T, b Backend) {
	d := b.open(t)
	withPerson(t, d)
	for _, unblock := range []bool{false, true, true} {
		if _, err := checkpoint.Forget(t.Context(), d, []string{"ann"}, unblock); err != nil {
			t.Fatal(err)
		}
	}
	must.Do(t, Claim(d, IntentOf("ann", 1)))
	if counts := d.Info().Keys; counts[checkpoint.Forgotten] != 0 {
		t.Error(counts)
	}
	if _, err := checkpoint.Forget(t.Context(), d, []string{"ann"}, true); err != nil { // removes its claim, too
		t.Fatal(err)
	}
	taken := checkpoint.Change{Kind: checkpoint.Mark, Entry: checkpoint.Entry{Key: "ann", LeadID: "lead.new"}}
	outcome := checkpoint.Change{Kind: checkpoint.Settle, Entry: CreatedEntry("ann", "lead.next", 1)}
	if err := d.Commit(t.Context(), []*checkpoint.Change{&taken, &outcome}); err != nil || taken.Err != nil || outcome.Err != nil || outcome.Entry.LeadID != "lead.next" {
		t.Errorf("a claim from before the key was forgotten still counts: %v, %v, %v, %+v", err, taken.Err, outcome.Err, outcome.Entry)
	}
	if _, err := checkpoint.Forget(t.Context(), d, []string{"a", ""}, false); !isListError(err, 1, "") || Lookup(t, d, "a").State != checkpoint.Unknown {
		t.Errorf("no key: %v", err)
	}
}

func decisions(t TB, d checkpoint.Store) (all []checkpoint.Decision) {
	t.Helper()
	for _, one := range audit(t, d) {
		all = append(all, one.Decision)
	}
	return all
}

// isListError reports whether an error refuses the entry with this index and key.
func isListError(err error, index int, key string) bool {
	why := (*checkpoint.ListError)(nil)
	return errors.As(err, &why) && why.Index == index && why.Key == key
}

// doubted makes a row in doubt for each key, sent one minute apart.
func doubted(t TB, d checkpoint.Store, keys ...string) {
	t.Helper()
	for i, key := range keys {
		in := IntentOf(key, i)
		in.WantLink, in.Digest = "crm-"+key, d.Digests().Sum([]byte(key))
		in.Updated = in.Updated.Add(time.Duration(i) * time.Minute)
		claimed(t, d, in)
	}
}

func findsByKeyThenLeadIDThenExternalID(t *testing.T, b Backend) {
	d := b.open(t)
	put := func(key, lead, external string, s checkpoint.State) {
		e := CreatedEntry(key, lead, 3)
		e.ExternalID, e.State = external, s
		settled(t, d, e)
	}
	put("a", "lead.a", "x-a", checkpoint.Created)
	put("b", "lead.b", "b", checkpoint.Partial)
	put("lead.c", "lead.c", "x-c", checkpoint.Created)
	put("d1", "lead.d1", "x-d", checkpoint.Created)
	put("d2", "lead.d2", "x-d", checkpoint.Created)
	put("e1", "lead.e1", "x-e", checkpoint.Created)
	put("x-e", "lead.e2", "x-e", checkpoint.Created)
	put("r", "", "x-r", checkpoint.Rejected)
	put("noid", "", "x-noid", checkpoint.Created)
	claimed(t, d, IntentOf("doubt", 4))
	forgotten(t, d, checkpoint.ForgetResult{checkpoint.Unknown: 1}, "gone")
	for _, test := range []struct {
		q    checkpoint.Query
		how  checkpoint.Match
		key  string
		stat checkpoint.State
	}{
		{checkpoint.Query{Key: "a"}, checkpoint.ByKey, "a", checkpoint.Created},
		{checkpoint.Query{Key: "a", LeadID: "lead.a", ExternalID: "x-d"}, checkpoint.ByKey, "a", checkpoint.Created},
		{checkpoint.Query{Key: "a", LeadID: "lead.new"}, checkpoint.ByKey, "a", checkpoint.Created},
		{checkpoint.Query{Key: "a", LeadID: "lead.b"}, checkpoint.Ambiguous, "a", checkpoint.Created},
		{checkpoint.Query{Key: "noid", LeadID: "lead.b"}, checkpoint.Ambiguous, "noid", checkpoint.Created},
		{checkpoint.Query{Key: "noid", LeadID: "lead.new"}, checkpoint.ByKey, "noid", checkpoint.Created},
		{checkpoint.Query{Key: "new", LeadID: "lead.a", ExternalID: "b"}, checkpoint.ByLeadID, "a", checkpoint.Created},
		{checkpoint.Query{Key: "new", LeadID: "lead.c"}, checkpoint.ByLeadID, "lead.c", checkpoint.Created},
		{checkpoint.Query{Key: "new", LeadID: "lead.new"}, checkpoint.NoMatch, "new", checkpoint.Unknown},
		{checkpoint.Query{Key: "new", LeadID: "lead.new", ExternalID: "x-a"}, checkpoint.Ambiguous, "", checkpoint.Unknown},
		{checkpoint.Query{Key: "new", LeadID: "lead.new", ExternalID: "x-noid"}, checkpoint.ByExternalID, "noid", checkpoint.Created},
		{checkpoint.Query{Key: "new", ExternalID: "x-a"}, checkpoint.ByExternalID, "a", checkpoint.Created},
		{checkpoint.Query{Key: "new", ExternalID: "x-"}, checkpoint.NoMatch, "new", checkpoint.Unknown},
		{checkpoint.Query{Key: "new", ExternalID: "x-aa"}, checkpoint.NoMatch, "new", checkpoint.Unknown},
		{checkpoint.Query{Key: "new", ExternalID: "b"}, checkpoint.ByExternalID, "b", checkpoint.Partial},
		{checkpoint.Query{Key: "new", ExternalID: "x-c"}, checkpoint.ByExternalID, "lead.c", checkpoint.Created},
		{checkpoint.Query{Key: "new", ExternalID: "x-d"}, checkpoint.Ambiguous, "", checkpoint.Unknown},
		{checkpoint.Query{Key: "new", ExternalID: "x-e"}, checkpoint.Ambiguous, "", checkpoint.Unknown},
		{checkpoint.Query{Key: "x-e", ExternalID: "x-e"}, checkpoint.ByKey, "x-e", checkpoint.Created},
		{checkpoint.Query{Key: "new", ExternalID: "x-r"}, checkpoint.NoMatch, "new", checkpoint.Unknown},
		{checkpoint.Query{Key: "r"}, checkpoint.NoMatch, "r", checkpoint.Rejected},
		{checkpoint.Query{Key: "r", LeadID: "lead.a"}, checkpoint.ByLeadID, "a", checkpoint.Created},
		{checkpoint.Query{Key: "r", ExternalID: "x-a"}, checkpoint.ByExternalID, "a", checkpoint.Created},
		{checkpoint.Query{Key: "doubt", LeadID: "lead.a"}, checkpoint.ByKey, "doubt", checkpoint.InDoubt},
		{checkpoint.Query{Key: "gone", LeadID: "lead.a"}, checkpoint.ByKey, "gone", checkpoint.Forgotten},
		{checkpoint.Query{Key: "new"}, checkpoint.NoMatch, "new", checkpoint.Unknown},
	} {
		e, how := Sought(t, d, test.q)
		if how != test.how || how != checkpoint.Ambiguous && (e.Key != test.key || e.State != test.stat) {
			t.Errorf("%+v: found %d %q %v, want %d %q %v", test.q, how, e.Key, e.State, test.how, test.key, test.stat)
		}
	}
}

// A mark changes only its own fields, adds no event and outlives a crash. A mark with an unknown lead adopts the lead.
func marksChangeNothingElse(t *testing.T, b Backend) {
	d := b.open(t)
	before := settled(t, d, CreatedEntry("k", "lead.k", 3))
	events := history(t, d, "k")
	seen := checkpoint.Sight{At: time.UnixMilli(1_770_000_000_789).UTC(), Status: "onHold", Organization: "org-2", Against: "open"}
	stored, err := Change(d, checkpoint.Mark, checkpoint.Entry{Key: "k", LeadID: "lead.k", ExternalID: "k", WantLink: "w", Unsettled: "run-2", Sought: "closedWon", Status: "open", Seen: seen, Content: before.Content[1:]})
	must.Do(t, err)
	want := before
	want.Unsettled, want.Sought, want.Seen, want.WantLink, want.Seq, want.Content = "run-2", "closedWon", seen, "w", stored.Seq, before.Content[1:]
	must.Same(t, want, stored, "marked")
	copied := d.killed(t)
	must.Same(t, want, Lookup(t, copied, "k"), "after a crash")
	must.Same(t, events, history(t, copied, "k"), "history")
	back, err := Change(d, checkpoint.Mark, checkpoint.Entry{Key: "k", LeadID: "lead.k", Content: before.Content})
	want.Unsettled, want.Sought, want.Seen, want.ExternalID, want.WantLink, want.Seq, want.Content = "", "", checkpoint.Sight{}, "", "", back.Seq, before.Content
	if must.Same(t, want, back, "taken back"); err != nil {
		t.Error(err)
	}
	if _, err := Change(d, checkpoint.Mark, checkpoint.Entry{Key: "new", LeadID: "lead.new", Unsettled: "run-2"}); err != nil {
		t.Fatal(err)
	}
	e, how := Sought(t, d, checkpoint.Query{Key: "other", LeadID: "lead.new"})
	events = history(t, d, "new")
	if how != checkpoint.ByLeadID || e.Key != "new" || e.State != checkpoint.Created || e.Unsettled != "run-2" || len(events) != 1 || events[0].Act&checkpoint.Adopted == 0 {
		t.Errorf("taken over: %d %+v %v", how, e, events)
	}
	settled(t, d, checkpoint.Entry{Key: "noid", State: checkpoint.Created, Status: "open", ExternalID: "x"})
	e, err = Change(d, checkpoint.Mark, checkpoint.Entry{Key: "noid", LeadID: "lead.9", ExternalID: "x", Unsettled: "run-2"})
	if err != nil || e.LeadID != "lead.9" || e.Status != "open" || e.ExternalID != "x" || e.Unsettled != "run-2" {
		t.Errorf("completed: %+v, %v", e, err)
	}
	claimed(t, d, IntentOf("doubt", 1))
	for _, refused := range []struct {
		e   checkpoint.Entry
		err error
	}{
		{checkpoint.Entry{Key: "", LeadID: "lead.k"}, checkpoint.ErrKey},
		{checkpoint.Entry{Key: "k", LeadID: "lead.other"}, checkpoint.ErrKnown},
		{checkpoint.Entry{Key: "doubt", LeadID: "lead.other"}, checkpoint.ErrKnown},
		{checkpoint.Entry{Key: "nothing"}, checkpoint.ErrKnown},
		{checkpoint.Entry{Key: "third", LeadID: "lead.k"}, checkpoint.ErrTaken},
	} {
		if _, err := Change(d, checkpoint.Mark, refused.e); !errors.Is(err, refused.err) {
			t.Errorf("%+v: %v, want %v", refused.e, err, refused.err)
		}
	}
}

// For an unknown key, Find says which known key looks like it. faults 131
func findNamesASimilarKey(t *testing.T, b Backend) {
	d := b.open(t)
	for i, key := range []string{"Ann@X.example", "Bob@X.example", "other"} {
		settled(t, d, CreatedEntry(key, fmt.Sprint("lead-", i), i))
	}
	forgotten(t, d, checkpoint.ForgetResult{checkpoint.Created: 1}, "Ann@X.example")
	d = d.again(t)
	for key, want := range map[string]checkpoint.State{"ann@x.example": checkpoint.Forgotten, "ANN@x.example": checkpoint.Forgotten, "bob@X.example": checkpoint.Created, "Other": checkpoint.Unknown, "another": checkpoint.Unknown} {
		like := &checkpoint.Likeness{}
		if Sought(t, d, checkpoint.Query{Key: key, Alike: like}); like.State != want {
			t.Errorf("%s looks like one that is %v, want %v", key, like.State, want)
		}
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
	must.Same(t, want, acts(t, d, "k"), "history")
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

// Noted shapes outlive the process. Another key, namespace or column makes another shape.
func shapesOutliveTheProcess(t *testing.T, b Backend) {
	d := b.open(t)
	shape := func(key, namespace string, columns ...string) checkpoint.Shape {
		return checkpoint.Shape{Columns: columns, Key: key, Namespace: namespace}
	}
	byID := shape("{id}", "", "id", "e-mail of Ann", "name")
	for _, s := range []checkpoint.Shape{byID, byID, shape("{other}", "dealers", "other"), shape("{id}", "")} { // the last is not noted
		c := &checkpoint.Change{Kind: checkpoint.Claim, Resend: true, Entry: IntentOf("k", 1), Shape: &s}
		must.Do(t, errors.Join(d.Commit(t.Context(), []*checkpoint.Change{c}), c.Err))
	}
	d = d.again(t)
	for name, test := range map[string]struct {
		shape checkpoint.Shape
		known bool
		kin   []string // keys of similar shapes
	}{
		"the same":           {shape("{id}", "", "name", "id", "e-mail of Ann"), true, nil},
		"another key":        {shape("{name}", "", byID.Columns...), false, []string{"{id}"}},
		"another namespace":  {shape("{id}", "a", byID.Columns...), false, []string{"{id}"}},
		"one more column":    {shape("{id}", "", append([]string{"new"}, byID.Columns...)...), false, []string{"{id}"}},
		"one less":           {shape("", "", "id", "name"), false, []string{"{id}"}},
		"half of them":       {shape("{name}", "", "id", "name", "city"), false, []string{"{id}"}},
		"less than half":     {shape("{id}", "", "id", "street", "city"), false, nil},
		"no columns":         {shape("{name}", ""), false, nil},
		"of two, the nearer": {shape("", "", append([]string{"other"}, byID.Columns...)...), false, []string{"{id}"}},
	} {
		known, kin, err := checkpoint.Noted(t.Context(), d, test.shape)
		var keys []string
		for i := range kin {
			keys = append(keys, kin[i].Key)
		}
		slices.Sort(keys) // they come in no order
		if must.Same(t, test.kin, keys, name); err != nil || known != test.known {
			t.Errorf("%s: known %v, %v", name, known, err)
		}
	}
}

// A forgotten key is not sent again, and no other record names its data. fault 120
func forgottenKeyIsNotSentAgain(t *testing.T, b Backend) {
	d := b.open(t)
	withPerson(t, d)
	keys := []string{"ann", "never heard of", "doubt-1", "refused-1"}
	forgotten(t, d, checkpoint.ForgetResult{checkpoint.Created: 1, checkpoint.Unknown: 1, checkpoint.InDoubt: 1, checkpoint.Rejected: 1}, keys...)
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
	if left := decisionsOf(t, d); len(left) != 0 {
		t.Errorf("decisions are left: %q", left)
	}
}

// withPerson makes a checkpoint with a person's data in every place that can hold them.
func withPerson(t TB, d checkpoint.Store) {
	t.Helper()
	seed(t, d)
	claimed(t, d, IntentOf("ann", 1))
	resolved(t, d, checkpoint.Decision{Key: "ann", LeadID: "her-lead"})
	settled(t, d, CreatedEntry("ann", "her-lead", 1))
	settled(t, d, CreatedEntry("bob", "her-lead", 2)) // contradicts the decision and falls in doubt
	claimed(t, d, IntentOf("bob", 3))                 // keeps the doubt inside a new intent
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

func resolved(t TB, d checkpoint.Store, ds ...checkpoint.Decision) checkpoint.ResolveResult {
	t.Helper()
	r, err := checkpoint.Resolve(context.Background(), d, ds)
	must.Do(t, err)
	return r
}

func forgotten(t TB, d checkpoint.Store, want checkpoint.ForgetResult, keys ...string) {
	t.Helper()
	if r, err := checkpoint.Forget(context.Background(), d, keys, false); err != nil || r != want {
		t.Fatalf("forgot %+v, %v, want %+v", r, err, want)
	}
}

func withdrawn(t TB, d checkpoint.Store, key string) {
	t.Helper()
	Together(t, d, checkpoint.Withdraw, IntentOf(key, 0))
}

// Claim commits a claim.
func Claim(d checkpoint.Store, in checkpoint.Entry) error {
	_, err := Change(d, checkpoint.Claim, in)
	return err
}

// Settle commits an outcome and returns the stored entry.
func Settle(d checkpoint.Store, e checkpoint.Entry) (checkpoint.Entry, error) {
	return Change(d, checkpoint.Settle, e)
}

// acts returns a key's history as texts, without times and runs.
func acts(t TB, d checkpoint.Store, key string) (all []string) {
	t.Helper()
	for _, ev := range history(t, d, key) {
		names := ""
		for i, name := range []string{"made", "linked", "status", "data", "refused", "doubted", "adopted", "decided"} {
			if ev.Act&(1<<i) != 0 {
				names += "+" + name
			}
		}
		all = append(all, fmt.Sprintf("%v %s %s %d", ev.State, names, ev.Status, ev.Code))
	}
	return all
}
