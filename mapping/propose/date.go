package propose

import (
	"slices"
	"strconv"
	"strings"

	"leadferry/internal/lazyregexp"
)

const dateTime = `(?:(,? |T)([0-9]{1,2}):[0-9]{2}(:[0-9]{2})?( ?[AaPp][Mm])?)?$`

// Dates in numbers, perhaps with a time: with the year last, or first as in eastern Asia. ISO dates are neither.
var (
	yearLast  = lazyregexp.New(`^([0-9]{1,2})([./-])([0-9]{1,2})([./-])([0-9]{4}|[0-9]{2})` + dateTime)
	yearFirst = lazyregexp.New(`^[0-9]{4}(/|\. ?|年|년 ?)([0-9]{1,2})(/|\. ?|月|월 ?)([0-9]{1,2})(\.|日|일)?` + dateTime)
)

// dateForm is a way in which numeric dates of a column are written.
type dateForm struct {
	sign       string // between the numbers, or behind a year that is first
	year, time string // in letters of the step date
	short      bool   // some days or months have one digit

	first      bool   // the year is
	month, day string // signs behind them then
}

// dateForms are the ways of a column, and what its numbers say of the order of day and
// month, by the sign between them.
type dateForms struct {
	list               []dateForm
	dayFirst, dayAfter map[string]bool // some first, or second, number is more than 12
}

// mostForms is how many ways one column may have.
const mostForms = 3

// dateStep is the step that makes ISO dates of a column whose dates are in numbers, and
// what a person should know of it. A column in which day and month could change places
// stays as it is, and the person is asked.
func (c *column) dateStep() (step, remark string) {
	forms := dateForms{dayFirst: map[string]bool{}, dayAfter: map[string]bool{}}
	others := false
	for _, cell := range c.cells {
		last, first := yearLast().FindStringSubmatch(cell), yearFirst().FindStringSubmatch(cell)
		switch {
		case last != nil && last[2] == last[4]:
			forms.addYearLast(last)
		case first != nil && (first[1] == "/") == (first[3] == "/"):
			form := dateForm{sign: first[1], month: first[3], day: first[5], first: true, year: "YYYY", time: timeOf(first[6], first[7], first[8], first[9])}
			forms.add(form, first[2], first[4])
		default:
			others = others || cell != ""
		}
	}
	switch {
	case len(forms.list) == 0:
		return "", ""
	case others, len(forms.list) > mostForms:
		return "", "? as it is: its dates are written in several ways"
	}
	for _, f := range forms.list {
		if forms.dayFirst[f.sign] && forms.dayAfter[f.sign] {
			return "", "? as it is: in some rows the day comes first, in others the month"
		}
	}
	if sure := forms.step("DM"); sure == forms.step("MD") {
		return sure, ""
	}
	ways := "Say apply: [" + quoted(forms.step("DM")) + "] or [" + quoted(forms.step("MD")) + "]"
	return "", "? as it is: day or month first? " + strings.ReplaceAll(ways, " ", noBreak)
}

// addYearLast takes the parts of a date.
func (f *dateForms) addYearLast(m []string) {
	first, _ := strconv.Atoi(m[1])
	second, _ := strconv.Atoi(m[3])
	sign := m[2]
	f.dayFirst[sign], f.dayAfter[sign] = f.dayFirst[sign] || first > 12, f.dayAfter[sign] || second > 12
	f.add(dateForm{sign: sign, year: strings.Repeat("Y", len(m[5])), time: timeOf(m[6], m[7], m[8], m[9])}, m[1], m[3])
}

// add takes the form of a date, and its day and month in either order.
func (f *dateForms) add(form dateForm, one, other string) {
	i := slices.IndexFunc(f.list, func(known dateForm) bool {
		known.short = false
		return known == form
	})
	if i < 0 {
		i, f.list = len(f.list), append(f.list, form)
	}
	f.list[i].short = f.list[i].short || len(one) == 1 || len(other) == 1
}

// timeOf is the time of a date in letters, with what stands before it.
func timeOf(before, hour, seconds, half string) string {
	if hour == "" {
		return ""
	}
	text := before + "HH:mm"
	if half != "" {
		text = before + "h:mm"
	}
	if seconds != "" {
		text += ":ss"
	}
	if half != "" {
		text += strings.Repeat(" ", len(half)-len("am")) + "a"
	}
	return text
}

// step reads each of the forms, with day and month in the order of the letters where
// nothing tells it: dates with points begin with the day.
func (f *dateForms) step(unsure string) string {
	var layouts []string
	for _, form := range f.list {
		order := unsure
		switch {
		case f.dayAfter[form.sign]:
			order = "MD"
		case f.dayFirst[form.sign], form.sign == ".":
			order = "DM"
		}
		if form.first {
			order = "MD"
		}
		first, second := order[:1], order[1:]
		if !form.short {
			first, second = first+first, second+second
		}
		if form.first {
			layouts = append(layouts, form.year+form.sign+first+form.month+second+form.day+form.time)
			continue
		}
		layouts = append(layouts, first+form.sign+second+form.sign+form.year+form.time)
	}
	return "date:" + strings.Join(layouts, "|")
}
