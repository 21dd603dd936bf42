// Package texts knows what texts of a kind look like (dates, phone numbers, e-mail and web addresses), and writes dates
// and phone numbers in one form. It does the work of format, date and e164, and knows nothing about mappings.
package texts

import (
	"cmp"
	"fmt"
	"net/netip"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	"leadferry/internal/spelling"
)

// Conversion converts a text that is trimmed and not empty. It returns false for a text that does not fit.
type Conversion = func(string) (string, bool)

// IsInteger reports whether s is decimal digits, with or without a sign. Leading zeros are allowed.
func IsInteger(s string) bool { return integerForm().MatchString(s) }

// IsNumber reports whether s is a decimal number such as -12.5 or 1e3, with digits before and after a point, no comma.
func IsNumber(s string) bool { return numberForm().MatchString(s) }

var (
	integerForm = spelling.Form(`^[+-]?[0-9]+$`)
	numberForm  = spelling.Form(`^[+-]?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?$`)
)

// IsEmail reports whether s is one address as people have them, local@domain of at most 254 bytes: no display name, no
// quotes, no comments, and a domain with a dot. Letters of any script are allowed.
func IsEmail(s string) bool {
	local, domain, _ := strings.Cut(s, "@")
	if len(s) > 254 || len(local) > 64 || !isDotted(local, "!#$%&'*+-/=?^_`{|}~") {
		return false
	}
	last := strings.LastIndexByte(domain, '.')
	return last > 0 && isDomain(domain) && strings.ContainsFunc(domain[last:], unicode.IsLetter)
}

// isDotted reports whether s is words with dots between. A word has letters and digits of any script, and others.
func isDotted(s, others string) bool {
	before := '.'
	for _, r := range s {
		switch {
		case 'a' <= r && r <= 'z': // most are
		case r == '.' && before == '.', r != '.' && !isLetterOrDigit(r) && !strings.ContainsRune(others, r):
			return false
		}
		before = r
	}
	return before != '.'
}

// isDomain reports whether s is labels separated by dots, of at most 63 bytes each. No hyphen begins or ends a label.
func isDomain(s string) bool {
	if !isDotted(s, "-") {
		return false
	}
	for label := range strings.SplitSeq(s, ".") {
		if len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
	}
	return true
}

// isLetterOrDigit takes the letters of all scripts, their accents and digits.
func isLetterOrDigit(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsMark(r)
}

// IsURL reports whether s is a whole web address, http or https, of a name with a dot, localhost or an IP address.
func IsURL(s string) bool {
	const maxURL = 2048 // bytes
	if len(s) > maxURL || strings.ContainsFunc(s,
		func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }) {
		return false
	}
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Opaque != "" {
		return false
	}
	host := strings.TrimSuffix(u.Hostname(), ".")
	if _, err := netip.ParseAddr(host); err == nil || strings.EqualFold(host, "localhost") {
		return true
	}
	return strings.Contains(host, ".") && isDomain(strings.ReplaceAll(host, "_", "x")) // names of machines may hold _
}

// ASCIIDigit returns the ASCII digit of the same value, or -1 if r is no decimal digit. Unicode keeps the ten digits of
// a script together and in order, so the digits before r tell its value.
func ASCIIDigit(r rune) rune {
	switch {
	case '0' <= r && r <= '9':
		return r
	case !unicode.IsDigit(r):
		return -1
	}
	n := rune(0)
	for unicode.IsDigit(r - n - 1) {
		n++
	}
	return '0' + n%10
}

// Fault says what is wrong with a word or an expression of a mapping file, and what to do.
type Fault struct {
	Text, Hint string
}

// NewFault makes a Fault.
func NewFault(text, hint string) *Fault { return &Fault{text, hint} }

// Unknown returns the fault for a word that is not among the known ones. what names it, for example "table x".
func Unknown(what, word string, known []string) *Fault {
	return NewFault("unknown "+what, cmp.Or(spelling.Hint(word, known),
		"known here: "+cmp.Or(strings.Join(known, ", "), "none")))
}

// Quote quotes a word of the file, cut after 64 characters.
func Quote(word string) string { return fmt.Sprintf("%q", Shortened(word, 64)) }

// Shortened returns s, cut after n characters.
func Shortened(s string, n int) string {
	if utf8.RuneCountInString(s) > n {
		return string([]rune(s)[:n]) + "…"
	}
	return s
}
