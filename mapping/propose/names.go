package propose

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
)

// How surely a header's name says its part.
const (
	weakName   = 0.45 // a word with other meanings: the German "Adresse"
	aroundName = 0.92 // words that say nothing stood around it
	insideName = 0.5  // it is a part of a form's question; no other sum comes to this
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

// readName looks a header up: as it is, without what is in parentheses, without the words around, inside a
// question.
func readName(header string) name {
	d, n := known(), name{words: words(header)}
	n.foreign = d.any("foreign", n.words)
	if n.signs = d.headers[strings.Join(n.words, "")]; n.signs == nil {
		outside, _, _ := strings.Cut(header, "(")
		n.signs = d.headers[joined(outside)]
	}
	if n.signs == nil && !n.foreign {
		n.signs = d.inside(n.words)
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

// any reports whether one of the words is in a section.
func (d *dictionary) any(section part, words []string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return d.has(section, w) })
}

func (n name) isSecret() bool {
	return known().has("secret", strings.Join(n.words, "")) || known().any("secret word", n.words)
}

// identifiers are parts that any word in front makes another table's: a "Form ID" is not the lead's.
var identifiers = []part{"recordid", "otherid", "rownumber", "organization", "statusid"}

// inside are the signs of the names inside a header that say most, and of these the longest. Words around that say
// nothing cost a little, those that make it a second one more; with other words it is a part of a form's question.
func (d *dictionary) inside(words []string) (best []sign) {
	most, longest := 0.0, 0
	for from := range words {
		for to := from + 1; to <= min(len(words), from+d.longest); to++ {
			text, around := strings.Join(words[from:to], ""), slices.Concat(words[:from], words[to:])
			strength, own := d.cost(around)
			address, question := slices.ContainsFunc(around, isAddress), strength == insideName
			for _, s := range d.headers[text] {
				r := d.ruleOf(s.part)
				tells := !question || len(text) >= 4 && text != "name" && s.strength == 1 && r.Part != ""
				s.strength *= strength
				order := cmp.Or(cmp.Compare(s.strength, most), len(text)-longest)
				if order < 0 || s.whole || address && !r.Place || !own && slices.Contains(identifiers, s.part) ||
					!tells {
					continue
				}
				if order > 0 {
					best, most, longest = nil, s.strength, len(text)
				}
				best = append(best, s)
			}
		}
	}
	return best
}

// cost is how much a name still says among other words, and whether all of these may be before the key of the
// record itself.
func (d *dictionary) cost(around []string) (strength float64, own bool) {
	strength, own = aroundName, true
	for _, w := range around {
		noise, second := d.has("noise", w), d.has("second", w)
		own = own && d.has("own", w)
		switch {
		case w == "1" || w == "0" || noise:
		case second || isNumber(w):
			strength -= secondName
		default:
			return insideName, own
		}
	}
	return strength, own
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
