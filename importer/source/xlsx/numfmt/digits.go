package numfmt

import (
	"math"
	"math/big"
	"regexp"
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

// fractionShape is a section that shows a fraction, one letter a token: whole part, numerator, denominator to be
// found ("# ??/??") or given ("# ?/8"), text. In "000/000", "00/00/0000" and "###/###-####" the slash is text.
var fractionShape = regexp.MustCompile(`^([^/.]*?)([?#]+)/(?:([?#0]+)|([1-9][0-9]*))(t*)$`)

// ratio is the fraction of a section whose tokens and places are the whole part.
type ratio struct {
	denominator int // given, or 0
	limit       int // of one that is to be found
	after       []token
}

// fractionKind reads a section with a slash and says of which kind it is.
func (c *compiler) fractionKind() kind {
	var shape strings.Builder // places and digits are themselves, text is t
	for _, t := range c.tokens {
		switch digit := len(t.text) == 1 && '0' <= t.text[0] && t.text[0] <= '9'; {
		case t.isPlace(), t.kind == '.', t.kind == '/':
			shape.WriteByte(t.kind)
		case digit:
			shape.WriteString(t.text)
		default:
			shape.WriteByte('t')
		}
	}
	found := fractionShape.FindStringSubmatch(shape.String())
	switch {
	case c.places.scale != 0:
		return general
	case found == nil:
		return digits
	}
	c.ratio.denominator, _ = strconv.Atoi(found[4])
	c.ratio.limit = int(math.Pow10(min(len(found[3]), 4))) - 1
	c.ratio.after = c.tokens[len(c.tokens)-len(found[5]):]
	c.tokens = c.tokens[:len(found[1])]
	grouped := c.places.grouped
	c.places = places{}
	c.count()
	c.places.grouped, c.places.scale = grouped, 0
	return fraction
}

// divide writes a number as a fraction, with its whole part where there are places for it.
func (s *section) divide(v float64) string {
	whole := 0.0
	if s.places.whole > 0 {
		whole = math.Floor(math.Abs(v))
	}
	over, under := s.ratio.nearest(math.Abs(v) - whole)
	if over == under && s.places.whole > 0 {
		whole, over = whole+1, 0
	}
	text := s.fill(whole)
	switch {
	case over != 0 || s.places.whole == 0:
		text += " " + strconv.Itoa(over) + "/" + strconv.Itoa(under)
	case whole == 0 && !strings.Contains(text, "0"):
		text += "0"
	}
	for _, t := range s.ratio.after {
		text += t.text
	}
	text = strings.TrimSpace(text)
	if v < 0 {
		return "-" + text
	}
	return text
}

// nearest finds numerator and denominator, the smallest of those that come closest.
func (r ratio) nearest(v float64) (over, under int) {
	if r.denominator != 0 {
		return int(math.Round(v * float64(r.denominator))), r.denominator
	}
	closest := math.Inf(1)
	for d := 1; d <= r.limit; d++ {
		n := math.Round(v * float64(d))
		if off := math.Abs(v - n/float64(d)); off < closest {
			closest, over, under = off, int(n), d
		}
	}
	return over, under
}
