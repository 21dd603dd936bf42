package propose

import "strings"

// This file says how well a column fits a part, the key and the status: by its name, and by its cells.

const (
	leastScore = 0.4 // the lowest score with which a column gets a part
	surePart   = 0.8 // the strength of a name that clearly says the part
	byValues   = 0.3 // the score of an identifier that only its cells suggest
	fewestRows = 5   // fewer rows show nothing about a column whose name says little
)

// What cells add to a column's score if all of them look like the part, and if all of them are filled.
const forLikeness, forFilled = 0.3, 0.5

// score says how well a column fits a part. It counts the name, how many cells look like the part, and how many are
// filled. Cells that contradict the name win. guessed is a remark if the fit is a guess.
func (r rule) score(c *column) (score float64, guessed string) {
	p, strength := c.profile, c.name.strength(r.Part)
	like := p.share(r.Like)
	switch {
	case p.rows == 0:
		return strength, ""
	case p.filled == 0 || like < r.Least || !p.nothingLike(r.Unlike...) ||
		r.Longest > 0 && ratio(p.total, p.filled) > r.Longest:
		return 0, ""
	case strength == 0 && c.isUnknown() && r.Sure > 0 && p.filled > 1 && like >= r.All && p.nothingLike(r.Not...):
		return r.Sure, "? by its values"
	case strength == 0:
		return 0, ""
	case strength < secondMost && r.Weight*like <= 0.2:
		guessed = "? by its name, which may mean other things"
	}
	return strength + forLikeness*r.Weight*like + forFilled*ratio(p.filled, p.rows), guessed
}

// isUnknown reports whether the header says nothing, about the lead or anybody else.
func (c *column) isUnknown() bool { return !c.name.known() && !c.name.foreign }

// identifies says how surely the column identifies the leads, 0 to 1.
func (c *column) identifies() float64 {
	const mostKey = 128 // characters of an identifier
	p := c.profile
	own, other := c.name.strength("recordid"), c.name.strength("otherid")
	switch {
	case p.rows > 0 && (p.share("solid") < 0.98 || p.longest > mostKey || !p.nothingLike("email", "url") ||
		c.part != ""):
	case own >= leastScore:
		return own
	case 0 < p.rows && p.rows < fewestRows: // two cells may differ by chance
	case other >= leastScore:
		return other * 0.7
	case !c.isUnknown() || !p.nothingLike("date", "damaged"):
	case p.share("code") == 1 && p.nothingLike("phone", "number"): // faultOf checks whether they are unique
		return byValues
	}
	return 0
}

// statusScore says how clearly the name and the words of the column are those of a status; 0: they are not.
func (c *column) statusScore(words []word) float64 {
	strength, placed, rows, closes := c.name.strength("status", "statusid"), 0, 0, 0.0
	for _, w := range words {
		if w.Status != "" {
			placed++
			rows += w.Rows
		}
		if strings.HasPrefix(w.Status, "closed") {
			closes = 0.3 // preferred: a column of stages alone would leave lost deals open
		}
	}
	share := ratio(rows, c.profile.filled)
	enough := placed > 0 && (placed*2 >= len(words) || share >= 0.5)
	if strength < leastScore {
		enough = c.isUnknown() && placed > 1 && share >= 0.8 && c.profile.filled > max(3, len(words))
	}
	if !enough {
		return 0
	}
	return 2*share + strength + closes
}
