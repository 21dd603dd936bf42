package importer

import (
	"cmp"
	"slices"
	"strings"
	"unicode"

	"leadferry/importer/report"
)

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
