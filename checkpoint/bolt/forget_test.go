package bolt

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"leadferry/checkpoint"
	"leadferry/internal/disk"
	"leadferry/internal/testsupport/must"
)

const (
	person   = "Ann.Lee@example.com" // its fold is another text
	herLead  = "0b1c2d3e-aaaa-4bbb-8ccc-1234567890ab"
	herLink  = "crm-ann-lee-77"
	hisLead  = "lead-of-bob"
	herPlace = "Only Ann's Motors"
	herOrg   = "org-of-ann-alone"
	herFile  = "ann-alone.csv"
	herField = "only-ann-has-this-field"
	neighbor = "bob"
)

// withPerson makes a checkpoint with a person's data in every place that can hold them.
func withPerson(t *testing.T, path string) *Store {
	t.Helper()
	d := seeded(t, path, 50)
	in := intentOf(person, 1)
	in.WantLink, in.File, in.Organization, in.Locator = herLink, herFile, herOrg, herOrg+"-locator"
	must.Do(t, claim(d, in))
	must.Do(t, resolve(d, checkpoint.Decision{Key: person, LeadID: herLead}))
	linked := createdEntry(person, herLead, 1)
	linked.ExternalID, linked.Location, linked.Organization, linked.File, linked.Run = herLink, herPlace, herOrg, herFile, "run-of-ann"
	linked.Seen = checkpoint.Sight{At: time.UnixMilli(1).UTC(), Status: "onHold", Organization: "seen-" + herOrg}
	linked.Content = append(linked.Content, sumField(d, herField, "x"))
	bob := createdEntry(neighbor, herLead, 2) // contradicts the decision and falls in doubt
	for _, e := range []checkpoint.Entry{linked, bob} {
		together(t, d, checkpoint.Settle, e)
	}
	if err := claim(d, intentOf(neighbor, 3)); err != nil { // keeps the doubt inside a new intent
		t.Fatal(err)
	}
	return d
}

// traces counts the person's data in all files of the checkpoint's folder.
func traces(t *testing.T, path string) (n int) {
	t.Helper()
	lead := checkpoint.AppendText(nil, herLead)[1:]
	files, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*"))
	must.Do(t, err)
	for _, name := range files {
		b, err := os.ReadFile(name)
		must.Do(t, err)
		for _, trace := range [][]byte{[]byte(person), []byte(strings.ToLower(person)), []byte(herLead), lead, []byte(herLink), []byte(herPlace), []byte(herOrg), []byte(herFile), []byte("run-of-ann")} {
			n += bytes.Count(b, trace)
		}
	}
	return n
}

// fault 120: nothing of a person is left in any byte of the file, and the row is not sent again.
func TestForgottenPersonLeavesNoTrace(t *testing.T) {
	path := newPath(t)
	d := withPerson(t, path)
	if traces(t, path) == 0 {
		t.Fatal("no trace of the person to begin with")
	}
	r, err := checkpoint.Forget(context.Background(), d, []string{person, "never heard of", "doubt-1", "refused-1"}, false)
	if want := (checkpoint.ForgetResult{checkpoint.Created: 1, checkpoint.Unknown: 1, checkpoint.InDoubt: 1, checkpoint.Rejected: 1}); err != nil || r != want {
		t.Fatalf("%+v, %v", r, err)
	}
	before := numbered(t, path)
	must.Do(t, d.Close())
	if after, err := os.Stat(path); err != nil || os.SameFile(before, numbered(t, path)) || disk.Shared(after) {
		t.Error("not compacted, or not private", err)
	}
	if n := traces(t, path); n != 0 {
		t.Errorf("%d traces left", n)
	}
	reader := opened(t, path, Options{ReadOnly: true})
	if reader.head.Load().Erase {
		t.Error("the compacted file asks to be compacted")
	}
	reader.Close()
	d = opened(t, path, Options{})
	for _, key := range []string{person, "never heard of", "doubt-1", "refused-1"} {
		if got := lookup(t, d, key); got.State != checkpoint.Forgotten || got.LeadID != "" {
			t.Errorf("%+v", got)
		}
		if err := claim(d, intentOf(key, 1)); !errors.Is(err, checkpoint.ErrBlocked) {
			t.Errorf("claim: %v", err)
		}
		if _, err := settle(d, createdEntry(key, "lead-x", 1)); !errors.Is(err, checkpoint.ErrBlocked) {
			t.Errorf("settle: %v", err)
		}
	}
	if got := lookup(t, d, neighbor); got.State != checkpoint.InDoubt {
		t.Errorf("a neighbour: %+v", got)
	}
	must.Do(t, withdraw(d, neighbor))
	if got := lookup(t, d, neighbor); got.State != checkpoint.InDoubt || got.Reason != checkpoint.ReasonLeadTaken || got.LeadID != "" {
		t.Errorf("a neighbour's earlier doubt: %+v", got)
	}
	if d.Info().Leads != 50 || d.Info().InDoubt != 3 || len(d.Info().Warnings) != 0 {
		t.Errorf("%d leads, %d in doubt, %q", d.Info().Leads, d.Info().InDoubt, d.Info().Warnings)
	}
	if left, err := checkpoint.AuditOf(t.Context(), d); err != nil || len(left) > 0 {
		t.Errorf("%v, or decisions are left: %+v", err, left)
	}
}

// numbered returns the FileInfo of a file with its file number. On Windows os.Stat reads the number only later.
func numbered(t *testing.T, path string) os.FileInfo {
	t.Helper()
	f, err := os.Open(path)
	must.Do(t, err)
	info, err := f.Stat()
	must.Do(t, errors.Join(err, f.Close()))
	return info
}

// A compacted copy that lacks a record does not replace the file. faults 22, 120
func TestIncompleteCopyIsNotPutInPlace(t *testing.T) {
	path := newPath(t)
	withPerson(t, path).Close()
	path = killed(t, path)
	d := open(t, path, Options{AnyPlace: true})
	forget(t, d, person)
	more := *d.head.Load()
	more.Counts.Entries++
	d.head.Store(&more)
	before := numbered(t, path)
	if err := d.Close(); !errors.Is(err, checkpoint.ErrDamaged) {
		t.Errorf("close: %v", err)
	}
	if !os.SameFile(before, numbered(t, path)) {
		t.Error("the copy replaced the file")
	}
}

// After a kill before or during compaction, the next writer removes the half copy and compacts the file. fault 120
func TestForgettingIsFinishedAfterAKill(t *testing.T) {
	path := newPath(t)
	d := withPerson(t, path)
	forget(t, d, person)
	copied := killed(t, path)
	content("half a copy of "+person)(t, copied+".compact")
	if traces(t, copied) < 2 {
		t.Fatal("the file was compacted too early for this test")
	}
	reader := opened(t, copied, Options{ReadOnly: true})
	if lookup(t, reader, person).State != checkpoint.Forgotten {
		t.Error("a reader still sees the forgotten key")
	}
	reader.Close()
	again := opened(t, copied, Options{})
	must.Do(t, again.Close())
	if n := traces(t, copied); n != 0 || len(again.Info().Warnings) != 1 {
		t.Errorf("%d traces left, %q", n, again.Info().Warnings)
	}
	again = opened(t, copied, Options{})
	if lookup(t, again, person).State != checkpoint.Forgotten || again.Info().Leads != 50 {
		t.Error("the compacted file has other entries")
	}
}

// A process that opened the file before it was replaced, and locks it afterwards, must open the new file: writes to the
// old one would be lost.
func TestReplacedFileIsNotHeld(t *testing.T) {
	path := newPath(t)
	d := withPerson(t, path)
	forget(t, d, person)
	waiting := newStore(path, Options{})
	must.Do(t, errors.Join(waiting.openFile(target()), d.Close()))
	if err := waiting.tryLock(); waiting.locked || err != nil {
		t.Errorf("locked %v, %v", waiting.locked, err)
	}
	must.Do(t, waiting.openLocked(target()))
	held, _ := waiting.file.Stat()
	if named, err := os.Stat(path); err != nil || !os.SameFile(held, named) {
		t.Error("not the new file", err)
	}
	must.Do(t, errors.Join(disk.Unlock(waiting.file), waiting.file.Close()))
}
