package propose

import (
	"regexp"
	"strconv"
	"strings"
)

// numericDate is a date in numbers with the year last, and perhaps a time.
var numericDate = regexp.MustCompile(`^([0-9]{1,2})([./-])([0-9]{1,2})([./-])([0-9]{4}|[0-9]{2})(?:(,? |T)([0-9]{1,2}):[0-9]{2}(:[0-9]{2})?( ?[AaPp][Mm])?)?$`)

// dateForm is how the numeric dates of a column are written, as far as all agree.
type dateForm struct {
	sign         string // between the numbers
	short        bool   // some days or months have one digit
	year, time   string // in letters of the step date
	first, third bool   // some first or second number is more than 12, and can be no month
}

// dateStep is the step that makes ISO dates of a column whose dates are in numbers, and
// what a person should know of it. A column in which day and month could change places
// stays as it is, and the person is asked.
func (c *column) dateStep() (step, remark string) {
	var form dateForm
	n := 0
	for _, cell := range c.cells {
		m := numericDate.FindStringSubmatch(cell)
		switch {
		case cell == "":
		case m == nil && n > 0:
			return "", "? as it is: its dates are written in several ways"
		case m == nil:
			return "", ""
		case !form.add(m, n == 0):
			return "", "? as it is: its dates are written in several ways"
		default:
			n++
		}
	}
	dayFirst, monthFirst := "date:"+form.layout("D", "M"), "date:"+form.layout("M", "D")
	switch {
	case n == 0:
		return "", ""
	case form.first && form.third:
		return "", "? as it is: in some rows the day comes first, in others the month"
	case form.first, form.sign == "." && !form.third:
		return dayFirst, ""
	case form.third:
		return monthFirst, ""
	}
	ways := "Say apply: [" + quoted(dayFirst) + "] or [" + quoted(monthFirst) + "]"
	return "", "? as it is: day or month first? " + strings.ReplaceAll(ways, " ", noBreak)
}

// add takes a date's parts, and reports whether it is written as those before.
func (f *dateForm) add(m []string, begins bool) bool {
	day, _ := strconv.Atoi(m[1])
	month, _ := strconv.Atoi(m[3])
	f.first, f.third = f.first || day > 12, f.third || month > 12
	f.short = f.short || len(m[1]) == 1 || len(m[3]) == 1
	year, clock := strings.Repeat("Y", len(m[5])), ""
	switch hour := "HH:mm"; {
	case m[7] == "":
	case m[9] != "":
		hour = "h:mm"
		fallthrough
	default:
		clock = m[6] + hour
		if m[8] != "" {
			clock += ":ss"
		}
		if m[9] != "" {
			clock += strings.Repeat(" ", len(m[9])-2) + "a"
		}
	}
	same := begins || f.sign == m[2] && f.year == year && f.time == clock
	f.sign, f.year, f.time = m[2], year, clock
	return same && m[2] == m[4]
}

func (f *dateForm) layout(first, second string) string {
	if !f.short {
		first, second = first+first, second+second
	}
	return first + f.sign + second + f.sign + f.year + f.time
}
