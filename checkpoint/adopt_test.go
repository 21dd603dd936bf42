package checkpoint

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAdoptedLeadsAreKnownAndTheirDataIsNot(t *testing.T) {
	path := newPath(t)
	d := opened(t, path, Options{})
	list := []Entry{
		{Key: "b", LeadID: "0b1c2d3e-0000-4000-8000-000000000001", ExternalID: "crm-1", Status: "closedWon", Organization: "org"},
		{Key: "a", LeadID: "lead.2", Digest: d.Sum([]byte("x"))},
	}
	if r, err := d.Adopt(list); err != nil || r != (AdoptResult{Leads: 2}) {
		t.Fatalf("%+v, %v", r, err)
	}
	for _, want := range list {
		got := lookup(t, d, want.Key)
		if got.State != Created || got.LeadID != want.LeadID || got.ExternalID != want.ExternalID || got.Status != want.Status || got.Digest != (Digest{}) || got.Content != nil {
			t.Errorf("%+v", got)
		}
		if err := claim(d, intentOf(want.Key, 1)); !errors.Is(err, ErrKnown) {
			t.Errorf("claimed: %v", err)
		}
	}
	if stored, err := settle(d, createdEntry("c", "lead.2", 1)); err != nil || stored.Reason != ReasonLeadTaken {
		t.Errorf("its lead under another key: %+v, %v", stored, err)
	}
	before, _ := contents(d)
	if r, err := d.Adopt(list); err != nil || r != (AdoptResult{Known: 2}) {
		t.Errorf("again: %+v, %v", r, err)
	}
	if after, _ := contents(d); cmp.Diff(before, after) != "" {
		t.Error("the same list again changed something")
	}
}

func TestAdoptRefusesAListAsAWhole(t *testing.T) {
	d := opened(t, newPath(t), Options{})
	for _, e := range []Entry{createdEntry("known", "lead-1", 1), {Key: "refused", State: Rejected, Code: 422}} {
		if _, err := settle(d, e); err != nil {
			t.Fatal(err)
		}
	}
	if err := claim(d, intentOf("doubt", 1)); err != nil {
		t.Fatal(err)
	}
	good := Entry{Key: "good", LeadID: "lead-9"}
	for name, bad := range map[string]Entry{
		"no key":           {LeadID: "lead-2"},
		"long key":         {Key: strings.Repeat("k", MaxKey+1), LeadID: "lead-2"},
		"no ID":            {Key: "a"},
		"no ID, partial":   {Key: "a", State: Partial},
		"bad ID":           {Key: "a", LeadID: "../lead"},
		"dots":             {Key: "a", LeadID: ".."},
		"long ID":          {Key: "a", LeadID: strings.Repeat("1", 129)},
		"key twice":        {Key: "good", LeadID: "lead-2"},
		"ID twice":         {Key: "a", LeadID: "lead-9"},
		"ID of another":    {Key: "a", LeadID: "lead-1"},
		"another ID":       {Key: "known", LeadID: "lead-2"},
		"in doubt":         {Key: "doubt", LeadID: "lead-2"},
		"status":           {Key: "a", LeadID: "lead-2", Status: "Closed"},
		"long texts":       {Key: "a", LeadID: "lead-2", Location: strings.Repeat("n", mostText) + "s", ExternalID: "e"},
		"forgotten, state": {Key: "a", LeadID: "lead-2", State: Forgotten},
	} {
		before, _ := contents(d)
		var why *ListError
		if _, err := d.Adopt([]Entry{good, bad}); !errors.As(err, &why) || why.Index != 1 || why.Key != bad.Key {
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
	in.ExternalID, in.Digest = "crm-1", d.Sum([]byte("data"))
	if err := errors.Join(claim(d, in), d.Resolve([]Decision{{Key: "k", Exists: true}})); err != nil {
		t.Fatal(err)
	}
	if r, err := d.Adopt([]Entry{{Key: "k", LeadID: "lead-1", Status: "onHold"}}); err != nil || r.Leads != 1 {
		t.Fatalf("%+v, %v", r, err)
	}
	if got := lookup(t, d, "k"); got.State != Partial || got.LeadID != "lead-1" || got.WantLink != "crm-1" || got.Digest != in.Digest || got.Status != "onHold" {
		t.Errorf("%+v", got)
	}
}

// An export of everything, adopted by a new file: leads are known, doubts stay
// doubts, refused rows are left out, and what was forgotten stays so.
func TestExportIsAdoptedByANewCheckpoint(t *testing.T) {
	old := seeded(t, newPath(t), 20)
	partial := createdEntry("partial", "lead-p", 1)
	partial.State, partial.ExternalID, partial.WantLink = Partial, "", "crm-p"
	taken := createdEntry("taken", lookup(t, old, "key-00001").LeadID, 1)
	for _, e := range []Entry{partial, taken} {
		if _, err := settle(old, e); err != nil {
			t.Fatal(err)
		}
	}
	if err := old.Resolve([]Decision{{Key: "doubt-1", Exists: true}}); err != nil {
		t.Fatal(err)
	}
	list, err := contents(old)
	if err != nil {
		t.Fatal(err)
	}
	path := newPath(t)
	d := opened(t, path, Options{})
	if _, err := d.Forget([]string{"key-00003"}, false); err != nil {
		t.Fatal(err)
	}
	want := AdoptResult{Leads: 21, InDoubt: 3, Rejected: 3, Forgotten: 1}
	if r, err := d.Adopt(list); err != nil || r != want {
		t.Fatalf("%+v, %v", r, err)
	}
	d.Close()
	d = opened(t, path, Options{})
	for _, was := range list {
		got := lookup(t, d, was.Key)
		switch {
		case was.Key == "key-00003":
			was = Entry{Key: was.Key, State: Forgotten}
		case was.State == Rejected:
			was = Entry{Key: was.Key}
		case was.State == InDoubt && was.Reason == "":
			was.Reason = ReasonAdopted
		}
		was.Digest, was.Content = Digest{}, nil
		if was.Seq, got.Seq = 0, 0; was.State != InDoubt {
			was.Updated = got.Updated
		}
		if diff := cmp.Diff(was, got); diff != "" {
			t.Errorf("%s (-old +new):\n%s", was.Key, diff)
		}
	}
	if r, err := d.Adopt(list); err != nil || r.Leads+r.InDoubt != 0 || r.Known != 24 {
		t.Errorf("again: %+v, %v", r, err)
	}
}
