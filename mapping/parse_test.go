package mapping

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v4"

	"leadferry/internal/testsupport/must"
)

// faults 105, 106, 108, 109, m30
func TestParseReportsEveryMistakeWithItsPlace(t *testing.T) { refusedAll(t, "mistakes.yaml") }

// refusedAll checks the errors of the mapping files in a file of testdata.
func refusedAll(t *testing.T, name string) {
	var cases []struct{ Name, File, Want string }
	readCases(t, name, &cases)
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) { refused(t, c.File, strings.TrimSuffix(c.Want, "\n")) })
	}
}

func readCases(t *testing.T, name string, into any) {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name)
	if err == nil {
		err = yaml.Load(data, into, yaml.WithKnownFields())
	}
	must.Do(t, err)
}

func TestParseReportsAtMostAHundredMistakes(t *testing.T) {
	_, err := Parse("m", []byte("version: 1\n"+strings.Repeat("? [a]\n: b\n", 500)), nil)
	var es Errors
	if !errors.As(err, &es) || len(es) != maxErrors {
		t.Errorf("%d errors, want %d", len(es), maxErrors)
	}
}

func TestForCreateNamesWhatALeadNeeds(t *testing.T) {
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
	m := parse(t, "version: 1\nsource:\n  skip_rows: 3\n  footer: /^Grand total/\n  comment: //\n  escape: \\\n")
	if s := m.Source; s.SkipRows != 3 || s.Footer.String() != "^Grand total" || s.Comment != "//" || !s.Backslash {
		t.Errorf("source %+v", s)
	}
	m = parse(t, "version: 1\nsource:\n  format: tsv\n  delimiter: tab\n  encoding: UTF-8\n  header: false\n  columns: [' a', 007, no]\n  null: ['', ' n/a ', NULL]\n")
	want := Source{Format: "tsv", Delimiter: '\t', Encoding: "UTF-8", NoHeader: true, Columns: []string{"a", "007", "no"}, Null: []string{"", "n/a", "NULL"}}
	same(t, "source", want, m.Source)
	same(t, "source", Source{Format: "xlsx", Sheet: " Leads 2"}, parse(t, "version: 1\nsource: {format: xlsx, sheet: ' Leads 2'}\n").Source)
}

func TestKeyForm(t *testing.T) {
	for file, want := range map[string]string{
		"version: 1\n": "",
		"version: 1\nlead: {external_id: '{id}'}\n":               "{id}",
		"version: 1\nkey: '{a}'\nlead: {external_id: '{@key}'}\n": "{a}",
	} {
		if got := parse(t, file).KeyForm(); got != want {
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

func TestGuessesThatCommentsMarkAreListed(t *testing.T) {
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
`
	m, err := Parse("m.yaml", []byte(text), nil)
	must.Do(t, err)
	var got []string
	for _, g := range m.Unconfirmed {
		got = append(got, fmt.Sprintf("%d: %s", g.Line, g.Text))
	}
	want := []string{"1: really", "2: Nobody knows whether this is right.", "5: unique among few", "8: spaced", "9: of the content"}
	same(t, "result", want, got)
}

// Some programs write a second byte order mark.
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
			if err == nil && len(m.Warnings) > 0 {
				t.Errorf("%s: %v", line, m.Warnings)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		ws := m.Warnings
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

// A content key that holds {@file} goes out only once, and so do the columns beside it.
func TestColumnsThatAreNeverComparedAreWarnedOf(t *testing.T) {
	m := parse(t, "version: 1\nlead:\n  content: {a: '{@file}', b: '{x}', c: {from: '{x}', apply: [trim]}, d: {join: ['{x}', '{@run}']}}\n")
	if w := m.Warnings; len(w) != 1 || !strings.HasPrefix(w[0].Text, "lead.content.d goes out with a new lead only") || w[0].Column < 60 {
		t.Errorf("%v", w)
	}
}

func TestWarningsAreLimited(t *testing.T) {
	m := parse(t, "version: 1\nlead:\n  content:\n"+numbered(200, "    aN_secret: x\n"))
	if n := len(m.Warnings); n != maxErrors {
		t.Errorf("%d warnings, want %d", n, maxErrors)
	}
}
