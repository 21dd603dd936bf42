package propose

import (
	"slices"
	"strings"
	"testing"

	"leadferry/internal/testsupport/must"
	"leadferry/mapping"
)

// partsOf returns what the headers of a file without rows are taken for: "part=header".
func partsOf(headers ...string) []string {
	var list []string
	d := newDraft(Input{File: "f.csv", Source: mapping.Source{Format: "csv", Columns: headers}, Complete: true})
	for _, c := range d.columns {
		if c.part != "" && c != d.Organization.Column {
			list = append(list, string(c.part)+"="+c.header)
		}
	}
	if d.Organization.Column != nil {
		list = append(list, "organization="+d.Organization.Column.header)
	}
	if d.Key.Column != nil {
		list = append(list, "key="+d.Key.Column.header)
	}
	slices.Sort(list)
	return list
}

func TestHeadersAndStatusesOfManyLanguages(t *testing.T) {
	var cases struct {
		Headers []struct {
			Name          string
			Headers, Want []string
		}
		Statuses map[string][]string // words by status; "": none
	}
	readCases(t, "names.yaml", &cases)
	for _, c := range cases.Headers {
		must.Same(t, c.Want, partsOf(c.Headers...), c.Name)
	}
	for want, words := range cases.Statuses {
		for _, word := range words {
			if got := placeStatus(word).part; got != part(want) {
				t.Errorf("%q: %q, want %q", word, got, want)
			}
		}
	}
}

// If a phrase meant two statuses, the order of the table would decide.
func TestEachPhraseMeansOneStatus(t *testing.T) {
	for word, signs := range known().statuses {
		for _, s := range signs {
			if s.part != signs[0].part || !slices.Contains(mapping.Statuses(), string(s.part)) {
				t.Errorf("%q means %s and %s", word, signs[0].part, s.part)
			}
		}
	}
}

// fault 132
func TestALeadIsNotTakenForAHeader(t *testing.T) {
	for _, test := range []struct {
		first, second string
		headless      bool
	}{
		{"ann@example.com,Ann,x", "bob@example.com,Bob,y", true},
		{"Ann,ann@example.com", "", true},
		{"1,Ann,617-555-0101,2026-01-02", "2,Bob,617-555-0102,2026-01-03", true},
		{"Ann,Lee,617-555-0101,L-77", "Bob,Ray,617-555-0102,L-78", true},
		{"id,email,phone", "1,ann@example.com,617-555-0101", false},
		{"Kennung,2024,2025", "A1,5,6", false},
		{"2024-01-01,2024-02-01,Name", "2024-01-05,2024-02-07,Ann", false},
		{"a,b,c", "1,2,3", false},
		{"1,english", "5,german\n3,french", false},
		{"Ann,Lee,617-555-0101,02134", "", true},
		{"Anrede,2024,2025", "", false},
		{"Ann,Lee,New,Bonn,Germany,x", "Bob,Ray,New,Bonn,France,y", true},
		{"1,Ann,617-555-0101,2026-01-02,Phone,x", "2,Bob,617-555-0102,2026-01-03,Web,y", true},
		{"id,contact@example.com's list", "1,x", false},
	} {
		in := Input{Source: mapping.Source{Format: "csv", Columns: strings.Split(test.first, ",")}}
		if test.second != "" {
			for line := range strings.SplitSeq(test.second, "\n") {
				in.Rows = append(in.Rows, strings.Split(line, ","))
			}
		}
		table := newDraft(in)
		if table.Headless != test.headless {
			t.Errorf("%s: header taken for a lead: %v", test.first, table.Headless)
		}
		if rows := table.In.Rows; test.headless && (len(rows) != len(in.Rows)+1 || rows[0][0] != in.Columns[0] || table.In.Columns[0] != "col1") {
			t.Errorf("%s: columns %q, rows %q", test.first, table.In.Columns, rows)
		}
	}
}
