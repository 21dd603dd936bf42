package source_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"leadferry/importer/source"
	"leadferry/internal/testsupport/must"
)

// A file that stands beside the inputs in a command is told from a table, whatever it is called, and a table from a
// mapping.
func TestFilesInTheWrongPlace(t *testing.T) {
	book := string(workbook{rows: inline("a")}.bytes(t))
	for _, test := range []struct{ name, data, input, kind string }{
		{"m.yaml", "version: 1\n", "", source.KindMapping},
		{"m.yml", strings.Repeat("# a long remark\n", 100), "", source.KindMapping},
		{"m.json", `{"version": 1}`, "", ""},
		{"runs", "{\"run_id\":\"1\",\"a\":2}\n", "", ""},
		{"b.csv", "version,b\n", "", "a table by its name"},
		{"rows", "a,b\n", "", ""},
		{"c.tsv", "a\tb\n", "", "a table by its name"},
		{"d.xlsx", book, "", "a table by its name"},
		{"m2.yaml", book, "", source.KindMapping},
		{"e.csv.gz", "\x1F\x8B\x08\x00", "its gzip data end too early", "a table by its name"},
		{"page.html", "<!DOCTYPE html>", "is an HTML page", ""},
		{"prog", "\x7FELF\x02\x01", "is not in a format", ""},
	} {
		path := filepath.Join(t.TempDir(), test.name)
		must.Do(t, os.WriteFile(path, []byte(test.data), 0o600))
		f, err := source.Open(path, source.Options{})
		var refusal *source.OpenError
		switch {
		case err == nil:
			f.Close()
			same(t, "", test.input, test.name, "is an input")
		case !errors.As(err, &refusal) || !strings.Contains(refusal.Text, test.input) || test.input == "" || refusal.Hint == "":
			t.Errorf("%s: %v", test.name, err)
		}
		same(t, test.kind, source.KindOf(path), test.name)
	}
}
