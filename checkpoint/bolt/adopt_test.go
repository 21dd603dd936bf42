package bolt

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"leadferry/checkpoint"
	"leadferry/checkpoint/storetest"
)

// inOneChange is how many entries of a list one commit takes.
const inOneChange = 1 << 11

// A long list takes several commits. One that was cut off is whole once it is adopted again,
// and no run begins before; everything that stands already stays.
func TestLongListThatIsCutOffIsAdoptedAgain(t *testing.T) {
	path := newPath(t)
	d := opened(t, path, Options{})
	wrong := []checkpoint.Entry{{Key: "key-00000", LeadID: "lead-1"}, {Key: "key-00001", LeadID: "lead-0"}}
	if _, err := storetest.Adopt(d, wrong...); err != nil {
		t.Fatal(err)
	}
	var list []checkpoint.Entry
	for i := range 2*inOneChange + 10 {
		list = append(list, checkpoint.Entry{Key: fmt.Sprintf("key-%05d", i), LeadID: fmt.Sprint("lead-", i), ExternalID: fmt.Sprint("crm-", i)})
	}
	slices.Reverse(list)
	times, cut := 0, errors.New("the disk is gone")
	leads := checkpoint.Leads{Files: []string{"list.csv"}, Choose: func() error { return nil }, Missing: func() string { return "" }}
	leads.Entries = func(yield func(checkpoint.Entry, error) bool) {
		times++ // read, judged, corrected, taken over
		for i, e := range list {
			if times == 4 && i == inOneChange+1 && !yield(e, cut) || !yield(e, nil) {
				return
			}
		}
	}
	if _, err := checkpoint.AdoptList(t.Context(), d, nil, leads); !errors.Is(err, cut) || d.Info().Leads != inOneChange+2 {
		t.Fatalf("%d leads, %v", d.Info().Leads, err)
	}
	d = opened(t, killed(t, path), Options{AnyPlace: true})
	checkRefusal(t, checkpoint.RefuseHalfAdopted(t.Context(), d), checkpoint.ErrHalfAdopted)
	leads.Entries = storetest.LeadsOf(list...).Entries
	if r, err := checkpoint.AdoptList(t.Context(), d, nil, leads); err != nil || r.Known != inOneChange || r.Leads != inOneChange+10 {
		t.Errorf("again: %+v, %v", r, err)
	}
	if err := errors.Join(checkpoint.RefuseHalfAdopted(t.Context(), d), d.Close()); err != nil {
		t.Error(err)
	}
	d = opened(t, d.path, Options{AnyPlace: true})
	if i := d.Info(); len(i.Warnings) > 0 || i.Leads != len(list) || i.Incomplete {
		t.Errorf("%+v", i)
	}
	for i, e := range list {
		if i%1000 == 0 || i > len(list)-3 {
			if got, how := sought(t, d, checkpoint.Query{Key: "none", LeadID: e.LeadID}); how != checkpoint.ByLeadID || got.Key != e.Key {
				t.Errorf("%s: %+v", e.LeadID, got)
			}
		}
	}
}
