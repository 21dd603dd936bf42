package importer

import (
	"encoding/csv"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"leadferry/internal/testsupport/must"
	"leadferry/mapping"
)

// fences matches the examples of a page: their kind, name and text.
var fences = regexp.MustCompile("(?ms)^```(\\w+)(?: ([\\w.]+))?\n(.*?)^```$")

// leftOut matches differences in parts that an example omits because it is about something else.
var leftOut = regexp.MustCompile(`^(typeKey is "",|typeLabel is "",|content is \{\},)`)

// Each example of the page is right: its tests pass, or it is refused with the words below it.
func TestExamplesOfTheMappingPageAreRight(t *testing.T) {
	page, err := os.ReadFile("../docs/mapping.md")
	must.Do(t, err)
	tables := map[string]string{}
	refusal, run := "", 0
	for _, fence := range fences.FindAllStringSubmatch(string(page), -1) {
		kind, about, text := fence[1], fence[2], fence[3]
		switch {
		case kind == "csv":
			tables[about] = text
			continue
		case kind == "text":
			must.Same(t, strings.TrimSpace(text), refusal, "what is said of a mistake")
			continue
		}
		m, err := mapping.Parse("mapping.yaml", []byte("version: 1\n"+text), tableOf(t, tables))
		switch {
		case about == "wrong" && err == nil:
			t.Errorf("taken:\n%s", text)
		case about == "wrong":
			refusal = err.Error()
		case err != nil:
			t.Errorf("%v:\n%s", err, text)
		case len(m.Tests) == 0:
			t.Errorf("no tests:\n%s", text)
		default:
			for _, test := range m.Tests {
				run++
				differences := slices.DeleteFunc(test.Run(m, createBody), func(d string) bool { return leftOut.MatchString(d) })
				if len(differences) > 0 {
					t.Errorf("%s:\n%s", strings.Join(differences, "\n"), text)
				}
			}
		}
	}
	if run < 15 {
		t.Errorf("%d tests were run: the page is not read as it is written", run)
	}
}

// tableOf reads the tables of a page.
func tableOf(t *testing.T, tables map[string]string) mapping.ReadTable {
	return func(name, key, value string, add func(line int, key, value string)) mapping.Errors {
		rows, err := csv.NewReader(strings.NewReader(tables[name])).ReadAll()
		if err != nil || len(rows) == 0 || rows[0][0] != key || rows[0][1] != value {
			t.Fatalf("the table %s: %v %q", name, err, rows)
		}
		for i, row := range rows[1:] {
			add(i+2, row[0], row[1])
		}
		return nil
	}
}
