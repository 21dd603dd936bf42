package texts

import (
	"cmp"
	_ "embed"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"leadferry/internal/spelling"
)

// Date returns a conversion that reads a date by the first layout that fits; | separates layouts. It writes ISO 8601:
// 2006-01-02, or 2006-01-02T15:04:05 if the layout has a time of day, with fractions of a second if there are any, and
// with the offset from UTC if the layout has one. A date that does not exist does not fit. Names of months are English
// unless the layout ends with @de or another language. Years of two digits are 1969 to 2068. Layouts that read one text
// as different days are refused. A text that fits no layout but is ISO 8601, as in a workbook, is accepted; a blank
// before its time becomes T.
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
		s = strings.Replace(s, " ", "T", 1) // as workbooks' cells have it
		return s, IsDate(s)
	}, nil
}

// dateForm is a way to write dates.
type dateForm struct {
	layout string
	read   Conversion
	write  func(time.Time) string
}

// probes are moments that show whether two layouts differ in the order of their parts, and which parts a layout has.
var probes = [...]time.Time{
	time.Date(2004, time.May, 6, 7, 8, 9, 0, halfPastOne),
	time.Date(2011, time.October, 12, 13, 14, 15, 0, halfPastOne),
	time.Date(1970, time.February, 3, 4, 0, 0, 0, halfPastOne),
}

var halfPastOne = time.FixedZone("", 90*60)

// confuses reports whether the other form reads a date that this form writes as another day.
func (f *dateForm) confuses(other dateForm) bool {
	return slices.ContainsFunc(probes[:], func(probe time.Time) bool {
		read, fits := other.read(f.write(probe))
		return fits && !strings.HasPrefix(read, probe.Format(time.DateOnly))
	})
}

// countedForms are the layouts that count from a fixed day.
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
	bare, language, _ := strings.Cut(layout, "@")
	forms, out, problem := readLayout(bare)
	english, unknown := translator(forms, language)
	if problem = cmp.Or(problem, unknown); problem != nil {
		return dateForm{}, problem
	}
	read := func(s string) (string, bool) {
		s = english(s)
		for _, form := range forms {
			if t, err := time.ParseInLocation(form, s, time.UTC); err == nil {
				return t.Format(out), t.Year() > 0
			}
		}
		return "", false
	}
	return dateForm{read: read, write: func(t time.Time) string { return t.Format(forms[0]) }}, nil
}

// fromUnix reads a count of units since the start of 1970 in UTC. Milliseconds that would be in January or February
// 1970 do not fit: they must be seconds of this century. Whole quarters of an hour fit: they may be dates of birth.
func fromUnix(unit time.Duration) Conversion {
	per := int64(time.Second / unit)
	return func(s string) (string, bool) {
		n, err := strconv.ParseInt(strings.TrimSuffix(s, ".0"), 10, 64) // a column of decimals adds .0
		const from2000, from2100, quarter = 946_684_800, 4_102_444_800, 15 * 60 * 1000
		isSeconds := unit < time.Second && from2000 <= n && n < from2100 && n%quarter != 0
		if err != nil || isSeconds || n/per > 1<<38 || n/per < -1<<38 {
			return "", false
		}
		t := time.Unix(n/per, n%per*int64(unit)).UTC()
		return t.Format("2006-01-02T15:04:05.999999999Z"), 0 < t.Year() && t.Year() <= 9999
	}
}

// excelBegin is day 0 of Excel's count from March 1900 on. Excel's February 1900 has a day too many.
var excelBegin = time.Date(1899, time.December, 30, 0, 0, 0, 0, time.UTC)

// fromExcel reads Excel's number of a day; its fraction is the time of day. Days before March 1900 do not fit.
func fromExcel(s string) (string, bool) {
	const firstMarch, last = 61, 2958465 // of 1900, and of 9999
	days, err := strconv.ParseFloat(s, 64)
	if err != nil || !IsNumber(s) || days < firstMarch || days >= last+1 {
		return "", false
	}
	whole, part := math.Modf(days)
	t := excelBegin.AddDate(0, 0, int(whole)).Add(time.Duration(math.Round(part*24*3600*1000)) * time.Millisecond)
	if part == 0 {
		return t.Format(time.DateOnly), true
	}
	return t.Format("2006-01-02T15:04:05.999999999"), true
}

// IsDate reports whether s is a date of the calendar, with or without a time, in the extended form of ISO 8601: as
// [Date] writes it, but the seconds may be missing.
func IsDate(s string) bool {
	if len(s) == len(time.DateOnly) {
		_, err := time.Parse(time.DateOnly, s)
		return err == nil
	}
	if len(s) < len("2006-01-02T15:04") || s[10] != 'T' || s[13] != ':' {
		return false // package time would accept an hour of one digit
	}
	return slices.ContainsFunc([]string{
		time.RFC3339, "2006-01-02T15:04:05", "2006-01-02T15:04Z07:00",
		"2006-01-02T15:04",
	}, func(form string) bool {
		_, err := time.ParseInLocation(form, s, time.UTC)
		return err == nil
	})
}

// namesText has the names of months in the languages whose headers and statuses init knows, from the Unicode CLDR by
// way of go-playground/locales. Each line is a language and its twelve names, in small letters. The first three letters
// of a name are also a name, if no other name begins with them.
//
//go:embed names.csv
var namesText string

// languages are the English names of months, by language and by the month's name in that language.
var languages = sync.OnceValue(func() map[string]map[string]string {
	all := map[string]map[string]string{}
	for line := range strings.Lines(namesText) {
		row, english := strings.Split(strings.TrimSpace(line), ","), map[string]string{}
		for i, names := range row[1:] {
			for name := range strings.SplitSeq(names, "|") {
				english[name] = time.Month(i + 1).String()
			}
		}
		all[row[0]] = english
	}
	return all
})

// translator returns a function that puts the month of a date into English, and changes the forms to match: both use
// whole names, and ignore a point after a name. Without a language, dates are in English already.
func translator(forms []string, language string) (func(string) string, *Fault) {
	if language == "" {
		return strings.TrimSpace, nil
	}
	months, known := languages()[language]
	if !known {
		return nil, Unknown("language of dates "+Quote(language), language, slices.Sorted(maps.Keys(languages())))
	}
	for i, form := range forms {
		forms[i] = monthForm().ReplaceAllString(form, "January")
	}
	return func(s string) string {
		return wordForm().ReplaceAllStringFunc(strings.Map(westernDigit, s), func(word string) string {
			return cmp.Or(months[strings.ToLower(strings.TrimSuffix(word, "."))], word)
		})
	}, nil
}

var (
	monthForm = spelling.Form(`Jan(?:uary)?\.?`)

	// wordForm matches words that may be months. In Chinese, Japanese and Korean nothing separates them from others.
	wordForm = spelling.Form(`[0-9一二三四五六七八九十]+[月월]|(?:[^\P{L}\p{Han}\p{Hangul}]|\p{M})+\.?`)
)

func westernDigit(r rune) rune {
	if d := ASCIIDigit(r); d >= 0 {
		return d
	}
	return r
}

const (
	maxLayout  = 64 // bytes
	layoutHint = `write YYYY, MM, DD, HH, mm and ss as in "date:DD.MM.YYYY", or Go's reference date as in ` +
		`"date:02.01.2006"; hh goes with A, which is AM or PM`
)

// readLayout reads a layout in letters, or in digits as Go's reference date. It returns the layout's forms for package
// time, and the form in which to write the date.
func readLayout(layout string) (forms []string, out string, problem *Fault) {
	form, text := layout, ""
	switch {
	case len(layout) > maxLayout:
		text = "the layout is too long"
	case strings.TrimSpace(layout) != layout:
		text = "the layout begins or ends with white space"
	case !strings.ContainsAny(layout, "0123456789"):
		form, text = fromLetters(layout)
	case strings.Contains(layout, "MST"):
		text = "names of time zones have several meanings"
	}
	if text == "" {
		out, text = outputOf(form)
	}
	if text != "" {
		return nil, "", NewFault(text, layoutHint)
	}
	forms = []string{form}
	for _, other := range [][2]string{{"PM", "pm"}, {"Z07:00", "Z0700"}, {"Z07:00", "Z07"}} {
		for _, form := range forms {
			if strings.Contains(form, other[0]) {
				forms = append(forms, strings.ReplaceAll(form, other[0], other[1]))
			}
		}
	}
	return forms, out, nil
}

// letterForms are the runs of a letter that mean a part of a date, in Go's form.
var letterForms = map[string]string{
	"yyyy": "2006", "YYYY": "2006", "yy": "06", "YY": "06",
	"m": "1", "M": "1", "mm": "01", "MM": "01", "mmm": "Jan", "MMM": "Jan", "mmmm": "January", "MMMM": "January",
	"d": "2", "D": "2", "dd": "02", "DD": "02", "ddd": "Mon", "EEE": "Mon", "dddd": "Monday", "EEEE": "Monday",
	"HH": "15", "H": "15", "hh": "03", "h": "3", "a": "PM", "A": "PM", "tt": "PM",
	"ss": "05", "SS": "05", "s": "5",
	"Z": "Z07:00", "ZZ": "Z07:00", "X": "Z07:00", "XX": "Z07:00", "XXX": "Z07:00",
}

// minuteForms are the runs that mean minutes after an hour and months elsewhere: people write both in either case.
var minuteForms = map[string]string{"m": "4", "M": "4", "mm": "04", "MM": "04"}

// fromLetters turns a layout in letters into Go's reference date. A letter without a meaning is a fault: in the layouts
// of another program it may mean something. Text between single quotes is copied, as in Java.
func fromLetters(s string) (layout, fault string) {
	last := "" // part of the date
	layout = letters().ReplaceAllStringFunc(s, func(run string) string {
		letters := strings.TrimLeft(run, ".,")
		form, point := letterForms[letters], run[:len(run)-len(letters)]
		switch {
		case run[0] == '\'':
			return strings.Trim(run, "'")
		case run == "T":
			return run
		case minuteForms[run] != "" && (last == "15" || last == "03" || last == "3"):
			form = minuteForms[run]
		case point != "" && (last == "05" || last == "5"): // a fraction of the second
			form = strings.Repeat("0", len(letters))
		case form == "":
			fault = cmp.Or(fault, strconv.Quote(run)+" means no part of a date")
		}
		last = form
		return point + form
	})
	return layout, fault
}

// letters match text between quotes, seconds or their fractions after a point, and runs of one letter.
var letters = spelling.Form(`'[^']*'|[.,]S+|y+|Y+|m+|M+|d+|D+|E+|H+|h+|t+|s+|S+|Z+|X+|a+|A+|T+|e+|[A-Za-z_]`)

// outputOf returns the form in which to write dates of a layout, or what is wrong with the layout. A layout must give
// the whole day. A part of a time needs the larger parts.
func outputOf(form string) (out, fault string) {
	var read time.Time
	tells := func(parts string) bool { // these and no others
		return !slices.ContainsFunc(probes[:], func(probe time.Time) bool {
			want, _ := time.Parse(parts, probe.Format(parts))
			var err error
			read, err = time.Parse(form, probe.Format(form))
			return err != nil || read.Format(time.DateTime) != want.Format(time.DateTime)
		})
	}
	switch {
	case tells(time.DateOnly):
		return time.DateOnly, ""
	case !tells("2006-01-02 15") && !tells("2006-01-02 15:04") && !tells(time.DateTime):
		return "", "the layout tells no whole date, or part of a time without the larger ones"
	}
	out = "2006-01-02T15:04:05.999999999"
	if _, offset := read.Zone(); offset != 0 {
		out += "Z07:00"
	}
	return out, ""
}
