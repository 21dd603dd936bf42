package mapping

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// faults 105, 106, 108, 109, m30
func TestParseTellsEveryMistakeWithItsPlace(t *testing.T) {
	tests := []struct{ name, file, want string }{
		{"nothing", "", "m:1:1: the mapping file is empty\nhint: begin with version: 1"},
		{"only a comment", "# hello\n", "m:1:1: the mapping file is empty\nhint: begin with version: 1"},
		{"a list", "- a\n", "m:1:1: the mapping file must hold keys and values\nhint: write name: value, with a blank behind the colon and no dash before it"},
		{"no version", "key: \"{id}\"\n", "m:1:1: version is missing\nhint: begin with version: 1"},
		{"another version", "version: 2\n", `m:1:10: version "2" of the mapping language is not known` + "\nhint: write version: 1"},
		{
			"misspelt keys", "version: 1\nsorce: {}\nlead:\n  content:\n    email: {from: a, requird: true}\n  wheels: 4\n",
			`m:2:1: unknown key "sorce"` + "\nhint: did you mean \"source\"?\n" +
				`m:5:22: unknown key "requird" in lead.content.email` + "\nhint: did you mean \"required\"?\n" +
				`m:6:3: unknown key "wheels" in lead` + "\nhint: known here: type_key, type_label, status, external_id, content",
		},
		{
			"unknown words", "version: 1\nlead:\n  content:\n    a: {from: x, apply: [lwer], format: emial, required: yes}\n",
			`m:4:26: unknown step "lwer"` + "\nhint: did you mean \"lower\"?\n" +
				`m:4:41: unknown format "emial"` + "\nhint: did you mean \"email\"?\n" +
				"m:4:58: lead.content.a.required must be true or false\nhint: write true or false, without quotes",
		},
		{
			"placeholders", "version: 1\nlead:\n  content:\n    a: \"{x\"\n    b: \"{}\"\n    c: \"{@fil}\"\n    d: {Email}\n    e: \"\"\n    f:\n",
			"m:4:8: lead.content.a: a placeholder is not closed\nhint: close it with }, or write {{ for a brace\n" +
				"m:5:8: lead.content.b has a placeholder without a name\nhint: name a column: {column}\n" +
				"m:6:8: lead.content.c: unknown placeholder \"@fil\"\nhint: did you mean \"@file\"?\n" +
				"m:7:8: lead.content.d is read as an object, not as a text\nhint: a text that begins with a placeholder needs quotes: \"{column}\"\n" +
				"m:8:8: lead.content.e is empty\nhint: write \"{column}\" for what a column holds, or a text that is the same in every row\n" +
				"m:9:7: lead.content.f has no value\nhint: leave the key out where there is nothing",
		},
		{
			"an unquoted text", "version: 1\nlead:\n  content:\n    name: {first} {last}\n",
			"m:4:19: the mapping file is not YAML: did not find expected key while parsing a block mapping\nhint: a text that begins with a placeholder needs quotes: \"{column}\"",
		},
		{
			"tables", "version: 1\nlead:\n  status:\n    from: '{s}'\n    map: {W: inProgres, '': open, x: '{y}'}\n    else: '{z}'\n  content:\n    a: {from: x, else: y}\n    b: {map: {a: b}}\n",
			"m:5:14: lead.status.map.W: \"inProgres\" is not a status of the service\nhint: did you mean \"inProgress\"?\n" +
				"m:5:25: lead.status.map is not asked for empty texts\nhint: use default\n" +
				"m:5:38: lead.status.map.x takes no placeholders\nhint: the text is one and the same in every row; write {{ for a brace\n" +
				"m:6:11: lead.status.else takes no placeholder but {}\nhint: write {} for the text itself, {{ for a brace\n" +
				"m:8:8: lead.content.a has else without map\nhint: else is for texts that map lacks; default is for an empty result\n" +
				"m:9:8: lead.content.b lacks from\nhint: add from: \"{column}\"",
		},
		{
			"a constant status", "version: 1\nlead: {status: Lost}\n",
			"m:2:16: lead.status: \"Lost\" is not a status of the service\nhint: the statuses are open, contacted, inProgress, onHold, closedWon, closedNotInterested, closedBoughtUsed, closedBoughtOtherBrand",
		},
		{
			"assign", "version: 1\nassign:\n- {locator: x, organization: y}\n- {locator: x, type: radius, postal_code: z}\n- {}\n- {locator: a}\n- {locator: a, type: rigions}\n- {locator: a, type: regions, postal_code: b, search_text: c}\n",
			"m:3:4: assign[1] has locator, which does not go with its organization\nhint: write one entry for each: the first that fits is used; search_text is for radius and regions-radius, postal_code for regions\n" +
				"m:4:3: assign[2] needs search_text for a locator of its type\nhint: search_text: \"{column}\"\n" +
				"m:4:30: assign[2] has postal_code, which does not go with its search_text\nhint: write one entry for each: the first that fits is used; search_text is for radius and regions-radius, postal_code for regions\n" +
				"m:5:3: assign[3] needs an organization or a locator\nhint: organization: \"{column}\", or a locator with its type\n" +
				"m:6:3: assign[4] needs the type of its locator\nhint: radius, regions or regions-radius\n" +
				"m:7:22: unknown locator type \"rigions\"\nhint: did you mean \"regions\"?\n" +
				"m:8:47: assign[6] has search_text, which does not go with its postal_code\nhint: write one entry for each: the first that fits is used; search_text is for radius and regions-radius, postal_code for regions",
		},
		{"an empty assign", "version: 1\nassign: []\n", "m:2:9: assign is an empty list\nhint: write what belongs into it, as [a, b], or leave the key out"},
		{
			"keys that move", "version: 1\nkey: '{@key}'\nlead: {external_id: 'x{@line}'}\n",
			"m:2:6: key is the row's key, which cannot be made of {@key}\n" +
				"m:3:21: lead.external_id cannot hold {@file}, {@line} or {@run}: they differ from run to run and stand in lead.content only",
		},
		{
			"an external ID of itself", "version: 1\nlead: {external_id: '{@key}'}\n",
			"m:2:21: lead.external_id is the row's key, which cannot be made of {@key}\nhint: give a key of its own",
		},
		{
			"source", "version: 1\nsource: {format: xslx, delimiter: ab, encoding: windows1253, header: false, sheet: ' '}\n",
			"m:2:9: source.header is false, so the columns need names\nhint: add columns: [first, second]\n" +
				"m:2:18: unknown source format \"xslx\"\nhint: did you mean \"xlsx\"?\n" +
				"m:2:35: source.delimiter must be one character, and no quote or line break\nhint: for example \";\" or tab\n" +
				"m:2:49: source.encoding \"windows1253\" is not an encoding\nhint: did you mean \"windows-1253\"?\n" +
				"m:2:84: source.sheet is a blank name\nhint: leave the key out for the first sheet",
		},
		{"an encoding that is none", "version: 1\nsource: {encoding: hz-gb-2312}\n", "m:2:20: source.encoding \"hz-gb-2312\" is not an encoding\nhint: for example utf-8, windows-1252, iso-8859-2, utf-16le or shift_jis"},
		{"a workbook's delimiter", "version: 1\nsource: {format: xlsx, delimiter: ;}\n", "m:2:24: a source of the format xlsx has no delimiter\nhint: take it out, or correct the format"},
		{"a workbook's encoding", "version: 1\nsource: {format: xlsx, encoding: utf-8}\n", "m:2:24: a source of the format xlsx has no encoding\nhint: take it out, or correct the format"},
		{"a namespace", "version: 1\nnamespace: a b\n", "m:2:12: namespace takes 1 to 64 letters, digits, dots, underscores and hyphens\nhint: for example namespace: dealers"},
		{"a long namespace", "version: 1\nnamespace: " + strings.Repeat("a", 65) + "\n", "m:2:12: namespace takes 1 to 64 letters, digits, dots, underscores and hyphens\nhint: for example namespace: dealers"},
		{"the rest", "version: 1\nlead: {content: {'*': all}}\n", "m:2:23: lead.content.* takes the word rest, for every column that nothing else uses\nhint: \"*\": rest"},
		{
			"kinds", "version: 1\nlead: {type_key: {from: '{a}', as: number, empty: clear}, content: {a: {from: x, as: numbr, empty: no}}}\n",
			"m:2:36: lead.type_key.as: only values in lead.content can be other than texts\n" +
				"m:2:51: lead.type_key.empty: only values in lead.content can be cleared\n" +
				"m:2:86: unknown kind of value \"numbr\"\nhint: did you mean \"number\"?\n" +
				"m:2:100: unknown way with empty values \"no\"\nhint: known here: keep, clear",
		},
		{
			"constants", "version: 1\nlead:\n  content:\n    a: {from: '01', as: number}\n    b: {from: '{x}', map: {a: '1', b: maybe}, else: perhaps, default: ja, as: boolean}\n" +
				"    c: {from: x, format: email}\n    d: {from: x, map: {y: z}}\n    e: {from: x, map: {x: ''}, required: true}\n    f: {from: '{{\"a\":1,\"a\":2}', as: json}\n    g: {from: '[1, 2', as: json}\n",
			"m:4:8: lead.content.a is not a number as JSON writes it: 7, -0.5 or 1e3, without leading zeros\n" +
				"m:5:39: lead.content.b.map.b: \"maybe\" is not a boolean: true or false, yes or no, on or off, y or n, 1 or 0\n" +
				"m:5:53: lead.content.b.else: \"perhaps\" is not a boolean: true or false, yes or no, on or off, y or n, 1 or 0\n" +
				"m:5:71: lead.content.b.default: \"ja\" is not a boolean: true or false, yes or no, on or off, y or n, 1 or 0\n" +
				"m:6:8: lead.content.c is not an e-mail address\n" +
				"m:7:8: lead.content.d looks up the constant \"x\" in its map, which lacks it\nhint: write from: \"{x}\" for what the column holds\n" +
				"m:8:8: lead.content.e is empty, but required\n" +
				"m:9:8: lead.content.f is not one JSON value without repeated names\n" +
				"m:10:8: lead.content.g is not one JSON value without repeated names",
		},
		{"from and expr", "version: 1\nlead: {content: {a: {from: x, expr: y}}}\n", "m:2:21: lead.content.a has both from and expr\nhint: keep one of them"},
		{
			"columns", "version: 1\nsource: {columns: [a, ' ', a]}\n",
			"m:2:9: source.columns names the columns of a file without header line\nhint: add header: false\n" +
				"m:2:23: source.columns[2] is a blank name\n" +
				"m:2:28: the column \"a\" is there twice",
		},
		{"a delimiter in JSONL", "version: 1\nsource: {format: jsonl, delimiter: ;}\n", "m:2:25: a source of the format jsonl has no delimiter\nhint: take it out, or correct the format"},
		{"wrong shapes", "version: 1\nsource: x\nlead: [a]\nkey: [b]\n", "m:2:9: source must hold keys and values\nhint: write name: value, with a blank behind the colon and no dash before it\n" +
			"m:3:7: lead must hold keys and values\nhint: write name: value, with a blank behind the colon and no dash before it\n" +
			"m:4:6: key must be a text\nhint: write one text, which may hold several columns: \"{first} {last}\"; a JSON list is {list: […]}"},
		{"a percent sign", "version: 1\nlead: {content: {'%d': [x]}}\n", "m:2:24: lead.content.%d must be a text\nhint: write one text, which may hold several columns: \"{first} {last}\"; a JSON list is {list: […]}"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { refused(t, tt.file, tt.want) })
	}
}

func TestParseTellsAtMostAHundredMistakes(t *testing.T) {
	_, err := Parse("m", []byte("version: 1\n"+strings.Repeat("? [a]\n: b\n", 500)), nil)
	var es Errors
	if !errors.As(err, &es) || len(es) != maxErrors {
		t.Errorf("%d errors, want %d", len(es), maxErrors)
	}
}

func TestForCreateTellsWhatALeadNeeds(t *testing.T) {
	m := parse(t, "version: 1\nkey: '{id}'\nlead:\n  type_key: a\n")
	want := "m:1:1: assign is missing, and leads cannot be created without it\nhint: say who gets the leads, by the service's ID of an organization: assign: [{organization: ID}], or a column that holds such IDs: \"{column}\"\n" +
		"m:4:3: lead.type_label is missing, and leads cannot be created without it\nhint: for example type_label: Contact form"
	err := m.ForCreate()
	if err == nil {
		t.Fatal("nothing was missed")
	}
	same(t, "errors", want, err.Error())
	if err := parse(t, "version: 1\nassign: [{organization: o}]\nlead: {type_key: a, type_label: b}\n").ForCreate(); err != nil {
		t.Errorf("a whole mapping: %v", err)
	}
}

func TestSourceIsReadAsWritten(t *testing.T) {
	m := parse(t, "version: 1\nsource:\n  skip_rows: 3\n  skip_footer: '2'\n  footer: /^Grand total/\n  comment: //\n  escape: \\\n")
	if s := m.Source; s.SkipRows != 3 || s.SkipFooter != 2 || s.Footer.String() != "^Grand total" || s.Comment != "//" || !s.Backslash {
		t.Errorf("source %+v", s)
	}
	m = parse(t, "version: 1\nsource:\n  format: tsv\n  delimiter: tab\n  encoding: UTF-8\n  header: false\n  columns: [' a', 007, no]\n  null: ['', ' n/a ', NULL]\n")
	want := Source{Format: "tsv", Delimiter: '\t', Encoding: "utf-8", NoHeader: true, Columns: []string{"a", "007", "no"}, Null: []string{"", "n/a", "NULL"}}
	same(t, "source", want, m.Source)
}

func TestKeyFrom(t *testing.T) {
	for file, want := range map[string]string{
		"version: 1\n": "row",
		"version: 1\nlead: {external_id: '{id}'}\n":               "external_id",
		"version: 1\nkey: '{a}'\nlead: {external_id: '{@key}'}\n": "key",
	} {
		if got := parse(t, file).KeyFrom(); got != want {
			t.Errorf("%q: %s, want %s", file, got, want)
		}
	}
}

// parse reads a mapping file named m that must be good.
func parse(t testing.TB, file string) *Mapping {
	t.Helper()
	m, err := Parse("m", []byte(file), nil)
	if err != nil {
		t.Fatalf("%s\n%v", file, err)
	}
	return m
}

// refused checks the errors of a mapping file named m that must not be good.
func refused(t *testing.T, file, want string) {
	t.Helper()
	if _, err := Parse("m", []byte(file), nil); err == nil {
		t.Error("the file was taken")
	} else {
		same(t, "errors", want, err.Error())
	}
}

func same(t *testing.T, what string, want, got any, options ...cmp.Option) {
	t.Helper()
	if diff := cmp.Diff(want, got, options...); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestMarkedGuessesAreNamed(t *testing.T) {
	text := `version: 1  # ? really
# ? Nobody knows whether this is right.
# ?not a mark
#  ? nor this
key: "{a #? b}"   # ? unique among few
lead:
  content:
    z: a#b  # ?  spaced
    # ? of the content
    w: "{a #? b}"
    long: "` + strings.Repeat("x", 70) + `" # ? long
`
	m, err := Parse("m.yaml", []byte(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, g := range m.Unconfirmed() {
		got = append(got, fmt.Sprintf("%d:%d %s: %s", g.Line, g.Column, g.Of, g.Why))
	}
	want := []string{
		"1:11 version: 1: really", "2:1 : Nobody knows whether this is right.",
		`5:16 key: "{a #? b}": unique among few`, "8:11 z: a#b: spaced", "9:1 : of the content",
		`11:83 long: "` + strings.Repeat("x", 53) + "…: long",
	}
	same(t, "result", want, got)
}

// Some programs write a byte order mark before one that is there.
func TestByteOrderMarksAreNoPartOfAMapping(t *testing.T) {
	for _, marks := range []string{"\uFEFF", "\uFEFF\uFEFF"} {
		_, err := Parse("m.yaml", []byte(marks+"version: 1\nkye: \"{a}\"\n"), nil)
		if err == nil || !strings.HasPrefix(err.Error(), "m.yaml:2:1: unknown key \"kye\"") {
			t.Error(err)
		}
	}
}

// faults 110
func TestASecretInTheMappingIsWarnedOfAndNotRepeated(t *testing.T) {
	const secret = "Zm9vYmFyYmF6cXV4Q29ycmVjdEhvcnNlQmF0dGVyeTE5Mjg" // invented
	const jwt = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl"
	for _, test := range []struct{ line, what string }{
		{"client_secret: hunter2", "a secret"},
		{"API-Key: x", "a secret"},
		{"password: {from: '{p}', default: geheim}", "a secret"},
		{"a: {expr: '\"" + jwt + "\"'}", "a secret"},
		{"a: 'Bearer " + strings.ToLower(secret) + "'", "a secret"},
		{"a: {from: '{x}', map: {x: " + jwt + "}}", "a secret"},
		{"a: ['" + secret + "']", ""},
		{"password: '{Password}'", ""},
		{"secret: 'to be told in person'", ""},
		{"a: 0b1c2d3e-0000-4000-8000-000000000001", ""},
		{"a: 0b1c2d3e00004000800000000000000100001111", ""},
		{"a: https://example.com/AbCdEfGh0123456789AbCdEfGh0123456789", ""},
		{"a: Donaudampfschifffahrtsgesellschaftskapitaen123", ""},
		{"bearer: of good news", ""},
	} {
		line, what := test.line, test.what
		m, err := Parse("m", []byte("version: 1\nlead:\n  content:\n    "+line+"\n"), nil)
		if what == "" {
			if err == nil && len(m.Warnings()) > 0 {
				t.Errorf("%s: %v", line, m.Warnings())
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		ws := m.Warnings()
		if len(ws) != 1 || ws[0].Text != "the mapping file holds what looks like "+what || ws[0].Line != 4 || ws[0].Column < 5 || ws[0].File != "m" {
			t.Errorf("%s: %v, want a warning of %s", line, ws, what)
			continue
		}
		for _, word := range []string{secret, strings.ToLower(secret), jwt, "hunter2", "geheim"} {
			if strings.Contains(ws[0].Error(), word) {
				t.Errorf("the warning repeats it: %v", ws[0])
			}
		}
	}
}

func TestWarningsHaveAnEnd(t *testing.T) {
	m := parse(t, "version: 1\nlead:\n  content:\n"+numbered(200, "    aN_secret: x\n"))
	if n := len(m.Warnings()); n != maxErrors {
		t.Errorf("%d warnings, want %d", n, maxErrors)
	}
}
