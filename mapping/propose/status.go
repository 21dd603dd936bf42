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

// word is one word of a status column.
type word struct {
	Text   string
	Rows   int
	Status string // of the service, or "": a person has to decide
	Doubt  bool
}

// A comment may hold a word that matches tellableForm and not personalForm: it identifies nobody.
var (
	tellableForm = spelling.Form(`^[\p{L}\p{M}\p{N}\p{P}\p{S}\p{Zs}]{1,40}$`)
	personalForm = spelling.Form(`@|\p{Nd}{5}`)
)

// wordsOf counts the words of a column, most frequent first; nil if they are many, rarely repeat, or may name a person.
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

// statusChoice is a status column and the meaning of its words. Sure: its name says that it is one.
type statusChoice struct {
	Column *column
	Words  []word
	Sure   bool
}

// Open returns the words that a person has to map.
func (s *statusChoice) Open() (open []string) {
	for _, w := range s.Words {
		if w.Status == "" {
			open = append(open, quoted(w.Text))
		}
	}
	return open
}

// chooseStatus picks the column whose words and name are most clearly those of statuses, or nil.
func (d *draft) chooseStatus() (best *statusChoice) {
	highest := 0.0
	for _, c := range d.columns {
		words := wordsOf(c)
		if score := c.statusScore(words); score > highest {
			highest, best = score, &statusChoice{c, words, c.name.strength("status", "statusid") >= surePart}
		}
	}
	return best
}

// placeStatus returns the service's status that a text means, or none. Its longest known phrase decides. Among phrases
// of equal length, the one for the later status wins.
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

// organizationChoice says how the leads find their dealers.
type organizationChoice struct {
	Column *column // names the organization, or nil
	Live   bool    // its cells can be the service's IDs; if not, a comment offers it
	Why    string
}

// chooseOrganization checks whether the column of organizations holds the service's IDs, which are few for many leads.
// Names of dealers and numbers of other systems need a person, and go into the lead like other columns.
func (d *draft) chooseOrganization() organizationChoice {
	c := d.of("organization")
	if c == nil {
		return organizationChoice{}
	}
	p := c.profile
	switch {
	case p.rows == 0 && c.name.strength("organization") >= surePart:
		return organizationChoice{c, true, "? by its name: no row was there to look at"}
	case p.share("uuid") >= 0.9 && (p.filled < 20 || p.distinct < p.filled):
		return organizationChoice{c, true, "? " + english.Plural(p.distinct, "dealer", "") + ": the service's own IDs?"}
	}
	c.part = ""
	return organizationChoice{c, false, "says where, but not by the service's IDs"}
}
