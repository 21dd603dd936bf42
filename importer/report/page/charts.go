package page

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize/english"
	"github.com/rivo/uniseg"

	"leadferry/importer/report"
)

// looks are a colour of the page and a pattern over it, by which outcomes are told apart.
type looks struct{ Series, Pattern string }

// The patterns of the page, beside none.
const (
	stripes = "stripes"
	back    = "back" // stripes the other way
	dots    = "dots"
)

var outcomeLooks = map[string]looks{
	"created": {"s2", ""}, "updated": {"s0", ""}, "unchanged": {"s5", ""}, "skipped": {"s6", ""},
	"changed": {"s4", stripes}, "unmatched": {"s4", back}, "conflict": {"s4", dots}, "partial": {"s0", stripes},
	"invalid": {"s1", stripes}, "rejected": {"s1", back}, "failed": {"s1", dots}, "in_doubt": {"s3", dots}, "pending": {"s6", stripes},
}

type segment struct {
	looks
	Name      string
	Rows      int
	Attention bool
	Meaning   string
	Share     string
	X, Width  string // percent
	Label     bool   // there is room for its name
}

// outcomes are the rows of a run as one bar.
type outcomes struct {
	Desc string
	List []segment
}

// percentOfLetter is how much of a bar's width a letter of a label takes up on a phone.
const percentOfLetter = 1.9

// leastWidth is how wide a part is drawn at least, in percent: one row of a million may be the
// one that matters.
const leastWidth = 0.7

func (c *content) Outcomes() *outcomes {
	o := new(outcomes)
	all := 0
	for _, of := range c.Summary.Outcomes() {
		like := outcomeLooks[of.Name]
		if of.Name == "pending" && c.DryRun { // what a check found good
			like = outcomeLooks["created"]
		}
		if of.Rows > 0 {
			o.List = append(o.List, segment{looks: like, Name: spoken(of.Name), Rows: of.Rows, Attention: of.Attention, Meaning: of.Meaning})
			all += of.Rows
		}
	}
	if len(o.List) == 0 {
		return nil
	}
	widths := make([]float64, len(o.List))
	whole := 0.0
	for i, p := range o.List {
		widths[i] = max(100*float64(p.Rows)/float64(all), leastWidth)
		whole += widths[i]
	}
	x := 0.0
	var words []string
	for i := range o.List {
		p, w := &o.List[i], widths[i]*100/whole
		p.X, p.Width, p.Share = number(x), number(w), percent(p.Rows, all)
		p.Label = w >= percentOfLetter*float64(len(p.Name)+1+len(p.Share))
		x += w
		words = append(words, comma(p.Rows)+" "+p.Name)
	}
	o.Desc = strings.Join(words, ", ") + ", of " + comma(all) + english.PluralWord(all, " row.", " rows.") + " A part that would be too narrow to see is drawn wider."
	return o
}

func number(f float64) string { return strconv.FormatFloat(f, 'f', -1, 32) }

// rounded is one with two digits behind the point, which is less than anybody sees.
func rounded(f float64) string {
	text := strings.TrimRight(fmt.Sprintf("%.2f", f), "0")
	return strings.TrimSuffix(text, ".")
}

// bars compare figures, the largest first.
type bars struct {
	ID, Title, Desc string
	What            string // that is compared
	Unit            string // that is counted
	List            []bar
	Height          int // pixels
}

type bar struct {
	Name, Note string
	Label      string // as much of the name as has room beside the count on a phone
	Aside      string // as much of the note as has room beside both on paper
	Count      int
	Y, BarY    int
	Width      string // percent
	Rest       bool   // the others together, which are not compared
}

const barHeight = 34

func newBars(id, title, what, unit string, list []bar) *bars {
	if len(list) == 0 {
		return nil
	}
	most := 1
	for _, b := range list {
		if !b.Rest {
			most = max(most, b.Count)
		}
	}
	for i := range list {
		b := &list[i]
		b.Label, b.Aside = fitting(b.Name, 36), fitting(b.Note, 44)
		b.Y, b.BarY = i*barHeight+14, i*barHeight+19
		b.Width = rounded(100 * float64(max(b.Count, 0)) / float64(most))
	}
	first := list[0]
	return &bars{
		ID: id, Title: title, What: what, Unit: unit, List: list, Height: len(list) * barHeight,
		Desc: fmt.Sprintf("%d bars, the first is %s with %s %s.", len(list), first.Name, comma(first.Count), unit),
	}
}

// fitting is a text that takes up so many columns at most, of which wide characters take two.
func fitting(text string, columns int) string {
	if uniseg.StringWidth(text) <= columns {
		return text
	}
	end, width := 0, 1
	for g := uniseg.NewGraphemes(text); g.Next() && width+g.Width() <= columns; {
		width += g.Width()
		_, end = g.Positions()
	}
	return text[:end] + "…"
}

// barsOf gives each item a bar, and those that are more than a page shows one together.
func barsOf[T any](all []T, barOf func(T) bar) (list []bar) {
	for i, item := range all {
		switch b := barOf(item); {
		case i < mostOrganizations:
			list = append(list, b)
		case i == mostOrganizations:
			n := len(all) - i
			list = append(list, bar{Name: comma(n) + english.PluralWord(n, " other", " others"), Count: b.Count, Rest: true})
		default:
			list[mostOrganizations].Count += b.Count
		}
	}
	return list
}

func (c *content) Organizations() *bars {
	return newBars("organizations", "Leads per organization", "Organization", "leads", barsOf(c.Summary.Organizations, func(o report.Organization) bar {
		return bar{Name: path(o.ID), Note: path(o.Location), Count: o.Leads}
	}))
}

// Assigned shows to whom a check expects leads to go.
func (c *content) Assigned() *bars {
	return newBars("assigned", "Rows by whom they would be assigned to", "Assigned", "rows", barsOf(c.Checks.Assignments, func(a report.Assignment) bar {
		return bar{Name: report.Escape(a.Whom()), Count: a.Rows}
	}))
}

func (c *content) Verdicts() *bars {
	if c.Reconciliation == nil {
		return nil
	}
	var list []bar
	for _, v := range clip(c.Reconciliation.Verdicts, mostOrganizations).Items {
		if v.Leads > 0 {
			list = append(list, bar{Name: spoken(report.Escape(v.Verdict)), Note: v.Meaning(), Count: v.Leads})
		}
	}
	return newBars("verdicts", "Verdicts", "Verdict", "leads", list)
}

func (c *content) Moves() *bars {
	return movesOf("moves", "Changes of status that the service confirmed", "From, to", "not known", c.Transitions)
}

func (c *content) Statuses() *bars {
	return movesOf("statuses", "Status in the file and on the service", "In the file, on the service", "none", c.Reconciliation.Statuses)
}

// movesOf shows how many leads went from which status to which, or have one here and another there; none is what an empty one means.
func movesOf(id, title, what, none string, moves []report.Transition) *bars {
	named := func(status string) string { return cmp.Or(report.Escape(status), none) }
	return newBars(id, title, what, "leads", barsOf(moves, func(t report.Transition) bar {
		return bar{Name: named(t.From) + " → " + named(t.To), Count: t.Leads}
	}))
}
