package bolt

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"leadferry/checkpoint"
	"leadferry/checkpoint/storetest"
	"leadferry/internal/testsupport/must"
)

// accepted returns an old copy of a checkpoint that a person accepted as incomplete.
func accepted(t *testing.T, prepare func(*Store)) *Store {
	t.Helper()
	path := newPath(t)
	d := opened(t, path, Options{})
	prepare(d)
	before := d.Info()
	must.Do(t, errors.Join(renewed(t, d, "leads of an older copy"), d.Close()))
	d = opened(t, path, Options{AnyPlace: true})
	if i := d.Info(); i.ID == before.ID || !i.Incomplete || len(i.Warnings) != 1 || !strings.Contains(i.Warnings[0], i.Missing) {
		t.Errorf("%+v, before it %s", i, before.ID)
	}
	return d
}

// An old copy may be wrong about keys without a lead: they may have been sent since. What is found out later is right.
func TestWhatAnIncompleteCheckpointMayLack(t *testing.T) {
	refuse := func(d *Store, key string) {
		t.Helper()
		together(t, d, checkpoint.Settle, checkpoint.Entry{Key: key, State: checkpoint.Rejected, Code: 422})
	}
	free := func(d *Store, key string) {
		t.Helper()
		must.Do(t, claim(d, intentOf(key, 1)))
		must.Do(t, resolve(d, checkpoint.Decision{Key: key}))
	}
	d := accepted(t, func(d *Store) {
		refuse(d, "refused before")
		free(d, "not made before")
		refuse(d, "known")
		together(t, d, checkpoint.Settle, createdEntry("known", "lead-1", 1))
		must.Do(t, claim(d, intentOf("doubt before", 1)))
		forget(t, d, "gone")
	})
	refuse(d, "refused")
	free(d, "not made")
	must.Do(t, claim(d, intentOf("doubt", 1)))
	for key, want := range map[string]bool{
		"refused before": true, "not made before": true, "doubt before": true, "never seen": true,
		"known": false, "gone": false, "refused": false, "not made": false, "doubt": false,
	} {
		if e := lookup(t, d, key); mayLack(d, &e) != want {
			t.Errorf("%s: MayLack is %v, want %v", key, !want, want)
		}
	}
}

// Accepting a loss frees the rows that were held because of it, and no others.
func TestAcceptLossFreesWhatWasHeld(t *testing.T) {
	d := accepted(t, func(d *Store) {
		together(t, d, checkpoint.Settle, checkpoint.Entry{Key: "refused", State: checkpoint.Rejected, Code: 422})
	})
	for _, key := range []string{"refused", "new", "decided"} {
		together(t, d, checkpoint.Settle, checkpoint.Entry{Key: key, State: checkpoint.InDoubt, Reason: checkpoint.ReasonIncomplete})
	}
	must.Do(t, resolve(d, checkpoint.Decision{Key: "decided"}))
	must.Do(t, claim(d, intentOf("sent", 1)))
	if freed, err := checkpoint.AcceptLoss(context.Background(), d); freed != 2 || err != nil {
		t.Errorf("%d freed, %v", freed, err)
	}
	path := d.path
	must.Do(t, d.Close())
	d = opened(t, path, Options{})
	if d.Info().Incomplete || len(d.Info().Warnings) != 0 {
		t.Errorf("still incomplete: %q", d.Info().Warnings)
	}
	for key, want := range map[string]checkpoint.State{"refused": checkpoint.Rejected, "new": checkpoint.NotMade, "decided": checkpoint.NotMade, "sent": checkpoint.InDoubt} {
		if e := lookup(t, d, key); e.State != want || mayLack(d, &e) {
			t.Errorf("%s: %v", key, e.State)
		}
	}
}

// inOneChange is how many entries of a list one commit takes.
const inOneChange = 1 << 11

// A long list takes several commits. After a cut no run begins until the list is adopted again; stored entries stay.
func TestLongListThatIsCutOffIsAdoptedAgain(t *testing.T) {
	path := newPath(t)
	d := opened(t, path, Options{})
	var list []checkpoint.Entry
	for i := range 2*inOneChange + 10 {
		list = append(list, checkpoint.Entry{Key: fmt.Sprintf("key-%05d", i), LeadID: fmt.Sprint("lead-", i), ExternalID: fmt.Sprint("crm-", i)})
	}
	slices.Reverse(list)
	times, cut := 0, errors.New("the disk is gone")
	leads := checkpoint.Leads{Words: []string{"list.csv"}, Missing: func() string { return "" }}
	leads.Entries = func(yield func(checkpoint.Entry, error) bool) {
		times++ // the fourth pass stores the entries
		for i, e := range list {
			if times == 4 && i == inOneChange+1 && !yield(e, cut) || !yield(e, nil) {
				return
			}
		}
	}
	if _, err := checkpoint.AdoptList(t.Context(), d, nil, leads); !errors.Is(err, cut) || d.Info().Leads != inOneChange {
		t.Fatalf("%d leads, %v", d.Info().Leads, err)
	}
	d = opened(t, killed(t, path), Options{AnyPlace: true})
	checkRefusal(t, checkpoint.RefuseHalfAdopted(t.Context(), d), checkpoint.ErrHalfAdopted)
	leads.Entries = storetest.LeadsOf(list...).Entries
	if r, err := checkpoint.AdoptList(t.Context(), d, nil, leads); err != nil || r.Known != inOneChange || r.Leads != inOneChange+10 {
		t.Errorf("again: %+v, %v", r, err)
	}
	must.Do(t, errors.Join(checkpoint.RefuseHalfAdopted(t.Context(), d), d.Close()))
	d = opened(t, d.path, Options{AnyPlace: true})
	if i := d.Info(); len(i.Warnings) > 0 || i.Leads != len(list) || i.Incomplete {
		t.Errorf("%+v", i)
	}
	for i, e := range list {
		if i%1000 == 0 || i > len(list)-3 {
			if got, how := storetest.Sought(t, d, checkpoint.Query{Key: "none", LeadID: e.LeadID}); how != checkpoint.ByLeadID || got.Key != e.Key {
				t.Errorf("%s: %+v", e.LeadID, got)
			}
		}
	}
}
