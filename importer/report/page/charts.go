package page

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/dustin/go-humanize"
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

// matrix shows how many leads went from which status to which, or have one here and another
// there: rows are from, columns are to.
type matrix struct {
	ID, Title, Desc string
	From, To        string // what rows and columns are
	Width, Height   int    // pixels
	Rows, Columns   []heading
	Cells           []cell
	List            clipped[report.Transition] // the same for the table
	Rings           bool                       // some cells are the same on both sides
}

type heading struct {
	Lines  []string // of its name
	X, Y   int
	Anchor string
}

type cell struct {
	X, Y    int
	Same    bool   // from and to are one
	Short   string // the count, as far as there is room; "" for 0
	Opacity string
}

// Pixels of a matrix; the template draws cells of this size.
const (
	cellWidth  = 96
	cellHeight = 40
	headWidth  = 150
	headHeight = 44
)

func (c *content) Moves() *matrix {
	return matrixOf("moves", "Changes of status that the service confirmed", [3]string{"from", "to", "not known"}, c.Transitions)
}

func (c *content) Statuses() *matrix {
	return matrixOf("statuses", "Status in the file and on the service", [3]string{"in the file", "on the service", "none"}, c.Reconciliation.Statuses)
}

// matrixOf arranges moves between statuses, the most frequent first. words are what rows and
// columns are, and what an empty status means. It is nil without any moves.
func matrixOf(id, title string, words [3]string, moves []report.Transition) *matrix {
	from, to, none := words[0], words[1], words[2]
	if len(moves) == 0 {
		return nil
	}
	moves = slices.Clone(moves)
	for i := range moves {
		m := &moves[i]
		m.From, m.To = cmp.Or(report.Escape(m.From), none), cmp.Or(report.Escape(m.To), none)
	}
	rows, columns := axes(moves)
	counts, most := map[[2]int]int{}, 1
	for _, m := range moves {
		at := [2]int{indexOf(rows, m.From), indexOf(columns, m.To)}
		counts[at] += m.Leads
		most = max(most, counts[at])
	}
	t := &matrix{
		ID: id, Title: title, From: from, To: to, List: clip(moves, mostStatuses*mostStatuses/2),
		Width: headWidth + len(columns)*cellWidth, Height: headHeight + len(rows)*cellHeight,
	}
	for i, name := range rows {
		t.Rows = append(t.Rows, headingOf(name, headWidth-10, headHeight+i*cellHeight+cellHeight/2, "end"))
	}
	for i, name := range columns {
		t.Columns = append(t.Columns, headingOf(name, headWidth+i*cellWidth+cellWidth/2, headHeight/2, "middle"))
	}
	for r := range rows {
		for c := range columns {
			n := counts[[2]int{r, c}]
			one := cell{X: headWidth + c*cellWidth, Y: headHeight + r*cellHeight, Same: rows[r] == columns[c], Opacity: "0"}
			if n > 0 {
				one.Short, one.Opacity = short(n), rounded(0.08+0.4*math.Sqrt(float64(n)/float64(most)))
			}
			t.Cells, t.Rings = append(t.Cells, one), t.Rings || one.Same
		}
	}
	top := slices.MaxFunc(moves, func(a, b report.Transition) int { return cmp.Compare(a.Leads, b.Leads) })
	t.Desc = fmt.Sprintf("%d by %d statuses. Most often: %s %s, %s %s, %s leads.", len(rows), len(columns), top.From, from, top.To, to, comma(top.Leads))
	return t
}

const others = "others"

// axes are the statuses that leads have on either side, by how many leads have them on any, so
// that those which both sides have come in the same order. More than a page shows are others.
func axes(moves []report.Transition) (from, to []string) {
	leads, in := map[string]int{}, [2]map[string]bool{{}, {}}
	for _, m := range moves {
		leads[m.From] += m.Leads
		leads[m.To] += m.Leads
		in[0][m.From], in[1][m.To] = true, true
	}
	names := slices.SortedFunc(maps.Keys(leads), func(a, b string) int { return cmp.Or(cmp.Compare(leads[b], leads[a]), cmp.Compare(a, b)) })
	side := func(has map[string]bool) []string {
		list := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !has[name] })
		if len(list) > mostStatuses {
			list = append(list[:mostStatuses-1], others)
		}
		return list
	}
	return side(in[0]), side(in[1])
}

// indexOf is the place of a name, or that of the others.
func indexOf(names []string, name string) int {
	if i := slices.Index(names, name); i >= 0 {
		return i
	}
	return len(names) - 1
}

// headingOf breaks a name such as closedNotInterested into two lines that fit.
func headingOf(name string, x, y int, anchor string) heading {
	const most = 13
	letters := []rune(name)
	if len(letters) <= most {
		return heading{[]string{name}, x, y + 4, anchor}
	}
	at := most
	for i := min(most, len(letters)-1); i > 3; i-- {
		if unicode.IsUpper(letters[i]) || letters[i] == ' ' {
			at = i
			break
		}
	}
	rest := letters[at:]
	if len(rest) > most+2 {
		rest = append(rest[:most+1:most+1], '…')
	}
	return heading{[]string{string(letters[:at]), strings.TrimSpace(string(rest))}, x, y - 3, anchor}
}

// short is a count in at most six characters.
func short(n int) string {
	if n < 100_000 {
		return comma(n)
	}
	value, prefix := humanize.ComputeSI(float64(n))
	return fmt.Sprintf("%.3g %s", value, prefix)
}
