package e2e

import (
	"fmt"
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
