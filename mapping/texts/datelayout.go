package texts

import (
	"fmt"
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
	fault := func(format string, args ...any) *Fault {
		return &Fault{Text: fmt.Sprintf(format, args...), Hint: layoutHint}
	}
	forms = []string{layout}
	switch letters := !strings.ContainsAny(layout, "0123456789"); {
	case len(layout) > maxLayout:
		return nil, "", fault("the layout is too long")
	case strings.TrimSpace(layout) != layout:
		return nil, "", &Fault{Text: "the layout begins or ends with white space", Hint: "leave the white space out"}
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

// outputOf is the form in which dates of a layout are written, or what is wrong with it. It asks package time, which
// has the last word on what a layout says: a part is there that changes what is written, and what is written has to be
// read as it was.
func outputOf(form string) (out, fault string) {
	at := func(year int, month time.Month, day, hour, minute, second, zone int) time.Time {
		return time.Date(year, month, day, hour, minute, second, 120_000_000, time.FixedZone("", zone*1800))
	}
	base := at(2009, time.October, 23, 18, 47, 56, 11)
	times := map[string]int{}
	for _, part := range []struct {
		name  string
		other time.Time // differs in it alone, and is the same day of the week
	}{
		{"year", at(2015, time.October, 23, 18, 47, 56, 11)},
		{"month", at(2009, time.January, 23, 18, 47, 56, 11)},
		{"day", at(2009, time.October, 16, 18, 47, 56, 11)},
		{"hour", at(2009, time.October, 23, 17, 47, 56, 11)},
		{"minute", at(2009, time.October, 23, 18, 48, 56, 11)},
		{"second", at(2009, time.October, 23, 18, 47, 57, 11)},
		{"offset", at(2009, time.October, 23, 18, 47, 56, -6)},
	} {
		n := differences(base.Format(form), part.other.Format(form))
		times[part.name] = n
		switch {
		case n == 0 && len(times) <= 3:
			return "", "the layout has no " + part.name
		case n > 1 && part.name != "offset":
			return "", "the layout has the " + part.name + " twice"
		}
	}
	hour := times["hour"] > 0
	switch {
	case times["minute"] > times["hour"], times["second"] > times["minute"]:
		return "", "the layout has a time of day without its larger part"
	case times["offset"] > 0 && !hour:
		return "", "the layout has an offset from UTC without a time of day"
	}
	out = time.DateOnly
	if hour {
		out += "T15:04:05.999999999"
	}
	if times["offset"] > 0 {
		out += "Z07:00"
	}
	// numbers that nothing parts fail on a day and a month of one digit
	for _, moment := range []time.Time{base, at(2009, time.January, 2, 3, 4, 5, 11)} {
		written := moment.Format(form)
		switch t, err := time.ParseInLocation(form, written, time.UTC); {
		case err != nil || t.Format(form) != written || t.Format(time.DateOnly) != moment.Format(time.DateOnly):
			return "", "the layout does not tell dates apart"
		case hour && t.Hour() != moment.Hour():
			return "", "hours up to 12 go with AM or PM, hours up to 23 go without: write hh:mm A or HH:mm"
		}
	}
	return out, ""
}

// differences counts the words and numbers in which two texts differ.
func differences(a, b string) (n int) {
	ours, theirs := runs().FindAllString(a, -1), runs().FindAllString(b, -1)
	for i := range min(len(ours), len(theirs)) {
		if ours[i] != theirs[i] {
			n++
		}
	}
	return n
}

var runs = spelling.Form(`\pL+|\pN+|.`)
