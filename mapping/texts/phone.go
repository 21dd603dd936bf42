package texts

import (
	"strconv"
	"strings"
	"unicode"

	"github.com/nyaruka/phonenumbers"
	"golang.org/x/text/language"

	"leadferry/internal/lazyregexp"
)

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

// unknownRegion is a country of whose numbers only those with + are known.
const unknownRegion = "ZZ"

// E164In is [E164] with the country that another column holds, by its code of two or three
// letters (ISO 3166-1), in any case. Where it holds nothing, only numbers with + fit.
func E164In(country, s string) (string, bool) {
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
var extension = lazyregexp.New(`(?i)[\s,;]*(?:x|ext\.?|extension|#|;ext=)[\s.:]*[0-9]{1,7}$`)

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
