// Package numfmt writes the numbers of a workbook's cells as their number formats show them (ECMA-376 part 1,
// 18.8.30 and 18.8.31): digits, fractions, dates and durations.
//
// It stands below xlsx and knows no file. Its promises: no digit of a number is rounded away for want of room, and
// what Excel would not show, or has lost, is an error.
package numfmt

import (
	"errors"
	"math"
	"strconv"
	"strings"

	"leadferry/internal/spelling"
)

// Why a number cannot be taken as it is shown.
var (
	ErrDigits = errors.New("a number of more than 15 digits, of which Excel keeps only 15")
	ErrDate   = errors.New("a number that is no date but has the format of one")
)

// Shown is a number as it is shown.
type Shown struct {
	Text     string
	Number   bool // the number as it is, that may have lost zeros before it
	Date     bool // a date or a time of the day, in ISO 8601
	Exponent bool // the format shows an exponent, the text does not
	Blanked  bool // the format shows nothing of it
}

// Format is a number format: sections, each for some numbers.
type Format []section

// General is the format of numbers that have no other.
var General = Format{{kind: general}}

// kind says how a number becomes text.
type kind uint8

const (
	general    kind = iota // all its digits
	digits                 // places for digits
	scientific             // with an exponent, which the text does not have: all its digits
	date                   // a date, a time of the day, or both
	duration               // hours, minutes or seconds beyond the day, or of no day, as the code says
)

// section is the part of a number format for some numbers.
type section struct {
	kind    kind
	forText bool   // it has a place for text
	test    string // "<", "<=", "=", "<>", ">=", ">" or ""
	limit   float64
	tokens  []token
	places  places
	day     bool // a date shows the day
	time    bool // a date shows the time
}

// maxCode is how long Excel lets the code of a format be, in characters.
const maxCode = 255

// Compile reads the code of a number format.
func Compile(code string) Format {
	if code == "" || len(code) > 4*maxCode { // ClosedXML writes the general format with an empty code
		return General
	}
	var f Format
	var part []string
	for _, piece := range pieces().FindAllString(code, -1) {
		if piece == ";" {
			f, part = append(f, compileSection(part)), nil
		} else {
			part = append(part, piece)
		}
	}
	f = append(f, compileSection(part))
	// The last section is for text when it has a place for text.
	if last := len(f) - 1; last > 2 || last > 0 && f[last].forText {
		f = f[:min(last, 3)]
	}
	return f
}

// builtIn are the codes of number formats that workbooks do not write out and that do not show all digits. The currency
// of 5 to 8, 42 and 44 is that of the system on which a workbook is shown; the number stands without it here.
var builtIn = map[int]string{
	1: "0", 2: "0.00", 3: "#,##0", 4: "#,##0.00", 9: "0%", 10: "0.00%", 11: "0.00E+00", 48: "##0.0E+0",
	59: "0", 60: "0.00", 61: "#,##0", 62: "#,##0.00", 67: "0%", 68: "0.00%",
	5: "#,##0_);(#,##0)", 6: "#,##0_);(#,##0)", 37: "#,##0_);(#,##0)", 38: "#,##0_);(#,##0)",
	7: "#,##0.00_);(#,##0.00)", 8: "#,##0.00_);(#,##0.00)", 39: "#,##0.00_);(#,##0.00)", 40: "#,##0.00_);(#,##0.00)",
	41: accounting, 42: accounting, 43: accounting2, 44: accounting2,
	14: "yyyy-mm-dd", 15: "yyyy-mm-dd", 16: "yyyy-mm-dd", 17: "yyyy-mm-dd", 22: "yyyy-mm-dd hh:mm:ss",
	18: "hh:mm:ss", 19: "hh:mm:ss", 20: "hh:mm:ss", 21: "hh:mm:ss", 45: "mm:ss", 46: "[h]:mm:ss", 47: "mm:ss.0",
}

const (
	accounting  = `_(* #,##0_);_(* \(#,##0\);_(* "-"_);_(@_)`
	accounting2 = `_(* #,##0.00_);_(* \(#,##0.00\);_(* "-"_);_(@_)`
)

// BuiltIn is the number format of an identifier for which a workbook has no code. Dates of East Asia and Thailand
// differ by language.
func BuiltIn(id int) Format {
	code, known := builtIn[id]
	switch {
	case id >= 27 && id <= 36, id >= 50 && id <= 58, id >= 71 && id <= 81:
		return anyDate
	case known:
		return Compile(code)
	}
	return General
}

// Show writes a number, whose days count from 1904 if they are days and not from 1900. Its error is ErrDigits or
// ErrDate.
func (f Format) Show(v float64, from1904 bool) (Shown, error) {
	s, shown := f.choose(v)
	switch {
	case s.kind == date, s.kind == duration:
		text, err := s.date(v, from1904)
		return Shown{Text: text, Date: s.kind == date}, err
	case math.Abs(v) >= exactLimit:
		return Shown{}, ErrDigits
	case s.kind == digits:
		text := s.fill(shown)
		return Shown{Text: text, Number: s.places.zeros <= 1, Blanked: text == ""}, nil
	}
	return Shown{Text: exact(v), Number: true, Exponent: s.kind == scientific}, nil
}

// choose finds the section for a number, and the number that it shows: those for negative numbers show them without
// sign.
func (f Format) choose(v float64) (s *section, shown float64) {
	tested := false
	for i := range f {
		if s := &f[i]; s.test != "" {
			tested = true
			if s.holds(v) {
				return s, v
			}
		}
	}
	n := len(f)
	switch {
	case tested && f[n-1].test == "":
		return &f[n-1], v
	case tested:
		return &section{kind: general}, v
	case v < 0 && n > 1:
		return &f[1], -v
	case v == 0 && n > 2:
		return &f[2], v
	}
	return &f[0], v
}

// holds says that a number is one of those that the section is for.
func (s *section) holds(v float64) bool {
	return v < s.limit && strings.Contains(s.test, "<") ||
		v > s.limit && strings.Contains(s.test, ">") ||
		v == s.limit && strings.Contains(s.test, "=")
}

// IsGeneral says that the format is that of numbers that have no other, which shows all digits.
func (f Format) IsGeneral() bool { return len(f) == 1 && f[0].kind == general && f[0].test == "" }

// exact is a number with the 15 digits that Excel holds, never with an exponent.
func exact(v float64) string {
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 15, 64), 64)
	if rounded == 0 {
		return "0"
	}
	return strconv.FormatFloat(rounded, 'f', -1, 64)
}

// exactLimit is the first whole number that has more digits than Excel holds. None of those behind the point count,
// which no phone number and no identifier has.
const exactLimit = 1e15

// pieces parts a code: words, quoted text, what stands in brackets, a sign with the character that it quotes or
// stands for, runs of the letters of dates, and single characters.
var pieces = spelling.Form(`(?is)general|"[^"]*"?|\[[^\]]*\]|[\\_*].?|y+|m+|d+|h+|s+|am/pm|a/p|e[+-]|.`)

// fractions are codes with numerator and denominator, as "# ??/??" and "# ?/8": their numbers are shown with all their
// digits. In "00/00/0000" and "###/###-####" the slash is text.
var fractions = spelling.Form(`^[^/.]*[?#]/([?#0]+|[1-9][0-9]*)[^?#0./]*$`)

// token is a piece of a section. Its kind is a place for a digit ('0', '#', '?'), the point ('.'), a part of a date
// by its letter ('y', 'm', …), of a duration by the capital one ('H', 'M', 'S'), a half of the day ('a'), a minute
// ('n'), the years of a calendar that is not ours ('e'), an exponent ('E'), the general format ('G'), a place for
// text ('@'), or text: quoted ('"') or what is text where it means nothing (',', '/', '%').
type token struct {
	kind byte
	text string
}

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
	kinds  strings.Builder // of the tokens
	system bool            // a date or time in the system's own looks
}

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
	case c.system:
		c.kind = date
	case has("E"):
		c.kind = scientific
	case has("ymdhsaeHMS") && c.places.whole == 0: // else its letters are text that lacks quotes
		c.kind = c.dateKind()
	case c.forText:
		c.kind = general
	case has("/") && fractions().MatchString(strings.Join(code, "")):
		c.kind = general
	default:
		c.kind = digits
	}
	return c.section
}

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

// bracket reads what stands in brackets: a condition, a currency, a count of hours that goes beyond the
// day, or a colour.
func (c *compiler) bracket(inner string) {
	lower := strings.ToLower(inner)
	switch {
	case strings.HasPrefix(inner, "$"):
		sign, language, _ := strings.Cut(inner[1:], "-")
		c.text(sign)
		switch strings.ToLower(language) {
		case "f800", "x-sysdate":
			c.system, c.day = true, true
		case "f400", "x-systime":
			c.system, c.time = true, true
		}
	case strings.IndexAny(inner, "<=>") == 0:
		test := inner[:len(inner)-len(strings.TrimLeft(inner, "<=>"))]
		limit, err := strconv.ParseFloat(strings.TrimSpace(inner[len(test):]), 64)
		if err == nil {
			c.test, c.limit = test, limit
		}
	case lower != "" && strings.Contains("hms", lower[:1]) && strings.Trim(lower, lower[:1]) == "":
		c.token(lower[0]&^0x20, lower)
	}
}

// count counts the places. Commas between places before the point group the digits by three; those behind all of
// them scale the number. A second point is text.
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
