package storetest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"leadferry/checkpoint"
	"leadferry/internal/rowkey"
	"leadferry/internal/testsupport/must"
)

func badChangeDoesNotHarmItsNeighbours(t *testing.T, b Backend) {
	d := b.open(t)
	settled(t, d, CreatedEntry("known", "lead-1", 1))
	long := string(make([]byte, rowkey.Longest+1))
	changes := []*checkpoint.Change{
		{Kind: checkpoint.Claim, Entry: IntentOf("known", 1)},
		{Kind: checkpoint.Claim, Entry: IntentOf("", 1)},
		{Kind: checkpoint.Claim, Entry: IntentOf(long, 1)},
		{Kind: checkpoint.Settle, Entry: checkpoint.Entry{Key: "odd"}},
		{Kind: checkpoint.Settle, Entry: checkpoint.Entry{Key: long, State: checkpoint.Created}},
		{Kind: checkpoint.Claim, Entry: IntentOf(long[:rowkey.Longest], 1)},
	}
	must.Do(t, d.Commit(t.Context(), changes))
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

func closedRefusesEverything(t *testing.T, b Backend) {
	d := b.open(t)
	must.Do(t, errors.Join(d.Close(), d.Close()))
	_, claimed := Change(d, checkpoint.Claim, IntentOf("a", 1))
	_, settled := Change(d, checkpoint.Settle, CreatedEntry("a", "lead", 1))
	_, withdrawn := Change(d, checkpoint.Withdraw, IntentOf("a", 1))
	_, counted := checkpoint.Runs(t.Context(), d)
	for what, err := range map[string]error{
		"claim": claimed, "settle": settled, "withdraw": withdrawn,
		"look-up": d.Find(t.Context(), []checkpoint.Query{{Entry: new(checkpoint.Entry)}}), "runs": counted,
		"resolve": Resolve(d, checkpoint.Decision{Key: "a"}),
	} {
		if !errors.Is(err, checkpoint.ErrClosed) {
			t.Errorf("%s: %v", what, err)
		}
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
		checkpoint.Unknown: n, checkpoint.InDoubt: len(claims), checkpoint.Created: len(outcomes), checkpoint.Rejected: 0,
	} {
		got, last := 0, ""
		err := checkpoint.Each(t.Context(), d, checkpoint.Filter{State: state}, func(e checkpoint.Entry) error {
			if got++; e.Key <= last || (state != checkpoint.Unknown && e.State != state) {
				t.Fatalf("%s (%v) after %s", e.Key, e.State, last)
			}
			if last = e.Key; got == 1 {
				return checkpoint.PutRun(t.Context(), d, checkpoint.RunInfo{ID: "inside"})
			}
			return nil
		})
		if err != nil || got != want {
			t.Errorf("%v: %d of %d, %v", state, got, want, err)
		}
	}
	stop := errors.New("enough")
	err := checkpoint.Each(t.Context(), d, checkpoint.Filter{}, func(checkpoint.Entry) error { return stop })
	if err != stop {
		t.Errorf("got %v", err)
	}
}

// A ledger keeps runs, notes, columns, the last commits of itself and of its runs, and that leads are missing from it.
func whatALedgerKnowsOfItselfIsKept(t *testing.T, b Backend) {
	d, ctx := b.open(t), context.Background()
	if x := []byte("x"); d.Digests().Sum(x) == b.open(t).Digests().Sum(x) {
		t.Error("digests of two ledgers are equal: they are not keyed")
	}
	ok := func(errs ...error) {
		t.Helper()
		must.Do(t, errors.Join(errs...))
	}
	ok(checkpoint.PutNote(ctx, d, "x", []byte(`"first"`)), checkpoint.PutNote(ctx, d, "x", []byte(`"second"`)))
	settled(t, d, checkpoint.Entry{Key: "refused", State: checkpoint.Rejected, Code: 422, Run: "named only"})
	_, knows, err := d.Reached(ctx, "r")
	later := checkpoint.RunInfo{ID: "r", Command: "import", Started: time.UnixMilli(9).UTC()}
	first := checkpoint.RunInfo{ID: "s", Started: time.UnixMilli(5).UTC(), Counts: map[string]int{"updated": 3}}
	ok(err, checkpoint.PutRun(ctx, d, later), checkpoint.PutRun(ctx, d, first))
	later.Finished, later.Outcome = time.UnixMilli(7).UTC(), "attention"
	shape := &checkpoint.Shape{Columns: []string{"id", "name"}, Key: "{id}"}
	claim := &checkpoint.Change{Entry: IntentOf("a", 1), Shape: shape}
	ok(checkpoint.PutRun(ctx, d, later), d.Commit(ctx, []*checkpoint.Change{claim}), claim.Err)
	reached, knowsNow, err := d.Reached(ctx, "r")
	ok(err)
	last := d.Info().Sequence
	if commits, leads, freed := d.Progress(); knows || !knowsNow || leads != 1 || freed != 0 || commits != last ||
		reached != commits {
		t.Errorf("knew %v, knows %v, %d leads, commit %d of %d, run at %d", knows, knowsNow, leads, commits, last, reached)
	}
	id := d.Info().ID
	ok(d.Alone(ctx, func(tx checkpoint.Tx) error { return tx.Lack("leads of a list") }))
	if i := d.Info(); i.ID != id || i.Missing != "leads of a list" || !i.MayLack(&checkpoint.Entry{Key: "new"}) {
		t.Errorf("%+v", i)
	}
	ok(d.Alone(ctx, func(tx checkpoint.Tx) error { return errors.Join(tx.Lack("later leads"), tx.Renew()) }))
	renewed, ws := d.Info().ID, &checkpoint.Witnesses{Book: t.TempDir()}
	witness, err := ws.Begin(d, checkpoint.Witness{}, "")
	d.Attest(witness)
	ok(err, checkpoint.PutNote(ctx, d, "y", []byte(`"last"`)))
	noted := ws.All()[0]
	last = d.Info().Sequence
	d = d.again(t)
	runs, err := checkpoint.Runs(ctx, d)
	must.Same(t, []checkpoint.RunInfo{first, later}, runs, "runs")
	text, failed := checkpoint.NoteOf(ctx, d, "x")
	must.Same(t, `"second"`, string(text), "note")
	known, _, unread := checkpoint.Noted(ctx, d, *shape)
	ok(err, failed, unread)
	refused := Lookup(t, d, "refused")
	if i := d.Info(); !noted.Open || noted.Commits != last || ws.All()[0].Open || i.ID == id || i.ID != renewed ||
		i.Missing != "later leads" || !i.MayLack(&refused) || refused.Run != "named only" || !known {
		t.Errorf("%+v of %d commits, then %+v; %+v; columns known: %v; %+v", noted, last, ws.All(), i, known, refused)
	}
	if _, err := checkpoint.AcceptLoss(ctx, d); err != nil || d.Info().Incomplete || d.again(t).Info().Incomplete {
		t.Errorf("still incomplete: %+v, %v", d.Info(), err)
	}
}

// Fields that updates set are kept, and any time comes back in UTC. Times do not order entries. faults 124, 126
func whatUpdatesLeaveIsKept(t *testing.T, b Backend) {
	at := time.UnixMilli(1_770_000_000_789).UTC()
	d := b.open(t)
	var last uint64
	for i, change := range []func(*checkpoint.Entry){
		func(e *checkpoint.Entry) { e.Unsettled, e.Sought, e.Updated = "run", "onHold", time.Unix(0, 0) },
		func(e *checkpoint.Entry) { e.Refused, e.Updated = checkpoint.Digest{7}, at.AddDate(-125, 0, 0) },
		func(e *checkpoint.Entry) {
			e.Synced, e.Updated = true, at.AddDate(174, 0, 0).In(time.FixedZone("odd", -12345))
		},
		func(e *checkpoint.Entry) { e.Confirmed = at },
		func(e *checkpoint.Entry) {
			e.Seen = checkpoint.Sight{At: at, Status: "a status of tomorrow", Organization: "org-9"}
		},
		func(e *checkpoint.Entry) { e.Seen = checkpoint.Sight{At: at, Against: "another one"} },
	} {
		e := CreatedEntry(fmt.Sprint("k", i), fmt.Sprint("lead.", i), 3)
		change(&e)
		stored := settled(t, d, e)
		must.Same(t, stored, Lookup(t, d, e.Key), e.Key)
		if !stored.Updated.Equal(e.Updated) || stored.Updated.Location() != time.UTC || stored.Seq <= last {
			t.Errorf("%v came back as %v, with number %d after %d", e.Updated, stored.Updated, stored.Seq, last)
		}
		last = stored.Seq
	}
}

// A list that is too long for one commit is adopted as a whole, and the same list again changes nothing.
func adoptTakesALongList(t *testing.T, b Backend) {
	d := b.open(t)
	var list []checkpoint.Entry
	for i := range 2100 {
		list = append(list, checkpoint.Entry{Key: fmt.Sprint("k", i), LeadID: fmt.Sprint("lead.", i)})
	}
	adopted(t, d, checkpoint.AdoptResult{Leads: len(list)}, list...)
	adopted(t, d, checkpoint.AdoptResult{Known: len(list)}, list...)
	for _, want := range []checkpoint.Entry{list[0], list[len(list)-1]} {
		if got, how := Sought(t, d, checkpoint.Query{Key: "none", LeadID: want.LeadID}); how != checkpoint.ByLeadID ||
			got.Key != want.Key || got.State != checkpoint.Created {
			t.Errorf("%s: found %d, %+v", want.LeadID, how, got)
		}
	}
}
