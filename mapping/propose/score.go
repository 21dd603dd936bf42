package propose

import (
	"cmp"
	"slices"
	"strings"

	"github.com/dustin/go-humanize/english"
)

const (
	leastScore = 0.4 // what a column has to come to for a part
	surePart   = 0.8 // a name that says the part for sure
	fewestRows = 5   // that show something about columns whose name says little
)

// What the cells add to a column's name: as they are like those of the part, and as many of them are filled.
const (
	forLikeness = 0.3
	forFilled   = 0.5
)

// score is what a column is worth for a part, and what that rests on: its name, what the cells add to that, and how
// many there are. Cells that contradict the name win.
func (r rule) score(c *column) (score float64, why string) {
	p, strength := c.profile, c.name.strength(r.Part)
	average := ratio(p.total, p.filled)
	like := p.share(r.Like)
	byCells := r.Sure > 0 && p.filled > 1 && like >= r.All && p.nothingLike(r.Not...) &&
		(r.Some == "" || p.counts[r.Some] > 0) &&
		(!r.Varied || p.distinct*10 >= p.filled*8)
	score = strength + forLikeness*r.Weight*like + forFilled*p.fill()
	switch {
	case c.inside == "" && p.share("object") > 0.5:
	case p.rows == 0:
		return strength, "by its name"
	case p.filled == 0 || like < r.Least || !p.nothingLike(r.Unlike...) || r.Longest > 0 && average > r.Longest:
	case strength > 0 && r.Weight*like > 0.2:
		return score, "by name and values"
	case strength >= secondMost:
		return score, "by its name"
	case strength > 0:
		return score, "? by its name, which may mean other things"
	case byCells && c.isUnknown():
		return r.Sure, "? by its values"
	}
	return 0, ""
}

// isUnknown reports whether the header says nothing, of the lead or of anybody else.
func (c *column) isUnknown() bool { return !c.name.known && !c.name.foreign }

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
	for _, r := range known().Parts {
		for _, c := range d.columns {
			if score, why := r.score(c); score >= leastScore {
				candidates = append(candidates, candidate{c, r.Part, score, why})
			}
		}
	}
	slices.SortStableFunc(candidates, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(b.column.profile.filled, a.column.profile.filled))
	})
	names := []part{"first", "last", "full"}
	for _, cand := range candidates {
		// Cells alone make no second name: there are products called Emma and Max.
		named := slices.Contains(names, cand.part) && cand.column.isUnknown() && d.present(names...) != nil
		if d.parts[cand.part] == nil && cand.column.part == "" && !named {
			d.parts[cand.part], cand.column.part, cand.column.why = cand.column, cand.part, cand.why
		}
	}
}

// present are the columns that play the parts.
func (d *draft) present(parts ...part) (columns []*column) {
	for _, p := range parts {
		if c := d.parts[p]; c != nil {
			columns = append(columns, c)
		}
	}
	return columns
}

// keyChoice is what makes a row the same row on the next run, and what that rests on.
type keyChoice struct {
	Column    *column  // nil: the row's own data
	External  bool     // it is the CRM's own number, so the lead gets it as ExternalID
	ByValues  bool     // its name does not say that it is a number
	Lower     bool     // it is an address, of which case says nothing
	Repeats   int      // rows in which it repeats another's
	Blanks    int      // rows in which it is empty
	Namespace string   // that keeps it apart from those of other files, or ""
	Faults    []string // of columns that are called so and cannot be the key
}

// chooseKey looks for the CRM's own number of the lead, then for an address that tells the rows apart; names and phone
// numbers never do.
func (d *draft) chooseKey() (k keyChoice) {
	columns := slices.Clone(d.columns)
	slices.SortStableFunc(columns, func(a, b *column) int { return cmp.Compare(identifies(b), identifies(a)) })
	for _, c := range columns {
		p, id := c.profile, identifies(c)
		isNumber := id >= surePart
		// Where leads have a number, that of their person says who, not which lead.
		if id == 0 || identifies(columns[0]) >= surePart && !isNumber {
			break
		}
		if fault := d.faultOf(c, isNumber); fault == "" {
			k.Column, k.External, k.ByValues = c, true, id <= byValues
			k.Repeats, k.Blanks = p.filled-p.distinct, p.rows-p.filled
			if p.counting {
				k.Namespace = strings.Join(fileWords(d.In.File), "-")
			}
			return k
		} else if isNumber {
			k.Faults = append(k.Faults, fault)
		}
	}
	if email := d.parts["email"]; email != nil && len(email.cells) >= fewestRows && d.faultOf(email, false) == "" &&
		!repeatsFolded(email) {
		k.Column, k.Lower = email, true
	}
	return k
}

// byValues is the most that cells alone say of an identifier.
const byValues = 0.3

// identifies is how surely a column numbers the leads.
func identifies(c *column) float64 {
	const mostKey = 128 // characters of an identifier
	p := c.profile
	own, other := c.name.strength("recordid"), c.name.strength("otherid")
	isKey := len(c.name.words) > 0 && known().any("keys", c.name.words[len(c.name.words)-1:])
	switch {
	case p.rows > 0 && (p.share("solid") < 0.98 || p.longest > mostKey || !p.nothingLike("email", "url") ||
		c.part != ""):
	case own >= leastScore:
		return own
	case 0 < p.rows && p.rows < fewestRows: // two cells differ by chance
	case other >= leastScore:
		return other * 0.7
	case !c.isUnknown() || !p.nothingLike("date", "damaged"):
	case p.share("uuid") == 1:
		return byValues
	case p.share("code") == 1 && p.alike && p.nothingLike("phone") && (isKey || p.nothingLike("number")):
		return byValues / 2
	}
	return 0
}

func repeatsFolded(c *column) bool {
	seen := map[string]bool{}
	for _, cell := range c.cells {
		seen[strings.ToLower(cell)] = true
	}
	return len(seen) < len(c.cells)
}

// faultOf says why the column cannot be the key, or "": one that is named as an identifier may lack or repeat in a few
// rows.
func (d *draft) faultOf(c *column, named bool) string {
	const mostFaulty = 20 // one of so many rows
	p, name, most := c.profile, shown(c.header), 0
	if named {
		most = p.rows / mostFaulty
	}
	switch repeats := p.filled - p.distinct; {
	case p.rows-p.filled > most:
		return name + " is " + d.Empties(c)
	case p.counts["plain"] < p.filled:
		return name + " has control characters"
	case p.counts["damaged"] > 0:
		return name + " was damaged by a spreadsheet (4.9E+11) in " + english.Plural(p.counts["damaged"], "row", "")
	case repeats > most:
		return name + " repeats in " + english.Plural(repeats, "row", "")
	}
	return ""
}
