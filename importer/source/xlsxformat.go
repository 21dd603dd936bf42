package source

import (
	"math"
	"strconv"
	"strings"
)

// formatKind says how the number of a cell becomes text.
type formatKind uint8

const (
	general    formatKind = iota // all its digits
	digits                       // places for digits
	fraction                     // numerator and denominator
	scientific                   // with an exponent, which the text does not have: all its digits
	codedDate                    // a date, time or duration as the code says; these and all below are dates
	isoDate                      // a date whose looks depend on the system, or cannot be written here
	isoTime
	isoDateTime
	isoAny
)

func (k formatKind) isDate() bool { return k >= codedDate }

// numberFormat is a number format: one kind for all numbers, or sections.
type numberFormat struct {
	kind     formatKind
	sections []section
}

// section is the part of a number format for some numbers.
type section struct {
	kind    formatKind
	forText bool   // it has a place for text
	test    string // "<", "<=", "=", "<>", ">=", ">" or ""
	limit   float64
	tokens  []formatToken
	places  places
	words   *dateWords // of a coded date
	ratio   ratio      // of a fraction
}

var generalFormat = &numberFormat{kind: general}

// compileFormat reads the code of a number format.
func compileFormat(code string) *numberFormat {
	if len(code) > 4*maxFormatCode {
		return generalFormat
	}
	f := &numberFormat{}
	for _, part := range splitSections(code) {
		f.sections = append(f.sections, compileSection(part))
	}
	// The last section is for text when it has a place for text.
	if last := len(f.sections) - 1; last > 2 || last > 0 && f.sections[last].forText {
		f.sections = f.sections[:min(last, 3)]
	}
	return f
}

// splitSections parts a code at the semicolons that are not quoted.
func splitSections(code string) []string {
	var parts []string
	start := 0
	for i := 0; i < len(code); i++ {
		switch code[i] {
		case '\\', '_', '*':
			i++
		case '"':
			if end := strings.IndexByte(code[i+1:], '"'); end >= 0 {
				i += end + 1
			} else {
				i = len(code)
			}
		case '[':
			i += max(strings.IndexByte(code[i:], ']'), 0)
		case ';':
			parts, start = append(parts, code[start:i]), i+1
		}
	}
	return append(parts, code[start:])
}

// choose finds the section for a number, and the number that it shows: those
// for negative numbers show them without sign. There may be none.
func (f *numberFormat) choose(v float64) (s *section, shown float64) {
	if len(f.sections) == 0 {
		return &section{kind: f.kind}, v
	}
	tested := false
	for i := range f.sections {
		s := &f.sections[i]
		if s.test != "" {
			tested = true
			if s.holds(v) {
				return s, v
			}
		}
	}
	n := len(f.sections)
	switch {
	case tested && f.sections[n-1].test == "":
		return &f.sections[n-1], v
	case tested:
		return nil, v
	case v < 0 && n > 1:
		return &f.sections[1], -v
	case v == 0 && n > 2:
		return &f.sections[2], v
	}
	return &f.sections[0], v
}

func (s *section) holds(v float64) bool {
	switch s.test {
	case "<":
		return v < s.limit
	case "<=":
		return v <= s.limit
	case "=":
		return v == s.limit
	case "<>":
		return v != s.limit
	case ">=":
		return v >= s.limit
	}
	return v > s.limit
}

// exact is a number with the 15 digits that Excel holds, never with an exponent.
func exact(v float64) string {
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 15, 64), 64)
	if err != nil {
		rounded = v
	}
	if rounded == 0 {
		return "0"
	}
	return strconv.FormatFloat(rounded, 'f', -1, 64)
}

// exactLimit is the first whole number that has more digits than Excel holds.
const exactLimit = 1e15

// loses tells whether Excel has lost digits of a number: none of those behind
// the point count, which no phone number and no identifier has.
func loses(v float64) bool { return math.Abs(v) >= exactLimit }
