package mapping

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"leadferry/internal/rowkey"
	"leadferry/internal/testsupport/must"
)

func TestANamespaceGoesBeforeTheKey(t *testing.T) {
	row := cells{"id", " 7 "}
	for file, want := range map[string]Record{
		"key: '{id}'\nlead: {external_id: 'x{id}', content: {ref: '{@key}'}}\n": {
			Key: "dealers\x1f7", ExternalID: "x 7", Content: []Field{{Name: "ref", Value: "7"}},
		},
		"lead: {external_id: '{id}'}\n": {Key: "dealers\x1f7", ExternalID: "7"},
		"":                              {Key: "dealers\x1frow-1ee7b1ea4d8e0f1b"},
	} {
		rec, problems := row.in(t, "version: 1\nnamespace: dealers\n"+file)
		if file == "" {
			plain, _ := row.in(t, "version: 1\n")
			want.Key = "dealers\x1f" + plain.Key
		}
		if len(rec.Content) == 0 {
			rec.Content = nil
		}
		if diff := cmp.Diff(want, rec); diff != "" || problems != nil {
			t.Errorf("%q: %v, record (-want +got):\n%s", file, problems, diff)
		}
	}
	rec, problems := cells{"id", ""}.in(t, "version: 1\nnamespace: dealers\nkey: '{id}'\n")
	if rec.Key != "" || len(problems) != 1 || problems[0].Rule != "key" {
		t.Errorf("an empty key: %q %v", rec.Key, problems)
	}
}

// faults 98
func TestALeadIDMustFitIntoAPath(t *testing.T) {
	file := "version: 1\nlead_id: '{id}'\n"
	if !parse(t, file).HasLeadID() || parse(t, "version: 1\n").HasLeadID() {
		t.Error("HasLeadID is wrong")
	}
	for id, ok := range map[string]bool{
		"0b1c2d3e-0000-4000-8000-000000000001": true, " a.b_c ": true, "": true, "...a": true, strings.Repeat("a", 128): true,
		".": false, "..": false, "a/b": false, "%2f": false, "a b": false, "a?b": false, "ä": false, "a\nb": false, strings.Repeat("a", 129): false,
	} {
		rec, problems := cells{"id", id}.in(t, file)
		if ok && (problems != nil || rec.LeadID != strings.TrimSpace(id)) {
			t.Errorf("%q: %q %v", id, rec.LeadID, problems)
		}
		if !ok && (rec.LeadID != "" || len(problems) != 1 || problems[0].Rule != "lead_id" || problems[0].Column != "id" ||
			problems[0].Text != "lead_id cannot be the ID of a lead: that takes 1 to 128 letters, digits, dots, underscores and hyphens") {
			t.Errorf("%q: %q %v, want a problem", id, rec.LeadID, problems)
		}
	}
}

// faults 102
func TestATextThatIsNoStatusIsReported(t *testing.T) {
	long := strings.Repeat("ä", 2000)
	for file, want := range map[string]Problem{
		"lead: {status: '{s}'}\n":                                       {Column: "s", Rule: "status", Text: "lead.status is neither a status of the service nor mapped to one", Word: "Open - Not Contacted", Value: "lead.status"},
		"lead: {status: {from: '{s}', map: {W: open}}}\n":               {Column: "s", Rule: "map", Text: "lead.status has a text that its map lacks, and there is no else", Word: "Open - Not Contacted", Value: "lead.status"},
		"lead: {status: {from: '{s}', map: {W: open}, else: '<{}>'}}\n": {Column: "s", Rule: "status", Text: "lead.status is neither a status of the service nor mapped to one", Word: "<Open - Not Contacted>", Value: "lead.status"},
		"lead: {content: {a: {from: '{s}', map: {W: open}}}}\n":         {Column: "s", Rule: "map", Text: "lead.content.a has a text that its map lacks, and there is no else", Word: "Open - Not Contacted", Value: "lead.content.a"},
	} {
		_, problems := cells{"s", "Open - Not Contacted"}.in(t, "version: 1\n"+file)
		must.Same(t, []Problem{want}, problems, file)
	}
	_, problems := cells{"s", long}.in(t, "version: 1\nlead: {status: '{s}'}\n")
	if len(problems) != 1 || len(problems[0].Word) > 300 {
		t.Error("a long word is told whole")
	}
}

func TestATextThatDoesNotFitAStepIsAProblem(t *testing.T) {
	file := "version: 1\nlead: {content: {p: {from: '{p}', apply: [squeeze, 'e164:DE'], required: true}}}\n"
	_, problems := cells{"p", "secret"}.in(t, file)
	want := []Problem{{Column: "p", Rule: "apply", Text: "lead.content.p does not fit the step e164:DE of its apply"}}
	same(t, "problems", want, problems)
	_, problems = cells{"p", ""}.in(t, file)
	if len(problems) != 1 || problems[0].Rule != "required" {
		t.Errorf("an empty text: %v, want it required", problems)
	}
}

func TestPathsOfExpressionsAreKnown(t *testing.T) {
	m := parse(t, "version: 1\nskip_if: '$env[\"a.b\"] == \"\"'\nkey: '{a.0}'\nlead: {content: {x: {expr: '$env[\"list.1.c\"] + d + $env[\"a.b\"]'}}}\n")
	same(t, "paths", []string{"a.b", "a.0", "list.1.c"}, m.Paths())
}

// A moved or copied row, or one of another run, is the same row: the default key is made of its data alone. fault 103
func TestTheDefaultKeyDoesNotDependOnThePlace(t *testing.T) {
	m := parse(t, "version: 1\n")
	b, values := cells{"id", "7", "name", "Ann"}.bind(t, m, false)
	rapid.Check(t, func(t *rapid.T) {
		place := func(name string) Env {
			return Env{File: rapid.String().Draw(t, name+" file"), Line: rapid.Int().Draw(t, name+" line"), Run: rapid.String().Draw(t, name+" run")}
		}
		var here, there Record
		if ps := append(b.Map(values, place("one"), &here), b.Map(values, place("other"), &there)...); ps != nil {
			t.Fatalf("problems: %v", ps)
		}
		if here.Key != there.Key {
			t.Fatalf("%s here, %s there", here.Key, there.Key)
		}
	})
}

// faults 131
func TestKeysAndIDsMustNameAColumn(t *testing.T) {
	for file, want := range map[string]string{
		"version: 1\nkey: id\n":                            "m:2:6: key names no column: all rows would be one\nhint: write \"{id}\" for what the column holds",
		"version: 1\nkey: {from: id, apply: [lower]}\n":    "m:2:6: key names no column: all rows would be one\nhint: write \"{id}\" for what the column holds",
		"version: 1\nlead_id: id\n":                        "m:2:10: lead_id names no column: all rows would be one\nhint: write \"{id}\" for what the column holds",
		"version: 1\nlead: {external_id: 7}\n":             "m:2:21: lead.external_id names no column: all rows would be one\nhint: write \"{7}\" for what the column holds",
		"version: 1\nkey: '{{id}'\n":                       "m:2:6: key names no column: all rows would be one\nhint: write \"{id}\" for what the column holds",
		"version: 1\nkey: {from: '{id}', map: {a: b}}\n":   "m:2:21: unknown key \"map\" in key\nhint: known here: from, join, sep, apply, format",
		"version: 1\nlead_id: {expr: id}\n":                "m:2:11: unknown key \"expr\" in lead_id\nhint: known here: from, join, sep, apply, format",
		"version: 1\nkey: {from: '{a}', default: none}\n":  "m:2:20: unknown key \"default\" in key\nhint: known here: from, join, sep, apply, format",
		"version: 1\nlead: {external_id: {form: '{a}'}}\n": "m:2:22: unknown key \"form\" in lead.external_id\nhint: did you mean \"from\"?",
	} {
		if _, err := Parse("m", []byte(file), nil); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", file, err, want)
		}
	}
}

// Each value that is a constant and the name of a column of the input has a warning. faults 131
func TestConstantsThatAreNamesOfColumnsAreWarnedOf(t *testing.T) {
	m := parse(t, `
version: 1
key: "{id}"
assign: [{organization: org}]
lead:
  type_key: form
  content:
    name: name
    city: {from: "{id}", default: city}
    kind: {from: "{id}", map: {a: b}, else: kind}
    other: other
    first: "{{ first name }}"
    last: $last
`)
	b, _ := cells{"id", "", "org", "", "name", "", "city", "", "kind", "", "first name", "", "last", ""}.bind(t, m, false)
	var got []string
	for _, w := range b.Warnings {
		got = append(got, w.Error())
	}
	slices.Sort(got)
	want := []string{
		"m:12:12: lead.content.first is the constant \"{ first name }}\" in every row, which is the name of a column\nhint: write \"{first name}\" for what the column holds",
		"m:13:11: lead.content.last is the constant \"$last\" in every row, which is the name of a column\nhint: write \"{last}\" for what the column holds",
		"m:4:25: assign[1].organization is the constant \"org\" in every row, which is the name of a column\nhint: write \"{org}\" for what the column holds",
		"m:8:11: lead.content.name is the constant \"name\" in every row, which is the name of a column\nhint: write \"{name}\" for what the column holds",
	}
	same(t, "warnings", want, got)
}

// faults 131
func TestASlashInAKeyMakesNoNamespace(t *testing.T) {
	for key, want := range map[string]string{
		"dealers/18": "dealers/18", "/18": "/18", "18": "18", "https://x.example/7": "https://x.example/7", "//": "//", "ä/1": "ä/1",
	} {
		rec, problems := cells{"id", key}.in(t, "version: 1\nkey: '{id}'\n")
		if problems != nil || rec.Key != want {
			t.Errorf("%q: %q %v, want %q", key, rec.Key, problems, want)
		}
	}
}

// faults 131
func TestInvisibleEndsOfKeysAreTrimmed(t *testing.T) {
	file := "version: 1\nlead: {external_id: '{id}'}\n"
	for _, cell := range []string{"L1", "L1\u200b", "\ufeffL1", " \u200e L1\u00ad ", "L1\ufe0f", "\u2060L1 \u00a0"} {
		if rec, problems := (cells{"id", cell}).in(t, file); problems != nil || rec.Key != "L1" || rec.ExternalID != "L1" {
			t.Errorf("%q: key %q, ExternalID %q, %v", cell, rec.Key, rec.ExternalID, problems)
		}
	}
	if rec, problems := (cells{"id", "\u200b \ufeff"}).in(t, file); len(problems) != 1 || problems[0].Rule != "required" {
		t.Errorf("a key of nothing that shows: %q %v", rec.Key, problems)
	}
	for _, cell := range []string{"a\nb", "a\x00b", "a\x1b[31mb", "a\tb", "a\u0085b", "a\x7fb", "\x00a"} {
		for _, file := range []string{file, "version: 1\nkey: '{id}'\n"} {
			_, problems := cells{"id", cell}.in(t, file)
			if len(problems) != 1 || problems[0].Rule != "control" || problems[0].Column != "id" {
				t.Errorf("%q: %v, want a problem", cell, problems)
			}
		}
	}
}

func TestShardsNeedOneIdentity(t *testing.T) {
	for text, want := range map[string]bool{
		`key: "{id}"`:                                                          true,
		`lead: {external_id: "{id}"}`:                                          true,
		"key: \"{id}\"\nlead: {external_id: \"{id}\"}":                         true,
		"key: \"{id}\"\nlead: {external_id: \"{other}\"}":                      false,
		"key: {from: \"{id}\", apply: [lower]}\nlead: {external_id: \"{id}\"}": false,
		`lead_id: "{id}"`:                                                      true,
		"lead_id: \"{id}\"\nkey: \"{id}\"":                                     false,
		"lead_id: \"{id}\"\nlead: {external_id: \"{id}\"}":                     false,
		"lead: {content: {name: \"{id}\"}}":                                    true,
	} {
		m, err := Parse("m.yaml", []byte("version: 1\n"+text), nil)
		if m == nil {
			t.Fatalf("%s: %v", text, err)
		}
		if err := m.ForShards(); (err == nil) != want {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// In every release the same worker takes a key: workers of two releases may meet in one fleet.
func TestAKeyFallsToTheSameShardInEveryRelease(t *testing.T) {
	for key, want := range map[string]int{"1": 20, "L-104204": 45, "crm/17": 61, "ann@example.com": 75} {
		for index := range 100 {
			if (Shard{index, 100}).Has(&Record{Key: key}, 0) != (index == want) {
				t.Errorf("%s: shard %d, want %d", key, index, want)
			}
		}
	}
}

func TestRowsOfALeadFallToOneWorker(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		of := rapid.IntRange(2, 100).Draw(t, "of")
		key := rapid.StringMatching(`0{0,3}[0-9]{1,6}|[A-Za-z]{1,3}@x\.de|[0-9a-fA-F]{8}-0000-4000-8000-00000000abcd`).Draw(t, "key")
		home := func(key, lead string) int {
			at := -1
			for index := range of {
				if (Shard{index, of}).Has(&Record{Key: key, LeadID: lead}, 0) {
					at = index
				}
			}
			if at < 0 {
				t.Fatalf("no worker takes %q", key)
			}
			return at
		}
		if folded := rowkey.Fold(key); home(key, "") != home(folded, "") {
			t.Fatalf("%q and %q fall to two workers", key, folded)
		}
		if home("a"+key, key) != home("b", key) {
			t.Fatal("a lead falls to two workers")
		}
	})
}

// Systems write line breaks as LF, as CR LF (Windows) or as CR (old Macs). Key, content and what a table finds are the
// same for all, and the cells that were read do not change.
func TestLineBreaksOfAllSystemsAreTheSame(t *testing.T) {
	m := parse(t, `
version: 1
skip_if: 'note startsWith "a\r"'
assign: [{organization: "{org}"}]
lead:
  type_key: form
  type_label: Form
  content:
    note: "{note}"
    both: "{note}/{id}"
    said: {expr: 'note + "!"'}
    kind: {from: "{note}", map: {"a\nb": two lines}}
    "*": rest
`)
	var all []Record
	for _, ends := range []string{"\n", "\r\n", "\r"} {
		b, values := cells{"id", "7", "org", "o", "note", "a" + ends + "b", "other", "c" + ends + ends + "d" + ends}.bind(t, m, false)
		before := slices.Clone(values)
		var rec Record
		if problems := b.Map(values, Env{}, &rec); problems != nil {
			t.Errorf("%q: %v", ends, problems)
		}
		if !slices.Equal(values, before) {
			t.Errorf("what was read became %q", values)
		}
		all = append(all, rec)
	}
	if all[0].Skip || len(all[0].Content) != 5 || all[0].Content[4].Value != "c\n\nd" {
		t.Fatalf("%+v", all[0])
	}
	for _, other := range all[1:] {
		must.Same(t, all[0], other, "as other systems write it")
	}
}
