package propose

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/dustin/go-humanize/english"

	"leadferry/internal/spelling"
	"leadferry/mapping"
)

// Limits of a column whose words may be told: it has few, and short ones.
const (
	mostStatuses  = 50
	longestStatus = 40 // characters
)

// longNumber is one that could be somebody's.
var longNumber = spelling.Form(`\p{Nd}{5}`)

// statusWord is a word of a status column, or of one of dealers.
type statusWord struct {
	Text   string
	Rows   int
	Status string // of the service, or "": a person has to decide
	Doubt  bool
}

// statusChoice is a status column and what its words mean. live says that the
// mapping uses it; else it is offered in a comment.
type statusChoice struct {
	Column *column
	Words  []statusWord
	Live   bool
	Sure   bool // its name says so
	score  float64
}

// Open are the words that a person has to place.
func (s *statusChoice) Open() []string {
	var open []string
	for _, w := range s.Words {
		if w.Status == "" {
			open = append(open, quoted(w.Text))
		}
	}
	return open
}

// chooseStatus picks the column of which most words can be placed, or one that is called so, to be offered.
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
	strength := max(c.name.strength(partStatus), c.name.strength(partStatusID))
	p := c.profile
	if strength < leastScore && (c.name.known || c.name.foreign) || !p.fewWords() {
		return nil
	}
	s := &statusChoice{Column: c, Words: statusWordsOf(c.cells), Sure: strength >= surePart}
	if s.Words == nil {
		return nil
	}
	placed, rows, closes := 0, 0, false
	for _, w := range s.Words {
		if w.Status != "" {
			placed++
			rows += w.Rows
		}
		closes = closes || strings.HasPrefix(w.Status, "closed")
	}
	share := float64(rows) / float64(p.filled)
	if s.Live = placed > 0 && (placed*2 >= len(s.Words) || share >= 0.5); strength < leastScore {
		s.Live = placed >= 2 && share >= 0.8 && p.filled >= 4 && p.filled > len(s.Words)
	}
	if !s.Live && strength < surePart {
		return nil
	}
	s.score = 2*share + strength + 0.5*p.fill()
	switch { // numbers of stages say more than a mere 0 and 1
	case s.Live:
		s.score++
	case p.share(kindYesNo) < 0.9:
		s.score += 0.1 * float64(1+min(len(s.Words), 8))
	}
	if closes { // a column of stages alone would leave lost deals open
		s.score += 0.3
	}
	return s
}

// statusWordsOf counts the words of a status column, the most frequent first, or
// is nil when one is too long to be one or might be somebody's.
func statusWordsOf(cells []string) []statusWord {
	list := countWords(cells, func(word string, _ int) bool { return tellable(word) })
	for i := range list {
		p := placeStatus(list[i].Text)
		list[i].Status, list[i].Doubt = p.status, p.doubt
	}
	return list
}

// countWords counts the cells that hold something by their text, the most frequent first,
// or is nil when one may not be told.
func countWords(cells []string, may func(word string, rows int) bool) []statusWord {
	counts := map[string]int{}
	for _, cell := range cells {
		if cell != "" {
			counts[cell]++
		}
	}
	list := make([]statusWord, 0, len(counts))
	for text, rows := range counts {
		if !may(text, rows) {
			return nil
		}
		list = append(list, statusWord{Text: text, Rows: rows})
	}
	slices.SortFunc(list, func(a, b statusWord) int {
		return cmp.Or(cmp.Compare(b.Rows, a.Rows), cmp.Compare(a.Text, b.Text))
	})
	return list
}

// tellable reports whether a comment may hold the word: short, and neither an
// address nor a number that could be somebody's.
func tellable(s string) bool {
	if utf8.RuneCountInString(s) > longestStatus || strings.Contains(s, "@") || !utf8.ValidString(s) {
		return false
	}
	return !longNumber().MatchString(s) && !strings.ContainsFunc(s, func(r rune) bool { return r != ' ' && !unicode.IsGraphic(r) })
}

// placeStatus is the service's status that a word stands for, or none: the longest phrase
// in it decides, and of equal ones that which stands for the later status.
func placeStatus(text string) placing {
	d, list, statuses := known(), words(text), mapping.Statuses()
	if p, ok := d.statuses[strings.Join(list, " ")]; ok {
		return p
	}
	later := func(a, b placing) bool {
		return slices.Index(statuses, a.status) > slices.Index(statuses, b.status)
	}
	for length := min(len(list), d.longestStatus); length > 0; length-- {
		var best placing
		for from := 0; from+length <= len(list); from++ {
			p := d.statuses[strings.Join(list[from:from+length], " ")]
			negated := from > 0 && d.has("negation", list[from-1])
			if !p.whole && !negated && later(p, best) {
				best = p
			}
		}
		if best.status != "" {
			best.doubt = best.doubt || length < len(list) // the other words may say otherwise
			return best
		}
	}
	return placing{}
}

// organizationChoice is how the leads find their dealers.
type organizationChoice struct {
	Column *column // names the organization, or nil
	Live   bool    // its cells can be the service's IDs; else it is offered in a comment
	Why    string
	Words  []statusWord // of a table that a person has to fill in with the service's IDs
}

func (d *draft) chooseOrganization() organizationChoice {
	var best organizationChoice
	most := 0.0
	for _, c := range d.columns {
		o := d.organizationOf(c)
		score := c.name.strength(partOrganization) + c.profile.share(kindUUID) + 0.5*c.profile.fill()
		switch {
		case o.Live:
			score += 2
		case o.Words != nil:
			score++
		}
		if o.Column != nil && score > most {
			best, most = o, score
		}
	}
	return best
}

// organizationOf judges one column: IDs are few for many leads. Names of dealers
// and the numbers of other systems need a person.
func (d *draft) organizationOf(c *column) organizationChoice {
	p, strength := c.profile, c.name.strength(partOrganization)
	named, sure := strength >= leastScore, strength >= surePart
	var words []statusWord
	if sure {
		words = dealersOf(c)
	}
	repeats := p.filled < 20 || p.distinct < p.filled
	codes := p.share(kindCode) >= 0.9 && p.nothingLike(kindDate, kindEmail, kindDamaged) && p.longest <= mostKey
	unnamed := strength == 0 && !c.name.known && !c.name.foreign
	switch {
	case sure && p.rows == 0:
		return organizationChoice{c, true, "? by its name: no row was there to look at", nil}
	case p.filled == 0 && p.rows > 0:
	case named && p.share(kindUUID) >= 0.9 && repeats:
		return organizationChoice{c, true, "? " + english.Plural(p.distinct, "dealer", "") + ": the service's own IDs?", nil}
	case named && codes && repeats, sure && p.share(kindSolid) >= 0.9:
		return organizationChoice{c, false, "another system's numbers, by their looks", words}
	case named && c.name.strength(partCompany) == 0 && p.nothingLike(kindEmail, kindDate, kindYesNo):
		return organizationChoice{c, false, "says where, but not by an ID", words}
	case unnamed && p.share(kindUUID) == 1 && p.filled >= 10 && p.distinct*2 <= p.filled:
		return organizationChoice{c, false, "IDs that many rows share: dealers?", nil}
	}
	return organizationChoice{}
}

// dealersOf are the words of a column of dealers with their rows, the most frequent first, or
// nil where they are many, hardly come twice or could be somebody's.
func dealersOf(c *column) []statusWord {
	if !c.profile.fewWords() {
		return nil
	}
	return countWords(c.cells, func(word string, rows int) bool {
		return tellable(word) || rows > 1 && dealerForm().MatchString(word)
	})
}

// dealerForm is of the numbers that systems give dealers. A word with one is told where several rows have it.
var dealerForm = spelling.Form(`^[A-Z]{0,4}[-_/. ]?[0-9]{3,8}$`)
