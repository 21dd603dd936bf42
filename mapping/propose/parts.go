package propose

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
)

// part is what a column plays in a lead; its word is the section in dictionary.yaml.
type part string

const (
	partFirst        part = "first"
	partMiddle       part = "middle"
	partLast         part = "last"
	partFull         part = "full"
	partSalutation   part = "salutation"
	partEmail        part = "email"
	partPhone        part = "phone"
	partMobile       part = "mobile"
	partCompany      part = "company"
	partJob          part = "job"
	partStreet       part = "street"
	partHouse        part = "house"
	partPostal       part = "postal"
	partCity         part = "city"
	partState        part = "state"
	partCountry      part = "country"
	partMessage      part = "message"
	partSource       part = "source"
	partCreated      part = "created"
	partStatus       part = "status"
	partStatusID     part = "statusid"
	partOrganization part = "organization"
	partRecordID     part = "recordid"
	partOtherID      part = "otherid"
	partRowNumber    part = "rownumber"
)

// rule says which column plays a part and what becomes of it in the lead.
type rule struct {
	part  part
	place bool // a header with the word address may be it

	// Cells that speak against the part: too few of a kind, too many of others, too long.
	like    kind
	least   float64 // share of cells that have to be of the kind
	unlike  []kind
	longest float64             // characters of an average cell; 0: any
	weight  float64             // how much the kind's share speaks for the part
	wants   func(*profile) bool // more that the cells have to be, or nil

	// Cells that say the part by themselves, in a column with an unknown header.
	sure  float64             // how surely they do; 0: not at all
	all   float64             // share of cells that have to be of the kind
	alone func(*profile) bool // more that such cells have to be, or nil

	key    string // of the content; "": it is joined to another part's
	apply  string
	format string
	marked bool                   // cells may have a mark before the number, as lead ads write it
	remark func(c *column) string // what a person should know of the cells
}

// Kinds that speak against texts of a sort.
var (
	noName   = []kind{kindEmail, kindURL, kindUUID, kindDate, kindNumber, kindYesNo, kindPhone, kindObject}
	noProse  = []kind{kindEmail, kindURL, kindUUID, kindDate, kindNumber, kindYesNo, kindObject, kindDamaged}
	noWord   = []kind{kindEmail, kindURL, kindObject}
	noNation = []kind{kindEmail, kindURL, kindDate, kindNumber, kindObject}
)

// rules are the parts that are given to at most one column each, in the order in which people read a lead (the
// service's samples have name, email, phone, postalCode and message). A column goes to the first of them when all
// else is equal. Status, organization and identifiers are decided elsewhere.
var rules = []rule{
	{part: partSalutation, key: "salutation", unlike: noWord, longest: 20},
	{part: partFirst, like: kindGiven, weight: 0.5, unlike: noName, longest: 60, sure: 0.6, all: 0.4},
	{part: partLast, like: kindLetters, weight: 0.5, unlike: noName, longest: 60},
	{part: partFull, key: "name", like: kindPerson, weight: 0.5, unlike: noName, longest: 60, sure: 0.6, all: 0.4},
	{part: partMiddle, like: kindLetters, weight: 0.5, unlike: noName, longest: 60},
	{part: partEmail, key: "email", like: kindEmail, weight: 1, least: 0.8, sure: 0.8, all: 0.9, apply: "lower", format: "email"},
	{part: partPhone, key: "phone", like: kindPhone, weight: 1, least: 0.7, sure: 0.55, all: 0.95, alone: hasMarks, marked: true, remark: phoneRemark},
	{part: partMobile, key: "mobile", like: kindPhone, weight: 1, least: 0.7, marked: true, remark: phoneRemark},
	{part: partCompany, key: "company", unlike: noProse},
	{part: partJob, key: "jobTitle", unlike: noProse},
	{part: partStreet, key: "street", place: true, like: kindStreet, unlike: noProse, sure: 0.6, all: 0.6},
	{part: partHouse, place: true, unlike: noWord, longest: 10},
	{part: partPostal, key: "postalCode", place: true, like: kindPostal, weight: 1, least: 0.7, sure: 0.45, all: 0.95, alone: hasFirstZeros, marked: true},
	{part: partCity, key: "city", place: true, like: kindState, weight: 0.25, unlike: noProse, longest: 40},
	{part: partState, key: "state", place: true, like: kindState, weight: 0.25, unlike: noProse, longest: 30, sure: 0.5, all: 0.95},
	{part: partCountry, key: "country", place: true, like: kindCountry, weight: 0.5, unlike: noNation, longest: 40, wants: isNation, sure: 0.55, all: 0.95, alone: noAnswers},
	{part: partMessage, key: "message", unlike: noProse, sure: 0.42, alone: hasSentences},
	{part: partSource, key: "leadSource", unlike: noProse},
	{part: partCreated, key: "receivedOn", like: kindDate, weight: 1, least: 0.8},
}

// ruleOf is the rule of a part; those that are decided elsewhere have an empty one.
func ruleOf(p part) rule {
	for _, r := range rules {
		if r.part == p {
			return r
		}
	}
	return rule{}
}

// hasMarks wants the marks of phone numbers: digits alone may be anything.
func hasMarks(p *profile) bool { return p.nothingLike(kindInteger, kindNumber) }

// hasFirstZeros wants some among numbers of five digits; amounts and counters have none.
func hasFirstZeros(p *profile) bool {
	return p.filled >= 3 && p.counts[kindZeroLed] > 0 && p.longest <= 5 && p.average() >= 5
}

func isNation(p *profile) bool { return p.share(kindCountry) >= 0.5 || p.share(kindLetters) >= 0.7 }

// noAnswers does not take them for Norway.
func noAnswers(p *profile) bool { return p.nothingLike(kindYesNo) }

// hasSentences wants whole ones that differ.
func hasSentences(p *profile) bool {
	return p.filled >= 3 && p.average() >= 50 && p.distinct*10 >= p.filled*8
}

// fits reports whether the cells do not speak against the part.
func (r rule) fits(p *profile) bool {
	return p.filled > 0 && p.share(r.like) >= r.least && p.nothingLike(r.unlike...) &&
		(r.longest == 0 || p.average() <= r.longest) && (r.wants == nil || r.wants(p))
}

func (r rule) says(p *profile) bool {
	return r.sure > 0 && p.filled >= 2 && p.share(r.like) >= r.all && (r.alone == nil || r.alone(p))
}

// leastScore is what a column has to come to for a part.
const leastScore = 0.4

// score is what a column is worth for the part, and what that rests on: its name, what
// the cells add to that, and how many cells there are.
func (r rule) score(c *column) (score float64, why string) {
	p, strength := c.profile, c.name.strength(r.part)
	support := r.weight * p.share(r.like)
	switch {
	case c.inside == "" && p.share(kindObject) > 0.5:
		return 0, ""
	case p.rows == 0:
		return strength, "by its name"
	case !r.fits(p):
		return 0, ""
	case strength > 0 && support > 0.2:
		return strength + 0.3*support + 0.5*p.fill(), "by name and values"
	case strength >= secondMost:
		return strength + 0.3*support + 0.5*p.fill(), "by its name"
	case strength > 0:
		return strength + 0.3*support + 0.5*p.fill(), "? by its name, which may mean other things"
	case r.says(p) && !c.name.known && !c.name.foreign:
		return r.sure, "? by its values"
	}
	return 0, ""
}

// candidate is a column that may play a part, and how well it would.
type candidate struct {
	column *column
	part   part
	score  float64
	why    string
}

// assignParts gives each part to the column with the best score, and each column at most one part.
func (d *draft) assignParts() {
	var candidates []candidate
	for _, r := range rules {
		for _, c := range d.columns {
			if score, why := r.score(c); score >= leastScore {
				candidates = append(candidates, candidate{c, r.part, score, why})
			}
		}
	}
	slices.SortStableFunc(candidates, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(b.column.profile.filled, a.column.profile.filled))
	})
	for _, cand := range candidates {
		if d.parts[cand.part] == nil && cand.column.part == "" && !d.secondName(cand) {
			d.give(cand.part, cand.column, cand.why)
		}
	}
}

func (d *draft) give(p part, c *column, why string) {
	d.parts[p], c.part, c.why = c, p, why
}

// secondName reports whether cells alone would make a second name of a column, such as
// one of products called Emma and Max, in a file that has names already.
func (d *draft) secondName(cand candidate) bool {
	names := []part{partFirst, partLast, partFull}
	return slices.Contains(names, cand.part) && cand.column.name.strength(cand.part) == 0 &&
		slices.ContainsFunc(names, func(p part) bool { return d.parts[p] != nil })
}

// How surely a header's name says its part.
const (
	weakName   = 0.45 // a word with other meanings: the German "Adresse"
	aroundName = 0.92 // words that say nothing stood around it
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

// readName looks a header up: as it is, without what stands in parentheses, without the words around.
func readName(header string) name {
	d, n := known(), name{words: words(header)}
	n.foreign = slices.ContainsFunc(n.words, func(w string) bool { return d.has("foreign", w) })
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

func (n name) strength(p part) float64 {
	best := 0.0
	for _, s := range n.signs {
		if s.part == p {
			best = max(best, s.strength)
		}
	}
	return best
}

func (n name) isKey() bool {
	return len(n.words) > 0 && known().has("keys", n.words[len(n.words)-1])
}

func (n name) isSecret() bool {
	d := known()
	return d.has("secret", strings.Join(n.words, "")) ||
		slices.ContainsFunc(n.words, func(w string) bool { return d.has("secret word", w) })
}

// identifiers are parts that any word in front makes another table's: a "Form ID" is not the lead's.
var identifiers = []part{partRecordID, partOtherID, partRowNumber, partOrganization, partStatusID}

// bare looks up the words without those that say nothing, which cost a little,
// and without those that make it a second one, which cost more.
func (d *dictionary) bare(words []string) []sign {
	var left []string
	strength, address, own := aroundName, false, true
	for _, w := range words {
		noise, second := d.has("noise", w), d.has("second", w)
		own = own && (d.has("own", w) || !noise && !second)
		switch {
		case isNumber(w):
			if w != "1" && w != "0" {
				strength -= secondName
			}
		case noise:
			address = address || isAddress(w)
		case second:
			strength -= secondName
		default:
			left = append(left, w)
		}
	}
	var signs []sign
	for _, s := range d.headers[strings.Join(left, "")] {
		if !s.whole && (!address || ruleOf(s.part).place) && (own || !slices.Contains(identifiers, s.part)) {
			s.strength *= strength
			signs = append(signs, s)
		}
	}
	return signs
}

// within are the signs of the longest name inside a header such as a form's question.
func (d *dictionary) within(words []string) (best []sign) {
	const shortest, strength = 4, 0.5
	longest := shortest
	for from := range words {
		for to := from + 1; to <= min(len(words), from+d.longestHeader); to++ {
			text := strings.Join(words[from:to], "")
			address := slices.ContainsFunc(words[:from], isAddress) || slices.ContainsFunc(words[to:], isAddress)
			for _, s := range d.headers[text] {
				r := ruleOf(s.part)
				if len(text) >= longest && text != "name" && !s.whole && s.strength == 1 && r.part != "" && (r.place || !address) {
					s.strength = strength
					best, longest = []sign{s}, len(text)
				}
			}
		}
	}
	return best
}

func isAddress(word string) bool {
	return strings.HasPrefix(word, "addr") || strings.HasPrefix(word, "adr")
}

func isNumber(word string) bool {
	return !strings.ContainsFunc(word, func(r rune) bool { return !unicode.IsDigit(r) })
}
