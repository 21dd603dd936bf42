package mapping

import (
	"encoding/json"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
	"pgregory.net/rapid"
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
	var places []position
	for _, test := range m.Tests() {
		got = append(got, test.Names, test.Cells)
		places = append(places, position{test.Line, test.Column})
	}
	want := [][]string{
		{"crm_id", "addr.street", "first", "none", "blank", "nothing", "tilde", "NULL", "yes"},
		{"007", "Main St", " Ann ", "", "", "", "", "NULL", "no"},
		nil,
		nil,
	}
	same(t, "rows", want, got)
	if want := []position{{4, 5}, {7, 5}}; places[0] != want[0] || places[1] != want[1] {
		t.Errorf("places %v, want %v", places, want)
	}
}

// faults 105
func TestTestsThatCannotBeRead(t *testing.T) {
	for _, tt := range []struct{ name, file, want string }{
		{"no list", "tests: {row: {a: b}}\n", "m:2:8: tests must be a list\nhint: begin each line with a dash, or write [a, b]"},
		{"nothing in it", "tests: [{}, x]\n", "m:2:9: tests[1] lacks row\nhint: a test is {row: {column: cell}, request: {organizationID: …, content: {…}}}\n" +
			"m:2:9: tests[1] lacks request\nhint: a test is {row: {column: cell}, request: {organizationID: …, content: {…}}}\n" +
			"m:2:13: tests[2] must hold keys and values\nhint: write name: value, with a blank behind the colon and no dash before it"},
		{
			"misspelt", "tests:\n- rows: {a: b}\n  row: {}\n  request: {typekey: a, location: b, locationSearch: {searchtext: c}, ExternalID: x}\n",
			"m:3:3: unknown key \"rows\" in tests[1]\nhint: did you mean \"row\"?\n" +
				"m:5:13: unknown key \"typekey\" in tests[1].request\nhint: did you mean \"typeKey\"?\n" +
				"m:5:25: unknown key \"location\" in tests[1].request\nhint: known here: organizationID, locatorID, locationSearch, typeKey, typeLabel, status, content\n" +
				"m:5:55: unknown key \"searchtext\" in tests[1].request.locationSearch\nhint: did you mean \"searchText\"?\n" +
				"m:5:71: unknown key \"ExternalID\" in tests[1].request\nhint: known here: organizationID, locatorID, locationSearch, typeKey, typeLabel, status, content",
		},
		{
			"cells", "tests: [{row: {a: {b: c}, ' ': d, e: [f], ' g': h, g: i, j: {k}}, request: {}}]\n",
			"m:2:19: tests[1].row.a must be a text\nhint: name the path with dots: \"a.…\"\n" +
				"m:2:27: tests[1].row has a column without a name\n" +
				"m:2:38: tests[1].row.e must be a text\nhint: name the path with dots: \"e.…\"\n" +
				"m:2:52: the column \"g\" is there twice in tests[1].row\n" +
				"m:2:61: tests[1].row.j is read as an object, not as a text\nhint: a text that begins with a placeholder needs quotes: \"{column}\"",
		},
		{
			"request", "tests: [{row: {}, request: {status: [a], content: {a: , b: [c, ], d: {e: , f: g}}, locationSearch: x}}]\n",
			"m:2:37: tests[1].request.status must be a text\nhint: write one text, which may hold several columns: \"{first} {last}\"; a JSON list is {list: […]}\n" +
				"m:2:55: tests[1].request.content.a has no value\nhint: write \"\" for an empty text\n" +
				"m:2:74: tests[1].request.content.d.e has no value\nhint: write \"\" for an empty text\n" +
				"m:2:100: tests[1].request.locationSearch must hold keys and values\nhint: write name: value, with a blank behind the colon and no dash before it",
		},
		{
			"aliases", "tests: [{row: &a {b: *a}, request: *a}]\n",
			"m:2:15: anchors are not allowed\nhint: write the value out where it is used\n" +
				"m:2:22: aliases are not allowed\nhint: write the value out\n" +
				"m:2:36: aliases are not allowed\nhint: write the value out",
		},
	} {
		t.Run(tt.name, func(t *testing.T) { refused(t, "version: 1\n"+tt.file, tt.want) })
	}
}

func testOf(t testing.TB, request string) Test {
	t.Helper()
	return parse(t, "version: 1\ntests: [{row: {}, request: "+request+"}]\n").Tests()[0]
}

func TestCompareTellsEveryDifference(t *testing.T) {
	long := strings.Repeat("ä", 200)
	for _, tt := range []struct {
		name, want, have string
		differences      []string
	}{
		{
			"the same", `{organizationID: o-1, typeKey: k, typeLabel: Contact form, status: open, content: {name: Ann Lee, zip: 01234, no: no}}`,
			`{"content":{"zip":"01234","no":"no","name":"Ann Lee"},"organizationID":"o-1","typeKey":"k","typeLabel":"Contact form","status":"open"}`, nil,
		},
		{"a locator", `{locatorID: l, locationSearch: {searchText: "a, b"}}`, `{"locatorID":"l","locationSearch":{"searchText":"a, b"}}`, nil},
		{
			"other texts", `{typeKey: k, content: {email: ann@example.com, a: "1"}}`, `{"typeKey":"K","content":{"email":"Ann@example.com\u001b","a":"01"}}`,
			[]string{`typeKey is "K", not "k"`, `content.email is "Ann@example.com\x1b", not "ann@example.com"`, `content.a is "01", not "1"`},
		},
		{
			"missing and surplus", `{typeKey: k, status: open, content: {a: b, c: {}, d: []}}`, `{"typeKey":"k","typeLabel":"","content":{"z":null,"y":[],"x":{},"e\u0007":1}}`,
			[]string{
				`status is missing: it should be "open"`, `content.a is missing: it should be "b"`, `content.c is missing: it should be {}`, `content.d is missing: it should be []`,
				`content."e\a" is 1, which the test does not expect`, `content.x is {}, which the test does not expect`, `content.y is [], which the test does not expect`,
				`content.z is null, which the test does not expect`, `typeLabel is "", which the test does not expect`,
			},
		},
		{
			"content sent empty", `{content: {a: b}}`, `{"content":{"a":"b","phone":""}}`, nil,
		},
		{
			"content that should not be empty", `{content: {phone: "1"}}`, `{"content":{"phone":""}}`, []string{`content.phone is "", not "1"`},
		},
		{"numbers", `{content: {a: 1.50, b: 1e3, c: -0.001, d: 12345678901234567890, e: 0}}`, `{"content":{"a":1.5,"b":1000,"c":-1E-3,"d":12345678901234567890,"e":-0.0}}`, nil},
		{
			"other numbers", `{content: {a: 1, b: 12345678901234567890, c: 1e999999999, d: "1", e: 1, f: 0x10, g: 1e99999999999999999999}}`,
			`{"content":{"a":-1,"b":12345678901234567891,"c":1e999999998,"d":1,"e":true,"f":16,"g":1}}`,
			[]string{
				`content.a is -1, not 1`, `content.b is 12345678901234567891, not 12345678901234567890`, `content.c is 1e999999998, not 1e999999999`, `content.d is 1, not "1"`,
				`content.e is true, not 1`, `content.f is 16, not "0x10"`, `content.g is 1, not 1e99999999999999999999`,
			},
		},
		{"texts that look like something", `{content: {a: 1, b: true, c: null, d: "1"}}`, `{"content":{"a":"1","b":"true","c":"null","d":"1"}}`, nil},
		{
			"true, false and null", `{content: {a: true, b: false, c: null, d: "true", e: 'null', f: True, g: ~}}`, `{"content":{"a":true,"b":false,"c":null,"d":true,"e":null,"f":true,"g":null}}`,
			[]string{`content.d is true, not "true"`, `content.e is null, not "null"`, `content.f is true, not "True"`, `content.g is null, not "~"`},
		},
		{
			"what as: json makes", `{content: {a: {b: [1, {c: d}], e: []}, f: [x, y], g: [], h: {}, i: j}}`, `{"content":{"a":{"b":[1.0,{"c":"D"}],"e":{}},"f":["x"],"g":[2],"h":"{}","i":["j"]}}`,
			[]string{
				`content.a.b[2].c is "D", not "d"`, `content.a.e is {}, not []`, `content.f[2] is missing: it should be "y"`, `content.g is missing: it should be []`,
				`content.h is "{}", not {}`, `content.i is missing: it should be "j"`,
				`content.g[1] is 2, which the test does not expect`, `content.i[1] is "j", which the test does not expect`,
			},
		},
		{
			"long ones", `{content: {a: ` + long + `}}`, `{"content":{"a":"` + long + `b"}}`,
			[]string{`content.a is "` + long[:200] + `…", not "` + long[:200] + `…"`},
		},
		{"no object", `{}`, `[]`, []string{"the request is [], not {}"}},
		{"no JSON", `{}`, `{`, []string{"the request is not JSON"}},
		{"more than one", `{}`, `{} {}`, []string{"the request is not JSON"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			test := testOf(t, tt.want)
			same(t, "differences", tt.differences, test.Compare([]byte(tt.have)))
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

func TestARequestHasNoDifferenceFromItselfAndOneFromAnother(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		content := rapid.MapOfN(rapid.StringMatching(`[a-z]{1,3}`), anyJSON(2), 1, 4).Draw(t, "content")
		file, err := yaml.Marshal(map[string]any{"version": 1, "tests": []any{map[string]any{
			"row": map[string]any{}, "request": map[string]any{"content": content},
		}}})
		if err != nil {
			t.Fatal(err)
		}
		m, err := Parse("m", file, nil)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		request, err := json.Marshal(map[string]any{"content": content})
		if err != nil {
			t.Fatal(err)
		}
		test := m.Tests()[0]
		if got := test.Compare(request); got != nil {
			t.Fatalf("%s\n%s\n%q", file, request, got)
		}
		other := strings.Replace(string(request), `{"content":{"`, `{"content":{"another `, 1) // no drawn key has a blank
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
		for _, test := range m.Tests() {
			for _, sentence := range test.Compare([]byte(have)) {
				if strings.ContainsAny(sentence, "\n\r\x1b") {
					t.Fatalf("%q", sentence)
				}
			}
		}
	})
}
