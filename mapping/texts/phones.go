package texts

import (
	_ "embed"
	"encoding/csv"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"

	"golang.org/x/text/language"

	"leadferry/internal/spelling"
)

// phonesText is the data of Google's libphonenumber (Apache License 2.0) as a table: a row for each region's numbering
// plan, the main region of a country code first. The library itself is 2.5 MB and reads its data whenever a program
// starts. The tests compare this table and its results with the library.
//
//go:embed phones.csv
var phonesText string

// plan is a numbering plan. Its expressions are compiled on first use.
type plan struct {
	region, code, transform string
	idd, prefix             func() *regexp.Regexp // what people dial to call abroad, and within the country
	leading                 func() *regexp.Regexp // how its numbers begin, if known
	general, valid          func() *regexp.Regexp
	hasLeading              bool
	lengths, local          []int // of numbers, and of numbers valid only within a town
}

const noRegion = "001" // the region of a plan that belongs to no country

// phoneBook holds all plans by region, and the plans of each country code.
type phoneBook struct {
	regions map[string]*plan
	codes   map[string][]*plan
}

var phones = sync.OnceValue(func() phoneBook {
	b := phoneBook{map[string]*plan{}, map[string][]*plan{}}
	rows, err := csv.NewReader(strings.NewReader(phonesText)).ReadAll()
	if err != nil {
		panic(err) // it is part of the program
	}
	form := func(pattern string) func() *regexp.Regexp { return spelling.Form("^(?:" + pattern + ")") }
	for _, r := range rows[1:] {
		p := &plan{
			region: r[0], code: r[1], transform: r[4], idd: form(r[2]), prefix: form(r[3]), leading: form(r[5]),
			general: form("(?:" + r[6] + ")$"), valid: form("(?:" + r[7] + ")$"), hasLeading: r[5] != "",
			lengths: numbers(r[8]), local: numbers(r[9]),
		}
		if b.codes[p.code] = append(b.codes[p.code], p); p.region != noRegion {
			b.regions[p.region] = p
		}
	}
	return b
})

func numbers(s string) (list []int) {
	for _, word := range strings.Fields(s) {
		n, _ := strconv.Atoi(word)
		list = append(list, n)
	}
	return list
}

// international returns the number in the form of E.164 and its region, or "" if the plans do not know it. Without a
// plan for the country, they know only numbers that begin with +.
func (b phoneBook) international(s, country string) (number, region string) {
	p := b.regions[country]
	digits, abroad := strings.CutPrefix(s, "+")
	code, national := "", digits
	if abroad {
		code, national = b.splitCode(digits)
	}
	known := true
	if code == "" && p != nil {
		code, national, known = b.splitDialled(digits, p)
	}
	switch {
	case !known:
		return "", ""
	case code != "":
		p = b.codes[code][0]
	case p == nil || abroad:
		return "", ""
	default:
		code = p.code
	}
	if short := p.withoutPrefix(national); slices.Contains(p.lengths, len(short)) ||
		len(short) > p.lengths[len(p.lengths)-1] {
		national = short
	}
	for _, p := range b.codes[code] {
		isValid := p.general().MatchString(national) && p.valid().MatchString(national)
		leads := p.leading().MatchString(national)
		switch {
		case isValid && (leads || len(b.codes[code]) == 1):
			return "+" + code + national, p.region
		case p.hasLeading && leads:
			return "", ""
		}
	}
	return "", ""
}

// splitCode splits a number without its + after the country code.
func (b phoneBook) splitCode(digits string) (code, national string) {
	for n := 1; n <= 3 && n < len(digits) && len(digits) > 2; n++ {
		if b.codes[digits[:n]] != nil {
			return digits[:n], digits[n:]
		}
	}
	return "", digits
}

// splitDialled splits the country code, if there is one, from a number as people in a country dial it. The code follows
// the prefix for calls abroad, or begins a number that is no national number. known is false if the code of a call
// abroad does not exist, or if the number is valid both with and without its code: spreadsheets drop the +.
func (b phoneBook) splitDialled(digits string, p *plan) (code, national string, known bool) {
	if at := p.idd().FindStringIndex(digits); at != nil && !strings.HasPrefix(digits[at[1]:], "0") {
		code, national = b.splitCode(digits[at[1]:])
		return code, national, code != ""
	}
	if rest, has := strings.CutPrefix(digits, p.code); has {
		rest = p.withoutPrefix(rest)
		longest := p.lengths[len(p.lengths)-1]
		if !p.general().MatchString(digits) && p.general().MatchString(rest) ||
			len(digits) > longest && !slices.Contains(p.local, len(digits)) {
			return p.code, rest, true
		}
		if p.valid().MatchString(digits) && p.valid().MatchString(rest) {
			return "", "", false
		}
	}
	return "", digits, true
}

// withoutPrefix removes the prefix for calls within the country, unless that would make a valid number invalid.
func (p *plan) withoutPrefix(s string) string {
	at := p.prefix().FindStringSubmatchIndex(s)
	if at == nil || s == "" {
		return s
	}
	short := s[at[1]:]
	if last := len(at) - 2; p.transform != "" && at[last] >= 0 {
		short = p.prefix().ReplaceAllString(s, p.transform)
	}
	if p.general().MatchString(s) && !p.general().MatchString(short) {
		return s
	}
	return short
}

const maxPhone = 128 // bytes; a longer text is no phone number

// E164 converts a number to +, country code and number (ITU-T E.164). Numbers of any country fit if they begin with +
// or with the country's prefix for calls abroad; others must be of this country. Only numbers that the numbering plans
// know fit, without letters or extension: without its extension a number would call somebody else.
func E164(country string) (Conversion, *Fault) {
	if phones().regions[country] == nil {
		return nil, NewFault("step e164 needs a country, and "+Quote(country)+" is none",
			`write the two letters of the country, for example "e164:US"`)
	}
	return func(s string) (string, bool) {
		number, _ := phones().international(dial(s), country)
		return number, number != ""
	}, nil
}

// E164In is [E164] for the country in another column (ISO 3166-1, any case). If it is empty, only numbers with + fit.
func E164In(country, s string) (string, bool) {
	region := regionOf(country)
	if region == "" && country != "" {
		return "", false
	}
	number, _ := phones().international(dial(s), region)
	return number, number != ""
}

// regionOf returns the country of a code of two or three letters, or "".
func regionOf(code string) string {
	region, err := language.ParseRegion(strings.TrimSpace(code))
	name := region.Canonicalize().String()
	if err != nil || strings.ContainsAny(code, "0123456789") || phones().regions[name] == nil {
		return "" // a numeric code, such as 276 for Germany, is refused
	}
	return name
}

// Region returns the country of a number that begins with +, or "".
func Region(s string) string {
	_, region := phones().international(dial(s), "")
	return region
}

// extension matches an extension at the end of a phone number.
var extension = spelling.Form(`(?i)[\s,;]*(?:x|ext\.?|extension|#|;ext=)[\s.:]*[0-9]{1,7}$`)

// IsPhone reports whether s can be dialled. A number with + must be one that the numbering plans know. Other numbers
// have no known country: they need 5 to 15 digits, without a leading 00, the prefix of many countries for calls abroad.
func IsPhone(s string) bool {
	if len(s) > maxPhone {
		return false
	}
	number := dial(extension().ReplaceAllLiteralString(s, ""))
	if strings.HasPrefix(number, "+") {
		full, _ := phones().international(number, "")
		return full != ""
	}
	number = strings.TrimPrefix(number, "00")
	return len(number) >= 5 && len(number) <= 15
}

// dial returns a phone number as dialled: ASCII digits, after a + if it has one. It returns "" if the text holds
// anything but digits and signs that people write between them: a guess would be somebody else's number. A text that
// ends in .0 comes from a column of decimals and gives "".
func dial(s string) string {
	if len(s) > maxPhone || strings.HasSuffix(s, ".0") {
		return ""
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
			return ""
		}
	}
	return b.String()
}

// isBetweenDigits reports whether r may be between digits, for example a format character of an address book.
func isBetweenDigits(r rune) bool {
	return unicode.IsSpace(r) || unicode.In(r, unicode.Pd, unicode.Cf) || strings.ContainsRune("()[]./（）［］．／−ー", r)
}
