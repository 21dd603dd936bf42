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

// places are a book and a run's folder.
func places(t *testing.T) (ws *checkpoint.Witnesses, folder string) {
	t.Helper()
	dir := t.TempDir()
	folder = filepath.Join(dir, "runs", "one")
	must.Do(t, os.MkdirAll(folder, 0o700))
	return &checkpoint.Witnesses{Book: filepath.Join(dir, "state", "book"), Parents: []string{filepath.Dir(folder)}}, folder
}

func begun(t *testing.T, ws *checkpoint.Witnesses, s checkpoint.Store, w checkpoint.Witness, folder string) *checkpoint.Testimony {
	t.Helper()
	one, err := ws.Begin(s, w, folder)
	must.Do(t, err)
	t.Cleanup(func() { _ = one.End("") })
	return one
}

// A run's witness stands in both places before it claims, follows each commit in place, and is closed in the end.
func TestWitnessOfARun(t *testing.T) {
	ws, folder := places(t)
	m := ledger(t, "a", "b")
	started := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	kind := checkpoint.KindOf(&checkpoint.Shape{Columns: []string{"id", "Last Name"}, Key: "{id}"})
	one := begun(t, ws, m, checkpoint.Witness{Run: "r", Command: "import", Process: 42, Started: started, Kinds: []checkpoint.Kind{kind}}, folder)
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
				t.Errorf("a column is named: %s", text)
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
	one.Reached(100, 8, 0) // too late
	stands(99, 7, false)
	if !ws.Left("as it is") {
		t.Error("the book does not say how it was left")
	}
}

// A use that ends in order closes the witness with the last counts; another one leaves it open.
func TestWitnessFollowsTheLedger(t *testing.T) {
	ws, folder := places(t)
	m := ledger(t, "a")
	m.Attest(begun(t, ws, m, checkpoint.Witness{Run: "r"}, folder))
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

// Another ledger's witness in the folder is kept, as is one that cannot be read; its own is replaced.
func TestWitnessBesideOthersOfTheFolder(t *testing.T) {
	ws, folder := places(t)
	one, two := ledger(t, "a"), ledger(t, "b")
	for _, m := range []checkpoint.Store{one, one, two, one} {
		must.Do(t, begun(t, ws, m, checkpoint.Witness{Run: "r"}, folder).End(""))
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
	written(t, filepath.Join(folder, checkpoint.RunFile), []byte("{"))
	must.Do(t, begun(t, ws, two, checkpoint.Witness{Run: "r"}, folder).End(""))
	if all := ids(); !slices.Contains(all, "") || !slices.Contains(all, two.Info().ID) {
		t.Errorf("%q", all)
	}
}

// One place is enough. Without any, no run begins with a file; a server's ledger holds its own witness.
func TestWitnessWithoutAPlace(t *testing.T) {
	ws, folder := places(t)
	file := filepath.Join(t.TempDir(), "file")
	written(t, file, nil)
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
		m := at{ledger(t), test.place}
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
		t.Errorf("the sandbox's: %v, %v", one, err)
	}
}

// A witness that is withdrawn leaves what stood there before.
func TestWithdrawnWitness(t *testing.T) {
	ws, folder := places(t)
	m := ledger(t)
	begun(t, ws, m, checkpoint.Witness{Run: "r"}, folder).Withdraw()
	if all := ws.All(); len(all) != 0 {
		t.Errorf("%+v", all)
	}
	must.Do(t, begun(t, ws, m, checkpoint.Witness{Run: "before"}, folder).End("left"))
	one := begun(t, ws, m, checkpoint.Witness{Run: "r"}, folder)
	one.Withdraw()
	one.Reached(9, 9, 0)
	for _, w := range ws.All() {
		if w.Open || w.Run != "before" || w.Commits == 9 {
			t.Errorf("%+v", w)
		}
	}
}

// The book keeps one entry a worker of a server's ledger, until a later worker of it says as much: not those that may
// still go on, nor other ledgers'. The kinds of files stay.
func TestBookOfAServersLedger(t *testing.T) {
	ws, _ := places(t)
	m, other := at{ledger(t, "a"), "postgres://db/leads"}, at{ledger(t, "b"), "postgres://db/leads"}
	kind := func(column string) []checkpoint.Kind {
		return []checkpoint.Kind{checkpoint.KindOf(&checkpoint.Shape{Columns: []string{column}})}
	}
	end := func(one *checkpoint.Testimony) {
		must.Do(t, one.End(""))
	}
	end(begun(t, ws, other, checkpoint.Witness{Run: "other"}, ""))
	end(begun(t, ws, m, checkpoint.Witness{Run: "ended", Kinds: kind("x")}, ""))
	killed := begun(t, ws, m, checkpoint.Witness{Run: "killed", Kinds: kind("y")}, "")
	last := begun(t, ws, m, checkpoint.Witness{Run: "last", Kinds: kind("x")}, "")
	var runs []string
	for _, w := range ws.All() {
		runs = append(runs, w.Run)
		if w.Run == "last" && len(w.Kinds) != 2 {
			t.Errorf("%d kinds", len(w.Kinds))
		}
	}
	if slices.Sort(runs); !slices.Equal(runs, []string{"killed", "last", "other"}) {
		t.Errorf("%q", runs)
	}
	end(killed)
	end(last)
}

// Of two that begin new ledgers at once the second one sees the first.
func TestWitnessesAreJudgedOneAfterAnother(t *testing.T) {
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
			refused(t, err, checkpoint.ErrGone)
		}
	}
	if passed != 1 {
		t.Errorf("%d have begun", passed)
	}
}
