package source_test

import (
	"testing"
	"unicode/utf16"

	"leadferry/importer/source"
)

// A byte order mark is no part of the text: not of the first column's name, which no mapping would find then, nor of
// the first cell, nor of a JSON document. faults 91, m26
func TestAByteOrderMarkIsNoPartOfTheText(t *testing.T) {
	headless := source.Options{NoHeader: true, Columns: []string{"id", "name"}}
	for _, test := range []struct {
		name, file, text string
		options          source.Options
	}{
		{name: "header", file: "leads.csv", text: "id,name\n7,Ann\n"},
		{name: "quoted header", file: "leads.csv", text: "\"id\",\"name\"\n7,Ann\n"},
		{name: "tabs", file: "leads.tsv", text: "id\tname\n7\tAnn\n"},
		{name: "no header", file: "leads.csv", text: "7,Ann\n", options: headless},
		{name: "quoted cell", file: "leads.csv", text: "\"7\",Ann\n", options: headless},
		{name: "lines of JSON", file: "leads.jsonl", text: `{"id":"7","name":"Ann"}` + "\n"},
		{name: "list of JSON", file: "leads.json", text: `[{"id":"7","name":"Ann"}]`},
	} {
		for label, data := range map[string]string{
			"utf-8": "\xEF\xBB\xBF" + test.text, "utf-16le": units(test.text, 0), "utf-16be": units(test.text, 1),
		} {
			f, err := source.Open(write(t, test.file, data), test.options)
			if err != nil {
				t.Errorf("%v: %s: %v", test.name, label, err)
				continue
			}
			rows := rowsOf(t, f)
			if len(rows) != 1 || rows[0].Problem != nil {
				t.Errorf("%v: %s: rows %s", test.name, label, show(rows))
				continue
			}
			same(t, [][]string{{"id", "name"}, {"7", "Ann"}}, [][]string{rows[0].Header.Names, rows[0].Cells}, label, test.name)
		}
	}
}

// units is a text in UTF-16 behind its mark; low is the place of the low byte in each unit.
func units(text string, low int) string {
	var b []byte
	for _, u := range utf16.Encode([]rune("\uFEFF" + text)) {
		pair := [2]byte{}
		pair[low], pair[1-low] = byte(u), byte(u>>8)
		b = append(b, pair[:]...)
	}
	return string(b)
}
