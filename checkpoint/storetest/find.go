package storetest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"leadferry/checkpoint"
)

func findsALeadByKeyThenByIDThenByExternalID(t *testing.T, b Backend) {
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
	forgotten(t, d, checkpoint.ForgetResult{Unknown: 1}, "gone")
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
		e, how := sought(t, d, test.q)
		if how != test.how || how != checkpoint.Ambiguous && (e.Key != test.key || e.State != test.stat) {
			t.Errorf("%+v: found %d %q %v, want %d %q %v", test.q, how, e.Key, e.State, test.how, test.key, test.stat)
		}
	}
}

// A mark changes nothing else, adds no event and outlives a crash; a lead that is not
// known is taken over with it.
func marksChangeNothingElse(t *testing.T, b Backend) {
	d := b.open(t)
	before := settled(t, d, CreatedEntry("k", "lead.k", 3))
	events := history(t, d, "k")
	seen := checkpoint.Sight{At: time.UnixMilli(1_770_000_000_789).UTC(), Status: "onHold", Organization: "org-2", Kept: true, Against: "open"}
	stored, err := Change(d, checkpoint.Mark, checkpoint.Entry{Key: "k", LeadID: "lead.k", Unsettled: "run-2", Sought: "closedWon", Status: "open", Seen: seen})
	if err != nil {
		t.Fatal(err)
	}
	want := before
	want.Unsettled, want.Sought, want.Seen, want.Seq = "run-2", "closedWon", seen, stored.Seq
	equal(t, "marked", want, stored)
	copied := d.killed(t)
	equal(t, "after a crash", want, Lookup(t, copied, "k"))
	equal(t, "history", events, history(t, copied, "k"))
	back, err := Change(d, checkpoint.Mark, checkpoint.Entry{Key: "k", LeadID: "lead.k"})
	want.Unsettled, want.Sought, want.Seen, want.Seq = "", "", checkpoint.Sight{}, back.Seq
	if equal(t, "taken back", want, back); err != nil {
		t.Error(err)
	}

	if _, err := Change(d, checkpoint.Mark, checkpoint.Entry{Key: "new", LeadID: "lead.new", Unsettled: "run-2"}); err != nil {
		t.Fatal(err)
	}
	e, how := sought(t, d, checkpoint.Query{Key: "other", LeadID: "lead.new"})
	events = history(t, d, "new")
	if how != checkpoint.ByLeadID || e.Key != "new" || e.State != checkpoint.Created || e.Unsettled != "run-2" || len(events) != 1 || events[0].Act&checkpoint.Adopted == 0 {
		t.Errorf("taken over: %d %+v %v", how, e, events)
	}
	settled(t, d, checkpoint.Entry{Key: "noid", State: checkpoint.Created, Status: "open", ExternalID: "x"})
	e, err = Change(d, checkpoint.Mark, checkpoint.Entry{Key: "noid", LeadID: "lead.9", Unsettled: "run-2"})
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

func whatUpdatesLeaveIsKept(t *testing.T, b Backend) {
	at := time.UnixMilli(1_770_000_000_789).UTC()
	d := b.open(t)
	for i, change := range []func(*checkpoint.Entry){
		func(e *checkpoint.Entry) { e.Unsettled = "run" },
		func(e *checkpoint.Entry) { e.Unsettled, e.Sought = "run", "onHold" },
		func(e *checkpoint.Entry) { e.Refused = checkpoint.Digest{7} },
		func(e *checkpoint.Entry) { e.Synced = true },
		func(e *checkpoint.Entry) { e.Confirmed = at },
		func(e *checkpoint.Entry) {
			e.Seen = checkpoint.Sight{At: at, Status: "closedWon", Organization: "org-9"}
		},
		func(e *checkpoint.Entry) { e.Seen = checkpoint.Sight{At: at, Kept: true} },
		func(e *checkpoint.Entry) {
			e.Seen = checkpoint.Sight{At: at, Status: "a status of tomorrow", Kept: true, Against: "another one"}
		},
		func(e *checkpoint.Entry) {
			e.Unsettled, e.Refused, e.Synced, e.Confirmed = "run", checkpoint.Digest{1}, true, at
			e.Seen = checkpoint.Sight{At: at, Status: "onHold", Organization: "org-1", Kept: true, Against: "open"}
		},
	} {
		e := CreatedEntry(fmt.Sprint("k", i), fmt.Sprint("lead.", i), 3)
		change(&e)
		equal(t, e.Key, settled(t, d, e), Lookup(t, d, e.Key))
	}
}

// Shapes outlive the process and are told from one another.
func shapesAreNoted(t *testing.T, b Backend) {
	d := b.open(t)
	byID := checkpoint.Shape{Columns: []string{"id", "e-mail of Ann", "name"}, Key: "{id}"}
	for _, s := range []checkpoint.Shape{byID, byID, {Columns: []string{"other"}, Key: "{other}", Namespace: "dealers"}, {Key: "{id}"}} { // the last one says nothing
		c := &checkpoint.Change{Kind: checkpoint.Claim, Entry: IntentOf("k", 1), Shape: &s}
		if err := errors.Join(d.Commit(t.Context(), []*checkpoint.Change{c}), c.Err); err != nil {
			t.Fatal(err)
		}
	}
	d = d.again(t)
	for name, test := range map[string]struct {
		shape checkpoint.Shape
		known bool
		kin   []checkpoint.Kin
	}{
		"the same":              {shape: checkpoint.Shape{Columns: []string{"name", "id", "e-mail of Ann"}, Key: "{id}"}, known: true},
		"another key":           {shape: checkpoint.Shape{Columns: byID.Columns, Key: "{name}"}, kin: []checkpoint.Kin{{Key: "{id}"}}},
		"another namespace":     {shape: checkpoint.Shape{Columns: byID.Columns, Key: "{id}", Namespace: "a"}, kin: []checkpoint.Kin{{Key: "{id}"}}},
		"one more column":       {shape: checkpoint.Shape{Columns: append([]string{"new"}, byID.Columns...), Key: "{id}"}, kin: []checkpoint.Kin{{Key: "{id}", Strange: []string{"new"}}}},
		"one less":              {shape: checkpoint.Shape{Columns: []string{"id", "name"}}, kin: []checkpoint.Kin{{Key: "{id}", Lacking: 1}}},
		"half of the columns":   {shape: checkpoint.Shape{Columns: []string{"id", "name", "city"}, Key: "{name}"}, kin: []checkpoint.Kin{{Key: "{id}", Strange: []string{"city"}, Lacking: 1}}},
		"less than half":        {shape: checkpoint.Shape{Columns: []string{"id", "street", "city"}, Key: "{id}"}},
		"no columns":            {shape: checkpoint.Shape{Key: "{name}"}},
		"more than one, of all": {shape: checkpoint.Shape{Columns: append([]string{"other"}, byID.Columns...)}, kin: []checkpoint.Kin{{Key: "{other}", Namespace: "dealers", Strange: byID.Columns}, {Key: "{id}", Strange: []string{"other"}}}},
	} {
		known, kin, err := checkpoint.Noted(context.Background(), d, test.shape)
		diff := cmp.Diff(test.kin, kin)
		if back := len(kin) == 2 && cmp.Equal([]checkpoint.Kin{kin[1], kin[0]}, test.kin); back { // in no order
			diff = ""
		}
		if err != nil || known != test.known || diff != "" {
			t.Errorf("%s: known %v, %v (-want +got):\n%s", name, known, err, diff)
		}
	}
}

// Of keys that are not known, Find tells which known one looks like them. faults 131
func looksAlike(t *testing.T, b Backend) {
	d := b.open(t)
	for i, key := range []string{"Ann@X.example", "Bob@X.example", "other"} {
		settled(t, d, CreatedEntry(key, fmt.Sprint("lead-", i), i))
	}
	forgotten(t, d, checkpoint.ForgetResult{Leads: 1}, "Ann@X.example")
	d = d.again(t)
	for key, want := range map[string]checkpoint.State{"ann@x.example": checkpoint.Forgotten, "ANN@x.example": checkpoint.Forgotten, "bob@X.example": checkpoint.Created, "Other": checkpoint.Unknown, "another": checkpoint.Unknown} {
		like := &checkpoint.Likeness{}
		if sought(t, d, checkpoint.Query{Key: key, Alike: like}); like.State != want {
			t.Errorf("%s looks like one that is %v, want %v", key, like.State, want)
		}
	}
}
