package xlsx

import (
	"math"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// formatToken is a piece of a section: a place for a digit ('0', '#', '?'), the
// point ('.'), a part of a date by its letter ('y', 'm', …), of a duration by the
// capital one ('H', 'M', 'S'), a half of the day ('a'), a minute ('n'), or text:
// quoted ('"') or what is text where it means nothing (',', '/').
type formatToken struct {
	kind byte
	text string
}

// isPlace tells whether the token is a place for a digit.
func (t formatToken) isPlace() bool { return t.kind == '0' || t.kind == '#' || t.kind == '?' }

// places count what the tokens of a section ask for.
type places struct {
	whole, fraction int // places for digits before and behind the point
	zeros           int // of those before the point, from the first '0' on
	scale           int // powers of ten: two for each percent sign, minus three for each comma behind the places
	grouped         bool
}

// padded tells whether a number with fewer digits than places gets zeros before it.
func (p places) padded() bool { return p.zeros > 1 }

// compileSection reads one section.
func compileSection(code string) section {
	c := sectionCompiler{section: section{kind: digits}, rest: code}
	for c.rest != "" {
		c.step()
	}
	c.finish()
	return c.section
}

// sectionCompiler is the state of reading one section.
type sectionCompiler struct {
	section  section
	rest     string
	commas   int // since the last place before the point
	point    bool
	exponent bool
	slash    bool
	general  bool
	dateish  bool
	numerals bool       // digits that are not ours, which are written in ours
	language string     // of months and weekdays; "" is English
	system   formatKind // isoDate or isoTime where the section asks for the system's own
}

// step reads one token.
func (c *sectionCompiler) step() {
	first := c.rest[0]
	switch {
	case strings.HasPrefix(strings.ToLower(c.rest), "general"):
		c.general = true
		c.rest = c.rest[len("general"):]
	case first == '"':
		text, rest, _ := strings.Cut(c.rest[1:], `"`)
		c.text(text)
		c.rest = rest
	case first == '[':
		inner, rest, _ := strings.Cut(c.rest[1:], "]")
		c.bracket(inner)
		c.rest = rest
	case first == '\\' || first == '_' || first == '*':
		size := 1
		if len(c.rest) > 1 {
			_, n := utf8.DecodeRuneInString(c.rest[1:])
			size += n
		}
		switch first { // "_x" is as wide as x is, "*x" fills the cell
		case '\\':
			c.text(c.rest[1:size])
		case '_':
			c.text(" ")
		}
		c.rest = c.rest[size:]
	case strings.IndexByte("ymdhs", first|0x20) >= 0:
		c.letters(first | 0x20)
	default:
		if half := halfOfDay.FindString(c.rest); half != "" {
			c.dateish = true
			c.add('a', half)
			c.rest = c.rest[len(half):]
			return
		}
		_, size := utf8.DecodeRuneInString(c.rest)
		c.plain(c.rest[:size])
		c.rest = c.rest[size:]
	}
}

var halfOfDay = regexp.MustCompile(`^(?i:am/pm|a/p)`)

// letters reads a part of a date: all that follow of the same letter.
func (c *sectionCompiler) letters(letter byte) {
	size := 1
	for size < len(c.rest) && c.rest[size]|0x20 == letter {
		size++
	}
	c.dateish = true
	c.add(letter, c.rest[:size])
	c.rest = c.rest[size:]
}

// plain reads a character that is not quoted.
func (c *sectionCompiler) plain(char string) {
	p := &c.section.places
	switch char {
	case "0", "#", "?":
		c.place(char[0])
	case ".":
		if !c.point {
			c.point = true
			c.add('.', "")
		} else {
			c.text(char)
		}
	case ",":
		c.commas++
		c.add(',', char)
	case "%":
		p.scale += 2
		c.text(char)
	case "@":
		c.section.forText = true
	case "/":
		c.slash = true
		c.add('/', char)
	case "E", "e":
		c.exponent = c.exponent || strings.HasPrefix(c.rest[1:], "+") || strings.HasPrefix(c.rest[1:], "-")
		c.era(char, !c.exponent)
	case "g", "G", "b", "B", "r", "R":
		c.era(char, true)
	default:
		c.text(char)
	}
}

// era reads a letter that stands, in a date, for the years of a calendar that is
// not ours.
func (c *sectionCompiler) era(letter string, dateish bool) {
	c.dateish = c.dateish || dateish
	c.add('e', letter)
}

// place notes a place for a digit. Commas between places before the point group
// the digits by three.
func (c *sectionCompiler) place(kind byte) {
	p := &c.section.places
	if c.point {
		p.fraction++
	} else {
		if c.commas > 0 && p.whole > 0 {
			p.grouped = true
			c.commas = 0
		}
		p.whole++
		if kind == '0' || p.zeros > 0 {
			p.zeros++
		}
	}
	c.add(kind, "")
}

// bracket reads what stands in brackets: a condition, a currency, a language, a
// count of hours that goes beyond the day, or a colour.
func (c *sectionCompiler) bracket(inner string) {
	lower := strings.ToLower(inner)
	switch {
	case strings.HasPrefix(inner, "$"):
		sign, language, _ := strings.Cut(inner[1:], "-")
		c.text(sign)
		switch language = strings.ToLower(language); language {
		case "f800", "x-sysdate":
			c.system = isoDate
		case "f400", "x-systime":
			c.system = isoTime
		default:
			c.language = language
		}
	case strings.IndexAny(inner, "<=>") == 0:
		test := inner[:len(inner)-len(strings.TrimLeft(inner, "<=>"))]
		limit, err := strconv.ParseFloat(strings.TrimSpace(inner[len(test):]), 64)
		if err == nil {
			c.section.test, c.section.limit = test, limit
		}
	case lower != "" && strings.Contains("hms", lower[:1]) && strings.Trim(lower, lower[:1]) == "":
		c.dateish = true
		c.add(lower[0]&^0x20, lower)
	case strings.HasPrefix(lower, "dbnum"):
		c.numerals = true
	}
}

func (c *sectionCompiler) text(text string) {
	if text != "" {
		c.add('"', text)
	}
}

func (c *sectionCompiler) add(kind byte, text string) {
	c.section.tokens = append(c.section.tokens, formatToken{kind, text})
}

// finish decides what kind of section has been read.
func (c *sectionCompiler) finish() {
	s := &c.section
	s.places.scale -= 3 * c.commas
	switch {
	case c.general:
		s.kind = general
	case c.system != general:
		s.kind = c.system
	case c.exponent:
		s.kind = scientific
	case c.dateish && s.places.whole == 0: // else its letters are text that lacks quotes
		s.kind = c.date()
	case s.forText:
		s.kind = general
	case c.slash:
		s.kind = c.fraction()
	}
}

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
		case !t.isPlace() && t.kind != '.':
			out.WriteString(t.text)
		case t.kind == '.':
			if place == 0 {
				out.WriteString(whole) // ".00" has no place for the digits before the point
			}
			out.WriteByte('.')
			place, point = 0, true
		case point:
			out.WriteString(s.behind(t.kind, fraction, place))
			place++
		default:
			out.WriteString(s.before(t.kind, whole, place))
			place++
		}
	}
	return strings.TrimSpace(out.String())
}

// round gives the digits of a number before and behind the point, those before
// it without zeros at the beginning.
func (s *section) round(v float64) (whole, fraction string) {
	number, ok := new(big.Rat).SetString(exact(v))
	if !ok {
		return exact(v), ""
	}
	scale := new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(s.places.scale, -s.places.scale))), nil))
	if s.places.scale < 0 {
		scale.Inv(scale)
	}
	whole, fraction, _ = strings.Cut(number.Mul(number, scale).FloatString(s.places.fraction), ".")
	return strings.TrimLeft(whole, "0"), fraction
}

// before is what stands in a place before the point. The first place takes all
// digits for which there is no other; from the first '0' on none stays empty.
func (s *section) before(kind byte, whole string, place int) string {
	left := s.places.whole - place // this place and those behind it
	var out strings.Builder
	first, last := len(whole)-left, len(whole)-left
	if place == 0 {
		first = min(0, first)
	}
	for i := first; i <= last; i++ {
		digit := ""
		switch {
		case i >= 0:
			digit = whole[i : i+1]
		case i < last:
			continue
		case left <= s.places.zeros:
			digit = "0"
		case kind == '?':
			digit = " "
		}
		out.WriteString(digit)
		if behind := len(whole) - 1 - i; s.places.grouped && digit != "" && digit != " " && behind > 0 && behind%3 == 0 {
			out.WriteByte(',')
		}
	}
	return out.String()
}

// behind is what stands in a place behind the point.
func (s *section) behind(kind byte, fraction string, place int) string {
	if kind == '0' || strings.Trim(fraction[place:], "0") != "" {
		return fraction[place : place+1]
	}
	if kind == '?' {
		return " "
	}
	return ""
}
