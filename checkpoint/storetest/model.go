package storetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"leadferry/checkpoint"
	"leadferry/internal/testsupport/must"
)

// keyNamed returns one of the keys of a test. Some of them look alike.
func keyNamed(n int) string {
	switch n {
	case 5, 11:
		return "k" + strings.Repeat(" ", n-4) + "1"
	case 9, 10:
		return strings.Repeat("0", n-8) + "7"
	case 8:
		return "7"
	}
	return fmt.Sprintf("k%d", n)
}

// machine makes the same random changes in a Store and in the reference.
type machine struct {
	d   *opened
	m   *reference
	now time.Time
}

// knowsWhatMapsKnow: a Store knows what maps would know, after any changes in any order, any number of them in one
// commit, and with the process killed between any two commits. faults 1, 2, 3, 10
func knowsWhatMapsKnow(t *testing.T, b Backend) {
	rapid.Check(t, func(t *rapid.T) {
		x := &machine{now: time.UnixMilli(1_770_000_000_000).UTC()}
		now := func() time.Time { return x.now }
		x.d, x.m = b.openAt(t, now), newReference(now)
		t.Repeat(x.actions())
	})
}

func drawKey(t *rapid.T) string { return keyNamed(rapid.IntRange(0, 12).Draw(t, "key")) }

// drawLead draws a lead ID. Some equal keys.
func drawLead(t *rapid.T) string {
	n := rapid.IntRange(0, 14).Draw(t, "lead")
	return []string{
		fmt.Sprintf("k%d", n), fmt.Sprintf("0b1c2d3e-0000-4000-8000-%012d", n), fmt.Sprintf("lead.%d", n),
		"",
	}[n%4]
}

func (x *machine) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"commit":  x.commit,
		"forget":  x.forget,
		"adopt":   x.adopt,
		"resolve": x.resolve,
		"reopen":  func(t *rapid.T) { x.d = x.d.again(t) },
		"": func(t *rapid.T) {
			x.now = x.now.Add(time.Second)
			x.compare(t)
			x.find(t)
		},
		"crash": func(t *rapid.T) {
			old := x.d
			x.d = old.killed(t)
			old.Close()
		},
	}
}

func (x *machine) commit(t *rapid.T) {
	var ours, theirs []*checkpoint.Change
	for range rapid.IntRange(1, 5).Draw(t, "changes") {
		c := x.draw(t)
		other := c
		ours, theirs = append(ours, &c), append(theirs, &other)
	}
	must.Do(t, errors.Join(x.m.Commit(context.Background(), ours), x.d.Commit(context.Background(), theirs)))
	for i, want := range ours {
		if got := theirs[i]; !errors.Is(got.Err, want.Err) {
			t.Fatalf("%d of %+v: refused as %v, want %v", got.Kind, got.Entry, got.Err, want.Err)
		} else if got.Err == nil && got.Kind != checkpoint.Withdraw {
			same(t, want.Entry, got.Entry)
		}
	}
}

func (x *machine) draw(t *rapid.T) checkpoint.Change {
	c := checkpoint.Change{Kind: rapid.SampledFrom([]checkpoint.ChangeKind{
		checkpoint.Claim, checkpoint.Claim,
		checkpoint.Settle, checkpoint.Settle, checkpoint.Withdraw, checkpoint.Mark,
	}).Draw(t, "kind")}
	key, line := drawKey(t), rapid.IntRange(0, 9).Draw(t, "line")
	switch c.Kind {
	case checkpoint.Claim:
		if c.Entry = IntentOf(key, line); rapid.Bool().Draw(t, "timeless") { // then it is sent when it is committed
			c.Entry.Updated = time.Time{}
		}
		c.Resend = rapid.Bool().Draw(t, "again")
		c.Entry.WantLink = rapid.SampledFrom([]string{"", key, "crm-1"}).Draw(t, "link")
		c.Entry.RequestID = rapid.SampledFrom([]string{"", "", "id-1", "0b1c2d3e-0000-4000-8000-000000000001"}).Draw(t,
			"request ID")
	case checkpoint.Settle:
		c.Entry = CreatedEntry(key, drawLead(t), line)
		c.Entry.State = rapid.SampledFrom([]checkpoint.State{
			checkpoint.Created, checkpoint.Partial,
			checkpoint.Rejected, checkpoint.InDoubt,
		}).Draw(t, "state")
		if c.Entry.State == checkpoint.Rejected {
			c.Entry.LeadID, c.Entry.Code, c.Entry.Reason = "", rapid.SampledFrom([]int{409, 422}).Draw(t,
				"code"), "refused"
		}
		c.Entry.ExternalID = rapid.SampledFrom([]string{"", key, "crm-1", "crm-2"}).Draw(t, "link")
	case checkpoint.Mark:
		c.Entry = checkpoint.Entry{
			Key: key, LeadID: drawLead(t),
			Unsettled: rapid.SampledFrom([]string{"", "run-1", "run-2"}).Draw(t, "run"),
		}
		c.Entry.Seen = rapid.SampledFrom([]checkpoint.Sight{
			{},
			{At: x.now, Status: "closedWon", Organization: "org-1"},
			{At: x.now, Against: "open", Content: true},
		}).Draw(t, "seen")
		if now := x.m.known.visible(key).LeadID; now != "" && rapid.Bool().Draw(t, "its own") {
			c.Entry.LeadID = now
		}
	default:
		c.Entry.Key, c.Entry.Run = key, IntentOf(key, line).Run
	}
	return c
}

func alike(t *rapid.T, what string, want, got any, wantErr, gotErr error) {
	t.Helper()
	var ours, theirs *checkpoint.ListError
	if (wantErr == nil) != (gotErr == nil) || errors.As(wantErr, &ours) != errors.As(gotErr, &theirs) ||
		ours != nil && ours.Index != theirs.Index {
		t.Fatalf("%s: %v, want %v", what, gotErr, wantErr)
	}
	if diff := cmp.Diff(want, got); diff != "" && wantErr == nil {
		t.Fatalf("%s (-want +got):\n%s", what, diff)
	}
}

func (x *machine) forget(t *rapid.T) {
	keys, unblock := []string{drawKey(t), drawKey(t)}, rapid.Bool().Draw(t, "unblock")
	want, wantErr := checkpoint.Forget(context.Background(), x.m, keys, unblock)
	got, err := checkpoint.Forget(context.Background(), x.d, keys, unblock)
	alike(t, "forget", want, got, wantErr, err)
}

func (x *machine) adopt(t *rapid.T) {
	var list []checkpoint.Entry
	for range rapid.IntRange(1, 3).Draw(t, "entries") {
		e := checkpoint.Entry{
			Key: drawKey(t), LeadID: drawLead(t), Status: "open", Updated: x.now,
			State: checkpoint.Created,
		}
		if rapid.IntRange(0, 2).Draw(t, "doubt") == 0 {
			e.State, e.LeadID, e.WantLink = checkpoint.InDoubt, "", e.Key
		} else {
			e.ExternalID = rapid.SampledFrom([]string{"", e.Key, "crm-1"}).Draw(t, "link")
		}
		list = append(list, e)
	}
	want, wantErr := Adopt(x.m, list...)
	got, err := Adopt(x.d, list...)
	alike(t, fmt.Sprintf("adopt %+v", list), want, got, wantErr, err)
}

func (x *machine) resolve(t *rapid.T) {
	var list []checkpoint.Decision
	for range rapid.IntRange(1, 3).Draw(t, "decisions") {
		one := checkpoint.Decision{Key: drawKey(t), LeadID: drawLead(t)}
		one.Exists = one.LeadID == "" && rapid.Bool().Draw(t, "exists")
		one.Run = rapid.SampledFrom([]string{"", "", IntentOf("", 0).Run, "another"}).Draw(t, "run")
		list = append(list, one)
	}
	want, wantErr := checkpoint.Resolve(context.Background(), x.m, list)
	got, err := checkpoint.Resolve(context.Background(), x.d, list)
	alike(t, fmt.Sprintf("resolve %+v", list), want, got, wantErr, err)
}

func (x *machine) compare(t *rapid.T) {
	want, got := contents(t, x.m), contents(t, x.d)
	if len(got) != len(want) {
		t.Fatalf("%d keys, want %d", len(got), len(want))
	}
	for i := range want {
		same(t, want[i], got[i])
	}
	ours, theirs := x.m.Info(), x.d.Info()
	if !maps.Equal(ours.Keys, theirs.Keys) || ours.Leads != theirs.Leads || ours.InDoubt != theirs.InDoubt {
		t.Fatalf("counts %v, want %v", theirs.Keys, ours.Keys)
	}
	if diff := cmp.Diff(decisionsOf(t, x.m), decisionsOf(t, x.d)); diff != "" {
		t.Fatalf("decisions and what contradicts them (-want +got):\n%s", diff)
	}
	const bounded = 6 // events that every Store keeps
	key := drawKey(t)
	if events := history(t, x.m, key); len(events) <= bounded {
		if diff := cmp.Diff(events, history(t, x.d, key)); diff != "" {
			t.Fatalf("history of %s (-want +got):\n%s", key, diff)
		}
	}
}

// decisionsOf returns the decisions that a Store keeps, without the run of the send: not all Stores keep that.
func decisionsOf(t TB, d checkpoint.Store) (all []string) {
	t.Helper()
	for _, one := range audit(t, d) {
		one.Run = ""
		all = append(all, fmt.Sprintln(one.Decision, one.At, one.Against))
	}
	return all
}

func (x *machine) find(t *rapid.T) {
	q := checkpoint.Query{
		Key: keyNamed(rapid.IntRange(0, 14).Draw(t, "key")), LeadID: drawLead(t),
		Alike: &checkpoint.Likeness{},
	}
	q.ExternalID = rapid.SampledFrom([]string{"", "crm-1", "crm-2", "k1", "k2", "k3"}).Draw(t, "external")
	got, how := Sought(t, x.d, q)
	alike := q.Alike.State
	want, match := Sought(t, x.m, q)
	some := func(s checkpoint.State) bool { return s.HasLead() || s == checkpoint.InDoubt } // of several, any will do
	if how != match || alike != q.Alike.State && (!some(alike) || !some(q.Alike.State)) {
		t.Fatalf("%+v: found %d, and alike %v, want %d and %v", q, how, alike, match, q.Alike.State)
	}
	if match != checkpoint.Ambiguous {
		same(t, want, got)
	}
}

// same fails unless two entries are equal, except the number of the commit.
func same(t *rapid.T, want, got checkpoint.Entry) {
	t.Helper()
	got.Seq, want.Seq = 0, 0
	if len(got.Content) == 0 {
		got.Content = nil
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("entry (-want +got):\n%s", diff)
	}
}
