package bolt

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"leadferry/checkpoint"
)

// acts is a history without times and runs.
func acts(t *testing.T, d *Store, key string) (all []string) {
	t.Helper()
	events, err := d.History(context.Background(), key)
	if err != nil {
		t.Fatal(err)
	}
	for _, ev := range events {
		all = append(all, fmt.Sprintf("%v %s %s %d", ev.State, actNames(ev.Act), ev.Status, ev.Code))
	}
	return all
}

func actNames(a checkpoint.Act) (s string) {
	for i, name := range []string{"made", "linked", "status", "data", "refused", "doubted", "adopted", "decided"} {
		if a&(1<<i) != 0 {
			s += "+" + name
		}
	}
	return s
}

func TestHistoryTellsWhatWasDone(t *testing.T) {
	path := newPath(t)
	run := 0
	at := func() time.Time { return time.UnixMilli(int64(1000 * run)).UTC() }
	d := opened(t, path, Options{Now: at})
	step := func(e checkpoint.Entry) {
		t.Helper()
		e.Key, e.Run, e.Updated = "k", fmt.Sprint("run-", run), at()
		run++
		if _, err := settle(d, e); err != nil {
			t.Fatal(err)
		}
	}
	sent := func() {
		t.Helper()
		in := checkpoint.Entry{Key: "k", Run: fmt.Sprint("run-", run), WantLink: "crm", Updated: at().Add(-time.Millisecond)}
		if err := claim(d, in); err != nil {
			t.Fatal(err)
		}
	}
	sent()
	step(checkpoint.Entry{State: checkpoint.Rejected, Code: 422})
	sent()
	step(checkpoint.Entry{State: checkpoint.InDoubt, Code: 504})
	sent() // again, although in doubt
	if err := resolve(d, checkpoint.Decision{Key: "k", LeadID: "lead-1"}); err != nil {
		t.Fatal(err)
	}
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
	if diff := cmp.Diff(want, acts(t, d, "k")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for range 5 {
		step(checkpoint.Entry{State: checkpoint.Created, LeadID: "lead-1", ExternalID: "crm", Status: "closedWon", Digest: checkpoint.Digest{2}})
	}
	d.Close()
	d = opened(t, path, Options{})
	events, err := d.History(context.Background(), "k")
	if err != nil || events[0].Act != checkpoint.Refused || events[0].Run != "run-0" || events[len(events)-1].Run != fmt.Sprint("run-", run-1) ||
		len(events) != mostPast+3 || events[1].Act != checkpoint.Doubted || events[2].Act != checkpoint.Doubted || events[3].Act&checkpoint.Decided == 0 {
		t.Errorf("of a long history: %+v, %v", events, err)
	}
	if events, err := d.History(context.Background(), "none"); len(events) != 0 || err != nil {
		t.Errorf("of nothing: %+v, %v", events, err)
	}
}

// The first and the last events are kept, in order, and a row stays small.
func TestHistoryIsBounded(t *testing.T) {
	w := newWords()
	var past []byte
	for i := range 100 {
		past = w.appendEvent(past, checkpoint.Event{Act: checkpoint.StatusSent, State: checkpoint.Created, Status: "closedWon", Code: 200, Run: "run", At: time.UnixMilli(1_770_000_000_000 + int64(i)).UTC()})
	}
	events, err := w.events(past)
	if err != nil || len(events) != mostPast {
		t.Fatalf("%d events, %v", len(events), err)
	}
	for i, ev := range events {
		want := int64(100 - mostPast + i)
		if i == 0 {
			want = 0
		}
		if got := ev.At.UnixMilli() - 1_770_000_000_000; got != want {
			t.Errorf("event %d is number %d, want %d", i, got, want)
		}
	}
	if len(past) > 120 {
		t.Errorf("%d bytes", len(past))
	}
}

// A row whose create was withdrawn has no event; one in doubt shows its send.
func TestHistoryOfADoubt(t *testing.T) {
	d := opened(t, newPath(t), Options{})
	if err := errors.Join(claim(d, intentOf("a", 1)), claim(d, intentOf("b", 1)), withdraw(d, "b")); err != nil {
		t.Fatal(err)
	}
	if got := acts(t, d, "a"); len(got) != 1 || got[0] != "in_doubt +doubted open 0" {
		t.Errorf("%q", got)
	}
	if got := acts(t, d, "b"); len(got) != 0 {
		t.Errorf("%q", got)
	}
}
