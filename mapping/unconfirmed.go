package mapping

import (
	"strings"
	"unicode/utf8"
)

// Guess is a guess of leadferry init that nobody has confirmed, by its place in the mapping
// file: Of is what the file says there, "" of all that follows, and Why what the guess rests on.
type Guess struct {
	Line, Column int
	Of, Why      string
}

// Unconfirmed are the lines of the mapping file whose comment begins with a question mark,
// "# ?", at most 100 of them. Whoever finds a guess right takes the mark away.
func (m *Mapping) Unconfirmed() []Guess { return m.unconfirmed }

const (
	mark        = "? "
	mostOfGuess = 60 // characters of a line that are told with its mark
)

// marks takes down the guesses that are marked. The comment of a line of its own may go
// on in the next ones, further in.
func (p *parser) marks() {
	for i := 0; i < len(p.lines) && len(p.m.unconfirmed) < maxErrors; i++ {
		body, comment := commentOf(p.line(i + 1))
		text, marked := strings.CutPrefix(comment, " "+mark)
		if !marked {
			continue
		}
		guess := Guess{Line: i + 1, Column: utf8.RuneCountInString(body) + 1}
		for body == "" {
			next, more := commentOf(p.line(i + 2))
			if next != "" || !strings.HasPrefix(more, "   ") {
				break
			}
			text, i = text+" "+strings.TrimSpace(more), i+1
		}
		if named, isAbove := strings.CutSuffix(text, ":"); isAbove && body == "" { // the line below is meant
			body, _ = commentOf(p.line(i + 2))
			text = named
		}
		guess.Of, guess.Why = shortened(strings.TrimSpace(body), mostOfGuess), strings.TrimSpace(text)
		p.m.unconfirmed = append(p.m.unconfirmed, guess)
	}
}

// commentOf parts a line of YAML at the # of its comment, which is left out; both are ""
// where there is nothing. The body of a line that is all comment is "".
func commentOf(line string) (body, comment string) {
	quote := rune(0)
	escaped, before := false, ' '
	for i, r := range line {
		switch {
		case escaped:
			escaped = false
		case quote == '"' && r == '\\':
			escaped = true
		case quote != 0:
			if r == quote {
				quote = 0
			}
		case r == '#' && (before == ' ' || before == '\t'):
			return strings.TrimRight(line[:i], " \t"), strings.TrimRight(line[i+1:], " \t\r")
		case (r == '"' || r == '\'') && strings.ContainsRune(" \t[{,:'", before):
			quote = r
		}
		before = r
	}
	return strings.TrimRight(line, " \t\r"), ""
}
