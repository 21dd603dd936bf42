package propose

import (
	"cmp"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"
)

// part is what a column plays in a lead; its word is the section in
// words/headers.txt.
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

// rule says which cells go with a part.
type rule struct {
	part part
	// fits says how much the cells speak for the part, 0 to 1, and whether they
	// do not speak against it.
	fits func(p *profile) (support float64, ok bool)
	// alone is how surely the cells of a column with an unknown header say the
	// part by themselves; nil: not at all.
	alone func(p *profile) float64
}

// leastScore is what a column has to come to for a part.
const leastScore = 0.4

// rules are the parts that are given to at most one column each, in the order in
// which they get it when all else is equal. Status, organization and identifiers
// are decided elsewhere.
var rules = []rule{
	{partEmail, atLeast(kindEmail, 0.8), alone(kindEmail, 0.9, 0.8)},
	{partPhone, atLeast(kindPhone, 0.7), alonePhone},
	{partMobile, atLeast(kindPhone, 0.7), nil},
	{partFirst, nameLike(kindGiven), alone(kindGiven, 0.4, 0.6)},
	{partLast, nameLike(kindLetters), nil},
	{partFull, nameLike(kindPerson), alone(kindPerson, 0.4, 0.6)},
	{partMiddle, nameLike(kindLetters), nil},
	{partSalutation, short(20), nil},
	{partCompany, prose, nil},
	{partJob, prose, nil},
	{partStreet, prose, alone(kindStreet, 0.6, 0.6)},
	{partHouse, short(10), nil},
	{partPostal, atLeast(kindPostal, 0.7), alonePostal},
	{partCity, place(40), nil},
	{partState, place(30), alone(kindState, 0.95, 0.5)},
	{partCountry, country, aloneCountry},
	{partMessage, prose, aloneMessage},
	{partSource, prose, nil},
	{partCreated, atLeast(kindDate, 0.8), nil},
}

func atLeast(k kind, least float64) func(*profile) (float64, bool) {
	return func(p *profile) (float64, bool) { return p.share(k), p.share(k) >= least }
}

// nothingLike reports whether few cells are of any of the kinds.
func nothingLike(p *profile, ks ...kind) bool {
	return !slices.ContainsFunc(ks, func(k kind) bool { return p.share(k) > 0.5 })
}

func nameLike(k kind) func(*profile) (float64, bool) {
	return func(p *profile) (float64, bool) {
		return p.share(k) / 2, p.average() <= 60 &&
			nothingLike(p, kindEmail, kindURL, kindUUID, kindDate, kindNumber, kindYesNo, kindPhone, kindObject)
	}
}

func prose(p *profile) (float64, bool) {
	return 0, nothingLike(p, kindEmail, kindURL, kindUUID, kindDate, kindNumber, kindYesNo, kindObject, kindDamaged)
}

func short(longest float64) func(*profile) (float64, bool) {
	return func(p *profile) (float64, bool) {
		return 0, p.average() <= longest && nothingLike(p, kindEmail, kindURL, kindObject)
	}
}

func place(longest float64) func(*profile) (float64, bool) {
	return func(p *profile) (float64, bool) {
		_, ok := prose(p)
		return p.share(kindState) / 4, ok && p.average() <= longest
	}
}

func country(p *profile) (float64, bool) {
	ok := p.average() <= 40 && nothingLike(p, kindEmail, kindURL, kindDate, kindNumber, kindObject)
	return p.share(kindCountry) / 2, ok && (p.share(kindCountry) >= 0.5 || p.share(kindLetters) >= 0.7)
}

// aloneCountry does not take answers for Norway.
func aloneCountry(p *profile) float64 {
	if !nothingLike(p, kindYesNo) {
		return 0
	}
	return alone(kindCountry, 0.95, 0.55)(p)
}

func alone(k kind, least, sure float64) func(*profile) float64 {
	return func(p *profile) float64 {
		if p.filled < 2 || p.share(k) < least {
			return 0
		}
		return sure
	}
}

// alonePhone wants the marks of phone numbers: digits alone may be anything.
func alonePhone(p *profile) float64 {
	if p.filled < 2 || p.share(kindPhone) < 0.95 || p.share(kindInteger) > 0.5 || p.share(kindSecret) > 0.5 || p.share(kindNumber) > 0.5 {
		return 0
	}
	return 0.55
}

// alonePostal wants a first zero among numbers of five digits, which amounts and
// counters do not have.
func alonePostal(p *profile) float64 {
	if p.filled < 3 || p.share(kindPostal) < 0.95 || p.counts[kindZeroLed] == 0 || p.longest > 5 || p.average() < 5 {
		return 0
	}
	return 0.45
}

// aloneMessage wants whole sentences that differ.
func aloneMessage(p *profile) float64 {
	if _, ok := prose(p); !ok || p.filled < 3 || p.average() < 50 || p.distinct*10 < p.filled*8 {
		return 0
	}
	return 0.42
}

// candidate is a column that may play a part, and how well it would.
type candidate struct {
	column *column
	part   part
	score  float64
}

// assignParts gives each part to the column with the best score, each column at
// most one part, and says what it rests on.
func (t *table) assignParts(taken map[*column]bool) map[part]*column {
	var candidates []candidate
	for _, r := range rules {
		for _, c := range t.columns {
			if score := t.score(r, c); score >= leastScore && !taken[c] {
				candidates = append(candidates, candidate{c, r.part, score})
			}
		}
	}
	slices.SortStableFunc(candidates, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(b.column.profile.filled, a.column.profile.filled))
	})
	parts := map[part]*column{}
	for _, cand := range candidates {
		if parts[cand.part] == nil && cand.column.part == "" && !cand.odd(parts) {
			parts[cand.part] = cand.column
			cand.column.part = cand.part
			cand.column.grounds = cand.grounds()
		}
	}
	t.neighbours(parts)
	return parts
}

// odd reports whether cells alone would make a second name of a column, such as
// one of products called Emma and Max, in a file that has names already.
func (cand candidate) odd(parts map[part]*column) bool {
	names := []part{partFirst, partLast, partFull}
	return slices.Contains(names, cand.part) && cand.column.name.strength(cand.part) == 0 &&
		slices.ContainsFunc(names, func(p part) bool { return parts[p] != nil })
}

// score is what a column is worth for a part: its name, what the cells add
// to that, and how many cells there are.
func (t *table) score(r rule, c *column) float64 {
	if c.inside == "" && c.profile.share(kindObject) > 0.5 {
		return 0
	}
	strength := c.name.strength(r.part)
	support, fits := r.fits(c.profile)
	switch {
	case c.profile.rows == 0:
		return strength
	case c.profile.filled == 0 || !fits:
		return 0
	case strength > 0:
		return strength + 0.3*support + 0.5*c.profile.fill()
	case r.alone == nil || c.name.known || c.name.foreign:
		return 0
	}
	return r.alone(c.profile)
}

// grounds are what the part of a column rests on.
type grounds uint8

const (
	groundless grounds = iota
	byName
	byCells
	byBoth
	besideFirstNames
	besidePostalCodes
)

// String says it in a comment of the mapping.
func (g grounds) String() string {
	return [...]string{"", "by its name", "by its values", "by name and values", "stands beside the first names", "stands beside the postal codes"}[g]
}

func (cand candidate) grounds() grounds {
	named := cand.column.name.strength(cand.part) > 0
	seen := false
	for _, r := range rules {
		if r.part == cand.part {
			support, _ := r.fits(cand.column.profile)
			seen = support > 0.2
		}
	}
	switch {
	case named && seen:
		return byBoth
	case named:
		return byName
	}
	return byCells
}

// neighbours takes columns of words without a known name for what usually stands
// beside others that were found by their cells: last names beside first names,
// the city beside the postal code.
func (t *table) neighbours(parts map[part]*column) {
	if parts[partFull] == nil && parts[partLast] == nil {
		t.neighbour(parts, partFirst, partLast, besideFirstNames)
	}
	if parts[partCity] == nil {
		t.neighbour(parts, partPostal, partCity, besidePostalCodes)
	}
}

func (t *table) neighbour(parts map[part]*column, of, wanted part, why grounds) {
	found := parts[of]
	if found == nil || found.grounds != byCells {
		return
	}
	at := slices.Index(t.columns, found)
	for _, i := range []int{at + 1, at - 1} {
		if i < 0 || i >= len(t.columns) {
			continue
		}
		c, p := t.columns[i], t.columns[i].profile
		if c.part == "" && !c.name.known && p.share(kindLetters) > 0.9 && p.distinct*2 > p.filled && p.average() <= 25 && p.share(kindCountry) < 0.5 {
			parts[wanted], c.part, c.grounds = c, wanted, why
			return
		}
	}
}

// also lists other columns that could play the part, for a comment.
func (t *table) also(p part) []string {
	var names []string
	at := slices.IndexFunc(rules, func(r rule) bool { return r.part == p })
	for _, c := range t.columns {
		if c.part == "" && c.profile.filled > 0 && t.score(rules[at], c) >= leastScore {
			names = append(names, shown(c.header))
		}
	}
	return names[:min(len(names), 3)]
}

// sayNames joins names for a sentence, the first few of them.
func sayNames(names []string, most int) string {
	if len(names) > most {
		return strings.Join(names[:most], ", ") + " and " + humanize.Comma(int64(len(names)-most)) + " more"
	}
	return strings.Join(names, ", ")
}
