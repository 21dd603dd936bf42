package propose

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// How surely a header's name says its part.
const (
	weakName     = 0.45 // a word with other meanings: the German "Adresse"
	aroundName   = 0.92 // words that say nothing stood around it
	withinName   = 0.5  // the name stands somewhere in a longer header
	secondName   = 0.25 // taken off a second one of its kind
	shortestName = 4    // characters of a name that is looked for in longer headers
)

// name is what a header says by its words.
type name struct {
	words   []string
	signs   []sign
	foreign bool // it speaks of somebody other than the lead
	known   bool // the dictionary knows the header, if only as nothing of use
}

// readName looks a header up: as it is, without the words around, and last for a
// known name inside.
func readName(header string) name {
	n := name{words: words(header)}
	d := known()
	n.foreign = slices.ContainsFunc(n.words, func(w string) bool { return d.foreign[w] })
	if n.signs = d.exact(n.words); n.signs == nil {
		outside, _, _ := strings.Cut(header, "(")
		n.signs = d.exact(words(outside))
	}
	n.known = n.signs != nil
	if !n.known && !n.foreign {
		if n.signs = d.bare(n.words); n.signs == nil {
			n.signs = d.within(n.words)
		}
		n.known = n.signs != nil
	}
	return n
}

func (d *dictionary) exact(words []string) []sign {
	if len(words) == 0 || len(words) > d.longest {
		return nil
	}
	return d.headers[joined(words)]
}

// places are the parts that a header with the word address may have.
var places = []part{partStreet, partHouse, partCity, partState, partPostal, partCountry}

// keyed are the parts of identifiers: any word before one makes it another.
var keyed = []part{partRecordID, partOtherID, partRowNumber, partOrganization, partStatusID}

// bare looks up the words without those that say nothing, which cost a little,
// and without those that make it a second one, which cost more.
func (d *dictionary) bare(words []string) []sign {
	var left []string
	strength, address, own := aroundName, false, true
	for _, w := range words {
		own = own && (d.own[w] || !d.noise[w] && !d.second[w])
		switch {
		case isNumber(w):
			if w != "1" && w != "0" {
				strength -= secondName
			}
		case d.noise[w]:
			address = address || isAddress(w)
		case d.second[w]:
			strength -= secondName
		default:
			left = append(left, w)
		}
	}
	var signs []sign
	for _, s := range d.exact(left) {
		if !s.whole && (!address || slices.Contains(places, s.part)) && (own || !slices.Contains(keyed, s.part)) {
			s.strength *= strength
			signs = append(signs, s)
		}
	}
	return signs
}

// within looks for the longest name inside a header such as a form's question.
func (d *dictionary) within(words []string) []sign {
	var best []sign
	longest := 0
	for from := range words {
		for to := from + 1; to <= min(len(words), from+d.longest); to++ {
			text := joined(words[from:to])
			length := utf8.RuneCountInString(text)
			if length < shortestName || length < longest {
				continue
			}
			outside := slices.Concat(words[:from], words[to:])
			if signs := d.questions(text, slices.ContainsFunc(outside, isAddress)); signs != nil {
				best, longest = signs, length
			}
		}
	}
	return best
}

// asked are the parts that forms ask for in sentences.
var asked = []part{
	partFirst, partLast, partFull, partEmail, partPhone, partMobile, partCompany,
	partStreet, partCity, partPostal, partCountry, partMessage,
}

func (d *dictionary) questions(text string, address bool) []sign {
	var signs []sign
	for _, s := range d.headers[text] {
		if slices.Contains(asked, s.part) && !s.whole && s.strength == 1 && text != "name" &&
			(!address || slices.Contains(places, s.part)) {
			s.strength = withinName
			signs = append(signs, s)
		}
	}
	return signs
}

func isAddress(word string) bool {
	return strings.HasPrefix(word, "addr") || strings.HasPrefix(word, "adr")
}

func isNumber(word string) bool {
	return !strings.ContainsFunc(word, func(r rune) bool { return !unicode.IsDigit(r) })
}

// strength is how surely the name says the part.
func (n name) strength(p part) float64 {
	best := 0.0
	for _, s := range n.signs {
		if s.part == p {
			best = max(best, s.strength)
		}
	}
	return best
}

// isKey reports whether the header speaks of an identifier of any kind.
func (n name) isKey() bool {
	return len(n.words) > 0 && known().keys[n.words[len(n.words)-1]]
}
