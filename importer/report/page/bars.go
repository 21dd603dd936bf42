package page

import (
	"fmt"
	"strconv"
	"strings"

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

// looksOf are those of an outcome. What a check found good looks so.
func looksOf(s *report.Summary, outcome string) looks {
	if outcome == "pending" && s.DryRun {
		return outcomeLooks["created"]
	}
	return outcomeLooks[outcome]
}

// segment is one part of a bar, in percent of its width.
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

func outcomesOf(s *report.Summary) *outcomes {
	o := new(outcomes)
	all := 0
	for _, c := range s.Outcomes() {
		if c.Rows > 0 {
			o.List = append(o.List, segment{
				looks: looksOf(s, c.Name), Name: spoken(c.Name), Rows: c.Rows, Attention: c.Attention, Meaning: c.Meaning,
			})
			all += c.Rows
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
	o.Desc = strings.Join(words, ", ") + ", of " + comma(all) + plural(all, " row.", " rows.") + " A part that would be too narrow to see is drawn wider."
	return o
}

// number is a measure of a drawing.
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

// restOf is the line of those that have none of their own.
func restOf(n, count int) bar {
	return bar{Name: comma(n) + plural(n, " other", " others"), Count: count, Rest: true}
}

func organizationsOf(all []report.Organization) *bars {
	shown := clip(all, mostOrganizations)
	var list []bar
	for _, o := range shown.Items {
		list = append(list, bar{Name: path(o.ID), Note: path(o.Location), Count: o.Leads})
	}
	if shown.More > 0 {
		others := 0
		for _, o := range all[mostOrganizations:] {
			others += o.Leads
		}
		list = append(list, restOf(shown.More, others))
	}
	return newBars("organizations", "Leads per organization", "Organization", "leads", list)
}

// assignedOf shows to whom a check expects leads to go.
func assignedOf(all []report.Assignment) *bars {
	shown := clip(all, mostOrganizations)
	var list []bar
	for _, a := range shown.Items {
		list = append(list, bar{Name: report.Escape(a.Whom()), Count: a.Rows})
	}
	if shown.More > 0 {
		others := 0
		for _, a := range all[mostOrganizations:] {
			others += a.Rows
		}
		list = append(list, restOf(shown.More, others))
	}
	return newBars("assigned", "Rows by whom they would be assigned to", "Assigned", "rows", list)
}

func verdictsOf(all []report.VerdictCount) *bars {
	var list []bar
	for _, v := range clip(all, mostOrganizations).Items {
		if v.Leads > 0 {
			list = append(list, bar{Name: spoken(report.Escape(v.Verdict)), Note: v.Meaning(), Count: v.Leads})
		}
	}
	return newBars("verdicts", "Verdicts", "Verdict", "leads", list)
}
