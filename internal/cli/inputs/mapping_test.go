package inputs

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"leadferry/importer"
	"leadferry/internal/testsupport/must"
	"leadferry/mapping"
)

// beside writes a mapping and a table and reads the mapping.
func beside(t *testing.T, name, table string) (sum string, err error) {
	t.Helper()
	dir := t.TempDir()
	m := "version: 1\ntables: {t: {file: " + name + ", key: Name, value: ID}}\n"
	for file, text := range map[string]string{"m.yaml": m, name: table} {
		must.Do(t, os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600))
	}
	var o importer.Options
	tables, err := ReadMapping(filepath.Join(dir, "m.yaml"), &o)
	must.Same(t, []string{filepath.Join(dir, name)}, tables)
	var mistakes mapping.Errors
	if errors.As(err, &mistakes) {
		for i := range mistakes {
			mistakes[i].File = filepath.Base(mistakes[i].File)
		}
		return "", mistakes
	}
	return o.MappingFile.SHA256, err
}

func TestTablesBesideTheMapping(t *testing.T) {
	for _, tt := range []struct{ name, file, table, want string }{
		{"a table", "d.csv", "Name,ID\na,1\n", ""},
		{"another delimiter, other columns", "d.csv", "x;ID;Name\n;1;a\n", ""},
		{"with a byte order mark", "d.csv", "\xEF\xBB\xBFName,ID\na,1\n", ""},
		{"rows that cannot be read", "d.csv", "Name,ID\na\nb,2\nc,\xE9\n", "d.csv:2: the row has 1 cell instead of 2\nhint: correct the row, or take it out; a table is a file in CSV"},
		{"lost", "d.csv", "Name,ID\na,\"1\n", "d.csv:2: a quote opens here and is not closed before the end of the file: nobody knows where the next rows begin, so none was read"},
		{"a column twice", "d.csv", "Name,ID,ID\na,1,2\n", "d.csv: the table has more than one column \"ID\"\nhint: give each column a name of its own"},
		{"no such column", "d.csv", "Word;Number\na;1\n", "d.csv: the table has no column \"Name\"\nhint: it has \"Word\", \"Number\""},
		{"JSON", "d.json", "{\"Name\": \"a\", \"ID\": \"1\"}\n", "d.json: the table is JSON\nhint: a table is a file in CSV"},
		{"empty", "d.csv", "", "d.csv: is empty: it has no header\nhint: a table is a file in CSV"},
	} {
		_, err := beside(t, tt.file, tt.table)
		switch {
		case err == nil && tt.want == "":
		case err == nil:
			t.Errorf("%s was accepted", tt.name)
		case tt.want == "":
			t.Errorf("%s: %v, want %s", tt.name, err, tt.want)
		default:
			for line := range strings.Lines(tt.want) {
				if !strings.Contains(err.Error(), strings.TrimSpace(line)) {
					t.Errorf("%s: %v, want %s", tt.name, err, line)
				}
			}
		}
	}
}

func TestTheChecksumOfAMappingCoversItsTables(t *testing.T) {
	one, _ := beside(t, "d.csv", "Name,ID\na,1\n")
	again, _ := beside(t, "d.csv", "Name,ID\na,1\n")
	other, _ := beside(t, "d.csv", "Name,ID\na,2\n")
	if one == "" || one != again || one == other {
		t.Errorf("%s, %s, and %s of another table", one, again, other)
	}
}
