package checkpoint_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"leadferry/checkpoint"
	"leadferry/internal/testsupport/must"
)

// places returns a book and a run's folder.
func places(t *testing.T) (ws *checkpoint.Witnesses, folder string) {
	t.Helper()
	dir := t.TempDir()
	folder = filepath.Join(dir, "runs", "one")
	must.Do(t, os.MkdirAll(folder, 0o700))
	return &checkpoint.Witnesses{Book: filepath.Join(dir, "state", "book"), Parents: []string{filepath.Dir(folder)}}, folder
}

func begin(t *testing.T, ws *checkpoint.Witnesses, s checkpoint.Store, w checkpoint.Witness, folder string) *checkpoint.Testimony {
	t.Helper()
	one, err := ws.Begin(s, w, folder)
	must.Do(t, err)
	t.Cleanup(func() { _ = one.End("") })
	return one
}

// A run's witness is written to both places, updated in place after each commit, and closed at the end.
func TestWitnessFollowsEachCommitOfARun(t *testing.T) {
	ws, folder := places(t)
	m := ledger(t, "a", "b")
	started := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	kind := checkpoint.KindOf(&checkpoint.Shape{Columns: []string{"id", "Last Name"}, Key: "{id}"})
	one := begin(t, ws, m, checkpoint.Witness{Run: "r", Command: "import", Process: 42, Started: started, Kinds: []checkpoint.Kind{kind}}, folder)
	size := int64(0)
	stands := func(commits uint64, leads int, open bool) {
		t.Helper()
		all := ws.All()
		if len(all) != 2 || all[0].Source == all[1].Source {
			t.Fatalf("%+v", all)
		}
		for _, w := range all {
			if w.Err != nil || w.Commits != commits || w.Leads != leads || w.Open != open || w.Ledger != m.Info().ID || w.Run != "r" ||
				w.Target != here || !w.Started.Equal(started) || len(w.Kinds) != 1 || w.Kinds[0].ID() != kind.ID() {
				t.Errorf("%+v", w)
			}
			info, err := os.Stat(w.Source)
			if err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 || open && size > 0 && info.Size() != size {
				t.Errorf("%v, %v, %d bytes before", info, err, size)
			}
			size = info.Size()
			if text, _ := os.ReadFile(w.Source); strings.Contains(string(text), "Last") {
				t.Errorf("the witness contains a column name: %s", text)
			}
		}
	}
	stands(m.Info().Sequence, 2, true)
	for _, n := range []uint64{9, 10, 12345678, 0, 1<<64 - 1} {
		one.Reached(n, int(min(n, 999_999_999_999)), 0)
		stands(n, int(min(n, 999_999_999_999)), true)
	}
	one.Reached(99, 7, 0)
	must.Do(t, errors.Join(one.End("as it is"), one.End("twice")))
	one.Reached(100, 8, 0) // has no effect after End
	stands(99, 7, false)
	if !ws.Left("as it is") {
		t.Error("the book does not say how the ledger was left")
	}
}

// The witness is open while a ledger is in use. Closing the ledger closes it, with the last counts.
func TestClosingALedgerClosesItsWitness(t *testing.T) {
	ws, folder := places(t)
	m := ledger(t, "a")
	m.Attest(begin(t, ws, m, checkpoint.Witness{Run: "r"}, folder))
	l := checkpoint.NewLedger(m, checkpoint.Gathering{Slots: 2})
	must.Do(t, change(t.Context(), l, checkpoint.Claim, "b"))
	if all := ws.All(); len(all) != 2 || !all[0].Open {
		t.Errorf("%+v", all)
	}
	must.Do(t, l.Close())
	commits, leads, _ := m.Progress()
	for _, w := range ws.All() {
		if w.Open || w.Commits != commits || w.Leads != leads || leads != 2 {
			t.Errorf("%+v, not %d commits and %d leads", w, commits, leads)
		}
	}
}

// A new witness keeps those of other ledgers in its folder and one that cannot be read. It replaces its ledger's own.
func TestWitnessReplacesOnlyItsOwnInTheFolder(t *testing.T) {
	ws, folder := places(t)
	one, two := ledger(t, "a"), ledger(t, "b")
	for _, m := range []checkpoint.Store{one, one, two, one} {
		must.Do(t, begin(t, ws, m, checkpoint.Witness{Run: "r"}, folder).End(""))
	}
	ids := func() (all []string) {
		for _, w := range (&checkpoint.Witnesses{Parents: ws.Parents}).All() {
			all = append(all, w.Ledger)
		}
		return all
	}
	if all := ids(); !slices.Contains(all, one.Info().ID) || !slices.Contains(all, two.Info().ID) {
		t.Errorf("%q", all)
	}
	writeFile(t, filepath.Join(folder, checkpoint.RunFile), []byte("{"))
	must.Do(t, begin(t, ws, two, checkpoint.Witness{Run: "r"}, folder).End(""))
	if all := ids(); !slices.Contains(all, "") || !slices.Contains(all, two.Info().ID) {
		t.Errorf("%q", all)
	}
}

// One place is enough. With none, no run begins on a file. A server's ledger needs none: it holds its own witness.
func TestARunNeedsOnePlaceForItsWitness(t *testing.T) {
	ws, folder := places(t)
	file := filepath.Join(t.TempDir(), "file")
	writeFile(t, file, nil)
	nowhere := filepath.Join(file, "below")
	for name, test := range map[string]struct {
		book, folder, place string
		want                error
	}{
		"both":         {ws.Book, folder, "c.db", nil},
		"no book":      {nowhere, folder, "c.db", nil},
		"none at all":  {"", folder, "c.db", nil},
		"no folder":    {ws.Book, nowhere, "c.db", nil},
		"--out none":   {ws.Book, "", "c.db", nil},
		"neither":      {nowhere, nowhere, "c.db", checkpoint.ErrNoWitness},
		"none of them": {"", "", "c.db", checkpoint.ErrNoWitness},
		"of a server":  {nowhere, nowhere, "postgres://db/leads", nil},
	} {
		m := placedStore{ledger(t), test.place}
		one, err := (&checkpoint.Witnesses{Book: test.book}).Begin(m, checkpoint.Witness{Run: "r"}, test.folder)
		if !errors.Is(err, test.want) {
			t.Errorf("%s: %v", name, err)
		}
		one.Reached(5, 5, 0)
		if err := one.End(""); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	var none *checkpoint.Witnesses
	if one, err := none.Begin(ledger(t), checkpoint.Witness{}, folder); one != nil || err != nil || none.All() != nil {
		t.Errorf("without witnesses, as in a sandbox: %v, %v", one, err)
	}
}

func TestWithdrawnWitnessRestoresTheOneBefore(t *testing.T) {
	ws, folder := places(t)
	m := ledger(t)
	begin(t, ws, m, checkpoint.Witness{Run: "r"}, folder).Withdraw()
	if all := ws.All(); len(all) != 0 {
		t.Errorf("%+v", all)
	}
	must.Do(t, begin(t, ws, m, checkpoint.Witness{Run: "before"}, folder).End("left"))
	one := begin(t, ws, m, checkpoint.Witness{Run: "r"}, folder)
	one.Withdraw()
	one.Reached(9, 9, 0)
	for _, w := range ws.All() {
		if w.Open || w.Run != "before" || w.Commits == 9 {
			t.Errorf("%+v", w)
		}
	}
}

// The book has one witness for each worker of a server's ledger. A later worker's witness replaces it, unless that
// worker may still be running. Other ledgers' witnesses and all kinds of files stay.
func TestBookDropsWitnessesThatALaterWorkerCovers(t *testing.T) {
	ws, _ := places(t)
	m, other := placedStore{ledger(t, "a"), "postgres://db/leads"}, placedStore{ledger(t, "b"), "postgres://db/leads"}
	kind := func(column string) []checkpoint.Kind {
		return []checkpoint.Kind{checkpoint.KindOf(&checkpoint.Shape{Columns: []string{column}})}
	}
	end := func(one *checkpoint.Testimony) {
		must.Do(t, one.End(""))
	}
	end(begin(t, ws, other, checkpoint.Witness{Run: "other"}, ""))
	end(begin(t, ws, m, checkpoint.Witness{Run: "ended", Kinds: kind("x")}, ""))
	killed := begin(t, ws, m, checkpoint.Witness{Run: "killed", Kinds: kind("y")}, "")
	last := begin(t, ws, m, checkpoint.Witness{Run: "last", Kinds: kind("x")}, "")
	var runs []string
	for _, w := range ws.All() {
		runs = append(runs, w.Run)
		if w.Run == "last" && len(w.Kinds) != 2 {
			t.Errorf("%d kinds", len(w.Kinds))
		}
	}
	if slices.Sort(runs); !slices.Equal(runs, []string{"ended", "killed", "last", "other"}) {
		t.Errorf("%q", runs)
	}
	end(killed)
	blocked := filepath.Join(ws.Book, m.Info().ID+"-blocked.json", "x") // its witness cannot be written
	must.Do(t, os.MkdirAll(blocked, 0o700))
	end(begin(t, ws, m, checkpoint.Witness{Run: "blocked"}, ""))
	must.Do(t, os.RemoveAll(filepath.Dir(blocked)))
	withdrawn := begin(t, ws, m, checkpoint.Witness{}, "") // of a command that was refused
	withdrawn.Withdraw()
	end(last)
	runs = checkpoint.Map(ws.All(), func(w checkpoint.Witness) string { return w.Run })
	if slices.Sort(runs); !slices.Equal(runs, []string{"killed", "last", "other"}) {
		t.Errorf("%q", runs)
	}
}

// If several runs begin on new ledgers at once, one passes. The others see its witness and are refused.
func TestOnlyOneOfSeveralRunsBeginsOnANewLedger(t *testing.T) {
	ws, _ := places(t)
	started := make(chan error, 4)
	for range cap(started) {
		go func() {
			m := ledger(t, "a")
			unlock, err := ws.Lock()
			defer unlock()
			if err != nil {
				started <- err
				return
			}
			v, err := checkpoint.Judge(t.Context(), m, ws, true, nil)
			if err == nil {
				err = v.Refuse("")
			}
			if err != nil {
				started <- err
				return
			}
			one, err := ws.Begin(m, checkpoint.Witness{Run: "r"}, "")
			started <- errors.Join(err, one.End(""))
		}()
	}
	passed := 0
	for range cap(started) {
		if err := <-started; err == nil {
			passed++
		} else {
			wantRefusal(t, err, checkpoint.ErrGone)
		}
	}
	if passed != 1 {
		t.Errorf("%d runs have begun, want 1", passed)
	}
}
