package checkpoint

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// fault 66: the second row that claims a lead falls in doubt, also when both are
// settled in one commit.
func TestLeadOfAnotherKeyLeavesDoubt(t *testing.T) {
	for _, lead := range []string{"lead.1", "0b1c2d3e-0000-4000-8000-000000000001", "first"} {
		t.Run(lead, func(t *testing.T) {
			d := opened(t, newPath(t), Options{})
			for _, k := range []string{"first", "second"} {
				d.Claim(intentOf(k, 7), func(error) {})
			}
			type answer struct {
				e   Entry
				err error
			}
			answers := make(chan answer, 2)
			for _, k := range []string{"first", "second"} {
				d.Settle(createdEntry(k, lead, 7), func(e Entry, err error) { answers <- answer{e, err} })
			}
			before := d.tally.Load().seq
			d.Hurry()
			first, second := <-answers, <-answers
			if first.e.State != Created || first.err != nil {
				t.Errorf("first: %+v", first)
			}
			got := second.e
			if got.State != InDoubt || got.Reason != ReasonLeadTaken || got.LeadID != lead || got.File != "leads.csv" || second.err != nil {
				t.Errorf("second: %+v", second)
			}
			if d.tally.Load().seq > before+1 {
				t.Skip("not in one commit this time")
			}
			if diff := cmp.Diff(got, lookup(t, d, "second")); diff != "" {
				t.Errorf("stored (-reported +looked up):\n%s", diff)
			}
			// Settling the first again is no doubt: the lead is its own.
			if again, err := settle(d, createdEntry("first", lead, 8)); err != nil || again.State != Created {
				t.Errorf("again: %+v, %v", again, err)
			}
		})
	}
}

// A row sent again although in doubt, but stopped before it was sent, is in the
// same doubt as before.
func TestWithdrawnResendRestoresTheEarlierDoubt(t *testing.T) {
	path := newPath(t)
	d := opened(t, path, Options{})
	if err := claim(d, intentOf("k", 5)); err != nil {
		t.Fatal(err)
	}
	doubt, err := settle(d, Entry{Key: "k", State: InDoubt, Code: 504, Reason: "server_error"})
	if err != nil {
		t.Fatal(err)
	}
	if err := claim(d, intentOf("k", 99)); err != nil {
		t.Fatal(err)
	}
	if got := lookup(t, d, "k"); got.Line != 101 || got.Code != 0 {
		t.Errorf("sent again: %+v", got)
	}
	d.Close()
	d = opened(t, path, Options{})
	if err := withdraw(d, "k"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(doubt, lookup(t, d, "k")); diff != "" || d.InDoubt() != 1 {
		t.Errorf("%d in doubt, (-before +after):\n%s", d.InDoubt(), diff)
	}
}

func TestDecisions(t *testing.T) {
	now := time.Date(2026, 3, 4, 5, 6, 7, 0, time.FixedZone("x", 3600))
	d := opened(t, newPath(t), Options{Now: func() time.Time { return now }})
	for i := range 5 {
		in := intentOf(fmt.Sprint("k", i), i)
		if i == 1 {
			in.ExternalID = "crm-1"
		}
		if err := claim(d, in); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := settle(d, createdEntry("known", "lead-known", 1)); err != nil {
		t.Fatal(err)
	}
	for name, refused := range map[string]struct {
		index int
		list  []Decision
	}{
		"not in doubt":      {1, []Decision{{Key: "k0"}, {Key: "known", LeadID: "x"}}},
		"never heard of":    {0, []Decision{{Key: "none"}}},
		"key twice":         {1, []Decision{{Key: "k0"}, {Key: "k0"}}},
		"ID twice":          {2, []Decision{{Key: "k0", LeadID: "x"}, {Key: "k2"}, {Key: "k1", LeadID: "x"}}},
		"no ID":             {1, []Decision{{Key: "k0"}, {Key: "k1", LeadID: "not found"}}},
		"ID of a known key": {1, []Decision{{Key: "k0", LeadID: "x"}, {Key: "k1", LeadID: "lead-known"}}},
	} {
		var why *ListError
		if err := resolve(d, refused.list...); !errors.As(err, &why) || why.Index != refused.index || why.Key != refused.list[why.Index].Key {
			t.Errorf("%s: %v", name, err)
		}
	}
	if d.InDoubt() != 5 {
		t.Fatalf("%d in doubt: a refused list was carried out in part", d.InDoubt())
	}
	made := []Decision{{Key: "k0", LeadID: "lead-0"}, {Key: "k1", LeadID: "lead-1"}, {Key: "k2", Exists: true}, {Key: "k3"}}
	if err := resolve(d, made...); err != nil {
		t.Fatal(err)
	}
	for i, want := range []State{Created, Partial, Created, NotMade, InDoubt} {
		if got := lookup(t, d, fmt.Sprint("k", i)); got.State != want {
			t.Errorf("k%d is %v, want %v", i, got.State, want)
		}
	}
	var kept []Decision
	err := d.Decisions(func(one Decision, at time.Time) error {
		if kept = append(kept, one); !at.Equal(now) || at.Location() != time.UTC {
			t.Errorf("decided at %v", at)
		}
		return nil
	})
	if diff := cmp.Diff(made, kept); diff != "" || err != nil {
		t.Errorf("kept %v:\n%s", err, diff)
	}
}

// A refusal from before does not hold back a row that a person has set free.
func TestDecisionThatNothingWasCreatedFreesTheRow(t *testing.T) {
	d := opened(t, newPath(t), Options{})
	if _, err := settle(d, Entry{Key: "k", State: Rejected, Code: 422, Reason: "refused"}); err != nil {
		t.Fatal(err)
	}
	if err := claim(d, intentOf("k", 1)); err != nil {
		t.Fatal(err)
	}
	if err := resolve(d, Decision{Key: "k"}); err != nil {
		t.Fatal(err)
	}
	if got := lookup(t, d, "k"); got.State != NotMade {
		t.Errorf("still %v", got.State)
	}
	if diff := cmp.Diff([]string{"rejected +refused  422", "in_doubt +doubted open 0", "not_made +decided  0"}, acts(t, d, "k")); diff != "" {
		t.Errorf("history (-want +got):\n%s", diff)
	}
	if err := claim(d, intentOf("k", 2)); err != nil {
		t.Errorf("sent again: %v", err)
	}
}

func TestRunsAreKeptInOrderOfTheirBeginning(t *testing.T) {
	path := newPath(t)
	d := opened(t, path, Options{})
	later := RunInfo{ID: "b", Command: "import", Started: time.UnixMilli(5).UTC()}
	first := RunInfo{ID: "a", Command: "sync", Started: time.UnixMilli(9).UTC(), Counts: map[string]int{"updated": 3}}
	if err := errors.Join(d.AddRun(first), d.AddRun(later)); err != nil {
		t.Fatal(err)
	}
	later.Finished, later.Outcome, later.Counts = time.UnixMilli(7).UTC(), "attention", map[string]int{"created": 1, "failed": 2}
	if err := errors.Join(d.AddRun(later), claim(d, Intent{Key: "k", Run: "named only"}), claim(d, Intent{Key: "l", Run: "a"})); err != nil {
		t.Fatal(err)
	}
	d.Close()
	d = opened(t, path, Options{})
	got, err := d.Runs()
	if diff := cmp.Diff([]RunInfo{first, later}, got); diff != "" || err != nil {
		t.Errorf("%v:\n%s", err, diff)
	}
	if lookup(t, d, "k").Run != "named only" || lookup(t, d, "l").Run != "a" {
		t.Error("entries name other runs")
	}
}

// faults 124, 126: any time comes back as it was, in UTC, and does not decide the
// order.
func TestOddTimesAreKept(t *testing.T) {
	d := opened(t, newPath(t), Options{})
	var last uint64
	for i, at := range []time.Time{
		time.Unix(0, 0), time.Date(1901, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2038, 1, 19, 3, 14, 8, 0, time.UTC),
		time.Date(2200, 6, 1, 0, 0, 0, 999_000_000, time.FixedZone("odd", -12345)),
	} {
		in := intentOf(fmt.Sprint(i), i)
		in.Sent = at
		if err := claim(d, in); err != nil {
			t.Fatal(err)
		}
		got := lookup(t, d, in.Key)
		if !got.Updated.Equal(at) || got.Updated.Location() != time.UTC {
			t.Errorf("%v came back as %v", at, got.Updated)
		}
		if got.Seq <= last {
			t.Errorf("sequence %d after %d", got.Seq, last)
		}
		last = got.Seq
	}
}

// fault 114: of 500 values of cells none is in the file or its neighbour, neither
// as it is nor as a plain hash; only keys, IDs, statuses, organizations and
// locators are.
func TestNoCellValueReachesTheFile(t *testing.T) {
	path := newPath(t)
	d := opened(t, path, Options{})
	var planted []string
	for i := range 50 {
		e := createdEntry(fmt.Sprint("key", i), fmt.Sprint("lead", i), i)
		e.Content = nil
		var body []byte
		for j := range 10 {
			value := fmt.Sprintf("planted-%d-%d@example.com", i, j)
			planted = append(planted, value)
			body = append(body, value...)
			e.Content = append(e.Content, sumField(d, fmt.Sprint("name", j), value))
		}
		e.Digest = d.Sum(body)
		if err := claim(d, Intent{Key: e.Key, Digest: e.Digest, Content: e.Content}); err != nil {
			t.Fatal(err)
		}
		if _, err := settle(d, e); err != nil {
			t.Fatal(err)
		}
	}
	d.Close()
	for _, end := range []string{"", ".seq"} {
		file, err := os.ReadFile(path + end)
		if err != nil {
			t.Fatal(err)
		}
		for _, value := range append(planted, "planted", "name0") {
			if bytes.Contains(file, []byte(value)) {
				t.Errorf("%q is in the file", value)
			}
		}
	}
}

func TestDigestsAreKeyedAndSeparate(t *testing.T) {
	a, b := opened(t, newPath(t), Options{}), opened(t, newPath(t), Options{})
	if again := a.Sum([]byte("x")); a.Sum([]byte("x")) != again || a.Sum([]byte("y")) == again {
		t.Error("a digest is not a digest")
	}
	if a.Sum([]byte("x")) == b.Sum([]byte("x")) || sumField(a, "n", "v") == sumField(b, "n", "v") {
		t.Error("digests of two files are equal: they are not keyed")
	}
	one, two := sumField(a, "ab", "c"), sumField(a, "a", "bc")
	if one.Name == two.Name || one.Value == two.Value {
		t.Error("name and value run into one another")
	}
	if one.Name != sumField(a, "ab", "d").Name {
		t.Error("a name's digest depends on its value")
	}
}

func TestEachGoesThroughAllInOrderAndMayWrite(t *testing.T) {
	d := opened(t, newPath(t), Options{})
	const n = 3*chunk + 7
	for i := range n {
		k := fmt.Sprintf("%05d", i)
		if i%3 == 0 {
			d.Claim(intentOf(k, i), func(error) {})
		} else {
			d.Settle(createdEntry(k, "lead"+k, i), func(Entry, error) {})
		}
	}
	if err := withdraw(d, "none"); err != nil { // waits for those above
		t.Fatal(err)
	}
	for state, want := range map[State]int{Unknown: n, InDoubt: (n + 2) / 3, Created: n - (n+2)/3, Rejected: 0} {
		got, last := 0, ""
		err := d.Each(state, func(e Entry) error {
			if got++; e.Key <= last || (state != Unknown && e.State != state) {
				t.Fatalf("%s (%v) after %s", e.Key, e.State, last)
			}
			if last = e.Key; got == 1 {
				return d.AddRun(RunInfo{ID: "inside"})
			}
			return nil
		})
		if err != nil || got != want {
			t.Errorf("%v: %d of %d, %v", state, got, want, err)
		}
	}
	stop := errors.New("enough")
	if err := d.Each(Unknown, func(Entry) error { return stop }); err != stop {
		t.Errorf("got %v", err)
	}
}
