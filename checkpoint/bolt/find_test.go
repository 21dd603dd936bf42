package bolt

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"leadferry/checkpoint"
	"leadferry/internal/rowkey"
)

func sought(t *testing.T, d *Store, q checkpoint.Query) (checkpoint.Entry, checkpoint.Match) {
	t.Helper()
	out, how := make([]checkpoint.Entry, 1), make([]checkpoint.Match, 1)
	if err := d.Find(context.Background(), []checkpoint.Query{q}, out, how); err != nil {
		t.Fatal(err)
	}
	return out[0], how[0]
}

func TestFindsALeadByKeyThenByIDThenByExternalID(t *testing.T) {
	d := opened(t, newPath(t), Options{})
	put := func(key, lead, external string, s checkpoint.State) {
		e := createdEntry(key, lead, 3)
		e.ExternalID, e.State = external, s
		if _, err := settle(d, e); err != nil {
			t.Fatal(err)
		}
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
	if err := claim(d, intentOf("doubt", 4)); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Forget(context.Background(), []string{"gone"}, false); err != nil {
		t.Fatal(err)
	}
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
func TestMarks(t *testing.T) {
	path := newPath(t)
	d := opened(t, path, Options{})
	before, err := settle(d, createdEntry("k", "lead.k", 3))
	if err != nil {
		t.Fatal(err)
	}
	events, _ := d.History(context.Background(), "k")
	stored, err := noted(d, checkpoint.Entry{Key: "k", LeadID: "lead.k", Unsettled: "run-2", Sought: "closedWon", Status: "open"})
	if err != nil {
		t.Fatal(err)
	}
	want := before
	want.Unsettled, want.Sought, want.Seq = "run-2", "closedWon", stored.Seq
	if diff := cmp.Diff(want, stored); diff != "" {
		t.Error(diff)
	}
	copied := opened(t, killed(t, path), Options{})
	if diff := cmp.Diff(want, lookup(t, copied, "k")); diff != "" {
		t.Error(diff)
	}
	if now, _ := copied.History(context.Background(), "k"); !slices.Equal(now, events) {
		t.Errorf("history %v, want %v", now, events)
	}
	back, err := noted(d, checkpoint.Entry{Key: "k", LeadID: "lead.k"})
	if want.Unsettled, want.Sought, want.Seq = "", "", back.Seq; err != nil || !cmp.Equal(want, back) {
		t.Errorf("taken back: %v %s", err, cmp.Diff(want, back))
	}

	if _, err := noted(d, checkpoint.Entry{Key: "new", LeadID: "lead.new", Unsettled: "run-2"}); err != nil {
		t.Fatal(err)
	}
	e, how := sought(t, d, checkpoint.Query{Key: "other", LeadID: "lead.new"})
	events, _ = d.History(context.Background(), "new")
	if how != checkpoint.ByLeadID || e.Key != "new" || e.State != checkpoint.Created || e.Unsettled != "run-2" || len(events) != 1 || events[0].Act&checkpoint.Adopted == 0 {
		t.Errorf("taken over: %d %+v %v", how, e, events)
	}
	if _, err := settle(d, checkpoint.Entry{Key: "noid", State: checkpoint.Created, Status: "open", ExternalID: "x"}); err != nil {
		t.Fatal(err)
	}
	e, err = noted(d, checkpoint.Entry{Key: "noid", LeadID: "lead.9", Unsettled: "run-2"})
	if err != nil || e.LeadID != "lead.9" || e.Status != "open" || e.ExternalID != "x" || e.Unsettled != "run-2" {
		t.Errorf("completed: %+v, %v", e, err)
	}
	if err := claim(d, intentOf("doubt", 1)); err != nil {
		t.Fatal(err)
	}
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
		if _, err := noted(d, refused.e); !errors.Is(err, refused.err) {
			t.Errorf("%+v: %v, want %v", refused.e, err, refused.err)
		}
	}
}

func TestWhatUpdatesLeaveIsKept(t *testing.T) {
	at := time.UnixMilli(1_770_000_000_789).UTC()
	d := opened(t, newPath(t), Options{})
	for i, change := range []func(*checkpoint.Entry){
		func(e *checkpoint.Entry) { e.Unsettled = "run" },
		func(e *checkpoint.Entry) { e.Unsettled, e.Sought = "run", "onHold" },
		func(e *checkpoint.Entry) { e.Refused = checkpoint.Digest{7} },
		func(e *checkpoint.Entry) { e.Synced = true },
		func(e *checkpoint.Entry) { e.Confirmed = at },
		func(e *checkpoint.Entry) {
			e.Unsettled, e.Refused, e.Synced, e.Confirmed = "run", checkpoint.Digest{1}, true, at
		},
	} {
		e := createdEntry(fmt.Sprint("k", i), fmt.Sprint("lead.", i), 3)
		change(&e)
		stored, err := settle(d, e)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(stored, lookup(t, d, e.Key)); diff != "" {
			t.Error(diff)
		}
	}
}

// A lead that has just been made is found by its ID while the index is written.
func TestYoungLeadsAreFoundByTheirID(t *testing.T) {
	d := opened(t, newPath(t), Options{})
	d.bolt.NoSync = true
	const leads = 3000
	var many []checkpoint.Entry
	for n := range generation {
		many = append(many, checkpoint.Entry{Key: fmt.Sprint("many", n), LeadID: fmt.Sprint("lead.many", n)})
	}
	if _, err := d.Adopt(context.Background(), many); err != nil {
		t.Fatal(err)
	}
	stop, ended := make(chan struct{}), make(chan struct{})
	made := make(chan int, leads)
	go func() {
		defer close(ended)
		known := []int{}
		for {
			select {
			case n := <-made:
				known = append(known, n)
				continue
			case <-stop:
				return
			default:
			}
			for i := range 64 {
				many := fmt.Sprint("many", 37*(len(known)+i)%generation)
				if e, how := sought(t, d, checkpoint.Query{Key: "none", LeadID: "lead." + many}); how != checkpoint.ByLeadID || e.Key != many {
					t.Errorf("lead %s: %d %q", many, how, e.Key)
					return
				}
			}
			for i := range min(len(known), 64) {
				n := known[(len(known)*i/64+i)%len(known)]
				if e, how := sought(t, d, checkpoint.Query{Key: "none", LeadID: fmt.Sprint("lead.", n)}); how != checkpoint.ByLeadID || e.Key != fmt.Sprint("k", n) {
					t.Errorf("lead %d: %d %q", n, how, e.Key)
					return
				}
			}
		}
	}()
	var some []checkpoint.Entry
	for n := range leads {
		e := createdEntry(fmt.Sprint("k", n), fmt.Sprint("lead.", n), 1)
		if some = append(some, e); len(some) == 32 || n == leads-1 {
			together(t, d, checkpoint.Settle, some...)
			for i := range some {
				made <- n - len(some) + 1 + i
			}
			some = some[:0]
		}
	}
	close(stop)
	<-ended
}

// A record on its way into the index is unflushed until the commit that brings it there is
// durable: who looks meanwhile may read the file as it was before.
func TestYoungLeadsStayUntilTheyAreDurable(t *testing.T) {
	d := opened(t, newPath(t), Options{})
	if _, err := settle(d, createdEntry("k", "lead.k", 1)); err != nil {
		t.Fatal(err)
	}
	lead := appendText(nil, "lead.k")
	err := d.alone(func(l *ledger) error {
		if err := l.unflushed.write(l.leads, lastStep); err != nil {
			return err
		}
		if key, ok := l.unflushed.owner(lead); !ok || key != "k" {
			t.Error("it is gone before the commit")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := d.unflushed.owner(lead); ok {
		t.Error("it stays after the commit")
	}
	if e, how := sought(t, d, checkpoint.Query{Key: "other", LeadID: "lead.k"}); how != checkpoint.ByLeadID || e.Key != "k" {
		t.Errorf("found %d %+v", how, e)
	}
}

// find is what Find has to say, from the maps.
func (m *model) find(q checkpoint.Query) (string, checkpoint.Match) {
	own := m.visible(q.Key)
	owner := m.owner(q.LeadID)
	switch own.State {
	case checkpoint.Created, checkpoint.Partial:
		if owner != "" && owner != q.Key {
			return "", checkpoint.Ambiguous
		}
		return q.Key, checkpoint.ByKey
	case checkpoint.InDoubt, checkpoint.Forgotten:
		return q.Key, checkpoint.ByKey
	}
	if owner != "" {
		return owner, checkpoint.ByLeadID
	}
	linked := map[string]bool{}
	for k, e := range m.entries {
		if e.State.HasLead() && q.ExternalID != "" && (e.ExternalID == q.ExternalID || e.WantLink == q.ExternalID) {
			linked[k] = true
		}
	}
	for k, e := range m.intents {
		if q.ExternalID != "" && e.WantLink == q.ExternalID {
			linked[k] = true
		}
	}
	if len(linked) > 1 {
		return "", checkpoint.Ambiguous
	}
	for k := range linked {
		if q.LeadID != "" && m.visible(k).LeadID != "" {
			return "", checkpoint.Ambiguous
		}
		return k, checkpoint.ByExternalID
	}
	return q.Key, checkpoint.NoMatch
}

// alike is what Find may say of a key that is not known: any that looks like it and has a
// lead or may have one, else one that was forgotten, else nothing.
func (m *model) alike(key string) (all []checkpoint.Likeness) {
	folded, gone := rowkey.Fold(key), checkpoint.Likeness{}
	for n := range keyCount {
		k := keyNamed(n)
		if k == key || rowkey.Fold(k) != folded {
			continue
		}
		if e := m.visible(k); e.State.HasLead() || e.State == checkpoint.InDoubt {
			all = append(all, checkpoint.Likeness{State: e.State, File: e.File, Line: e.Line})
		}
		if m.blocked[k] {
			gone.State = checkpoint.Forgotten
		}
	}
	if all == nil {
		all = append(all, gone)
	}
	return all
}

func (m *model) mark(e checkpoint.Entry, now time.Time) error {
	old, own := m.visible(e.Key), m.owner(e.LeadID)
	lead := old.State == checkpoint.Created || old.State == checkpoint.Partial
	switch {
	case old.State == checkpoint.Forgotten:
		return checkpoint.ErrBlocked
	case lead && old.LeadID == e.LeadID:
		old.Unsettled, old.Sought = e.Unsettled, e.Sought
		m.entries[e.Key] = old
		return nil
	case old.State == checkpoint.InDoubt || lead && old.LeadID != "" || e.LeadID == "":
		return checkpoint.ErrKnown
	case own != "":
		return checkpoint.ErrTaken
	case lead:
		unsettled := e.Unsettled
		m.adopt(e, now)
		e = m.entries[e.Key]
		e.Unsettled = unsettled
	default:
		e.State, e.Updated = checkpoint.Created, now
	}
	m.entries[e.Key], m.people[e.Key] = e, true
	return nil
}

// Whatever was done before, Find and Mark agree with the maps.
func TestFindKnowsWhatAMapWouldKnow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := newMachine(t)
		lead := func(t *rapid.T) string {
			n := rapid.IntRange(0, 14).Draw(t, "lead")
			return []string{fmt.Sprintf("k%d", n), fmt.Sprintf("0b1c2d3e-0000-4000-8000-%012d", n), fmt.Sprintf("lead.%d", n), ""}[n%4]
		}
		actions := x.actions()
		actions["mark"] = func(t *rapid.T) {
			e := checkpoint.Entry{Key: keyNamed(rapid.IntRange(0, 12).Draw(t, "key")), LeadID: lead(t)}
			e.Unsettled = rapid.SampledFrom([]string{"", "run-1", "run-2"}).Draw(t, "run")
			if now := x.m.visible(e.Key).LeadID; now != "" && rapid.Bool().Draw(t, "its own") {
				e.LeadID = now
			}
			if _, err := noted(x.d, e); !errors.Is(err, x.m.mark(e, x.now)) {
				t.Fatalf("mark %+v: %v", e, err)
			}
		}
		actions[""] = func(t *rapid.T) {
			x.now = x.now.Add(time.Second)
			q := checkpoint.Query{Key: keyNamed(rapid.IntRange(0, 14).Draw(t, "key")), LeadID: lead(t), Alike: &checkpoint.Likeness{}}
			q.ExternalID = rapid.SampledFrom([]string{"", "crm-1", "crm-2", "k1", "k2", "k3"}).Draw(t, "external")
			out, how := make([]checkpoint.Entry, 1), make([]checkpoint.Match, 1)
			if err := x.d.Find(context.Background(), []checkpoint.Query{q}, out, how); err != nil {
				t.Fatal(err)
			}
			key, want := x.m.find(q)
			if how[0] != want {
				t.Fatalf("%+v: found %d, want %d", q, how[0], want)
			}
			if alike := x.m.alike(q.Key); want == checkpoint.NoMatch && !slices.Contains(alike, *q.Alike) {
				t.Fatalf("%q looks like %+v, want one of %+v", q.Key, *q.Alike, alike)
			}
			if want != checkpoint.Ambiguous {
				same(t, x.m.visible(key), out[0])
			}
		}
		t.Repeat(actions)
	})
}
