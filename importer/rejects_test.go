package importer

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"leadferry/importer/report"
	"leadferry/importer/source"
	"leadferry/internal/testsupport/must"
	"leadferry/leadapi"
)

// rejectsBy validates a file with a mapping that takes any data, and returns the path of the rejects. It is "" if there
// are none or the file is refused.
func rejectsBy(t *rapid.T, path, out string, o source.Options) (rows report.RowCounts, rejects string) {
	t.Helper()
	m := parsed(t, `{"version": 1, "lead": {"content": {"*": rest}}}`)
	f, err := source.Open(path, o)
	if err != nil {
		return rows, ""
	}
	defer f.Close()
	s, err := Run(context.Background(), Options{Task: Task{Command: "validate", Mapping: m, Inputs: []*source.File{f}}, Keeping: Keeping{Files: report.Files{Rejects: out}}})
	if err != nil { // for example, a column name that is used is there twice
		return rows, ""
	}
	for _, f := range s.Files {
		if f.Name == "rejects" && rejects != "" {
			t.Errorf("%s: rejects in several files: %v", path, s.Files)
		} else if f.Name == "rejects" {
			rejects = f.Path
		}
	}
	return s.Rows, rejects
}

// checkTwice validates a file, and then its uncorrected rejects. None of these may be a row that could be sent, and
// their own rejects must hold the same texts.
func checkTwice(t *rapid.T, path, dir string, o source.Options) (rejected int) {
	t.Helper()
	rows, rejects := rejectsBy(t, path, dir+"-1", o)
	if rejects == "" {
		return 0
	}
	again, second := rejectsBy(t, rejects, dir+"-2", o)
	if again.Read != rows.Invalid || again.Invalid != again.Read || second == "" {
		t.Errorf("%s: %d rows invalid; of its rejects %d rows were read and %d are invalid", path, rows.Invalid, again.Read, again.Invalid)
		return rows.Invalid
	}
	must.Same(t, texts(t, rejects, o), texts(t, second, o), path, "the rejects of the rejects")
	return rows.Invalid
}

// texts returns the Text of each row of a file.
func texts(t *rapid.T, path string, o source.Options) (all []string) {
	t.Helper()
	f, err := source.Open(path, o)
	if err != nil {
		t.Fatalf("%v", err)
	}
	defer f.Close()
	for row := new(source.Row); f.Next(row) == nil; {
		all = append(all, row.Text)
	}
	return all
}

// faults 90, 91, 96, 132
func TestUncorrectedRejectsOfAnyFileSendNothing(t *testing.T) {
	dir := t.TempDir()
	at := 0
	rapid.Check(t, func(t *rapid.T) {
		at++
		o := source.Options{
			Format:   rapid.SampledFrom([]source.Format{source.CSV, source.TSV, source.JSONL}).Draw(t, "format"),
			Encoding: rapid.SampledFrom([]string{"", "", "windows-1252", "shift_jis"}).Draw(t, "encoding"),
			NoQuotes: rapid.Bool().Draw(t, "no quotes"),
		}
		if o.NoHeader = rapid.IntRange(0, 3).Draw(t, "no header") == 0; o.NoHeader {
			o.Columns = []string{"a", "b"}
		}
		piece := rapid.SampledFrom([]string{
			"a", "1", ",", ",", "\t", "\"", "\"", "\n", "\n", "\r", " ", "\x00", "\xff", "\x81", "é", "\\", "=",
			`{"a":1}`, `{"a":`, "}", `{"a":"x","a":2}`, "{}", "[1]", `{"a":"\u0000"}`, `{"leadferry":{"text":"x"}}`, "leadferry_text", "leadferry_line,leadferry_outcome,leadferry_error",
		})
		text := "a,b\n" + strings.Join(rapid.SliceOfN(piece, 0, 40).Draw(t, "text"), "")
		path := filepath.Join(dir, fmt.Sprint(at))
		must.Do(t, os.WriteFile(path, []byte(text), 0o600))
		checkTwice(t, path, path+"-out", o)
	})
}

// fault 116: the service's words may repeat the row's data, so they are only where the row is.
func TestOnlyTheRejectsHoldTheServicesWords(t *testing.T) {
	j := &result{}
	j.refuse("not updated: %s", &leadapi.Error{Status: 422, Reason: leadapi.ReasonRefused, Message: `no "Ann Lee"`})
	if j.text != "not updated: HTTP 422 (refused), see the rejects" || j.rejected() != `not updated: HTTP 422 (refused): no "Ann Lee"` {
		t.Errorf("%q, whole %q", j.text, j.rejected())
	}
	j.refuse("not updated: %s", &leadapi.Error{Message: "no answer in time"})
	if j.text != "not updated: no answer in time" || j.rejected() != j.text {
		t.Errorf("the client's own words: %q, whole %q", j.text, j.rejected())
	}
}
