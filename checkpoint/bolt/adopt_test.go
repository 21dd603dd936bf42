package bolt

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"leadferry/checkpoint"
)

// A long list takes several commits. One that was cut off is whole once it is adopted again,
// which a warning asks for; everything that stands already stays.
func TestLongListThatIsCutOffIsAdoptedAgain(t *testing.T) {
	path := newPath(t)
	d := opened(t, path, Options{})
	wrong := []checkpoint.Entry{{Key: "key-00000", LeadID: "lead-1"}, {Key: "key-00001", LeadID: "lead-0"}}
	if _, err := d.Adopt(t.Context(), checkpoint.ListOf(wrong...)); err != nil {
		t.Fatal(err)
	}
	var list []checkpoint.Entry
	for i := range 2*inOneCommit + 10 {
		list = append(list, checkpoint.Entry{Key: fmt.Sprintf("key-%05d", i), LeadID: fmt.Sprint("lead-", i), ExternalID: fmt.Sprint("crm-", i)})
	}
	slices.Reverse(list)
	times, cut := 0, errors.New("the disk is gone")
	_, err := d.Adopt(t.Context(), func(yield func(checkpoint.Entry, error) bool) {
		times++
		for i, e := range list {
			if times == 3 && i == inOneCommit+1 && !yield(e, cut) || !yield(e, nil) {
				return
			}
		}
	})
	if !errors.Is(err, cut) || !d.Info().Incomplete {
		t.Fatalf("%+v, %v", d.Info(), err)
	}
	d = opened(t, killed(t, path), Options{})
	info := d.Info()
	if len(info.Warnings) != 1 || !strings.Contains(info.Warnings[0], "adopt") || info.Leads != inOneCommit+2 {
		t.Errorf("%d leads, %q", info.Leads, info.Warnings)
	}
	if rest, _ := sought(t, d, checkpoint.Query{Key: list[len(list)-100].Key}); rest.State != checkpoint.Unknown || !info.MayLack(&rest) {
		t.Error("a row of the rest of the list would be sent")
	}
	repairedKeepsWhatWasCutOff(t, path, list)
	if r, err := d.Adopt(t.Context(), checkpoint.ListOf(list...)); err != nil || r.Known != inOneCommit || r.Leads != inOneCommit+10 {
		t.Errorf("again: %+v, %v", r, err)
	}
	if d.Info().Incomplete {
		t.Error("incomplete, though the list is there")
	}
	path = d.path
	d.Close()
	d = opened(t, path, Options{})
	if w := d.Info().Warnings; len(w) > 0 || d.Info().Leads != len(list) {
		t.Errorf("%d leads, %q", d.Info().Leads, w)
	}
	for i, e := range list {
		if i%1000 == 0 || i > len(list)-3 {
			if got, how := sought(t, d, checkpoint.Query{Key: "none", LeadID: e.LeadID}); how != checkpoint.ByLeadID || got.Key != e.Key {
				t.Errorf("%s: %+v", e.LeadID, got)
			}
		}
	}
}

// What a repair makes of a file whose adoption was cut off waits for the rest of the list, too.
func repairedKeepsWhatWasCutOff(t *testing.T, path string, list []checkpoint.Entry) {
	t.Helper()
	made := newPath(t)
	r, err := Repair(killed(t, path), made, target(), nil, false, Options{})
	if err != nil || r.Lost || !r.Incomplete() || !strings.Contains(r.Text(), "rest of a list") {
		t.Errorf("repaired: %+v, %v", r, err)
	}
	d := opened(t, made, Options{})
	rest, _ := sought(t, d, checkpoint.Query{Key: list[len(list)-100].Key})
	if info := d.Info(); !info.MayLack(&rest) {
		t.Error("repaired: a row of the rest of the list would be sent")
	}
	if _, err := d.Adopt(t.Context(), checkpoint.ListOf(list...)); err != nil || d.Info().Incomplete || d.Info().Leads != len(list) {
		t.Errorf("repaired and adopted: %+v, %v", d.Info(), err)
	}
	d.Close()
	if r, err = Repair(made, newPath(t), target(), nil, true, Options{}); err != nil || r.Incomplete() {
		t.Errorf("repaired once more: %+v, %v", r, err)
	}
}

// A list may be longer than the memory: little is kept of a lead, beside what one commit holds.
func TestAdoptHoldsLittleOfALead(t *testing.T) {
	const few, many = 3 * inOneCommit, 10 * inOneCommit
	least := heldWhileAdopting(t, few)
	if each := (heldWhileAdopting(t, many) - least) / (many - few); each > 64 {
		t.Errorf("%d bytes a lead", each)
	}
}

// heldWhileAdopting is the most memory that is in use at the end of each way through a list.
func heldWhileAdopting(t *testing.T, leads int) (most int) {
	t.Helper()
	live := func() int {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC() // pools let go of their pages
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc)
	}
	d := opened(t, newPath(t), Options{})
	d.bolt.NoSync = true // the disk is none of it
	before := live()
	r, err := d.Adopt(t.Context(), func(yield func(checkpoint.Entry, error) bool) {
		for i := range leads {
			if i == leads-1 {
				most = max(most, live()-before)
			}
			if !yield(checkpoint.Entry{Key: fmt.Sprintf("key-%09d", i), LeadID: fmt.Sprintf("lead-%09d", i), ExternalID: fmt.Sprint("crm-", i)}, nil) {
				return
			}
		}
	})
	if err != nil || r.Leads != leads {
		t.Fatalf("%+v, %v", r, err)
	}
	return most
}
