//go:build unix

package e2e

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
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

// missing is the number that a text gives of missing leads.
func missing(t *testing.T, text string) int {
	t.Helper()
	before, _, ok := strings.Cut(text, " leads that it knew are missing")
	n, err := strconv.Atoi(before[strings.LastIndexAny(before, " \n")+1:])
	if !ok || err != nil || n == 0 {
		t.Fatalf("nothing is said to be missing:\n%s", text)
	}
	return n
}

// A damaged checkpoint, and the README's way out: what is lost is counted and held, what
// results know comes back, nothing is made twice. faults 19, 128
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
	lost := missing(t, w.must(4, "checkpoint", "check"))
	contains(t, w.must(4, "checkpoint", "export"), fmt.Sprint(lost, " leads that it knew are missing"))
	dry := w.must(0, "checkpoint", "repair", path, "new.db", "--dry-run")
	if n := missing(t, dry); n != lost {
		t.Errorf("%d missing for check, %d for repair", lost, n)
	}
	if out := w.must(0, "checkpoint", "repair", path, "new.db"); missing(t, out) != lost {
		t.Errorf("not %d missing:\n%s", lost, out)
	}
	w.must(2, "checkpoint", "repair", path, "new.db") // is there
	contains(t, w.must(5, append(all, "--checkpoint", "new.db", "--out", "runs/held")...), "Nothing was sent")
	w.holds(300)
	if held := w.summary("runs/held/summary.json").Rows.InDoubt; held != lost+20 {
		t.Errorf("%d held, want %d that are missing and 20 that were never sent", held, lost)
	}

	// One of two results files brings part of it back, both bring all.
	part := w.must(0, "checkpoint", "repair", path, "part.db", "--results", "runs/first/results.csv")
	if n := missing(t, part); n >= lost {
		t.Errorf("%d missing with results, %d without:\n%s", n, lost, part)
	}
	w.must(5, append(all, "--checkpoint", "part.db", "--out", "none")...)
	out := w.must(0, "checkpoint", "repair", path, "whole.db", "--results", "runs/[fs]*/results.csv")
	if strings.Contains(out, "missing") {
		t.Errorf("still incomplete:\n%s", out)
	}
	for _, end := range []string{"", ".seq"} { // as is printed
		if err := os.Rename(filepath.Join(w.dir, "whole.db"+end), path+end); err != nil {
			t.Fatal(err)
		}
		if end == "" {
			w.must(0, append(all, "--out", "runs/dry", "--dry-run")...) // beside the old one's mark
		}
	}
	w.must(0, append(all, "--out", "runs/last")...)
	w.must(0, "sync", "-m", "leads.yaml", "leads.csv", "--out", "none")
	w.holds(320)
	w.must(2, "checkpoint", "repair", path, "again.db") // is in order
}

// Of a file that lost everything its neighbour knows how much that was, and results the rest.
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
	if n := missing(t, w.must(0, "checkpoint", "repair", path, "empty.db")); n != 10 {
		t.Errorf("%d missing, want 10", n)
	}
	w.must(0, "checkpoint", "repair", path, "new.db", "--results", "runs/own/results.csv")
	w.must(0, append(all, "--checkpoint", "new.db", "--out", "none")...)
	w.holds(12)
}

// Results of another checkpoint are no evidence, and those of which nobody knows whose they
// are make nothing complete.
func TestRepairBelievesOnlyResultsOfItsOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sandbox.Options{})
	w.leads(60)
	all := []string{"import", "-m", "leads.yaml", "leads.csv"}
	w.must(0, append(all, "--out", "runs/own")...)
	w.must(0, append(all, "--checkpoint", "other.db", "--limit", "1", "--out", "away/run")...)
	path := w.checkpoint()
	w.lose(path, "L00030")
	contains(t, w.must(4, "checkpoint", "repair", path, "new.db", "--results", "away/run/results.csv"), "another checkpoint", "away/run/results.csv")
	b, err := os.ReadFile(filepath.Join(w.dir, "runs", "own", "results.csv"))
	if err != nil {
		t.Fatal(err)
	}
	w.write("results.csv", string(b))
	out := w.must(0, "checkpoint", "repair", path, "new.db", "--results", "results.csv")
	contains(t, out, "no summary beside these results")
	missing(t, out)
	w.must(0, append(all, "--checkpoint", "new.db", "--out", "none")...) // all are known after all
	if leads, err := w.service.Leads(); err != nil || len(leads) != 61 {
		t.Errorf("%d leads, %v", len(leads), err)
	}
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
