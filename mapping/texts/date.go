package texts

import (
	_ "embed"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

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
			return nil, NewFault("step date: "+problem.Text, problem.Hint)
		}
		for _, other := range forms {
			if other.confuses(form) || form.confuses(other) {
				return nil, NewFault(
					fmt.Sprintf("step date: a text can fit %s and %s, which take it for different days",
						strconv.Quote(other.layout), strconv.Quote(layout)),
					"keep the one that the file is written in; where two columns differ, give each its own")
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

// namesText are the names of months and days of the week in the languages whose headers and statuses init knows, from
// the Unicode CLDR by way of go-playground/locales: language, English name, the others in small letters. The first
// three letters of a name are one, too, where no other begins so.
//
//go:embed names.csv
var namesText string

// languages are the names by language and by the form that package time has for them; each is made when it is asked
// for first, since that takes a millisecond, and init tries many layouts.
var languages = sync.OnceValue(func() map[string]map[string]func() dateNames {
	rows, all := map[string][][]string{}, map[string]map[string]func() dateNames{}
	for line := range strings.Lines(namesText) {
		row := strings.Split(strings.TrimSpace(line), ",")
		rows[row[0]] = append(rows[row[0]], row)
	}
	for language := range rows {
		all[language] = map[string]func() dateNames{}
		for _, form := range []string{"January", "Jan", "Monday", "Mon"} {
			all[language][form] = sync.OnceValue(func() dateNames { return newDateNames(form, rows[language]) })
		}
	}
	return all
})

// translator makes English of the names in dates of a layout, whose form in package time is given. A point behind a
// name may belong to it or to the layout: both ways are given.
func translator(layout, form, language string) (func(string) []string, *Fault) {
	known := languages()[language]
	if known == nil {
		codes := slices.Sorted(maps.Keys(languages()))
		hint := spelling.Hint(language, codes)
		if hint == "" || len(language) <= 2 {
			hint = "known here: " + strings.Join(codes, ", ")
		}
		return nil, NewFault("no names of months are known in the language "+Quote(language), hint)
	}
	var names []dateNames // in the order of the layout
	for _, name := range englishForm().FindAllString(form, -1) {
		names = append(names, known[name]())
	}
	if names == nil {
		return nil, NewFault(
			strconv.Quote(layout)+" has no name of a month, so that its language does not matter",
			"take @"+language+" out, or write MMMM or MMM for the name")
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

// newDateNames takes the names of months or days, as form has them.
func newDateNames(form string, rows [][]string) dateNames {
	d := dateNames{english: map[string]string{}}
	for _, row := range rows {
		if strings.HasSuffix(row[1], "day") == strings.HasPrefix(form, "Mon") {
			for name := range strings.SplitSeq(row[2], "|") {
				d.english[name] = row[1]
				if len(form) == 3 { // Jan, Mon
					d.english[name] = row[1][:3]
				}
			}
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

const (
	maxLayout  = 64 // bytes
	layoutHint = `write YYYY, MM, DD, HH, mm and ss as in "date:DD.MM.YYYY", or Go's reference date as in "date:02.01.2006"`
)

// readLayout reads a layout, in letters or as Go's reference date, which has digits:
// the forms of package time that it stands for, and the one to write the date in.
func readLayout(layout string) (forms []string, out string, problem *Fault) {
	fault := func(format string, args ...any) *Fault {
		return NewFault(fmt.Sprintf(format, args...), layoutHint)
	}
	forms = []string{layout}
	switch letters := !strings.ContainsAny(layout, "0123456789"); {
	case len(layout) > maxLayout:
		return nil, "", fault("the layout is too long")
	case strings.TrimSpace(layout) != layout:
		return nil, "", NewFault("the layout begins or ends with white space", "leave the white space out")
	case letters:
		form, unknown := fromLetters(layout)
		if unknown != "" {
			return nil, "", fault("%q means no part of a date", unknown)
		}
		forms = withVariants([]string{form}, "PM", "pm")
		forms = withVariants(forms, "Z07:00", "Z0700", "Z07")
	case unusable().MatchString(layout):
		return nil, "", fault("%q is no part of Go's reference date that can be used here",
			unusable().FindString(layout))
	}
	out, text := outputOf(forms[0])
	if text != "" {
		return nil, "", fault("%s", text)
	}
	return forms, out, nil
}

// unusable are names of time zones, which are not unique, a day of the year, and seconds of an offset.
var unusable = spelling.Form(`MST|__2|002|07:00:00`)

// withVariants adds, for each form that has part, the same with the others in its place.
func withVariants(forms []string, part string, others ...string) []string {
	for _, form := range forms {
		for _, other := range others {
			if strings.Contains(form, part) {
				forms = append(forms, strings.ReplaceAll(form, part, other))
			}
		}
	}
	return forms
}

// letterForms are the runs of a letter that stand for a part of a date, in Go's form.
var letterForms = map[string]string{
	"yyyy": "2006", "YYYY": "2006", "yy": "06", "YY": "06",
	"m": "1", "M": "1", "mm": "01", "MM": "01", "mmm": "Jan", "MMM": "Jan", "mmmm": "January", "MMMM": "January",
	"d": "2", "D": "2", "dd": "02", "DD": "02", "ddd": "Mon", "EEE": "Mon", "dddd": "Monday", "EEEE": "Monday",
	"HH": "15", "H": "15", "hh": "03", "h": "3", "a": "PM", "A": "PM", "tt": "PM",
	"ss": "05", "SS": "05", "s": "5",
	"Z": "Z07:00", "ZZ": "Z07:00", "X": "Z07:00", "XX": "Z07:00", "XXX": "Z07:00",
}

// minuteForms are the runs that are minutes behind an hour and months elsewhere: people write both in either case.
var minuteForms = map[string]string{"m": "4", "M": "4", "mm": "04", "MM": "04"}

// fromLetters is a layout in letters as Go's reference date. A letter that stands for nothing is a fault: it may be a
// part in another program's layouts. Words between quotes are none, as Java writes them.
func fromLetters(s string) (layout, unknown string) {
	last := "" // part of the date
	for s != "" {
		if word := words().FindStringSubmatch(s); word != nil {
			layout += word[1]
			s = s[len(word[0]):]
			continue
		}
		run := s[:max(1, len(s)-len(strings.TrimLeft(s, s[:1])))]
		s = s[len(run):]
		form := letterForms[run]
		behindHour, behindSecond := last == "15" || last == "03" || last == "3", last == "05" || last == "5"
		switch letter := 'a' <= run[0]|0x20 && run[0]|0x20 <= 'z' || run[0] == '_'; {
		case run == "T" || !letter:
			layout += run
			continue
		case behindHour && minuteForms[run] != "":
			form = minuteForms[run]
		case behindSecond && run[0] == 'S' && strings.ContainsAny(layout[len(layout)-1:], ".,"):
			form = strings.Repeat("0", len(run))
		case form == "":
			return "", run
		}
		layout += form
		last = form
	}
	return layout, ""
}

// words are like that as the layout has between quotes.
var words = spelling.Form(`^'([^']*)'`)

// chunks are what package time finds in a layout, and the words that it passes over.
var chunks = spelling.Form(`January|Monday|(?:Jan|Mon)[a-z]+|Jan|Mon|_?2006|0[1-6]|_2|15|PM|pm|[Z-]07(?::?00)?|[1-5]`)

// chunkParts are the parts of a date that they stand for; the others are offsets, or of no account.
var chunkParts = map[string]string{
	"2006": "year", "_2006": "year", "06": "year", "January": "month", "Jan": "month", "01": "month", "1": "month",
	"02": "day", "_2": "day", "2": "day", "15": "hour", "03": "hour", "3": "hour", "04": "minute", "4": "minute",
	"05": "second", "5": "second", "PM": "half", "pm": "half",
}

// outputOf is the form in which dates of a layout are written, or what is wrong with it.
func outputOf(form string) (out, fault string) {
	times, runsOn, halves := map[string]int{}, false, false
	for _, at := range chunks().FindAllStringIndex(form, -1) {
		chunk := form[at[0]:at[1]]
		part := chunkParts[chunk]
		if strings.Contains(chunk, "07") {
			part = "offset"
		}
		times[part]++
		halves = halves || chunk == "03" || chunk == "3"
		isNarrow := len(chunk) == 1 || chunk == "_2" // where its number has one digit
		runsOn = runsOn || isNarrow && strings.IndexAny(form[at[1]:], "0123456789") == 0
	}
	for i, part := range []string{"year", "month", "day", "hour", "minute", "second"} {
		switch {
		case times[part] == 0 && i < 3:
			return "", "the layout has no " + part
		case times[part] > 1:
			return "", "the layout has the " + part + " twice"
		}
	}
	switch {
	case times["minute"] > times["hour"], times["second"] > times["minute"]:
		return "", "the layout has a time of day without its larger part"
	case times["offset"] > times["hour"]:
		return "", "the layout has an offset from UTC without a time of day"
	case runsOn:
		return "", "the layout does not tell dates apart"
	case halves && times["half"] == 0:
		return "", "hours up to 12 go with AM or PM, hours up to 23 go without: write hh:mm A or HH:mm"
	}
	out = time.DateOnly
	if times["hour"] > 0 {
		out += "T15:04:05.999999999"
	}
	if times["offset"] > 0 {
		out += "Z07:00"
	}
	return out, ""
}
