package source_test

import (
	"fmt"
	"strings"
	"testing"

	"leadferry/importer/source"
	"leadferry/internal/testsupport/must"
)

func TestJSONLRows(t *testing.T) { // faults 96, 100, m27, m28
	keys := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `,"%d":1`, i)
		}
		return "{" + b.String()[1:] + "}"
	}
	nested := func(n int) string { return strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n) }
	for _, test := range []struct{ name, data, want string }{
		{"digits of numbers", `{"a":12345678901234567890,"b":1.50e+1,"c":-0}`, "1:12345678901234567890|1.50e+1|-0\n"},
		{"literals", `{"a":true,"b":false,"c":null}`, "1:true|false|\n"},
		{"objects and lists without blanks", `{"a":{"x": [1, 2]},"b":[ ]}`, "1:{\"x\":[1,2]}|[]\n"},
		{"escapes", `{"a":"\"\\\/\n\u00e9\ud83d\ude00"}`, "1:\"\\/\né😀\n"},
		{"escaped NUL", `{"a":"\u0000"}`, "1!nul\n"},
		{"the text of an escaped NUL", `{"a":"\\u0000"}`, "1:\\u0000\n"},
		{"no members", `{}`, "1!json\n"},
		{"escapes in objects", `{"a":{"c":"K\u00f6ln \/ a"}}`, "1:{\"c\":\"Köln / a\"}\n"},
		{"blank lines count as lines", "\n{\"a\":1}\n \r\n\n{\"a\":2}", "2:1\n5:2\n"},
		{"marks later", "{\"a\":1}\n\xEF\xBB\xBF{\"a\":2}\n\xEF\xBB\xBF\xEF\xBB\xBF{\"a\":3}\n", "1:1\n2:2\n3:3\n"},
		{"no rows", "", ""},

		{"not JSON", "x\n{\"a\":1}\n", "1!json\n2:1\n"},
		{"list on a line", "{\"a\":1}\n[{\"a\":1}]\n{\"a\":1}\n", "1:1\n2!json\n3:1\n"},
		{"object over several lines", "{\"a\":1}\n{\n\"a\":1\n}\n{\"a\":1}\n", "1:1\n2!json\n5:1\n"},
		{"cut line at the beginning", "{\"a\":\n{\"a\":1}\n{\"a\":2}\n", "1!json\n2:1\n3:2\n"},
		{"text after the object", "{\"a\":1} x\n{\"a\":1}{\"a\":2}\n{\"a\":1}\n", "1!json\n2!json\n3:1\n"},
		{"same key twice", "{\"a\":1,\"a\":1}\n{\"a\":1,\"A\":2}\n", "1!duplicate_key\n2:1|2\n"},
		{"same key twice, escaped", `{"a":1,"\u0061":1}`, "1!duplicate_key\n"},
		{"same key twice, deep", `{"a":[{"b":1,"b":2}],"c":1}`, "1!duplicate_key\n"},
		{"lone surrogate", "{\"a\":\"\\ud800\"}\n{\"\\udc00\":1}\n", "1!json\n2!json\n"},
		{"bad UTF-8", "{\"a\":\"\xE9\"}\n{\"a\":1}\n", "1!encoding\n2:1\n"},
		{"NUL", "{\"a\":\"\x00\"}\n{\"a\":1}\n", "1!nul\n2:1\n"},
		{"1,000 levels", nested(1000), "1:" + nested(999) + "\n"},
		{"20,000 levels", "{\"a\":1}\n" + strings.Repeat("[", 20_000) + "\n" + strings.Repeat(`{"a":`, 20_000), "1:1\n2!json\n3!json\n"},
		{"20,000 levels at the beginning", strings.Repeat(`{"a":`, 20_000) + "\n{\"a\":1}", "1!json\n2:1\n"},
		{"brackets in texts are no levels", `{"a":["` + strings.Repeat(`[\"`, 200) + `"]}`, "1:[\"" + strings.Repeat(`[\"`, 200) + "\"]\n"},
		{"as many keys as columns may be", keys(16384), "1:1" + strings.Repeat("|1", 16383) + "\n"},
		{"more keys", keys(16385), "1!columns\n"},
		{"too long", `{"a":"` + strings.Repeat("x", 1<<20) + "\"}\n{\"a\":1}\n", "1!too_long\n2:1\n"},

		{"keys of rejects are left out", `{"leadferry":{"line":1},"a":1,"leadferry_x":2,"leadferryx":3}`, "1:1|3\n"},
	} {
		rows := readAll(t, test.data, source.Options{Format: source.JSONL})
		must.Same(t, test.want, show(rows), test.name)
		for _, r := range rows {
			line := strings.Trim(strings.Split(test.data, "\n")[r.Line-1], "\r\uFEFF")
			must.Same(t, line, r.Raw, r.Line, "raw text", test.name)
		}
	}
}

func TestNestedPaths(t *testing.T) {
	paths := []string{"a.b", "a.1", "a.01", "a.-1", "a.b.0.c", "x.y", "leadferry.line"}
	for _, test := range []struct {
		line string
		want map[string]string
	}{
		{`{"a":{"b":"\u0031"}}`, map[string]string{"a.b": "1"}},
		{`{"a":{"z":{"b":0},"b":null}}`, map[string]string{}},
		{`{"a":{"\u0062":[{"c":7}]}}`, map[string]string{"a.b": `[{"c":7}]`, "a.b.0.c": "7"}},
		{`{"a":[0,{"b":1}]}`, map[string]string{"a.1": `{"b":1}`}},
		{`{"a":{"1":"key"}}`, map[string]string{"a.1": "key"}},
		{`{"a":"{\"b\":1}"}`, map[string]string{}},
		{`{"x.y":"literal","x":{"y":"nested"}}`, map[string]string{"x.y": "literal"}},
		{`{"leadferry":{"line":1},"b":1}`, map[string]string{}},
	} {
		row := readAll(t, test.line, source.Options{Format: source.JSONL, Paths: paths})[0]
		got, seen := map[string]string{}, map[string]int{}
		for i, name := range row.Header.Names {
			seen[name]++
			if strings.Contains(name, ".") && row.Cells[i] != "" {
				got[name] = row.Cells[i]
			}
		}
		must.Same(t, test.want, got, test.line)
		for _, p := range paths {
			must.Same(t, 1, seen[p], p, "times", test.line)
		}
	}
}
