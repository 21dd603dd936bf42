package bolt

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"leadferry/checkpoint"
)

// resolve is Resolve without its counts.
func resolve(d *Store, ds ...checkpoint.Decision) error {
	_, err := d.Resolve(context.Background(), ds)
	return err
}

// doubted makes one row in doubt for each key, sent a minute after the other.
func doubted(t *testing.T, d *Store, keys ...string) {
	t.Helper()
	for i, key := range keys {
		in := intentOf(key, i)
		in.WantLink, in.Digest = "crm-"+key, d.digests.Sum([]byte(key))
		in.Updated = in.Updated.Add(time.Duration(i) * time.Minute)
		if err := claim(d, in); err != nil {
			t.Fatal(err)
		}
	}
}

// faults 127
func TestAWrongDecisionIsCorrected(t *testing.T) {
	at := time.UnixMilli(1_780_000_000_000).UTC()
	path := newPath(t)
	d := opened(t, path, Options{Now: func() time.Time { return at }})
	doubted(t, d, "free", "exists", "a", "b", "none")
	before := map[string]checkpoint.Entry{}
	for _, key := range []string{"free", "exists", "a", "b", "none"} {
		before[key] = lookup(t, d, key)
	}
	wrong := []checkpoint.Decision{{Key: "free"}, {Key: "exists", Exists: true}, {Key: "a", LeadID: "lead-b"}, {Key: "b", LeadID: "lead-a"}, {Key: "none", LeadID: "lead-n"}}
	if r, err := d.Resolve(context.Background(), wrong); err != nil || r != (checkpoint.ResolveResult{Settled: 5}) {
		t.Fatalf("%+v, %v", r, err)
	}
	// The link of the wrong lead is refused meanwhile.
	stuck := lookup(t, d, "a")
	stuck.Code, stuck.Updated = 404, at.Add(time.Hour)
	if _, err := settle(d, stuck); err != nil {
		t.Fatal(err)
	}
	if r, err := d.Resolve(context.Background(), wrong); err != nil || r != (checkpoint.ResolveResult{Before: 5}) {
		t.Fatalf("the same again: %+v, %v", r, err)
	}
	d.Close()
	d = opened(t, path, Options{Now: func() time.Time { return at.Add(2 * time.Hour) }})
	right := []checkpoint.Decision{{Key: "free", LeadID: "lead-f"}, {Key: "exists", LeadID: "lead-e"}, {Key: "a", LeadID: "lead-a"}, {Key: "b", LeadID: "lead-b"}, {Key: "none"}}
	if r, err := d.Resolve(context.Background(), right); err != nil || r != (checkpoint.ResolveResult{Corrected: 5}) {
		t.Fatalf("%+v, %v", r, err)
	}
	for _, one := range right {
		was, got := before[one.Key], lookup(t, d, one.Key)
		if one.LeadID == "" {
			if got.State != checkpoint.NotMade {
				t.Errorf("%s: %+v", one.Key, got)
			}
			continue
		}
		was.State, was.LeadID, was.Status, was.Updated, was.Seq = checkpoint.Partial, one.LeadID, "", got.Updated, got.Seq
		if diff := cmp.Diff(was, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", one.Key, diff)
		}
	}
	var kept []checkpoint.Decision
	if err := d.Decisions(context.Background(), func(one checkpoint.Decision, _ time.Time) error { kept = append(kept, one); return nil }); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(append(wrong, right...), kept); diff != "" {
		t.Errorf("the history keeps both (-want +got):\n%s", diff)
	}
	for _, key := range []string{"a", "none", "free"} {
		events, err := d.History(context.Background(), key)
		if err != nil || events[0].Act != checkpoint.Doubted || !events[0].At.Equal(before[key].Updated) || events[0].File != "leads.csv" || events[0].Line != before[key].Line {
			t.Errorf("%s: the send before is gone: %+v, %v", key, events, err)
		}
	}
	if got := acts(t, d, "a"); cmp.Diff([]string{"in_doubt +doubted open 0", "partial +made+decided  0", "partial   404", "partial +made+decided  0"}, got) != "" {
		t.Errorf("%q", got)
	}
}

// What was sent again since is no decision's business any more.
func TestADecisionOfTheDayBeforeIsRefused(t *testing.T) {
	d := opened(t, newPath(t), Options{})
	doubted(t, d, "again", "made", "doubt")
	listed := map[string]checkpoint.Entry{}
	for _, key := range []string{"again", "made", "doubt"} {
		listed[key] = lookup(t, d, key)
	}
	if err := resolve(d, checkpoint.Decision{Key: "again"}, checkpoint.Decision{Key: "made"}); err != nil {
		t.Fatal(err)
	}
	in := intentOf("again", 1)
	in.Updated, in.Run = in.Updated.Add(24*time.Hour), "20260102T000000Z-1"
	if _, err := settle(d, createdEntry("made", "lead-1", 1)); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(claim(d, in)); err != nil {
		t.Fatal(err)
	}
	for name, one := range map[string]checkpoint.Decision{
		"by its time": {Key: "again", Sent: listed["again"].Updated.Truncate(time.Second)},
		"by its run":  {Key: "again", Run: listed["again"].Run},
		"made":        {Key: "made", LeadID: "lead-9"},
		"made, again": {Key: "made"},
	} {
		var why *checkpoint.ListError
		if err := resolve(d, checkpoint.Decision{Key: "doubt"}, one); !errors.As(err, &why) || why.Index != 1 {
			t.Errorf("%s: %v", name, err)
		}
	}
	if d.Info().InDoubt != 2 {
		t.Errorf("%d in doubt", d.Info().InDoubt)
	}
	if err := resolve(d, checkpoint.Decision{Key: "doubt", Sent: listed["doubt"].Updated.Truncate(time.Second)}); err != nil {
		t.Error(err)
	}
	if err := resolve(d, checkpoint.Decision{Key: "again", Sent: in.Updated.Truncate(time.Second), Run: in.Run}); err != nil {
		t.Error(err)
	}
}

// A lead that a decision does not give up cannot be given to another row.
func TestACorrectionTakesNoLeadFromAnother(t *testing.T) {
	d := opened(t, newPath(t), Options{})
	doubted(t, d, "a", "b", "c")
	if err := resolve(d, checkpoint.Decision{Key: "a", LeadID: "lead-a"}, checkpoint.Decision{Key: "b", LeadID: "lead-b"}); err != nil {
		t.Fatal(err)
	}
	var why *checkpoint.ListError
	for _, list := range [][]checkpoint.Decision{
		{{Key: "a", LeadID: "lead-b"}},
		{{Key: "c", LeadID: "lead-a"}},
		{{Key: "b", LeadID: "lead-b"}, {Key: "a", LeadID: "lead-b"}},
		{{Key: "b", LeadID: "lead-b"}, {Key: "c", LeadID: "lead-b"}},
	} {
		if err := resolve(d, list...); !errors.As(err, &why) || why.Index != len(list)-1 {
			t.Errorf("%+v: %v", list, err)
		}
	}
	if err := resolve(d, checkpoint.Decision{Key: "c", LeadID: "lead-a"}, checkpoint.Decision{Key: "a"}); err != nil {
		t.Error("a lead that is given up:", err)
	}
	if got := lookup(t, d, "c"); got.LeadID != "lead-a" || d.Info().InDoubt != 0 || d.Info().Leads != 2 {
		t.Errorf("%+v", got)
	}
}

// decided is a decision about a key and the send that it is about.
type decided struct {
	checkpoint.Decision
	send checkpoint.Entry
}

// resolve returns whether a decision is refused, and carries it out if not.
func (m *model) resolve(d checkpoint.Decision, now time.Time) (refused bool) {
	e, doubt := m.intents[d.Key]
	all, known := m.decided[d.Key], m.entries[d.Key]
	owner := m.owner(d.LeadID)
	switch {
	case owner != "" && owner != d.Key:
		return true
	case doubt && owner == "":
	case doubt || len(all) == 0:
		return true
	default:
		old := all[len(all)-1]
		if free := old.LeadID == "" && !old.Exists; free && known.State != checkpoint.NotMade || !free && !known.State.HasLead() {
			return true
		}
		if old.Decision == d && known.LeadID == d.LeadID {
			return false
		}
		delete(m.entries, d.Key)
		e = old.send
	}
	m.decided[d.Key] = append(all, decided{d, e})
	delete(m.intents, d.Key)
	delete(m.priors, d.Key)
	e.State, e.LeadID, e.Status, e.Code, e.Reason, e.Updated = checkpoint.Created, d.LeadID, "", 0, "", now
	if d.LeadID == "" && !d.Exists {
		e.State = checkpoint.NotMade
	} else if d.LeadID != "" && e.WantLink != "" {
		e.State = checkpoint.Partial
	}
	m.entries[d.Key], m.people[d.Key] = e, true
	return false
}
