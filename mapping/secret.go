package mapping

import (
	"regexp"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v4"
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
var token = regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*|(?i:\bbearer +[a-z0-9._~+/-]{16,})`)

// secretKeys are the ends of keys, in small letters and without what stands
// between words, whose constants are secrets.
var secretKeys = [...]string{"secret", "password", "passwd", "passphrase", "apikey", "accesstoken", "refreshtoken", "authtoken", "privatekey", "authorization"}

// secrets warns of constants below n that look like secrets; key is what they
// belong to.
func (p *parser) secrets(key string, n *yaml.Node) {
	switch {
	case len(p.m.warnings) >= maxErrors:
	case n.Kind == yaml.ScalarNode:
		if what := secretIn(key, n.Value); what != "" {
			p.m.warnings = append(p.m.warnings, Error{p.file, n.Line, n.Column, "the mapping file holds what looks like " + what, secretHint})
		}
	case n.Kind == yaml.MappingNode:
		for i := 0; i < len(n.Content); i += 2 {
			p.secrets("", n.Content[i])
			p.secrets(inherited(key, n.Content[i].Value), n.Content[i+1])
		}
	default:
		for _, element := range n.Content {
			p.secrets(key, element)
		}
	}
}

// inherited is the key by which a constant is judged: that of its value, where it is
// a value's text or default.
func inherited(above, key string) string {
	if key == "from" || key == "default" || key == "expr" || key == "else" {
		return above
	}
	return key
}

func secretIn(key, s string) string {
	s = s[:min(len(s), maxSecret)]
	if token.MatchString(s) {
		return "a token"
	}
	if strings.Contains(s, "{") || strings.ContainsFunc(s, unicode.IsSpace) {
		return "" // a placeholder, or a sentence
	}
	letters := strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || r == '.' || unicode.IsSpace(r) {
			return -1
		}
		return unicode.ToLower(r)
	}, key)
	for _, end := range secretKeys {
		if s != "" && strings.HasSuffix(letters, end) {
			return "a secret"
		}
	}
	if isRandom(s) {
		return "a secret"
	}
	return ""
}

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
