package checkpoint_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"leadferry/checkpoint"
	"leadferry/checkpoint/storetest"
	"leadferry/internal/testsupport/must"
)

func leadsOf(file string, keys ...string) checkpoint.Leads {
	var all []checkpoint.Entry
	for _, key := range keys {
		all = append(all, checkpoint.Entry{Key: key, LeadID: "lead-" + key})
	}
	leads := storetest.LeadsOf(all...)
	leads.Words = []string{"--namespace=dealers", file}
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
		wantRefusal(t, err, checkpoint.ErrHalfAdopted, "--namespace=dealers", "--accept-loss --checkpoint")
	}
	return err != nil
}

// Another process may adopt into the same database while a person is asked whether the run may begin.
func TestNoRunBeginsIfAnAdoptionWasCutOffMeanwhile(t *testing.T) {
	l := checkpoint.NewLedger(emptyLedger(t), checkpoint.Gathering{})
	defer l.Close()
	v, err := checkpoint.Judge(t.Context(), l, nil, true, nil)
	must.Do(t, err)
	cut := &checkpoint.Lineage{Adopting: &checkpoint.Adopting{Words: leadsOf("a.csv").Words}}
	must.Do(t, checkpoint.PutNote(t.Context(), l, checkpoint.LineageNote, checkpoint.Encode(cut)))
	err = v.Begin(t.Context(), l, checkpoint.Witness{Run: "r"}, "")
	wantRefusal(t, err, checkpoint.ErrHalfAdopted, "--namespace=dealers")
}

// Wherever an adoption is cut off, no run begins until the list is adopted. The ledger is incomplete then, because the
// list does not name all leads of a lost ledger.
func TestNoRunBeginsAfterACutOffAdoption(t *testing.T) {
	lost := checkpoint.Witness{Ledger: "lost", Target: here, Place: "lost.db", Leads: 9, Commits: 4}
	list := leadsOf("a.csv", "a", "b")
	list.Missing = func() string { return "rows of a.csv" }
	for cut := 0; ; cut++ {
		m, ws := emptyLedger(t), bookOf(t, lost)
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

// After a cut-off adoption only a list with all rows of the first list is accepted.
func TestCutOffAdoptionNeedsAListWithAllItsRows(t *testing.T) {
	a, b, both := leadsOf("a.csv", "a1", "a2"), leadsOf("b.csv", "b"), leadsOf("a.csv", "a2", "b", "a1")
	unread := a
	unread.Entries = func(func(checkpoint.Entry, error) bool) { panic("killed") }
	whileRead := func(t *testing.T, m checkpoint.Store) {
		defer func() { _ = recover() }()
		adopt(t, m, nil, unread)
	}
	later := func(t *testing.T, m checkpoint.Store) {
		if _, err := checkpoint.AdoptList(t.Context(), &failing{m, 3}, nil, a); !errors.Is(err, errCut) {
			t.Fatal(err)
		}
	}
	for name, test := range map[string]struct {
		cutOff func(*testing.T, checkpoint.Store)
		then   checkpoint.Leads
		taken  bool
	}{
		"the same":                 {later, a, true},
		"under another name":       {later, leadsOf("c.csv", "a2", "a1"), true},
		"one that has it":          {later, both, true},
		"another":                  {later, b, false},
		"less of it":               {later, leadsOf("a.csv"), false},
		"killed while it was read": {whileRead, b, false},
		"killed, then the same":    {whileRead, a, true},
	} {
		t.Run(name, func(t *testing.T) {
			m := emptyLedger(t)
			if test.cutOff(t, m); !halfAdopted(t, m) {
				t.Fatal("not refused")
			}
			_, err := checkpoint.AdoptList(t.Context(), m, nil, test.then)
			if half := halfAdopted(t, m); half == test.taken || (err == nil) != test.taken {
				t.Errorf("half adopted: %v, %v", half, err)
			}
			if _, err := checkpoint.AcceptLoss(t.Context(), m); err != nil || halfAdopted(t, m) {
				t.Errorf("given up: half adopted still, %v", err)
			}
		})
	}
}

// A refused list leaves the ledger as it was. A list that fails while it is written leaves the ledger half adopted.
func TestRefusedListAddsNoLead(t *testing.T) {
	torn := leadsOf("a.csv", "a", "b")
	torn.Entries = func(yield func(checkpoint.Entry, error) bool) { yield(checkpoint.Entry{}, errCut) }
	twice := storetest.LeadsOf(checkpoint.Entry{Key: "a", LeadID: "x"}, checkpoint.Entry{Key: "b", LeadID: "x"})
	changes := leadsOf("a.csv", "a", "b")
	times, entries := 0, changes.Entries
	changes.Entries = func(yield func(checkpoint.Entry, error) bool) {
		if times++; times > 3 {
			yield(checkpoint.Entry{}, errCut)
			return
		}
		entries(yield)
	}
	for name, list := range map[string]checkpoint.Leads{"torn": torn, "twice": twice, "changes": changes} {
		m := emptyLedger(t)
		killed := &checkpoint.Lineage{Adopting: &checkpoint.Adopting{Words: list.Words}} // while the list was read
		must.Do(t, checkpoint.PutNote(t.Context(), m, checkpoint.LineageNote, checkpoint.Encode(killed)))
		_, err := checkpoint.AdoptList(t.Context(), m, nil, list)
		if half := halfAdopted(t, m); err == nil || half != (name == "changes") || m.Info().Leads != 0 {
			t.Errorf("%s: %v, half adopted %v", name, err, half)
		}
	}
}

// If witnesses know of more leads than the list, the ledger becomes incomplete, and their ledgers its ancestors.
func TestAdoptingFewerLeadsThanWitnessesKnowIsIncomplete(t *testing.T) {
	of := func(leads int, open bool, target checkpoint.Target) checkpoint.Witness {
		return checkpoint.Witness{Ledger: "lost", Target: target, Place: "lost.db", Leads: leads, Open: open, Commits: 4}
	}
	there := here
	there.TrunkID = "other"
	lacks, freed := of(2, false, here), of(3, false, here)
	lacks.Lacks, freed.Freed = true, 1
	younger := of(2, false, here)
	younger.Ledger, younger.Ancestors = "younger", []checkpoint.Ancestor{{ID: "lost", Commits: 4}}
	empty := younger
	empty.Leads, empty.Lacks = 0, true
	for name, test := range map[string]struct {
		before     []string
		from       []checkpoint.Witness
		witness    checkpoint.Witness
		incomplete bool
		asked      bool
	}{
		"as many":                {witness: of(2, false, here)},
		"more":                   {witness: of(3, false, here), incomplete: true},
		"its run did not end":    {witness: of(1, true, here), incomplete: true},
		"it lacked leads":        {witness: lacks, incomplete: true},
		"freed, an export":       {witness: freed},
		"by hand":                {witness: of(2, false, here), incomplete: true},
		"a younger one has it":   {from: []checkpoint.Witness{of(2, false, here)}, witness: younger},
		"a younger one is empty": {from: []checkpoint.Witness{of(3, true, here)}, witness: empty, incomplete: true},
		"freed, results":         {from: []checkpoint.Witness{of(0, false, there)}, witness: freed, incomplete: true},
		"another trunk":          {witness: of(3, true, there)},
		"it knew some before":    {before: []string{"z"}, from: []checkpoint.Witness{of(0, false, here)}, witness: of(3, false, here), incomplete: true},
		"as many as it lists":    {before: []string{"z"}, from: []checkpoint.Witness{of(0, false, here)}, witness: of(2, false, here)},
		"what it knew itself": {
			before: []string{"a", "b"}, from: []checkpoint.Witness{of(0, false, here)}, witness: of(2, false, here), incomplete: true,
		},
		"a list of others":   {before: []string{"z"}, witness: of(2, false, here), asked: true},
		"nobody knows whose": {from: []checkpoint.Witness{{Source: "lost.db", Err: errCut}}, witness: of(0, false, there), incomplete: true},
		"results were moved": {from: []checkpoint.Witness{of(1, true, here)}, witness: of(0, false, there), incomplete: true},
	} {
		t.Run(name, func(t *testing.T) {
			m, ws := ledger(t, test.before...), bookOf(t, test.witness)
			leads := leadsOf("a.csv", "a", "b")
			leads.From, leads.ByHand = test.from, name == "by hand"
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

// A person said that other leads are meant than those of a lost ledger. Results of that ledger take this back.
func TestAdoptedResultsCountAlsoIfTheirLedgerWasAnswered(t *testing.T) {
	lost := checkpoint.Witness{Ledger: "lost", Target: here, Place: "lost.db", Leads: 3, Commits: 4}
	m, ws := ledger(t, "z"), bookOf(t, lost)
	lineage := checkpoint.Lineage{Answered: []string{"lost"}}
	must.Do(t, checkpoint.PutNote(t.Context(), m, checkpoint.LineageNote, checkpoint.Encode(lineage)))
	leads := leadsOf("a.csv", "a", "b")
	leads.From = []checkpoint.Witness{lost}
	adopt(t, m, ws, leads)
	if i := m.Info(); !i.Incomplete {
		t.Error("the third lead is not missed")
	}
}

// A sync may find a lead under another key than the key that made it. Rows that made a lead win over rows that found
// it, in any order. Without the row that made it, the ledger is incomplete, so the key cannot make the lead again.
func TestAdoptPrefersRowsThatMadeALeadToRowsThatFoundIt(t *testing.T) {
	found := func(key, lead string) checkpoint.Entry {
		return checkpoint.Entry{Key: key, LeadID: lead, State: checkpoint.Created, Reason: checkpoint.FoundLead}
	}
	made := func(key, lead string) checkpoint.Entry { return checkpoint.Entry{Key: key, LeadID: lead} }
	for name, test := range map[string]struct {
		list       []checkpoint.Entry
		want       string
		incomplete bool
	}{
		"before":       {[]checkpoint.Entry{found("A1", "x"), found("A2", "y"), made("1", "x"), made("2", "y")}, "1 2", false},
		"behind":       {[]checkpoint.Entry{made("1", "x"), made("2", "y"), found("A1", "x"), found("2", "x")}, "1 2", false},
		"the same key": {[]checkpoint.Entry{made("1", "x"), found("1", "x"), made("2", "y")}, "1 2", false},
		"alone":        {[]checkpoint.Entry{found("A1", "x"), found("A2", "y"), found("B2", "y")}, "A1 A2", true},
		"one alone":    {[]checkpoint.Entry{made("1", "x"), found("A1", "x"), found("A2", "y")}, "1 A2", true},
	} {
		lost := checkpoint.Witness{Ledger: "lost", Target: here, Place: "lost.db", Leads: 2, Commits: 4}
		m, ws := emptyLedger(t), bookOf(t, lost)
		adopt(t, m, ws, storetest.LeadsOf(test.list...))
		var keys []string
		must.Do(t, checkpoint.Each(t.Context(), m, checkpoint.Filter{}, func(e checkpoint.Entry) error {
			keys = append(keys, e.Key)
			return nil
		}))
		if got := strings.Join(keys, " "); got != test.want || m.Info().Incomplete != test.incomplete {
			t.Errorf("%s: %s, incomplete %v", name, got, m.Info().Incomplete)
		}
	}
	for cut := range 6 {
		lost := checkpoint.Witness{Ledger: "lost", Target: here, Place: "lost.db", Leads: 1, Commits: 4}
		m, ws := emptyLedger(t), bookOf(t, lost)
		_, _ = checkpoint.AdoptList(t.Context(), &failing{m, cut}, ws, storetest.LeadsOf(found("A1", "x")))
		if adopt(t, m, ws, storetest.LeadsOf(found("A1", "x"))); !m.Info().Incomplete {
			t.Errorf("complete after %d steps", cut)
		}
	}
}

// If a list has several entries of a key, adopt takes the entry that tells most, and the last of equal ones.
func TestAdoptTakesTheMostCompleteEntryOfAKey(t *testing.T) {
	entry := func(key, lead string, state checkpoint.State, file string) checkpoint.Entry {
		return checkpoint.Entry{Key: key, LeadID: lead, State: state, File: file}
	}
	const created, partial, doubt = checkpoint.Created, checkpoint.Partial, checkpoint.InDoubt
	m := emptyLedger(t)
	adopt(t, m, nil, storetest.LeadsOf(
		entry("a", "", doubt, "1"), entry("b", "1b", created, "2"), entry("a", "", created, "3"), entry("a", "1a", created, "4"),
		entry("b", "1b", created, "5"), entry("a", "", created, "6"), entry("d", "1d", doubt, "7"), entry("d", "", created, "8"),
		entry("e", "1e", partial, "9"), entry("e", "1e", checkpoint.Unknown, "10"), entry("f", "1f", checkpoint.Unknown, "11"),
		entry("g", "", created, "12"), entry("g", "", checkpoint.Rejected, "13")))
	got := ""
	must.Do(t, checkpoint.Each(t.Context(), m, checkpoint.Filter{}, func(e checkpoint.Entry) error {
		got += fmt.Sprint(e.Key, " ", e.State, " ", e.File, ";")
		return nil
	}))
	if got != "a created 4;b created 5;d in_doubt 7;e partial 9;f created 11;g created 12;" {
		t.Error(got)
	}
}
