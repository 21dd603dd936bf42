package mapping

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
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
		t.Run(tt.name, func(t *testing.T) { refused(t, tt.file, tt.want) })
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

// mistakes are files such as people write, and the place of the first mistake: alone, or beside the header below.
var mistakes = map[string]string{
	"version: 1\nlead:\n\ttype_key: a":                                                          "3:1",
	"version: 1\nlead:\n  content:\n    *: rest":                                                "4:6",
	"version: 1\nlead:\n  content:\n    zip: {from: \"{a}\", format: /^[0-9]{5}$/}":             "4:34",
	"version: 1\nlead:\n  content:\n    zip:\n      from: \"{a}\"\n      format: ^[0-9]{5}$":    "6:15",
	"version: 1\nlead:\n  type_key: a\n  type_label: Form: contact":                             "4:19",
	"version: 1\nlead:\n  status: {from: Stage, map: {Won: closedWon}}":                         "3:11",
	"version: 1\nlead:\n  content:\n    name: {first} {last}":                                   "4:19",
	"version: 1\nlead:\n  content:\n    name: {first}":                                          "4:11",
	"version: 1\n  key: \"{a}\"":                                                                "2:6",
	"version: 1\nkey: \"{a}\nlead: {}":                                                          "2:6",
	"version: 1\nlead:\n  content:\n    a: \"{a}\"\n    b: {from \"{b}\"}":                      "5:18",
	"version: 1\nlead:\n  content:\n    a: @key":                                                "4:8",
	"version: 1\nlead:\n  content:\n    a: {from: \"{a}\", apply: lower}":                       "4:29",
	"version: 1\nlead:\n  content:\n    a: {from: \"{a}\", apply: [\"date:dd/mm/yyyy hh:mm\"]}": "4:30",
	"version: 1\nlead:\n  content:\n    a: {from: \"{a}\", format: date:DD.MM.YYYY}":            "4:30",
	"version: 1\nlead:\n  content:\n    a: {{a}}":                                               "4:9",
	"version: 1\nlead:\n  content:\n    - a: \"{a}\"":                                           "4:5",
	"version: 1\ncontent:\n  a: \"{a}\"":                                                        "2:1",
	"version: 1\nlead:\n  status: \"{Stage}\"\n  map: {Won: closedWon}":                         "4:3",
	"version: 1\nlead:\n  status:\n    Won: closedWon\n    Lost: closedNotInterested":           "4:5",
	"version: 1\nlead:\n  content:\n    a: {from: \"{a}\", map: {x: }}":                         "4:31",
	"version: 1\nassign: {organization: \"{a}\"}":                                               "2:9",
	"version: 1\nkey: a":                                               "2:6",
	"version: 1\nkey: \"{A}\"":                                         "2:6",
	"version: 1\nlead: {content: {a: \"{frist} {last}\"}}":             "2:21",
	"version: 1\nsource: {delimiter: '\\t'}":                           "2:21",
	"version: 1\nsource: {encoding: ansi}":                             "2:20",
	"version: 1.0\nkey: \"{a}\"":                                       "1:10",
	"version: \"1\"\ntables: {d: {file: sub/d.csv, key: a, value: b}}": "2:20",
	"version: 1\ntables: {dealers: {x: y}}\nassign: [{organization: {from: \"{a}\", map: dealer}}]":          "3:44",
	"version: 1\nlead: {content: {a: {from: \"{a}\", on_invalid: skip, format: email}}}":                     "2:47",
	"version: 1\nlead: {content: {a: {first: \"{a}\"}}}":                                                     "2:29",
	"version: 1\nlead: {content: {a: {first: []}}}":                                                          "2:29",
	"version: 1\ntables: {dealers: dealers.csv, stages: [a, b], others: {file: o.csv, column: a, value: b}}": "2:19",
	"version: 1\nlead: {content: {a: \"{@now}\", b: [x], c: {join: [\"{a}\"], sep: [x]}}}":                   "2:21",
	"version: 1\nlead: {content: {a: {from: \"{a}\", apply: [\"replace:/a/b\"]}}}":                           "2:43",
	"version: 1\nlead: {content: {a: {from: \"{a}\", apply: [\"date:DD/MM/YYYY|MM/DD/YYYY\"]}}}":             "2:43",
	"version: 1\nlead: {content: {a: {from: \"{a}\", apply: [\"date:D. MMMM YYYY@ger\"]}}}":                  "2:43",
	"version: 1\nsource: {skip_rows: three}":                                                                 "2:21",
	"version: 1\nlead: {content: {a: {from: \"{a}\", required: yes}}}":                                       "2:45",
	"version: 1\nlead: {type_key: a, type_lable: b}":                                                         "2:21",
	"version: 1\nlead: {status: {from: \"{Stage}\", map: {Won: Won}}}":                                       "2:45",
	"version: 1\nlead: {content: {a: {from: '{\"name\": \"{first}\"}', as: json}}}":                          "2:21",
	"version: 1\nlead: {content: {a: {from: \"{a}\", apply: [\"e164:+49\"]}}}":                               "2:43",
	"version: 1\nlead: {content: {fax: null}}":                                                               "2:23",
	"version: 1\nlead: {content: {fax: {from: \"{a}\", default: ~}}}":                                        "2:46",
	"version: 1\nlead: {status: {from: \"{Stage}\", map: {Won: closedWon, Lost: NULL}}}":                     "2:62",
	"version: 1\nlead: {status: {from: \"{Stage}\", map: {Won: closedWon, null: open}}}":                     "2:56",
	"version: 1\nnamespace: ~": "2:12",
	"version: 1\nlead: {content: {a: {from: \"{a}\", apply: [\"lower|trim\", upper(x)]}}}":              "2:43",
	"version: 1\nlead: {content: {a: {from: \"{a}\", apply: [\"date:ISO8601\"]}}}":                      "2:43",
	"version: 1\nlead: {type_key: \"\"}":                                                                "2:18",
	"version: 1\nlead:\n  content:\n    name: \"{first}\n    last: \"{last}\"":                          "5:12",
	"version: 1\nlead:\n  content:\n    name: \"{first}\" \"{last}\"":                                   "4:21",
	"version: 1\nlead: {content: {a: {from: \"{a}\", map: dealers.csv}}}":                               "2:40",
	"version: 1\nlead: {content: {a: {from: \"{a}\", map: {file: dealers.csv, key: Name, value: ID}}}}": "2:40",
	"version: 1\nsource: {footer: Total (all)}":                                                         "2:18",
	"version: 1\nkey: \"{{ a }}\"":                                                                      "2:6",
	"version: 1\nkey: $a":                                                                               "2:6",
}

// Every mistake has its place, and a hint at the edit that mends it. faults 105, 108
func TestMistakesAreToldWithTheEditThatMendsThem(t *testing.T) {
	header := Columns{Names: []string{"first", "last", "Lead Status", "vip", "a", "b", "score", "Stage"}, Own: 8}
	for file, place := range mistakes {
		m, err := Parse("m", []byte(file+"\n"), nil)
		if err == nil {
			_, err = m.Bind("in.csv", header)
		}
		if err == nil || !strings.HasPrefix(err.Error(), "m:"+place+": ") {
			t.Errorf("%s\n%v, want it at %s", file, err, place)
			continue
		}
		if places, hints := strings.Count("\n"+err.Error(), "\nm:"), strings.Count(err.Error(), "\nhint: "); places != hints {
			t.Errorf("%s\n%d places and %d hints: %v", file, places, hints, err)
		}
	}
}
