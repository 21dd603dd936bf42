package mapping

import (
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"
)

// cells are columns and their cells: name and cell in turn.
type cells []string

func (c cells) bind(t testing.TB, m *Mapping, open bool) (*Binding, []string) {
	t.Helper()
	var names, values []string
	for i := 0; i < len(c); i += 2 {
		names, values = append(names, c[i]), append(values, c[i+1])
	}
	b, err := m.Bind("in.csv", Columns{Names: names, Own: len(names), Open: open})
	if b == nil {
		t.Fatal(err)
	}
	return b, values
}

func (c cells) in(t testing.TB, file string) (Record, []Problem) {
	t.Helper()
	b, values := c.bind(t, parse(t, file), false)
	var rec Record
	problems := b.Map(values, Env{File: "in.csv", Line: 7, Run: "r1"}, &rec)
	return rec, problems
}

// faults 100, 101, 106
func TestValuesComeOutAsTheFileSays(t *testing.T) {
	row := cells{"first", " Ann ", "last", "Lee", "none", " ", "E-mail", "ANN@Example.COM", "zip", "01234", "n", " N/A ", "brace", "{x}", "stage", "won"}
	tests := []struct{ name, value, want string }{
		{"a column, trimmed", `"{first}"`, "Ann"},
		{"a column with other characters", `"{E-mail}"`, "ANN@Example.COM"},
		{"white space about the name", `"{ zip }"`, "01234"},
		{"several columns, white space between kept", `"{last} {first}."`, "Lee  Ann ."},
		{"white space at the ends goes", `"{none} {first}"`, "Ann"},
		{"no column holds anything", `"no {none}"`, ""},
		{"a cell that counts as empty", `"no {n}"`, ""},
		{"a cell that counts as empty among others", `"{zip} {n}"`, "01234"},
		{"a brace", `"{{{zip}}"`, "{01234}"},
		{"cells are not filled in again", `"{brace}"`, "{x}"},
		{"a constant that looks like a number", "01234", "01234"},
		{"a constant that looks like a boolean", "no", "no"},
		{"a constant that looks like a float", "1e3", "1e3"},
		{"a constant that looks like a date", "2024-01-01", "2024-01-01"},
		{"a constant that looks like nothing", `"null"`, "null"},
		{"a constant that looks like nothing, short", `"~"`, "~"},
		{"the key", `"{@key}"`, "Lee"},
		{"file, line and run", `"{@file}:{@line} {@run}"`, "in.csv:7 r1"},
		{"a column that is empty beside the line", `"{none}{@line}"`, ""},
		{"lower", `{from: "{E-mail}", apply: [lower], format: email}`, "ann@example.com"},
		{"upper, trim", `{from: "{first}", apply: [upper, trim]}`, "ANN"},
		{"map", `{from: "{stage}", map: {won: closed, 1: x}}`, "closed"},
		{"map after apply", `{from: "{stage}", apply: [upper], map: {" WON ": closed}}`, "closed"},
		{"map to nothing", `{from: "{stage}", map: {won: ""}}`, ""},
		{"map to nothing, then default", `{from: "{stage}", map: {won: ""}, default: d}`, "d"},
		{"map is not asked for empty texts", `{from: "{none}", map: {x: y}}`, ""},
		{"else", `{from: "{last}", map: {x: y}, else: other}`, "other"},
		{"else with the text itself", `{from: "{last}", map: {x: y}, else: "<{}> {{"}`, "<Lee> {"},
		{"else with nothing", `{from: "{last}", map: {x: y}, else: ""}`, ""},
		{"default", `{from: "{none}", default: 007}`, "007"},
		{"default not needed", `{from: "{last}", default: x}`, "Lee"},
		{"required and there", `{from: "{last}", required: true}`, "Lee"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			rec, problems := row.in(t, "version: 1\nsource: {null: [N/A]}\nkey: '{last}'\nlead:\n  content:\n    x: "+tt.value+"\n")
			if problems != nil {
				t.Fatalf("problems: %v", problems)
			}
			got := ""
			for _, f := range rec.Content {
				got = f.Value
			}
			if got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

// faults 101, 102, 103
func TestARowReportsAllItsProblemsWithoutItsValues(t *testing.T) {
	file := `
version: 1
key: "{id}"
assign:
  - organization: "{org}"
  - {locator: L, type: regions, postal_code: "{zip}"}
lead:
  status: {from: "{stage}", map: {Working: inProgress}, else: "{}"}
  external_id: "{crm}"
  content:
    name: {from: "{first} {last}", required: true}
    email: {from: "{email}", format: email}
    kind: {from: "{kind}", map: {a: b}}
`
	row := cells{"id", " ", "org", "", "zip", " ", "stage", "Secret", "crm", "", "first", "", "last", "", "email", "Secret", "kind", "Secret"}
	_, got := row.in(t, file)
	want := []Problem{
		{Column: "id", Rule: "key", Text: "key is empty, but every row needs one"},
		{Column: "crm", Rule: "required", Text: "lead.external_id is empty, but required"},
		{Column: "", Rule: "assign", Text: "no entry of assign has all that it needs, since these columns are empty: \"org\", \"zip\""},
		{Column: "stage", Rule: "status", Text: "lead.status is neither a status of the service nor mapped to one", Word: "Secret", Value: "lead.status"},
		{Column: "first, last", Rule: "required", Text: "lead.content.name is empty, but required"},
		{Column: "email", Rule: "format", Text: "lead.content.email is not an e-mail address"},
		{Column: "kind", Rule: "map", Text: "lead.content.kind has a text that its map lacks, and there is no else", Word: "Secret", Value: "lead.content.kind"},
	}
	same(t, "problems", want, got)
}

func TestAssignTakesTheFirstEntryThatFits(t *testing.T) {
	file := `
version: 1
assign:
  - organization: {from: "{org}", map: {none: ""}, else: "{}"}
  - locator: L1
    type: radius
    search_text: "{street}, {city}"
  - locator: L2
    type: regions
    postal_code: "{zip}"
  - organization: {expr: 'coalesce(upper(region), country == "AT" ? "vienna" : "")'}
  - locator: "L-{country}"
    type: regions-radius
    search_text: {from: "{street}, {city}", default: Berlin}
`
	tests := []struct {
		name string
		row  cells
		want Record
	}{
		{"an organization", cells{"org", "o-1", "street", "S", "city", "C", "zip", "", "region", "r", "country", ""}, Record{Organization: "o-1"}},
		{"an organization mapped to nothing", cells{"org", "none", "street", "S", "city", "C", "zip", "", "region", "r", "country", ""}, Record{Locator: "L1", SearchText: "S, C"}},
		{"a column of the second is empty", cells{"org", "", "street", " ", "city", "C", "zip", "01234", "region", "r", "country", ""}, Record{Locator: "L2", PostalCode: "01234"}},
		{"an expression", cells{"org", "", "street", "", "city", "C", "zip", "", "region", "r", "country", ""}, Record{Organization: "R"}},
		{"an expression whose first column is empty", cells{"org", "", "street", "", "city", "C", "zip", "", "region", "", "country", "AT"}, Record{Organization: "vienna"}},
		{"a default is used", cells{"org", "", "street", "", "city", "C", "zip", "", "region", "", "country", "DE"}, Record{Locator: "L-DE", SearchText: "Berlin"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, problems := tt.row.in(t, file)
			if problems != nil {
				t.Fatalf("problems: %v", problems)
			}
			same(t, "record", tt.want, got, cmpopts.IgnoreFields(Record{}, "Key"), cmpopts.EquateEmpty())
		})
	}
}

func TestAnEntryOfAssignThatBreaksARuleIsNotSkipped(t *testing.T) {
	file := "version: 1\nassign:\n- organization: {from: '{org}', map: {a: b}}\n- organization: other\n"
	_, got := cells{"org", "x"}.in(t, file)
	want := []Problem{{Column: "org", Rule: "map", Text: "assign[1].organization has a text that its map lacks, and there is no else", Word: "x", Value: "assign[1].organization"}}
	same(t, "problems", want, got)
}

// A word that a table maps to nothing is not decided yet: the next entry of assign is used.
func TestAWordThatIsMappedToNothingLeavesItToTheNextEntry(t *testing.T) {
	file := "version: 1\ntables: {dealers: {a: '', b: o-1}}\nassign:\n- organization: {from: '{org}', apply: [lower], map: dealers}\n- {organization: '{other}'}\n"
	_, got := cells{"org", "A", "other", ""}.in(t, file)
	same(t, "problems", []Problem{{Rule: "assign", Text: `no entry of assign has all that it needs, since these columns are empty: "other"`}}, got)
	_, got = cells{"org", "A", "other", "x"}.in(t, "version: 1\nassign: [{organization: {from: '{org}', map: {A: ''}}}]\n")
	same(t, "problems", []Problem{{Rule: "assign", Text: "no entry of assign has all that it needs"}}, got)
	if rec, got := (cells{"org", "A", "other", "o-2"}).in(t, file); got != nil || rec.Organization != "o-2" {
		t.Errorf("%+v, %v", rec, got)
	}
	if _, got := (cells{"org", "", "other", ""}).in(t, file); len(got) != 1 || got[0].Value != "" {
		t.Errorf("a blank cell is no word of a table: %v", got)
	}
}

// faults 102
func TestStatusTakesKeysAndLabelsInAnyCase(t *testing.T) {
	want := map[string]string{
		"New": "open", "Contact Attempted": "contacted", "In Progress": "inProgress", "On Hold": "onHold",
		"Closed | Won": "closedWon", "Closed | Not Interested": "closedNotInterested",
		"Closed | Bought Used": "closedBoughtUsed", "Closed | Bought Other Brand": "closedBoughtOtherBrand",
	}
	for label, key := range want {
		for _, text := range []string{label, key, strings.ToUpper(label), strings.ToLower(key), " " + key + " "} {
			rec, problems := cells{"s", text}.in(t, "version: 1\nlead: {status: '{s}'}\n")
			if problems != nil || rec.Status != key {
				t.Errorf("%q: %q %v, want %s", text, rec.Status, problems, key)
			}
		}
		if rec, _ := (cells{"s", ""}).in(t, "version: 1\nlead: {status: '"+label+"'}\n"); rec.Status != key {
			t.Errorf("the constant %q: %q, want %s", label, rec.Status, key)
		}
		rec, _ := cells{"s", "x"}.in(t, "version: 1\nlead: {status: {from: '{s}', map: {x: '"+label+"'}}}\n")
		if rec.Status != key {
			t.Errorf("%q by map: %q, want %s", label, rec.Status, key)
		}
	}
	if rec, problems := (cells{"s", " "}).in(t, "version: 1\nlead: {status: '{s}'}\n"); problems != nil || rec.Status != "" {
		t.Errorf("an empty status: %q %v, want none", rec.Status, problems)
	}
}

func TestARecordIsWhole(t *testing.T) {
	file := `
version: 1
assign: [{organization: "{org}"}]
lead:
  type_key: contact-form
  type_label: Contact form
  external_id: " {id} "
  content:
    name: "{name}"
    nothing: "{none}"
    ref: "{@key}"
    row: "{@line}"
`
	rec, problems := cells{"org", "o", "id", " 7 ", "name", "Ann", "none", ""}.in(t, file)
	if problems != nil {
		t.Fatalf("problems: %v", problems)
	}
	want := Record{
		Key: "7", Organization: "o", TypeKey: "contact-form", TypeLabel: "Contact form", ExternalID: "7",
		Content: []Field{{Name: "name", Value: "Ann"}, {Name: "ref", Value: "7"}, {Name: "row", Value: "7", Volatile: true}},
	}
	same(t, "record", want, rec)
}

func TestAReusedRecordHoldsNothingOfTheRowBefore(t *testing.T) {
	file := "version: 1\nkey: '{id}'\nassign: [{organization: '{a}'}]\nlead: {status: '{a}', content: {a: '{a}'}}\n"
	b, _ := cells{"id", "", "a", ""}.bind(t, parse(t, file), false)
	var rec Record
	b.Map([]string{"1", "open"}, Env{}, &rec)
	if problems := b.Map([]string{"2", ""}, Env{}, &rec); len(problems) != 1 {
		t.Errorf("problems: %v, want one of assign", problems)
	}
	same(t, "record", Record{Key: "2", Content: []Field{}}, rec)
}

// The form of the default key is a promise: with another one, every row of a file
// that was imported before would make a second lead.
func TestTheDefaultKeyStaysWhatItIs(t *testing.T) {
	const want = "row-a042b1a67532a4fa802fe9fb19396ae9"
	for _, row := range []cells{
		{"id", "7", "name", "Ann"},
		{"name", " Ann ", "id", "7\t"},
		{"id", "7", "name", "Ann", "added", " "},
		{"ID", "7", "Name", "Ann"},
	} {
		if rec, _ := row.in(t, "version: 1\n"); rec.Key != want {
			t.Errorf("%q: %s, want %s", row, rec.Key, want)
		}
	}
	one, _ := cells{"a", "aa", "aa", ""}.in(t, "version: 1\n")
	two, _ := cells{"a", "", "aa", "a"}.in(t, "version: 1\n")
	if one.Key == two.Key {
		t.Error("name and value run into one another")
	}
	// é as macOS writes it, and as other systems do.
	one, _ = cells{"pre\u0301nom", "Jose\u0301"}.in(t, "version: 1\n")
	two, _ = cells{"pr\u00e9nom", "Jos\u00e9"}.in(t, "version: 1\n")
	if one.Key != two.Key {
		t.Error("two forms of one text are two keys")
	}
}

// tenFields is a mapping of ten content keys with a table, a format and a template.
const tenFields = `
version: 1
key: "{id}"
assign: [{organization: "{org}"}]
lead:
  type_key: contact-form
  type_label: Contact form
  status: {from: "{stage}", map: {Working: inProgress, Dead: closedNotInterested}, else: open}
  content:
    name: "{first} {last}"
    email: {from: "{email}", apply: [lower], format: email, required: true}
    phone: "{phone}"
    street: "{street}"
    city: "{city}"
    postalCode: "{zip}"
    country: {from: "{country}", default: DE}
    company: "{company}"
    message: "{message}"
    source: website
`

func tenCells() cells {
	return cells{
		"id", "4711", "org", "0b1c2d3e-0000-4000-8000-000000000001", "stage", "Working", "first", "Ann", "last", "Lee",
		"email", "Ann.Lee@Example.com", "phone", "+49 30 123456", "street", "Hauptstr. 1", "city", "Berlin", "zip", "01234",
		"country", "", "company", "Acme GmbH", "message", "Please call me back, I would like to have an offer.",
	}
}

func TestOneBindingServesManyGoroutines(t *testing.T) {
	file := tenFields + "    twice: {expr: 'string(int(id) * 2) + first'}\n    dialled: {from: '{phone}', apply: ['e164:DE']}\n"
	b, values := tenCells().bind(t, parse(t, file), false)
	var want Record
	if problems := b.Map(values, Env{}, &want); problems != nil {
		t.Fatalf("problems: %v", problems)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			var rec Record
			for range 100 {
				b.Map(values, Env{}, &rec)
			}
			same(t, "record", want, rec)
		})
	}
	wg.Wait()
}
