package propose

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/dustin/go-humanize/english"

	"leadferry/internal/spelling"
	"leadferry/mapping"
)

// word is one of a column of statuses.
type word struct {
	Text   string
	Rows   int
	Status string // of the service, or "": a person has to decide
	Doubt  bool
}

// Forms of words that a comment may hold, since they are nobody's.
var (
	tellableForm = spelling.Form(`^[\p{L}\p{M}\p{N}\p{P}\p{S}\p{Zs}]{1,40}$`)
	personalForm = spelling.Form(`@|\p{Nd}{5}`)
)

// wordsOf counts the words of a column, the most frequent first. It is nil where they are many, hardly come twice, or
// may be somebody's.
func wordsOf(c *column) (list []word) {
	const mostWords = 50
	p, rows := c.profile, map[string]int{}
	again := p.filled < 2*fewestRows || p.distinct*2 <= p.filled
	if p.distinct > mostWords || !again || p.share("given")+p.share("person") > 0.3 {
		return nil
	}
	for _, cell := range c.cells {
		rows[cell]++
	}
	delete(rows, "")
	for text, n := range rows {
		if !tellableForm().MatchString(text) || personalForm().MatchString(text) || !utf8.ValidString(text) {
			return nil
		}
		place := placeStatus(text)
		list = append(list, word{text, n, string(place.part), place.doubt})
	}
	slices.SortFunc(list, func(a, b word) int { return cmp.Or(b.Rows-a.Rows, cmp.Compare(a.Text, b.Text)) })
	return list
}

// statusChoice is a status column and what its words mean. Live: the mapping uses it, else a comment offers it. Sure:
// its name says so.
type statusChoice struct {
	Column     *column
	Words      []word
	Live, Sure bool
	score      float64
}

// Open are the words that a person has to place.
func (s *statusChoice) Open() (open []string) {
	for _, w := range s.Words {
		if w.Status == "" {
			open = append(open, quoted(w.Text))
		}
	}
	return open
}

// chooseStatus picks the column with the most known words, or one that is called status, to be offered.
func (d *draft) chooseStatus() (best *statusChoice) {
	for _, c := range d.columns {
		if s := statusOf(c); s != nil && (best == nil || s.score > best.score) {
			best = s
		}
	}
	return best
}

// statusOf is what the column's cells say of statuses, or nil when they and the name say too little.
func statusOf(c *column) *statusChoice {
	strength, words := c.name.strength("status", "statusid"), wordsOf(c)
	placed, rows, closes := 0, 0, 0.0
	for _, w := range words {
		if w.Status != "" {
			placed++
			rows += w.Rows
		}
		if strings.HasPrefix(w.Status, "closed") {
			closes = 0.3 // a column of stages alone would leave lost deals open
		}
	}
	share := ratio(rows, c.profile.filled)
	s := &statusChoice{Column: c, Words: words, Sure: strength >= surePart, score: 2*share + strength + closes}
	switch {
	case words == nil, strength < leastScore && !c.isUnknown():
		return nil
	case strength >= leastScore:
		s.Live = placed > 0 && (placed*2 >= len(words) || share >= 0.5)
	default:
		s.Live = placed > 1 && share >= 0.8 && c.profile.filled > max(3, len(words))
	}
	if !s.Live && !s.Sure {
		return nil
	}
	return s
}

// placeStatus is the service's status that a word stands for, or none: the longest phrase
// in it decides, and of equal ones that which stands for the later status.
func placeStatus(text string) (best sign) {
	d, list := known(), words(text)
	isQuestion := strings.Contains(text, "?")
	for length := len(list); length > 0 && best.part == ""; length-- {
		for from := range len(list) - length + 1 {
			negated := from > 0 && d.has("negation", list[from-1])
			for _, s := range d.statuses[strings.Join(list[from:from+length], "")] {
				if (length == len(list) || !s.whole && !negated) && rank(s.part) > rank(best.part) {
					best = s
				}
			}
		}
		best.doubt = best.doubt || isQuestion || length < len(list) // the other words may say otherwise
	}
	return best
}

func rank(status part) int { return slices.Index(mapping.Statuses(), string(status)) }

// organizationChoice is how the leads find their dealers.
type organizationChoice struct {
	Column *column // names the organization, or nil
	Live   bool    // its cells can be the service's IDs; else it is offered in a comment
	Why    string
}

// chooseOrganization picks the column that says so most surely: IDs are few for many leads. Names of dealers and the
// numbers of other systems need a person.
func (d *draft) chooseOrganization() (best organizationChoice) {
	most := 0.0
	for _, c := range d.columns {
		p, strength := c.profile, c.name.strength("organization")
		sure, ids := strength >= surePart, p.share("uuid")
		o := organizationChoice{Column: c, Why: "says where, but not by the service's IDs"}
		score := strength + ids + forFilled*p.fill()
		switch {
		case strength < leastScore:
			continue
		case sure && p.rows == 0:
			o.Live, o.Why = true, "? by its name: no row was there to look at"
		case ids >= 0.9 && (p.filled < 20 || p.distinct < p.filled):
			o.Live, o.Why = true, "? "+english.Plural(p.distinct, "dealer", "")+": the service's own IDs?"
		case p.filled == 0, (!sure || p.share("solid") < 0.9) &&
			(c.name.strength("company") > 0 || !p.nothingLike("email", "date", "yesno")):
			continue
		}
		if o.Live {
			score += 2
		}
		if score > most {
			best, most = o, score
		}
	}
	return best
}
