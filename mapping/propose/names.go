package propose

import (
	"slices"
	"strings"
	"unicode"
)

// How surely a header's name says its part.
const (
	weakName   = 0.45 // a word with other meanings: the German "Adresse"
	aroundName = 0.92 // words that say nothing stood around it
	insideName = 0.5  // it is a part of a form's question
	secondName = 0.25 // taken off a second one of its kind
	secondMost = 0.65 // what a second one of its kind comes to: "Other Phone"
)

// name is what a header says by its words.
type name struct {
	words   []string
	signs   []sign
	foreign bool // it speaks of somebody other than the lead
	known   bool // the dictionary knows the header, if only as nothing of use
}

// readName looks a header up: as it is, without what stands in parentheses, without the words around, inside a question.
func readName(header string) name {
	d, n := known(), name{words: words(header)}
	n.foreign = d.any("foreign", n.words)
	if n.signs = d.headers[strings.Join(n.words, "")]; n.signs == nil {
		outside, _, _ := strings.Cut(header, "(")
		n.signs = d.headers[joined(outside)]
	}
	if n.signs == nil && !n.foreign {
		n.signs = d.bare(n.words)
	}
	if n.signs == nil && !n.foreign {
		n.signs = d.within(n.words)
	}
	n.known = n.signs != nil
	return n
}

func (n name) strength(parts ...part) float64 {
	best := 0.0
	for _, s := range n.signs {
		if slices.Contains(parts, s.part) {
			best = max(best, s.strength)
		}
	}
	return best
}

// any reports whether one of the words stands in a section.
func (d *dictionary) any(section string, words []string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return d.has(section, w) })
}

func (n name) isSecret() bool {
	return known().has("secret", strings.Join(n.words, "")) || known().any("secret word", n.words)
}

// identifiers are parts that any word in front makes another table's: a "Form ID" is not the lead's.
var identifiers = []part{"recordid", "otherid", "rownumber", "organization", "statusid"}

// bare looks up the words without those that say nothing, which cost a little,
// and without those that make it a second one, which cost more.
func (d *dictionary) bare(words []string) (signs []sign) {
	var left []string
	strength, own := aroundName, true
	for _, w := range words {
		noise, second := d.has("noise", w), d.has("second", w)
		own = own && (d.has("own", w) || !noise && !second)
		switch {
		case w == "1" || w == "0" || noise:
		case isNumber(w) || second:
			strength -= secondName
		default:
			left = append(left, w)
		}
	}
	address := slices.ContainsFunc(words, isAddress)
	for _, s := range d.headers[strings.Join(left, "")] {
		if !s.whole && (!address || d.ruleOf(s.part).Place) && (own || !slices.Contains(identifiers, s.part)) {
			s.strength *= strength
			signs = append(signs, s)
		}
	}
	return signs
}

// within are the signs of the longest name inside a header such as a form's question.
func (d *dictionary) within(words []string) (best []sign) {
	longest := 4
	for from := range words {
		for to := from + 1; to <= min(len(words), from+d.longestHeader); to++ {
			text := strings.Join(words[from:to], "")
			address := slices.ContainsFunc(words[:from], isAddress) || slices.ContainsFunc(words[to:], isAddress)
			for _, s := range d.headers[text] {
				r := d.ruleOf(s.part)
				if len(text) >= longest && text != "name" && !s.whole && s.strength == 1 && r.Part != "" && (r.Place || !address) {
					s.strength = insideName
					best, longest = []sign{s}, len(text)
				}
			}
		}
	}
	return best
}

// ruleOf is the rule of a part; those that are decided elsewhere have an empty one.
func (d *dictionary) ruleOf(p part) (r rule) {
	if i := slices.IndexFunc(d.Parts, func(r rule) bool { return r.Part == p }); i >= 0 {
		r = d.Parts[i]
	}
	return r
}

func isAddress(word string) bool {
	return strings.HasPrefix(word, "addr") || strings.HasPrefix(word, "adr")
}

func isNumber(word string) bool {
	return !strings.ContainsFunc(word, func(r rune) bool { return !unicode.IsDigit(r) })
}
