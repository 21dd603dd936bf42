package propose

import (
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"leadferry/internal/rowkey"
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
	is(kindUUID, rowkey.IsUUID(strings.TrimSuffix(strings.TrimPrefix(value, "{"), "}")))
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

// looksLikeEmail is more lenient than format: email, which has the last word on
// whether the mapping may ask for it.
func looksLikeEmail(s string) bool {
	local, domain, found := strings.Cut(s, "@")
	dot := strings.LastIndexByte(domain, '.')
	return found && local != "" && dot > 0 && dot < len(domain)-1 &&
		!strings.ContainsFunc(s, unicode.IsSpace) && !strings.Contains(domain, "@")
}

// looksLikePhone takes 6 to 15 digits with the marks that people put between.
func looksLikePhone(s string) bool {
	s = strings.ToLower(strings.TrimPrefix(strings.TrimPrefix(s, "tel:"), "'"))
	s, _, _ = strings.Cut(s, "x") // an extension: x12, ext. 12
	s = strings.TrimSuffix(strings.TrimSpace(s), "e")
	digits := 0
	for i, r := range s {
		switch {
		case r >= '0' && r <= '9':
			digits++
		case r == '+' && (i == 0 || s[0] == '('):
		case strings.ContainsRune(" ()-./‑–\u00a0", r):
		default:
			return false
		}
	}
	return digits >= 6 && digits <= 15
}

// looksLikePostal takes what postal codes of the world have in common: at most
// ten characters in two groups, two digits or more.
func looksLikePostal(s string) bool {
	if len(s) < 3 || len(s) > 10 {
		return false
	}
	digits, gaps := 0, 0
	for i, r := range s {
		switch {
		case r >= '0' && r <= '9':
			digits++
		case r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z':
		case (r == ' ' || r == '-') && i > 0 && i < len(s)-1:
			gaps++
		default:
			return false
		}
	}
	return digits >= 2 && gaps <= 1
}

func looksLikeURL(s string) bool {
	s = strings.ToLower(s)
	return strings.HasPrefix(s, "http://") || strings.HasPrefix(s, "https://") || strings.HasPrefix(s, "www.")
}

// dates are ways to write one that can be read in one way only; orders are those
// in which day and month change places from country to country.
var (
	dates = []string{
		"2006-01-02", "2006/01/02", "2006.01.02", "20060102", "2 Jan 2006", "2 January 2006", "Jan 2, 2006",
		"January 2, 2006", "2-Jan-2006", "02-Jan-06", "2 Jan, 2006", "Mon, 2 Jan 2006", "Mon Jan 2 2006", "2.1.2006", "2.1.06",
	}
	orders = []string{"1/2/2006", "2/1/2006", "1/2/06", "2/1/06", "1-2-2006", "2-1-2006"}
)

// looksLikeDate reports whether s begins with a date that a time may follow, and
// whether its day and month could be taken for each other.
func looksLikeDate(s string) (date, unsure bool) {
	if len(s) < 6 || len(s) > 40 || !strings.ContainsAny(s[:1], "0123456789JFMASONDTW") {
		return false, false
	}
	day := s
	if i := strings.IndexByte(s, ':'); i > 0 { // a time: cut at the blank or T before it
		cut := strings.LastIndexAny(s[:i], " T")
		if cut < 0 {
			return false, false
		}
		day = strings.TrimRight(s[:cut], " ,")
	}
	for _, layout := range dates {
		if len(day) > len(layout)+8 {
			continue
		}
		if _, err := time.Parse(layout, day); err == nil {
			return layout != "20060102" || strings.HasPrefix(day, "19") || strings.HasPrefix(day, "20"), false
		}
	}
	for _, layout := range orders {
		if _, err := time.Parse(layout, day); err == nil {
			return true, true
		}
	}
	return false, false
}

// isQuantity takes a number with a sign, a fraction or groups of digits.
func isQuantity(s string) bool {
	s = strings.TrimLeft(s, "+-")
	digit := false
	for _, c := range []byte(s) {
		if c >= '0' && c <= '9' {
			digit = true
		} else if c != '.' && c != ',' {
			return false
		}
	}
	return digit && s[0] != ',' && s[len(s)-1] != ','
}

// isDamaged takes a number in the form in which spreadsheets save long ones.
func isDamaged(s string) bool {
	number, exponent, found := strings.Cut(strings.ToUpper(s), "E+")
	return found && number != "" && isQuantity(number) && len(exponent) <= 3 && exponent != "" && isNumber(exponent)
}
