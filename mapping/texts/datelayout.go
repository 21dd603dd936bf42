package texts

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"leadferry/internal/spelling"
)

const (
	maxLayout  = 64 // bytes
	layoutHint = `write YYYY, MM, DD, HH, mm and ss as in "date:DD.MM.YYYY", or Go's reference date as in "date:02.01.2006"`
)

// readLayout reads a layout, in letters or as Go's reference date, which has digits:
// the forms of package time that it stands for, and the one to write the date in.
func readLayout(layout string) (forms []string, out string, problem *Fault) {
	text := ""
	switch letters := !strings.ContainsAny(layout, "0123456789"); {
	case len(layout) > maxLayout:
		return nil, "", &Fault{Text: "the layout is too long", Hint: layoutHint}
	case strings.TrimSpace(layout) != layout:
		return nil, "", &Fault{Text: "the layout begins or ends with white space", Hint: "leave the white space out"}
	case letters:
		layout, text = fromLetters(layout)
		forms = withVariants([]string{layout}, "PM", "pm")
		forms = withVariants(forms, "Z07:00", "Z0700", "Z07")
	default:
		forms = []string{layout}
	}
	if text == "" {
		out, text = outputOf(layout)
	}
	if text == "" && slices.ContainsFunc(forms, misreads) {
		text = "the layout does not tell dates apart"
	}
	if text != "" {
		return nil, "", &Fault{Text: text, Hint: layoutHint}
	}
	return forms, out, nil
}

// withVariants adds, for each form that has part, the same with the others in its place.
func withVariants(forms []string, part string, others ...string) []string {
	for _, form := range slices.Clone(forms) {
		for _, other := range others {
			if strings.Contains(form, part) {
				forms = append(forms, strings.ReplaceAll(form, part, other))
			}
		}
	}
	return forms
}

// misreads reports whether a date written by the form is read as another one, or not at all: the last word on what
// package time makes of it. A layout whose numbers nothing parts fails on a day and a month of one digit.
func misreads(form string) bool {
	zone := time.FixedZone("", 5*3600+1800)
	for _, moment := range [...]time.Time{
		time.Date(2009, time.October, 23, 18, 47, 56, 120_000_000, zone),
		time.Date(2009, time.January, 2, 3, 4, 5, 0, zone),
	} {
		written := moment.Format(form)
		t, err := time.ParseInLocation(form, written, time.UTC)
		if err != nil || t.Format(form) != written || t.Format(time.DateOnly) != moment.Format(time.DateOnly) {
			return true
		}
	}
	return false
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
func fromLetters(s string) (layout, fault string) {
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
			return "", strconv.Quote(run) + " stands for no part of a date"
		}
		layout += form
		last = form
	}
	return layout, ""
}

// words are such as the layout has between quotes.
var words = spelling.Form(`^'([^']*)'`)

// unusable are parts that cannot be used: a day of the year, names of time zones, which are not unique, and seconds of
// an offset.
const unusable = "unusable"

// dateParts are what package time takes for a field.
var dateParts = map[string][]string{
	"year": {"2006", "_2006", "06"}, "month": {"January", "Jan", "01", "1"}, "weekday": {"Monday", "Mon"}, "day": {"02", "_2", "2"},
	"hour": {"15", "03", "3"}, "minute": {"04", "4"}, "second": {"05", "5"}, "half of the day": {"PM", "pm"},
	"offset from UTC": {"Z07:00", "-07:00", "Z0700", "-0700", "Z07", "-07"},
	unusable:          {"MST", "002", "__2", "Z07:00:00", "-07:00:00"},
}

// fraction is that of a second as package time writes it: a point or comma and zeros or nines only.
var fraction = spelling.Form(`^([.,](?:0+|9+))(?:[^0-9]|$)`)

// firstPart is what the layout begins with and what that stands for: the longest of the parts, else a byte for itself.
func firstPart(layout string) (part, field string) {
	if found := fraction().FindStringSubmatch(layout); found != nil {
		return found[1], "fraction"
	}
	part = layout[:1]
	for of, texts := range dateParts {
		for _, text := range texts {
			if strings.HasPrefix(layout, text) && (field == "" || len(text) > len(part)) {
				part, field = text, of
			}
		}
	}
	return part, field
}

// twelve counts the hours that need AM or PM, beside the field hour.
const twelve = "hour up to 12"

// outputOf is the form in which dates of a layout are written, or what is wrong with it.
func outputOf(layout string) (out, fault string) {
	count := map[string]int{} // of each field
	for layout != "" {
		part, field := firstPart(layout)
		if field == unusable || field == "" && isDigit(part[0]) {
			return "", strconv.Quote(part) + " is no part of Go's reference date that can be used here"
		}
		count[field]++
		if part == "03" || part == "3" {
			count[twelve]++
		}
		layout = layout[len(part):]
	}
	out = time.DateOnly
	if count["hour"] > 0 {
		out += "T15:04:05.999999999"
	}
	if count["offset from UTC"] > 0 {
		out += "Z07:00"
	}
	return out, fieldFault(count)
}

func fieldFault(count map[string]int) string {
	for i, field := range [...]string{"year", "month", "day", "hour", "minute", "second", "fraction", "half of the day", "offset from UTC"} {
		switch {
		case count[field] > 1:
			return "the layout has the " + field + " twice"
		case count[field] == 0 && i < 3:
			return "the layout has no " + field
		}
	}
	switch hour, minute, second := count["hour"], count["minute"], count["second"]; {
	case count[twelve] != count["half of the day"]:
		return "hours up to 12 go with AM or PM, hours up to 23 go without: write hh:mm A or HH:mm"
	case minute > hour, second > minute, count["fraction"] > second:
		return "the layout has a time of day without its larger part"
	case count["offset from UTC"] > hour:
		return "the layout has an offset from UTC without a time of day"
	}
	return ""
}
