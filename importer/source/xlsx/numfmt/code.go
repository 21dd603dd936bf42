package numfmt

import (
	"regexp"
	"strconv"
	"strings"
)

// pieces parts a code: words, quoted text, what stands in brackets, a sign with the
// character that it quotes or stands for, runs of the letters of dates, and single characters.
var pieces = regexp.MustCompile(`(?is)general|"[^"]*"?|\[[^\]]*\]|[\\_*].?|y+|m+|d+|h+|s+|am/pm|a/p|e[+-]|.`)

// token is a piece of a section. Its kind is a place for a digit ('0', '#', '?'), the
// point ('.'), a part of a date by its letter ('y', 'm', …), of a duration by the
// capital one ('H', 'M', 'S'), a half of the day ('a'), a minute ('n'), the years of a
// calendar that is not ours ('e'), an exponent ('E'), the general format ('G'), a place
// for text ('@'), or text: quoted ('"') or what is text where it means nothing (',', '/', '%').
type token struct {
	kind byte
	text string
}

// isPlace tells whether the token is a place for a digit.
func (t token) isPlace() bool { return t.kind == '0' || t.kind == '#' || t.kind == '?' }

// places count what the tokens of a section ask for.
type places struct {
	whole, fraction int // places for digits before and behind the point
	zeros           int // of those before the point, from the first '0' on
	scale           int // powers of ten: two for each percent sign, minus three for each comma behind the places
	grouped         bool
}

// compiler is the state of reading one section.
type compiler struct {
	section
	kinds    strings.Builder // of the tokens
	numerals bool            // digits that are not ours, which are written in ours
	language string          // of months and weekdays; "" is English
	system   string          // the code instead of a date or time in the system's own looks
}

// compileSection reads the pieces of one section.
func compileSection(code []string) section {
	var c compiler
	for _, piece := range code {
		c.add(piece)
	}
	c.count()
	has := func(kinds string) bool { return strings.ContainsAny(c.kinds.String(), kinds) }
	c.forText = has("@")
	switch {
	case has("G"):
		c.kind = general
	case c.system != "":
		iso := compileSection(pieces.FindAllString(c.system, -1))
		iso.test, iso.limit = c.test, c.limit
		return iso
	case has("E"):
		c.kind = scientific
	case has("ymdhsaeHMS") && c.places.whole == 0: // else its letters are text that lacks quotes
		c.kind = c.dateKind()
	case c.forText:
		c.kind = general
	case has("/"):
		c.kind = c.fractionKind()
	default:
		c.kind = digits
	}
	return c.section
}

// add reads one piece.
func (c *compiler) add(piece string) {
	first, lower := piece[0], strings.ToLower(piece)
	switch {
	case lower == "general":
		c.token('G', "")
	case first == '"':
		c.text(strings.TrimSuffix(piece[1:], `"`))
	case first == '[' && len(piece) > 1:
		c.bracket(piece[1 : len(piece)-1])
	case first == '\\':
		c.text(piece[1:])
	case first == '_': // as wide as the character that follows
		c.text(" ")
	case first == '*': // fills the cell with the character that follows
	case lower == "am/pm", lower == "a/p":
		c.token('a', piece)
	case lower[0] == 'e' && len(piece) > 1:
		c.token('E', "")
	case strings.IndexByte("egbr", lower[0]) >= 0:
		c.token('e', piece)
	case strings.IndexByte("ymdhs", lower[0]) >= 0:
		c.token(lower[0], piece)
	case first == '0', first == '#', first == '?', first == '@':
		c.token(first, "")
	case first == '.', first == ',', first == '/', first == '%':
		c.token(first, piece)
	default:
		c.text(piece)
	}
}

func (c *compiler) token(kind byte, text string) {
	c.tokens = append(c.tokens, token{kind, text})
	c.kinds.WriteByte(kind)
}

func (c *compiler) text(text string) {
	if text != "" {
		c.token('"', text)
	}
}

// bracket reads what stands in brackets: a condition, a currency, a language, a
// count of hours that goes beyond the day, or a colour.
func (c *compiler) bracket(inner string) {
	lower := strings.ToLower(inner)
	switch {
	case strings.HasPrefix(inner, "$"):
		sign, language, _ := strings.Cut(inner[1:], "-")
		c.text(sign)
		switch language = strings.ToLower(language); language {
		case "f800", "x-sysdate":
			c.system = "yyyy-mm-dd"
		case "f400", "x-systime":
			c.system = "hh:mm:ss"
		default:
			c.language = language
		}
	case strings.IndexAny(inner, "<=>") == 0:
		test := inner[:len(inner)-len(strings.TrimLeft(inner, "<=>"))]
		limit, err := strconv.ParseFloat(strings.TrimSpace(inner[len(test):]), 64)
		if err == nil {
			c.test, c.limit = test, limit
		}
	case lower != "" && strings.Contains("hms", lower[:1]) && strings.Trim(lower, lower[:1]) == "":
		c.token(lower[0]&^0x20, lower)
	case strings.HasPrefix(lower, "dbnum"):
		c.numerals = true
	}
}

// count counts the places. Commas between places before the point group the digits by
// three; those behind all of them scale the number. A second point is text.
func (c *compiler) count() {
	p, point, commas := &c.places, false, 0
	for i, t := range c.tokens {
		switch {
		case t.kind == ',':
			commas++
		case t.kind == '%':
			p.scale += 2
		case t.kind == '.' && point:
			c.tokens[i].kind = '"'
		case t.kind == '.':
			point = true
		case !t.isPlace():
		case point:
			p.fraction++
		default:
			if commas > 0 && p.whole > 0 {
				p.grouped, commas = true, 0
			}
			if p.whole++; t.kind == '0' || p.zeros > 0 {
				p.zeros++
			}
		}
	}
	p.scale -= 3 * commas
}
