package bolt

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"leadferry/checkpoint"
)

func TestAdoptedLeadsAreKnownAndTheirDataIsNot(t *testing.T) {
	path := newPath(t)
	d := opened(t, path, Options{})
	list := []checkpoint.Entry{
		{Key: "b", LeadID: "0b1c2d3e-0000-4000-8000-000000000001", ExternalID: "crm-1", Status: "closedWon", Organization: "org"},
		{Key: "a", LeadID: "lead.2", Digest: d.digests.Sum([]byte("x"))},
	}
	if r, err := d.Adopt(context.Background(), list); err != nil || r != (checkpoint.AdoptResult{Leads: 2}) {
		t.Fatalf("%+v, %v", r, err)
	}
	for _, want := range list {
		got := lookup(t, d, want.Key)
		if got.State != checkpoint.Created || got.LeadID != want.LeadID || got.ExternalID != want.ExternalID || got.Status != want.Status || got.Digest != (checkpoint.Digest{}) || got.Content != nil {
			t.Errorf("%+v", got)
		}
		if err := claim(d, intentOf(want.Key, 1)); !errors.Is(err, checkpoint.ErrKnown) {
			t.Errorf("claimed: %v", err)
		}
	}
	if stored, err := settle(d, createdEntry("c", "lead.2", 1)); err != nil || stored.Reason != checkpoint.ReasonLeadTaken {
		t.Errorf("its lead under another key: %+v, %v", stored, err)
	}
	before, _ := contents(d)
	if r, err := d.Adopt(context.Background(), list); err != nil || r != (checkpoint.AdoptResult{Known: 2}) {
		t.Errorf("again: %+v, %v", r, err)
	}
	if after, _ := contents(d); cmp.Diff(before, after) != "" {
		t.Error("the same list again changed something")
	}
}

func TestAdoptRefusesAListAsAWhole(t *testing.T) {
	d := opened(t, newPath(t), Options{})
	for _, e := range []checkpoint.Entry{createdEntry("known", "lead-1", 1), {Key: "refused", State: checkpoint.Rejected, Code: 422}} {
		if _, err := settle(d, e); err != nil {
			t.Fatal(err)
		}
	}
	if err := claim(d, intentOf("doubt", 1)); err != nil {
		t.Fatal(err)
	}
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
		"long texts":       {Key: "a", LeadID: "lead-2", Location: strings.Repeat("n", mostText) + "s", ExternalID: "e"},
		"forgotten, state": {Key: "a", LeadID: "lead-2", State: checkpoint.Forgotten},
	} {
		before, _ := contents(d)
		var why *checkpoint.ListError
		if _, err := d.Adopt(context.Background(), []checkpoint.Entry{good, bad}); !errors.As(err, &why) || why.Index != 1 || why.Key != bad.Key {
			t.Errorf("%s: %v", name, err)
		}
		if after, _ := contents(d); cmp.Diff(before, after) != "" {
			t.Errorf("%s: taken in part", name)
		}
	}
}

// What a list says of a lead whose ID nobody knew completes it; its data are known.
func TestAdoptCompletesALeadWithoutID(t *testing.T) {
	d := opened(t, newPath(t), Options{})
	in := intentOf("k", 1)
	in.WantLink, in.Digest = "crm-1", d.digests.Sum([]byte("data"))
	if err := errors.Join(claim(d, in), resolve(d, checkpoint.Decision{Key: "k", Exists: true})); err != nil {
		t.Fatal(err)
	}
	if r, err := d.Adopt(context.Background(), []checkpoint.Entry{{Key: "k", LeadID: "lead-1", Status: "onHold"}}); err != nil || r.Leads != 1 {
		t.Fatalf("%+v, %v", r, err)
	}
	if got := lookup(t, d, "k"); got.State != checkpoint.Partial || got.LeadID != "lead-1" || got.WantLink != "crm-1" || got.Digest != in.Digest || got.Status != "onHold" {
		t.Errorf("%+v", got)
	}
}

// A lead ID that people gave can be corrected, also crosswise; what the service gave, not.
func TestAdoptCorrectsWhatPeopleGave(t *testing.T) {
	d := opened(t, newPath(t), Options{})
	doubted(t, d, "c", "d")
	wrong := []checkpoint.Entry{{Key: "a", LeadID: "lead-b", ExternalID: "crm-a", Status: "closedWon"}, {Key: "b", LeadID: "lead-a"}}
	if _, err := d.Adopt(context.Background(), wrong); err != nil {
		t.Fatal(err)
	}
	if err := resolve(d, checkpoint.Decision{Key: "c", LeadID: "lead-x"}, checkpoint.Decision{Key: "d", LeadID: "lead-d"}); err != nil {
		t.Fatal(err)
	}
	moved := lookup(t, d, "a")
	for i := range 2 * mostPast {
		moved.Digest = checkpoint.Digest{byte(i + 1)}
		if _, err := settle(d, moved); err != nil {
			t.Fatal(err)
		}
	}
	right := []checkpoint.Entry{{Key: "a", LeadID: "lead-a"}, {Key: "b", LeadID: "lead-b", Status: "onHold"}, {Key: "c", LeadID: "lead-c"}}
	if r, err := d.Adopt(context.Background(), right); err != nil || r != (checkpoint.AdoptResult{Leads: 3, Corrected: 3}) {
		t.Fatalf("%+v, %v", r, err)
	}
	for _, want := range []checkpoint.Entry{
		{Key: "a", State: checkpoint.Partial, LeadID: "lead-a", WantLink: "crm-a"},
		{Key: "b", State: checkpoint.Created, LeadID: "lead-b", Status: "onHold"},
		{Key: "c", State: checkpoint.Partial, LeadID: "lead-c", WantLink: "crm-c"},
	} {
		got := lookup(t, d, want.Key)
		if got.Run, got.Updated, got.Seq = "", want.Updated, 0; cmp.Diff(want, got) != "" {
			t.Errorf("(-want +got):\n%s", cmp.Diff(want, got))
		}
	}
	if events, err := d.History(context.Background(), "a"); err != nil || events[0].Act&checkpoint.Adopted == 0 || events[len(events)-1].Act&checkpoint.Adopted == 0 {
		t.Errorf("%+v, %v", events, err)
	}
	if r, err := d.Adopt(context.Background(), right); err != nil || r != (checkpoint.AdoptResult{Known: 3}) {
		t.Fatalf("again: %+v, %v", r, err)
	}
	if _, err := settle(d, createdEntry("made", "lead-m", 1)); err != nil {
		t.Fatal(err)
	}
	var why *checkpoint.ListError
	for _, list := range [][]checkpoint.Entry{
		{{Key: "made", LeadID: "lead-n"}},
		{{Key: "b", LeadID: "lead-b"}, {Key: "a", LeadID: "lead-b"}},
		{{Key: "b", LeadID: "lead-9", State: checkpoint.InDoubt}, {Key: "a", LeadID: "lead-b"}},
		{{Key: "a", LeadID: "lead-d"}},
	} {
		if _, err := d.Adopt(context.Background(), list); !errors.As(err, &why) {
			t.Errorf("%+v: %v", list, err)
		}
	}
}

// A status that nobody specified stays as it is.
func TestAdoptKeepsAnUnknownStatus(t *testing.T) {
	path := newPath(t)
	d := opened(t, path, Options{})
	long := strings.Repeat("ü", checkpoint.MaxStatus+9)
	if _, err := d.Adopt(context.Background(), []checkpoint.Entry{{Key: "a", LeadID: "lead-1", Status: "escalated"}, {Key: "b", LeadID: "lead-2", Status: long}}); err != nil {
		t.Fatal(err)
	}
	d.Close()
	d = opened(t, path, Options{})
	if a, b := lookup(t, d, "a").Status, lookup(t, d, "b").Status; a != "escalated" || b != strings.Repeat("ü", checkpoint.MaxStatus) {
		t.Errorf("%q, %q", a, b)
	}
	if checkpoint.KnownStatus("escalated") || !checkpoint.KnownStatus("open") {
		t.Error("which statuses the specification names")
	}
}

// An export of everything, adopted by a new file: leads are known, doubts stay
// doubts, refused rows are left out, and what was forgotten stays so.
func TestExportIsAdoptedByANewCheckpoint(t *testing.T) {
	old := seeded(t, newPath(t), 20)
	partial := createdEntry("partial", "lead-p", 1)
	partial.State, partial.ExternalID, partial.WantLink = checkpoint.Partial, "", "crm-p"
	taken := createdEntry("taken", lookup(t, old, "key-00001").LeadID, 1)
	for _, e := range []checkpoint.Entry{partial, taken} {
		if _, err := settle(old, e); err != nil {
			t.Fatal(err)
		}
	}
	if err := resolve(old, checkpoint.Decision{Key: "doubt-1", Exists: true}); err != nil {
		t.Fatal(err)
	}
	list, err := contents(old)
	if err != nil {
		t.Fatal(err)
	}
	path := newPath(t)
	d := opened(t, path, Options{})
	if _, err := d.Forget(context.Background(), []string{"key-00003"}, false); err != nil {
		t.Fatal(err)
	}
	want := checkpoint.AdoptResult{Leads: 21, InDoubt: 3, Rejected: 3, Forgotten: 1}
	if r, err := d.Adopt(context.Background(), list); err != nil || r != want {
		t.Fatalf("%+v, %v", r, err)
	}
	d.Close()
	d = opened(t, path, Options{})
	for _, was := range list {
		got := lookup(t, d, was.Key)
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
		if diff := cmp.Diff(was, got); diff != "" {
			t.Errorf("%s (-old +new):\n%s", was.Key, diff)
		}
	}
	if r, err := d.Adopt(context.Background(), list); err != nil || r.Leads+r.InDoubt != 0 || r.Known != 24 {
		t.Errorf("again: %+v, %v", r, err)
	}
}
