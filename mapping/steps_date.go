package mapping

import (
	"strings"
	"time"
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
