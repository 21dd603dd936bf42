package propose

import (
	"cmp"
	"slices"
	"strings"

	"github.com/dustin/go-humanize/english"
)

// keyChoice is what makes a row the same row on the next run, and what that rests on.
type keyChoice struct {
	Column   *column // nil: the row's own data
	External bool    // it is the CRM's own number, so the lead gets it as ExternalID
	Lower    bool    // it is an address, of which case says nothing
	Repeats  int     // rows in which it repeats another's
	ByValues bool    // its name does not say that it is a number

	Faults   []string  // of columns that are called so and cannot be the key
	Alone    *column   // an address that tells the rows apart, of which there are too few
	Counter  *column   // one that only counts the rows, or nil
	Broken   *column   // one that was the key and does not hold in every row, or nil
	Together []*column // where there is no column: those that tell the rows apart together
}

const (
	mostKey     = 128 // characters of an identifier
	fewestRows  = 5   // that show something about columns whose name says little
	surePart    = 0.8
	mostRepeats = 20 // one of so many rows may repeat an identifier that is named as one
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
		fault := d.faultOf(id)
		if fault == "" {
			k.Column, k.External, k.ByValues = id.column, true, id.byValues
			k.Repeats = id.column.profile.filled - id.column.profile.distinct
			return k
		}
		if id.strength >= surePart {
			k.Faults = append(k.Faults, fault)
		}
	}
	if k.Column = d.reference(); k.Column != nil {
		return k
	}
	counts := func(c *column) bool { return c.name.strength(partRowNumber) >= surePart }
	if i := slices.IndexFunc(d.columns, counts); i >= 0 {
		k.Counter = d.columns[i]
	}
	if email := d.parts[partEmail]; email != nil && tells(email) {
		if !email.profile.tooFew() {
			k.Column, k.Lower = email, true
			return k
		}
		k.Alone = email
	}
	k.Together = d.together()
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
	case k.Repeats > 0:
		return "it repeats"
	}
	return ""
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

func (d *draft) faultOf(id identifier) string {
	p, name := id.column.profile, shown(id.column.header)
	repeats := p.filled - p.distinct
	switch {
	case !p.full():
		return name + " is " + d.Empties(id.column)
	case p.counts[kindDamaged] > 0:
		return name + " was damaged by a spreadsheet (4.9E+11) in " + english.Plural(p.counts[kindDamaged], "row", "")
	case repeats == 0, id.strength >= surePart && repeats*mostRepeats <= p.rows:
		return ""
	}
	return name + " repeats in " + english.Plural(repeats, "row", "")
}

// reference is the record's ID as older Salesforce trees hold it, if every row
// has one: "ref" and the 15 or 18 characters of the ID.
func (d *draft) reference() *column {
	for _, c := range d.Numbered {
		isID := func(cell string) bool { return strings.HasPrefix(cell, "ref00Q") && len(cell) >= 18 }
		if strings.HasSuffix(c.header, ".referenceId") && d.apart(c) && !slices.ContainsFunc(c.cells, func(cell string) bool { return !isID(cell) }) {
			return c
		}
	}
	return nil
}

// together finds two or three columns that tell the rows apart together: numbers
// of other tables, the address and the time, which do not change.
func (d *draft) together() []*column {
	const mostTogether = 8 // columns that are tried
	var list []*column
	if len(d.In.Rows) < fewestRows {
		return nil
	}
	for _, c := range d.columns {
		steady := c.part == partEmail || c.part == partCreated ||
			c.part == "" && c.name.isKey() && c.name.strength(partRowNumber) == 0 && c.name.strength(partStatusID) == 0
		if steady && c.profile.full() && c.profile.distinct > 1 && len(list) < mostTogether {
			list = append(list, c)
		}
	}
	for i, a := range list {
		for j, b := range list[i+1:] {
			if d.apart(a, b) {
				return []*column{a, b}
			}
			for _, c := range list[i+j+2:] {
				if d.apart(a, b, c) {
					return []*column{a, b, c}
				}
			}
		}
	}
	return nil
}

func (d *draft) apart(columns ...*column) bool {
	seen := map[[3]string]bool{}
	for i := range d.In.Rows {
		var cells [3]string
		for j, c := range columns {
			cells[j] = c.cells[i]
		}
		seen[cells] = true
	}
	return len(seen) == len(d.In.Rows) && len(seen) > 0
}
