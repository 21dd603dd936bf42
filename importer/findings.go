package importer

import (
	"cmp"
	"slices"
	"strings"
	"unicode"

	"leadferry/importer/report"
	"leadferry/internal/lazyregexp"
	"leadferry/mapping"
)

// Bounds of what a dry run keeps of the rows' faults.
const (
	maxFindings = 1000
	firstSpots  = 3
)

// finding is one thing that is wrong with rows: how many, and the first of them.
type finding struct {
	problem mapping.Problem // without the row's status
	rows    int
	spots   []spot
	last    spot
}

// spot is where a row stands: on a line, of which a JSON array may have several rows.
type spot struct{ input, line, number int }

func spotOf(it *item) spot { return spot{it.input, it.row.Line, it.row.Number} }

// add counts a row once, however often it is added in a row's turn.
func (c *finding) add(it *item) {
	at := spotOf(it)
	if c.rows > 0 && c.last == at {
		return
	}
	c.rows++
	c.last = at
	if len(c.spots) < firstSpots {
		c.spots = append(c.spots, at)
	}
}

// findings count rows by what is wrong with them: rule, columns and text. Texts of rows
// that cannot be read may name an offset or a count: their numbers tell no two apart.
type findings struct{ known map[mapping.Problem]*finding }

func newFindings() *findings { return &findings{map[mapping.Problem]*finding{}} }

func (s *findings) add(it *item, p mapping.Problem) {
	p.Word, p.Value = "", ""
	kind := p
	if it.row.Problem != nil {
		kind.Text = numbers().ReplaceAllString(p.Text, "…")
	}
	c := s.known[kind]
	if c == nil && len(s.known) >= maxFindings {
		kind = mapping.Problem{Rule: "other", Text: "fails a check that is none of those listed"}
		p, c = kind, s.known[kind]
	}
	if c == nil {
		c = &finding{problem: p}
		s.known[kind] = c
	}
	if c.problem.Text != p.Text {
		c.problem.Text = common(c.problem.Text, p.Text)
	}
	c.add(it)
}

var numbers = lazyregexp.New(`[0-9]+|…`)

// common is a with … for each number that is another one in b, which differs from a
// in numbers only.
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

// list gives the findings, most rows first, then in file order.
func (s *findings) list(at func(spot) report.Place) (rules []report.Rule) {
	all := make([]*finding, 0, len(s.known))
	for _, c := range s.known {
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b *finding) int {
		return cmp.Or(cmp.Compare(b.rows, a.rows), before(a.spots[0], b.spots[0]),
			cmp.Compare(a.problem.Rule, b.problem.Rule), cmp.Compare(a.problem.Column, b.problem.Column), cmp.Compare(a.problem.Text, b.problem.Text))
	})
	for _, c := range all {
		r := report.Rule{Rule: c.problem.Rule, Column: c.problem.Column, Error: c.problem.Text, Rows: c.rows}
		for _, s := range c.spots {
			r.Places = append(r.Places, at(s))
		}
		rules = append(rules, r)
	}
	return rules
}

func before(a, b spot) int {
	return cmp.Or(cmp.Compare(a.input, b.input), cmp.Compare(a.number, b.number))
}

// maxLacking is how many different texts are kept that maps lack.
const maxLacking = 1000

// lackingWords counts the texts that the maps of values lack, but for that of the status. They
// are shown whatever they are, since a table's words may be codes, numbers or addresses.
type lackingWords struct {
	known   map[lackingWord]*finding
	further finding // rows of such texts, and those beyond maxLacking
}

func newLackingWords() *lackingWords { return &lackingWords{known: map[lackingWord]*finding{}} }

type lackingWord struct{ value, text string }

func (s *lackingWords) add(it *item, p mapping.Problem) {
	word := lackingWord{p.Value, p.Word}
	c := s.known[word]
	switch {
	case c != nil:
	case len(s.known) >= maxLacking:
		c = &s.further
	default:
		c = &finding{}
		s.known[lackingWord{p.Value, strings.Clone(p.Word)}] = c
	}
	c.add(it)
}

// list gives the texts by value, most rows first.
func (s *lackingWords) list(at func(spot) report.Place) (list []report.Lacking) {
	for word, c := range s.known {
		list = append(list, report.Lacking{Value: word.value, Text: report.Escape(word.text), Rows: c.rows, Place: at(c.spots[0])})
	}
	slices.SortFunc(list, func(a, b report.Lacking) int {
		return cmp.Or(cmp.Compare(a.Value, b.Value), cmp.Compare(b.Rows, a.Rows), cmp.Compare(a.Text, b.Text))
	})
	if s.further.rows > 0 {
		list = append(list, report.Lacking{Others: true, Rows: s.further.rows, Place: at(s.further.spots[0])})
	}
	return list
}

// Bounds of what is kept and shown of statuses that are not mapped.
const (
	maxWords    = 50
	longWord    = 40 // characters
	tooVaried   = 10 // words from which on nearly each row having its own is no status
	manyDigits  = 5  // with signs between
	mostOfCode  = 9  // digits without: a CRM's number of a status is no longer, a phone number is
	likePersons = "texts that look like personal data, not shown"
	likeNothing = "texts too varied for a status, not shown: is it taken from the right column?"
)

// statusWords counts statuses that are not mapped. A mapping may take them from the wrong
// column by mistake, so that what looks like a person's data is counted only.
type statusWords struct {
	known    map[string]*finding
	personal finding
	further  finding // rows beyond maxWords
	rows     finding
}

func newStatusWords() *statusWords { return &statusWords{known: map[string]*finding{}} }

func (s *statusWords) add(it *item, word string) {
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
		c = &finding{}
		s.known[strings.Clone(word)] = c
	}
	c.add(it)
}

// isPersonal reports whether a text holds an @, or so many digits as phone numbers and dates
// have, with their signs between or without.
func isPersonal(word string) bool {
	digits, signs := 0, 0
	for _, r := range word {
		switch {
		case r == '@':
			return true
		case unicode.IsDigit(r):
			if digits++; digits > mostOfCode || digits >= manyDigits && signs > 0 {
				return true
			}
		case strings.ContainsRune(" .-/()+\u00a0", r):
			signs++
		default:
			digits, signs = 0, 0
		}
	}
	return false
}

// varied reports whether the words are too many, or too often new, for statuses.
func (s *statusWords) varied() bool {
	return s.further.rows > 0 || len(s.known) > tooVaried && 2*len(s.known) > s.rows.rows-s.personal.rows
}

// list gives the words, most rows first.
func (s *statusWords) list(at func(spot) report.Place) []report.Word {
	var list []report.Word
	add := func(c *finding, status, hidden string) {
		if c.rows > 0 {
			list = append(list, report.Word{Status: status, Hidden: hidden, Rows: c.rows, Place: at(c.spots[0])})
		}
	}
	add(&s.personal, "", likePersons)
	if s.varied() {
		all := finding{rows: s.rows.rows - s.personal.rows, spots: []spot{s.first()}}
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
func (s *statusWords) first() spot {
	var first *spot
	for _, c := range s.known {
		if first == nil || before(c.spots[0], *first) < 0 {
			first = &c.spots[0]
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
	organizations map[string]*int
	locators      map[located]*int
	// Rows of destinations beyond maxAssigned.
	otherOrganizations, otherLocators int
}

// located is a locator with the entry of assign that names it.
type located struct {
	locator string
	entry   int
}

func newAssigned() *assigned {
	return &assigned{organizations: map[string]*int{}, locators: map[located]*int{}}
}

func (s *assigned) add(rec *mapping.Record) {
	var rows *int
	if rec.Organization != "" {
		rows = s.organizations[rec.Organization]
	} else {
		rows = s.locators[located{rec.Locator, rec.Entry}]
	}
	if rows == nil {
		rows = s.first(rec)
	}
	*rows++
}

// first is the counter of a destination that no row has named, or that of the others.
func (s *assigned) first(rec *mapping.Record) *int {
	rows, full := new(int), len(s.organizations)+len(s.locators) >= maxAssigned
	switch organization := rec.Organization; {
	case full && organization != "":
		return &s.otherOrganizations
	case full:
		return &s.otherLocators
	case organization != "":
		s.organizations[strings.Clone(organization)] = rows
	default:
		s.locators[located{strings.Clone(rec.Locator), rec.Entry}] = rows
	}
	return rows
}

// list gives organizations, then locators, each most rows first.
func (s *assigned) list() []report.Assignment {
	var organizations, locators []report.Assignment
	for organization, rows := range s.organizations {
		organizations = append(organizations, report.Assignment{OrganizationID: organization, Rows: *rows})
	}
	for l, rows := range s.locators {
		locators = append(locators, report.Assignment{LocatorID: l.locator, Entry: l.entry, Rows: *rows})
	}
	return append(most(organizations, "organizations", s.otherOrganizations), most(locators, "locators", s.otherLocators)...)
}

// most keeps the most frequent of all and adds up the others, with those that were not kept.
func most(all []report.Assignment, others string, rows int) []report.Assignment {
	slices.SortFunc(all, func(a, b report.Assignment) int {
		return cmp.Or(cmp.Compare(b.Rows, a.Rows), cmp.Compare(a.OrganizationID, b.OrganizationID),
			cmp.Compare(a.LocatorID, b.LocatorID), cmp.Compare(a.Entry, b.Entry))
	})
	for i := mostAssigned; i < len(all); i++ {
		rows += all[i].Rows
	}
	all = all[:min(len(all), mostAssigned)]
	if rows > 0 {
		all = append(all, report.Assignment{Others: others, Rows: rows})
	}
	return all
}
