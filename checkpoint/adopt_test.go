package checkpoint_test

import (
	"errors"
	"strings"
	"testing"

	"leadferry/checkpoint"
	"leadferry/checkpoint/storetest"
)

func leadsOf(file string, keys ...string) checkpoint.Leads {
	var all []checkpoint.Entry
	for _, key := range keys {
		all = append(all, checkpoint.Entry{Key: key, LeadID: "lead-" + key})
	}
	leads := storetest.LeadsOf(all...)
	leads.Files = []string{file}
	return leads
}

func adopt(t *testing.T, s checkpoint.Store, ws *checkpoint.Witnesses, leads checkpoint.Leads) {
	t.Helper()
	if _, err := checkpoint.AdoptList(t.Context(), s, ws, leads); err != nil {
		t.Fatal(err)
	}
}

func halfAdopted(t *testing.T, s checkpoint.Store) bool {
	t.Helper()
	err := checkpoint.RefuseHalfAdopted(t.Context(), s)
	if err != nil {
		refused(t, err, checkpoint.ErrHalfAdopted, "checkpoint adopt", "--accept-loss")
	}
	return err != nil
}

// Wherever an adoption is cut off, no run begins before the list was taken over, and what a lost ledger knew besides is missing.
func TestAdoptionThatIsCutOff(t *testing.T) {
	lost := checkpoint.Witness{Ledger: "lost", Target: here, Place: "lost.db", Leads: 9, Commits: 4}
	list := leadsOf("a.csv", "a", "b")
	list.Missing = func() string { return "rows of a.csv" }
	for cut := 0; ; cut++ {
		m, ws := empty(t), told(t, lost)
		_, err := checkpoint.AdoptList(t.Context(), &failing{m, cut}, ws, list)
		if err == nil {
			if cut < 5 {
				t.Errorf("only %d steps can fail", cut)
			}
			break
		}
		if half := halfAdopted(t, m); half != (cut > 0) {
			t.Errorf("after %d steps: half adopted %v", cut, half)
		}
		adopt(t, m, ws, list)
		if i := m.Info(); halfAdopted(t, m) || i.Leads != 2 || !i.Incomplete {
			t.Errorf("cut off after %d steps and taken over again: %+v", cut, i)
		}
		if err := judged(t, m, ws).Refuse(""); err != nil {
			t.Errorf("after %d steps: %v", cut, err)
		}
	}
}

// Only a list that holds all of the one that was cut off makes up for it.
func TestWhichListMakesUpForOneThatIsCutOff(t *testing.T) {
	cutOff := func(t *testing.T, s checkpoint.Store, steps int, l checkpoint.Leads) {
		t.Helper()
		if _, err := checkpoint.AdoptList(t.Context(), &failing{s, steps}, nil, l); !errors.Is(err, errCut) {
			t.Fatal(err)
		}
	}
	a, b, none := leadsOf("a.csv", "a1", "a2"), leadsOf("b.csv", "b"), leadsOf("a.csv")
	both := leadsOf("a.csv", "a2", "b", "a1")
	both.Files = append(both.Files, "b.csv")
	unread := a
	unread.Choose = func() error { panic("killed") }
	for name, test := range map[string]struct {
		cutOff func(t *testing.T, m checkpoint.Store)
		then   []checkpoint.Leads
		half   bool
	}{
		"the same":                {func(t *testing.T, m checkpoint.Store) { cutOff(t, m, 3, a) }, []checkpoint.Leads{a}, false},
		"under another name":      {func(t *testing.T, m checkpoint.Store) { cutOff(t, m, 3, a) }, []checkpoint.Leads{leadsOf("c.csv", "a2", "a1")}, false},
		"one that has it":         {func(t *testing.T, m checkpoint.Store) { cutOff(t, m, 3, a) }, []checkpoint.Leads{both}, false},
		"another":                 {func(t *testing.T, m checkpoint.Store) { cutOff(t, m, 3, a) }, []checkpoint.Leads{b}, true},
		"less of it":              {func(t *testing.T, m checkpoint.Store) { cutOff(t, m, 3, a) }, []checkpoint.Leads{none}, true},
		"another, then the same":  {func(t *testing.T, m checkpoint.Store) { cutOff(t, m, 3, a) }, []checkpoint.Leads{b, a}, false},
		"two, and then the one":   {func(t *testing.T, m checkpoint.Store) { cutOff(t, m, 3, a); cutOff(t, m, 2, b) }, []checkpoint.Leads{a}, true},
		"two, and then both":      {func(t *testing.T, m checkpoint.Store) { cutOff(t, m, 3, a); cutOff(t, m, 2, b) }, []checkpoint.Leads{both}, false},
		"two, one of them unread": {func(t *testing.T, m checkpoint.Store) { cutOff(t, m, 1, a); cutOff(t, m, 2, b) }, []checkpoint.Leads{a}, true},
		"killed while it was read": {func(t *testing.T, m checkpoint.Store) {
			defer func() { _ = recover() }()
			adopt(t, m, nil, unread)
		}, []checkpoint.Leads{b}, true},
		"killed, then the same": {func(t *testing.T, m checkpoint.Store) {
			defer func() { _ = recover() }()
			adopt(t, m, nil, unread)
		}, []checkpoint.Leads{a}, false},
	} {
		t.Run(name, func(t *testing.T) {
			m := empty(t)
			if test.cutOff(t, m); !halfAdopted(t, m) {
				t.Fatal("not refused")
			}
			for _, l := range test.then {
				adopt(t, m, nil, l)
			}
			if half := halfAdopted(t, m); half != test.half {
				t.Errorf("half adopted: %v", half)
			}
		})
	}
}

// A list that is refused leaves the ledger as it was; one that fails while it is taken over may be there by half.
func TestListThatIsRefused(t *testing.T) {
	unreadable := leadsOf("a.csv", "a")
	unreadable.Choose = func() error { return errCut }
	torn := leadsOf("a.csv", "a", "b")
	torn.Entries = func(yield func(checkpoint.Entry, error) bool) { yield(checkpoint.Entry{}, errCut) }
	twice := leadsOf("a.csv", "a", "a")
	changes := leadsOf("a.csv", "a", "b")
	times, entries := 0, changes.Entries
	changes.Entries = func(yield func(checkpoint.Entry, error) bool) {
		if times++; times > 1 {
			yield(checkpoint.Entry{}, errCut)
			return
		}
		entries(yield)
	}
	for name, test := range map[string]struct {
		leads checkpoint.Leads
		half  bool
	}{"unreadable": {unreadable, false}, "torn": {torn, false}, "twice": {twice, false}, "changes": {changes, true}} {
		m := empty(t)
		_, err := checkpoint.AdoptList(t.Context(), m, nil, test.leads)
		if err == nil || halfAdopted(t, m) != test.half || m.Info().Leads != 0 {
			t.Errorf("%s: %v, half adopted %v", name, err, !test.half)
		}
	}
}

// What witnesses know more than a list makes the ledger that it fills incomplete, and theirs are its ancestors then.
func TestListThatTellsLessThanWitnesses(t *testing.T) {
	of := func(leads int, open bool, target checkpoint.Target) checkpoint.Witness {
		return checkpoint.Witness{Ledger: "lost", Target: target, Place: "lost.db", Leads: leads, Open: open, Commits: 4}
	}
	there := here
	there.TrunkID = "other"
	for name, test := range map[string]struct {
		before     []string
		from       []string
		witness    checkpoint.Witness
		incomplete bool
		asked      bool
	}{
		"as many":             {witness: of(2, false, here)},
		"more":                {witness: of(3, false, here), incomplete: true},
		"its run did not end": {witness: of(1, true, here), incomplete: true},
		"another trunk":       {witness: of(3, true, there)},
		"it knew some before": {before: []string{"z"}, from: []string{"lost"}, witness: of(3, false, here), incomplete: true},
		"as many as it lists": {before: []string{"z"}, from: []string{"lost"}, witness: of(2, false, here)},
		"a list of others":    {before: []string{"z"}, witness: of(2, false, here), asked: true},
	} {
		t.Run(name, func(t *testing.T) {
			m, ws := ledger(t, test.before...), told(t, test.witness)
			leads := leadsOf("a.csv", "a", "b")
			leads.From = test.from
			adopt(t, m, ws, leads)
			i, err := m.Info(), judged(t, m, ws).Refuse("")
			if i.Incomplete != test.incomplete || (err != nil) != test.asked {
				t.Errorf("incomplete %v, refused: %v", i.Incomplete, err)
			}
			if test.incomplete && !strings.Contains(i.Missing, "lost.db") {
				t.Error(i.Missing)
			}
		})
	}
}
