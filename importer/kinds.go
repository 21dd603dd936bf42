package importer

import (
	"cmp"
	"slices"
	"strings"

	"leadferry/importer/findings"
	"leadferry/importer/report"
	"leadferry/internal/spelling"
	"leadferry/mapping"
)

// The kinds by which rows of a dry run are counted.

// maxKinds is how many problems and texts are counted apart, mostAssigned how many destinations are listed of each
// kind.
const (
	maxKinds     = 1000
	maxAssigned  = 10000
	mostAssigned = 100
)

var numbers = spelling.Form(`[0-9]+|…`)

// kindOf is a problem without the row's word. If the row cannot be read, its text may have an offset or a count, which
// does not make another kind.
func kindOf(p mapping.Problem, unreadable bool) mapping.Problem {
	p.Word, p.Value = "", ""
	if unreadable {
		p.Text = numbers().ReplaceAllString(p.Text, "…")
	}
	return p
}

// common is text a with … in place of each number that b has not.
func common(a, b string) string {
	others := numbers().FindAllString(b, -1)
	i := -1
	return numbers().ReplaceAllStringFunc(a, func(number string) string {
		if i++; i < len(others) && number == others[i] {
			return number
		}
		return "…"
	})
}

func keepProblem(p mapping.Problem, full bool) mapping.Problem {
	if full {
		return mapping.Problem{Rule: "other", Text: "fails a check that is none of those listed"}
	}
	return p
}

// rules are the problems, those of most rows first.
func (d *dryRun) rules() (list []report.Rule) {
	for _, p := range d.problems.List(func(p mapping.Problem) string { return p.Rule + p.Column + p.Text }) {
		list = append(list, report.Rule{
			Rule: p.Of.Rule, Column: p.Of.Column, Error: cmp.Or(d.texts[p.Of], p.Of.Text), Rows: p.Count,
			Places: p.Places(d.intake.place),
		})
	}
	return list
}

// statusValue is what a mapping calls the status of leads.
const statusValue = "lead.status"

// wordOf is the word of a problem. Only a terminal shows it, because it may be anything.
func wordOf(p mapping.Problem) report.Word {
	const longWord = 200 // characters
	return report.Word{Value: p.Value, Text: report.Shortened(p.Word, longWord)}
}

func keepWord(w report.Word, full bool) report.Word {
	if full {
		return report.Word{Hidden: "other texts"}
	}
	w.Text = strings.Clone(w.Text)
	return w
}

// wordList is the words by value, those of most rows first.
func wordList(words *findings.Kinds[report.Word], at func(findings.Spot) report.Place) (list []report.Word) {
	for _, kind := range words.List(func(w report.Word) string { return w.Text }) {
		w := kind.Of
		w.Text, w.Rows, w.Place = report.Escape(w.Text), kind.Count, at(kind.First[0])
		list = append(list, w)
	}
	slices.SortStableFunc(list, func(a, b report.Word) int { return cmp.Compare(a.Value, b.Value) })
	return list
}

// assignmentOf is who gets the lead of a row.
func assignmentOf(rec *mapping.Record) report.Assignment {
	if rec.Organization != "" {
		return report.Assignment{OrganizationID: rec.Organization}
	}
	return report.Assignment{LocatorID: rec.Locator, Entry: rec.Entry}
}

func keepAssignment(a report.Assignment, full bool) report.Assignment {
	if full {
		return report.Assignment{Others: a.Kind()}
	}
	a.OrganizationID, a.LocatorID = strings.Clone(a.OrganizationID), strings.Clone(a.LocatorID)
	return a
}

// assignments are organizations, then locators, those of most rows first. Those beyond the bound are added up.
func assignments(all *findings.Kinds[report.Assignment]) (list []report.Assignment) {
	kinds := all.List(func(a report.Assignment) string { return a.OrganizationID + a.LocatorID })
	for _, kind := range []string{"organizations", "locators"} {
		listed, others := 0, 0
		for _, one := range kinds {
			switch a := one.Of; {
			case a.Kind() != kind:
			case a.Others != "" || listed == mostAssigned:
				others += one.Count
			default:
				listed, a.Rows = listed+1, one.Count
				list = append(list, a)
			}
		}
		if others > 0 {
			list = append(list, report.Assignment{Others: kind, Rows: others})
		}
	}
	return list
}
