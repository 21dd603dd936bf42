package numfmt

import (
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"
)

// fill writes a number into the places of a section, rounded half away from zero.
func (s *section) fill(v float64) string {
	whole, fraction := s.round(math.Abs(v))
	var out strings.Builder
	if v < 0 {
		out.WriteByte('-')
	}
	place, point := 0, false
	for _, t := range s.tokens {
		switch {
		case t.kind == ',' || 'H' <= t.kind && t.kind <= 'S': // commas are written between digits
		case t.kind == '.':
			if place == 0 {
				out.WriteString(whole) // ".00" has no place for the digits before the point
			}
			out.WriteByte('.')
			place, point = 0, true
		case !t.isPlace():
			out.WriteString(t.text)
		case point:
			out.WriteString(behind(t.kind, fraction[place:]))
			place++
		default:
			s.before(&out, t.kind, whole, place)
			place++
		}
	}
	return strings.TrimSpace(out.String())
}

// round gives the digits of a number before and behind the point, those before it with as many zeros at the beginning
// as there are places from the first '0' on.
func (s *section) round(v float64) (whole, fraction string) {
	number, _ := new(big.Rat).SetString(exact(v) + "e" + strconv.Itoa(s.places.scale)) // digits, which it takes
	whole, fraction, _ = strings.Cut(number.FloatString(s.places.fraction), ".")
	whole = strings.TrimLeft(whole, "0")
	return strings.Repeat("0", max(0, s.places.zeros-len(whole))) + whole, fraction
}

// before writes what stands in a place before the point. The first place takes all digits for which there is no other.
func (s *section) before(out *strings.Builder, kind byte, whole string, place int) {
	digit := len(whole) - (s.places.whole - place) // of this place; negative where there is none
	if digit < 0 && kind == '?' {
		out.WriteByte(' ')
	}
	first := max(digit, 0)
	if place == 0 {
		first = 0
	}
	for i := first; i <= digit; i++ {
		out.WriteByte(whole[i])
		if behind := len(whole) - 1 - i; s.places.grouped && behind > 0 && behind%3 == 0 {
			out.WriteByte(',')
		}
	}
}

// behind is what stands in a place behind the point, for which these digits are left.
func behind(kind byte, left string) string {
	switch {
	case kind == '0' || strings.Trim(left, "0") != "":
		return left[:1]
	case kind == '?':
		return " "
	}
	return ""
}

// The days after the last one that Excel shows, 9999-12-31, counted from 1900 and from 1904.
const (
	endOf1900 = 2958466
	endOf1904 = 2957004
)

// anyDate is the format of dates of which the number alone says whether they have a time.
var anyDate = Format{{kind: date}}

// date writes the date, the time or the duration of a number, rounded to the smallest part that the section shows of
// a second. Excel fills the cell with # for those before the first day and after the last.
func (s *section) date(v float64, from1904 bool) (string, error) {
	if v < 0 || v >= endOf1900 || from1904 && v >= endOf1904 {
		return "", ErrDate
	}
	parts := int64(math.Pow10(s.places.fraction)) // of a second
	total := int64(math.Round(v * 86400 * float64(parts)))
	m := moment{second: total / parts, fraction: int(total % parts), places: s.places.fraction}
	if s.kind == duration {
		return m.duration(s.tokens), nil
	}
	day, timed := s.day, s.time
	if !day && !timed {
		day, timed = m.second >= 86400 || m.second == 0, m.second%86400 != 0
	}
	return m.iso(day, timed, from1904), nil
}

// Date writes a date or a time of the day that a cell holds in words, as the format shows those that are numbers; in a
// format that is none of dates, as it is. It is not ok for years that Excel has not.
func (f Format) Date(at time.Time) (text string, ok bool) {
	s := &f[0]
	day, timed := s.day, s.time
	if s.kind != date || !day && !timed {
		day, timed = at.Year() > 0, at.Year() == 0 || at.Hour()+at.Minute()+at.Second() > 0
	}
	form := time.DateOnly + " " + time.TimeOnly
	switch {
	case at.Year() == 0 && day, at.Year() > 0 && at.Year() < 1900:
		return "", false
	case !day:
		form = time.TimeOnly
	case !timed:
		form = time.DateOnly
	}
	return at.Format(form), true
}

// calendar is the date of a day's number. Excel takes 1900 for a leap year, and calls the day before the first one
// 1900-01-00.
func calendar(n int, from1904 bool) (year, month, day int) {
	if from1904 {
		n += 1462
	}
	switch {
	case n == 0:
		return 1900, 1, 0
	case n == 60:
		return 1900, 2, 29
	case n < 60:
		n++
	}
	y, m, d := time.Date(1899, 12, 30+n, 0, 0, 0, 0, time.UTC).Date()
	return y, int(m), d
}

// dateKind reads a section as the code of a date and says of which kind it is. Dates are written in ISO 8601, whatever
// the code: in which order it has day and month, and in which language, nobody could tell from the text. Minutes and
// seconds without an hour, and hours beyond the day, are durations.
func (c *compiler) dateKind() kind {
	c.places.fraction = min(c.places.fraction, 3) // Excel has no more
	last := -1                                    // the token of a date or time before
	for i, t := range c.tokens {
		if strings.IndexByte("ymdhsHMS", t.kind) < 0 {
			continue
		}
		// Months and minutes have one letter: it is the minute behind an hour and before a second.
		if last >= 0 && c.tokens[last].isMonth() && t.kind == 's' {
			c.tokens[last].kind = 'n'
		}
		if last >= 0 && t.isMonth() && strings.IndexByte("hsHS", c.tokens[last].kind) >= 0 {
			c.tokens[i].kind = 'n'
		}
		last = i
	}
	for _, t := range c.tokens {
		c.day = c.day || strings.IndexByte("ymde", t.kind) >= 0
		c.time = c.time || strings.IndexByte("ha", t.kind) >= 0
	}
	if !c.day && !c.time {
		return duration
	}
	c.time = c.time || strings.ContainsAny(c.kinds.String(), "sHMS")
	return date
}

// isMonth tells whether the token may be a month, as a number, or a minute.
func (t token) isMonth() bool { return t.kind == 'm' && len(t.text) < 3 }

// moment is what a date is written from.
type moment struct {
	second           int64 // since the first day
	fraction, places int   // of a second, and how many digits it has
}

func (m moment) iso(day, timed, from1904 bool) string {
	out := make([]byte, 0, len(time.DateTime)+4)
	if day {
		year, month, day := calendar(int(m.second/86400), from1904)
		out = append(number(append(number(append(number(out, year, 4), '-'), month, 2), '-'), day, 2), ' ')
	}
	if timed {
		hour, minute, second := m.second/3600%24, m.second/60%60, m.second%60
		out = number(append(number(append(number(out, int(hour), 2), ':'), int(minute), 2), ':'), int(second), 2)
		out = m.appendFraction(out)
	}
	return strings.TrimSpace(string(out))
}

func (m moment) appendFraction(out []byte) []byte {
	if m.places > 0 {
		out = number(append(out, '.'), m.fraction, m.places)
	}
	return out
}

func number(out []byte, n, width int) []byte {
	for limit := int(math.Pow10(width - 1)); n < limit && limit > 1; limit /= 10 {
		out = append(out, '0')
	}
	return strconv.AppendInt(out, int64(n), 10)
}

// duration writes a time that has no day as the code says.
func (m moment) duration(tokens []token) string {
	var out []byte
	for i, t := range tokens {
		width := len(t.text)
		switch t.kind {
		case 'H':
			out = number(out, int(m.second/3600), width)
		case 'M':
			out = number(out, int(m.second/60), width)
		case 'S':
			out = number(out, int(m.second), width)
		case 'n':
			out = number(out, int(m.second/60%60), min(width, 2))
		case 's':
			out = number(out, int(m.second%60), min(width, 2))
		case '.':
			if i+1 < len(tokens) && tokens[i+1].isPlace() {
				out = m.appendFraction(out)
			} else {
				out = append(out, '.')
			}
		case '0', '#', '?':
		default:
			out = append(out, t.text...)
		}
	}
	return strings.TrimSpace(string(out))
}
