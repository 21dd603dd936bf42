package mapping

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

const people = `
version: 1
key: "{id}"
lead:
  content:
    name: "{first nam} {last}"
    street: "{addr.street}"
    phones: {from: "{phones.0}"}
`

// faults 105
func TestBindTellsEveryColumnThatTheInputLacks(t *testing.T) {
	m := parse(t, people)
	_, err := m.Bind("leads.csv", Columns{Names: []string{"id", "First Name", "last", "phones.0"}, Own: 4})
	want := "m:6:11: lead.content.name: leads.csv has no column \"first nam\"\nhint: did you mean \"First Name\"?\n" +
		"m:7:13: lead.content.street: leads.csv has no column \"addr.street\""
	if err == nil {
		t.Fatal("the columns were not missed")
	}
	if diff := cmp.Diff(want, err.Error()); diff != "" {
		t.Errorf("errors (-want +got):\n%s", diff)
	}
}

func TestAnOpenInputMayLackColumns(t *testing.T) {
	b, err := parse(t, people).Bind("leads.jsonl", Columns{Names: []string{"phones", "id", "other", "phones.0"}, Own: 3, Open: true})
	if err != nil {
		t.Fatal(err)
	}
	var rec Record
	if problems := b.Map([]string{"[1]", "7", "x", "1"}, Env{}, &rec); problems != nil {
		t.Fatalf("problems: %v", problems)
	}
	if diff := cmp.Diff(Record{Key: "7", Content: []Field{{Name: "phones", Value: "1"}}}, rec); diff != "" {
		t.Errorf("record (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"other"}, b.Unused()); diff != "" {
		t.Errorf("unused (-want +got):\n%s", diff)
	}
}

func TestOneMappingServesInputsWithOtherOrders(t *testing.T) {
	m := parse(t, "version: 1\nkey: '{id}'\nlead: {content: {a: '{a}'}}\n")
	first, cellsOfFirst := cells{"id", "1", "a", "x"}.bind(t, m, false)
	second, cellsOfSecond := cells{"a", "y", "b", "", "id", "2"}.bind(t, m, false)
	var one, two Record
	first.Map(cellsOfFirst, Env{}, &one)
	second.Map(cellsOfSecond, Env{}, &two)
	want := []Record{{Key: "1", Content: []Field{{Name: "a", Value: "x"}}}, {Key: "2", Content: []Field{{Name: "a", Value: "y"}}}}
	if diff := cmp.Diff(want, []Record{one, two}); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
}

func TestPathsAreThePlaceholdersWithADot(t *testing.T) {
	m := parse(t, "version: 1\nkey: '{a.b}'\nlead: {status: '{a.0}', content: {x: '{a.b} {c}'}}\n")
	if diff := cmp.Diff([]string{"a.b", "a.0"}, m.Paths()); diff != "" {
		t.Errorf("paths (-want +got):\n%s", diff)
	}
}

func TestNearest(t *testing.T) {
	names := []string{"email", "First Name", "zip", "organization"}
	if got := Nearest("ue", []string{"us", "eu"}); got != "eu" {
		t.Errorf("ue: %q: swapped letters are the likelier slip", got)
	}
	for name, want := range map[string]string{
		"emial": "email", "EMAIL": "email", "e-mail": "email", "first_name": "First Name", "zap": "zip",
		"organisatoin": "organization", "": "", "phone": "", "xyz": "", "ema": "",
	} {
		if got := Nearest(name, names); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}
