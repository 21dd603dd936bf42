package mapping

import (
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/nyaruka/phonenumbers"
	"github.com/rivo/uniseg"
	"golang.org/x/text/cases"
	"golang.org/x/text/language"
	"golang.org/x/text/language/display"
)

// step is one step of apply, given a text trimmed and not empty; what it gives is
// trimmed too. It is false for a text that does not fit the step.
type step func(string) (string, bool)

// stepWord is a word that apply knows. One with a form takes an argument after a
// colon.
type stepWord struct {
	name, form, example string
	change              func(string) string
	read                func(argument string) (f step, fault, hint string)
}

func stepWords() []stepWord {
	return []stepWord{
		{name: "trim", change: strings.TrimSpace},
		{name: "lower", change: strings.ToLower},
		{name: "upper", change: strings.ToUpper},
		{name: "title", change: title},
		{name: "squeeze", change: squeeze},
		{name: "digits", change: digits},
		{name: "e164", form: "e164:CC", example: "e164:US", read: e164},
		{name: "date", form: "date:LAYOUT", example: "date:DD.MM.YYYY", read: date},
		{name: "truncate", form: "truncate:N", example: "truncate:80", read: truncate},
		{name: "split", form: "split:SEP:N", example: "split:,:1", read: splitAt},
	}
}

// parseStep reads a word of apply; a fault is a sentence, f nil then. Empty texts
// stay empty and fit every step.
func parseStep(word string) (f step, fault, hint string) {
	words := stepWords()
	name, argument, given := strings.Cut(word, ":")
	i := slices.IndexFunc(words, func(w stepWord) bool { return w.name == name })
	if i < 0 {
		return nil, "unknown step " + quote(word), stepHint(words, name, word[len(name):])
	}
	var fit step
	switch w := words[i]; {
	case w.form == "" && given:
		return nil, "step " + name + " takes nothing after its name", "write " + name
	case w.form == "":
		fit = func(s string) (string, bool) { return w.change(s), true }
	case argument == "":
		return nil, "step " + name + " is not complete: it is written " + w.form, "for example " + quote(w.example) + ", with the quotes"
	default:
		if fit, fault, hint = w.read(argument); fault != "" {
			return nil, fault, hint
		}
	}
	return func(s string) (string, bool) {
		if s == "" {
			return "", true
		}
		return fit(s)
	}, "", ""
}

// stepHint says which step may have been meant by name, which goes on with rest.
func stepHint(words []stepWord, name, rest string) string {
	names, forms := make([]string, len(words)), make([]string, len(words))
	for i, w := range words {
		names[i], forms[i] = w.name, w.form
		if w.form == "" {
			forms[i] = w.name
		}
	}
	near := Nearest(name, names)
	if near == "" {
		return "known here: " + strings.Join(forms, ", ")
	}
	w := words[slices.Index(names, near)]
	switch {
	case w.form == "":
		rest = ""
	case len(rest) < 2:
		return "did you mean " + quote(w.example) + "?"
	}
	return "did you mean " + quote(near+rest) + "?"
}

// title begins each word with a capital and goes on in small letters. A Caser has
// state, so every call takes its own.
func title(s string) string { return cases.Title(language.Und).String(s) }

// squeeze makes one space of each run of white space, and none at the ends.
func squeeze(s string) string {
	if isSqueezed(s) {
		return s
	}
	return strings.Join(strings.Fields(s), " ")
}

func isSqueezed(s string) bool {
	space := true // a space at the beginning is one too many
	for _, r := range s {
		if unicode.IsSpace(r) && (space || r != ' ') {
			return false
		}
		space = r == ' '
	}
	return !space || s == ""
}

// digits keeps the digits, those of other scripts as the ASCII digits that they
// stand for: a number must not lose its digits because of a keyboard.
func digits(s string) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return r < '0' || r > '9' }) {
		return s
	}
	return strings.Map(asciiDigit, s)
}

// asciiDigit is the digit of the same value, or -1 if r is no decimal digit.
// Unicode keeps the ten digits of a script together and in order, so what stands
// before r tells its value.
func asciiDigit(r rune) rune {
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

// truncate keeps the first characters of a text, as people count them: a letter
// with its accents is one, and so is an emoji.
func truncate(argument string) (f step, fault, hint string) {
	n, err := strconv.Atoi(argument)
	if err != nil || n < 1 {
		return nil, "step truncate needs a number of characters, at least 1", `for example "truncate:80"`
	}
	return func(s string) (string, bool) { return firstCharacters(s, n), true }, "", ""
}

// firstCharacters is the text of the first n characters of s, trimmed: a cut may
// leave a space at the end.
func firstCharacters(s string, n int) string {
	if len(s) <= n {
		return s
	}
	rest, state := s, -1
	for range n {
		if rest == "" {
			return s
		}
		_, rest, _, state = uniseg.FirstGraphemeClusterInString(rest, state)
	}
	return strings.TrimSpace(s[:len(s)-len(rest)])
}

// splitAt takes one part of a text: the argument is a separator, a colon and the
// part's number, so the separator itself may hold colons.
func splitAt(argument string) (f step, fault, hint string) {
	const example = `for example "split:,:1" for what stands before the first comma, "split:,:-1" for what stands after the last`
	i := strings.LastIndexByte(argument, ':')
	if i < 1 {
		return nil, "step split needs a separator and a number", example
	}
	n, err := strconv.Atoi(argument[i+1:])
	if err != nil || n == 0 {
		return nil, "step split needs the number of a part: 1 is the first, -1 the last", example
	}
	separator := argument[:i]
	return func(s string) (string, bool) { return strings.TrimSpace(nthPart(s, separator, n)), true }, "", ""
}

// nthPart is the n-th part of s from 1, or from the end if n is negative; "" when
// there are fewer.
func nthPart(s, separator string, n int) string {
	if n < 0 {
		n += strings.Count(s, separator) + 2
	}
	if n < 1 {
		return ""
	}
	for more := true; more; n-- {
		var part string
		if part, s, more = strings.Cut(s, separator); n == 1 {
			return part
		}
	}
	return ""
}

// maxPhone is the longest text, in bytes, that is looked at as a phone number.
const maxPhone = 128

// e164 makes a number of a country, or of any country when it begins with + or
// with the prefix that the country dials for abroad, +, country code and number
// (ITU-T E.164). Only numbers that the numbering plans know are taken, and none
// with letters or an extension: the form has no room for an extension, and to drop
// it would call somebody else.
func e164(country string) (f step, fault, hint string) {
	if !phonenumbers.GetSupportedRegions()[country] {
		return nil, "step e164 needs a country, and " + quote(country) + " is none", countryHint(country)
	}
	return func(s string) (string, bool) {
		dialled, ok := dial(s)
		if !ok {
			return "", false
		}
		number, err := phonenumbers.Parse(dialled, country)
		if err != nil || !phonenumbers.IsValidNumber(number) {
			return "", false
		}
		return phonenumbers.Format(number, phonenumbers.E164), true
	}, "", ""
}

// dial is a phone number as it is dialled: ASCII digits, after a + if it has one.
// It is false for a text that holds anything but digits and what people write
// between them, since a guess would be somebody else's number; one that ends in .0
// has been through a column of decimals.
func dial(s string) (number string, ok bool) {
	if len(s) > maxPhone || strings.HasSuffix(s, ".0") {
		return "", false
	}
	if len(s) > 4 && strings.EqualFold(s[:4], "tel:") {
		s = s[4:]
	}
	var b strings.Builder
	for _, r := range s {
		switch d := asciiDigit(r); {
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

// countryHint says which country may have been meant: by its code in another
// form, its calling code or its English name.
func countryHint(s string) string {
	known := phonenumbers.GetSupportedRegions()
	var near string
	if code, err := strconv.Atoi(s); err == nil {
		near = phonenumbers.GetRegionCodeForCountryCode(code)
	} else if region, err := language.ParseRegion(strings.ToUpper(strings.TrimSpace(s))); err == nil {
		near = region.Canonicalize().String()
	} else {
		near = countryNamed(s)
	}
	if known[near] {
		return `did you mean "e164:` + near + `"?`
	}
	return `write the two letters of the country, for example "e164:US"`
}

// countryNamed is the code of the country with a name like this, or "".
func countryNamed(name string) string {
	codes := map[string]string{}
	var names []string
	for code := range phonenumbers.GetSupportedRegions() {
		if region, err := language.ParseRegion(code); err == nil {
			english := display.English.Regions().Name(region)
			codes[english] = code
			names = append(names, english)
		}
	}
	slices.Sort(names)
	return codes[Nearest(name, names)]
}
