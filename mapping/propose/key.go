package propose

import (
	"cmp"
	"slices"
	"strings"

	"github.com/dustin/go-humanize/english"
)

// keyChoice is what makes a row the same row on the next run, and what that rests on.
type keyChoice struct {
	Column    *column // nil: the row's own data
	External  bool    // it is the CRM's own number, so the lead gets it as ExternalID
	Lower     bool    // it is an address, of which case says nothing
	Repeats   int     // rows in which it repeats another's
	Blanks    int     // rows in which it is empty
	ByValues  bool    // its name does not say that it is a number
	Namespace string  // that keeps it apart from those of other files, or ""

	Faults  []string // of columns that are called so and cannot be the key
	Alone   *column  // an address that tells the rows apart, of which there are too few
	Counter *column  // one that only counts the rows, or nil
	Broken  *column  // one that was the key and does not hold in every row, or nil
}

const (
	mostKey    = 128 // characters of an identifier
	fewestRows = 5   // that show something about columns whose name says little
	surePart   = 0.8
	mostFaulty = 20 // one of so many rows may repeat an identifier that is named as one, or lack it
)

// identifier is a column that may number the leads.
type identifier struct {
	column   *column
	strength float64
	byValues bool
}

// chooseKey looks for the CRM's own number of the lead, then for an address that
// tells the rows apart; names and phone numbers never do.
func (d *draft) chooseKey() keyChoice {
	var k keyChoice
	for _, id := range d.identifiers() {
		p := id.column.profile
		if fault := d.faultOf(id); fault == "" {
			k = keyChoice{Column: id.column, External: true, ByValues: id.byValues, Repeats: p.filled - p.distinct, Blanks: p.rows - p.filled, Faults: k.Faults}
			if words := fileWords(d.In.File); p.counting && len(words) > 0 {
				k.Namespace = strings.Join(words, "-")
			}
			return k
		} else if id.strength >= surePart {
			k.Faults = append(k.Faults, fault)
		}
	}
	if i := slices.IndexFunc(d.columns, func(c *column) bool { return c.name.strength(partRowNumber) >= surePart }); i >= 0 {
		k.Counter = d.columns[i]
	}
	switch email := d.parts[partEmail]; {
	case email == nil || !tells(email):
	case email.profile.tooFew():
		k.Alone = email
	default:
		k.Column, k.Lower = email, true
	}
	return k
}

// Guess says why the key is one that a person has to confirm, or "".
func (k keyChoice) Guess() string {
	switch {
	case k.Column == nil:
		return ""
	case k.Column.profile.rows < fewestRows:
		return "by its name only, the rows are too few to show that it is unique"
	case k.Lower:
		return "for want of a number of the CRM's own"
	case k.ByValues:
		return "by its values: does it stay with the lead in other exports?"
	case k.Column.Counts():
		return "it counts 1, 2, 3 …: is it the CRM's own number, which stays with the lead in other exports?"
	case k.Repeats > 0 || k.Blanks > 0:
		return "it repeats, or is empty"
	}
	return ""
}

// Flaws says in how many rows the key repeats or lacks, or "".
func (k keyChoice) Flaws() string {
	var flaws []string
	if k.Repeats > 0 {
		flaws = append(flaws, english.Plural(k.Repeats, "row", "")+" repeat another's and are told as changed or unchanged, not made twice")
	}
	if k.Blanks > 0 {
		flaws = append(flaws, english.Plural(k.Blanks, "row", "")+" lack it and are invalid")
	}
	return strings.Join(flaws, "; ")
}

func (d *draft) identifiers() []identifier {
	var ids []identifier
	for _, c := range d.columns {
		if id := identify(c); id.strength > 0 {
			ids = append(ids, id)
		}
	}
	slices.SortStableFunc(ids, func(a, b identifier) int { return cmp.Compare(b.strength, a.strength) })
	if len(ids) > 0 && ids[0].strength >= surePart {
		// Where leads have a number, that of their person says who, not which lead.
		ids = slices.DeleteFunc(ids, func(id identifier) bool { return id.strength < surePart })
	}
	return ids
}

func identify(c *column) identifier {
	p := c.profile
	own, other := c.name.strength(partRecordID), c.name.strength(partOtherID)
	likely := p.rows == 0 || p.share(kindSolid) >= 0.98 && p.longest <= mostKey && p.nothingLike(kindEmail, kindURL) && c.part == ""
	switch {
	case !likely:
	case own >= leastScore:
		return identifier{c, own, false}
	case p.tooFew():
	case other >= leastScore:
		return identifier{c, other * 0.7, false}
	case c.name.known || c.name.foreign || !p.nothingLike(kindDate, kindDamaged):
	case p.share(kindUUID) == 1:
		return identifier{c, 0.4, true}
	case p.share(kindCode) == 1 && p.alike && p.nothingLike(kindPhone) && (c.name.isKey() || p.nothingLike(kindNumber)):
		return identifier{c, 0.3, true}
	}
	return identifier{}
}

func tells(c *column) bool {
	seen := map[string]bool{}
	for _, cell := range c.cells {
		seen[strings.ToLower(cell)] = true
	}
	return len(seen) == len(c.cells) && len(seen) > 0 && !seen[""]
}

// faultOf says why the column cannot be the key, or "": one that is named as an identifier may lack or repeat in a few rows.
func (d *draft) faultOf(id identifier) string {
	p, name := id.column.profile, shown(id.column.header)
	most := 0
	if id.strength >= surePart {
		most = p.rows / mostFaulty
	}
	switch repeats := p.filled - p.distinct; {
	case p.rows-p.filled > most:
		return name + " is " + d.Empties(id.column)
	case p.counts[kindDamaged] > 0:
		return name + " was damaged by a spreadsheet (4.9E+11) in " + english.Plural(p.counts[kindDamaged], "row", "")
	case repeats > most:
		return name + " repeats in " + english.Plural(repeats, "row", "")
	}
	return ""
}
