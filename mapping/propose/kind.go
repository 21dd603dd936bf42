package propose

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// kind is what a cell looks like. A cell may be of several.
type kind int

const (
	kindEmail kind = iota
	kindPhone
	kindPostal
	kindURL
	kindUUID
	kindDate
	kindSlashDate // day and month in an order that only people know
	kindNumber
	kindInteger
	kindYesNo
	kindCountry
	kindState
	kindStreet
	kindGiven    // one word, a common given name
	kindPerson   // two to four words, one of them a common given name
	kindLetters  // letters, blanks and the marks of names only
	kindSolid    // no blank, no @: may be an identifier
	kindCode     // solid, of at least four characters with a digit among them
	kindZeroLed  // a postal code such as 01067
	kindDamaged  // 4.91761E+11: a spreadsheet took a number for a quantity
	kindPrefixed // p:+49…, l:123: an export's mark before the value
	kindSecret   // a card, an account, a social security number, a token
	kindObject   // JSON
	kinds
)

type kindSet uint32

func (s kindSet) has(k kind) bool { return s&(1<<k) != 0 }

func (s kindSet) count(counts *[kinds]int) {
	for k := range kinds {
		if s.has(k) {
			counts[k]++
		}
	}
}

// longestJudged is how many bytes of a cell have to look like something: a
// longer one is prose.
const longestJudged = 256

// kindsOf is what a filled, trimmed cell looks like.
func kindsOf(cell string) kindSet {
	if len(cell) > longestJudged {
		if isObject(cell) {
			return 1 << kindObject
		}
		return 0
	}
	value, prefixed := withoutMark(cell)
	var set kindSet
	is := func(k kind, yes bool) {
		if yes {
			set |= 1 << k
		}
	}
	is(kindPrefixed, prefixed)
	is(kindObject, isObject(cell))
	date, slash := looksLikeDate(value)
	is(kindDate, date)
	is(kindSlashDate, slash)
	is(kindDamaged, isDamaged(value))
	is(kindEmail, looksLikeEmail(value))
	is(kindPhone, !date && (looksLikePhone(value) || isDamaged(value)))
	is(kindPostal, looksLikePostal(value))
	is(kindZeroLed, len(value) == 5 && value[0] == '0' && isNumber(value))
	is(kindURL, looksLikeURL(value))
	is(kindUUID, isUUID(value))
	is(kindNumber, isQuantity(value))
	is(kindInteger, isNumber(value))
	is(kindSecret, looksSecret(value))
	solid := !strings.ContainsFunc(cell, unicode.IsSpace) && !strings.Contains(cell, "@") && !isObject(cell)
	is(kindSolid, solid)
	is(kindCode, solid && len(cell) >= 4 && strings.ContainsAny(cell, "0123456789"))
	is(kindLetters, isLetters(value))
	return set | wordKinds(value)
}

// wordKinds are those that the dictionary tells.
func wordKinds(value string) kindSet {
	list, d := words(value), known()
	var set kindSet
	if len(list) == 0 || len(list) > 8 {
		return 0
	}
	text := joined(list)
	if d.yesno[text] {
		set |= 1 << kindYesNo
	}
	if d.country[text] {
		set |= 1 << kindCountry
	}
	if d.state[text] {
		set |= 1 << kindState
	}
	if isStreet(list) {
		set |= 1 << kindStreet
	}
	if !isLetters(value) {
		return set
	}
	for i, w := range list {
		switch {
		case !d.given[w]:
		case len(list) == 1:
			set |= 1 << kindGiven
		case i == 0 || len(list) <= 4 && i == len(list)-1:
			set |= 1 << kindPerson
		}
	}
	return set
}

// isStreet reports whether the words have a number and a word of streets.
func isStreet(list []string) bool {
	if len(list) < 2 || !slices.ContainsFunc(list, isNumber) {
		return false
	}
	d := known()
	return slices.ContainsFunc(list, func(w string) bool {
		return d.street[w] || slices.ContainsFunc(d.streetEnds, func(end string) bool { return len(w) > len(end)+2 && strings.HasSuffix(w, end) })
	})
}

// withoutMark takes off the letter that lead ads put before numbers.
func withoutMark(cell string) (string, bool) {
	before, after, found := strings.Cut(cell, ":")
	if !found || len(before) == 0 || len(before) > 2 || after == "" {
		return cell, false
	}
	for _, c := range []byte(before) {
		if c < 'a' || c > 'z' {
			return cell, false
		}
	}
	return after, after[0] == '+' || after[0] >= '0' && after[0] <= '9'
}

func isLetters(s string) bool {
	letter := false
	for _, r := range s {
		if unicode.IsLetter(r) {
			letter = true
		} else if !unicode.Is(unicode.M, r) && !strings.ContainsRune(" .,'’`-–&/()", r) {
			return false
		}
	}
	return letter && utf8.ValidString(s)
}

func isObject(cell string) bool {
	return len(cell) >= 2 && (cell[0] == '{' && cell[len(cell)-1] == '}' || cell[0] == '[' && cell[len(cell)-1] == ']')
}
