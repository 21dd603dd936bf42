package checkpoint_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"leadferry/checkpoint"
	"leadferry/checkpoint/bolt"
	"leadferry/checkpoint/storetest"
	"leadferry/internal/disk"
	"leadferry/internal/testsupport/must"
)

var here = checkpoint.Target{BaseURL: "https://api.example.com", LeadsURL: "https://leads.example.com", TrunkID: "5f0c1a52-7d0b-4a3e-9a1e-3a1c6d1f0b77"}

// ledger returns one that the run "r" has used and that has a lead of each key.
func ledger(t *testing.T, keys ...string) checkpoint.Store {
	t.Helper()
	m := emptyLedger(t)
	must.Do(t, checkpoint.PutRun(t.Context(), m, checkpoint.RunInfo{ID: "r"}))
	for i, key := range keys {
		storetest.Together(t, m, checkpoint.Settle, storetest.CreatedEntry(key, "lead-"+key, i))
	}
	return m
}

// emptyLedger returns a new ledger in a file. It does not sync the disk.
func emptyLedger(t *testing.T) checkpoint.Store {
	t.Helper()
	s, err := bolt.Open(filepath.Join(t.TempDir(), "c.db"), here, bolt.Options{AnyPlace: true, Unsynced: true})
	must.Do(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

// bookOf writes witnesses into a new book.
func bookOf(t *testing.T, all ...checkpoint.Witness) *checkpoint.Witnesses {
	t.Helper()
	ws := &checkpoint.Witnesses{Book: t.TempDir()}
	for i, w := range all {
		writeFile(t, filepath.Join(ws.Book, string(rune('a'+i))+".json"), w.Encode())
	}
	return ws
}

func writeFile(t *testing.T, path string, text []byte) {
	t.Helper()
	must.Do(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, text, 0o600)))
}

func judged(t *testing.T, s checkpoint.Store, ws *checkpoint.Witnesses, of ...checkpoint.Kind) *checkpoint.Judgement {
	t.Helper()
	v, err := checkpoint.Judge(t.Context(), s, ws, true, of)
	must.Do(t, err)
	return v
}

// wantRefusal wants a refusal of this kind with a hint. Its text contains all words.
func wantRefusal(t *testing.T, err, kind error, words ...string) {
	t.Helper()
	var why *checkpoint.OpenError
	if !errors.As(err, &why) || !errors.Is(err, kind) || why.Text == "" || why.Hint == "" {
		t.Fatalf("%v, want a refusal as %v with a hint", err, kind)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("the refusal does not say %q: %v", word, err)
		}
	}
}

// Witnesses of the ledger itself and of others are compared with a ledger of three leads. faults 21, 23, 128, m18
func TestJudge(t *testing.T) {
	another := here
	another.TrunkID = "other"
	moved, capitals := here, here
	moved.LeadsURL = "https://elsewhere.example.com"
	capitals.TrunkID = strings.ToUpper(here.TrunkID)
	m := ledger(t, "a", "b", "c")
	own, at := m.Info().ID, m.Info().Sequence
	lineage := checkpoint.Lineage{Ancestors: []checkpoint.Ancestor{{ID: "parent", Commits: 7}}, Answered: []string{"answered"}}
	must.Do(t, checkpoint.PutNote(t.Context(), m, checkpoint.LineageNote, checkpoint.Encode(lineage)))
	other := checkpoint.Witness{Ledger: "other", Target: here, Place: "/srv/other.db", Run: "x"}
	with := func(change func(w *checkpoint.Witness)) checkpoint.Witness {
		w := other
		change(&w)
		return w
	}
	for name, test := range map[string]struct {
		witness     checkpoint.Witness
		older, asks string // part of the refusal's text
	}{
		"as it is":                   {witness: checkpoint.Witness{Ledger: own, Run: "r", Commits: at, Leads: 3}},
		"the witness is behind":      {witness: checkpoint.Witness{Ledger: own, Run: "r", Commits: at - 1, Open: true}},
		"a command":                  {witness: checkpoint.Witness{Ledger: own, Commits: at}},
		"fewer commits":              {witness: checkpoint.Witness{Ledger: own, Run: "r", Commits: at + 9}, older: "tells of commit 13"},
		"fewer than a command":       {witness: checkpoint.Witness{Ledger: own, Commits: at + 9}, older: "tells of commit 13"},
		"a run not known":            {witness: checkpoint.Witness{Ledger: own, Run: "later", Commits: at}, older: "does not know the run later"},
		"its parent":                 {witness: checkpoint.Witness{Ledger: "parent", Run: "x", Commits: 7, Leads: 9, Open: true, Target: here}},
		"its parent went on":         {witness: checkpoint.Witness{Ledger: "parent", Commits: 8, Place: "/srv/old.db", Target: here}, older: "descends from the checkpoint /srv/old.db"},
		"another that knows nothing": {witness: other},
		"another that knows leads":   {witness: with(func(w *checkpoint.Witness) { w.Leads = 5 }), asks: "/srv/other.db; it knew 5 leads"},
		"nothing of it is at hand":   {witness: with(func(w *checkpoint.Witness) { w.Leads = 5 }), asks: "write known.csv, with the line key,namespace,lead_id"},
		"another that is in use":     {witness: with(func(w *checkpoint.Witness) { w.Open = true }), asks: "0 leads or more"},
		"another address of it":      {witness: with(func(w *checkpoint.Witness) { w.Leads, w.Target = 5, moved }), asks: "service at https://elsewhere"},
		"its trunk in capitals":      {witness: with(func(w *checkpoint.Witness) { w.Leads, w.Target = 5, capitals }), asks: "it knew 5 leads"},
		"another trunk":              {witness: with(func(w *checkpoint.Witness) { w.Leads, w.Open, w.Target = 5, true, another })},
		"answered before":            {witness: with(func(w *checkpoint.Witness) { w.Leads, w.Ledger = 5, "answered" })},
	} {
		t.Run(name, func(t *testing.T) {
			ws := bookOf(t, test.witness)
			v := judged(t, m, ws)
			switch err := v.Refuse(""); {
			case test.older != "":
				wantRefusal(t, err, checkpoint.ErrRolledBack, test.older, "--accept-older="+test.witness.Ledger, ws.Book)
				wantRefusal(t, v.Refuse(test.witness.Ledger), checkpoint.ErrRolledBack) // another answer
			case test.asks != "":
				wantRefusal(t, err, checkpoint.ErrGone, test.asks, "--new-checkpoint="+test.witness.Ledger, "--checkpoint /srv/other.db", "checkpoint adopt", ws.Book)
				wantRefusal(t, v.Refuse("wrong"), checkpoint.ErrGone)
				if err := v.Refuse(test.witness.Ledger); err != nil {
					t.Errorf("answered: %v", err)
				}
			case err != nil:
				t.Error(err)
			default:
				if err := v.Refuse("other"); !errors.Is(err, checkpoint.ErrAnswersNothing) {
					t.Errorf("an answer to nothing: %v", err)
				}
			}
			only, err := checkpoint.Judge(t.Context(), m, ws, false, nil) // a command that makes no leads
			if err != nil || len(only.Asks) > 0 || len(only.Older) != len(v.Older) {
				t.Errorf("for a command that makes no leads: %+v, %v", only, err)
			}
		})
	}
	if v := judged(t, m, nil); v.Refuse("") != nil {
		t.Error("a ledger without witnesses, as in a sandbox, is refused")
	}
}

// A witness that cannot be read may know of leads. A ledger without leads is refused. With leads, there is a warning.
func TestJudgeUnreadableWitness(t *testing.T) {
	for name, text := range map[string]string{"cut": `{"commits":     1,"le`, "empty": "", "foreign": `{"name":"x"}`, "without a ledger": `{"commits":1}`} {
		t.Run(name, func(t *testing.T) {
			ws := &checkpoint.Witnesses{Parents: []string{t.TempDir()}}
			path := filepath.Join(ws.Parents[0], "a run", checkpoint.RunFile)
			writeFile(t, path, []byte(text))
			v := judged(t, ledger(t), ws)
			wantRefusal(t, v.Refuse(""), checkpoint.ErrGone, path+" cannot be read", "--new-checkpoint=", "let this user read it")
			if strings.Contains(v.Question(), "nil") || v.Refuse(v.Asks[0].ID) != nil {
				t.Errorf("%v, %v", v.Question(), v.Refuse(v.Asks[0].ID))
			}
			v = judged(t, ledger(t, "a"), ws)
			if v.Refuse("") != nil || len(v.Warnings) != 1 || !strings.Contains(v.Warnings[0], path) {
				t.Errorf("%v, %q", v.Refuse(""), v.Warnings)
			}
		})
	}
}

// Judge asks about a file if files of its kind went only to another target. Kinds differ by columns, key and namespace.
func TestJudgeKinds(t *testing.T) {
	there := here
	there.TrunkID = "other"
	shape := checkpoint.Shape{Columns: []string{"a", "b", "c", "d"}, Key: "{a}", Namespace: "n"}
	sent := func(to checkpoint.Target, s checkpoint.Shape) checkpoint.Witness {
		return checkpoint.Witness{Ledger: "ledger of " + to.TrunkID, Target: to, Leads: 1, Kinds: []checkpoint.Kind{checkpoint.KindOf(&s)}}
	}
	with := func(change func(s *checkpoint.Shape)) checkpoint.Shape {
		s := shape
		change(&s)
		return s
	}
	answered := checkpoint.Lineage{Ancestors: []checkpoint.Ancestor{{ID: "ledger of " + here.TrunkID}}}
	for name, test := range map[string]struct {
		all  []checkpoint.Witness
		asks bool
	}{
		"nowhere":        {},
		"there alone":    {[]checkpoint.Witness{sent(there, shape)}, true},
		"here alone":     {[]checkpoint.Witness{sent(here, shape)}, false},
		"at both":        {[]checkpoint.Witness{sent(there, shape), sent(here, shape)}, false},
		"half of it":     {[]checkpoint.Witness{sent(there, with(func(s *checkpoint.Shape) { s.Columns = []string{"a", "b", "x", "y"} }))}, true},
		"less than half": {[]checkpoint.Witness{sent(there, with(func(s *checkpoint.Shape) { s.Columns = []string{"a", "x", "y", "z"} }))}, false},
		"other key":      {[]checkpoint.Witness{sent(there, with(func(s *checkpoint.Shape) { s.Key = "{b}" }))}, false},
		"other names":    {[]checkpoint.Witness{sent(there, with(func(s *checkpoint.Shape) { s.Namespace = "m" }))}, false},
		"it made none":   {[]checkpoint.Witness{{Ledger: "x", Target: there, Kinds: sent(there, shape).Kinds}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			m := ledger(t, "a")
			must.Do(t, checkpoint.PutNote(t.Context(), m, checkpoint.LineageNote, checkpoint.Encode(answered)))
			ws := bookOf(t, test.all...)
			v := judged(t, m, ws, checkpoint.KindOf(&shape))
			if asks := v.Question() != ""; asks != test.asks {
				t.Fatalf("asks %q", v.Question())
			}
			if ws.Named = true; judged(t, m, ws, checkpoint.KindOf(&shape)).Question() != "" {
				t.Error("a mapping that names the target is asked about it")
			}
			if !test.asks {
				return
			}
			wantRefusal(t, v.Refuse(""), checkpoint.ErrGone, "never to trunk "+here.TrunkID, "trunk other", "right profile")
			must.Do(t, v.Answer(t.Context(), m))
			if v = judged(t, m, bookOf(t, test.all...), checkpoint.KindOf(&shape)); v.Refuse("") != nil {
				t.Errorf("asked again after the answer: %v", v.Refuse(""))
			}
		})
	}
}

// One answer covers several findings, and they are not asked about again. Later findings are.
func TestOneAnswerToSeveralFindings(t *testing.T) {
	m := emptyLedger(t)
	of := func(id string, commits uint64, leads int) checkpoint.Witness {
		return checkpoint.Witness{Ledger: id, Target: here, Place: "/srv/" + id + ".db", Commits: commits, Leads: leads}
	}
	all := []checkpoint.Witness{of("one", 3, 5), of("two", 1, 1), of("one", 9, 8)}
	ws := bookOf(t, all...)
	v := judged(t, m, ws)
	if len(v.Asks) != 2 {
		t.Fatalf("%+v", v.Asks)
	}
	wantRefusal(t, v.Refuse(""), checkpoint.ErrGone, "one.db; it knew 8 leads", "two.db; it knew 1 leads")
	wantRefusal(t, v.Refuse("one"), checkpoint.ErrGone)
	_, answer, _ := strings.Cut(v.Refuse("").Error(), "--new-checkpoint=")
	if err := v.Refuse(answer); err != nil {
		t.Errorf("%q: %v", answer, err)
	}
	must.Do(t, v.Answer(t.Context(), m))
	later := judged(t, m, bookOf(t, append(all, of("three", 1, 1))...))
	if v = judged(t, m, ws); v.Refuse("") != nil || len(later.Asks) != 1 || v.Covers(later) || !later.Covers(v) {
		t.Errorf("%v, later %+v", v.Refuse(""), later.Asks)
	}
}

// A finding from a run folder still counts when the folder is gone.
func TestFindingsOfRunFoldersAreRemembered(t *testing.T) {
	ws := &checkpoint.Witnesses{Book: filepath.Join(t.TempDir(), "book"), Parents: []string{t.TempDir()}}
	w := checkpoint.Witness{Ledger: "other", Target: here, Place: "other.db", Leads: 5, Run: "x", Commits: 4}
	writeFile(t, filepath.Join(ws.Parents[0], "run", checkpoint.RunFile), w.Encode())
	wantRefusal(t, judged(t, ledger(t), ws).Refuse(""), checkpoint.ErrGone)
	ws.Parents = nil
	wantRefusal(t, judged(t, ledger(t), ws).Refuse(""), checkpoint.ErrGone, "it knew 5 leads")
	if all := ws.All(); len(all) != 1 || all[0].Commits != 4 {
		t.Errorf("%+v", all)
	}
}

// A ledger that is too old, whose parent went on, or that was copied from elsewhere is accepted by its answer: it
// becomes incomplete and gets a new ID. If this is cut off, it still does not pass as complete.
func TestTakeOlder(t *testing.T) {
	for name, test := range map[string]struct {
		witnesses func(id string) []checkpoint.Witness
		moved     string
		answer    func(id string) string
	}{
		"own": {func(id string) []checkpoint.Witness {
			return []checkpoint.Witness{{Ledger: id, Run: "later", Commits: 3}}
		}, "", func(id string) string { return id }},
		"lineage": {func(string) []checkpoint.Witness {
			return []checkpoint.Witness{{Ledger: "parent", Commits: 8, Target: here}}
		}, "", func(string) string { return "parent" }},
		"moved": {func(string) []checkpoint.Witness { return nil }, "/srv/n.db", func(id string) string { return id }},
	} {
		t.Run(name, func(t *testing.T) {
			for cut := range 2 {
				m := ledger(t, "a")
				parent := checkpoint.Lineage{Ancestors: []checkpoint.Ancestor{{ID: "parent", Commits: 7}}}
				must.Do(t, checkpoint.PutNote(t.Context(), m, checkpoint.LineageNote, checkpoint.Encode(parent)))
				id := m.Info().ID
				ws := bookOf(t, test.witnesses(id)...)
				if took, err := checkpoint.TakeOlder(t.Context(), m, ws, "wrong", test.moved); took || err != nil {
					t.Errorf("took %v, %v", took, err)
				}
				took, err := checkpoint.TakeOlder(t.Context(), &failing{m, cut}, ws, test.answer(id), test.moved)
				if done := err == nil; done != (cut >= 1) || done && !took {
					t.Fatalf("%d: took %v, %v", cut, took, err)
				}
				if i := m.Info(); judged(t, m, ws).RefuseOlder() == nil && !i.Incomplete && (test.moved == "" || i.ID != id) {
					t.Errorf("cut off after %d: %+v passes for complete", cut, i)
				}
				if took && (m.Info().ID == id || judged(t, m, ws).Refuse("") != nil) {
					t.Errorf("taken: ID %s after %s, %v", m.Info().ID, id, judged(t, m, ws).Refuse(""))
				}
			}
		})
	}
}

// A database that runs use is no backup. With its ID, a person takes one that nobody uses for an older one.
func TestTakeOlderWithoutAWitness(t *testing.T) {
	for runs, want := range []bool{true, false} {
		m := ledger(t, "a")
		took, err := checkpoint.TakeOlder(t.Context(), &used{m, runs}, bookOf(t), m.Info().ID, "")
		if took != want || m.Info().Incomplete != want || errors.Is(err, checkpoint.ErrLocked) == want {
			t.Errorf("%d runs: took %v, %v", runs, took, err)
		}
	}
}

// used is a Store that runs use.
type used struct {
	checkpoint.Store
	runs int
}

func (u *used) UnderWay(context.Context) (map[string]bool, error) {
	all := map[string]bool{}
	for range u.runs {
		all["run"] = true
	}
	return all, nil
}

var errCut = errors.New("cut off")

// failing is a Store in which only the first changes succeed.
type failing struct {
	checkpoint.Store
	left int
}

func (f *failing) Alone(ctx context.Context, change func(checkpoint.Tx) error) error {
	if f.left--; f.left < 0 {
		return errCut
	}
	return f.Store.Alone(ctx, change)
}

// shared is a Store that another process changes right after each read of notes.
type shared struct {
	checkpoint.Store
	change func()
}

func (s shared) Notes(ctx context.Context, prefix string) ([]checkpoint.Note, error) {
	defer s.change()
	return s.Store.Notes(ctx, prefix)
}

// Two processes that answer at one moment, in one database, keep both answers.
func TestNoAnswerIsLostToAnother(t *testing.T) {
	m := ledger(t, "a")
	answer := func(s checkpoint.Store, id string) {
		must.Do(t, (&checkpoint.Judgement{Asks: []checkpoint.Finding{{ID: id}}}).Answer(t.Context(), s))
	}
	given := []string{"ours"}
	answer(shared{m, func() { answer(m, "theirs"); given = append(given, "theirs") }}, "ours")
	l, err := checkpoint.LineageOf(t.Context(), m)
	if must.Do(t, err); len(l.Answered) != len(given) {
		t.Errorf("of %q the ledger has %q", given, l.Answered)
	}
}

// A ledger that took over another one is of no use while a run goes on with that one: it may make more leads.
func TestNoRunBeginsWhileOneGoesOnWithAParent(t *testing.T) {
	m := ledger(t, "a")
	lineage := checkpoint.Lineage{Ancestors: []checkpoint.Ancestor{{ID: "parent", Commits: 7}}}
	must.Do(t, checkpoint.PutNote(t.Context(), m, checkpoint.LineageNote, checkpoint.Encode(lineage)))
	ws := bookOf(t, checkpoint.Witness{Ledger: "parent", Run: "x", Commits: 7, Leads: 9, Open: true, Target: here})
	files, _ := filepath.Glob(filepath.Join(ws.Book, "*.json"))
	f, err := os.OpenFile(files[0], os.O_RDWR, 0)
	must.Do(t, err)
	_, err = disk.TryLock(f, false)
	must.Do(t, err)
	wantRefusal(t, judged(t, m, ws).Refuse(""), checkpoint.ErrRolledBack, "with which run x goes on")
	must.Do(t, f.Close())
	must.Do(t, judged(t, m, ws).Refuse(""))
}

// placedStore is a Store that gives another path as its own.
type placedStore struct {
	checkpoint.Store
	path string
}

func (a placedStore) Info() checkpoint.Info {
	i := a.Store.Info()
	i.Path = a.path
	return i
}

func TestOnThisMachine(t *testing.T) {
	m := placedStore{ledger(t), "/srv/leads.db"}
	for i, step := range []struct {
		machine string
		here    bool
		refused bool
	}{
		{"one", false, false},
		{"one", false, false},
		{"", false, false},
		{"two", false, true},
		{"two", true, false},
		{"two", false, false},
		{"one", false, true},
	} {
		if err := checkpoint.OnThisMachine(t.Context(), m, step.machine, step.here, nil); (err != nil) != step.refused {
			t.Errorf("step %d: %v", i, err)
		} else if err != nil {
			wantRefusal(t, err, checkpoint.ErrOtherMachine, "--moved-here --checkpoint /srv/leads.db", "--accept-older=")
		}
	}
	note, err := checkpoint.NoteOf(t.Context(), m, checkpoint.LineageNote)
	if err != nil || strings.Contains(string(note), "two") {
		t.Errorf("the machine's ID can be read in %s, %v", note, err)
	}
	m.path = "postgres://db/leads"
	if err := checkpoint.OnThisMachine(t.Context(), m, "three", false, nil); err != nil {
		t.Errorf("a ledger on a server: %v", err)
	}
}

// If a ledger has only adopted leads, the witnesses of their old ledger say which key made them.
func TestJudgeKeysOfLeadsThatWereTakenOver(t *testing.T) {
	shape := checkpoint.Shape{Columns: []string{"a", "b"}, Key: "{a}"}
	rekeyed, elsewhere := shape, shape
	rekeyed.Key, elsewhere.Namespace = "{b}", "n"
	other := checkpoint.Shape{Columns: []string{"x", "y"}, Key: "{x}"}
	m := ledger(t)
	ws := bookOf(t, checkpoint.Witness{
		Ledger: "lost", Target: here, Place: "lost.db", Leads: 2, Commits: 4, Kinds: []checkpoint.Kind{checkpoint.KindOf(&shape)},
	})
	ws.Named = true // the target is right, but the key may still be wrong
	adopt(t, m, ws, leadsOf("a.csv", "a", "b"))
	for _, test := range []struct {
		shape checkpoint.Shape
		asked bool
	}{{shape, false}, {other, false}, {rekeyed, true}, {elsewhere, true}} {
		err := judged(t, m, ws, checkpoint.KindOf(&test.shape)).Refuse("")
		if (err != nil) != test.asked {
			t.Errorf("%+v: %v", test.shape, err)
		} else if test.asked {
			wantRefusal(t, err, checkpoint.ErrGone, "another key or namespace", "restore key", "--new-checkpoint=")
		}
	}
}
