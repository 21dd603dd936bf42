package numfmt

import (
	"math"
	"math/big"
	"strconv"
	"strings"
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

// round gives the digits of a number before and behind the point, those before it without zeros at the beginning.
func (s *section) round(v float64) (whole, fraction string) {
	number, ok := new(big.Rat).SetString(exact(v) + "e" + strconv.Itoa(s.places.scale))
	if !ok {
		return exact(v), strings.Repeat("0", s.places.fraction)
	}
	whole, fraction, _ = strings.Cut(number.FloatString(s.places.fraction), ".")
	return strings.TrimLeft(whole, "0"), fraction
}

// before writes what stands in a place before the point. The first place takes all digits for which there is no
// other; from the first '0' on none stays empty.
func (s *section) before(out *strings.Builder, kind byte, whole string, place int) {
	left := s.places.whole - place // this place and those behind it
	last := len(whole) - left      // the digit of this place; negative where there is none
	first := last
	if place == 0 {
		first = min(0, last)
	}
	for i := first; i <= last; i++ {
		digit := ""
		switch {
		case i >= 0:
			digit = whole[i : i+1]
		case left <= s.places.zeros:
			digit = "0"
		case kind == '?':
			out.WriteByte(' ')
		}
		out.WriteString(digit)
		if behind := len(whole) - 1 - i; s.places.grouped && digit != "" && behind > 0 && behind%3 == 0 {
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
