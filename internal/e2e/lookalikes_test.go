package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"leadferry/leadapi/sandbox"
)

// spellings are keys that look alike.
var spellings = []string{"Ann@X.example", "ann@x.example", "ANN@x.example", " ann @x.example", "ann\u200b@x.example", "Ann＠x.example"}

// TestLookAlikesAreOneForOrder has rows of few people under many spellings in one file, many
// in flight: each is made once, whichever of its rows comes first in the file, and all
// others are held; or, where that is asked for, one lead a spelling. faults 79, 131
func TestLookAlikesAreOneForOrder(t *testing.T) {
	t.Parallel()
	const people = 6
	for _, mode := range []string{"hold", "create"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, sandbox.Options{Faults: "create.slow/3:20ms"})
			w.write("leads.yaml", mappingText)
			text := "id,org,name\n"
			for round := range 3 {
				for i := range people * len(spellings) {
					key := spellings[(i/people+i)%len(spellings)]
					text += fmt.Sprintf("%d-%s,%s,Person %d %d\n", i%people, key, sandbox.Organizations()[0].ID, i%people, round)
				}
			}
			w.write("leads.csv", text)
			w.run("import", "-m", "leads.yaml", "leads.csv", "-c", "16", "--look-alikes", mode, "--out", "run", "--changed", "ignore")
			want := people
			if mode == "create" {
				want *= len(spellings)
			}
			if n := len(w.byRef()); n != want || w.creates() != want {
				t.Errorf("%d leads by %d creates, want %d", n, w.creates(), want)
			}
			first := map[string]string{}
			for _, r := range w.results("run/results.csv") {
				first[r["row"]] = r["outcome"]
			}
			for i := range people { // the first row of each person
				if got := first[itoa(i+1)]; got != "created" {
					t.Errorf("row %d: %s", i+1, got)
				}
			}
			w.must(0, "checkpoint", "check")
			w.run("import", "-m", "leads.yaml", "leads.csv", "-c", "16", "--look-alikes", mode, "--out", "none", "--changed", "ignore")
			if w.creates() != want {
				t.Errorf("%d creates after another run", w.creates())
			}
		})
	}
}

// TestWhatLooksLikeADoubt is held until the doubt is gone; then whoever comes first is made,
// and the others are held. A refusal holds nobody. faults 131
func TestWhatLooksLikeADoubt(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sandbox.Options{Faults: "create.drop#1,create.422#2"})
	org := sandbox.Organizations()[0].ID
	w.write("leads.yaml", mappingText)
	row := func(keys ...string) string {
		return "id,org,name\n" + strings.Join(keys, ","+org+",Ann\n") + "," + org + ",Ann\n"
	}
	w.write("zeros.csv", row("007"))
	w.write("bare.csv", row("7"))
	w.write("spaced.csv", row("0 07"))
	outcome := func(code int, file string) string {
		w.must(code, "import", "-m", "leads.yaml", file, "--out", "run")
		return w.results("run/results.csv")[0]["outcome"]
	}
	for _, step := range []struct {
		file, want string
		code       int
	}{
		{"zeros.csv", "in_doubt", 5},
		{"bare.csv", "conflict", 1},
		{"forget", "", 0},
		{"bare.csv", "rejected", 1},
		{"spaced.csv", "created", 0},
		{"zeros.csv", "conflict", 1},
		{"bare.csv", "rejected", 1},
		{"spaced.csv", "unchanged", 0},
	} {
		if step.file == "forget" {
			w.must(0, "checkpoint", "forget", "--unblock", "007")
			continue
		}
		if got := outcome(step.code, step.file); got != step.want {
			t.Errorf("%s: %s, want %s", step.file, got, step.want)
		}
	}
	if n := len(w.byRef()); n != 1 {
		t.Errorf("%d leads", n)
	}
	w.must(0, "checkpoint", "check")
}

// TestTheShapeIsNotedBeforeTheFirstLead kills an import once its first intent is durable: a
// lead may have been made, so that the same file by another key is refused. Before that
// nothing has been noted. faults 2, 131
func TestTheShapeIsNotedBeforeTheFirstLead(t *testing.T) {
	t.Parallel()
	for point, code := range map[string]int{"before intent": 0, "durable intent": 2} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, sandbox.Options{})
			w.leads(3)
			if !w.dieAt(point, 1, 1) {
				t.Fatal("it ended by itself")
			}
			w.write("other.yaml", strings.Replace(mappingText, `key: "{id}"`, `key: "{id}-{org}"`, 1))
			w.must(code, "import", "-m", "other.yaml", "leads.csv", "--out", "none")
			if n, want := w.creates(), map[int]int{0: 3, 2: 0}[code]; n != want {
				t.Errorf("%d creates, want %d", n, want)
			}
		})
	}
}

// What spreadsheets and CRMs make of a key is the same key: it is held, not made once more. A key of which digits are lost is
// invalid. fault 149
func TestKeysAsOtherProgramsSpellThem(t *testing.T) {
	t.Parallel()
	const uuid = "0b1c2d3e-0000-4000-8000-00000000abcd"
	for known, spelled := range map[string][]string{
		"1001":            {"1001.0", `"=""1001"""`, "'1001", "+1001", `"1,001"`, "01001"},
		uuid:              {"{" + uuid + "}", strings.ToUpper(uuid)},
		"001A0000006Vm9u": {"001A0000006Vm9uIAC"},
	} {
		t.Run(known, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, sandbox.Options{})
			w.write("leads.yaml", mappingText)
			file := func(keys ...string) string {
				return "id,org,name\n" + strings.Join(keys, ","+sandbox.Organizations()[0].ID+",Ann\n") + "," + sandbox.Organizations()[0].ID + ",Ann\n"
			}
			w.write("leads.csv", file(known))
			w.must(0, "import", "-m", "leads.yaml", "leads.csv")
			w.write("again.csv", file(spelled...))
			w.must(1, "import", "-m", "leads.yaml", "again.csv", "--out", "again")
			for _, r := range w.results("again/results.csv") {
				if r["outcome"] != "conflict" {
					t.Errorf("%s: %s", r["key"], r["outcome"])
				}
			}
			w.write("cut.csv", file("1.23457E+11"))
			w.must(1, "import", "-m", "leads.yaml", "cut.csv", "--out", "cut", "--max-invalid", "0")
			if r := w.results("cut/results.csv"); r[0]["outcome"] != "invalid" || !strings.Contains(r[0]["error"], "cut by a spreadsheet") {
				t.Errorf("a cut key: %v", r)
			}
			w.holds(1)
		})
	}
}

// Two rows never come to one ExternalID, whichever command made the first one's lead: a row of another key is held. What is not
// another row's stays free.
func TestAnExternalIDIsOneRows(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sandbox.Options{})
	org := sandbox.Organizations()[0].ID
	w.write("leads.yaml", "version: 1\nkey: \"{id}\"\nassign: [{organization: \"{org}\"}]\nlead:\n  type_key: a\n  type_label: A\n  external_id: \"{crm}\"\n  content: {name: \"{name}\"}\n")
	w.write("leads.csv", "id,org,crm,name\n1,"+org+",E1,Ann\n2,"+org+",E1,Bob\n3,"+org+",E3,Cid\n")
	again := func(code int, want string, args ...string) {
		t.Helper()
		w.must(code, append(args, "--out", "run")...)
		var got []string
		for _, r := range w.results("run/results.csv") {
			got = append(got, r["key"]+" "+r["outcome"]+" "+map[bool]string{true: "a lead"}[r["lead_id"] != ""])
		}
		if slices.Sort(got); strings.Join(got, ", ") != want {
			t.Errorf("%v: %q, want %s", args, got, want)
		}
	}
	importing := []string{"import", "-m", "leads.yaml", "leads.csv"}
	again(1, "1 created a lead, 2 conflict , 3 created a lead", importing...)
	again(1, "1 unchanged a lead, 2 conflict , 3 unchanged a lead", importing...)
	w.write("leads.csv", "id,org,crm,name\n4,"+org+",E3,Cid\n5,"+org+",E9,Eve\n")
	again(1, "4 conflict , 5 created a lead", importing...)
	again(0, "4 unchanged a lead, 5 unchanged a lead", "sync", "-m", "leads.yaml", "leads.csv", "--missing", "create")
	again(1, "4 conflict , 5 unchanged a lead", importing...)
	if n := w.creates(); n != 3 {
		t.Errorf("%d creates, want 3", n)
	}
}
