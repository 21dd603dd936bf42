package checkpoint

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"leadferry/internal/rowkey"
)

func marked(d *DB, e Entry) (Entry, error) {
	type answer struct {
		e   Entry
		err error
	}
	result := make(chan answer, 1)
	d.Mark(e, func(e Entry, err error) { result <- answer{e, err} })
	d.Hurry()
	a := <-result
	return a.e, a.err
}

func sought(t *testing.T, d *DB, q Query) (Entry, Match) {
	t.Helper()
	out, how := make([]Entry, 1), make([]Match, 1)
	if err := d.Find([]Query{q}, out, how); err != nil {
		t.Fatal(err)
	}
	return out[0], how[0]
}

func TestFindsALeadByKeyThenByIDThenByExternalID(t *testing.T) {
	d := opened(t, newPath(t), Options{})
	put := func(key, lead, external string, s State) {
		e := createdEntry(key, lead, 3)
		e.ExternalID, e.State = external, s
		if _, err := settle(d, e); err != nil {
			t.Fatal(err)
		}
	}
	put("a", "lead.a", "x-a", Created)
	put("b", "lead.b", "b", Partial)
	put("lead.c", "lead.c", "x-c", Created)
	put("d1", "lead.d1", "x-d", Created)
	put("d2", "lead.d2", "x-d", Created)
	put("e1", "lead.e1", "x-e", Created)
	put("x-e", "lead.e2", "x-e", Created)
	put("r", "", "x-r", Rejected)
	put("noid", "", "x-noid", Created)
	if err := claim(d, intentOf("doubt", 4)); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Forget([]string{"gone"}, false); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		q    Query
		how  Match
		key  string
		stat State
	}{
		{Query{Key: "a"}, ByKey, "a", Created},
		{Query{Key: "a", LeadID: "lead.a", ExternalID: "x-d"}, ByKey, "a", Created},
		{Query{Key: "a", LeadID: "lead.new"}, ByKey, "a", Created},
		{Query{Key: "a", LeadID: "lead.b"}, Ambiguous, "a", Created},
		{Query{Key: "noid", LeadID: "lead.b"}, Ambiguous, "noid", Created},
		{Query{Key: "noid", LeadID: "lead.new"}, ByKey, "noid", Created},
		{Query{Key: "new", LeadID: "lead.a", ExternalID: "b"}, ByLeadID, "a", Created},
		{Query{Key: "new", LeadID: "lead.c"}, ByLeadID, "lead.c", Created},
		{Query{Key: "new", LeadID: "lead.new"}, NoMatch, "new", Unknown},
		{Query{Key: "new", LeadID: "lead.new", ExternalID: "x-a"}, Ambiguous, "", Unknown},
		{Query{Key: "new", LeadID: "lead.new", ExternalID: "x-noid"}, ByExternalID, "noid", Created},
		{Query{Key: "new", ExternalID: "x-a"}, ByExternalID, "a", Created},
		{Query{Key: "new", ExternalID: "x-"}, NoMatch, "new", Unknown},
		{Query{Key: "new", ExternalID: "x-aa"}, NoMatch, "new", Unknown},
		{Query{Key: "new", ExternalID: "b"}, ByExternalID, "b", Partial},
		{Query{Key: "new", ExternalID: "x-c"}, ByExternalID, "lead.c", Created},
		{Query{Key: "new", ExternalID: "x-d"}, Ambiguous, "", Unknown},
		{Query{Key: "new", ExternalID: "x-e"}, Ambiguous, "", Unknown},
		{Query{Key: "x-e", ExternalID: "x-e"}, ByKey, "x-e", Created},
		{Query{Key: "new", ExternalID: "x-r"}, NoMatch, "new", Unknown},
		{Query{Key: "r"}, NoMatch, "r", Rejected},
		{Query{Key: "r", LeadID: "lead.a"}, ByLeadID, "a", Created},
		{Query{Key: "r", ExternalID: "x-a"}, ByExternalID, "a", Created},
		{Query{Key: "doubt", LeadID: "lead.a"}, ByKey, "doubt", InDoubt},
		{Query{Key: "gone", LeadID: "lead.a"}, ByKey, "gone", Forgotten},
		{Query{Key: "new"}, NoMatch, "new", Unknown},
	} {
		e, how := sought(t, d, test.q)
		if how != test.how || how != Ambiguous && (e.Key != test.key || e.State != test.stat) {
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
	events, _ := d.History("k")
	stored, err := marked(d, Entry{Key: "k", LeadID: "lead.k", Unsettled: "run-2", Sought: "closedWon", Status: "open"})
	if err != nil {
		t.Fatal(err)
	}
	want := before
	want.Unsettled, want.Sought, want.Seq = "run-2", "closedWon", stored.Seq
	if diff := cmp.Diff(want, stored); diff != "" {
		t.Error(diff)
	}
	copied := opened(t, crash(t, path), Options{})
	if diff := cmp.Diff(want, lookup(t, copied, "k")); diff != "" {
		t.Error(diff)
	}
	if now, _ := copied.History("k"); !slices.Equal(now, events) {
		t.Errorf("history %v, want %v", now, events)
	}
	back, err := marked(d, Entry{Key: "k", LeadID: "lead.k"})
	if want.Unsettled, want.Sought, want.Seq = "", "", back.Seq; err != nil || !cmp.Equal(want, back) {
		t.Errorf("taken back: %v %s", err, cmp.Diff(want, back))
	}

	if _, err := marked(d, Entry{Key: "new", LeadID: "lead.new", Unsettled: "run-2"}); err != nil {
		t.Fatal(err)
	}
	e, how := sought(t, d, Query{Key: "other", LeadID: "lead.new"})
	events, _ = d.History("new")
	if how != ByLeadID || e.Key != "new" || e.State != Created || e.Unsettled != "run-2" || len(events) != 1 || events[0].Act&Adopted == 0 {
		t.Errorf("taken over: %d %+v %v", how, e, events)
	}
	if _, err := settle(d, Entry{Key: "noid", State: Created, Status: "open", ExternalID: "x"}); err != nil {
		t.Fatal(err)
	}
	e, err = marked(d, Entry{Key: "noid", LeadID: "lead.9", Unsettled: "run-2"})
	if err != nil || e.LeadID != "lead.9" || e.Status != "open" || e.ExternalID != "x" || e.Unsettled != "run-2" {
		t.Errorf("completed: %+v, %v", e, err)
	}
	if err := claim(d, intentOf("doubt", 1)); err != nil {
		t.Fatal(err)
	}
	for _, refused := range []struct {
		e   Entry
		err error
	}{
		{Entry{Key: "", LeadID: "lead.k"}, ErrKey},
		{Entry{Key: "k", LeadID: "lead.other"}, ErrKnown},
		{Entry{Key: "doubt", LeadID: "lead.other"}, ErrKnown},
		{Entry{Key: "nothing"}, ErrKnown},
		{Entry{Key: "third", LeadID: "lead.k"}, ErrTaken},
	} {
		if _, err := marked(d, refused.e); !errors.Is(err, refused.err) {
			t.Errorf("%+v: %v, want %v", refused.e, err, refused.err)
		}
	}
}

func TestWhatUpdatesLeaveIsKept(t *testing.T) {
	at := time.UnixMilli(1_770_000_000_789).UTC()
	d := opened(t, newPath(t), Options{})
	for i, change := range []func(*Entry){
		func(e *Entry) { e.Unsettled = "run" },
		func(e *Entry) { e.Unsettled, e.Sought = "run", "onHold" },
		func(e *Entry) { e.Refused = Digest{7} },
		func(e *Entry) { e.Synced = true },
		func(e *Entry) { e.Confirmed = at },
		func(e *Entry) { e.Unsettled, e.Refused, e.Synced, e.Confirmed = "run", Digest{1}, true, at },
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
	var many []Entry
	for n := range generation {
		many = append(many, Entry{Key: fmt.Sprint("many", n), LeadID: fmt.Sprint("lead.many", n)})
	}
	if _, err := d.Adopt(many); err != nil {
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
				if e, how := sought(t, d, Query{Key: "none", LeadID: "lead." + many}); how != ByLeadID || e.Key != many {
					t.Errorf("lead %s: %d %q", many, how, e.Key)
					return
				}
			}
			for i := range min(len(known), 64) {
				n := known[(len(known)*i/64+i)%len(known)]
				if e, how := sought(t, d, Query{Key: "none", LeadID: fmt.Sprint("lead.", n)}); how != ByLeadID || e.Key != fmt.Sprint("k", n) {
					t.Errorf("lead %d: %d %q", n, how, e.Key)
					return
				}
			}
		}
	}()
	done := make(chan struct{}, leads)
	for n := range leads {
		d.Settle(createdEntry(fmt.Sprint("k", n), fmt.Sprint("lead.", n), 1), func(Entry, error) { made <- n; done <- struct{}{} })
	}
	for range leads {
		<-done
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
	if e, how := sought(t, d, Query{Key: "other", LeadID: "lead.k"}); how != ByLeadID || e.Key != "k" {
		t.Errorf("found %d %+v", how, e)
	}
}

// find is what Find has to say, from the maps.
func (m *model) find(q Query) (string, Match) {
	own := m.visible(q.Key)
	owner := m.owner(q.LeadID)
	switch own.State {
	case Created, Partial:
		if owner != "" && owner != q.Key {
			return "", Ambiguous
		}
		return q.Key, ByKey
	case InDoubt, Forgotten:
		return q.Key, ByKey
	}
	if owner != "" {
		return owner, ByLeadID
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
		return "", Ambiguous
	}
	for k := range linked {
		if q.LeadID != "" && m.visible(k).LeadID != "" {
			return "", Ambiguous
		}
		return k, ByExternalID
	}
	return q.Key, NoMatch
}

// alike is what Find may say of a key that is not known: any that looks like it and has a
// lead or may have one, else one that was forgotten, else nothing.
func (m *model) alike(key string) (all []Likeness) {
	folded, gone := rowkey.Fold(key), Likeness{}
	for n := range keyCount {
		k := keyNamed(n)
		if k == key || rowkey.Fold(k) != folded {
			continue
		}
		if e := m.visible(k); e.State.HasLead() || e.State == InDoubt {
			all = append(all, Likeness{e.State, e.File, e.Line})
		}
		if m.blocked[k] {
			gone.State = Forgotten
		}
	}
	if all == nil {
		all = append(all, gone)
	}
	return all
}

func (m *model) mark(e Entry, now time.Time) error {
	old, own := m.visible(e.Key), m.owner(e.LeadID)
	lead := old.State == Created || old.State == Partial
	switch {
	case old.State == Forgotten:
		return ErrBlocked
	case lead && old.LeadID == e.LeadID:
		old.Unsettled, old.Sought = e.Unsettled, e.Sought
		m.entries[e.Key] = old
		return nil
	case old.State == InDoubt || lead && old.LeadID != "" || e.LeadID == "":
		return ErrKnown
	case own != "":
		return ErrTaken
	case lead:
		unsettled := e.Unsettled
		m.adopt(e, now)
		e = m.entries[e.Key]
		e.Unsettled = unsettled
	default:
		e.State, e.Updated = Created, now
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
			e := Entry{Key: keyNamed(rapid.IntRange(0, 12).Draw(t, "key")), LeadID: lead(t)}
			e.Unsettled = rapid.SampledFrom([]string{"", "run-1", "run-2"}).Draw(t, "run")
			if now := x.m.visible(e.Key).LeadID; now != "" && rapid.Bool().Draw(t, "its own") {
				e.LeadID = now
			}
			if _, err := marked(x.d, e); !errors.Is(err, x.m.mark(e, x.now)) {
				t.Fatalf("mark %+v: %v", e, err)
			}
		}
		actions[""] = func(t *rapid.T) {
			x.now = x.now.Add(time.Second)
			q := Query{Key: keyNamed(rapid.IntRange(0, 14).Draw(t, "key")), LeadID: lead(t), Alike: &Likeness{}}
			q.ExternalID = rapid.SampledFrom([]string{"", "crm-1", "crm-2", "k1", "k2", "k3"}).Draw(t, "external")
			out, how := make([]Entry, 1), make([]Match, 1)
			if err := x.d.Find([]Query{q}, out, how); err != nil {
				t.Fatal(err)
			}
			key, want := x.m.find(q)
			if how[0] != want {
				t.Fatalf("%+v: found %d, want %d", q, how[0], want)
			}
			if alike := x.m.alike(q.Key); want == NoMatch && !slices.Contains(alike, *q.Alike) {
				t.Fatalf("%q looks like %+v, want one of %+v", q.Key, *q.Alike, alike)
			}
			if want != Ambiguous {
				same(t, x.m.visible(key), out[0])
			}
		}
		t.Repeat(actions)
	})
}
