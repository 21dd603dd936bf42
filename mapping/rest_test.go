package mapping

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"leadferry/internal/testsupport/must"
)

const withRest = `
version: 1
key: "{id}"
skip_if: 'test == "yes"'
assign: [{organization: "{org}"}]
lead:
  content:
    name: "{first}"
    "*": rest
    last: "{surname}"
`

func TestRestIsEveryColumnThatNothingElseUses(t *testing.T) {
	row := cells{"notes", " x ", "id", "7", "test", "no", "org", "o", "first", "Ann", "surname", "Lee", "last", "dropped", "empty", " ", "zip", "01234", " ", "blank"}
	b, values := row.bind(t, parse(t, withRest), false)
	var rec Record
	if problems := b.Map(values, Env{}, &rec); problems != nil {
		t.Fatalf("problems: %v", problems)
	}
	want := []Field{{Name: "name", Value: "Ann"}, {Name: "notes", Value: "x"}, {Name: "zip", Value: "01234"}, {Name: "last", Value: "Lee"}}
	same(t, "content", want, rec.Content)
	same(t, "unused", []string{"last", " "}, b.Unused)
}

func TestRestLeavesOutCellsThatNullNames(t *testing.T) {
	rec, _ := cells{"a", "N/A", "b", "x"}.in(t, "version: 1\nsource: {null: [N/A]}\nlead: {content: {'*': rest}}\n")
	same(t, "content", []Field{{Name: "b", Value: "x"}}, rec.Content)
}

// If a path of a column is used, only the rest of the column goes in. Paths never do.
func TestRestOfRowsOfSeveralShapes(t *testing.T) {
	m := parse(t, "version: 1\nkey: '{id}'\nlead: {content: {street: '{addr.street}', phone: {expr: '$env[\"tel.0.number\"]'}, '*': rest}}\n")
	same(t, "paths", []string{"addr.street", "tel.0.number"}, m.Paths())
	for _, shape := range []struct {
		columns Columns
		row     []string
		want    []Field
	}{
		{
			Columns{Names: []string{"addr", "id", "x", "addr.street"}, Own: 3, Open: true},
			[]string{`{"street":"S"}`, "1", "y", "S"},
			[]Field{{Name: "street", Value: "S"}, {Name: "x", Value: "y"}},
		},
		{
			Columns{Names: []string{"tel", "z", "tel.0.number"}, Own: 2, Open: true},
			[]string{`[{"number":1}]`, "z", "1"},
			[]Field{{Name: "phone", Value: "1"}, {Name: "z", Value: "z"}},
		},
	} {
		b, err := m.Bind("in", shape.columns)
		must.Do(t, err)
		var rec Record
		b.Map(shape.row, Env{}, &rec)
		same(t, "content", shape.want, rec.Content)
		if b.Unused != nil {
			t.Errorf("unused: %q", b.Unused)
		}
	}
}

// faults 100, 101
func TestExplicitColumnsAndTheRestAreEveryColumnOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z]{1,4}( [a-z])?`), 1, 12, rapid.ID[string]).Draw(t, "names")
		values := rapid.SliceOfN(rapid.StringMatching(` ?[0-9a-zäö]{0,3} ?`), len(names), len(names)).Draw(t, "values")
		var b strings.Builder
		b.WriteString("version: 1\nlead:\n  content:\n")
		for i, name := range names {
			switch rapid.IntRange(0, 3).Draw(t, "use") {
			case 0:
				b.WriteString("    explicit-" + name + ": '{" + name + "}'\n")
			case 1:
				b.WriteString("    explicit-" + name + ": {expr: '$env[\"" + name + "\"]'}\n")
			}
			if i == len(names)/2 {
				b.WriteString("    '*': rest\n")
			}
		}
		rec := recordOf(t, b.String(), names, values, len(names))
		want, got := map[string]string{}, map[string]string{}
		for i, name := range names {
			if cell := strings.TrimSpace(values[i]); cell != "" {
				want[name] = cell
			}
		}
		for _, f := range rec.Content {
			name := strings.TrimPrefix(f.Name, "explicit-")
			if _, again := got[name]; again {
				t.Fatalf("%s goes in twice", name)
			}
			got[name] = f.Value
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("content (-want +got):\n%s", diff)
		}
		inRest := slices.DeleteFunc(slices.Clone(rec.Content), func(f Field) bool { return strings.HasPrefix(f.Name, "explicit-") })
		if !slices.IsSortedFunc(inRest, func(x, y Field) int { return slices.Index(names, x.Name) - slices.Index(names, y.Name) }) {
			t.Fatalf("the rest %v is not in the order of the columns %q", inRest, names)
		}
	})
}

func TestSiblingsOfAMemberAreRest(t *testing.T) {
	m := parse(t, "version: 1\nkey: '{id}'\nlead: {content: {email: '{p.email}', first: '{p.tels.0}', deep: {expr: '$env[\"p.a.b\"]'}, '*': rest}}\n")
	for p, want := range map[string]string{
		`{"email":"a@x","city":"Bonn", "n": 1.50}`:                `{"city":"Bonn","n":1.50}`,
		`{"\u0065mail":"a@x","tels":["1","2"],"x":{"email":"b"}}`: `{"tels":[null,"2"],"x":{"email":"b"}}`,
		`{"a":{"b":1,"c":[ 2 ]},"email":"x"}`:                     `{"a":{"c":[2]}}`,
		`{"email":"a@x","tels":["1"],"a":{"b":1}}`:                "",
		`{"city":"Bonn" }`:                                        `{"city":"Bonn" }`,
		`{"email":"a@x","city":null}`:                             "",
		`a text`:                                                  `a text`,
	} {
		b, err := m.Bind("in", Columns{Names: []string{"id", "p", "p.email", "p.tels.0", "p.a.b"}, Own: 2, Open: true})
		must.Do(t, err)
		var rec Record
		if problems := b.Map([]string{"7", p, "", "", ""}, Env{}, &rec); problems != nil {
			t.Fatal(problems)
		}
		var fields []Field
		if want != "" {
			fields = []Field{{Name: "p", Value: want}}
		}
		if diff := cmp.Diff(fields, rec.Content, cmpopts.EquateEmpty()); diff != "" || len(b.Unused) > 0 {
			t.Errorf("%s: content (-want +got):\n%s\nunused %v", p, diff, b.Unused)
		}
	}
}

// In a table a.b is a column like any other.
func TestADotInTheNameOfAColumnIsNoPath(t *testing.T) {
	rec, _ := cells{"a", "1", "a.b", "2"}.in(t, "version: 1\nlead: {content: {x: '{a.b}', '*': rest}}\n")
	same(t, "result", []Field{{Name: "x", Value: "2"}, {Name: "a", Value: "1"}}, rec.Content)
}
