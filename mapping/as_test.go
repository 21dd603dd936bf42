package mapping

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"leadferry/internal/testsupport/must"
)

// faults 100
func TestAsDecidesTheJSONTypeOfAValue(t *testing.T) {
	tests := map[[2]string]string{ // "": the row is invalid
		{"string", "01234"}: "01234", {"number", " 7 "}: "7", {"number", "-0.50"}: "-0.50", {"number", "1E+3"}: "1E+3",
		{"number", "12345678901234567890.12345678901234567890"}: "12345678901234567890.12345678901234567890",
		{"number", "0"}: "0", {"number", "-0"}: "-0", {"number", "01234"}: "", {"number", "-01"}: "",
		{"number", "+1"}: "", {"number", "1,5"}: "", {"number", "1."}: "", {"number", ".5"}: "", {"number", "1e"}: "",
		{"number", "0x10"}: "", {"number", "1_000"}: "", {"number", "--1"}: "", {"number", "-"}: "",
		{"number", "NaN"}: "", {"number", "١"}: "", {"number", "1 2"}: "", {"boolean", "TRUE"}: "true",
		{"boolean", "Yes"}: "true", {"boolean", "on"}: "true", {"boolean", "y"}: "true", {"boolean", "1"}: "true",
		{"boolean", "False"}: "false", {"boolean", "NO"}: "false", {"boolean", "off"}: "false",
		{"boolean", "N"}: "false", {"boolean", "0"}: "false", {"boolean", "ja"}: "", {"boolean", "01"}: "",
		{"json", ` { "a" : [ 1.50 , "x y" , null ] } `}: `{"a":[1.50,"x y",null]}`,
		{"json", `"a\u00e9"`}:                           `"a\u00e9"`, {"json", `12345678901234567890`}: `12345678901234567890`,
		{"json", `{"a":1,"a":2}`}: "", {"json", `{"a":1} {}`}: "", {"json", `{a:1}`}: "", {"json", `[1,]`}: "",
		{"json", `"\ud800"`}: "",
	}
	for in, want := range tests {
		as, cell := in[0], in[1]
		rec, got := cells{"c", cell}.in(t, "version: 1\nlead: {content: {x: {from: '{c}', as: "+as+"}}}\n")
		var fields []Field
		var problems []Problem
		if want == "" {
			problems = []Problem{{Column: "c", Rule: "as", Text: "lead.content.x is not " + literals[as].called}}
		} else {
			fields = []Field{{Name: "x", Value: want, Literal: as != "string"}}
		}
		same(t, "problems of "+cell+" as "+as, problems, got)
		same(t, "content of "+cell+" as "+as, fields, rec.Content, cmpopts.EquateEmpty())
	}
}

func TestAsIsTheLastStep(t *testing.T) {
	for value, want := range map[string]Field{
		`{from: '{c}', map: {won: yes, lost: no}, as: boolean}`:         {Name: "x", Value: "true", Literal: true},
		`{from: '{c}', map: {won: ""}, default: 0, as: number}`:         {Name: "x", Value: "0", Literal: true},
		`{from: '{c}', map: {x: 1}, else: 2, as: number}`:               {Name: "x", Value: "2", Literal: true},
		`{from: '7 {c}', apply: [digits], as: number, format: integer}`: {Name: "x", Value: "7", Literal: true},
		`{from: 'EUR 1500', apply: [digits], as: number}`:               {Name: "x", Value: "1500", Literal: true},
		`{from: '{c}', map: {won: '["won"]'}, as: json}`:                {Name: "x", Value: `["won"]`, Literal: true},
		`{from: '{none}', as: number, empty: clear}`:                    {Name: "x"},
		`{from: '{none}', empty: clear}`:                                {Name: "x"},
		`{from: '{c}', map: {won: ""}, empty: clear}`:                   {Name: "x"},
		`{expr: 'nil', empty: clear}`:                                   {Name: "x"},
		`{from: '{none}{@line}', empty: clear}`:                         {Name: "x", Volatile: true},
	} {
		rec, problems := cells{"c", "won", "none", ""}.in(t, "version: 1\nlead: {content: {x: "+value+", y: {from: '{none}', empty: keep}}}\n")
		if diff := cmp.Diff([]Field{want}, rec.Content); diff != "" || problems != nil {
			t.Errorf("%s: %v, content (-want +got):\n%s", value, problems, diff)
		}
	}
}

// m30
func TestANumberIsWhatJSONTakesForOneAndKeepsItsDigits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.OneOf(
			rapid.StringMatching(`[-+]?[0-9]{0,3}(\.[0-9]{0,3})?([eE][-+]?[0-9]{0,3})?`),
			rapid.StringMatching(`-?(0|[1-9][0-9]{0,30})(\.[0-9]{1,30})?`),
			rapid.StringMatching(`[-+.eE0-9 x]{0,6}`),
		).Draw(t, "text")
		trimmed := strings.TrimSpace(s)
		want := json.Valid([]byte(trimmed)) && trimmed != ""
		literal, got := jsonNumber(trimmed)
		if got != want || got && literal != trimmed {
			t.Fatalf("%q: %q %v, want %v", trimmed, literal, got, want)
		}
	})
}

func TestJSONKeepsItsMeaning(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.OneOf(
			rapid.MapOf(rapid.String(), rapid.SliceOf(rapid.Int())).AsAny(),
			rapid.SliceOf(rapid.String()).AsAny(), rapid.String().AsAny(), rapid.Int().AsAny(), rapid.Bool().AsAny(),
		).Draw(t, "value")
		indented, err := json.MarshalIndent(value, " ", "\t")
		must.Do(t, err)
		compact, err := json.Marshal(value)
		must.Do(t, err)
		if got, ok := jsonOf(string(indented)); !ok || got != string(compact) {
			t.Fatalf("%s: %s %v, want %s", indented, got, ok, compact)
		}
	})
}

// fault 132
func TestNoCellChangesTheShapeOfAJSONValue(t *testing.T) {
	row := cells{"name", `x", "admin": "yes`, "back", `\`, "list", `[1, {"a":2}]`, "two", `1, "admin": true`, "n", "7", "none", ""}
	for value, want := range map[string]string{ // "": the row is invalid
		`{from: '{list}', as: json}`:                                        `[1,{"a":2}]`,
		`{from: '{two}', as: json}`:                                         "",
		`{from: '{{"name": "{name}", "b": "{back}"}', as: json}`:            `{"name":"x\", \"admin\": \"yes","b":"\\"}`,
		`{from: '{{"{name}": {n}}', as: json}`:                              `{"x\", \"admin\": \"yes":7}`,
		`{from: '[{n}, {list}]', as: json}`:                                 `[7,[1,{"a":2}]]`,
		`{from: '{{"n": {two}}', as: json}`:                                 "",
		`{from: '{{"a": {none}, "b": {n}}', as: json}`:                      "",
		`{from: '{{"a": "{none}", "b": {n}}', as: json}`:                    `{"a":"","b":7}`,
		`{from: '{{"a": "{none}"}', as: json, default: 0}`:                  "0",
		`{from: '{name}', as: json, map: {x: 1}, else: '{{"a":"{}"}'}`:      `{"a":"x\", \"admin\": \"yes"}`,
		`{object: {m: {from: '{{"a": "{name}"}', as: json}}}`:               `{"m":{"a":"x\", \"admin\": \"yes"}}`,
		`{from: '[{two}, {list}]]', as: json, map: {x: 1}, else: 2}`:        "2",
		`{from: '{none}', as: json, default: 0}`:                            "0",
		`{from: '{list}', as: json, map: {x: 1}, else: '{}'}`:               `[1,{"a":2}]`,
		`{from: '{list}', apply: ['extract:/(\{.*\})/'], as: json}`:         `{"a":2}`,
		`{first: ['{none}', {from: '{list}', apply: [trim]}, x], as: json}`: `[1,{"a":2}]`,
		`{object: {two: "{two}", list: {from: '{list}', as: json}}}`:        `{"two":"1, \"admin\": true","list":[1,{"a":2}]}`,
	} {
		rec, problems := row.in(t, "version: 1\nlead: {content: {x: "+value+"}}\n")
		switch {
		case want == "" && (len(problems) != 1 || problems[0].Rule != "as"):
			t.Errorf("%s: content %v, problems %v", value, rec.Content, problems)
		case want != "" && (problems != nil || len(rec.Content) != 1 || rec.Content[0].Value != want):
			t.Errorf("%s: content %v, problems %v, want %s", value, rec.Content, problems, want)
		}
	}
}

// Whatever two cells hold, the value has the shape that the mapping gives it.
func TestJSONKeepsItsShape(t *testing.T) {
	m := parse(t, `{"version": 1, "lead": {"content": {"x": {"object": {"a": "x{a}", "b": {"list": ["x{a}{b}", {"from": "{b}", "as": "json"}]}}}}}}`)
	rapid.Check(t, func(t *rapid.T) {
		cell := rapid.OneOf(rapid.String(), rapid.StringOf(rapid.SampledFrom([]rune(`"\{}[]:,1 `+"\n"))), rapid.SampledFrom([]string{"1", `"x"`, "[1]", `{"a":1}`, "null"}))
		a, b := cell.Draw(t, "a"), cell.Draw(t, "b")
		bound, err := m.Bind("in", Columns{Names: []string{"a", "b"}, Own: 2})
		must.Do(t, err)
		var rec Record
		if problems := bound.Map([]string{a, b}, Env{}, &rec); problems != nil || blank(a) || blank(b) {
			return
		}
		var got struct {
			A string            `json:"a"`
			B []json.RawMessage `json:"b"`
		}
		d := json.NewDecoder(strings.NewReader(rec.Content[0].Value))
		d.DisallowUnknownFields()
		if err := d.Decode(&got); err != nil || len(got.B) != 2 || got.A != strings.TrimSpace("x"+lineBreak.Replace(a)) {
			t.Fatalf("%q and %q made %s: %v", a, b, rec.Content[0].Value, err)
		}
	})
}
