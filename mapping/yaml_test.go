package mapping

import (
	"errors"
	"os"
	"path/filepath"
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
		{"keys twice", "version: 1\nlead:\n  content:\n    a: b\n    \"a\": c\n", "m:5:5: key \"a\" stands twice, first on line 4"},
		{"a key that is no text", "version: 1\n[a]: b\n", "m:2:1: a key must be a text"},
		{"a second document", "version: 1\n---\nversion: 1\n", "m:3:1: a second document begins here\nhint: keep one document a file"},
		{"a second document after an end", "version: 1\n...\nkey: a\n", "m:3:1: a second document begins here\nhint: keep one document a file"},
		{"a broken second document", "version: 1\n--- [\n", "m:3:1: the mapping file is not YAML: did not find expected node content while parsing a flow node"},
		{"an open list", "version: 1\nkey: [a\n", "m:3:1: the mapping file is not YAML: did not find expected ',' or ']' while parsing a flow sequence that begins on line 2"},
		{"another encoding", "version: 1\n# J\xf6rg\n", "m:2:4: the mapping file is not text in UTF-8\nhint: save the file as UTF-8"},
		{"UTF-16", "\xff\xfev\x00", "m:1:1: the mapping file is not text in UTF-8\nhint: save the file as UTF-8"},
		{"a control character", "# ä\x00", "m:1:4: the mapping file is not text in UTF-8\nhint: save the file as UTF-8"},
		{"a long file", "version: 1\n#" + strings.Repeat(" ", maxBytes), "m:1:1: the mapping file is longer than 1 MiB"},
		{"deep lists", strings.Repeat("[", 20000), "m:1:65: the mapping file is not YAML: exceeded max depth of 64 while increasing flow level"},
		{"deep lines", strings.Repeat("- ", 20000), "m:1:129: the mapping file is not YAML: exceeded max depth of 64 while increasing indent level"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Parse("m", []byte(tt.file))
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
	if _, err := Parse("m", []byte(strings.Replace(b.String(), "*@", "*a0", 2))); err == nil {
		t.Error("the file was taken")
	}
}

func TestJSONIsAMappingFileToo(t *testing.T) {
	m := parse(t, "\ufeff{\n\t\"version\": 1,\n\t\"key\": \"{id}\",\n\t\"lead\": {\"content\": {\"zip\": 123}}\n}\n")
	if m.KeyFrom() != "key" || len(m.plan.content) != 1 {
		t.Errorf("key from %s, %d content keys", m.KeyFrom(), len(m.plan.content))
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
		if refused := isClean(t, data); !refused && filepath.Base(filepath.Dir(name)) == "invalid" {
			t.Errorf("%s was taken", name)
		}
	}
}

// isClean checks that data is taken, or refused with errors that have a place in
// the file and a text; it reports which.
func isClean(t *testing.T, data []byte) (refused bool) {
	t.Helper()
	m, err := Parse("m", data)
	var es Errors
	switch {
	case err == nil && m == nil, err != nil && m != nil, err != nil && (!errors.As(err, &es) || len(es) == 0):
		t.Fatalf("mapping %v with error %v for %q", m, err, data)
	}
	for _, e := range es {
		if e.File != "m" || e.Line < 1 || e.Column < 1 || e.Text == "" {
			t.Errorf("the error %#v has no place for %q", e, data)
		}
	}
	return err != nil
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"", people, tenFields, "version: 1\nkey: *a\n", "a: &a [*a]\n", "{\"version\": 1, \"lead\": {\"content\": {\"x\": {\"from\": \"{{{a}\"}}}}",
		"version: 1\nsource: {null: [x], delimiter: tab}\nassign: [{locator: x, type: regions, postal_code: '{@run}'}]\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if isClean(t, data) {
			return
		}
		m, err := Parse("m", data)
		if err != nil {
			t.Fatalf("taken, then refused: %v", err)
		}
		b, err := m.Bind("in", Columns{Names: []string{"a"}, Own: 1, Open: true})
		if err != nil {
			t.Fatalf("an open input was refused: %v", err)
		}
		var rec Record
		if problems := b.Map([]string{"cell"}, Env{}, &rec); problems == nil && rec.Key == "" {
			t.Error("a record without key")
		}
	})
}
