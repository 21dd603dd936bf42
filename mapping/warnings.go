package mapping

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"leadferry/internal/lazyregexp"
	"leadferry/mapping/texts"
)

// Warnings are remarks about a good mapping file, each with its place: constants that look like a password, a client
// secret or a token. A mapping file is shared and kept in repositories, and what it holds goes to the service with
// each lead. They never hold the constant.
func (m *Mapping) Warnings() []Error { return m.warnings }

func (p *parser) warn(at position, text, hint string) {
	if len(p.m.warnings) < maxErrors {
		p.m.warnings = append(p.m.warnings, Error{p.file, at.line, at.column, text, hint})
	}
}

// token is a JSON Web Token (RFC 7519), or the header that carries any token.
var token = lazyregexp.New(`\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*|(?i:\bbearer +[a-z0-9._~+/-]{16,})`)

// secretKeys are the ends of keys, in small letters and without what stands
// between words, whose constants are secrets.
var secretKeys = [...]string{"secret", "password", "passwd", "passphrase", "apikey", "accesstoken", "refreshtoken", "authtoken", "privatekey", "authorization"}

// secrets warns of constants below n that look like secrets; key is what they belong to.
func (p *parser) secrets(key string, n *yaml.Node) {
	const secretHint = "take it out; leadferry reads its own secret from LEADFERRY_CLIENT_SECRET or --client-secret-file"
	if what := secretIn(key, n.Value); what != "" {
		p.warn(position{n.Line, n.Column}, "the mapping file holds what looks like "+what, secretHint)
	}
	for i, child := range n.Content {
		switch isKey := i%2 == 0; {
		case n.Kind != yaml.MappingNode:
			p.secrets(key, child)
		case isKey:
			p.secrets("", child)
		case slices.Contains([]string{"from", "default", "expr", "else", "first", "join", "list"}, n.Content[i-1].Value):
			p.secrets(key, child) // of the key that has the value
		default:
			p.secrets(n.Content[i-1].Value, child)
		}
	}
}

// secretIn is what the constant s of a key looks like, or "".
func secretIn(key, s string) string {
	const maxSecret = 8 << 10 // bytes of a constant that are looked at
	s = s[:min(len(s), maxSecret)]
	if token().MatchString(s) {
		return "a token"
	}
	if s == "" || strings.Contains(s, "{") || strings.ContainsFunc(s, unicode.IsSpace) {
		return "" // a placeholder, or a sentence
	}
	letters := strings.ToLower(strings.Join(strings.FieldsFunc(key, isBetweenWords), ""))
	if isRandom(s) || slices.ContainsFunc(secretKeys[:], func(end string) bool { return strings.HasSuffix(letters, end) }) {
		return "a secret"
	}
	return ""
}

func isBetweenWords(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune("_-.", r) }

// isRandom reports whether s is one long run of capitals, small letters and digits
// mixed, as a generated secret is and an ID in hexadecimal is not.
func isRandom(s string) bool {
	var upper, lower, digit int
	for _, r := range s {
		switch {
		case 'A' <= r && r <= 'Z':
			upper++
		case 'a' <= r && r <= 'z':
			lower++
		case '0' <= r && r <= '9':
			digit++
		case !strings.ContainsRune("+/=_-~.", r):
			return false
		}
	}
	return upper+lower+digit >= 32 && min(upper, lower, digit) >= 3
}

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
		guess.Of, guess.Why = texts.Shortened(strings.TrimSpace(body), mostOfGuess), strings.TrimSpace(text)
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
