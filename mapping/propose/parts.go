package propose

import (
	"cmp"
	"slices"
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

// rule says which column plays a part and what becomes of it in the lead.
type rule struct {
	part part
	// fits says whether the cells do not speak against the part, and how much they
	// speak for it, 0 to 1.
	fits func(p *profile) (support float64, ok bool)
	// alone is how surely the cells of a column with an unknown header say the
	// part by themselves; nil: not at all.
	alone func(p *profile) float64

	asked bool // forms ask for it in sentences
	place bool // a header with the word address may be it

	key    string // of the content; "": it is joined to another part's
	apply  string
	format string
	marked bool                               // cells may have a mark before the number, as lead ads write it
	remark func(d *draft, c *column) []string // what a person should know of the cells
}

// rules are the parts that are given to at most one column each, in the order in which
// people read a lead (the service's samples have name, email, phone, postalCode and
// message). A column goes to the first of them when all else is equal. Status,
// organization and identifiers are decided elsewhere.
var rules = []rule{
	{part: partSalutation, key: "salutation", fits: upTo(20)},
	{part: partFirst, asked: true, fits: nameLike(kindGiven), alone: by(kindGiven, 0.4, 0.6)},
	{part: partLast, asked: true, fits: nameLike(kindLetters)},
	{part: partFull, key: "name", asked: true, fits: nameLike(kindPerson), alone: by(kindPerson, 0.4, 0.6)},
	{part: partMiddle, fits: nameLike(kindLetters)},
	{part: partEmail, key: "email", asked: true, fits: atLeast(kindEmail, 0.8), alone: by(kindEmail, 0.9, 0.8), apply: "lower", format: "email"},
	{part: partPhone, key: "phone", asked: true, fits: atLeast(kindPhone, 0.7), alone: byPhone, marked: true, remark: phoneRemarks},
	{part: partMobile, key: "mobile", asked: true, fits: atLeast(kindPhone, 0.7), marked: true, remark: phoneRemarks},
	{part: partCompany, key: "company", asked: true, fits: prose},
	{part: partJob, key: "jobTitle", fits: prose},
	{part: partStreet, key: "street", asked: true, place: true, fits: prose, alone: by(kindStreet, 0.6, 0.6)},
	{part: partHouse, place: true, fits: upTo(10)},
	{part: partPostal, key: "postalCode", asked: true, place: true, fits: atLeast(kindPostal, 0.7), alone: byPostal, marked: true, remark: lostZeros},
	{part: partCity, key: "city", asked: true, place: true, fits: placeName(40)},
	{part: partState, key: "state", place: true, fits: placeName(30), alone: by(kindState, 0.95, 0.5)},
	{part: partCountry, key: "country", asked: true, place: true, fits: country, alone: byCountry},
	{part: partMessage, key: "message", asked: true, fits: prose, alone: byMessage},
	{part: partSource, key: "leadSource", fits: prose},
	{part: partCreated, key: "receivedOn", fits: atLeast(kindDate, 0.8), remark: unsureDates},
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

// leastScore is what a column has to come to for a part.
const leastScore = 0.4

func atLeast(k kind, least float64) func(*profile) (float64, bool) {
	return func(p *profile) (float64, bool) { return p.share(k), p.share(k) >= least }
}

func nameLike(k kind) func(*profile) (float64, bool) {
	return func(p *profile) (float64, bool) {
		return p.share(k) / 2, p.average() <= 60 &&
			p.nothingLike(kindEmail, kindURL, kindUUID, kindDate, kindNumber, kindYesNo, kindPhone, kindObject)
	}
}

func prose(p *profile) (float64, bool) {
	return 0, p.nothingLike(kindEmail, kindURL, kindUUID, kindDate, kindNumber, kindYesNo, kindObject, kindDamaged)
}

func upTo(longest float64) func(*profile) (float64, bool) {
	return func(p *profile) (float64, bool) {
		return 0, p.average() <= longest && p.nothingLike(kindEmail, kindURL, kindObject)
	}
}

func placeName(longest float64) func(*profile) (float64, bool) {
	return func(p *profile) (float64, bool) {
		_, ok := prose(p)
		return p.share(kindState) / 4, ok && p.average() <= longest
	}
}

func country(p *profile) (float64, bool) {
	ok := p.average() <= 40 && p.nothingLike(kindEmail, kindURL, kindDate, kindNumber, kindObject)
	return p.share(kindCountry) / 2, ok && (p.share(kindCountry) >= 0.5 || p.share(kindLetters) >= 0.7)
}

func by(k kind, least, sure float64) func(*profile) float64 {
	return func(p *profile) float64 { return when(p.filled >= 2 && p.share(k) >= least, sure) }
}

func when(yes bool, sure float64) float64 {
	if yes {
		return sure
	}
	return 0
}

// byPhone wants the marks of phone numbers: digits alone may be anything.
func byPhone(p *profile) float64 {
	return when(p.filled >= 2 && p.share(kindPhone) >= 0.95 && p.nothingLike(kindInteger, kindSecret, kindNumber), 0.55)
}

// byPostal wants a first zero among numbers of five digits, which amounts and
// counters do not have.
func byPostal(p *profile) float64 {
	fives := p.longest <= 5 && p.average() >= 5
	return when(p.filled >= 3 && p.share(kindPostal) >= 0.95 && p.counts[kindZeroLed] > 0 && fives, 0.45)
}

// byCountry does not take answers for Norway.
func byCountry(p *profile) float64 {
	return when(p.filled >= 2 && p.share(kindCountry) >= 0.95 && p.nothingLike(kindYesNo), 0.55)
}

// byMessage wants whole sentences that differ.
func byMessage(p *profile) float64 {
	_, ok := prose(p)
	return when(ok && p.filled >= 3 && p.average() >= 50 && p.distinct*10 >= p.filled*8, 0.42)
}

// candidate is a column that may play a part, and how well it would.
type candidate struct {
	column *column
	part   part
	score  float64
	why    string
}

// assignParts gives each part to the column with the best score, and each column at
// most one part.
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
	if d.parts[partFull] == nil && d.parts[partLast] == nil {
		d.giveNeighbour(partFirst, partLast, "stands beside the first names")
	}
	if d.parts[partCity] == nil {
		d.giveNeighbour(partPostal, partCity, "stands beside the postal codes")
	}
}

func (d *draft) give(p part, c *column, why string) {
	d.parts[p], c.part, c.why = c, p, why
}

// score is what a column is worth for the part, and what that rests on: its name, what
// the cells add to that, and how many cells there are.
func (r rule) score(c *column) (score float64, why string) {
	if c.inside == "" && c.profile.share(kindObject) > 0.5 {
		return 0, ""
	}
	strength := c.name.strength(r.part)
	support, fits := r.fits(c.profile)
	switch {
	case c.profile.rows == 0:
		return strength, "by its name"
	case c.profile.filled == 0 || !fits:
		return 0, ""
	case strength > 0 && support > 0.2:
		return strength + 0.3*support + 0.5*c.profile.fill(), "by name and values"
	case strength > 0:
		return strength + 0.3*support + 0.5*c.profile.fill(), "by its name"
	case r.alone == nil || c.name.known || c.name.foreign:
		return 0, ""
	}
	return r.alone(c.profile), "by its values"
}

// secondName reports whether cells alone would make a second name of a column, such as
// one of products called Emma and Max, in a file that has names already.
func (d *draft) secondName(cand candidate) bool {
	names := []part{partFirst, partLast, partFull}
	return slices.Contains(names, cand.part) && cand.column.name.strength(cand.part) == 0 &&
		slices.ContainsFunc(names, func(p part) bool { return d.parts[p] != nil })
}

// giveNeighbour takes a column of words without a known name for what usually stands
// beside another that was found by its cells: last names beside first names, the city
// beside the postal code.
func (d *draft) giveNeighbour(of, wanted part, why string) {
	found := d.parts[of]
	if found == nil || found.name.strength(of) > 0 {
		return
	}
	at := slices.Index(d.columns, found)
	for _, i := range []int{at + 1, at - 1} {
		if i < 0 || i >= len(d.columns) {
			continue
		}
		c, p := d.columns[i], d.columns[i].profile
		words := p.share(kindLetters) > 0.9 && p.distinct*2 > p.filled && p.average() <= 25 && p.share(kindCountry) < 0.5
		if c.part == "" && !c.name.known && words {
			d.give(wanted, c, why)
			return
		}
	}
}
