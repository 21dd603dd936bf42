//go:build unix

package e2e

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"leadferry/leadapi/sandbox"
)

// lose overwrites every page of a file in which a text stands.
func (w *world) lose(path, text string) {
	w.t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		w.t.Fatal(err)
	}
	hit := false
	for at := 0; at < len(b); at += os.Getpagesize() {
		page := b[at:min(len(b), at+os.Getpagesize())]
		switch {
		case !bytes.Contains(page, []byte(text)):
			continue
		case bytes.Contains(page, []byte("header")): // what the file says of itself stands there, too, and stays
			copy(page, bytes.ReplaceAll(page, []byte(text), bytes.Repeat([]byte("?"), len(text))))
		default:
			clear(page)
		}
		hit = true
	}
	if !hit {
		w.t.Fatalf("%s does not hold %s", path, text)
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// A damaged checkpoint, and the runbook's way out: what results know comes back, what nobody knows is held, nothing is
// made twice. faults 19, 128
func TestRepairMakesNothingTwice(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sandbox.Options{})
	w.leads(320)
	all := []string{"import", "-m", "leads.yaml", "leads.csv"}
	w.must(0, append(all, "--limit", "200", "--out", "runs/first")...)
	w.must(0, append(all, "--limit", "300", "--out", "runs/second")...)
	path := w.checkpoint()
	w.lose(path, "L00050")
	w.lose(path, "L00250")

	contains(t, w.must(4, append(all, "--out", "runs/third")...), "is damaged", "leadferry checkpoint repair")
	w.must(4, "checkpoint", "check")
	contains(t, w.must(4, "checkpoint", "export"), "Whatever adopts it is incomplete")
	w.must(0, "checkpoint", "repair", path, "new.db", "--dry-run")
	contains(t, w.must(0, "checkpoint", "repair", path, "new.db"), "incomplete")
	w.must(2, "checkpoint", "repair", path, "new.db") // is there
	if err := os.Remove(filepath.Join(w.dir, "new.db")); err != nil {
		t.Fatal(err)
	}

	contains(t, w.must(0, "checkpoint", "repair", path, "whole.db", "--results", "runs/[fs]*/results.csv"), "incomplete")
	if err := os.Rename(filepath.Join(w.dir, "whole.db"), path); err != nil { // as is printed
		t.Fatal(err)
	}
	contains(t, w.must(5, append(all, "--out", "runs/last")...), "20 rows were held, not sent")
	w.must(0, "checkpoint", "check", "--accept-loss", "--yes")
	w.must(0, append(all, "--out", "none")...)
	w.must(0, "sync", "-m", "leads.yaml", "leads.csv", "--out", "none")
	w.holds(320)
	w.must(2, "checkpoint", "repair", path, "again.db") // is in order
}

// Of a file that lost everything, results know what they know; the rest is held.
func TestRepairOfNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sandbox.Options{})
	w.leads(12)
	all := []string{"import", "-m", "leads.yaml", "leads.csv"}
	w.must(0, append(all, "--limit", "10", "--out", "runs/own")...)
	path := w.checkpoint()
	w.write("notes.txt", "nothing of a checkpoint")
	contains(t, w.must(4, "checkpoint", "repair", "notes.txt", "new.db"), "holds nothing of a checkpoint")
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	w.must(4, "checkpoint", "repair", path, "empty.db")
	w.must(0, "checkpoint", "repair", path, "new.db", "--results", "runs/own/results.csv")
	contains(t, w.must(5, append(all, "--checkpoint", "new.db", "--out", "none")...), "2 rows were held, not sent")
	w.holds(10)
}

// Results of another checkpoint are no evidence.
func TestRepairBelievesOnlyResultsOfItsOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sandbox.Options{})
	w.leads(60)
	all := []string{"import", "-m", "leads.yaml", "leads.csv"}
	w.must(0, append(all, "--out", "runs/own")...)
	other := append(all, "--checkpoint", "other.db", "--limit", "1", "--out", "away/run")
	w.must(0, append(other, id(t, w.must(4, other...), "--new-checkpoint"))...)
	path := w.checkpoint()
	w.lose(path, "L00030")
	contains(t, w.must(4, "checkpoint", "repair", path, "new.db", "--results", "away/run/results.csv"), "another checkpoint", "away/run/results.csv")
	w.write("results.csv", w.read("runs/own/results.csv"))
	contains(t, w.must(0, "checkpoint", "repair", path, "new.db", "--results", "results.csv"), "incomplete")
}

// A checkpoint that is damaged a second time is put in its place by what is printed, too: what was put aside the first
// time must not stand in the way. faults 127, 128
func TestRepairedTwiceByWhatIsPrinted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sandbox.Options{})
	w.leads(300)
	all := []string{"import", "-m", "leads.yaml", "leads.csv"}
	w.must(0, append(all, "--out", "runs/own")...)
	path := w.checkpoint()
	for _, made := range []string{"first.db", "second.db", "third.db"} {
		w.lose(path, "L00005")
		out := w.must(0, "checkpoint", "repair", path, made, "--results", "runs/own/results.csv")
		_, moves, _ := strings.Cut(out, "To put it in the old one's place:\n")
		if code, said := w.paste(moves); code != 0 {
			t.Fatalf("%s\n%s", moves, said)
		}
		w.paste(moves) // twice
		w.must(0, append(all, "--out", "none")...)
	}
	w.holds(300)
}
