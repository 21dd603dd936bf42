package xlsx

import (
	"math"
	"regexp"
	"strconv"
	"strings"
)

// fractionShape is a section that shows a fraction, one letter a token: whole part,
// numerator, denominator to be found ("# ??/??") or given ("# ?/8"), text. In
// "000/000", "00/00/0000" and "###/###-####" the slash is text.
var fractionShape = regexp.MustCompile(`^([^/.]*?)([?#]+)/(?:([?#0]+)|([1-9][0-9]*))(t*)$`)

// ratio is the fraction of a section whose tokens and places are the whole part.
type ratio struct {
	denominator int // given, or 0
	limit       int // of one that is to be found
	after       []formatToken
}

// fraction reads a section with a slash and says of which kind it is.
func (c *sectionCompiler) fraction() formatKind {
	s := &c.section
	found := fractionShape.FindStringSubmatch(shapeOf(s.tokens))
	switch {
	case s.places.scale != 0:
		return general
	case found == nil:
		return digits
	}
	s.ratio.denominator, _ = strconv.Atoi(found[4])
	s.ratio.limit = int(math.Pow10(min(len(found[3]), 4))) - 1
	s.ratio.after = s.tokens[len(s.tokens)-len(found[5]):]
	s.tokens = s.tokens[:len(found[1])]
	places := strings.NewReplacer("t", "", "/", "").Replace(found[1])
	s.places.whole, s.places.zeros = len(places), len(strings.TrimLeft(places, "#?"))
	return fraction
}

// shapeOf gives each token one letter: places and digits are themselves, text is t.
func shapeOf(tokens []formatToken) string {
	var shape strings.Builder
	for _, t := range tokens {
		switch digit := len(t.text) == 1 && '0' <= t.text[0] && t.text[0] <= '9'; {
		case t.isPlace(), t.kind == '.', t.kind == '/':
			shape.WriteByte(t.kind)
		case digit:
			shape.WriteString(t.text)
		default:
			shape.WriteByte('t')
		}
	}
	return shape.String()
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
