package mapping

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"leadferry/internal/testsupport/must"
)

// faults 104, m30
func TestParseRefusesWhatYAMLOffersBeyondPlainData(t *testing.T) {
	refusedAll(t, "plain.yaml")
	for _, tt := range []struct{ name, file, want string }{
		{"another encoding", "version: 1\n# J\xf6rg\n", "m:2:4: the mapping file is not text in UTF-8\nhint: save the file as UTF-8 (the > of Windows PowerShell writes UTF-16)"},
		{"UTF-16", "\xff\xfev\x00", "m:1:1: the mapping file is not text in UTF-8\nhint: save the file as UTF-8 (the > of Windows PowerShell writes UTF-16)"},
		{"a control character", "# ä\x00", "m:1:4: the mapping file is not text in UTF-8\nhint: save the file as UTF-8 (the > of Windows PowerShell writes UTF-16)"},
		{"a long file", "version: 1\n#" + strings.Repeat(" ", MaxBytes), "m:1:1: the mapping file is longer than 1 MiB"},
		{"deep lists", strings.Repeat("[", 20000), "m:1:65: the mapping file is not YAML: exceeded max depth of 64 while increasing flow level\nhint: look at this line and the one above: put texts with signs into quotes, a blank after each colon, and spaces, no tabs, before lines"},
		{"deep lines", strings.Repeat("- ", 20000), "m:1:129: the mapping file is not YAML: exceeded max depth of 64 while increasing indent level\nhint: look at this line and the one above: put texts with signs into quotes, a blank after each colon, and spaces, no tabs, before lines"},
	} {
		t.Run(tt.name, func(t *testing.T) { refused(t, tt.file, tt.want) })
	}
}

// faults 104
func TestAnAliasBombIsNotUnfolded(t *testing.T) {
	var b strings.Builder
	b.WriteString("a0: &a0 [x]\n")
	for i := range 26 {
		b.WriteString(strings.NewReplacer("N", string(rune('A'+i)), "P", string(rune('A'+i-1))).Replace("N: &N [*P, *P]\n"))
	}
	_, err := Parse("m", []byte(strings.Replace(b.String(), "*@", "*a0", 2)), nil)
	if err == nil || !strings.Contains(err.Error(), "alias") {
		t.Error(err)
	}
}

// A table may have an entry for each of the 41,000 post codes of a large country.
func TestALargeTableIsTaken(t *testing.T) {
	file := "version: 1\nassign:\n- organization:\n    from: '{zip}'\n    map:\n"
	m := parse(t, file+numbered(41_000, "      N: org-N\n"))
	if n := len(m.plan.assign[0].organization.table.entries); n != 41_000 {
		t.Errorf("%d entries", n)
	}
}

// faults 104
func TestConformanceFilesGiveCleanErrorsOrLoad(t *testing.T) {
	files, err := filepath.Glob("../../shared/cases/yaml-test-suite/*/*.yaml")
	must.Do(t, err)
	if len(files) == 0 {
		t.Skip("the conformance files are not here")
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		must.Do(t, err)
		if !isClean(t, data) && filepath.Base(filepath.Dir(name)) == "invalid" {
			t.Errorf("%s was taken", name)
		}
	}
}

// isClean checks that data is accepted, or refused with errors that have a place and a text. It reports the refusal.
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

// numbered repeats text n times, with 0, 1, 2 and so on in the place of N.
func numbered(n int, text string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.ReplaceAll(text, "N", strconv.Itoa(i)))
	}
	return b.String()
}

// Every mistake has its place, and a hint that says what to edit. faults 105, 108
func TestMistakesAreReportedWithAPlaceAndAHint(t *testing.T) {
	header := Columns{Names: []string{"first", "last", "Lead Status", "vip", "a", "b", "score", "Stage"}, Own: 8}
	var cases []struct{ At, File string }
	readCases(t, "places.yaml", &cases)
	for _, c := range cases {
		m, err := Parse("m", []byte(c.File), nil)
		if err == nil {
			_, err = m.Bind("in.csv", header)
		}
		if err == nil || !strings.HasPrefix(err.Error(), "m:"+c.At+": ") {
			t.Errorf("%s\n%v, want it at %s", c.File, err, c.At)
			continue
		}
		if places, hints := strings.Count("\n"+err.Error(), "\nm:"), strings.Count(err.Error(), "\nhint: "); places != hints {
			t.Errorf("%s\n%d places and %d hints: %v", c.File, places, hints, err)
		}
	}
}
