package source_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"leadferry/importer/source"
	"leadferry/internal/testsupport/must"
)

func opened(t must.TB, path string, o source.Options) *source.File {
	t.Helper()
	f, err := source.Open(path, o)
	must.Do(t, err)
	return f
}

func readAll(t testing.TB, data string, o source.Options) []source.Row {
	t.Helper()
	o.Stdin = strings.NewReader(data)
	f := opened(t, "-", o)
	return rowsOf(t, f)
}

func rowsOf(t testing.TB, f *source.File) []source.Row {
	t.Helper()
	defer f.Close()
	var rows []source.Row
	for {
		var row source.Row
		err := f.Next(&row)
		if errors.Is(err, io.EOF) {
			return rows
		}
		if err != nil {
			t.Fatalf("Next: %v", err)
		}
		rows = append(rows, row)
		if row.Number != len(rows) {
			t.Fatalf("row %d has number %d", len(rows), row.Number)
		}
		if row.OneLine && strings.ContainsAny(strings.Join(row.Cells, ""), "\r\n") {
			t.Fatalf("row %d has a line break", row.Number)
		}
		if len(row.Cells) != len(row.Header.Names) {
			t.Fatalf("row %d has %d cells for %d names", row.Number, len(row.Cells), len(row.Header.Names))
		}
	}
}

func rowsUntil(f *source.File) (rows []source.Row, err error) {
	defer f.Close()
	for {
		var row source.Row
		if err = f.Next(&row); err != nil {
			return rows, err
		}
		rows = append(rows, row)
	}
}

// show writes rows as "line:cell|cell", a problem as "line!code".
func show(rows []source.Row) string {
	var b strings.Builder
	for _, r := range rows {
		if r.Problem != nil {
			fmt.Fprintf(&b, "%d!%s\n", r.Line, r.Problem.Code)
			continue
		}
		fmt.Fprintf(&b, "%d:%s\n", r.Line, strings.Join(r.Cells, "|"))
	}
	return b.String()
}

func write(t testing.TB, name, data string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	must.Do(t, os.WriteFile(path, []byte(data), 0o600))
	return path
}

// openError opens a file that must be refused with an error that contains want; about says what was opened.
func openError(t testing.TB, path string, o source.Options, want string, about ...any) *source.OpenError {
	t.Helper()
	f, err := source.Open(path, o)
	if err == nil {
		f.Close()
		t.Fatal(about, "the file was opened")
	}
	var refusal *source.OpenError
	if !errors.As(err, &refusal) || refusal.File != path {
		t.Fatalf("%v: not an OpenError of %s: %v", about, path, err)
	}
	hintless := refusal.Line > 0 && strings.HasSuffix(path, ".xlsx")
	if refusal.Hint == "" && !hintless || !strings.Contains(refusal.Error(), want) {
		t.Errorf("%v: no hint, or no %q: %v", about, want, refusal)
	}
	return refusal
}

// cases returns the folder of conformance cases, or skips the test.
func cases(t testing.TB, name string) string {
	t.Helper()
	dir := filepath.Join("..", "..", "..", "shared", "cases", name)
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("the conformance cases are not here: %v", err)
	}
	return dir
}

// Reading ahead changes neither the rows nor what is known at the end.
func TestReadAheadGivesTheSameRows(t *testing.T) {
	path := write(t, "a.csv", "id,name\n1,Ann\n,\n2,Bob\n3,\"Cas\n")
	read := func(n int) (rows []source.Row, ended string, info source.Info) {
		f := opened(t, path, source.Options{})
		held := len(f.ReadAhead(n))
		if want := min(n, 2); n < 3 && held != want {
			t.Errorf("%d held, want %d", held, want)
		}
		rows, err := rowsUntil(f)
		return rows, fmt.Sprint(err, f.Next(new(source.Row))), f.Info()
	}
	rows, ended, info := read(0)
	for n := 1; n < 9; n++ {
		got, how, then := read(n)
		must.Same(t, []any{rows, ended, info}, []any{got, how, then}, n)
	}
}
