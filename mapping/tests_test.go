package mapping

import (
	"encoding/json"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
	"pgregory.net/rapid"

	"leadferry/internal/testsupport/must"
)

func TestTestsAreReadAsWritten(t *testing.T) {
	m := parse(t, `version: 1
key: "{crm_id}"
tests:
  - row: {crm_id: 007, addr.street: "Main St", " first ": ' Ann ', none: "", blank: , nothing: null, tilde: ~, "NULL": NULL, yes: no}
    request: {organizationID: o-1, content: {}}
  -
    row: {}
    request: {}
`)
	var got [][]string
	var places []int
	for _, test := range m.Tests {
		got = append(got, test.Names, test.Cells)
		places = append(places, test.Line)
	}
	want := [][]string{
		{"crm_id", "addr.street", "first", "none", "blank", "nothing", "tilde", "NULL", "yes"},
		{"007", "Main St", " Ann ", "", "", "", "", "NULL", "no"},
		nil,
		nil,
	}
	same(t, "rows", want, got)
	same(t, "lines", []int{4, 7}, places)
}

// faults 105
func TestTestsThatCannotBeRead(t *testing.T) { refusedAll(t, "tests.yaml") }

func testOf(t testing.TB, request string) Test {
	t.Helper()
	return parse(t, "version: 1\ntests: [{row: {}, request: "+request+"}]\n").Tests[0]
}

func TestCompareReportsEveryDifference(t *testing.T) {
	var cases []struct {
		Name, Want, Have string
		Differences      []string
	}
	readCases(t, "compare.yaml", &cases)
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			test := testOf(t, c.Want)
			same(t, "differences", c.Differences, test.Compare([]byte(c.Have)))
		})
	}
	var empty Test
	if got := empty.Compare([]byte("{}")); got != nil {
		t.Errorf("a test that expects nothing: %v", got)
	}
}

// anyJSON draws what a request may hold.
func anyJSON(depth int) *rapid.Generator[any] {
	scalars := []*rapid.Generator[any]{
		rapid.StringMatching(`[^\p{C}]{1,8}`).AsAny(),
		rapid.Map(rapid.Int64(), func(n int64) any { return n }),
		rapid.Bool().AsAny(),
		rapid.Just[any](nil),
	}
	if depth > 0 {
		scalars = append(scalars,
			rapid.MapOfN(rapid.StringMatching(`[a-z]{1,3}`), anyJSON(depth-1), 0, 3).AsAny(),
			rapid.SliceOfN(anyJSON(depth-1), 0, 3).AsAny())
	}
	return rapid.OneOf(scalars...)
}

func TestARequestDiffersFromAnotherAndNotFromItself(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		content := rapid.MapOfN(rapid.StringMatching(`[a-z]{1,3}`), anyJSON(2), 1, 4).Draw(t, "content")
		file, err := yaml.Marshal(map[string]any{"version": 1, "tests": []any{map[string]any{
			"row": map[string]any{}, "request": map[string]any{"content": content},
		}}})
		must.Do(t, err)
		m, err := Parse("m", file, nil)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		request, err := json.Marshal(map[string]any{"content": content})
		must.Do(t, err)
		test := m.Tests[0]
		if got := test.Compare(request); got != nil {
			t.Fatalf("%s\n%s\n%q", file, request, got)
		}
		other := strings.Replace(string(request), `{"content":{"`, `{"content":{"another `, 1) // no key has a blank
		if got := test.Compare([]byte(other)); len(got) < 2 {
			t.Fatalf("%s\n%s\n%q, want two differences", file, other, got)
		}
	})
}

func FuzzCompare(f *testing.F) {
	f.Add(`{content: {a: [1, {b: c}]}}`, `{"content":{"a":[1,{"b":"c"}]}}`)
	f.Add(`{content: {a: 1e9}}`, `{"content":{"a":1000000000}}`)
	f.Fuzz(func(t *testing.T, want, have string) {
		m, err := Parse("m", []byte("version: 1\ntests:\n- row: {}\n  request: "+want+"\n"), nil)
		if err != nil {
			return
		}
		for _, test := range m.Tests {
			for _, sentence := range test.Compare([]byte(have)) {
				if strings.ContainsAny(sentence, "\n\r\x1b") {
					t.Fatalf("%q", sentence)
				}
			}
		}
	})
}
