package mapping

import (
	"strings"
	"time"
	"unicode/utf8"
)

// date reads a text by a layout and gives it as ISO 8601: 2006-01-02, or
// 2006-01-02T15:04:05 when the layout has a time of day, with fractions of a second
// if there are any, and the offset from UTC when the layout has one. A date that no
// calendar has does not fit. Names of months are English; years of two digits are
// those from 1969 to 2068.
func date(word string) (f step, fault, hint string) {
	l, fault, hint := parseLayout(word)
	if fault != "" {
		return nil, "step date: " + fault, hint
	}
	return l.iso, "", ""
}

// dateLayout is a layout in the forms of package time that it allows.
type dateLayout struct {
	forms []string
	out   string
}

func (l dateLayout) iso(s string) (string, bool) {
	for _, form := range l.forms {
		if t, err := time.ParseInLocation(form, s, time.UTC); err == nil {
			return t.Format(l.out), true
		}
	}
	return "", false
}

// dateField is what a part of a layout stands for.
type dateField uint8

const (
	wordsPart dateField = iota // what stands between the others
	yearPart
	monthPart
	dayPart
	hourPart
	hour12Part
	minutePart
	secondPart
	fractionPart
	halfPart
	offsetPart
	weekdayPart
	unusablePart
)

// datePart is a part of a layout: the forms of package time that it allows, and
// whether it is a number of no fixed width.
type datePart struct {
	field dateField
	forms []string
	loose bool
}

type dateParts []datePart

const (
	maxLayout  = 64 // bytes
	layoutHint = `write YYYY, MM, DD, HH, mm and ss as in "date:DD.MM.YYYY", or Go's reference date as in "date:02.01.2006"`
)

// parseLayout reads a layout, in letters or in Go's form, which has digits and
// the other has not.
func parseLayout(s string) (l dateLayout, fault, hint string) {
	var parts dateParts
	switch {
	case len(s) > maxLayout:
		return l, "the layout is too long", layoutHint
	case strings.TrimSpace(s) != s:
		return l, "the layout begins or ends with white space", "leave the white space out"
	case strings.ContainsAny(s, "0123456789"):
		parts, fault = goLayout(s)
	default:
		parts, fault = letterLayout(s)
	}
	if fault == "" {
		fault = parts.check()
	}
	if fault != "" {
		return l, fault, layoutHint
	}
	l = parts.layout()
	if !l.readsBack() {
		return l, "the layout does not tell dates apart", layoutHint
	}
	return l, "", ""
}

// layout joins the forms of the parts, each with each.
func (parts dateParts) layout() dateLayout {
	l := dateLayout{forms: []string{""}, out: "2006-01-02"}
	for _, p := range parts {
		var longer []string
		for _, before := range l.forms {
			for _, form := range p.forms {
				longer = append(longer, before+form)
			}
		}
		l.forms = longer
	}
	if parts.count(hourPart)+parts.count(hour12Part) > 0 {
		l.out += "T15:04:05.999999999"
	}
	if parts.count(offsetPart) > 0 {
		l.out += "Z07:00"
	}
	return l
}

// readsBack reports whether a date written by the layout is read as the same
// date: the last word on what package time makes of it.
func (l dateLayout) readsBack() bool {
	moment := time.Date(2009, time.October, 23, 18, 47, 56, 120_000_000, time.FixedZone("", 5*3600+1800))
	for _, form := range l.forms {
		written := moment.Format(form)
		t, err := time.ParseInLocation(form, written, time.UTC)
		if err != nil || t.Format(form) != written || t.Format(time.DateOnly) != moment.Format(time.DateOnly) {
			return false
		}
	}
	return true
}

// goChunks are what package time takes for a field, those that begin with others
// first. The unusable ones are a day of the year, names of time zones, which are
// not unique, and seconds of an offset.
var goChunks = []struct {
	text  string
	field dateField
	loose bool
}{
	{"January", monthPart, false},
	{"Jan", monthPart, false},
	{"Monday", weekdayPart, false},
	{"Mon", weekdayPart, false},
	{"MST", unusablePart, false},
	{"2006", yearPart, false},
	{"_2006", yearPart, false},
	{"002", unusablePart, false},
	{"__2", unusablePart, false},
	{"_2", dayPart, false},
	{"01", monthPart, false},
	{"02", dayPart, false},
	{"03", hour12Part, false},
	{"04", minutePart, false},
	{"05", secondPart, false},
	{"06", yearPart, false},
	{"15", hourPart, false},
	{"1", monthPart, true},
	{"2", dayPart, true},
	{"3", hour12Part, true},
	{"4", minutePart, true},
	{"5", secondPart, true},
	{"PM", halfPart, false},
	{"pm", halfPart, false},
	{"Z07:00:00", unusablePart, false},
	{"-07:00:00", unusablePart, false},
	{"Z07:00", offsetPart, false},
	{"-07:00", offsetPart, false},
	{"Z0700", offsetPart, false},
	{"-0700", offsetPart, false},
	{"Z07", offsetPart, false},
	{"-07", offsetPart, false},
}

// goLayout reads a layout in the form of Go's reference date.
func goLayout(s string) (parts dateParts, fault string) {
	for s != "" {
		part := datePart{forms: []string{s[:1]}}
		if n := fractionLength(s); n > 0 {
			part = datePart{field: fractionPart, forms: []string{s[:n]}}
		}
		for _, c := range goChunks {
			if strings.HasPrefix(s, c.text) {
				part = datePart{c.field, []string{c.text}, c.loose}
				break
			}
		}
		text := part.forms[0]
		if part.field == unusablePart || part.field == wordsPart && strings.Contains("0123456789", text) {
			return nil, quote(text) + " is no part of Go's reference date that can be used here"
		}
		parts = append(parts, part)
		s = s[len(text):]
	}
	return parts, ""
}

// fractionLength is the length of a fraction of a second that s begins with, as
// package time writes it: a point or comma and zeros or nines only.
func fractionLength(s string) int {
	if s[0] != '.' && s[0] != ',' || len(s) < 2 || s[1] != '0' && s[1] != '9' {
		return 0
	}
	n := len(s) - len(strings.TrimLeft(s[1:], s[1:2]))
	if n < len(s) && '0' <= s[n] && s[n] <= '9' {
		return 0
	}
	return n
}

// letterRuns are the runs of a letter that stand for a field. A run of m is not
// among them: it is the minutes after the hour, the month elsewhere.
var letterRuns = map[string]datePart{
	"yyyy": {yearPart, []string{"2006"}, false},
	"YYYY": {yearPart, []string{"2006"}, false},
	"yy":   {yearPart, []string{"06"}, false},
	"YY":   {yearPart, []string{"06"}, false},
	"dd":   {dayPart, []string{"02"}, false},
	"DD":   {dayPart, []string{"02"}, false},
	"d":    {dayPart, []string{"2"}, true},
	"D":    {dayPart, []string{"2"}, true},
	"HH":   {hourPart, []string{"15"}, false},
	"H":    {hourPart, []string{"15"}, true},
	"hh":   {hour12Part, []string{"03"}, false},
	"h":    {hour12Part, []string{"3"}, true},
	"ss":   {secondPart, []string{"05"}, false},
	"s":    {secondPart, []string{"5"}, true},
	"a":    {halfPart, []string{"PM", "pm"}, false},
	"A":    {halfPart, []string{"PM", "pm"}, false},
	"tt":   {halfPart, []string{"PM", "pm"}, false},
	"ddd":  {weekdayPart, []string{"Mon"}, false},
	"EEE":  {weekdayPart, []string{"Mon"}, false},
	"dddd": {weekdayPart, []string{"Monday"}, false},
	"EEEE": {weekdayPart, []string{"Monday"}, false},
	"Z":    {offsetPart, []string{"Z07:00", "Z0700", "Z07"}, false},
	"ZZ":   {offsetPart, []string{"Z07:00", "Z0700", "Z07"}, false},
	"X":    {offsetPart, []string{"Z07:00", "Z0700", "Z07"}, false},
	"XX":   {offsetPart, []string{"Z07:00", "Z0700", "Z07"}, false},
	"XXX":  {offsetPart, []string{"Z07:00", "Z0700", "Z07"}, false},
	"T":    {wordsPart, []string{"T"}, false},
}

// letterLayout reads a layout in letters. A letter that stands for nothing is a
// fault: it may be a field of another program's layouts.
func letterLayout(s string) (parts dateParts, fault string) {
	s = strings.ReplaceAll(s, "'T'", "T") // as Java writes it
	last := wordsPart
	for s != "" {
		part, n := letterPart(s, last)
		if part.field == unusablePart {
			return nil, quote(s[:n]) + " stands for no part of a date"
		}
		if part.field != wordsPart {
			last = part.field
		}
		parts = append(parts, part)
		s = s[n:]
	}
	return parts, ""
}

// letterPart is the part that s begins with, of n bytes; last is the field before.
func letterPart(s string, last dateField) (part datePart, n int) {
	letter := s[0]
	if !isASCIILetter(letter) && letter != '_' {
		_, n = utf8.DecodeRuneInString(s)
		if zeros := len(s) - 1 - len(strings.TrimLeft(s[1:], "S")); (letter == '.' || letter == ',') && zeros > 0 && last == secondPart {
			return datePart{field: fractionPart, forms: []string{s[:1] + strings.Repeat("0", zeros)}}, 1 + zeros
		}
		return datePart{forms: []string{s[:n]}}, n
	}
	n = len(s) - len(strings.TrimLeft(s, s[:1]))
	run := s[:n]
	if strings.ToLower(run[:1]) == "m" {
		return monthOrMinute(n, last), n
	}
	if run == "SS" {
		run = "ss"
	}
	if part, known := letterRuns[run]; known {
		return part, n
	}
	return datePart{field: unusablePart}, n
}

// monthOrMinute is what a run of n times m or M stands for: people write both in
// either case.
func monthOrMinute(n int, last dateField) datePart {
	afterHour := last == hourPart || last == hour12Part
	switch {
	case n == 1 && afterHour:
		return datePart{minutePart, []string{"4"}, true}
	case n == 2 && afterHour:
		return datePart{minutePart, []string{"04"}, false}
	case n > 4:
		return datePart{field: unusablePart}
	}
	form := [...]string{"1", "01", "Jan", "January"}[n-1]
	return datePart{monthPart, []string{form}, n == 1}
}

func isASCIILetter(b byte) bool { return 'a' <= b|0x20 && b|0x20 <= 'z' }

func (parts dateParts) count(field dateField) int {
	n := 0
	for _, p := range parts {
		if p.field == field {
			n++
		}
	}
	return n
}

// check is what is wrong with the parts as a whole, or "".
func (parts dateParts) check() string {
	names := [...]string{yearPart: "year", monthPart: "month", dayPart: "day", hourPart: "hour", hour12Part: "hour", minutePart: "minute", secondPart: "second", fractionPart: "fraction", halfPart: "half of the day", offsetPart: "offset from UTC"}
	for field := yearPart; field <= offsetPart; field++ {
		switch n := parts.count(field); {
		case n > 1:
			return "the layout has the " + names[field] + " twice"
		case n == 0 && field <= dayPart:
			return "the layout has no " + names[field]
		}
	}
	hours, hours12 := parts.count(hourPart), parts.count(hour12Part)
	switch {
	case hours+hours12 > 1:
		return "the layout has the hour twice"
	case hours12 != parts.count(halfPart):
		return "hours up to 12 go with AM or PM, hours up to 23 go without: write hh:mm A or HH:mm"
	case parts.count(minutePart) > hours+hours12, parts.count(secondPart) > parts.count(minutePart), parts.count(fractionPart) > parts.count(secondPart):
		return "the layout has a time of day without its larger part"
	case parts.count(offsetPart) > hours+hours12:
		return "the layout has an offset from UTC without a time of day"
	}
	return parts.checkWidths()
}

// checkWidths finds numbers that touch others though nobody could tell where they
// end.
func (parts dateParts) checkWidths() string {
	for i := 1; i < len(parts); i++ {
		a, b := parts[i-1], parts[i]
		if (a.loose || b.loose) && a.isNumber() && b.isNumber() {
			return "the layout has numbers of one or two digits without anything between"
		}
	}
	return ""
}

func (p datePart) isNumber() bool {
	last := p.forms[0][len(p.forms[0])-1]
	return p.field != wordsPart && '0' <= last && last <= '9'
}
