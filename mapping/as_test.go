package mapping

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// faults 100
func TestAsDecidesHowAValueStandsInTheRequest(t *testing.T) {
	tests := []struct{ as, cell, want string }{ // want "": the row is invalid
		{"string", "01234", "01234"},
		{"number", " 7 ", "7"},
		{"number", "-0.50", "-0.50"},
		{"number", "1E+3", "1E+3"},
		{"number", "12345678901234567890.12345678901234567890", "12345678901234567890.12345678901234567890"},
		{"number", "0", "0"},
		{"number", "-0", "-0"},
		{"number", "01234", ""},
		{"number", "-01", ""},
		{"number", "+1", ""},
		{"number", "1,5", ""},
		{"number", "1.", ""},
		{"number", ".5", ""},
		{"number", "1e", ""},
		{"number", "0x10", ""},
		{"number", "1_000", ""},
		{"number", "--1", ""},
		{"number", "-", ""},
		{"number", "NaN", ""},
		{"number", "١", ""},
		{"number", "1 2", ""},
		{"boolean", "TRUE", "true"},
		{"boolean", "Yes", "true"},
		{"boolean", "on", "true"},
		{"boolean", "y", "true"},
		{"boolean", "1", "true"},
		{"boolean", "False", "false"},
		{"boolean", "NO", "false"},
		{"boolean", "off", "false"},
		{"boolean", "N", "false"},
		{"boolean", "0", "false"},
		{"boolean", "ja", ""},
		{"boolean", "01", ""},
		{"json", ` { "a" : [ 1.50 , "x y" , null ] } `, `{"a":[1.50,"x y",null]}`},
		{"json", `"a\u00e9"`, `"a\u00e9"`},
		{"json", `12345678901234567890`, `12345678901234567890`},
		{"json", `{"a":1,"a":2}`, ""},
		{"json", `{"a":1} {}`, ""},
		{"json", `{a:1}`, ""},
		{"json", `[1,]`, ""},
		{"json", `"\ud800"`, ""},
		{"json", strings.Repeat("[", 64) + strings.Repeat("]", 64), strings.Repeat("[", 64) + strings.Repeat("]", 64)},
		{"json", strings.Repeat("[", 65) + strings.Repeat("]", 65), ""},
		{"json", `"` + strings.Repeat("[", 65) + `\"["`, `"` + strings.Repeat("[", 65) + `\"["`},
	}
	for _, tt := range tests {
		rec, problems := cells{"c", tt.cell}.in(t, "version: 1\nlead: {content: {x: {from: '{c}', as: "+tt.as+"}}}\n")
		if tt.want == "" {
			want := []Problem{{Column: "c", Rule: "as", Text: "lead.content.x is not " + kindNames[kinds[tt.as]]}}
			if diff := cmp.Diff(want, problems); diff != "" || len(rec.Content) > 0 {
				t.Errorf("%s as %s: problems (-want +got):\n%s", tt.cell, tt.as, diff)
			}
			continue
		}
		want := []Field{{Name: "x", Value: tt.want, Kind: kinds[tt.as]}}
		if diff := cmp.Diff(want, rec.Content); diff != "" || problems != nil {
			t.Errorf("%s as %s: %v, content (-want +got):\n%s", tt.cell, tt.as, problems, diff)
		}
	}
}

func TestAsComesLast(t *testing.T) {
	for value, want := range map[string]Field{
		`{from: '{c}', map: {won: yes, lost: no}, as: boolean}`:         {Name: "x", Value: "true", Kind: Boolean},
		`{from: '{c}', map: {won: ""}, default: 0, as: number}`:         {Name: "x", Value: "0", Kind: Number},
		`{from: '{c}', map: {x: 1}, else: 2, as: number}`:               {Name: "x", Value: "2", Kind: Number},
		`{from: '7 {c}', apply: [digits], as: number, format: integer}`: {Name: "x", Value: "7", Kind: Number},
		`{from: 'EUR 1500', apply: [digits], as: number}`:               {Name: "x", Value: "1500", Kind: Number},
		`{from: '"{c}"', as: json}`:                                     {Name: "x", Value: `"won"`, Kind: JSON},
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

func TestABrokenValueIsNotCleared(t *testing.T) {
	rec, problems := cells{"c", "x"}.in(t, "version: 1\nlead: {content: {x: {from: '{c}', as: number, empty: clear}}}\n")
	if len(rec.Content) != 0 || len(problems) != 1 {
		t.Errorf("content %v, problems %v", rec.Content, problems)
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
		literal, got := literalOf(Number, trimmed)
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
		if err != nil {
			t.Fatal(err)
		}
		compact, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := literalOf(JSON, string(indented)); !ok || got != string(compact) {
			t.Fatalf("%s: %s %v, want %s", indented, got, ok, compact)
		}
	})
}
