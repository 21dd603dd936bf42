package source_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"leadferry/importer/source"
)

// A file that stands beside the inputs in a command is told from a table, whatever it is called, and a table from a
// mapping.
func TestFilesInTheWrongPlace(t *testing.T) {
	page := strings.Repeat("\x00", 16) + "\xED\xDA\x0C\xED" + strings.Repeat("\x00", 4076)
	book := string(workbook{rows: inline("a")}.bytes(t))
	for _, test := range []struct{ name, data, input, kind string }{
		{"x.db", page, "is a checkpoint, or what a sandbox holds, and no table", "a checkpoint"},
		{"x.csv", page, "is a checkpoint, or what a sandbox holds, and no table", "a checkpoint"},
		{"m.yaml", "version: 1\n", "is a mapping or another YAML file, and no table", source.KindMapping},
		{"m.txt", "\uFEFF# made by hand\n\n---\nversion: 1\n", "is a mapping or another YAML file, and no table", source.KindMapping},
		{"m.yml", strings.Repeat("# a long remark\n", 100), "is a mapping or another YAML file, and no table", source.KindMapping},
		{"m.json", `{"version": 1}`, "", ""},
		{"runs", "{\"run_id\":\"1\",\"a\":2}\n", "", ""},
		{"a.csv", "version: 1,b\n", "is a mapping or another YAML file, and no table", source.KindMapping},
		{"b.csv", "version,b\n", "", "a table by its name"},
		{"rows", "a,b\n", "", ""},
		{"c.tsv", "a\tb\n", "", "a table by its name"},
		{"d.xlsx", book, "", "an Excel workbook or another ZIP archive"},
		{"m2.yaml", book, "", "an Excel workbook or another ZIP archive"},
		{"e.csv.gz", "\x1F\x8B\x08\x00", "cannot be read", "a packed file"},
		{"page.html", "<!DOCTYPE html>", "is an HTML page", "an HTML page"},
		{"prog", "\x7FELF\x02\x01", "is not in a format", "not in a format that is read here"},
	} {
		path := filepath.Join(t.TempDir(), test.name)
		if err := os.WriteFile(path, []byte(test.data), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := source.Open(path, source.Options{})
		var refusal *source.OpenError
		switch {
		case err == nil:
			f.Close()
			if test.input != "" {
				t.Errorf("%s is an input", test.name)
			}
		case !errors.As(err, &refusal) || !strings.Contains(refusal.Text, test.input) || test.input == "" || refusal.Hint == "":
			t.Errorf("%s: %v", test.name, err)
		}
		if got := source.KindOf(path, []byte(test.data)); got != test.kind {
			t.Errorf("%s: kind %q instead of %q", test.name, got, test.kind)
		}
	}
}
