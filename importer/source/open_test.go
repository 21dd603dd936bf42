package source_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"leadferry/importer/source"
	"leadferry/internal/testsupport/must"
)

func TestOpenRefusesContent(t *testing.T) { // faults 91, 92, 93, 95
	for _, test := range []struct {
		name, data, want string
		line             int
	}{
		{"empty", "", "empty", 0},
		{"byte order mark only", "\xEF\xBB\xBF", "empty", 0},
		{"cut gzip", "\x1F\x8B\x08\x00", "gzip data end too early", 0},
		{"zip", "PK\x03\x04\x14" + strings.Repeat("\x00", 21) + "\x09\x00\x00\x00leads.csv", "archive", 0},
		{"PDF", "%PDF-1.7\n", "PDF", 0},
		{"HTML", "\xEF\xBB\xBF\r\n <!DOCTYPE HTML>\n<title>Sign in</title>", "HTML page", 0},
		{"xls", "\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1\x00", "old Excel workbook (.xls), or one with a password", 0},
		{"UTF-16 LE without mark", "a\x00,\x00b\x00\n\x00", "--encoding utf-16le", 1},
		{"UTF-16 BE without mark", "\x00a\x00,\x00b\x00\n", "--encoding utf-16be", 1},
		{"NUL in the header", "a,b\x00\n1,2\n", "NUL byte on line 1, character 4", 1},
		{"Latin-1 header", "pr\xE9nom,b\n1,2\n", "not UTF-8 on line 1, character 3", 1},
		{"CR only", "a,b\r1,2\r3,4\r", "line ends LF or CR LF", 1},
		{"CR only, long", "a,b\r" + strings.Repeat("1,2\r", 1<<19), "more than 1048576 bytes", 1},
		{"CR in the header", "\na,\"b\"\rc\n1,2\n", "carriage return", 2},
		{"long header", strings.Repeat("a,", 1<<20), "more than", 1},
		{"broken header", "a,\"b\n1,2\n", "quote", 1},
		{"blank names only", " ,,\n1,2,\n", "names no column", 1},
		{"too many columns", strings.Repeat("a,", 1<<14) + "a\n", "16385 columns", 1},
	} {
		refusal := openError(t, write(t, "leads.csv", test.data), source.Options{}, test.want, test.name)
		must.Same(t, test.line, refusal.Line, test.name, "line")
	}
}

func TestOpenRefusesOtherFormats(t *testing.T) { // faults 95
	for _, data := range []string{
		"\x1F\x8B\x07\x00", "BZh91AY&SY", "\xFD7zXZ\x00", "\x04\x22\x4D\x18", "\x1F\x9D\x90", "7z\xBC\xAF\x27\x1C", "Rar!\x1A\x07\x01", "{\\rtf1\\ansi",
		"\x89PNG\r\n\x1A\n", "\xFF\xD8\xFF\xE0", "SQLite format 3\x00", "PAR1\x15\x04", "<?xml version=\"1.0\"?><Workbook/>", "\xFF\xFE\x00\x00a\x00\x00\x00",
		"\x00\x00\xFE\xFF\x00\x00\x00a", "leads.csv" + strings.Repeat("\x00", 248) + "ustar\x0000",
	} {
		openError(t, write(t, "leads.csv", data), source.Options{}, "is not in a format that is read here", data)
	}
}

func TestOpenRefusesOptions(t *testing.T) {
	for name, o := range map[string]source.Options{
		"format":         {Format: "ods"},
		"encoding":       {Format: source.CSV, Encoding: "latin-nine"},
		"x-user-defined": {Format: source.CSV, Encoding: "x-user-defined"},
		"iso-2022-jp":    {Format: source.CSV, Encoding: "iso-2022-jp"},
		"hz-gb-2312":     {Format: source.CSV, Encoding: "hz-gb-2312"},
		"delimiter":      {Format: source.CSV, Delimiter: '"'},
		"columns":        {Format: source.CSV, NoHeader: true},
		"input":          {},
	} {
		o.Stdin = strings.NewReader("a,b\n")
		openError(t, "-", o, name)
	}
}

func TestFormatIsDetected(t *testing.T) {
	object, table := `{"a":1}`+"\n", "a,b\n1,2\n"
	for _, test := range []struct {
		file, data string
		want       source.Format
	}{
		{"leads.csv", table, source.CSV},
		{"leads.tsv", table, source.TSV},
		{"leads.jsonl", object, source.JSONL},
		{"leads.json", object, source.JSONL},
		{"leads.csv.gz", table, source.CSV},
		{"Leads.JSONL.ZST", object, source.JSONL},
		{"leads.txt", "[\n " + object + "]", source.JSONL},
		{"leads.txt", "[a],b\n", source.CSV},
		{"leads.txt", table, source.CSV},
		{"leads.txt", "\n\xEF\xBB\xBF"[1:] + "\n " + object, source.JSONL},
	} {
		f := opened(t, write(t, test.file, test.data), source.Options{})
		must.Same(t, string(test.want), f.Info().Format, test.file)
		f.Close()
	}
}

func TestHeaderNamesTheOwnColumns(t *testing.T) {
	path := write(t, "leads.csv", " id ,leadferry_line,E-mail\n1,2,3\n")
	for _, test := range []struct {
		o    source.Options
		want source.Header
		rows string
	}{
		{source.Options{}, source.Header{Names: []string{"id", "E-mail"}, Own: 2}, "2:1|3\n"},
		{source.Options{NoHeader: true, Columns: []string{"x", "y ", "z"}}, source.Header{Names: []string{"x", "y", "z"}, Own: 3}, "1: id |leadferry_line|E-mail\n2:1|2|3\n"},
		{source.Options{Columns: []string{"x"}}, source.Header{Names: []string{"id", "E-mail"}, Own: 2}, "2:1|3\n"},
	} {
		f := opened(t, path, test.o)
		must.Same(t, test.want, *f.Header())
		must.Same(t, test.rows, show(rowsOf(t, f)))
	}
}

func TestInfoSumsUpTheFile(t *testing.T) {
	data := "\xEF\xBB\xBFa,b\n1,2\n3\n\x1A"
	path := write(t, "leads.csv", data)
	sum := sha256.Sum256([]byte(data))
	for noSum, sha := range map[bool]string{false: hex.EncodeToString(sum[:]), true: ""} {
		f := opened(t, path, source.Options{NoSum: noSum})
		must.Same(t, []any{"", 0, false}, []any{f.Info().SHA256, f.Info().Rows, f.Info().Whole}, "before the end")
		rowsOf(t, f)
		want := source.Info{Path: path, Format: "csv", Bytes: int64(len(data)), Rows: 2, SHA256: sha, Whole: true}
		want.Encoding, want.Delimiter, want.Header = "utf-8", ',', f.Header()
		must.Same(t, want, f.Info())
	}
}

func TestChangesOfTheFileAreNoticed(t *testing.T) { // faults 28
	for name, change := range map[string]func(path string, was time.Time) error{
		"append":   func(path string, _ time.Time) error { return os.WriteFile(path, []byte("a,b\n1,2\n3,4\n"), 0o600) },
		"truncate": func(path string, _ time.Time) error { return os.Truncate(path, 1) },
		"touch":    func(path string, _ time.Time) error { return os.Chtimes(path, time.Time{}, time.Unix(1, 0)) },
		"append at the same time": func(path string, was time.Time) error {
			return errors.Join(os.WriteFile(path, []byte("a,b\n1,2\n3,4\n"), 0o600), os.Chtimes(path, time.Time{}, was))
		},
		"remove": func(path string, _ time.Time) error { return os.Remove(path) },
		"replace": func(path string, was time.Time) error {
			next := path + ".new"
			return errors.Join(os.WriteFile(next, []byte("a,b\n9,9\n"), 0o600), os.Chtimes(next, time.Time{}, was), os.Rename(next, path))
		},
	} {
		path := write(t, "leads.csv", "a,b\n1,2\n")
		f := opened(t, path, source.Options{})
		stat, err := os.Stat(path)
		must.Do(t, err)
		if f.Changed() {
			t.Error(name, "noticed too early")
		}
		must.Do(t, change(path, stat.ModTime()))
		if rowsOf(t, f); !f.Changed() {
			t.Error(name, "not noticed")
		}
	}
}

func TestChangesAreNoticedWhenTheReadingStopsEarly(t *testing.T) {
	path := write(t, "leads.csv", "a,b\n1,2\n")
	f := opened(t, path, source.Options{})
	must.Do(t, errors.Join(os.Remove(path), f.Close(), f.Close()))
	if !f.Changed() {
		t.Error("not noticed")
	}
}

func TestAReadErrorLosesTheFile(t *testing.T) {
	broken := errors.New("broken")
	for format, data := range map[source.Format]string{
		source.CSV:   "a,b\n1,2\n3,\"4",
		source.TSV:   "a\tb\n1\t2\n3\t",
		source.JSONL: "\n{\"a\":1}\n{\"a\":",
	} {
		in := io.MultiReader(strings.NewReader(data), iotest.ErrReader(broken))
		f := opened(t, "-", source.Options{Format: format, Stdin: iotest.OneByteReader(in)})
		var row source.Row
		if err := f.Next(&row); err != nil || row.Line != 2 || row.Problem != nil {
			t.Errorf("%s: the whole row before the error: %v, line %d", format, err, row.Line)
		}
		var lost *source.LostError
		for range 2 {
			if err := f.Next(&row); !errors.As(err, &lost) || lost.Line != 3 || !errors.Is(err, broken) {
				t.Errorf("%s: not lost on line 3: %v", format, err)
			}
		}
		must.Same(t, "", f.Info().SHA256, format, "a sum of half a file")
	}
}

func TestContentBeatsTheNameForWorkbooks(t *testing.T) { // faults 95
	table := content(t, filepath.Join(cases(t, "frictionless"), "table.xlsx"))
	f := opened(t, write(t, "leads.csv", table), source.Options{})
	defer f.Close()
	must.Same(t, []any{"xlsx", ""}, []any{f.Info().Format, f.Info().Encoding}, f.Info())
	csv := source.Options{Format: source.CSV}
	for _, want := range []string{"Excel workbook", "--format"} {
		openError(t, write(t, "leads.xlsx", table), csv, want)
		openError(t, "-", source.Options{Format: source.CSV, Stdin: strings.NewReader(table)}, want)
		openError(t, write(t, "leads.xlsx", "a,b\n"), source.Options{}, want)
	}
}

// Whatever their names, a mapping among the inputs and a table in place of a mapping are recognized.
func TestFilesInTheWrongPlaceAreRecognized(t *testing.T) {
	book := string(workbook{rows: inline("a")}.bytes(t))
	for _, test := range []struct {
		name, data, input string
		table             bool
	}{
		{"m.yaml", "version: 1\n", "", false},
		{"m.yml", strings.Repeat("# a long remark\n", 100), "", false},
		{"m.json", `{"version": 1}`, "", false},
		{"runs", "{\"run_id\":\"1\",\"a\":2}\n", "", false},
		{"b.csv", "version,b\n", "", true},
		{"rows", "a,b\n", "", false},
		{"c.tsv", "a\tb\n", "", true},
		{"d.xlsx", book, "", true},
		{"m2.yaml", book, "", false},
		{"e.csv.gz", "\x1F\x8B\x08\x00", "its gzip data end too early", true},
		{"page.html", "<!DOCTYPE html>", "is an HTML page", false},
		{"report.xls", "<meta charset=utf-8><table>", "is an HTML page", false},
		{"wide.xls", "\xFF\xFE<\x00t\x00a\x00b\x00l\x00e\x00>\x00", "is an HTML page", false},
		{"f.csv", `[{"id": 1}]`, "holds JSON", true},
		{"prog", "\x7FELF\x02\x01", "is not in a format", false},
	} {
		path := filepath.Join(t.TempDir(), test.name)
		must.Do(t, os.WriteFile(path, []byte(test.data), 0o600))
		f, err := source.Open(path, source.Options{})
		var refusal *source.OpenError
		switch {
		case err == nil:
			f.Close()
			must.Same(t, "", test.input, test.name, "is an input")
		case !errors.As(err, &refusal) || !strings.Contains(refusal.Text, test.input) || test.input == "" || refusal.Hint == "":
			t.Errorf("%s: %v", test.name, err)
		}
		must.Same(t, test.table, source.IsTable(path), test.name)
	}
}
