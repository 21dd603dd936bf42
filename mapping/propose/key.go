package propose

import (
	"cmp"
	"slices"
	"strings"

	"github.com/dustin/go-humanize/english"
)

// keyChoice is what makes a row the same row on the next run.
type keyChoice struct {
	column   *column // nil: the row's own data
	lower    bool    // an address, of which case says nothing
	external bool    // it is the CRM's own number, so the lead gets it as ExternalID
	why      []string
	instead  []*column // together they tell the rows apart too
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
func (t *table) chooseKey(parts map[part]*column) keyChoice {
	var k keyChoice
	ids := t.identifiers()
	for _, id := range ids {
		fault := t.faultOf(id)
		if fault == "" {
			k.column, k.external = id.column, true
			k.why = append(k.why, t.praise(id)...)
			return k
		}
		if id.strength >= surePart {
			k.why = append(k.why, fault+", so it can be neither key nor external_id.")
		}
	}
	if ref := t.reference(); ref != nil {
		k.column = ref
		k.why = append(k.why, shown(ref.header)+" holds the record's ID and is unique in "+t.extent()+".")
		return k
	}
	for _, c := range t.columns {
		if c.name.strength(partRowNumber) >= surePart && len(k.why) < 2 {
			k.why = append(k.why, shown(c.header)+" only counts the rows of this file.")
		}
	}
	if email := parts[partEmail]; email != nil && len(t.rows) > 0 && t.tells(email) {
		k.column, k.lower = email, true
		k.why = append(k.why, "No column numbers the leads for good. "+shown(email.header)+" is unique and filled in "+t.extent()+
			", so it has to do: these addresses are then kept in the checkpoint, and a second lead of the same person is told as"+
			` "changed", not made. Better: export the CRM's own ID too, for key and external_id.`)
		return k
	}
	k.why = append(k.why, "No column tells the rows apart for good, so a row's own data are its key: correcting a row makes another lead."+
		" Better: export the CRM's own ID too, for key and external_id.")
	k.instead = t.together(parts)
	return k
}

// identifiers lists the columns that may number the leads, the likeliest first.
func (t *table) identifiers() []identifier {
	var ids []identifier
	for _, c := range t.columns {
		if id := t.identifier(c); id.strength > 0 {
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

func (t *table) identifier(c *column) identifier {
	p := c.profile
	likely := p.share(kindSolid) >= 0.98 && p.longest <= mostKey && nothingLike(p, kindEmail, kindURL) && c.part == ""
	if p.rows > 0 && !likely {
		return identifier{}
	}
	own, other := c.name.strength(partRecordID), c.name.strength(partOtherID)
	switch {
	case own >= leastScore && (p.filled > 0 || p.rows == 0):
		return identifier{c, own, false}
	case p.rows > 0 && (p.rows < fewestRows || p.filled == 0):
	case other >= leastScore:
		return identifier{c, other * 0.7, false}
	case c.name.known || c.name.foreign || !nothingLike(p, kindDate, kindDamaged):
	case p.share(kindUUID) == 1:
		return identifier{c, 0.4, true}
	case p.share(kindCode) == 1 && p.shapes == 1 && nothingLike(p, kindPhone) && (c.name.isKey() || nothingLike(p, kindNumber)):
		return identifier{c, 0.3, true}
	}
	return identifier{}
}

// tells reports whether the column is filled and different in every row.
func (t *table) tells(c *column) bool {
	if !c.profile.full() || !c.profile.unique() {
		return false
	}
	seen := make(map[string]bool, len(c.cells))
	for _, cell := range c.cells {
		seen[strings.ToLower(cell)] = true
	}
	return len(seen) == len(c.cells)
}

// faultOf is why the column cannot be the key, or "".
func (t *table) faultOf(id identifier) string {
	p, name := id.column.profile, shown(id.column.header)
	repeats := p.filled - p.distinct
	switch {
	case p.rows == 0:
		return ""
	case !p.full():
		return name + " is " + t.empties(id.column)
	case p.counts[kindDamaged] > 0:
		return name + " was damaged by a spreadsheet (4.9E+11) in " + english.Plural(p.counts[kindDamaged], "row", "")
	case repeats == 0:
		return ""
	case id.strength >= surePart && repeats*mostRepeats <= p.rows:
		return ""
	}
	return name + " repeats in " + english.Plural(repeats, "row", "")
}

func (t *table) praise(id identifier) []string {
	p, name := id.column.profile, shown(id.column.header)
	if p.rows == 0 {
		return []string{name + " by its name: no row was there to measure."}
	}
	said := name + " is unique and filled in " + t.extent() + "."
	if repeats := p.filled - p.distinct; repeats > 0 {
		said = name + " is filled in " + t.extent() + "; " + english.Plural(repeats, "row", "") + " repeat another's: they are told as" +
			` "changed" or "unchanged", not made twice.`
	}
	list := []string{said}
	if p.counting {
		list = append(list, "It counts 1, 2, 3 …: make sure that it is the CRM's own number, which stays with the lead in other exports.")
	}
	if id.byValues {
		list = append(list, "Found by its values: make sure that it stays with the lead in other exports.")
	}
	return list
}

// reference is the record's ID as older Salesforce trees hold it, if every row
// has one: "ref" and the 15 or 18 characters of the ID.
func (t *table) reference() *column {
	for _, c := range t.numbered {
		if !strings.HasSuffix(c.header, ".referenceId") || !c.profile.full() || !c.profile.unique() || c.profile.rows == 0 {
			continue
		}
		if !slices.ContainsFunc(c.cells, func(cell string) bool { return !strings.HasPrefix(cell, "ref00Q") || len(cell) < 18 }) {
			return c
		}
	}
	return nil
}

// mostTogether is how many columns are tried as a key together.
const mostTogether = 8

// together finds two or three columns that tell the rows apart together: numbers
// of other tables, the address and the time, which do not change.
func (t *table) together(parts map[part]*column) []*column {
	var list []*column
	for _, c := range t.columns {
		steady := c == parts[partEmail] || c == parts[partCreated] ||
			c.part == "" && c.name.isKey() && c.name.strength(partRowNumber) == 0 && c.name.strength(partStatusID) == 0
		if steady && c.profile.full() && c.profile.distinct > 1 && len(list) < mostTogether {
			list = append(list, c)
		}
	}
	for i, a := range list {
		for j, b := range list[i+1:] {
			if t.apart(a, b) {
				return []*column{a, b}
			}
			for _, c := range list[i+j+2:] {
				if t.apart(a, b, c) {
					return []*column{a, b, c}
				}
			}
		}
	}
	return nil
}

// apart reports whether the columns' cells differ in every row.
func (t *table) apart(columns ...*column) bool {
	seen := make(map[string]bool, len(t.rows))
	for i := range t.rows {
		var b strings.Builder
		for _, c := range columns {
			b.WriteString(itoa(len(c.cells[i])) + ":" + c.cells[i])
		}
		seen[b.String()] = true
	}
	return len(seen) == len(t.rows) && len(t.rows) > 1
}
