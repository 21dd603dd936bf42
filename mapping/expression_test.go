package mapping

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// ofExpr maps a row to the one content value x, which is the expression.
func (c cells) ofExpr(t testing.TB, expr string) (string, []Problem) {
	t.Helper()
	rec, problems := c.in(t, "version: 1\nsource: {null: [N/A]}\nlead:\n  content:\n    x:\n      expr: |\n        "+expr+"\n")
	if len(rec.Content) == 0 {
		return "", problems
	}
	return rec.Content[0].Value, problems
}

var exprRow = cells{
	"score", " 70 ", "price", "0.1", "name", "Ömer Lee", "none", " ", "n", "N/A", "E-mail", "a@b.co", "tags", "x, y;z",
	"a.b", "path", "list.0", "first", "list.1.c", "deep", "if", "word", "count", "3", "straße", "Hauptstr. 1", "\x00", "", "big", "99999999999999999999", "hex", "0x1p4",
}

func TestExpressionsComeOutAsTheirLanguageSays(t *testing.T) {
	tests := []struct{ expr, want string }{
		{`name`, "Ömer Lee"},
		{`$env["E-mail"]`, "a@b.co"},
		{`$env.name`, "Ömer Lee"},
		{`$env["\x00"] + name[1:2]`, "m"},
		{`$env["if"] + straße`, "wordHauptstr. 1"},
		{`$env["a.b"]`, "path"},
		{`$env["list.0"] + $env["list.1.c"]`, "firstdeep"},
		{`count`, "3"},
		{`int(count) + len([1, 2])`, "5"},
		{`score`, "70"},
		{`score + "!"`, "70!"},
		{`"  " + score + " "`, "70"},
		{`n == "" ? "none" : "some"`, "none"},
		{`none == "" and not (name == "")`, "true"},
		{`int(score) * 10`, "700"},
		{`int(score) * 1000000000000000`, "70000000000000000"},
		{`int(score) / 2`, "35"},
		{`int(score) / 3`, "23.3333333333333"},
		{`int(score) % 8`, "6"},
		{`-int(score)`, "-70"},
		{`float(price) + 0.2`, "0.3"},
		{`float(price) * 3`, "0.3"},
		{`float(price) - float(price)`, "0"},
		{`-0.0`, "0"},
		{`float(price) ** 10`, "1e-10"},
		{`2 ** 60`, "1152921504606846976"},
		{`10.0 ** 20 * 100`, "1e+22"},
		{`float("1234567890123456")`, "1234567890123456"},
		{`round(float(price) * 77)`, "8"},
		{`int(float(score))`, "70"},
		{`string(int(score)) + string(0.1 + 0.2) + string(true) + string(nil)`, "700.3true"},
		{`max(int(score), 71)`, "71"},
		{`sum(map(split("1,2,3", ","), int(#)))`, "6"},
		{`true`, "true"},
		{`nil`, ""},
		{`int(score) in 18..75 ? "in" : "out"`, "in"},
		{`name in ["Ömer Lee", "x"]`, "true"},
		{`{"70": "seventy"}[score]`, "seventy"},
		{`name matches "^[[:upper:]]" ? "capital" : "small"`, "small"}, // POSIX classes are ASCII
		{`name matches "^\\p{Lu}"`, "true"},
		{`name contains "Lee" && name startsWith "Ö" && name endsWith "ee"`, "true"},
		{`len(name)`, "8"},
		{`name[0:1] + "."`, "Ö."},
		{`name[1:]`, "mer Lee"},
		{`name[:-4]`, "Ömer"},
		{`name[-3:]`, "Lee"},
		{`name[5:99]`, "Lee"},
		{`name[6:2]`, ""},
		{`[1, 2, 3][1:] | sum()`, "5"},
		{`split(tags, ";") | first()`, "x, y"},
		{`split(tags, ",", 2) | last() | trim()`, "y;z"},
		{`filter(split(name, ""), # != "e") | join()`, "Ömr L"},
		{`join(split(tags, ", "), "-")`, "x-y;z"},
		{`replace(name, "e", "é")`, "Ömér Léé"},
		{`repeat("0", 5 - len(score)) + score`, "00070"},
		{`::replace(name, "e", "é")`, "Ömér Léé"},
		{`let parts = split(name, " "); upper(parts[1]) + ", " + parts[0]`, "LEE, Ömer"},
		{`if score == "70" {"a"} else {"b"}`, "a"},
		{`get(split(name, " "), 5) ?? "x"`, "x"},
		{`none != "" ? none : name`, "Ömer Lee"},
		{`coalesce(none, name, score)`, "Ömer Lee"},
		{`coalesce(trim(none)) + coalesce(none, "?")`, "?"},
		{`int(score) > 50 ? "hot" : nil`, "hot"},
	}
	for _, tt := range tests {
		t.Run(tt.expr, func(t *testing.T) {
			got, problems := exprRow.ofExpr(t, tt.expr)
			if problems != nil || got != tt.want {
				t.Errorf("%q %v, want %q", got, problems, tt.want)
			}
		})
	}
}

// faults 105, 107
func TestParseSaysWhatIsWrongWithAnExpression(t *testing.T) {
	const functions = "known here: abs, all, any, ceil, coalesce, count, filter, find, findIndex, findLast, findLastIndex, first, float, floor, get, " +
		"hasPrefix, hasSuffix, int, join, last, len, lower, map, max, mean, median, min, none, one, repeat, replace, " +
		"reverse, round, sort, split, string, sum, take, trim, trimPrefix, trimSuffix, upper"
	const cell = "\nhint: a cell is a text and never missing: int(a) makes a number of it, a != \"\" asks whether it holds anything, " +
		"coalesce(a, b) takes the first that does; $env[\"E-mail\"] and $env[\"a.b\"] are columns that are no single word"
	const example = "\nhint: for example: stage == \"Won\" ? first + \" \" + last : coalesce(nick, $env[\"Nick name\"])"
	tests := []struct{ expr, want string }{
		{`name +`, "x.expr: the expression ends where more must follow" + example},
		{`name name`, `x.expr: unexpected "name"` + example},
		{`name & 1`, "x.expr: unexpected \"&\"" + example},
		{`name + 1`, "x.expr: invalid operation: + (mismatched types string and int)" + cell},
		{`äé + 1`, "x.expr: invalid operation: + (mismatched types string and int)" + cell},
		{`score > 5`, "x.expr: invalid operation: > (mismatched types string and int)" + cell},
		{`x + foo(1)`, "x.expr: unknown function \"foo\"\nhint: " + functions},
		{`uper(x)`, "x.expr: unknown function \"uper\"\nhint: did you mean \"upper\"?"},
		{`now()`, "x.expr: unknown function \"now\"" + "\nhint: " + functions},
		{`::now()`, "x.expr: unknown function \"now\"" + "\nhint: " + functions},
		{`len($env)`, "x.expr: $env goes before a column's name only\nhint: $env[\"column\"]"},
		{`$env[name]`, "x.expr: $env goes before a column's name only\nhint: $env[\"column\"]"},
		{`name.upper()`, "x.expr: type string has no method upper" + cell},
		{`a.b`, "x.expr: type string has no field b" + cell},
		{`split(name, ",")`, "x.expr: the expression comes to a list or an object, not to a text\nhint: write join(list, \", \")"},
		{`{"a": 1}`, "x.expr: the expression comes to a list or an object, not to a text\nhint: write join(list, \", \")"},
		{`let a = 1; let a = 2; a`, "x.expr: cannot redeclare variable a" + example},
		{`a matches "("`, "x.expr: error parsing regexp: missing closing ): `(`" + example},
		{`1 / 0`, "x cannot be computed: a number is too large\nhint: write \"{column}\" for what a column holds"},
		{`phone ?? mobile`, "x.expr: ?? takes the left side always, since that is never missing" + cell},
		{`phone || mobile`, "x.expr: invalid operation: || (mismatched types string and string)" + cell},
		{`phone or mobile`, "x.expr: invalid operation: or (mismatched types string and string)" + cell},
		{`phone && mobile == ""`, "x.expr: invalid operation: && (mismatched types string and bool)" + cell},
		{`!phone`, "x.expr: invalid operation: ! (mismatched type string)" + cell},
		{`not phone`, "x.expr: invalid operation: not (mismatched type string)" + cell},
		{`phone ? phone : mobile`, "x.expr: non-bool expression (type string) used as condition" + cell},
		{`""[`, "x.expr: the expression ends where more must follow" + example},
	}
	for _, tt := range tests {
		t.Run(tt.expr, func(t *testing.T) {
			_, err := Parse("m", []byte("version: 1\nlead:\n  content:\n    x:\n      expr: |-\n       "+tt.expr+"\n"), nil)
			if err == nil {
				t.Fatal("the file was taken")
			}
			got := strings.ReplaceAll(err.Error(), "lead.content.x", "x")
			got = regexp.MustCompile(`^m:\d+:\d+: `).ReplaceAllString(got, "")
			same(t, "error", tt.want, got)
		})
	}
}

// faults 105
func TestBindNamesTheColumnsThatAnExpressionMisses(t *testing.T) {
	m := parse(t, "version: 1\nskip_if: 'nme == \"\"'\nlead:\n  content:\n    x: {expr: 'upper($env[\"E-Mail\"]) + zip + nme'}\n")
	_, err := m.Bind("leads.csv", Columns{Names: []string{"name", "e-mail"}, Own: 2})
	want := "m:2:10: skip_if: leads.csv has no column \"nme\"\nhint: did you mean \"name\"?\n" +
		"m:5:8: lead.content.x: leads.csv has no column \"E-Mail\"\nhint: did you mean \"e-mail\"?\n" +
		"m:5:8: lead.content.x: leads.csv has no column \"zip\"\nhint: if the text is meant, it needs quotes: \"zip\"\n" +
		"m:5:8: lead.content.x: leads.csv has no column \"nme\"\nhint: did you mean \"name\"?"
	if err == nil {
		t.Fatal("the columns were not missed")
	}
	same(t, "errors", want, err.Error())
	if _, err := m.Bind("leads.jsonl", Columns{Names: []string{"name"}, Own: 1, Open: true}); err != nil {
		t.Errorf("an open input: %v", err)
	}
}

// faults 115
func TestAnExpressionThatFailsMakesTheRowInvalidWithoutItsValues(t *testing.T) {
	for expr, want := range map[string]string{
		`int(name)`:             "lead.content.x cannot be computed: int takes a whole number of at most 15 digits",
		`int(big)`:              "lead.content.x cannot be computed: int takes a whole number of at most 15 digits",
		`float(hex)`:            "lead.content.x cannot be computed: float takes a number with a point and no comma",
		`float(name)`:           "lead.content.x cannot be computed: float takes a number with a point and no comma",
		`int(float(big))`:       "lead.content.x cannot be computed: int takes a whole number of at most 15 digits",
		`1 / (int(score) - 70)`: "lead.content.x cannot be computed: a number is too large",
		`1 % (int(score) - 70)`: "lead.content.x cannot be computed: a function or an operator does not take what the columns hold",
		`split(name, " ")[7]`:   "lead.content.x cannot be computed: a function or an operator does not take what the columns hold",
		`{"70": [1]}[score]`:    "lead.content.x cannot be computed: it comes to a list or an object, not to a text",
		`repeat(name, 200000)`:  "lead.content.x cannot be computed: a function or an operator does not take what the columns hold",
	} {
		_, got := exprRow.ofExpr(t, expr)
		if len(got) != 1 || got[0].Text != want || got[0].Rule != "expr" || got[0].Column == "" {
			t.Errorf("%s: %v, want %s", expr, got, want)
		}
	}
}

func TestAnExpressionOfEmptyCellsIsEmptyWhereItFails(t *testing.T) {
	for expr, want := range map[string]string{
		`int(none) * 10`: "", `int(none) + int(n)`: "", `none == "" ? "new" : none`: "new", `none + "-" + n`: "-",
		`float(n) > 3 ? "high" : "low"`: "", `none == "" ? 0 : int(none) * 10`: "0",
	} {
		if got, problems := exprRow.ofExpr(t, expr); problems != nil || got != want {
			t.Errorf("%s: %q %v, want %q", expr, got, problems, want)
		}
	}
	if _, problems := exprRow.ofExpr(t, "int(none) + int(score)"); len(problems) != 1 {
		t.Errorf("problems of a half-filled row: %v, want one", problems)
	}
}

func TestAnExpressionGoesThroughTheOtherSteps(t *testing.T) {
	for value, want := range map[string]string{
		`{expr: 'name', apply: [upper]}`:                               "ÖMER LEE",
		`{expr: 'int(score) > 50', map: {"true": hot, "false": cold}}`: "hot",
		`{expr: 'int(none)', default: 0}`:                              "0",
		`{expr: 'int(score) * 10', as: number}`:                        "700",
		`{expr: 'score == "70"', as: boolean}`:                         "true",
		`{expr: 'name', map: {x: y}, else: "<{}>"}`:                    "<Ömer Lee>",
	} {
		rec, problems := exprRow.in(t, "version: 1\nsource: {null: [N/A]}\nlead: {content: {x: "+value+"}}\n")
		if problems != nil || len(rec.Content) != 1 || rec.Content[0].Value != want {
			t.Errorf("%s: %v %v, want %q", value, rec.Content, problems, want)
		}
	}
}

func TestSkipIf(t *testing.T) {
	file := "version: 1\nkey: '{id}'\nskip_if: 'is_test == \"yes\" or int(age) < 18'\nlead: {content: {a: '{is_test}'}}\n"
	b, _ := cells{"id", "", "is_test", "", "age", ""}.bind(t, parse(t, file), false)
	var rec Record
	if problems := b.Map([]string{"", "yes", ""}, Env{}, &rec); problems != nil || !cmp.Equal(rec, Record{Skip: true, Content: []Field{}}) {
		t.Errorf("a test: %+v %v, want it skipped without problems", rec, problems)
	}
	if problems := b.Map([]string{"1", "", "17"}, Env{}, &rec); problems != nil || !rec.Skip {
		t.Errorf("a child: %+v %v, want it skipped", rec, problems)
	}
	if problems := b.Map([]string{"1", "no", "18"}, Env{}, &rec); problems != nil || rec.Skip || rec.Key != "1" || len(rec.Content) != 1 {
		t.Errorf("another: %+v %v, want it whole", rec, problems)
	}
	if problems := b.Map([]string{"1", "", ""}, Env{}, &rec); problems != nil || rec.Skip {
		t.Errorf("nothing known: %+v %v, want it whole", rec, problems)
	}
	want := []Problem{
		{Column: "is_test, age", Rule: "expr", Text: "skip_if cannot be computed: int takes a whole number of at most 15 digits"},
		{Column: "id", Rule: "key", Text: "key is empty, but every row needs one"},
	}
	if diff := cmp.Diff(want, b.Map([]string{"", "", "old"}, Env{}, &rec)); diff != "" || rec.Skip {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

func TestSkipIfMustBeACondition(t *testing.T) {
	for expr, what := range map[string]string{`is_test`: "a text", `int(a)`: "a number", `1.5`: "a number", `get(split(a, ","), 0)`: "a text", `'{"x": 1}[a]'`: "a value of no fixed kind"} {
		_, err := Parse("m", []byte("version: 1\nskip_if: "+expr+"\n"), nil)
		want := "m:2:10: skip_if must be true or false, and this is " + what + "\nhint: for example: column == \"yes\""
		if err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", expr, err, want)
		}
	}
}
