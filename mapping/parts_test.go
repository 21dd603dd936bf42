package mapping

import (
	"strings"
	"testing"

	"leadferry/internal/testsupport/must"
)

// contentOf maps a row to one content key x. It returns the value, or "invalid" with the texts of the problems, or ""
// if nothing is sent. A hyphen for each dropped value follows.
func contentOf(t *testing.T, row cells, x string) string {
	t.Helper()
	rec, problems := row.in(t, "version: 1\nkey: '{id}'\nlead:\n  content:\n    x: "+x+"\n")
	text := ""
	for _, f := range rec.Content {
		text += f.Value
		if f.Value == "" {
			text += `""`
		}
	}
	if problems != nil {
		text = "invalid"
		for _, p := range problems {
			text += "; " + p.Text
		}
	}
	return text + strings.Repeat("-", len(rec.Dropped))
}

func TestValuesThatAreMadeOfOthers(t *testing.T) {
	row := cells{"id", "1", "a", "A", "none", " ", "mail", "a@b.co", "bad", "a@", "n", "07", "seven", "7", "quote", `x", "admin": "1`, "street", "Main St 1", "zip", "", "city", "Rome"}
	var cases []struct{ Name, Value, Want string }
	readCases(t, "values.yaml", &cases)
	for _, c := range cases {
		must.Same(t, c.Want, contentOf(t, row, c.Value), c.Name, c.Value)
	}
}

func TestMoreThanEightLevelsAreRefused(t *testing.T) {
	deep := func(n int) string { return strings.Repeat("{list: [", n) + "x" + strings.Repeat("]}", n) }
	if _, err := Parse("m", []byte("version: 1\nlead: {content: {a: "+deep(8)+"}}\n"), nil); err != nil {
		t.Error(err)
	}
	_, err := Parse("m", []byte("version: 1\nlead: {content: {a: "+deep(9)+"}}\n"), nil)
	if err == nil || !strings.Contains(err.Error(), "more than 8 levels") || strings.Count(err.Error(), "levels") != 1 {
		t.Error(err)
	}
}

// faults 106
func TestParseRefusesJSONWhoseShapeACellCouldChange(t *testing.T) {
	for _, value := range []string{
		`{join: ['{{"a": "', "{a}", '"}'], sep: "", as: json}`,
		`{first: [{join: ['{{"a": "', "{a}", '"}']}], as: json}`, `{first: [{expr: '"{" + a + "}"'}], as: json}`,
		`{from: "{a}", apply: ['replace:/^(.*)$/{"n": "$1"}/'], as: json}`,
		`{from: '{{"a": "{a}", "b": 1}', apply: ["split:,:1"], as: json}`,
		`{expr: '"[" + a + "]"', as: json}`, `{from: "{a}{b}", as: json}`, `{from: '{{"a": "{a}"', as: json}`,
		`{from: "{a}", map: {x: 1}, else: '{{"a": {}', as: json}`, `{from: "[{a}]", map: {x: 1}, else: "{}", as: json}`,
		`{first: [{from: "{a}", apply: ['replace:/^/[/']}], as: json}`,
	} {
		if m, err := Parse("m", []byte("version: 1\nlead: {content: {x: "+value+"}}\n"), nil); err == nil {
			t.Errorf("%s was taken: %v", value, m)
		}
	}
}

func TestAnEntryOfAssignMayBeJoinedOfWhatIsThere(t *testing.T) {
	file := "version: 1\nassign:\n- {locator: L, type: radius, search_text: {join: ['{street}', '{zip} {city}'], sep: ', '}}\n- organization: {first: ['{a}', '{b}']}\n"
	for _, tt := range []struct {
		row                  cells
		search, organization string
	}{
		{cells{"street", "S", "zip", "", "city", "C", "a", "", "b", ""}, "S, C", ""},
		{cells{"street", "", "zip", "", "city", "C", "a", "", "b", ""}, "C", ""},
		{cells{"street", "", "zip", "", "city", "", "a", "", "b", "o"}, "", "o"},
	} {
		rec, problems := tt.row.in(t, file)
		if problems != nil || rec.SearchText != tt.search || rec.Organization != tt.organization {
			t.Errorf("%q: %+v %v", tt.row, rec, problems)
		}
	}
	_, problems := cells{"street", "", "zip", "", "city", "", "a", "", "b", ""}.in(t, file)
	want := `no entry of assign has all that it needs, since these columns are empty: "street", "zip", "city", "a", "b"`
	if len(problems) != 1 || problems[0].Text != want {
		t.Errorf("%v, want %s", problems, want)
	}
}

func TestAKeyMayBeJoined(t *testing.T) {
	file := "version: 1\nkey: {join: ['{a}', {from: '{b}', apply: [lower]}], sep: '-'}\n"
	for b, want := range map[string]string{"X": "A-x", "": "A"} {
		if rec, problems := (cells{"a", "A", "b", b}).in(t, file); problems != nil || rec.Key != want {
			t.Errorf("%q %v, want %s", rec.Key, problems, want)
		}
	}
	if got, want := parse(t, file).KeyForm(), `{join: ["{a}", "{b} | lower"], sep: "-"}`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestRestWithoutSomeColumns(t *testing.T) {
	row := cells{"id", "7", "ssn", "1", "tmp_a", "2", "a_tmp", "3", "zip", "4", "crm_zip", "5"}
	b, values := row.bind(t, parse(t, "version: 1\nkey: '{id}'\nlead: {content: {crm_zip: x, '*': {rest: {except: [ssn, 'tmp_*', nobody], prefix: crm_}}}}\n"), false)
	var rec Record
	b.Map(values, Env{}, &rec)
	want := []Field{{Name: "crm_zip", Value: "x"}, {Name: "crm_a_tmp", Value: "3"}, {Name: "crm_crm_zip", Value: "5"}}
	same(t, "content", want, rec.Content)
	if w := b.Warnings; len(w) != 1 || w[0].Text != `lead.content.*: in.csv has no column "nobody" that could be left out` {
		t.Errorf("warnings: %v", w)
	}
	for pattern, names := range map[string][2]string{"a": {"a", "ab"}, "a*": {"ab", "ba"}, "*a": {"ba", "ab"}, "a*c*e": {"abcde", "abce f"}, "*": {"", ""}} {
		if is := wildcard(pattern); !is.MatchString(names[0]) || pattern != "*" && is.MatchString(names[1]) {
			t.Errorf("%s does not match one of %q, or both", pattern, names)
		}
	}
}

func TestPullWordsAreTheWordsThatTheMapReads(t *testing.T) {
	m := parse(t, "version: 1\nlead: {status: {from: '{s}', map: {W: inProgress, X: In Progress, Y: closedWon}, pull: {In Progress: X}, conflict: {Closed | Won: service, open: report}}}\n")
	same(t, "result", map[string]Rule{"closedWon": "service", "open": "report"}, m.Conflicts.Status)
	const mapped, pulled, plain = "lead: {status: {from: '{s}', map: {W: inProgress, X: In Progress, Y: closedWon, Z: open}, pull: {In Progress: X, onHold: '', open: ''}}}",
		"lead: {status: {from: '{s}', pull: {closedWon: Closed | Won}}}", "lead: {status: '{s}', content: {a: {from: '{a}', map: {b: open}}}}"
	for _, test := range []struct {
		file, status, word string
		known              bool
	}{
		{mapped, "inProgress", "X", true},
		{mapped, "closedWon", "Y", true},
		{mapped, "onHold", "", true},
		{mapped, "open", "", true},
		{mapped, "contacted", "", false},
		{strings.ReplaceAll(mapped, "In Progress: X, ", ""), "inProgress", "W", true},
		{pulled, "closedWon", "Closed | Won", true},
		{pulled, "open", "", false},
		{"lead: {status: {from: '{s}', map: {W: inProgress}, else: '{}', pull: {closedWon: Closed | Won}}}", "closedWon", "Closed | Won", true},
		{"lead: {status: {expr: 's + \"\"', pull: {closedWon: Gewonnen}}}", "closedWon", "Gewonnen", true},
		{plain, "open", "open", true},
		{plain, "archived", "archived", false},
	} {
		word, known := parse(t, "version: 1\n"+test.file+"\n").PullWord(test.status)
		if known != test.known || known && word != test.word {
			t.Errorf("%s of %s: %q, %v", test.status, test.file, word, known)
		}
	}
	for file, want := range map[string]string{
		"pull: {inProgress: Z}": `m:2:71: lead.status.pull.inProgress: the mapping does not turn "Z" into this status` + "\nhint: take a word of the file that stands for inProgress",
		"pull: {open: W}":       `m:2:65: lead.status.pull.open: the mapping does not turn "W" into this status` + "\nhint: take a word of the file that stands for open",
		"conflict: {won: file}": `m:2:63: lead.status.conflict.won: "won" is not a status of the service` + "\nhint: the statuses are open, contacted, inProgress, onHold, closedWon, closedNotInterested, closedBoughtUsed, closedBoughtOtherBrand",
	} {
		_, err := Parse("m", []byte("version: 1\nlead: {status: {from: '{s}', map: {W: inProgress}, "+file+"}}\n"), nil)
		if err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", file, err, want)
		}
	}
}
