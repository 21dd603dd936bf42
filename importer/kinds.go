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

// word is a text that a map lacks, or the reason why it is not shown.
type word struct{ value, text, hidden string }

// statusValue is what a mapping calls the status of leads.
const statusValue = "lead.status"

// wordOf is the word of a problem. Only a terminal shows it, because it may be anything.
func wordOf(p mapping.Problem) word {
	const longWord = 200 // characters
	return word{value: p.Value, text: report.Shortened(p.Word, longWord)}
}

func keepWord(w word, full bool) word {
	if full {
		return word{hidden: report.OtherTexts}
	}
	return word{w.value, strings.Clone(w.text), w.hidden}
}

// wordList is the words by value, those of most rows first.
func wordList(words *findings.Kinds[word], at func(findings.Spot) report.Place) (list []report.Word) {
	for _, w := range words.List(func(w word) string { return w.text }) {
		list = append(list, report.Word{
			Value: w.Of.value, Text: report.Escape(w.Of.text), Hidden: w.Of.hidden, Rows: w.Count,
			Place: at(w.First[0]),
		})
	}
	slices.SortStableFunc(list, func(a, b report.Word) int { return cmp.Compare(a.Value, b.Value) })
	return list
}

// destination is who gets a lead; others stands for all beyond the bound.
type destination struct {
	organization, locator string
	entry                 int // of assign, that names the locator
	others                string
}

func destinationOf(rec *mapping.Record) destination {
	if rec.Organization != "" {
		return destination{organization: rec.Organization}
	}
	return destination{locator: rec.Locator, entry: rec.Entry}
}

// kind says whether it is an organization or a locator.
func (d *destination) kind() string {
	if d.organization != "" {
		return "organizations"
	}
	return cmp.Or(d.others, "locators")
}

func keepDestination(d destination, full bool) destination {
	if full {
		return destination{others: d.kind()}
	}
	return destination{organization: strings.Clone(d.organization), locator: strings.Clone(d.locator), entry: d.entry}
}

// assignments are organizations, then locators, those of most rows first. Those beyond the bound are added up.
func assignments(all *findings.Kinds[destination]) (list []report.Assignment) {
	kinds := all.List(func(destination) string { return "" })
	slices.SortStableFunc(kinds, func(a, b findings.Kind[destination]) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count),
			cmp.Compare(a.Of.organization+a.Of.locator, b.Of.organization+b.Of.locator))
	})
	for _, kind := range []string{"organizations", "locators"} {
		listed, others := 0, 0
		for _, d := range kinds {
			switch {
			case d.Of.kind() != kind:
			case d.Of.others != "" || listed == mostAssigned:
				others += d.Count
			default:
				listed++
				list = append(list, report.Assignment{
					OrganizationID: d.Of.organization, LocatorID: d.Of.locator, Entry: d.Of.entry, Rows: d.Count,
				})
			}
		}
		if others > 0 {
			list = append(list, report.Assignment{Others: kind, Rows: others})
		}
	}
	return list
}
