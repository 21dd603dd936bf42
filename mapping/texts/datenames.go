package texts

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/go-playground/locales"
	"github.com/go-playground/locales/ar"
	"github.com/go-playground/locales/cs"
	"github.com/go-playground/locales/da"
	"github.com/go-playground/locales/de"
	"github.com/go-playground/locales/es"
	"github.com/go-playground/locales/fr"
	"github.com/go-playground/locales/it"
	"github.com/go-playground/locales/ja"
	"github.com/go-playground/locales/ko"
	"github.com/go-playground/locales/nb"
	"github.com/go-playground/locales/nl"
	"github.com/go-playground/locales/pl"
	"github.com/go-playground/locales/pt"
	"github.com/go-playground/locales/ru"
	"github.com/go-playground/locales/sv"
	"github.com/go-playground/locales/tr"
	"github.com/go-playground/locales/zh"

	"leadferry/internal/spelling"
)

// languages have names of months and days (Unicode CLDR). They are those whose headers
// and statuses init knows; of English nothing needs to be said.
var languages = map[string]func() locales.Translator{
	"ar": ar.New, "cs": cs.New, "da": da.New, "de": de.New, "es": es.New, "fr": fr.New, "it": it.New, "ja": ja.New, "ko": ko.New,
	"nb": nb.New, "nl": nl.New, "pl": pl.New, "pt": pt.New, "ru": ru.New, "sv": sv.New, "tr": tr.New, "zh": zh.New,
}

// translator makes English of the names in dates of a layout, whose form in package
// time is given. A point behind a name may belong to it or to the layout: both ways
// are given.
func translator(layout, form, language string) (func(string) []string, *Fault) {
	english := regexp.MustCompile(`January|Jan|Monday|Mon`).FindAllString(form, -1)
	known := languages[language]
	switch {
	case known == nil:
		codes := slices.Sorted(maps.Keys(languages))
		hint := spelling.Hint(language, codes)
		if hint == "" || len(language) <= 2 {
			hint = "known here: " + strings.Join(codes, ", ")
		}
		return nil, &Fault{Text: "no names of months are known in the language " + shown(language), Hint: hint}
	case len(english) == 0:
		return nil, &Fault{Text: strconv.Quote(layout) + " has no name of a month, so that its language does not matter", Hint: "take @" + language + " out, or write MMMM or MMM for the name"}
	}
	var names []*dateNames
	l := known()
	for _, name := range english {
		if strings.HasPrefix(name, "Jan") {
			names = append(names, newDateNames(name, l.MonthsWide(), l.MonthsAbbreviated()))
		} else {
			names = append(names, newDateNames(name, l.WeekdaysWide(), l.WeekdaysAbbreviated()))
		}
	}
	return func(s string) []string { return []string{translate(s, names, true), translate(s, names, false)} }, nil
}

// dateNames are the names of months, or of days of the week, with what package time
// calls them.
type dateNames struct {
	english map[string]string // by names in small letters
	sorted  []string          // the longest first
}

// newDateNames takes whole and short names. The first three letters of a name do, where no
// other one begins so.
func newDateNames(form string, whole, short []string) *dateNames {
	d := &dateNames{english: map[string]string{}}
	begins := map[string]int{}
	for _, name := range whole {
		begins[firstLetters(name)]++
	}
	for i := range whole {
		at := time.Date(2006, time.Month(i+1), 1, 0, 0, 0, 0, time.UTC)
		if strings.HasPrefix(form, "Mon") {
			at = time.Date(2006, time.January, 1+i, 0, 0, 0, 0, time.UTC) // a Sunday
		}
		for _, name := range []string{whole[i], short[i], firstLetters(whole[i])} {
			name = strings.TrimRight(strings.ToLower(name), ".")
			if utf8.RuneCountInString(name) == 3 && begins[name] > 1 && name != strings.TrimRight(strings.ToLower(short[i]), ".") {
				continue
			}
			if _, taken := d.english[name]; !taken {
				d.english[name] = at.Format(form)
			}
		}
	}
	d.sorted = slices.SortedFunc(maps.Keys(d.english), func(a, b string) int { return len(b) - len(a) })
	return d
}

func firstLetters(name string) string {
	letters := []rune(strings.ToLower(name))
	return string(letters[:min(3, len(letters))])
}

// translate puts the English names in place of others, in the order of the layout; with
// the points behind them, or without.
func translate(s string, names []*dateNames, points bool) string {
	var b strings.Builder
	rest := strings.Map(westernDigit, s)
	small := strings.ToLower(rest)
	if len(small) != len(rest) { // as of a Turkish İ: places in one are not those in the other
		rest = small
	}
	for _, d := range names {
		begin, end, english := d.find(small)
		if end == 0 {
			break
		}
		b.WriteString(rest[:begin] + english)
		if points && strings.HasPrefix(small[end:], ".") {
			end++
		}
		rest, small = rest[end:], small[end:]
	}
	return b.String() + rest
}

// westernDigit is a digit of any script in ASCII.
func westernDigit(r rune) rune {
	if d := ASCIIDigit(r); d >= 0 {
		return d
	}
	return r
}

// find looks for the first name in a text in small letters: one that is a word of its
// own, but for languages that write words together. end is 0 where there is none.
func (d *dateNames) find(s string) (begin, end int, english string) {
	for i := range s {
		if before, _ := utf8.DecodeLastRuneInString(s[:i]); i > 0 && isPartOfWord(before) {
			continue
		}
		for _, name := range d.sorted {
			if after, _ := utf8.DecodeRuneInString(s[min(len(s), i+len(name)):]); strings.HasPrefix(s[i:], name) && !isPartOfWord(after) {
				return i, i + len(name), d.english[name]
			}
		}
	}
	return 0, 0, ""
}

// isPartOfWord reports whether r is a letter of a script that parts words by blanks.
func isPartOfWord(r rune) bool {
	return (unicode.IsLetter(r) || unicode.IsMark(r)) && !unicode.In(r, unicode.Han, unicode.Hangul)
}
