package mapping

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"leadferry/internal/testsupport/must"
)

// whole is a mapping file with every word of the language.
const whole = `
version: 1
tables: {kinds: {Won: w}}
source: {format: csv, skip_rows: 1, footer: /^Total/, comment: "#", escape: "\\", delimiter: ";", encoding: windows-1252, header: true, null: ["", "NULL"]}
namespace: dealers
key: "{id}"
lead_id: "{lead_id}"
skip_if: 'is_test == "yes" or $env["a.b"] in ["x", "y"]'
assign:
  - organization: "{org}"
  - {locator: "L", type: radius, search_text: "{street}, {zip}"}
  - {locator: "L", type: regions, postal_code: {expr: 'zip[:5]'}}
lead:
  type_key: contact-form
  type_label: "Contact form"
  status: {from: "{stage}", map: {Won: closedWon}, else: "{}"}
  external_id: "{id}"
  content:
    name: {expr: 'let n = split(name, " "); trim(last(n) + ", " + join(n[:-1], " "))', empty: clear}
    email: {from: "{E-mail}", apply: [lower], format: email, required: true}
    score: {expr: 'int(score) * 10', as: number, default: "0"}
    ok: {from: "{ok}", as: boolean}
    data: {from: "{data}", as: json}
    ref: "{@key} {@file}:{@line} {@run}"
    vehicle: {object: {name: "{name}", score: {from: "{score}", as: number, on_invalid: drop}, all: {list: [x, "{id}", {first: ["{ok}", "{data}"]}]}}}
    address: {join: ["{name}", {from: "{zip}", apply: ['replace:/0+/-/', 'extract:/(.)/']}], sep: ", ", empty: clear}
    since: {from: "{name}", apply: ["date:D. MMMM YYYY@de|unix|YYYY-MM-DD"], on_invalid: drop}
    phone: {from: "{zip}", apply: ["e164:{stage}"], on_invalid: drop}
    kind: {from: "{stage}", map: kinds, else: "{}"}
    "*": {rest: {except: ["tmp_*"], prefix: "crm_"}}
tests:
  - row: {id: "7"}
    request: {organizationID: o}
`

// faults 104, 105, 107
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"", people, tenFields, whole, withRest, "version: 1\nkey: *a\n", "a: &a [*a]\n", "{\"version\": 1, \"lead\": {\"content\": {\"x\": {\"from\": \"{{{a}\"}}}}",
		"version: 1\nsource: {null: [x], delimiter: tab}\nassign: [{locator: x, type: regions, postal_code: '{@run}'}]\n",
		"version: 1\nskip_if: |\n  a matches \"^x\" and\n  foo(b)\n", "version: 1\nlead: {content: {a: {from: '1', as: number, map: {1: x}}}}\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if isClean(t, data) {
			return
		}
		m, err := Parse("m", data, nil)
		if err != nil {
			t.Fatalf("accepted at first, then refused: %v", err)
		}
		b, err := m.Bind("in", Columns{Names: []string{"a"}, Own: 1, Open: true})
		if err != nil {
			t.Fatalf("an open input was refused: %v", err)
		}
		isWhole(t, b, []string{"cell"})
	})
}

// isWhole checks that a row becomes a Record that may be sent, or is skipped, or has problems with a rule and a text.
func isWhole(t *testing.T, b *Binding, row []string) {
	t.Helper()
	var rec Record
	problems := b.Map(row, Env{File: "f", Line: 1, Run: "r"}, &rec)
	for _, p := range problems {
		if p.Rule == "" || p.Text == "" {
			t.Fatalf("the problem %#v says nothing", p)
		}
	}
	if problems != nil || rec.Skip {
		return
	}
	if rec.Key == "" || rec.Key != strings.TrimSpace(rec.Key) {
		t.Fatalf("the key %q", rec.Key)
	}
	for _, f := range rec.Content {
		if f.Literal && !json.Valid([]byte(f.Value)) || !utf8.ValidString(f.Value) && utf8.ValidString(strings.Join(row, "")) {
			t.Fatalf("the field %#v", f)
		}
	}
}

// FuzzMap maps any row by the whole language.
func FuzzMap(f *testing.F) {
	f.Add("7", "Ann Lee", "70", "yes", `{"a": [1]}`, "Won")
	f.Add("", "", "", "", "", "")
	f.Add("a/b", "Ö", "1e5", "2", "[[[[", "Closed | Won")
	m := parse(f, whole)
	names := []string{"id", "name", "score", "ok", "data", "stage", "org", "E-mail", "zip", "other"}
	b, err := m.Bind("in", Columns{Names: names, Own: len(names), Open: true})
	must.Do(f, err)
	f.Fuzz(func(t *testing.T, id, name, score, ok, data, stage string) {
		isWhole(t, b, []string{id, name, score, ok, data, stage, "o", "a@b.co", "1", name + score})
	})
}

// FuzzPattern replaces and extracts by any regular expression in any text.
func FuzzPattern(f *testing.F) {
	f.Add("/[^0-9]+/$$/", "+49 30")
	f.Add(`/(a)\/(?P<n>b)/${2}$n/`, "a/b")
	f.Add("/([0-9]{5})/", "D-10115")
	f.Fuzz(func(t *testing.T, argument, text string) {
		if step, problem := readStep("replace:" + argument); problem == nil {
			fitting(step)(text)
		} else if problem.Text == "" {
			t.Fatal("no word of what is wrong")
		}
		if step, problem := readStep("extract:" + argument); problem == nil {
			if got, fits := fitting(step)(text); !fits || !strings.Contains(text, got) {
				t.Fatalf("%q of %q", got, text)
			}
		}
	})
}

// FuzzTable reads any table, with and without folding, and looks up any text in it.
func FuzzTable(f *testing.F) {
	f.Add("Auto Haus;o-1\nMüller;o-2", "AUTOHAUS", true)
	f.Add("a;b\n;\nc;", "c", false)
	f.Fuzz(func(t *testing.T, rows, text string, fold bool) {
		file := fmt.Sprintf("version: 1\ntables: {t: {file: dealers.csv, key: k, value: v, fold: %t}}\nlead: {content: {x: {from: '{a}', map: t, else: ''}}}\n", fold)
		m, err := Parse("m", []byte(file), tableOf(rows))
		if err != nil {
			if m == nil || len(err.Error()) == 0 {
				t.Fatalf("%v", err)
			}
			return
		}
		for _, name := range append(strings.Split(rows, "\n"), text) {
			word, to, _ := strings.Cut(name, ";")
			b, values := cells{"a", word}.bind(t, m, false)
			var rec Record
			if problems := b.Map(values, Env{}, &rec); problems != nil {
				t.Fatalf("%q: %v", word, problems)
			}
			if known := strings.Contains("\n"+rows+"\n", "\n"+name+"\n") && !blank(word); known && !blank(to) && (len(rec.Content) != 1 || rec.Content[0].Value != strings.TrimSpace(to)) {
				t.Fatalf("%q becomes %v, not %q", word, rec.Content, to)
			}
		}
	})
}
