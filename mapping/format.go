package mapping

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/nyaruka/phonenumbers"
)

// formatWord is a word that format knows; called is how people call what fits.
type formatWord struct {
	name, called string
	check        func(string) bool
}

func formatWords() []formatWord {
	return []formatWord{
		{"email", "an e-mail address", isEmail},
		{"phone", "a phone number", isPhone},
		{"uuid", "a UUID", isUUID},
		{"url", "a web address", isURL},
		{"date", "a date such as 2006-01-02", isDate},
		{"integer", "a whole number", isInteger},
		{"number", "a number", isNumber},
	}
}

// parseFormat reads the word of format; a fault is a sentence, check nil then.
func parseFormat(word string) (check func(string) bool, name, fault, hint string) {
	if strings.HasPrefix(word, "/") {
		return parsePattern(word)
	}
	words := formatWords()
	if i := slices.IndexFunc(words, func(w formatWord) bool { return w.name == word }); i >= 0 {
		return words[i].check, words[i].called, "", ""
	}
	names := make([]string, len(words))
	for i, w := range words {
		names[i] = w.name
	}
	if hint = didYouMean(word, names); hint == "" {
		hint = "known here: " + strings.Join(names, ", ") + ", /regular expression/"
	}
	return nil, "", "unknown format " + quote(word), hint
}

// extension is how people write the extension that ends a phone number.
var extension = regexp.MustCompile(`(?i)[\s,;]*(?:x|ext\.?|extension|#|;ext=)[\s.:]*[0-9]{1,7}$`)

// isPhone reports whether s can be dialled. A number with + must be one that the
// numbering plans know. Of others nobody knows the country: they need 5 to 15
// digits, not counting 00, which many countries dial for abroad.
func isPhone(s string) bool {
	if len(s) > maxPhone {
		return false
	}
	if at := extension.FindStringIndex(s); at != nil {
		s = s[:at[0]]
	}
	number, ok := dial(s)
	if !ok {
		return false
	}
	if number[0] == '+' {
		n, err := phonenumbers.Parse(number, "")
		return err == nil && phonenumbers.IsValidNumber(n)
	}
	number = strings.TrimPrefix(number, "00")
	return len(number) >= 5 && len(number) <= 15
}

// isUUID reports whether s has the text form of RFC 9562, of any version.
func isUUID(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i := range len(s) {
		c := s[i]
		switch i {
		case 8, 13, 18, 23:
			if c != '-' {
				return false
			}
		default:
			if !isDigit(c) && (c|0x20 < 'a' || c|0x20 > 'f') {
				return false
			}
		}
	}
	return true
}

// isDate reports whether s is a day of the calendar, or a time of one, in the
// extended form of ISO 8601: what the step date gives, the seconds or the whole
// time left out if need be.
func isDate(s string) bool {
	if len(s) == len(time.DateOnly) {
		_, err := time.Parse(time.DateOnly, s)
		return err == nil
	}
	if len(s) < len("2006-01-02T15:04") || s[10] != 'T' || s[13] != ':' {
		return false // package time would take an hour of one digit
	}
	for _, form := range [...]string{"2006-01-02T15:04:05Z07:00", "2006-01-02T15:04:05", "2006-01-02T15:04Z07:00", "2006-01-02T15:04"} {
		if _, err := time.ParseInLocation(form, s, time.UTC); err == nil {
			return true
		}
	}
	return false
}

// isInteger reports whether s is decimal digits, after a sign or none. Zeros at
// the beginning do no harm in a text.
func isInteger(s string) bool {
	rest := afterDigits(afterSign(s))
	return rest == "" && s != "" && isDigit(s[len(s)-1])
}

// isNumber reports whether s is a decimal number such as -12.5 or 1e3: a point and
// no comma, digits before and after it.
func isNumber(s string) bool {
	s = afterSign(s)
	rest := afterDigits(s)
	if rest == s {
		return false
	}
	if after, point := strings.CutPrefix(rest, "."); point {
		if rest = afterDigits(after); rest == after {
			return false
		}
	}
	return rest == "" || (rest[0] == 'e' || rest[0] == 'E') && isInteger(rest[1:])
}

func afterSign(s string) string {
	if s != "" && (s[0] == '+' || s[0] == '-') {
		return s[1:]
	}
	return s
}

func afterDigits(s string) string { return strings.TrimLeft(s, "0123456789") }

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
