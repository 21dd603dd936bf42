package propose

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// widest is the widest line with a comment, in characters.
const widest = 110

// sheet is a YAML text in the making. Comments behind the lines of a block stand
// below one another.
type sheet struct{ lines []sheetLine }

type sheetLine struct {
	text    string
	comment string // behind the text
}

// put adds a line that is indented by depth steps.
func (s *sheet) put(depth int, text, comment string) {
	s.lines = append(s.lines, sheetLine{strings.Repeat("  ", depth) + text, comment})
}

func (s *sheet) blank() { s.lines = append(s.lines, sheetLine{}) }

// note adds a comment of as many lines as it takes.
func (s *sheet) note(depth int, text string) {
	indent := strings.Repeat("  ", depth) + "# "
	line := ""
	for _, word := range unbroken(text) {
		switch {
		case line == "":
			line = word
		case len(indent)+utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > widest:
			s.lines = append(s.lines, sheetLine{text: indent + line})
			line = word
		default:
			line += " " + word
		}
	}
	if line != "" {
		s.lines = append(s.lines, sheetLine{text: indent + line})
	}
}

// unbroken are the words of a text; a name in braces is one.
func unbroken(text string) []string {
	var list []string
	open := false
	for _, word := range strings.Fields(text) {
		if open {
			list[len(list)-1] += " " + word
		} else {
			list = append(list, word)
		}
		open = strings.LastIndexByte(list[len(list)-1], '{') > strings.LastIndexByte(list[len(list)-1], '}') &&
			len(list[len(list)-1]) < widest/2
	}
	return list
}

// offer adds a line that a person may bring to life by taking its first # away.
func (s *sheet) offer(depth int, text, comment string) {
	s.put(depth, "# "+text, comment)
}

// bytes lays the comments out and gives the text.
func (s *sheet) bytes() []byte {
	var b strings.Builder
	for i := 0; i < len(s.lines); {
		end := i
		for end < len(s.lines) && s.lines[end].comment != "" {
			end++
		}
		if end == i {
			b.WriteString(s.lines[i].text + "\n")
			i++
			continue
		}
		writeBlock(&b, s.lines[i:end])
		i = end
	}
	return []byte(b.String())
}

// farthest is where comments stand at most, but for those behind longer lines.
const farthest = 60

// writeBlock writes lines with their comments; one that gets too wide has its
// comment above.
func writeBlock(b *strings.Builder, block []sheetLine) {
	column := 0
	for _, l := range block {
		if n := utf8.RuneCountInString(l.text); n <= farthest {
			column = max(column, n)
		}
	}
	for _, l := range block {
		n, c := utf8.RuneCountInString(l.text), utf8.RuneCountInString(l.comment)
		switch gap := max(0, column-n); {
		case n+gap+4+c <= widest:
			b.WriteString(l.text + strings.Repeat(" ", gap+2) + "# " + l.comment + "\n")
		case n+4+c <= widest:
			b.WriteString(l.text + "  # " + l.comment + "\n")
		default:
			var above sheet
			above.note((len(l.text)-len(strings.TrimLeft(l.text, " ")))/2, l.comment+":")
			b.Write(above.bytes())
			b.WriteString(l.text + "\n")
		}
	}
}

// scalar writes s as one YAML text on one line, in quotes where it would be taken
// for something else, by YAML or by a person.
func scalar(s string) string {
	if isPlain(s) {
		return s
	}
	return quoted(s)
}

// isPlain reports whether s can stand without quotes: words of letters, digits
// and a few marks, which begin with a letter and are no word of YAML's.
func isPlain(s string) bool {
	letter := func(r rune) bool {
		return r < utf8.RuneSelf && unicode.IsLetter(r) || r >= 0xC0 && r <= 0x17F && r != 0xD7 && r != 0xF7
	}
	if s == "" || len(s) > 60 || strings.HasSuffix(s, " ") || strings.Contains(s, "  ") {
		return false
	}
	for i, r := range s {
		if !letter(r) && (i == 0 || !strings.ContainsRune("0123456789 _-./()", r)) {
			return false
		}
	}
	switch strings.ToLower(s) {
	case "y", "n", "yes", "no", "on", "off", "true", "false", "null", "nan", "inf":
		return false
	}
	return true
}

// quoted writes s in double quotes; what does not show is written as an escape.
func quoted(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == ' ' || unicode.IsPrint(r) && r != utf8.RuneError:
			b.WriteRune(r)
		case r < 0x100:
			fmt.Fprintf(&b, `\x%02X`, r)
		case r < 0x10000:
			fmt.Fprintf(&b, `\u%04X`, r)
		default:
			fmt.Fprintf(&b, `\U%08X`, r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
