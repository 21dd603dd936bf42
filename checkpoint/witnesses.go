package checkpoint

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"leadferry/internal/disk"
)

// RunFile is the witness in a run's folder.
const RunFile = "run.json"

// Witnesses says where witnesses are: in the user's book of ledgers, one file for each ledger (in PostgreSQL for each
// worker), and in the run folders at hand. The nil Witnesses has none.
type Witnesses struct {
	Book    string   // folder of the book; "" if there is no place for one
	Parents []string // folders that hold run folders
	Named   bool     // the mapping names the target: files of a kind may have gone to another one
	Flags   []string // --name=value flags of the run's target, for the commands that are printed
	Page    string   // address of the live page of the run that will be witnessed; or ""
	Looks   bool     // nothing is written
	Sandbox bool     // there are no witnesses: a run's folder only says that its leads are in the sandbox
}

// All reads every witness. It also returns those that cannot be read, with their Err, since they may know of leads.
func (ws *Witnesses) All() (all []Witness) {
	if ws == nil {
		return nil
	}
	all = ws.inBook()
	for _, parent := range ws.Parents {
		entries, unread := readNames(parent)
		all = append(all, unread...)
		for _, e := range entries {
			if e.IsDir() {
				all = append(all, readFolder(filepath.Join(parent, e.Name()), isRunFile)...)
			}
		}
	}
	return all
}

// readNames returns the entries of a folder, which may be missing.
func readNames(folder string) (entries []os.DirEntry, unread []Witness) {
	entries, err := os.ReadDir(folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
		unread = []Witness{{Source: folder, Err: err}}
	}
	return entries, unread
}

func (ws *Witnesses) inBook() []Witness {
	if ws == nil || ws.Book == "" {
		return nil
	}
	return readFolder(ws.Book, func(name string) bool { return strings.HasSuffix(name, ".json") })
}

// isRunFile reports whether this is the name of a witness: [RunFile], or the name that runFileIn gives to an old one.
func isRunFile(name string) bool {
	return name == RunFile || strings.HasPrefix(name, "run-") && strings.HasSuffix(name, ".json")
}

// WitnessIn returns the witness in the folder of a run, with Err if there is none.
func WitnessIn(folder string) Witness {
	w := Witness{Source: filepath.Join(folder, RunFile), Err: fs.ErrNotExist}
	for _, one := range readFolder(folder, isRunFile) {
		if one.Err == nil {
			w = one
		}
	}
	return w
}

func readFolder(folder string, wanted func(name string) bool) []Witness {
	entries, all := readNames(folder)
	for _, e := range entries {
		if e.IsDir() || !wanted(e.Name()) {
			continue
		}
		if w, found := readWitness(filepath.Join(folder, e.Name())); found {
			all = append(all, w)
		}
	}
	return all
}

func readWitness(path string) (w Witness, found bool) {
	f, err := os.OpenFile(path, os.O_RDONLY|disk.NonBlock, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return w, false
	}
	if err == nil {
		defer f.Close()
		var text []byte
		if text, err = io.ReadAll(io.LimitReader(f, 4<<20)); err == nil {
			err = json.Unmarshal(text, &w)
		}
		if err == nil && (w.Ledger == "" || !bytes.HasPrefix(text, []byte(`{"commits":`))) {
			err = errors.New("it is no witness of a ledger")
		}
	}
	w.Source, w.Err = path, err
	return w, true
}

// remember copies witnesses of run folders that speak against a ledger into the book, for runs without these folders.
func (ws *Witnesses) remember(all []Finding) {
	for i := range all {
		w := all[i].Witness
		if ws.Looks || ws.Book == "" || w.Err != nil || filepath.Dir(w.Source) == ws.Book || IsAddress(w.Source) ||
			disk.MakeFolders(ws.Book) != nil {
			continue
		}
		_, _ = disk.Replace(filepath.Join(ws.Book, w.Ledger+"-"+shortID(w.Run, "")+".json"), 0o600, w.encode())
	}
}

// Left reports whether a run that ended in order left its ledger's file in this state, and no run has begun since.
func (ws *Witnesses) Left(so string) bool {
	untouched := func(w Witness) bool { return w.Err == nil && !w.Open && w.Left == so }
	return so != "" && slices.ContainsFunc(ws.inBook(), untouched)
}

// Holder returns the run that has the ledger in the file at place open now, and so a lock on its entry in the book.
func (ws *Witnesses) Holder(place string) (w Witness, goesOn bool) {
	for _, one := range ws.inBook() {
		if one.Place == place && one.GoesOn() {
			return one, true
		}
	}
	return w, false
}

// GoesOn reports whether the run is under way: it holds a lock on its witness.
func (w Witness) GoesOn() bool {
	f, err := os.OpenFile(w.Source, os.O_RDONLY|disk.NonBlock, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	free, err := disk.TryLock(f, true)
	return err == nil && !free
}

// Lock keeps other runs of this user from judging witnesses until unlock is called. So if two runs begin new ledgers at
// once, the second sees the first. If there is no place for the book, there is no lock.
func (ws *Witnesses) Lock() (unlock func(), err error) {
	unlock = func() {}
	if ws == nil || ws.Book == "" || disk.MakeFolders(ws.Book) != nil {
		return unlock, nil
	}
	f, err := os.OpenFile(filepath.Join(ws.Book, "lock"), os.O_RDWR|os.O_CREATE|disk.NoFollow, 0o600)
	if err != nil {
		return unlock, nil
	}
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		held, err := disk.TryLock(f, false)
		if held || err != nil {
			return func() { f.Close() }, nil
		}
		if time.Now().After(end) {
			return unlock, errors.Join(fmt.Errorf("%s is locked by another run that does not let go of it", f.Name()),
				f.Close())
		}
	}
}

// Testimony is the witness of a run that is under way. Its methods are safe for concurrent use, and do nothing on nil.
type Testimony struct {
	mu      sync.Mutex
	note    Witness
	files   []*noteFile
	ended   bool
	covered []string // files in the book that End removes
}

type noteFile struct {
	path string
	f    *os.File
	old  []byte // the file's content before; nil: there was no file
}

// ErrNoWitness says that neither the run's folder nor the book takes a witness.
var ErrNoWitness = errors.New("no witness can be written")

// Begin writes a witness of a ledger durably into the run's folder and into the book. w says which run it is; folder is
// "" for a run without one. Nothing may be claimed before Begin returns nil. [ErrNoWitness]: the ledger is a file, and
// neither place can be written. For PostgreSQL the worker's row in the database is enough.
func (ws *Witnesses) Begin(s Store, w Witness, folder string) (*Testimony, error) {
	if ws == nil {
		return nil, nil
	}
	info := s.Info()
	w.Commits, w.Leads, w.Freed = s.Progress()       // of this process: Info may count commits of other workers
	lineage, _ := LineageOf(context.Background(), s) // if unreadable, descend also counts its ancestors
	w.Ancestors, w.Lacks, w.Open, w.Page = lineage.Ancestors, info.Incomplete, true, ws.Page
	w.Ledger, w.Target, w.Place = info.ID, info.Target, info.Path
	if ws.Sandbox {
		return nil, ws.mark(w, folder)
	}
	if whole, err := filepath.Abs(folder); err == nil && folder != "" {
		w.Folder = whole
	}
	var bad []error
	t := &Testimony{covered: ws.inherit(&w)}
	t.note = w
	if ws.Book != "" {
		name := w.Ledger
		if IsAddress(w.Place) {
			name += "-" + w.Run
		}
		path := filepath.Join(ws.Book, name+".json")
		if bad = append(bad, errors.Join(disk.MakeFolders(ws.Book), t.begin(path))); bad[0] != nil {
			t.covered = nil
		}
	}
	if folder != "" {
		bad = append(bad, t.begin(runFileIn(folder, w.Ledger)))
	}
	if len(t.files) == 0 && !IsAddress(w.Place) {
		return nil, fmt.Errorf("%w: %w", ErrNoWitness, cmp.Or(append(bad, errors.New("there is no place for one"))...))
	}
	return t, nil
}

// mark writes a witness without leads into the folder of a run in the sandbox.
func (ws *Witnesses) mark(w Witness, folder string) (err error) {
	w.Leads, w.Freed, w.Open, w.Kinds = 0, 0, false, nil
	if folder != "" {
		_, err = disk.Replace(runFileIn(folder, w.Ledger), 0o600, w.encode())
	}
	return err
}

// runFileIn returns the path of a run's witness. If a run with another ledger used the folder, its witness is renamed.
func runFileIn(folder, ledger string) string {
	path := filepath.Join(folder, RunFile)
	if old, found := readWitness(path); found && old.Ledger != ledger {
		_ = os.Rename(path, filepath.Join(folder, "run-"+shortID(cmp.Or(old.Ledger, "unreadable"), old.Run)+".json"))
	}
	return path
}

// inherit adds to a new witness the book's kinds of its ledger. It returns the files of earlier workers that ended.
func (ws *Witnesses) inherit(w *Witness) (ended []string) {
	for _, one := range ws.inBook() {
		if one.Ledger != w.Ledger || one.Err != nil {
			continue
		}
		for _, k := range one.Kinds {
			if !slices.ContainsFunc(w.Kinds, func(other Kind) bool { return other.equals(&k) }) {
				w.Kinds = append(w.Kinds, k)
			}
		}
		if !one.Open {
			ended = append(ended, one.Source)
		}
	}
	w.Kinds = w.Kinds[:min(len(w.Kinds), 200)]
	return ended
}

// begin writes the note at path and holds it open.
func (t *Testimony) begin(path string) error {
	one := &noteFile{path: path}
	one.old, _ = os.ReadFile(path)
	err := t.write(one)
	if err == nil {
		t.files = append(t.files, one)
	}
	return err
}

// write replaces the file by the current note, durably.
func (t *Testimony) write(one *noteFile) (err error) {
	one.f.Close()
	if _, err := disk.Replace(one.path, 0o600, t.note.encode()); err != nil {
		return err
	}
	one.f, err = os.OpenFile(one.path, os.O_RDWR|disk.NoFollow, 0o600)
	if err == nil && t.note.Open {
		_, _ = disk.TryLock(one.f, false) // until the run ends, see Holder
	}
	return err
}

// Reached overwrites the counts, without a sync: a count that lags behind is still true. Only End writes freed.
func (t *Testimony) Reached(commits uint64, leads, freed int) {
	t.use(func() {
		t.note.Commits, t.note.Leads, t.note.Freed = commits, leads, freed
		head := t.note.head()
		for _, one := range t.files {
			_, _ = one.f.WriteAt(head, 0)
		}
	})
}

// use runs f alone, unless the witness has ended.
func (t *Testimony) use(f func()) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.ended {
		f()
	}
}

// End closes the witness durably. Call it before the ledger's lock is released. left becomes Witness.Left.
func (t *Testimony) End(left string) (err error) {
	t.use(func() {
		t.ended = true
		t.note.Open, t.note.Left, t.note.Page = false, left, ""
		for _, one := range t.files {
			err = errors.Join(err, t.write(one), one.f.Close())
		}
		for _, old := range t.covered {
			if w, found := readWitness(old); err == nil && found && !w.Open && w.Run != t.note.Run {
				_ = os.Remove(old)
			}
		}
	})
	return err
}

// Withdraw puts back what was there before the witness, because the ledger was removed or nothing has changed.
func (t *Testimony) Withdraw() {
	t.use(func() {
		t.ended = true
		for _, one := range t.files {
			one.f.Close()
			if one.old != nil {
				_, _ = disk.Replace(one.path, 0o600, one.old)
			} else {
				_ = os.Remove(one.path)
			}
		}
	})
}
