package page

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode"

	"github.com/dustin/go-humanize"

	"leadferry/importer/report"
)

// matrix shows how many leads went from which status to which, or have one here and another
// there: rows are from, columns are to.
type matrix struct {
	ID, Title, Desc       string
	From, To              string // what rows and columns are
	Width, Height         int    // pixels
	Rows, Columns         []heading
	Cells                 []cell
	List                  clipped[report.Transition] // the same for the table
	CellWidth, CellHeight int
	Rings                 bool // some cells are the same on both sides
}

type heading struct {
	Lines  []string // of its name
	X, Y   int
	Anchor string
}

// Line is where one of its lines stands.
func (h heading) Line(i int) int { return h.Y + 15*i }

type cell struct {
	X, Y         int
	Same         bool // from and to are one
	Count        int
	Short        string // the count, as far as there is room
	Opacity      string
	TextX, TextY int
}

const (
	cellWidth  = 96
	cellHeight = 40
	headWidth  = 150
	headHeight = 44
)

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
		CellWidth: cellWidth, CellHeight: cellHeight,
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
			one := cell{X: headWidth + c*cellWidth, Y: headHeight + r*cellHeight, Count: n, Same: rows[r] == columns[c], Opacity: "0"}
			one.TextX, one.TextY = one.X+cellWidth/2, one.Y+cellHeight/2+4
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

// Inside a cell, a ring says that from and to are one.

func (c cell) InX() int { return c.X + 3 }
func (c cell) InY() int { return c.Y + 3 }
func (c cell) InW() int { return cellWidth - 6 }
func (c cell) InH() int { return cellHeight - 6 }

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
