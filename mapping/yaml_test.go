package mapping

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// faults 104, m30
func TestParseRefusesWhatYAMLOffersBeyondPlainData(t *testing.T) {
	tests := []struct{ name, file, want string }{
		{"aliases, anchors, tags", "version: &a 1\nkey: *a\nlead: {status: !!str open}\n", "m:1:10: anchors are not allowed\nhint: write the value out where it is used\n" +
			"m:2:6: aliases are not allowed\nhint: write the value out\n" +
			"m:3:16: tags are not allowed\nhint: leave the tag out: every constant is text"},
		{"merge keys", "version: 1\nlead:\n  <<: {status: open}\n", "m:3:3: merge keys are not allowed\nhint: write the keys out"},
		{"keys twice", "version: 1\nlead:\n  content:\n    a: b\n    \"a\": c\n", "m:5:5: key \"a\" is there twice, first on line 4"},
		{"a key that is no text", "version: 1\n[a]: b\n", "m:2:1: a key must be a text\nhint: a text that begins with a placeholder needs quotes: \"{column}\""},
		{"a second document", "version: 1\n---\nversion: 1\n", "m:3:1: a second document begins here\nhint: keep one document a file"},
		{"a second document after an end", "version: 1\n...\nkey: a\n", "m:3:1: a second document begins here\nhint: keep one document a file"},
		{"a broken second document", "version: 1\n--- [\n", "m:3:1: the mapping file is not YAML: did not find expected node content while parsing a flow node\nhint: look at this line and the one above: put texts with signs into quotes, a blank behind each colon, and spaces, no tabs, before lines"},
		{"an open list", "version: 1\nkey: [a\n", "m:3:1: the mapping file is not YAML: did not find expected ',' or ']' while parsing a flow sequence that begins on line 2\nhint: look at this line and the one above: put texts with signs into quotes, a blank behind each colon, and spaces, no tabs, before lines"},
		{"another encoding", "version: 1\n# J\xf6rg\n", "m:2:4: the mapping file is not text in UTF-8\nhint: save the file as UTF-8 (the > of Windows PowerShell writes UTF-16)"},
		{"UTF-16", "\xff\xfev\x00", "m:1:1: the mapping file is not text in UTF-8\nhint: save the file as UTF-8 (the > of Windows PowerShell writes UTF-16)"},
		{"a control character", "# ä\x00", "m:1:4: the mapping file is not text in UTF-8\nhint: save the file as UTF-8 (the > of Windows PowerShell writes UTF-16)"},
		{"a long file", "version: 1\n#" + strings.Repeat(" ", maxBytes), "m:1:1: the mapping file is longer than 1 MiB"},
		{"a tab", "version: 1\nlead:\n  a: b\n\tcontent: {c: d}\n", "m:4:1: the mapping file is not YAML: found a tab character that violates indentation while scanning a plain scalar that begins on line 3\nhint: look at this line and the one above: put texts with signs into quotes, a blank behind each colon, and spaces, no tabs, before lines"},
		{"deep lists", strings.Repeat("[", 20000), "m:1:65: the mapping file is not YAML: exceeded max depth of 64 while increasing flow level\nhint: look at this line and the one above: put texts with signs into quotes, a blank behind each colon, and spaces, no tabs, before lines"},
		{"deep lines", strings.Repeat("- ", 20000), "m:1:129: the mapping file is not YAML: exceeded max depth of 64 while increasing indent level\nhint: look at this line and the one above: put texts with signs into quotes, a blank behind each colon, and spaces, no tabs, before lines"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Parse("m", []byte(tt.file), nil)
			if err == nil {
				t.Fatal("the file was taken")
			}
			if diff := cmp.Diff(tt.want, err.Error()); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
		})
	}
}

// faults 104
func TestAnAliasBombIsNotUnfolded(t *testing.T) {
	var b strings.Builder
	b.WriteString("a0: &a0 [x]\n")
	for i := range 30 {
		b.WriteString(strings.NewReplacer("N", string(rune('A'+i)), "P", string(rune('A'+i-1))).Replace("N: &N [*P, *P]\n"))
	}
	if _, err := Parse("m", []byte(strings.Replace(b.String(), "*@", "*a0", 2)), nil); err == nil {
		t.Error("the file was taken")
	}
}

// A table for each of the 41,000 post codes of a large country is an honest mapping.
func TestALargeTableIsTaken(t *testing.T) {
	file := "version: 1\nassign:\n- organization:\n    from: '{zip}'\n    map:\n"
	m := parse(t, file+numbered(41_000, "      N: org-N\n"))
	if n := len(m.plan.assign[0].organization.table.words); n != 41_000 {
		t.Errorf("%d entries", n)
	}
}

// faults 104
func TestConformanceFilesGiveCleanErrorsOrLoad(t *testing.T) {
	files, err := filepath.Glob("../../shared/cases/yaml-test-suite/*/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Skip("the conformance files are not here")
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if !isClean(t, data) && filepath.Base(filepath.Dir(name)) == "invalid" {
			t.Errorf("%s was taken", name)
		}
	}
}

// isClean checks that data is taken, or refused with errors that have a place in
// the file and a text; it reports which.
func isClean(t *testing.T, data []byte) (refused bool) {
	t.Helper()
	m, err := Parse("m", data, nil)
	var es Errors
	switch {
	case err == nil && m == nil, err != nil && (!errors.As(err, &es) || len(es) == 0):
		t.Fatalf("mapping %v with error %v for %q", m, err, data)
	}
	for _, e := range es {
		if e.File != "m" || e.Line < 1 || e.Column < 1 || e.Text == "" {
			t.Errorf("the error %#v has no place for %q", e, data)
		}
	}
	return err != nil
}

// numbered is text n times, with the numbers from 0 for N.
func numbered(n int, text string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.ReplaceAll(text, "N", strconv.Itoa(i)))
	}
	return b.String()
}
