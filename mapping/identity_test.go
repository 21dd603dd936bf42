package mapping

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// faults 131
func TestWhatARowIsNeedsAColumn(t *testing.T) {
	for file, want := range map[string]string{
		"version: 1\nkey: id\n":                            "m:2:6: key names no column, so that all rows would be one\nhint: write \"{id}\" for what the column holds",
		"version: 1\nkey: {from: id, apply: [lower]}\n":    "m:2:6: key names no column, so that all rows would be one\nhint: write \"{id}\" for what the column holds",
		"version: 1\nlead_id: id\n":                        "m:2:10: lead_id names no column, so that all rows would be one\nhint: write \"{id}\" for what the column holds",
		"version: 1\nlead: {external_id: 7}\n":             "m:2:21: lead.external_id names no column, so that all rows would be one\nhint: write \"{7}\" for what the column holds",
		"version: 1\nkey: '{{id}'\n":                       "m:2:6: key names no column, so that all rows would be one\nhint: write \"{id}\" for what the column holds",
		"version: 1\nkey: {from: '{id}', map: {a: b}}\n":   "m:2:21: key takes from, join, apply and format only, not map\nhint: what a row is must not change with a table, or with a cell that is filled later",
		"version: 1\nlead_id: {expr: id}\n":                "m:2:11: lead_id takes from, join, apply and format only, not expr\nhint: what a row is must not change with a table, or with a cell that is filled later",
		"version: 1\nkey: {from: '{a}', default: none}\n":  "m:2:20: key takes from, join, apply and format only, not default\nhint: what a row is must not change with a table, or with a cell that is filled later",
		"version: 1\nlead: {external_id: {form: '{a}'}}\n": "m:2:22: unknown key \"form\" in lead.external_id\nhint: did you mean \"from\"?",
	} {
		if _, err := Parse("m", []byte(file), nil); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", file, err, want)
		}
	}
}

// A constant that is the name of a column of the input is told, wherever it stands.
// faults 131
func TestConstantsThatAreColumnsAreTold(t *testing.T) {
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
	for _, w := range b.Warnings() {
		got = append(got, w.Error())
	}
	slices.Sort(got)
	want := []string{
		"m:12:12: lead.content.first is the constant \"{ first name }}\" in every row, that holds the name of a column\nhint: write \"{first name}\" for what the column holds",
		"m:13:11: lead.content.last is the constant \"$last\" in every row, that holds the name of a column\nhint: write \"{last}\" for what the column holds",
		"m:4:25: assign[1].organization is the constant \"org\" in every row, which is the name of a column\nhint: write \"{org}\" for what the column holds",
		"m:8:11: lead.content.name is the constant \"name\" in every row, which is the name of a column\nhint: write \"{name}\" for what the column holds",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}

// faults 131
func TestKeysWithoutNamespaceAreInNone(t *testing.T) {
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
func TestKeysWithoutInvisibleEnds(t *testing.T) {
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

func TestOneIdentity(t *testing.T) {
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
		if got := m.OneIdentity(); got != want {
			t.Errorf("%s: %t", text, got)
		}
	}
}

// A line break is one, however the system wrote it that exported the row: as a carriage return too, on Windows or on an
// old Mac. Key, content and what a table finds stay the same, and so does what was read.
func TestALineBreakIsALineBreak(t *testing.T) {
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
		if diff := cmp.Diff(all[0], other); diff != "" {
			t.Errorf("as other systems write it:\n%s", diff)
		}
	}
}
