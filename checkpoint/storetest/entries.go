package storetest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"leadferry/checkpoint"
)

// A refused change is refused alone.
func badChangeDoesNotHarmItsNeighbours(t *testing.T, b Backend) {
	d := b.open(t)
	settled(t, d, CreatedEntry("known", "lead-1", 1))
	long := string(make([]byte, checkpoint.MaxKey+1))
	changes := []*checkpoint.Change{
		{Kind: checkpoint.Claim, Entry: IntentOf("known", 1)},
		{Kind: checkpoint.Claim, Entry: IntentOf("", 1)},
		{Kind: checkpoint.Claim, Entry: IntentOf(long, 1)},
		{Kind: checkpoint.Settle, Entry: checkpoint.Entry{Key: "odd"}},
		{Kind: checkpoint.Settle, Entry: checkpoint.Entry{Key: long, State: checkpoint.Created}},
		{Kind: checkpoint.Claim, Entry: IntentOf(long[:checkpoint.MaxKey], 1)},
	}
	if err := d.Commit(t.Context(), changes); err != nil {
		t.Fatal(err)
	}
	for i, want := range []error{
		checkpoint.ErrKnown, checkpoint.ErrKey, checkpoint.ErrKey, checkpoint.ErrState,
		checkpoint.ErrKey, nil,
	} {
		if err := changes[i].Err; !errors.Is(err, want) || checkpoint.IsRefusal(err) != (want != nil) {
			t.Errorf("change %d: %v, want %v", i, err, want)
		}
	}
	if i := d.Info(); i.Leads != 1 || i.InDoubt != 1 {
		t.Errorf("%+v", i)
	}
}

// A claim owns the ExternalID that it will ask for, as long as a lead may have it: two rows never come to one.
func claimOwnsItsExternalID(t *testing.T, b Backend) {
	d := b.open(t)
	asks := func(key, external string) checkpoint.Entry {
		e := IntentOf(key, 1)
		e.WantLink = external
		return e
	}
	check := func(what, key, external string, want error) {
		t.Helper()
		if err := Claim(d, asks(key, external)); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", what, err, want)
		}
	}
	handed := []*checkpoint.Change{
		{Entry: asks("a", "x")}, {Kind: checkpoint.Withdraw, Entry: checkpoint.Entry{Key: "a"}}, {Entry: asks("b", "x")},
	}
	if err := d.Commit(t.Context(), handed); err != nil || handed[2].Err != nil {
		t.Errorf("of one that was withdrawn in the same commit: %v, %v", err, handed[2].Err)
	}
	withdrawn(t, d, "b")
	both := []*checkpoint.Change{{Entry: asks("a", "x")}, {Entry: asks("b", "x")}}
	if err := d.Commit(t.Context(), both); err != nil || both[0].Err != nil ||
		!errors.Is(both[1].Err, checkpoint.ErrLinked) {
		t.Errorf("two in one commit: %v, %v, %v", err, both[0].Err, both[1].Err)
	}
	check("of a claim", "b", "x", checkpoint.ErrLinked)
	check("of its own claim", "a", "x", nil)
	withdrawn(t, d, "a") // the second one
	withdrawn(t, d, "a")
	check("of one that was withdrawn", "b", "x", nil)
	settled(t, d, checkpoint.Entry{Key: "b", State: checkpoint.Rejected, Code: 422})
	check("of one that was refused", "c", "x", nil)
	e := CreatedEntry("c", "lead-c", 1)
	e.ExternalID = "x"
	settled(t, d, e)
	d = d.again(t)
	check("of a lead", "a", "x", checkpoint.ErrLinked)
	check("that is another's key", "a", "c", nil)
	adopted(t, d, checkpoint.AdoptResult{Leads: 1}, checkpoint.Entry{Key: "l", LeadID: "lead-l", ExternalID: "y"})
	check("of a list", "b", "y", checkpoint.ErrLinked)
	check("that equals the key of one who asked for another", "x", "a", nil)
	check("none", "n", "", nil)
}

// An intent without a time has that of its commit: people look for the lead by it.
func claimIsSentWhenItIsCommitted(t *testing.T, b Backend) {
	now := time.UnixMilli(1_770_000_000_000).UTC()
	d := b.openAt(t, func() time.Time { return now })
	claimed(t, d, checkpoint.Entry{Key: "a"})
	if sent := Lookup(t, d, "a").Updated; !sent.Equal(now) {
		t.Errorf("sent %v, as it says, want %v", sent, now)
	}
}

func closedRefusesEverything(t *testing.T, b Backend) {
	d := b.open(t)
	if err := errors.Join(d.Close(), d.Close()); err != nil {
		t.Fatal(err)
	}
	_, settled := Settle(d, CreatedEntry("a", "lead", 1))
	_, counted := checkpoint.Runs(t.Context(), d)
	for what, err := range map[string]error{
		"claim": Claim(d, IntentOf("a", 1)), "settle": settled, "withdraw": Withdraw(d, "a"),
		"look-up": d.Find(t.Context(), make([]checkpoint.Query, 1), make([]checkpoint.Entry, 1),
			make([]checkpoint.Match, 1)), "runs": counted,
		"resolve": Resolve(d, checkpoint.Decision{Key: "a"}),
	} {
		if !errors.Is(err, checkpoint.ErrClosed) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// What is reported is durable: a copy taken then holds it. faults 2, 10
func reportedIsDurable(t *testing.T, b Backend) {
	d := b.open(t)
	claimed(t, d, IntentOf("c", 1), IntentOf("a", 1), IntentOf("b", 1))
	if c := d.killed(t); Lookup(t, c, "c").State != checkpoint.InDoubt {
		t.Error("reported before it was durable")
	}
}

// faults 124, 126: any time comes back as it was, in UTC, and does not decide the
// order.
func oddTimesAreKept(t *testing.T, b Backend) {
	d := b.open(t)
	var last uint64
	for i, at := range []time.Time{
		time.Unix(0, 0), time.Date(1901, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2038, 1, 19, 3, 14, 8, 0, time.UTC),
		time.Date(2200, 6, 1, 0, 0, 0, 999_000_000, time.FixedZone("odd", -12345)),
	} {
		in := IntentOf(fmt.Sprint(i), i)
		in.Updated = at
		claimed(t, d, in)
		got := Lookup(t, d, in.Key)
		if !got.Updated.Equal(at) || got.Updated.Location() != time.UTC || got.Seq <= last {
			t.Errorf("%v came back as %v, with number %d after %d", at, got.Updated, got.Seq, last)
		}
		last = got.Seq
	}
}

func digestsAreKeyed(t *testing.T, b Backend) {
	one, other := b.open(t), b.open(t)
	if one.Digests().Sum([]byte("x")) == other.Digests().Sum([]byte("x")) ||
		SumField(one, "n", "v") == SumField(other, "n", "v") {
		t.Error("digests of two files are equal: they are not keyed")
	}
}

func runsAreKeptInOrder(t *testing.T, b Backend) {
	d := b.open(t)
	later := checkpoint.RunInfo{ID: "b", Command: "import", Started: time.UnixMilli(9).UTC()}
	first := checkpoint.RunInfo{
		ID: "a", Command: "sync", Started: time.UnixMilli(5).UTC(),
		Counts: map[string]int{"updated": 3},
	}
	if err := errors.Join(checkpoint.PutRun(context.Background(), d, first),
		checkpoint.PutRun(context.Background(), d, later)); err != nil {
		t.Fatal(err)
	}
	later.Finished, later.Outcome, later.Counts = time.UnixMilli(7).UTC(), "attention", map[string]int{
		"created": 1,
		"failed":  2,
	}
	if err := errors.Join(checkpoint.PutRun(context.Background(), d, later),
		Claim(d, checkpoint.Entry{Key: "k", Run: "named only"}),
		Claim(d, checkpoint.Entry{Key: "l", Run: "a"})); err != nil {
		t.Fatal(err)
	}
	d = d.again(t)
	got, err := checkpoint.Runs(context.Background(), d)
	if equal(t, "runs", []checkpoint.RunInfo{first, later}, got); err != nil {
		t.Error(err)
	}
	if Lookup(t, d, "k").Run != "named only" || Lookup(t, d, "l").Run != "a" {
		t.Error("entries name other runs")
	}
}

func eachGoesThroughAllInOrderAndMayWrite(t *testing.T, b Backend) {
	d := b.open(t)
	const n = 3*512 + 7
	var claims, outcomes []checkpoint.Entry
	for i := range n {
		k := fmt.Sprintf("%05d", i)
		if i%3 == 0 {
			claims = append(claims, IntentOf(k, i))
		} else {
			outcomes = append(outcomes, CreatedEntry(k, "lead"+k, i))
		}
	}
	claimed(t, d, claims...)
	Together(t, d, checkpoint.Settle, outcomes...)
	for state, want := range map[checkpoint.State]int{
		checkpoint.Unknown: n, checkpoint.InDoubt: (n + 2) / 3,
		checkpoint.Created: n - (n+2)/3, checkpoint.Rejected: 0,
	} {
		got, last := 0, ""
		err := checkpoint.Each(context.Background(), d, checkpoint.Filter{State: state},
			func(e checkpoint.Entry) error {
				if got++; e.Key <= last || (state != checkpoint.Unknown && e.State != state) {
					t.Fatalf("%s (%v) after %s", e.Key, e.State, last)
				}
				if last = e.Key; got == 1 {
					return checkpoint.PutRun(context.Background(), d, checkpoint.RunInfo{ID: "inside"})
				}
				return nil
			})
		if err != nil || got != want {
			t.Errorf("%v: %d of %d, %v", state, got, want, err)
		}
	}
	stop := errors.New("enough")
	if err := checkpoint.Each(context.Background(), d, checkpoint.Filter{State: checkpoint.Unknown},
		func(checkpoint.Entry) error { return stop }); err != stop {
		t.Errorf("got %v", err)
	}
}

// What a ledger keeps of itself: notes, how far it and its runs are, and that leads are missing from it.
func whatIsToldOfTheLedgerIsKept(t *testing.T, b Backend) {
	d, ctx := b.open(t), context.Background()
	ok := func(errs ...error) {
		t.Helper()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
	}
	note := func(want string) {
		t.Helper()
		text, err := checkpoint.NoteOf(ctx, d, "x")
		ok(err)
		equal(t, "note", want, string(text))
	}
	note("")
	ok(checkpoint.PutNote(ctx, d, "x", []byte(`"first"`)), checkpoint.PutNote(ctx, d, "x", []byte(`"second"`)))
	settled(t, d, checkpoint.Entry{Key: "refused", State: checkpoint.Rejected, Code: 422})
	_, knows, err := d.Reached(ctx, "r")
	ok(err, checkpoint.PutRun(ctx, d, checkpoint.RunInfo{ID: "r"}), Claim(d, IntentOf("a", 1)))
	reached, knowsNow, err := d.Reached(ctx, "r")
	ok(err)
	if commits, leads := d.Progress(); knows || !knowsNow || leads != 1 || commits != d.Info().Sequence ||
		reached != commits {
		t.Errorf("knew %v, knows %v, %d leads, commit %d of %d, run at %d", knows, knowsNow, leads, commits,
			d.Info().Sequence, reached)
	}
	id := d.Info().ID
	ok(checkpoint.Lack(ctx, d, "leads of a list"))
	if i := d.Info(); i.ID != id || i.Missing != "leads of a list" || !i.MayLack(&checkpoint.Entry{Key: "new"}) {
		t.Errorf("%+v", i)
	}
	ok(d.Alone(ctx, func(tx checkpoint.Tx) error { return errors.Join(tx.Lack("later leads"), tx.Renew()) }))
	renewed, ends := d.Info().ID, 0
	d.AtEnd(func(string) { ends++ })
	d = d.again(t)
	note(`"second"`)
	refused := Lookup(t, d, "refused")
	if i := d.Info(); ends != 1 || i.ID == id || i.ID != renewed || i.Missing != "later leads" || !i.MayLack(&refused) {
		t.Errorf("ended %d times; %+v", ends, i)
	}
	if _, err := checkpoint.AcceptLoss(ctx, d); err != nil || d.Info().Incomplete || d.again(t).Info().Incomplete {
		t.Errorf("still incomplete: %+v, %v", d.Info(), err)
	}
}
