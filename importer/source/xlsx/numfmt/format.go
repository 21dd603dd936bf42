// Package numfmt writes the numbers of a workbook's cells (ECMA-376 part 1, 18.8.30 and 18.8.31): amounts with all their
// digits, dates and times in ISO 8601, and numbers whose format adds zeros or signs, as those of phones, as Excel shows
// them.
//
// It stands below xlsx and knows no file. Its promises: no digit of a number is rounded away, and what Excel would not
// show, or has lost, is an error.
package numfmt

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"time"

	"leadferry/internal/spelling"
)

// Why a number cannot be taken.
var (
	ErrDigits = errors.New("a number of more than 15 digits, of which Excel keeps only 15")
	ErrDate   = errors.New("a number that is no date but has the format of one")
)

// Shown is a number as it is shown.
type Shown struct {
	Text    string
	Number  bool // the number as it is, that may have lost zeros before it
	Date    bool // a date or a time of the day, in ISO 8601
	Blanked bool // the format shows nothing of it
}

// Format is a number format: sections, each for some numbers.
type Format []section

// General is the format of numbers that have no other.
var General = Format{{kind: general}}

// kind says how a number becomes text.
type kind uint8

const (
	general  kind = iota // all its digits
	mask                 // whole numbers with the format's zeros and signs
	date                 // a date, a time of the day, or both
	duration             // hours, minutes and seconds
)

// section is the part of a number format for some numbers.
type section struct {
	kind     kind
	forText  bool   // it has a place for text
	test     string // "<", "<=", "=", "<>", ">=", ">" or ""
	limit    float64
	tokens   []token
	zeros    int  // places for digits, from the first '0' on
	places   int  // for digits
	fraction int  // of these behind the point
	percent  bool // of a hundred
	day      bool // a date shows the day
	time     bool // a date shows the time
}

// token is a piece of a section: a place for a digit ('0', '#', '?'), or text ('"').
type token struct {
	kind byte
	text string
}

// maxCode is how long Excel lets the code of a format be, in characters.
const maxCode = 255

// pieces parts a code: words, quoted text, what stands in brackets, a sign with the character that it quotes or stands
// for, runs of the letters of dates, and single characters.
var pieces = spelling.Form(`(?is)general|"[^"]*"?|\[[^\]]*\]|[\\_*].?|y+|m+|d+|h+|s+|am/pm|a/p|e[+-]|.`)

// fractions are codes with numerator and denominator, as "# ??/??". In "00/00/0000" the slash is text.
var fractions = spelling.Form(`^[^/.]*[?#]/([?#0]+|[1-9][0-9]*)[^?#0./]*$`)

// Compile reads the code of a number format.
func Compile(code string) Format {
	if code == "" || len(code) > 4*maxCode { // ClosedXML writes the general format with an empty code
		return General
	}
	var f Format
	var part []string
	for _, piece := range append(pieces().FindAllString(code, -1), ";") {
		if piece == ";" {
			f, part = append(f, compileSection(part)), nil
		} else {
			part = append(part, piece)
		}
	}
	// The last section is for text when it has a place for text.
	if last := len(f) - 1; last > 2 || last > 0 && f[last].forText {
		f = f[:min(last, 3)]
	}
	return f
}

// builtIn are the codes of number formats that workbooks do not write out and that do not show all digits as they are.
var builtIn = map[int]string{
	9: "0%", 10: "0%", 67: "0%", 68: "0%", 11: "0E+00", 48: "0E+0", 14: "y", 15: "y", 16: "y", 17: "y", 22: "y h:m",
	18: "h:m", 19: "h:m", 20: "h:m", 21: "h:m", 45: "mm:ss", 46: "[h]:mm:ss", 47: "mm:ss.0",
}

// BuiltIn is the number format of an identifier for which a workbook has no code. Dates of East Asia and Thailand
// differ by language; the number alone says whether they have a time.
func BuiltIn(id int) Format {
	if id >= 27 && id <= 36 || id >= 50 && id <= 58 || id >= 71 && id <= 81 {
		return Format{{kind: date}}
	}
	return Compile(builtIn[id])
}

func compileSection(code []string) section {
	var s section
	kinds := "" // of what stands in it: letters of dates, and signs
	point := false
	for _, piece := range code {
		switch first, lower := piece[0], strings.ToLower(piece); {
		case lower == "general":
			kinds += "G"
		case first == '"':
			s.text(strings.TrimSuffix(piece[1:], `"`))
		case first == '[' && len(piece) > 1:
			kinds += s.bracket(piece[1 : len(piece)-1])
		case first == '\\':
			s.text(piece[1:])
		case first == '_' || first == ' ': // as wide as the character that follows
			s.text(" ")
		case first == '*': // fills the cell with the character that follows
		case lower[0] == 'e' && len(piece) > 1:
			kinds += "E"
		case lower == "am/pm" || lower == "a/p":
			kinds += "h"
		case strings.IndexByte("egbr", lower[0]) >= 0: // years of other calendars
			kinds += "y"
			s.text(piece)
		case lower[0] == 'm' && len(piece) > 2: // the name of a month
			kinds += "d"
		case strings.IndexByte("ymdhs", lower[0]) >= 0:
			kinds += lower[:1]
			s.text(piece) // where it is no date, its letters are text that lacks quotes
		case first == '0' || first == '#' || first == '?':
			s.place(first, point)
		case first == '@':
			s.forText = true
		case first == '.' && !point:
			point = true
		case first == ',' || first == '%':
			kinds += piece
		default:
			s.text(piece)
		}
	}
	has := func(any string) bool { return strings.ContainsAny(kinds, any) }
	s.percent = has("%")
	switch slashed := strings.Contains(strings.Join(code, ""), "/") && fractions().MatchString(strings.Join(code, "")); {
	case has("ymdhsH") && s.places-s.fraction == 0 && !has("GE"):
		s.day = has("yd") || has("m") && !has("hsH")
		s.time = has("h") || s.day && has("sH") || !s.day && !has("H")
		if s.kind = date; !s.day && !s.time {
			s.kind = duration
		}
	case !has("G,%E") && !s.forText && !point && !slashed:
		s.kind = mask
	}
	return s
}

func (s *section) text(text string) {
	if text != "" {
		s.tokens = append(s.tokens, token{'"', text})
	}
}

// place adds a place for a digit.
func (s *section) place(sign byte, behind bool) {
	s.places++
	if behind {
		s.fraction++
		return
	}
	if sign == '0' || s.zeros > 0 {
		s.zeros++
	}
	s.tokens = append(s.tokens, token{sign, ""})
}

// bracket reads what stands in brackets: a condition, a currency, a date or time in the system's own looks, a count of
// hours that goes beyond the day, or a colour. It returns the letter of a date.
func (s *section) bracket(inner string) string {
	lower := strings.ToLower(inner)
	switch {
	case strings.HasPrefix(inner, "$"):
		sign, language, _ := strings.Cut(inner[1:], "-")
		s.text(sign)
		return map[string]string{"f800": "y", "x-sysdate": "y", "f400": "h", "x-systime": "h"}[strings.ToLower(language)]
	case strings.IndexAny(inner, "<=>") == 0:
		test := inner[:len(inner)-len(strings.TrimLeft(inner, "<=>"))]
		if limit, err := strconv.ParseFloat(strings.TrimSpace(inner[len(test):]), 64); err == nil {
			s.test, s.limit = test, limit
		}
	case lower != "" && strings.Contains("hms", lower[:1]) && strings.Trim(lower, lower[:1]) == "":
		return "H"
	}
	return ""
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
	case s.kind == mask && v == math.Trunc(v) && (v != 0 || s.zeros > 0 || s.places == 0):
		text := s.fill(shown)
		return Shown{Text: text, Number: text == exact(v), Blanked: text == ""}, nil
	case s.percent:
		return Shown{Text: exact(100*v) + "%"}, nil
	}
	return Shown{Text: exact(v), Number: true}, nil
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
		return &General[0], v
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

// fill writes a whole number into the places of a section, from the last one on. The first takes all digits that are
// left.
func (s *section) fill(v float64) string {
	left := strings.TrimLeft(exact(math.Abs(v)), "0")
	left = strings.Repeat("0", max(0, s.zeros-len(left))) + left
	out, place := "", s.places
	for i := len(s.tokens) - 1; i >= 0; i-- {
		t := s.tokens[i]
		if t.kind == '"' {
			out = t.text + out
			continue
		}
		if place--; place > 0 {
			at := max(0, len(left)-1)
			out, left = left[at:]+out, left[:at]
		} else {
			out = left + out
		}
	}
	if v < 0 {
		out = "-" + out
	}
	return strings.TrimSpace(out)
}

// The days after the last one that Excel shows, 9999-12-31, counted from 1900 and from 1904.
const (
	endOf1900 = 2958466
	endOf1904 = 2957004
)

// date writes the date, the time or the duration of a number in ISO 8601, whatever the code: in which order it has day
// and month, and in which language, nobody could tell from the text. Excel fills the cell with # for what is before the
// first day and after the last.
func (s *section) date(v float64, from1904 bool) (string, error) {
	if v < 0 || v >= endOf1900 || from1904 && v >= endOf1904 {
		return "", ErrDate
	}
	places := min(s.fraction, 3) // of a second: Excel has no more
	parts := int64(math.Pow10(places))
	total := int64(math.Round(v * 86400 * float64(parts)))
	second, fraction := total/parts, ""
	if places > 0 {
		fraction = "." + padded(int(total%parts), places)
	}
	day, timed := s.day, s.time
	if s.kind == date && !day && !timed {
		day, timed = second >= 86400 || second == 0, second%86400 != 0
	}
	hours := second / 3600 % 24
	if s.kind == duration {
		timed, hours = true, second/3600
	}
	var text []string
	if day {
		year, month, day := calendar(int(second/86400), from1904)
		text = append(text, padded(year, 4)+"-"+padded(month, 2)+"-"+padded(day, 2))
	}
	if timed {
		text = append(text, padded(int(hours), 2)+":"+padded(int(second/60%60), 2)+":"+padded(int(second%60), 2)+fraction)
	}
	return strings.Join(text, " "), nil
}

// padded is a number with zeros before it.
func padded(n, width int) string {
	digits := strconv.Itoa(n)
	return strings.Repeat("0", max(0, width-len(digits))) + digits
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
