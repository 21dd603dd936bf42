package findings

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"leadferry/importer/report"
	"leadferry/mapping"
)

func spotAt(number int) Spot { return Spot{Line: number + 1, Number: number} }

func at(s Spot) report.Place { return report.Place{File: "f", Line: s.Line} }

func TestProblemsAreBounded(t *testing.T) {
	s := NewProblems()
	for i := range 3 * maxProblems {
		row := spotAt(i + 1)
		for j := range 3 {
			s.Add(row, mapping.Problem{Rule: "format", Text: fmt.Sprint(i, j)}, false)
			s.Add(row, mapping.Problem{Rule: "format", Text: fmt.Sprint(i, j)}, false)
		}
	}
	list := s.List(at)
	if len(list) != maxProblems+1 || list[0].Rule != "other" || len(list[0].Places) != firstRows {
		t.Fatalf("%d checks, first %+v", len(list), list[0])
	}
	// The first 1,000 kinds come from 334 rows, the last of which has two kinds more.
	if want := 3*maxProblems - maxProblems/3; list[0].Rows != want {
		t.Errorf("%d rows beyond, want %d", list[0].Rows, want)
	}
	if list[1].Rows != 1 || list[1].Places[0].Line != 2 {
		t.Errorf("second check %+v", list[1])
	}
}

// Statuses that are not mapped are shown; what looks like a person's data is not, and
// where nearly every row has a word of its own, none is.
func TestStatusesThatAreNotMapped(t *testing.T) {
	various := func(n int) (list []string) {
		for i := range n {
			list = append(list, "name "+string(rune('A'+i/26))+string(rune('a'+i%26)))
		}
		return list
	}
	twice := func(list []string) []string { return append(list, list...) }
	long := strings.Repeat("Ö", 50)
	tests := []struct {
		name  string
		words []string
		want  []report.Word
	}{
		{"none", nil, nil},
		{"most rows first", []string{"a", "b", "b"}, []report.Word{
			{Text: "b", Rows: 2, Place: report.Place{File: "f", Line: 3}}, {Text: "a", Rows: 1, Place: report.Place{File: "f", Line: 2}},
		}},
		{"cut and escaped", []string{"\x1b[2J\u202e", long}, []report.Word{
			{Text: `\x1b[2J\u202e`, Rows: 1, Place: report.Place{File: "f", Line: 2}},
			{Text: long[:78] + "…", Rows: 1, Place: report.Place{File: "f", Line: 3}},
		}},
		{"personal", []string{"a", "ann@example.com", "617.555.0196", "(617) 5", "6175550196", "100000001", "Stage 1234"}, []report.Word{
			{Hidden: likePersons, Rows: 3, Place: report.Place{File: "f", Line: 3}},
			{Text: "(617) 5", Rows: 1, Place: report.Place{File: "f", Line: 5}},
			{Text: "100000001", Rows: 1, Place: report.Place{File: "f", Line: 7}},
			{Text: "Stage 1234", Rows: 1, Place: report.Place{File: "f", Line: 8}},
			{Text: "a", Rows: 1, Place: report.Place{File: "f", Line: 2}},
		}},
		{"a column of names", various(11), []report.Word{{Hidden: likeNothing, Rows: 11, Place: report.Place{File: "f", Line: 2}}}},
		{"more words than statuses", twice(various(51)), []report.Word{{Hidden: likeNothing, Rows: 102, Place: report.Place{File: "f", Line: 2}}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := NewStatuses()
			for i, w := range test.words {
				s.Add(spotAt(i+1), w)
			}
			if diff := cmp.Diff(test.want, s.List(at)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	s := NewStatuses()
	for i, w := range twice(various(50)) {
		s.Add(spotAt(i+1), w)
	}
	if n := len(s.List(at)); n != 50 {
		t.Errorf("%d words shown, want 50", n)
	}
}

func TestAssignedIsBounded(t *testing.T) {
	s := NewAssigned()
	for i := range maxAssigned + 50 {
		s.Add(&mapping.Record{Organization: fmt.Sprint("o-", i)})
		s.Add(&mapping.Record{Organization: "o-7"})
		s.Add(&mapping.Record{Locator: "l-1", Entry: 2})
	}
	s.Add(&mapping.Record{Locator: "l-1", Entry: 1})
	s.Add(&mapping.Record{})
	list := s.List()
	total := 0
	for _, a := range list {
		total += a.Rows
	}
	if total != 3*(maxAssigned+50)+2 {
		t.Errorf("%d rows in all", total)
	}
	first, others := list[0], list[mostAssigned]
	if first.OrganizationID != "o-7" || first.Rows != maxAssigned+51 || others.Others != "organizations" || list[mostAssigned+1].LocatorID != "l-1" {
		t.Errorf("first %+v, then %+v and %+v", first, others, list[mostAssigned+1])
	}
	if n := len(s.organizations) + len(s.locators); n > maxAssigned {
		t.Errorf("%d kept", n)
	}
}
