package xlsx

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"leadferry/importer/source/rows"
	"leadferry/internal/spelling"
)

// format is a number format (ECMA-376 part 1, 18.8.30 and 18.8.31): a list of sections, each for some numbers. It
// writes amounts with all their digits, and dates and times in ISO 8601. Numbers whose format adds zeros or signs, for
// example phone numbers, are written as Excel shows them. A number that Excel does not show, or has cut, is a fault.
type format []section

// general is the format of numbers that have no other.
var general = format{{}}

// kind says how to write a number.
type kind uint8

const (
	plain    kind = iota // all its digits
	mask                 // whole numbers with the format's zeros and signs
	date                 // a date, a time of day, or both
	duration             // hours, minutes and seconds
)

// section is the part of a number format for some numbers.
type section struct {
	kind     kind
	forText  bool     // it has a place for text (@)
	tested   bool     // it is for numbers that meet a condition
	tokens   []string // literal texts, and digitPlace where a digit goes
	zeros    int      // how many places for digits there are from the first '0' to the point
	places   int      // how many places for digits there are
	fraction int      // how many of these are after the point
	percent  bool     // numbers are shown times a hundred, with %
	day      bool     // a date shows the day
	time     bool     // a date shows the time
}

const digitPlace = "\x00digit"

// maxCode is the most characters that Excel allows in the code of a format.
const maxCode = 255

// pieces matches the parts of a code: words, quoted text, text in brackets, a sign with the character after it, runs of
// a date letter, and single characters.
var pieces = spelling.Form(`(?is)general|"[^"]*"?|\[[^\]]*\]|[\\_*].?|y+|m+|d+|h+|s+|am/pm|a/p|e[+-]|.`)

// compile reads the code of a number format. It does not evaluate conditions. If a section has one, the format writes a
// number with its digits alone, and a date with the day and the time that the number has.
func compile(code string) format {
	if code == "" || len(code) > 4*maxCode { // ClosedXML writes the general format as an empty code
		return general
	}
	var f format
	var part []string
	for _, piece := range append(pieces().FindAllString(code, -1), ";") {
		if piece == ";" {
			f, part = append(f, compileSection(part)), nil
		} else {
			part = append(part, piece)
		}
	}
	// A last section for text is not for numbers.
	if last := len(f) - 1; last > 2 || last > 0 && f[last].forText {
		f = f[:min(last, 3)]
	}
	switch {
	case !slices.ContainsFunc(f, func(s section) bool { return s.tested }):
		return f
	case slices.ContainsFunc(f, func(s section) bool { return s.kind == date }):
		return format{{kind: date}}
	}
	return general
}

// builtIn has the codes of the formats that Excel knows by number only. Formats that are not in it show plain digits.
var builtIn = map[int]string{
	9: "0%", 10: "0%", 67: "0%", 68: "0%", 11: "0E+00", 48: "0E+0", 14: "y", 15: "y", 16: "y", 17: "y", 22: "y h:m",
	18: "h:m", 19: "h:m", 20: "h:m", 21: "h:m", 45: "mm:ss", 46: "[h]:mm:ss", 47: "mm:ss.0",
}

// builtInFormat returns the format of an identifier that has no code in the workbook. Date formats of East Asia and
// Thailand differ by language. For those, only the number in the cell shows whether there is a time.
func builtInFormat(id int) format {
	if id >= 27 && id <= 36 || id >= 50 && id <= 58 || id >= 71 && id <= 81 {
		return format{{kind: date}}
	}
	return compile(builtIn[id])
}

// readStyles reads the number formats of the styles of cells. A code in the workbook overrides the built-in one.
func (b *book) readStyles() (styles []format, err error) {
	if b.styles == "" {
		return nil, nil
	}
	var part struct {
		Formats []struct {
			ID     int    `xml:"numFmtId,attr"`
			Code   string `xml:"formatCode,attr"`
			Code16 string `xml:"formatCode16,attr"`
		} `xml:"numFmts>numFmt"`
		Cells []struct {
			Format int `xml:"numFmtId,attr"`
		} `xml:"cellXfs>xf"`
	}
	if err := b.parts.decode(b.styles, &part); err != nil {
		return nil, err
	}
	known := map[int]format{}
	for _, f := range part.Formats {
		known[f.ID] = compile(cmp.Or(f.Code16, f.Code))
	}
	for _, c := range part.Cells {
		f, own := known[c.Format]
		if !own {
			f = builtInFormat(c.Format)
		}
		styles = append(styles, f)
	}
	return styles, nil
}

func compileSection(code []string) section {
	var s section
	letters := "" // ymdhs of dates, H for a count of hours, and signs of numbers: G for general, E , . and %
	for _, piece := range code {
		switch first, lower := piece[0], strings.ToLower(piece); {
		case lower == "general":
			letters += "G"
		case first == '"':
			s.text(strings.TrimSuffix(piece[1:], `"`))
		case first == '[' && len(piece) > 1:
			letters += s.bracket(piece[1 : len(piece)-1])
		case first == '\\':
			s.text(piece[1:])
		case first == '_' || first == ' ': // a blank as wide as the next character
			s.text(" ")
		case first == '*': // fills the cell with the next character
		case lower[0] == 'e' && len(piece) > 1:
			letters += "E"
		case lower == "am/pm" || lower == "a/p":
			letters += "h"
		case lower[0] == 'm' && len(piece) > 2: // the name of a month
			letters += "d"
		case strings.IndexByte("ymdhs", lower[0]) >= 0:
			letters += lower[:1]
			s.text(piece) // in a format that is no date, these letters are literal text
		case strings.IndexByte("0#?", first) >= 0:
			s.place(first, strings.Contains(letters, "."))
		case first == '@':
			s.forText = true
		case first == ',' || first == '%' || first == '.':
			letters += piece
		default:
			s.text(piece)
		}
	}
	has := func(any string) bool { return strings.ContainsAny(letters, any) }
	s.percent = has("%")
	isFraction := strings.Contains(strings.Join(code, ""), "?/")
	switch {
	case has("ymdhsH") && s.places == s.fraction && !has("GE"):
		s.day = has("yd") || has("m") && !has("hsH")
		s.time = has("h") || s.day && has("sH") || !s.day && !has("H")
		if s.kind = date; !s.day && !s.time {
			s.kind = duration
		}
	case !has("G,.%E") && !s.forText && !isFraction:
		s.kind = mask
	}
	return s
}

func (s *section) text(text string) { s.tokens = append(s.tokens, text) }

// place adds a place for a digit.
func (s *section) place(sign byte, behindPoint bool) {
	s.places++
	if behindPoint {
		s.fraction++
		return
	}
	if sign == '0' || s.zeros > 0 {
		s.zeros++
	}
	s.tokens = append(s.tokens, digitPlace)
}

// bracket reads a text in brackets: a condition, a currency, a colour, or [h], [m] or [s], for which it returns H.
func (s *section) bracket(inner string) string {
	lower := strings.ToLower(inner)
	switch {
	case strings.HasPrefix(inner, "$"):
		sign, _, _ := strings.Cut(inner[1:], "-")
		s.text(sign)
	case strings.IndexAny(inner, "<=>") == 0:
		s.tested = true
	case lower != "" && strings.Contains("hms", lower[:1]) && strings.Trim(lower, lower[:1]) == "":
		return "H"
	}
	return ""
}

// show writes a number. from1904 says that dates count days from 1904 instead of 1900. The text is "" if the format
// shows nothing. A section for negative numbers shows them without a sign.
func (f format) show(v float64, from1904 bool) (string, *rows.Problem) {
	s, shown := &f[0], v
	switch n := len(f); {
	case v < 0 && n > 1:
		s, shown = &f[1], -v
	case v == 0 && n > 2:
		s = &f[2]
	}
	switch {
	case s.kind == date, s.kind == duration:
		text, shown := s.date(v, from1904)
		if !shown {
			return "", fault("holds a number that is no date but has the format of one",
				"enter the date again, or change the format of the cell")
		}
		return text, nil
	case math.Abs(v) >= exactLimit:
		return "", fault("holds a number of more than 15 digits: Excel keeps only 15",
			"format the column as text and enter the number again")
	case s.kind == mask && v == math.Trunc(v) && (v != 0 || s.zeros > 0 || s.places == 0):
		return s.fill(shown), nil
	case s.percent:
		return exact(100*v) + "%", nil
	}
	return exact(v), nil
}

// exact writes a number with the 15 digits that Excel keeps, never with an exponent.
func exact(v float64) string {
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 15, 64), 64)
	if rounded == 0 {
		return "0"
	}
	return strconv.FormatFloat(rounded, 'f', -1, 64)
}

// exactLimit is the first whole number with more digits than Excel keeps. No phone number or identifier has decimals.
const exactLimit = 1e15

// fill writes a whole number into the places of a section, from the last to the first, which takes all digits left.
func (s *section) fill(v float64) string {
	left := strings.TrimLeft(exact(math.Abs(v)), "0")
	left = strings.Repeat("0", max(0, s.zeros-len(left))) + left
	out, place := "", s.places
	for i := len(s.tokens) - 1; i >= 0; i-- {
		piece := s.tokens[i]
		if piece == digitPlace {
			at := 0
			if place--; place > 0 {
				at = max(0, len(left)-1)
			}
			piece, left = left[at:], left[:at]
		}
		out = piece + out
	}
	if v < 0 {
		out = "-" + out
	}
	return strings.TrimSpace(out)
}

// dayLimit is the day after 9999-12-31, which is the last that Excel shows. A count from 1904 is from1904Days smaller.
const dayLimit, from1904Days = 2958466, 1462

// date writes a date, a time or a duration in ISO 8601, because Excel's own text would not show whether day or month is
// first. shown is false for a number before the first day or after the last: Excel fills the cell with #. It is also
// false for the days 0 and 60 of 1900, which do not exist, although Excel shows them.
func (s *section) date(v float64, from1904 bool) (text string, shown bool) {
	if v < 0 || v >= dayLimit {
		return "", false
	}
	places := min(s.fraction, 3) // of a second: Excel keeps no more
	parts := int64(math.Pow10(places))
	total := int64(math.Round(v * 86400 * float64(parts)))
	second, fraction := total/parts, ""
	if places > 0 {
		fraction = fmt.Sprintf(".%0*d", places, total%parts)
	}
	if s.kind == duration {
		return fmt.Sprintf("%02d:%02d:%02d", second/3600, second/60%60, second%60) + fraction, true
	}
	withDay, withTime := s.day, s.time
	if !withDay && !withTime {
		withDay, withTime = second >= 86400 || second == 0, second%86400 != 0
	}
	day := int(second / 86400)
	switch {
	case from1904:
		day += from1904Days
	case withDay && (day == 0 || day == 60):
		return "", false
	case day < 60: // for Excel 1900 is a leap year
		day++
	}
	if withDay && day >= dayLimit {
		return "", false
	}
	at := time.Date(1899, 12, 30+day, 0, 0, int(second%86400), 0, time.UTC)
	switch {
	case withDay && withTime:
		return at.Format(time.DateTime) + fraction, true
	case withDay:
		return at.Format(time.DateOnly), true
	}
	return at.Format(time.TimeOnly) + fraction, true
}
