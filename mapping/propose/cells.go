package propose

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"leadferry/internal/rowkey"
	"leadferry/internal/spelling"
)

// kind is what a cell looks like. A cell may be of several.
type kind int

// The kinds; looksLike says what each of them is.
const (
	kindEmail kind = iota
	kindPhone
	kindPostal
	kindURL
	kindUUID
	kindDate
	kindNumber
	kindInteger
	kindYesNo
	kindCountry
	kindState
	kindStreet
	kindGiven
	kindPerson
	kindLetters
	kindSolid
	kindCode
	kindZeroLed
	kindDamaged
	kindPrefixed
	kindObject
	kinds
)

// cell is a cell that has to be looked at: filled and trimmed.
type cell struct {
	text  string
	value string // the text without the mark that lead ads put before numbers
	words []string
}

// looksLike says for each kind whether a cell is of it.
var looksLike = [kinds]func(c *cell) bool{
	// More lenient than format: email, which has the last word on whether the mapping may ask for it.
	kindEmail: matches(`^[^@\s\p{Z}]+@[^@\s\p{Z}]+\.[^@\s\p{Z}.]+$`),
	// 6 to 15 digits with the marks that people put between, and an extension: x12, ext. 12.
	kindPhone: func(c *cell) bool {
		return !dateShape().MatchString(c.value) && (phoneForm().MatchString(c.value) || damagedForm().MatchString(c.value))
	},
	// What postal codes of the world have in common: at most ten characters in two groups, two digits or more.
	kindPostal: func(c *cell) bool {
		return len(c.value) >= 3 && len(c.value) <= 10 && postalForm().MatchString(c.value) && twoDigits().MatchString(c.value)
	},
	kindURL:  matches(`(?i)^(?:https?://|www\.)`),
	kindUUID: func(c *cell) bool { return rowkey.IsUUID(strings.TrimSuffix(strings.TrimPrefix(c.value, "{"), "}")) },
	kindDate: func(c *cell) bool { return dateShape().MatchString(c.value) },
	// A number with a sign, a fraction or groups of digits.
	kindNumber:  matches(`^` + quantity + `$`),
	kindInteger: func(c *cell) bool { return isNumber(c.value) },
	kindYesNo:   stands("yesno"),
	kindCountry: stands("country"),
	kindState:   stands("state"),
	// A number and a word of streets.
	kindStreet: func(c *cell) bool {
		return len(c.words) > 1 && slices.ContainsFunc(c.words, isNumber) && slices.ContainsFunc(c.words, isStreet)
	},
	// A common given name.
	kindGiven: func(c *cell) bool {
		return len(c.words) == 1 && isGiven(c.words[0]) && lettersForm().MatchString(c.value)
	},
	// Two words or more, a common given name before or behind the others.
	kindPerson: func(c *cell) bool {
		n := len(c.words)
		return n > 1 && (isGiven(c.words[0]) || n <= 4 && isGiven(c.words[n-1])) && lettersForm().MatchString(c.value)
	},
	kindLetters: func(c *cell) bool { return lettersForm().MatchString(c.value) },
	// May be an identifier, and more likely so with a digit.
	kindSolid: isSolid,
	kindCode:  func(c *cell) bool { return len(c.text) >= 4 && strings.ContainsAny(c.text, "0123456789") && isSolid(c) },
	// A postal code such as 01067.
	kindZeroLed: matches(`^0[0-9]{4}$`),
	// 4.91761E+11: a spreadsheet took a number for a quantity.
	kindDamaged: func(c *cell) bool { return damagedForm().MatchString(c.value) },
	// p:+49…, z:50667: an export's mark before the value.
	kindPrefixed: func(c *cell) bool {
		return len(c.value) < len(c.text) && strings.IndexByte("+0123456789", c.value[0]) >= 0
	},
	kindObject: func(c *cell) bool { return isObject(c.text) },
}

const quantity = `[+-]*\.*[0-9](?:[0-9.,]*[0-9.])?`

var (
	markForm    = spelling.Form(`^[a-z]{1,2}:`)
	phoneForm   = spelling.Form(`^(?i:tel:)?'?\(?\+?(?:[ ()\-./‑–\x{a0}]*[0-9]){6,15}[ ()\-./‑–\x{a0}]*(?i:e?x.*)?$`)
	postalForm  = spelling.Form(`^[0-9A-Za-z]+(?:[ -][0-9A-Za-z]+)?$`)
	twoDigits   = spelling.Form(`[0-9].*[0-9]`)
	damagedForm = spelling.Form(`^` + quantity + `[Ee]\+[0-9]{1,3}$`)
	lettersForm = spelling.Form("^[\\p{M} .,'’`\\-–&/()]*\\p{L}[\\p{L}\\p{M} .,'’`\\-–&/()]*$")
)

func matches(form string) func(*cell) bool {
	compiled := spelling.Form(form)
	return func(c *cell) bool { return compiled().MatchString(c.value) }
}

// stands is for kinds whose cells stand in a section of dictionary.yaml.
func stands(section string) func(*cell) bool {
	return func(c *cell) bool { return known().has(section, strings.Join(c.words, "")) }
}

func isSolid(c *cell) bool {
	return !strings.Contains(c.text, "@") && !strings.ContainsFunc(c.text, unicode.IsSpace) && !isObject(c.text)
}

func isGiven(word string) bool { return known().has("given", word) }

func isStreet(word string) bool {
	d := known()
	return d.has("street", word) || slices.ContainsFunc(d.streetEnds, func(end string) bool {
		return len(word) > len(end)+2 && strings.HasSuffix(word, end)
	})
}

func isObject(text string) bool {
	return len(text) >= 2 && (text[0] == '{' && text[len(text)-1] == '}' || text[0] == '[' && text[len(text)-1] == ']')
}

// kindSet is the kinds of a cell.
type kindSet uint32

func (s kindSet) has(k kind) bool { return s&(1<<k) != 0 }

func kindsOf(text string) kindSet {
	const longestJudged = 256 // bytes that have to look like something: a longer cell is prose
	if len(text) > longestJudged {
		if isObject(text) {
			return 1 << kindObject
		}
		return 0
	}
	c := &cell{text: text, value: text}
	if value := text[len(markForm().FindString(text)):]; value != "" {
		c.value = value
	}
	if c.words = words(c.value); len(c.words) > 8 {
		c.words = nil
	}
	var set kindSet
	for k, looks := range looksLike {
		if looks(c) {
			set |= 1 << k
		}
	}
	return set
}

// profile is what a column's cells have in common. It holds no cell.
type profile struct {
	rows     int
	filled   int // cells that hold something
	distinct int // different ones among them
	longest  int // characters
	total    int // characters of all filled cells
	counts   [kinds]int
	alike    bool // the cells are of one shape, such as A-9 for L-104204
	counting bool // the cells are 1, 2, 3 … in the order of the rows
}

// measure looks at all cells of a column; those that hold nothing are "".
func measure(cells []string) *profile {
	p := &profile{rows: len(cells), counting: true}
	seen := make(map[string]kindSet, min(len(cells), 64))
	shapes := map[string]bool{}
	for _, text := range cells {
		if text == "" {
			continue
		}
		p.filled++
		n := utf8.RuneCountInString(text)
		p.longest, p.total = max(p.longest, n), p.total+n
		set, again := seen[text]
		if !again {
			set = kindsOf(text)
			seen[text] = set
			if len(shapes) < 2 {
				shapes[shape(text)] = true
			}
		}
		for k := range kinds {
			if set.has(k) {
				p.counts[k]++
			}
		}
		if p.counting {
			number, err := strconv.Atoi(text)
			p.counting = err == nil && number == p.filled
		}
	}
	p.distinct, p.alike = len(seen), len(shapes) == 1
	p.counting = p.counting && p.filled > 1
	return p
}

// shape is a text with A for each run of letters and 9 for each of digits.
func shape(text string) string {
	classes := strings.Map(func(r rune) rune {
		switch {
		case r >= '0' && r <= '9':
			return '9'
		case r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= utf8.RuneSelf:
			return 'A'
		}
		return r
	}, text)
	return string(slices.Compact([]byte(classes)))
}

// share is the part of the filled cells that are of a kind, 0 to 1.
func (p *profile) share(k kind) float64 { return ratio(p.counts[k], p.filled) }

// fill is the part of the rows that hold something, 0 to 1.
func (p *profile) fill() float64 { return ratio(p.filled, p.rows) }

func (p *profile) average() float64 { return ratio(p.total, p.filled) }

// tooFew reports whether the rows are too few to show anything about a column whose name says
// little: two cells differ by chance.
func (p *profile) tooFew() bool { return p.rows > 0 && p.rows < fewestRows }

// fewWords reports whether the cells hold words that come again and again, and no people.
func (p *profile) fewWords() bool {
	again := p.filled < 2*fewestRows || p.distinct*2 <= p.filled
	return p.filled > 0 && p.distinct <= mostStatuses && again && p.share(kindGiven)+p.share(kindPerson) <= 0.3
}

// nothingLike reports whether few cells are of any of the kinds.
func (p *profile) nothingLike(kinds ...kind) bool {
	return !slices.ContainsFunc(kinds, func(k kind) bool { return p.share(k) > 0.5 })
}

func ratio(n, of int) float64 { return float64(n) / float64(max(1, of)) }
