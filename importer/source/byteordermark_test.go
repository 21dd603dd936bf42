package source_test

import (
	"testing"

	"golang.org/x/text/encoding/unicode"

	"leadferry/importer/source"
	"leadferry/internal/testsupport/must"
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
		utf16 := func(order unicode.Endianness) string {
			data, err := unicode.UTF16(order, unicode.UseBOM).NewEncoder().String(test.text)
			must.Do(t, err)
			return data
		}
		for label, data := range map[string]string{
			"utf-8": "\xEF\xBB\xBF" + test.text, "utf-16le": utf16(unicode.LittleEndian), "utf-16be": utf16(unicode.BigEndian),
		} {
			rows := rowsOf(t, opened(t, write(t, test.file, data), test.options))
			if len(rows) != 1 || rows[0].Problem != nil {
				t.Errorf("%v: %s: rows %s", test.name, label, show(rows))
				continue
			}
			same(t, [][]string{{"id", "name"}, {"7", "Ann"}}, [][]string{rows[0].Header.Names, rows[0].Cells}, label, test.name)
		}
	}
}
