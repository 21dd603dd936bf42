package importer

import (
	"cmp"
	"regexp"
	"slices"

	"leadferry/mapping"
)

// Bounds of what a rehearsal keeps of the rows' faults.
const (
	maxChecks   = 1000
	firstPlaces = 3
)

// check is one thing that is wrong with rows: how many, and the first of them.
type check struct {
	problem mapping.Problem // without the row's status
	rows    int
	places  []spot
	last    spot
}

// spot is where a row stands: on a line, of which a JSON array may have several rows.
type spot struct{ input, line, number int }

func placeOf(it *item) spot { return spot{it.input, it.row.Line, it.row.Number} }

// add counts a row once, however often it is added in a row's turn.
func (c *check) add(it *item) {
	at := placeOf(it)
	if c.rows > 0 && c.last == at {
		return
	}
	c.rows++
	c.last = at
	if len(c.places) < firstPlaces {
		c.places = append(c.places, at)
	}
}

// checks counts rows by what is wrong with them: rule, columns and text. Texts of rows
// that cannot be read may name an offset or a count: their numbers tell no two apart.
type checks struct{ known map[mapping.Problem]*check }

func newChecks() *checks { return &checks{map[mapping.Problem]*check{}} }

func (s *checks) add(it *item, p mapping.Problem) {
	p.Status = ""
	kind := p
	if it.row.Problem != nil {
		kind.Text = numbers.ReplaceAllString(p.Text, "…")
	}
	c := s.known[kind]
	if c == nil && len(s.known) >= maxChecks {
		kind = mapping.Problem{Rule: "other", Text: "fails a check that is none of those listed"}
		p, c = kind, s.known[kind]
	}
	if c == nil {
		c = &check{problem: p}
		s.known[kind] = c
	}
	if c.problem.Text != p.Text {
		c.problem.Text = common(c.problem.Text, p.Text)
	}
	c.add(it)
}

var numbers = regexp.MustCompile(`[0-9]+|…`)

// common is a with … for each number that is another one in b, which differs from a
// in numbers only.
func common(a, b string) string {
	others := numbers.FindAllString(b, -1)
	i := -1
	return numbers.ReplaceAllStringFunc(a, func(number string) string {
		if i++; i < len(others) && number == others[i] {
			return number
		}
		return "…"
	})
}

// list gives the checks, most rows first, then in file order.
func (s *checks) list() []*check {
	all := make([]*check, 0, len(s.known))
	for _, c := range s.known {
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b *check) int {
		return cmp.Or(cmp.Compare(b.rows, a.rows), before(a.places[0], b.places[0]),
			cmp.Compare(a.problem.Rule, b.problem.Rule), cmp.Compare(a.problem.Column, b.problem.Column), cmp.Compare(a.problem.Text, b.problem.Text))
	})
	return all
}

func before(a, b spot) int {
	return cmp.Or(cmp.Compare(a.input, b.input), cmp.Compare(a.number, b.number))
}
