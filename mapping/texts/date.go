package texts

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

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

// Date reads a text by the first of several layouts, parted by |, that it fits, and gives it as ISO 8601: 2006-01-02,
// or 2006-01-02T15:04:05 when the layout has a time of day, with fractions of a second if there are any, and the
// offset from UTC when the layout has one. A date that no calendar has does not fit. Names of months are English
// unless @de or the like is behind the layout; years of two digits are those from 1969 to 2068. Layouts that take
// one text for different days are refused. What fits none and is ISO 8601 already stays, as the cells of workbooks do
// that are dates.
func Date(layouts string) (Conversion, *Fault) {
	var forms []dateForm
	for layout := range strings.SplitSeq(layouts, "|") {
		form, problem := readForm(layout)
		if problem != nil {
			return nil, &Fault{Text: "step date: " + problem.Text, Hint: problem.Hint}
		}
		for _, other := range forms {
			if other.confuses(form) || form.confuses(other) {
				return nil, &Fault{
					Text: fmt.Sprintf("step date: a text can fit %s and %s, which take it for different days",
						strconv.Quote(other.layout), strconv.Quote(layout)),
					Hint: "keep the one that the file is written in; where two columns differ, give each its own",
				}
			}
		}
		form.layout = layout
		forms = append(forms, form)
	}
	return func(s string) (string, bool) {
		for i := range forms {
			if day, ok := forms[i].read(s); ok {
				return day, true
			}
		}
		return s, IsDate(s)
	}, nil
}

// dateForm is one way to write dates.
type dateForm struct {
	layout string
	read   Conversion
	write  func(time.Time) string
}

// probes are moments that tell layouts apart whose parts are in another order.
var probes = [...]time.Time{
	time.Date(2004, time.May, 6, 7, 8, 9, 0, time.UTC), time.Date(2011, time.October, 12, 13, 14, 15, 0, time.UTC),
	time.Date(1970, time.February, 3, 4, 0, 0, 0, time.UTC),
}

// confuses reports whether the other form reads what this one writes as another day.
func (f *dateForm) confuses(other dateForm) bool {
	for _, probe := range probes {
		read, fits := other.read(f.write(probe))
		if fits && !strings.HasPrefix(read, probe.Format(time.DateOnly)) {
			return true
		}
	}
	return false
}

// countedForms are the layouts that count from a day.
var countedForms = map[string]dateForm{
	"unix":    {read: fromUnix(time.Second), write: func(t time.Time) string { return fmt.Sprint(t.Unix()) }},
	"unix_ms": {read: fromUnix(time.Millisecond), write: func(t time.Time) string { return fmt.Sprint(t.UnixMilli()) }},
	"excel": {read: fromExcel, write: func(t time.Time) string {
		return fmt.Sprint(int(t.Sub(excelBegin) / (24 * time.Hour)))
	}},
}

func readForm(layout string) (dateForm, *Fault) {
	if form, known := countedForms[layout]; known {
		return form, nil
	}
	bare, language, named := strings.Cut(layout, "@")
	forms, out, problem := readLayout(bare)
	if problem != nil {
		return dateForm{}, problem
	}
	f := dateForm{write: func(t time.Time) string { return t.Format(forms[0]) }}
	f.read = func(s string) (string, bool) {
		for _, form := range forms {
			if t, err := time.ParseInLocation(form, s, time.UTC); err == nil {
				return t.Format(out), t.Year() > 0
			}
		}
		return "", false
	}
	if !named {
		return f, nil
	}
	english, problem := translator(bare, forms[0], language)
	if problem != nil {
		return dateForm{}, problem
	}
	inEnglish := f.read
	f.read = func(s string) (string, bool) {
		for _, text := range english(s) {
			if day, ok := inEnglish(text); ok {
				return day, true
			}
		}
		return "", false
	}
	return f, nil
}

// fromUnix reads what counts units since 1970 in UTC, as Unix does. A number that plainly counts other units does not
// fit.
func fromUnix(unit time.Duration) Conversion {
	per := int64(time.Second / unit)
	return func(s string) (string, bool) {
		n, err := strconv.ParseInt(strings.TrimSuffix(s, ".0"), 10, 64) // through a column of decimals
		if err != nil || n/per > 1<<38 || n/per < -1<<38 || isOtherUnit(unit, n) {
			return "", false
		}
		t := time.Unix(n/per, n%per*int64(unit)).UTC()
		return t.Format("2006-01-02T15:04:05.999999999Z"), 0 < t.Year() && t.Year() <= 9999
	}
}

// isOtherUnit reports whether a number that should be in seconds is in milliseconds, or the other way round. Dates of
// birth are whole quarters of an hour in any time zone; other times hardly ever are. So a small number of milliseconds
// that is no whole quarter is in seconds. A huge number of seconds that is a whole quarter is in milliseconds: a word
// for "never", for example 3000-01-01 in seconds, is no whole quarter of an hour in milliseconds.
func isOtherUnit(unit time.Duration, n int64) bool {
	const from1700, from2000, from2100, from2200 = -8_520_336_000, 946_684_800, 4_102_444_800, 7_258_118_400
	const quarter = 15 * 60 * 1000
	if unit < time.Second {
		return from2000 <= n && n < from2100 && n%quarter != 0
	}
	return (n < from1700 || n >= from2200) && n%quarter == 0
}

// excelBegin is day 0 of Excel's days behind February 1900, in which it has a day too many.
var excelBegin = time.Date(1899, time.December, 30, 0, 0, 0, 0, time.UTC)

// fromExcel reads a day by Excel's number; its fraction is the time of day.
func fromExcel(s string) (string, bool) {
	const firstMarch, last = 61, 2958465 // of 1900; of 9999
	days, err := strconv.ParseFloat(s, 64)
	if err != nil || !IsNumber(s) || days < 1 || days >= last+1 || math.Floor(days) == firstMarch-1 {
		return "", false
	}
	if days < firstMarch {
		days++
	}
	whole, part := math.Modf(days)
	t := excelBegin.AddDate(0, 0, int(whole)).Add(time.Duration(math.Round(part*24*3600*1000)) * time.Millisecond)
	if part == 0 {
		return t.Format(time.DateOnly), true
	}
	return t.Format("2006-01-02T15:04:05.999999999"), true
}

// IsDate reports whether s is a day of the calendar, or a time of one, in the extended form of ISO 8601: what [Date]
// gives, the seconds or the whole time left out if need be.
func IsDate(s string) bool {
	if len(s) == len(time.DateOnly) {
		_, err := time.Parse(time.DateOnly, s)
		return err == nil
	}
	if len(s) < len("2006-01-02T15:04") || s[10] != 'T' || s[13] != ':' {
		return false // package time would take an hour of one digit
	}
	return slices.ContainsFunc([]string{
		time.RFC3339, "2006-01-02T15:04:05", "2006-01-02T15:04Z07:00",
		"2006-01-02T15:04",
	}, func(form string) bool {
		_, err := time.ParseInLocation(form, s, time.UTC)
		return err == nil
	})
}

// languages have names of months and days (Unicode CLDR). They are those whose headers
// and statuses init knows; of English nothing needs to be said.
var languages = map[string]func() locales.Translator{
	"ar": ar.New, "cs": cs.New, "da": da.New, "de": de.New, "es": es.New, "fr": fr.New, "it": it.New, "ja": ja.New,
	"ko": ko.New,
	"nb": nb.New, "nl": nl.New, "pl": pl.New, "pt": pt.New, "ru": ru.New, "sv": sv.New, "tr": tr.New, "zh": zh.New,
}

// translator makes English of the names in dates of a layout, whose form in package time is given. A point behind a
// name may belong to it or to the layout: both ways are given.
func translator(layout, form, language string) (func(string) []string, *Fault) {
	known := languages[language]
	if known == nil {
		codes := slices.Sorted(maps.Keys(languages))
		hint := spelling.Hint(language, codes)
		if hint == "" || len(language) <= 2 {
			hint = "known here: " + strings.Join(codes, ", ")
		}
		return nil, &Fault{Text: "no names of months are known in the language " + Quote(language), Hint: hint}
	}
	var names []dateNames // in the order of the layout
	for _, name := range englishForm().FindAllString(form, -1) {
		names = append(names, newDateNames(name, known()))
	}
	if names == nil {
		return nil, &Fault{Text: strconv.Quote(layout) +
			" has no name of a month, so that its language does not matter", Hint: "take @" + language +
			" out, or write MMMM or MMM for the name"}
	}
	return func(s string) []string {
		with, without, rest := "", "", strings.Map(westernDigit, s)
		for _, n := range names {
			at := n.form.FindStringSubmatchIndex(rest)
			if at == nil {
				break
			}
			before := rest[:at[2]] + n.english[strings.ToLower(rest[at[2]:at[3]])]
			with, without = with+before+rest[at[4]:at[5]], without+before
			rest = rest[at[5]:]
		}
		return []string{without + rest, with + rest}
	}, nil
}

// englishForm is of the names that package time has in a layout.
var englishForm = spelling.Form(`January|Jan|Monday|Mon`)

// dateNames are the names of months, or of days of the week, with what package time calls them.
type dateNames struct {
	english map[string]string // by names in small letters
	form    *regexp.Regexp    // a name that is a word of its own, and the point behind it
}

// newDateNames takes whole and short names. The first three letters of a name do, where no other one begins so.
func newDateNames(form string, l locales.Translator) dateNames {
	// a Sunday
	whole, short, first := l.MonthsWide(), l.MonthsAbbreviated(), time.Date(2006, time.January, 1, 0, 0, 0, 0, time.UTC)
	next := func(i int) time.Time { return first.AddDate(0, i, 0) }
	if strings.HasPrefix(form, "Mon") {
		whole, short = l.WeekdaysWide(), l.WeekdaysAbbreviated()
		next = func(i int) time.Time { return first.AddDate(0, 0, i) }
	}
	d, times := dateNames{english: map[string]string{}}, map[string]int{}
	cut := func(name string) string {
		letters := []rune(strings.ToLower(name))
		return string(letters[:min(3, len(letters))])
	}
	for _, name := range whole {
		times[cut(name)]++
	}
	add := func(i int, name string) {
		if name = strings.TrimRight(strings.ToLower(name), "."); d.english[name] == "" {
			d.english[name] = next(i).Format(form)
		}
	}
	for i := range whole {
		add(i, whole[i])
		add(i, short[i])
	}
	for i := range whole {
		if times[cut(whole[i])] == 1 {
			add(i, cut(whole[i]))
		}
	}
	longest := slices.SortedFunc(maps.Keys(d.english), func(a, b string) int { return len(b) - len(a) })
	for i, name := range longest {
		longest[i] = regexp.QuoteMeta(name)
	}
	const end = `[^\p{L}\p{M}]|\p{Han}|\p{Hangul}` // of a word; these scripts part words by nothing
	d.form = regexp.MustCompile(`(?i)(?:^|` + end + `)(` + strings.Join(longest, "|") + `)(\.?)(?:` + end + `|$)`)
	return d
}

func westernDigit(r rune) rune {
	if d := ASCIIDigit(r); d >= 0 {
		return d
	}
	return r
}
