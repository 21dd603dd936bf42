// Package findings gathers what rows of a run that sends nothing are wrong with, or name, in memory that does not grow with
// them: each kind of thing with how many rows there are and where the first of them stand. Keys that stand in several rows it
// finds at 16 bytes a row.
package findings

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"unicode"

	"leadferry/importer/report"
	"leadferry/internal/spelling"
	"leadferry/mapping"
)

// firstRows is how many rows of a kind are named.
const firstRows = 3

// Spot is where a row stands: on a line, of which a JSON array may have several rows.
type Spot struct {
	Input, Line int
	Number      int // of the row in its input
}

// Compare orders by input, then as rows come.
func (s Spot) Compare(o Spot) int {
	return cmp.Or(cmp.Compare(s.Input, o.Input), cmp.Compare(s.Number, o.Number))
}

// Rows are those of one kind: how many, and the first of them.
type Rows struct {
	Count int
	First []Spot
	last  Spot
}

// Add counts a row once, however often it is added in a row's turn.
func (r *Rows) Add(at Spot) {
	if r.Count > 0 && r.last == at {
		return
	}
	r.Count++
	r.last = at
	if len(r.First) < firstRows {
		r.First = append(r.First, at)
	}
}

// Places are where the first rows stand, as at says it.
func (r *Rows) Places(at func(Spot) report.Place) []report.Place {
	places := make([]report.Place, 0, len(r.First))
	for _, spot := range r.First {
		places = append(places, at(spot))
	}
	return places
}

// maxProblems is how many kinds of problems are told apart.
const maxProblems = 1000

// Problems count rows by what is wrong with them: rule, columns and text. Texts of rows
// that cannot be read may name an offset or a count: their numbers tell no two apart.
type Problems struct{ known map[mapping.Problem]*problem }

type problem struct {
	mapping.Problem // without the row's word
	Rows
}

// NewProblems has none.
func NewProblems() *Problems { return &Problems{map[mapping.Problem]*problem{}} }

// Add counts a row that has a problem; unreadable says that nothing of the row can be read.
func (s *Problems) Add(at Spot, p mapping.Problem, unreadable bool) {
	p.Word, p.Value = "", ""
	kind := p
	if unreadable {
		kind.Text = numbers().ReplaceAllString(p.Text, "…")
	}
	c := s.known[kind]
	if c == nil && len(s.known) >= maxProblems {
		kind = mapping.Problem{Rule: "other", Text: "fails a check that is none of those listed"}
		p, c = kind, s.known[kind]
	}
	if c == nil {
		c = &problem{Problem: p}
		s.known[kind] = c
	}
	if c.Text != p.Text {
		c.Text = common(c.Text, p.Text)
	}
	c.Add(at)
}

var numbers = spelling.Form(`[0-9]+|…`)

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

// List gives the problems, most rows first, then in file order.
func (s *Problems) List(at func(Spot) report.Place) (rules []report.Rule) {
	all := slices.SortedFunc(maps.Values(s.known), func(a, b *problem) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), a.First[0].Compare(b.First[0]),
			cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Column, b.Column), cmp.Compare(a.Text, b.Text))
	})
	for _, p := range all {
		rules = append(rules, report.Rule{Rule: p.Rule, Column: p.Column, Error: p.Text, Rows: p.Count, Places: p.Places(at)})
	}
	return rules
}

// maxLacking is how many different texts are kept that maps lack.
const maxLacking = 1000

// Words counts the texts that the maps of values lack, but for that of the status. They
// are shown whatever they are, since a table's words may be codes, numbers or addresses.
type Words struct {
	known   map[word]*Rows
	most    int  // texts that are kept
	further Rows // rows of others
}

// word is a text of a value.
type word struct{ value, text string }

// NewWords has none.
func NewWords() *Words { return &Words{known: map[word]*Rows{}, most: maxLacking} }

// Add counts a row by the word of its problem.
func (s *Words) Add(at Spot, p mapping.Problem) { s.add(at, word{p.Value, p.Word}) }

func (s *Words) add(at Spot, w word) {
	c := s.known[w]
	switch {
	case c != nil:
	case len(s.known) >= s.most:
		c = &s.further
	default:
		c = &Rows{}
		s.known[word{w.value, strings.Clone(w.text)}] = c
	}
	c.Add(at)
}

// List gives the texts by value, most rows first.
func (s *Words) List(at func(Spot) report.Place) (list []report.Word) {
	for word, c := range s.known {
		list = append(list, report.Word{Value: word.value, Text: report.Escape(word.text), Rows: c.Count, Place: at(c.First[0])})
	}
	slices.SortFunc(list, func(a, b report.Word) int {
		return cmp.Or(cmp.Compare(a.Value, b.Value), cmp.Compare(b.Rows, a.Rows), cmp.Compare(a.Text, b.Text))
	})
	if s.further.Count > 0 {
		list = append(list, report.Word{Hidden: report.OtherTexts, Rows: s.further.Count, Place: at(s.further.First[0])})
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

// Statuses counts statuses that are not mapped. A mapping may take them from the wrong
// column by mistake, so that what looks like a person's data is counted only.
type Statuses struct {
	words    Words
	personal Rows
	others   Rows // rows of all other words
}

// NewStatuses has none.
func NewStatuses() *Statuses {
	return &Statuses{words: Words{known: map[word]*Rows{}, most: maxWords}}
}

// Add counts a row by its word for a status.
func (s *Statuses) Add(at Spot, text string) {
	if isPersonal(text) {
		s.personal.Add(at)
		return
	}
	s.others.Add(at)
	s.words.add(at, word{text: report.Shortened(text, longWord)})
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

// List gives the words, most rows first.
func (s *Statuses) List(at func(Spot) report.Place) []report.Word {
	var list []report.Word
	add := func(c *Rows, text, hidden string) {
		if c.Count > 0 {
			list = append(list, report.Word{Text: text, Hidden: hidden, Rows: c.Count, Place: at(c.First[0])})
		}
	}
	add(&s.personal, "", likePersons)
	if n := len(s.words.known); s.words.further.Count > 0 || n > tooVaried && 2*n > s.others.Count {
		add(&s.others, "", likeNothing)
	} else {
		for word, c := range s.words.known {
			add(c, report.Escape(word.text), "")
		}
	}
	slices.SortFunc(list, func(a, b report.Word) int {
		return cmp.Or(cmp.Compare(b.Rows, a.Rows), cmp.Compare(a.Hidden, b.Hidden), cmp.Compare(a.Text, b.Text))
	})
	return list
}

// Bounds of what is kept, and listed of each kind, of whom rows name.
const (
	maxAssigned  = 10000
	mostAssigned = 100
)

// Assigned counts rows by whom they name.
type Assigned struct {
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

// NewAssigned has none.
func NewAssigned() *Assigned {
	return &Assigned{organizations: map[string]*int{}, locators: map[located]*int{}}
}

// Add counts a row by whom it names.
func (s *Assigned) Add(rec *mapping.Record) {
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
func (s *Assigned) first(rec *mapping.Record) *int {
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

// List gives organizations, then locators, each most rows first.
func (s *Assigned) List() []report.Assignment {
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
