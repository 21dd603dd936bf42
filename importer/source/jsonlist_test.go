package source_test

import (
	"errors"
	"io"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"leadferry/importer/source"
	"leadferry/internal/testsupport/must"
)

// readLost shows the rows up to the end, or up to the line where the file is lost, which it adds as "line!lost".
func readLost(t testing.TB, in io.Reader, o source.Options) (string, *source.File) {
	t.Helper()
	o.Stdin = in
	f, err := source.Open("-", o)
	if err != nil {
		return "refused: " + err.Error(), nil
	}
	rows, err := rowsUntil(f)
	var lost *source.LostError
	switch {
	case errors.Is(err, io.EOF):
		return show(rows), f
	case !errors.As(err, &lost):
		t.Fatal(err)
	}
	if again := f.Next(new(source.Row)); !errors.As(again, &lost) {
		t.Errorf("lost, and then %v", again)
	}
	return show(rows) + strconv.Itoa(lost.Line) + "!lost", f
}

func TestJSONLists(t *testing.T) { // faults 96
	long := strings.Repeat("x", 1<<20)
	for _, test := range []struct{ name, data, want string }{
		{"empty", "[]", ""},
		{"pretty", "[\n  {\n    \"a\": 1\n  },\n  {\n    \"a\": 2\n  }\n]\n", "2:1\n5:2\n"},
		{"blank lines and a byte order mark", "\xEF\xBB\xBF\n\n[\n\n{\"a\":1}]", "5:1\n"},
		{"brackets and quotes in texts", `[{"a":"}]{[\"\\"},{"a":"\\\\"}]`, "1:}]{[\"\\\n1:\\\\\n"},
		{"nested values come compact", "[{\"a\": [ 1,\n {\"b\" : \"x y\"} ]}]", "1:[1,{\"b\":\"x y\"}]\n"},

		{"no objects", "[1, \"x\",\ntrue, [2], null,{}]", "1!json\n1!json\n2!json\n2!json\n2!json\n2!json\n"},
		{"same key twice", `[{"a":1,"a":2},{"a":1}]`, "1!duplicate_key\n1:1\n"},
		{"bad UTF-8", "[\n{\"a\":\n\"\xE9\"},{\"a\":1}]", "2!encoding\n3:1\n"},
		{"1,000 levels", "[" + strings.Repeat(`{"a":`, 1000) + "1" + strings.Repeat("}", 1000) + "]", "1:" + strings.Repeat(`{"a":`, 999) + "1" + strings.Repeat("}", 999) + "\n"},
		{"too long", `[{"a":"` + long + `"},` + "\n" + `{"a":1}]`, "1!too_long\n2:1\n"},
		{"huge", `[{"a":["` + strings.Repeat(long[:1000]+"\",\n\"", 5000) + `"]},{"a":1}]`, "1!too_long\n5001:1\n"},
		{"longer than memory has room for", `[{"a":1},["` + strings.Repeat(long, 20) + `"]]`, "1:1\n1!lost"},
		{"white space without end", "[" + strings.Repeat(" \n", 1<<20) + `{"a":1}]`, strconv.Itoa(1<<20+1) + ":1\n"},

		{"no colon", "[{\"a\":1},\n{\"a\" 1},\n{\"a\":2}]", "1:1\n2!lost"},
		{"a word that is none", "[{\"a\":1},\nnope]", "1:1\n2!lost"},
		{"NUL", "[{\"a\":\"\x00\"},{\"a\":1}]", "1!lost"},
		{"a missing element", "[{\"a\":1},,{\"a\":2}]", "1:1\n1!lost"},
		{"no comma", "[{\"a\":1}\n{\"a\":2}]", "1:1\n2!lost"},
		{"cut between", "[\n{\"a\":1},\n", "2:1\n3!lost"},
		{"cut inside", "[\n{\"a\":1},\n{\"a\":\n2", "2:1\n3!lost"},
		{"cut too long", "[{\"a\":\"" + long, "1!lost"},
		{"wrong bracket", "[{\"a\":1},\n{\"a\":[1}},{\"a\":2}]", "1:1\n2!lost"},
		{"no quote", "[{\"a\":1},\n{\"a\":\"x},\n{\"a\":2}]", "1:1\n2!lost"},
		{"a line break in a text", "[{\"a\":1},\n{\"a\":\"x\ny\"},{\"a\":2}]", "1:1\n2!lost"},
		{"too many levels to follow", "[" + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + ",{\"a\":1}]", "1!lost"},
		{"brackets without end", strings.Repeat("[", 20_000), "1!lost"},
		{"text behind", "[{\"a\":1}]\n x", "1:1\n2!lost"},
	} {
		for _, in := range []io.Reader{strings.NewReader(test.data), iotest.HalfReader(strings.NewReader(test.data))} {
			got, _ := readLost(t, in, source.Options{Format: source.JSONL})
			must.Same(t, test.want, got, test.name)
		}
	}
}

func TestJSONListsInsideAnObject(t *testing.T) { // faults 96
	pad := strings.Repeat("p", 1<<21)
	var lineOfEach strings.Builder
	for i := range 1<<17 + 1 {
		lineOfEach.WriteString(strconv.Itoa(i+1) + ":1\n")
	}
	several := func(names string) string {
		return "refused: -: holds several lists of objects: " + names + "\nhint: name the one that holds the rows: --list NAME, or source.list of the mapping"
	}
	for _, test := range []struct{ name, data, want string }{
		{"Salesforce", "{\n \"totalSize\": 1,\n \"records\": [\n  {\"a\": 1},\n  {\"a\": 2}\n ],\n \"done\": true\n}\n", "4:1\n5:2\n"},
		{"on one line", `{"results":[{"a":1},{"a":2}]}` + "\n\n", "1:1\n1:2\n"},
		{"one list under any name", "{\n\"total\": 2,\n\"kontakte\": [\n{\"a\":1},\n{\"a\":2}],\n\"tags\": [\"x\"], \"none\": []}", "4:1\n5:2\n"},
		{"an object on one line with a list is a row", `{"a":"Ann","tags":[{"b":1},{"b":2}]}`, "1:Ann|[{\"b\":1},{\"b\":2}]\n"},
		{"a long list under any name", "{\"contacts\":[" + strings.Repeat("{\"a\":1},\n", 1<<17) + `{"a":1}]}`, lineOfEach.String()},
		{"an empty list beside the rows", "{\"links\": [],\n\"contacts\": [{\"a\":1}]}", "2:1\n"},
		{"an empty list, maybe the rows", "{\"items\": [],\n\"contacts\": [{\"a\":1}]}", several(`"contacts", "items"`)},
		{"two empty lists", "{\"items\": [],\n\"data\": []}", ""},
		{"two lists of objects", "{\n\"included\":[{\"a\":1}],\n\"data\":[{\"a\":2}]}", several(`"included", "data"`)},
		{"behind other lists", `{"tags":["x"],"data":[1],"items":[{"a":1}]}`, "1:1\n"},
		{"the first of several", "{\n\"leads\":[{\"a\":1}],\n\"leads_part2\":[{\"a\":2}]}", several(`"leads", "leads_part2"`)},
		{"a second far behind", "{\"leads\":[" + strings.Repeat("{\"a\":1},\n", 1<<17) + "{\"a\":1}],\"more\":[{\"a\":1}]}", lineOfEach.String() + "131073!lost"},
		{"a broken element", "{\"leads\":[\n{\"a\":1},\n{\"a\":},\n{\"a\":3}]}", "2:1\n3!lost"},
		{"behind a long member on one line", `{"pad":"` + pad + `","records":[{"a":1}]}`, "1!too_long\n"},
		{"a long list on one line", `{"records":[` + strings.Repeat(`{"a":1},`, 1<<17) + `{"a":1}]}`, strings.Repeat("1:1\n", 1<<17+1)},
		{"cut", "{\"records\":[\n{\"a\":1},\n{\"a\"", "2:1\n3!lost"},
		{"cut behind the list", "{\"records\":[\n{\"a\":1}]", "2:1\n2!lost"},
		{"cut behind a list under any name", "{\n\"people\": [\n{\"a\":1},\n{\"a\":2}],\n", "3:1\n4:2\n5!lost"},
		{"cut in a later one", "{\n\"people\": [\n{\"a\":1},\n{\"a\":2}],\n\"meta\":{\"n\":2}\n", "3:1\n4:2\n6!lost"},
		{"cut in another list behind it", "{\n\"people\": [\n{\"a\":1}],\n\"meta\": [\n{\"n\":2}", several(`"people", "meta"`) + "; --format jsonl if it is one row"},
		{"no comma behind the list", "{\"records\":[\n{\"a\":1}] \"x\":1}", "2:1\n2!lost"},
		{"no colon behind the list", "{\"records\":[\n{\"a\":1}],\"x\";1}", "2:1\n2!lost"},
		{"text behind", "{\"records\":[\n{\"a\":1}]}\n{}", "2:1\n3!lost"},

		{"one line of many is a row", "{\"items\":[{\"a\":1}]}\n{\"items\":[]}\n", "1:[{\"a\":1}]\n2:[]\n"},
		{"one line, and another far behind", "{\"items\":[{\"a\":1}]}" + strings.Repeat("\n", 70_000) + "{\"items\":[]}", "1:[{\"a\":1}]\n70001:[]\n"},
		{"another name is a row", `{"phones":[{"a":1}],"b":2}`, "1:[{\"a\":1}]|2\n"},
		{"words in the list are a row", `{"items":["x"]}`, "1:[\"x\"]\n"},
		{"a list deeper down is a row", `{"x":{"items":[{"a":1}]}}`, "1:{\"items\":[{\"a\":1}]}\n"},
	} {
		got, _ := readLost(t, strings.NewReader(test.data), source.Options{Format: source.JSONL})
		must.Same(t, test.want, got, test.name)
	}
}

func TestAListIsChosenByItsName(t *testing.T) {
	for _, test := range []struct{ name, data, want string }{
		{"b", `{"a":[{"x":1}],"b":[{"x":2}]}`, "1:2\n"},
		{"a", `{"a":[{"x":1}],"b":[{"x":2}],"data":[{"x":3}]}`, "1:1\n"},
	} {
		got, f := readLost(t, strings.NewReader(test.data), source.Options{Format: source.JSONL, List: test.name})
		if got != test.want || len(f.Warnings()) > 0 {
			t.Errorf("%s: %s, %q", test.name, got, f.Warnings())
		}
	}
	for _, data := range []string{`{"a":1}` + "\n" + `{"a":2}`, `{"a":[{"x":1}]}`} {
		if got, _ := readLost(t, strings.NewReader(data), source.Options{Format: source.JSONL, List: "none"}); !strings.HasPrefix(got, `refused: -: has no list "none"`) {
			t.Errorf("%s: %s", data, got)
		}
	}
}

func TestElementsComeOnOneLine(t *testing.T) {
	data := "[{\n \"b\" : \"x  y\",\n\"a\": { \"c\": [ 1 ] } },\n { \"a\" : 1,\r\n \"a\" : 2 } , 7 ]"
	var raw []string
	for _, r := range readAll(t, data, source.Options{Format: source.JSONL, Paths: []string{"a.c"}}) {
		raw = append(raw, r.Raw)
	}
	must.Same(t, []string{`{"b":"x  y","a":{"c":[1]}}`, `{"a":1,"a":2}`, `7`}, raw)
}

func TestJSONDocumentsWarnIfTheirListHasAnUnknownName(t *testing.T) {
	for data, want := range map[string]string{
		`{"data":[{"a":1}],"tags":[2],"paging":null,"x":1}`: "",
		"{\"x\":1,\"rows\":[{\"a\":1}]\n}":                  `the rows are those of the list "rows"`,
	} {
		got, f := readLost(t, strings.NewReader(data), source.Options{Format: source.JSONL})
		if text := strings.Join(f.Warnings(), "\n"); got != "1:1\n" || !strings.Contains(text, want) || want == "" && text != "" {
			t.Errorf("%s: %s, warnings %q", data, got, text)
		}
	}
}
