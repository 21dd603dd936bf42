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

// round gives the digits of a number before and behind the point, those before it with as many zeros at the beginning
// as there are places from the first '0' on.
func (s *section) round(v float64) (whole, fraction string) {
	number, ok := new(big.Rat).SetString(exact(v) + "e" + strconv.Itoa(s.places.scale))
	if !ok {
		return exact(v), strings.Repeat("0", s.places.fraction)
	}
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
