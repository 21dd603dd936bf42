package e2e

import (
	"strings"
	"testing"

	"leadferry/leadapi/sandbox"
)

// A list decides what a person has looked up: a word that a program or a translator wrote frees no row, and a list that does
// not say which send it is about decides no second one. fault 147
func TestResolveListsThatDecideNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sandbox.Options{Faults: "create.drop-stored#1,create.drop-stored#2"})
	w.leads(3)
	all := []string{"import", "-m", "leads.yaml", "leads.csv", "-c", "1"}
	w.must(5, append(all, "--limit", "1")...)
	doubt := w.exported("in_doubt")
	if len(doubt) != 1 {
		t.Fatalf("in doubt: %v", doubt)
	}
	key := doubt[0]["key"]
	list := func(word string) string { return "key,lead_id\n" + key + "," + word + "\n" }
	for _, word := range []string{"None", "NONE", "NULL", "nan", "NaN", "n/a", "#N/A", "false", "keine", "2nd", "1st", "yes", "TBD", "0", "42", "created"} {
		w.write("list.csv", list(word))
		w.must(2, "checkpoint", "resolve", "list.csv")
	}
	if n := len(w.exported("in_doubt")); n != 1 {
		t.Fatalf("%d rows in doubt, want 1", n)
	}
	w.write("list.csv", list("none"))
	w.must(0, "checkpoint", "resolve", "list.csv")
	w.must(5, append(all, "--limit", "1")...) // sent again, and in doubt again
	if out := w.must(2, "checkpoint", "resolve", "list.csv"); !strings.Contains(out, "export the list anew") {
		t.Errorf("the same list a second time:\n%s", out)
	}
	if n := len(w.exported("in_doubt")); n != 1 {
		t.Errorf("%d rows in doubt, want 1", n)
	}
	w.write("anew.csv", strings.Replace(w.must(0, "checkpoint", "export", "--state", "in_doubt"), ",in_doubt,,", ",in_doubt,exists,", 1))
	w.must(0, "checkpoint", "resolve", "anew.csv")
}
