package mapping

import (
	"slices"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v4"

	"leadferry/internal/lazyregexp"
)

// Warnings are remarks about a good mapping file, each with its place: constants
// that look like a password, a client secret or a token. A mapping file is shared
// and kept in repositories, and what it holds goes to the service with each lead.
// They never hold the constant.
func (m *Mapping) Warnings() []Error { return m.warnings }

// maxSecret is how much of a constant is looked at, in bytes.
const maxSecret = 8 << 10

// secretHint says where the secret of a connection belongs.
const secretHint = "take it out; leadferry reads its own secret from LEADFERRY_CLIENT_SECRET or --client-secret-file"

// token is a JSON Web Token (RFC 7519), or the header that carries any token.
var token = lazyregexp.New(`\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*|(?i:\bbearer +[a-z0-9._~+/-]{16,})`)

// secretKeys are the ends of keys, in small letters and without what stands
// between words, whose constants are secrets.
var secretKeys = [...]string{"secret", "password", "passwd", "passphrase", "apikey", "accesstoken", "refreshtoken", "authtoken", "privatekey", "authorization"}

// secrets warns of constants below n that look like secrets; key is what they
// belong to.
func (p *parser) secrets(key string, n *yaml.Node) {
	if what := secretIn(key, n.Value); what != "" && len(p.m.warnings) < maxErrors {
		p.m.warnings = append(p.m.warnings, Error{p.file, n.Line, n.Column, "the mapping file holds what looks like " + what, secretHint})
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
	s = s[:min(len(s), maxSecret)]
	if token().MatchString(s) {
		return "a token"
	}
	if s == "" || strings.Contains(s, "{") || strings.ContainsFunc(s, unicode.IsSpace) {
		return "" // a placeholder, or a sentence
	}
	letters := strings.ToLower(strings.Join(strings.FieldsFunc(key, isBetweenWords), ""))
	for _, end := range secretKeys {
		if strings.HasSuffix(letters, end) {
			return "a secret"
		}
	}
	if isRandom(s) {
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
