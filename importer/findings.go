package importer

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"leadferry/importer/report"
	"leadferry/mapping"
)

// Bounds of what a dry run keeps of the rows' faults.
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
func (s *checks) list(at func(spot) report.Place) (rules []report.Rule) {
	all := make([]*check, 0, len(s.known))
	for _, c := range s.known {
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b *check) int {
		return cmp.Or(cmp.Compare(b.rows, a.rows), before(a.places[0], b.places[0]),
			cmp.Compare(a.problem.Rule, b.problem.Rule), cmp.Compare(a.problem.Column, b.problem.Column), cmp.Compare(a.problem.Text, b.problem.Text))
	})
	for _, c := range all {
		r := report.Rule{Rule: c.problem.Rule, Column: c.problem.Column, Error: c.problem.Text, Rows: c.rows}
		for _, place := range c.places {
			r.Places = append(r.Places, at(place))
		}
		rules = append(rules, r)
	}
	return rules
}

func before(a, b spot) int {
	return cmp.Or(cmp.Compare(a.input, b.input), cmp.Compare(a.number, b.number))
}

// Bounds of what is kept and shown of statuses that are not mapped.
const (
	maxWords    = 50
	longWord    = 40 // characters
	tooVaried   = 10 // words from which on nearly each row having its own is no status
	manyDigits  = 5
	likePersons = "texts that look like personal data, not shown"
	likeNothing = "texts too varied for a status, not shown: is it taken from the right column?"
)

// words counts statuses that are not mapped. A mapping may take them from the wrong
// column by mistake, so that what looks like a person's data is counted only.
type words struct {
	known    map[string]*check
	personal check
	further  check // rows beyond maxWords
	rows     check
}

func newWords() *words { return &words{known: map[string]*check{}} }

func (s *words) add(it *item, word string) {
	s.rows.add(it)
	if isPersonal(word) {
		s.personal.add(it)
		return
	}
	word = shortened(word, longWord)
	c := s.known[word]
	switch {
	case c != nil:
	case len(s.known) >= maxWords:
		c = &s.further
	default:
		c = &check{}
		s.known[strings.Clone(word)] = c
	}
	c.add(it)
}

// isPersonal reports whether a text holds an @ or five digits in a row, also with
// such signs between as stand in phone numbers and dates.
func isPersonal(word string) bool {
	digits := 0
	for _, r := range word {
		switch {
		case r == '@':
			return true
		case unicode.IsDigit(r):
			if digits++; digits == manyDigits {
				return true
			}
		case !strings.ContainsRune(" .-/()+\u00a0", r):
			digits = 0
		}
	}
	return false
}

// varied reports whether the words are too many, or too often new, for statuses.
func (s *words) varied() bool {
	return s.further.rows > 0 || len(s.known) > tooVaried && 2*len(s.known) > s.rows.rows-s.personal.rows
}

// list gives the words, most rows first.
func (s *words) list(at func(spot) report.Place) []report.Word {
	var list []report.Word
	add := func(c *check, status, hidden string) {
		if c.rows > 0 {
			list = append(list, report.Word{Status: status, Hidden: hidden, Rows: c.rows, Place: at(c.places[0])})
		}
	}
	add(&s.personal, "", likePersons)
	if s.varied() {
		all := check{rows: s.rows.rows - s.personal.rows, places: []spot{s.first()}}
		add(&all, "", likeNothing)
	} else {
		for word, c := range s.known {
			add(c, report.Escape(word), "")
		}
	}
	slices.SortFunc(list, func(a, b report.Word) int {
		return cmp.Or(cmp.Compare(b.Rows, a.Rows), cmp.Compare(a.Hidden, b.Hidden), cmp.Compare(a.Status, b.Status))
	})
	return list
}

// first is the first row of a word that does not look like a person's data.
func (s *words) first() spot {
	var first *spot
	for _, c := range s.known {
		if first == nil || before(c.places[0], *first) < 0 {
			first = &c.places[0]
		}
	}
	return *first
}

// Bounds of what is kept, and listed of each kind, of whom rows name.
const (
	maxAssigned  = 10000
	mostAssigned = 100
)

// assigned counts rows by whom they name.
type assigned struct {
	rows      map[destination]*int
	elsewhere [2]int // beyond maxAssigned: organizations, locators
}

// destination is an organization, or a locator with the entry of assign that names it.
type destination struct {
	organization, locator string
	entry                 int
}

func newAssigned() *assigned { return &assigned{rows: map[destination]*int{}} }

func (s *assigned) add(rec *mapping.Record) {
	d := destination{organization: rec.Organization}
	kind := 0
	if rec.Organization == "" {
		d.locator, d.entry, kind = rec.Locator, rec.Entry, 1
	}
	rows := s.rows[d]
	switch {
	case rows != nil:
	case len(s.rows) >= maxAssigned:
		rows = &s.elsewhere[kind]
	default:
		rows = new(int)
		d.organization, d.locator = strings.Clone(d.organization), strings.Clone(d.locator)
		s.rows[d] = rows
	}
	*rows++
}

// list gives organizations, then locators, each most rows first.
func (s *assigned) list() []report.Assignment {
	var organizations, locators []report.Assignment
	for d, rows := range s.rows {
		if d.organization != "" {
			organizations = append(organizations, report.Assignment{OrganizationID: d.organization, Rows: *rows})
		} else {
			locators = append(locators, report.Assignment{LocatorID: d.locator, Entry: d.entry, Rows: *rows})
		}
	}
	return append(most(organizations, "organizations", s.elsewhere[0]), most(locators, "locators", s.elsewhere[1])...)
}

// most keeps the most frequent of all and adds up the others, with those elsewhere.
func most(all []report.Assignment, others string, elsewhere int) []report.Assignment {
	slices.SortFunc(all, func(a, b report.Assignment) int {
		return cmp.Or(cmp.Compare(b.Rows, a.Rows), cmp.Compare(a.OrganizationID, b.OrganizationID),
			cmp.Compare(a.LocatorID, b.LocatorID), cmp.Compare(a.Entry, b.Entry))
	})
	for i := mostAssigned; i < len(all); i++ {
		elsewhere += all[i].Rows
	}
	all = all[:min(len(all), mostAssigned)]
	if elsewhere > 0 {
		all = append(all, report.Assignment{Others: others, Rows: elsewhere})
	}
	return all
}
