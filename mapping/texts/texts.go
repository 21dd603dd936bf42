// Package texts knows what the texts of a known kind look like, such as dates, phone numbers, e-mail and web
// addresses, and makes one form of the many in which people write dates and phone numbers. It is what the words of
// format and the steps date and e164 of a mapping do, and knows nothing of mappings.
package texts

import (
	"cmp"
	"fmt"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/nyaruka/phonenumbers"
	"golang.org/x/text/language"

	"leadferry/internal/spelling"
)

// Conversion makes another text of one that is trimmed and not empty. It is false for a text that does not fit.
type Conversion = func(string) (string, bool)

// IsInteger reports whether s is decimal digits, after a sign or none. Zeros at the beginning do no harm in a text.
func IsInteger(s string) bool { return isDigits(afterSign(s)) }

// IsNumber reports whether s is a decimal number such as -12.5 or 1e3: a point and
// no comma, digits before and after it.
func IsNumber(s string) bool {
	mantissa, exponent := s, "0"
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		mantissa, exponent = s[:i], s[i+1:]
	}
	whole, fraction, point := strings.Cut(afterSign(mantissa), ".")
	return isDigits(whole) && (!point || isDigits(fraction)) && IsInteger(exponent)
}

func afterSign(s string) string {
	if s != "" && (s[0] == '+' || s[0] == '-') {
		return s[1:]
	}
	return s
}

func isDigits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// IsEmail reports whether s is one address such as people have, local@domain of at most 254 bytes: no display name,
// no quotes, no comments, and a domain with a dot. Letters of any script are allowed.
func IsEmail(s string) bool {
	local, domain, _ := strings.Cut(s, "@")
	if len(s) > 254 || len(local) > 64 || !isDotted(local, "!#$%&'*+-/=?^_`{|}~") {
		return false
	}
	last := strings.LastIndexByte(domain, '.')
	return last > 0 && isDomain(domain) && strings.ContainsFunc(domain[last:], unicode.IsLetter)
}

// isDotted reports whether s is words with dots between: letters and digits of any script, and the others.
func isDotted(s, others string) bool {
	before := '.'
	for _, r := range s {
		if r == '.' && before == '.' || r != '.' && !isLetterOrDigit(r) && !strings.ContainsRune(others, r) {
			return false
		}
		before = r
	}
	return before != '.'
}

// isDomain reports whether s is labels with dots between: none is longer than 63 bytes, and no
// hyphen begins or ends one.
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

// isLetterOrDigit asks for ASCII first: the tables of Unicode take ten times as long.
func isLetterOrDigit(r rune) bool {
	if r < utf8.RuneSelf {
		return 'a' <= r|0x20 && r|0x20 <= 'z' || '0' <= r && r <= '9'
	}
	return unicode.In(r, unicode.L, unicode.M, unicode.N)
}

// IsURL reports whether s is a whole web address, http or https: the host is a
// name with a dot, localhost or an IP address, and nothing in it is white space.
func IsURL(s string) bool {
	const maxURL = 2048 // bytes
	if len(s) > maxURL || strings.ContainsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }) {
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
	return strings.Contains(host, ".") && isDomain(strings.ReplaceAll(host, "_", "x")) // which names of machines have
}

// ASCIIDigit is the digit of the same value, or -1 if r is no decimal digit.
// Unicode keeps the ten digits of a script together and in order, so what stands
// before r tells its value.
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

// Fault is what is wrong with a word or an expression of a mapping file, and what to do.
type Fault struct {
	Text, Hint string
	From       int // where it stands in an expression, in characters from 0
}

// Unknown is the fault of a word that is none of those known; what is a phrase for it.
func Unknown(what, word string, known []string) *Fault {
	return &Fault{Text: "unknown " + what, Hint: cmp.Or(spelling.Hint(word, known), "known here: "+strings.Join(known, ", "))}
}

// MaxQuoted is how many characters of a word are shown.
const MaxQuoted = 64

// Quote shows a word of the file, cut when it is long.
func Quote(word string) string { return fmt.Sprintf("%q", Shortened(word, MaxQuoted)) }

// Shortened is s, cut when it has more than n characters.
func Shortened(s string, n int) string {
	if utf8.RuneCountInString(s) > n {
		return string([]rune(s)[:n]) + "…"
	}
	return s
}

// CurlyQuotes are those that word processors make of straight ones.
const CurlyQuotes = "“”„‟«»‘’‚"

// maxPhone is the longest text, in bytes, that is looked at as a phone number.
const maxPhone = 128

// E164 makes a number of a country, or of any country when it begins with + or with the prefix that the country dials
// for abroad, +, country code and number (ITU-T E.164). Only numbers that the numbering plans know are taken, and
// none with letters or an extension: the form has no room for an extension, and to drop it would call somebody else.
func E164(country string) (Conversion, *Fault) {
	if !phonenumbers.GetSupportedRegions()[country] {
		return nil, &Fault{Text: "step e164 needs a country, and " + Quote(country) + " is none", Hint: countryHint(country)}
	}
	return func(s string) (string, bool) { return international(s, country) }, nil
}

func international(s, country string) (string, bool) {
	dialled, ok := dial(s)
	if !ok {
		return "", false
	}
	number, err := phonenumbers.Parse(dialled, country)
	if err != nil || !phonenumbers.IsValidNumber(number) {
		return "", false
	}
	return phonenumbers.Format(number, phonenumbers.E164), true
}

// E164In is [E164] with the country that another column holds, by its code of two or three
// letters (ISO 3166-1), in any case. Where it holds nothing, only numbers with + fit.
func E164In(country, s string) (string, bool) {
	const unknownRegion = "ZZ" // a country of whose numbers only those with + are known
	switch len(country) {
	case 0:
		return international(s, unknownRegion)
	case 2, 3:
		country = strings.ToUpper(country)
		if phonenumbers.GetSupportedRegions()[country] {
			return international(s, country)
		}
		if region, err := language.ParseRegion(country); err == nil && phonenumbers.GetSupportedRegions()[region.Canonicalize().String()] {
			return international(s, region.Canonicalize().String())
		}
	}
	return "", false
}

// Region is the country of a number that begins with +, or "".
func Region(s string) string {
	number, ok := dial(s)
	if n, err := phonenumbers.Parse(number, ""); ok && err == nil && phonenumbers.IsValidNumber(n) {
		return phonenumbers.GetRegionCodeForNumber(n)
	}
	return ""
}

func countryHint(s string) string {
	near := ""
	if code, err := strconv.Atoi(s); err == nil {
		near = phonenumbers.GetRegionCodeForCountryCode(code)
	} else if region, err := language.ParseRegion(strings.ToUpper(strings.TrimSpace(s))); err == nil {
		near = region.Canonicalize().String()
	}
	if phonenumbers.GetSupportedRegions()[near] {
		return `did you mean "e164:` + near + `"?`
	}
	return `write the two letters of the country, for example "e164:US"`
}

// extension is how people write the extension that ends a phone number.
var extension = spelling.Form(`(?i)[\s,;]*(?:x|ext\.?|extension|#|;ext=)[\s.:]*[0-9]{1,7}$`)

// IsPhone reports whether s can be dialled. A number with + must be one that the numbering plans know. Of others
// nobody knows the country: they need 5 to 15 digits, not counting 00, which many countries dial for abroad.
func IsPhone(s string) bool {
	if len(s) > maxPhone {
		return false
	}
	number, ok := dial(extension().ReplaceAllLiteralString(s, ""))
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

// dial is a phone number as it is dialled: ASCII digits, after a + if it has one. It is false for a text that holds
// anything but digits and what people write between them, since a guess would be somebody else's number; one that
// ends in .0 has been through a column of decimals.
func dial(s string) (number string, ok bool) {
	if len(s) > maxPhone || strings.HasSuffix(s, ".0") {
		return "", false
	}
	if len(s) > 4 && strings.EqualFold(s[:4], "tel:") {
		s = s[4:]
	}
	var b strings.Builder
	for _, r := range s {
		switch d := ASCIIDigit(r); {
		case d >= 0:
			b.WriteRune(d)
		case (r == '+' || r == '＋') && b.Len() == 0:
			b.WriteByte('+')
		case !isBetweenDigits(r):
			return "", false
		}
	}
	number = b.String()
	return number, number != "" && number != "+"
}

// isBetweenDigits reports whether r may stand in a phone number without being
// dialled; of format characters, address books leave marks of direction.
func isBetweenDigits(r rune) bool {
	return unicode.IsSpace(r) || unicode.In(r, unicode.Pd, unicode.Cf) || strings.ContainsRune("()[]./（）［］．／−ー", r)
}
