package propose

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// statuses are those of the service by key, in the order of its specification
// ("States and transitions").
var statuses = [...]string{
	"open", "contacted", "inProgress", "onHold", "closedWon", "closedNotInterested", "closedBoughtUsed", "closedBoughtOtherBrand",
}

func statusIndex(key string) int { return slices.Index(statuses[:], key) }

// Limits of a column whose words may be told: it has few, and short ones.
const (
	mostStatuses  = 50
	longestStatus = 40 // characters
	mostDigits    = 4  // one after another
)

// statusWord is a word of a status column.
type statusWord struct {
	text   string
	rows   int
	status int // index in statuses, or -1: a person has to decide
	doubt  bool
}

// statusChoice is a status column and what its words mean. live says that the
// mapping uses it; else it is offered in a comment.
type statusChoice struct {
	column *column
	words  []statusWord
	live   bool
	score  float64
}

// chooseStatus picks the column of which most words can be placed, or one that is
// called so, to be offered.
func (t *table) chooseStatus() (best, other *statusChoice) {
	var list []*statusChoice
	for _, c := range t.columns {
		if s := t.statusOf(c); s != nil {
			list = append(list, s)
		}
	}
	slices.SortStableFunc(list, func(a, b *statusChoice) int { return cmp.Compare(b.score, a.score) })
	if len(list) == 0 {
		return nil, nil
	}
	if len(list) > 1 && list[1].live {
		other = list[1]
	}
	return list[0], other
}

// statusOf is what the column's cells say of statuses, or nil when they and the
// name say too little.
func (t *table) statusOf(c *column) *statusChoice {
	strength := max(c.name.strength(partStatus), c.name.strength(partStatusID))
	p := c.profile
	switch {
	case strength < leastScore && (c.name.known || c.name.foreign), p.filled == 0, p.distinct > mostStatuses:
		return nil
	case p.filled >= 2*fewestRows && p.distinct*2 > p.filled, p.share(kindGiven)+p.share(kindPerson) > 0.3:
		return nil // words that hardly come twice, or people
	}
	s := &statusChoice{column: c, words: statusWordsOf(c.cells)}
	if s.words == nil {
		return nil
	}
	placed, rows, closes := 0, 0, false
	for _, w := range s.words {
		if w.status >= 0 {
			placed++
			rows += w.rows
		}
		closes = closes || w.status >= statusIndex("closedWon")
	}
	share := float64(rows) / float64(p.filled)
	enough := placed*2 >= len(s.words) || share >= 0.5
	switch {
	case strength >= leastScore && placed > 0 && enough:
		s.live = true
	case strength < leastScore && placed >= 2 && share >= 0.8 && p.filled >= 4 && p.filled > len(s.words):
		s.live = true
	case strength < surePart:
		return nil
	}
	s.score = 2*share + strength + 0.5*p.fill()
	switch { // numbers of stages say more than a mere 0 and 1
	case s.live:
		s.score++
	case p.share(kindYesNo) < 0.9:
		s.score += 0.1 * float64(1+min(len(s.words), 8))
	}
	if closes { // a column of stages alone would leave lost deals open
		s.score += 0.3
	}
	return s
}

// statusWordsOf counts the words of a status column, the most frequent first, or
// is nil when one is too long to be one or might be somebody's.
func statusWordsOf(cells []string) []statusWord {
	counts := map[string]int{}
	for _, cell := range cells {
		if cell == "" {
			continue
		}
		if counts[cell]++; counts[cell] == 1 && !tellable(cell) {
			return nil
		}
	}
	list := make([]statusWord, 0, len(counts))
	for text, rows := range counts {
		w := statusWord{text: text, rows: rows}
		w.status, w.doubt = placeStatus(text)
		list = append(list, w)
	}
	slices.SortFunc(list, func(a, b statusWord) int {
		return cmp.Or(cmp.Compare(b.rows, a.rows), cmp.Compare(a.text, b.text))
	})
	return list
}

// tellable reports whether a comment may hold the word: short, and neither an
// address nor a number that could be somebody's.
func tellable(s string) bool {
	if utf8.RuneCountInString(s) > longestStatus || strings.Contains(s, "@") || !utf8.ValidString(s) {
		return false
	}
	digits := 0
	for _, r := range s {
		if unicode.IsDigit(r) {
			digits++
		} else {
			digits = 0
		}
		if digits > mostDigits || r != ' ' && !unicode.IsGraphic(r) {
			return false
		}
	}
	return true
}

// placeStatus is the service's status that a word stands for, or -1, and whether
// that is a doubtful guess.
func placeStatus(text string) (status int, doubt bool) {
	d, list := known(), words(text)
	if p, ok := d.statuses[strings.Join(list, " ")]; ok {
		return p.status, p.doubt
	}
	for length := min(len(list), d.longestStatus); length > 0; length-- {
		best, found := placing{status: -1}, false
		for from := 0; from+length <= len(list); from++ {
			p, ok := d.statuses[strings.Join(list[from:from+length], " ")]
			negated := from > 0 && d.negation[list[from-1]]
			if ok && !p.whole && !negated && p.status > best.status {
				best, found = p, true
			}
		}
		if found {
			return best.status, best.doubt
		}
	}
	return -1, false
}
