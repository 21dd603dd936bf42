package bolt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"leadferry/checkpoint"
)

// fault 66: the second row that claims a lead falls in doubt, also when both are
// settled in one commit.
func TestLeadOfAnotherKeyLeavesDoubt(t *testing.T) {
	for _, lead := range []string{"lead.1", "0b1c2d3e-0000-4000-8000-000000000001", "first"} {
		t.Run(lead, func(t *testing.T) {
			d := opened(t, newPath(t), Options{})
			together(t, d, checkpoint.Claim, intentOf("first", 7), intentOf("second", 7))
			stored := together(t, d, checkpoint.Settle, createdEntry("first", lead, 7), createdEntry("second", lead, 7))
			if first := stored[0]; first.State != checkpoint.Created {
				t.Errorf("first: %+v", first)
			}
			got := stored[1]
			if got.State != checkpoint.InDoubt || got.Reason != checkpoint.ReasonLeadTaken || got.LeadID != lead || got.File != "leads.csv" {
				t.Errorf("second: %+v", got)
			}
			if diff := cmp.Diff(got, lookup(t, d, "second")); diff != "" {
				t.Errorf("stored (-reported +looked up):\n%s", diff)
			}
			// Settling the first again is no doubt: the lead is its own.
			if again, err := settle(d, createdEntry("first", lead, 8)); err != nil || again.State != checkpoint.Created {
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
	doubt, err := settle(d, checkpoint.Entry{Key: "k", State: checkpoint.InDoubt, Code: 504, Reason: "server_error"})
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
	if diff := cmp.Diff(doubt, lookup(t, d, "k")); diff != "" || d.Info().InDoubt != 1 {
		t.Errorf("%d in doubt, (-before +after):\n%s", d.Info().InDoubt, diff)
	}
}

func TestDecisions(t *testing.T) {
	now := time.Date(2026, 3, 4, 5, 6, 7, 0, time.FixedZone("x", 3600))
	d := opened(t, newPath(t), Options{Now: func() time.Time { return now }})
	for i := range 5 {
		in := intentOf(fmt.Sprint("k", i), i)
		if i == 1 {
			in.WantLink = "crm-1"
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
		list  []checkpoint.Decision
	}{
		"not in doubt":      {1, []checkpoint.Decision{{Key: "k0"}, {Key: "known", LeadID: "x"}}},
		"never heard of":    {0, []checkpoint.Decision{{Key: "none"}}},
		"key twice":         {1, []checkpoint.Decision{{Key: "k0"}, {Key: "k0"}}},
		"ID twice":          {2, []checkpoint.Decision{{Key: "k0", LeadID: "x"}, {Key: "k2"}, {Key: "k1", LeadID: "x"}}},
		"no ID":             {1, []checkpoint.Decision{{Key: "k0"}, {Key: "k1", LeadID: "not found"}}},
		"ID of a known key": {1, []checkpoint.Decision{{Key: "k0", LeadID: "x"}, {Key: "k1", LeadID: "lead-known"}}},
	} {
		var why *checkpoint.ListError
		if err := resolve(d, refused.list...); !errors.As(err, &why) || why.Index != refused.index || why.Key != refused.list[why.Index].Key {
			t.Errorf("%s: %v", name, err)
		}
	}
	if d.Info().InDoubt != 5 {
		t.Fatalf("%d in doubt: a refused list was carried out in part", d.Info().InDoubt)
	}
	made := []checkpoint.Decision{{Key: "k0", LeadID: "lead-0"}, {Key: "k1", LeadID: "lead-1"}, {Key: "k2", Exists: true}, {Key: "k3"}}
	if err := resolve(d, made...); err != nil {
		t.Fatal(err)
	}
	for i, want := range []checkpoint.State{checkpoint.Created, checkpoint.Partial, checkpoint.Created, checkpoint.NotMade, checkpoint.InDoubt} {
		if got := lookup(t, d, fmt.Sprint("k", i)); got.State != want {
			t.Errorf("k%d is %v, want %v", i, got.State, want)
		}
	}
	var kept []checkpoint.Decision
	err := d.Decisions(context.Background(), func(one checkpoint.Decision, at time.Time) error {
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
	if _, err := settle(d, checkpoint.Entry{Key: "k", State: checkpoint.Rejected, Code: 422, Reason: "refused"}); err != nil {
		t.Fatal(err)
	}
	if err := claim(d, intentOf("k", 1)); err != nil {
		t.Fatal(err)
	}
	if err := resolve(d, checkpoint.Decision{Key: "k"}); err != nil {
		t.Fatal(err)
	}
	if got := lookup(t, d, "k"); got.State != checkpoint.NotMade {
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
	later := checkpoint.RunInfo{ID: "b", Command: "import", Started: time.UnixMilli(5).UTC()}
	first := checkpoint.RunInfo{ID: "a", Command: "sync", Started: time.UnixMilli(9).UTC(), Counts: map[string]int{"updated": 3}}
	if err := errors.Join(d.PutRun(context.Background(), first), d.PutRun(context.Background(), later)); err != nil {
		t.Fatal(err)
	}
	later.Finished, later.Outcome, later.Counts = time.UnixMilli(7).UTC(), "attention", map[string]int{"created": 1, "failed": 2}
	if err := errors.Join(d.PutRun(context.Background(), later), claim(d, checkpoint.Entry{Key: "k", Run: "named only"}), claim(d, checkpoint.Entry{Key: "l", Run: "a"})); err != nil {
		t.Fatal(err)
	}
	d.Close()
	d = opened(t, path, Options{})
	got, err := d.Runs(context.Background())
	if diff := cmp.Diff([]checkpoint.RunInfo{first, later}, got); diff != "" || err != nil {
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
		in.Updated = at
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
		e.Digest = d.digests.Sum(body)
		if err := claim(d, checkpoint.Entry{Key: e.Key, Digest: e.Digest, Content: e.Content}); err != nil {
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
	if again := a.digests.Sum([]byte("x")); a.digests.Sum([]byte("x")) != again || a.digests.Sum([]byte("y")) == again {
		t.Error("a digest is not a digest")
	}
	if a.digests.Sum([]byte("x")) == b.digests.Sum([]byte("x")) || sumField(a, "n", "v") == sumField(b, "n", "v") {
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
	var claims, outcomes []checkpoint.Entry
	for i := range n {
		k := fmt.Sprintf("%05d", i)
		if i%3 == 0 {
			claims = append(claims, intentOf(k, i))
		} else {
			outcomes = append(outcomes, createdEntry(k, "lead"+k, i))
		}
	}
	together(t, d, checkpoint.Claim, claims...)
	together(t, d, checkpoint.Settle, outcomes...)
	for state, want := range map[checkpoint.State]int{checkpoint.Unknown: n, checkpoint.InDoubt: (n + 2) / 3, checkpoint.Created: n - (n+2)/3, checkpoint.Rejected: 0} {
		got, last := 0, ""
		err := d.Each(context.Background(), checkpoint.Filter{State: state}, func(e checkpoint.Entry) error {
			if got++; e.Key <= last || (state != checkpoint.Unknown && e.State != state) {
				t.Fatalf("%s (%v) after %s", e.Key, e.State, last)
			}
			if last = e.Key; got == 1 {
				return d.PutRun(context.Background(), checkpoint.RunInfo{ID: "inside"})
			}
			return nil
		})
		if err != nil || got != want {
			t.Errorf("%v: %d of %d, %v", state, got, want, err)
		}
	}
	stop := errors.New("enough")
	if err := d.Each(context.Background(), checkpoint.Filter{State: checkpoint.Unknown}, func(checkpoint.Entry) error { return stop }); err != stop {
		t.Errorf("got %v", err)
	}
}
