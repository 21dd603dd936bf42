package mapping

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// isEmail reports whether s is one address such as people have, local@domain of
// at most 254 bytes: no display name, no quotes, no comments, and a domain with a
// dot. Letters of any script are allowed.
func isEmail(s string) bool {
	local, domain, _ := strings.Cut(s, "@")
	if len(s) > 254 || len(local) > 64 || !utf8.ValidString(s) || !isDotted(local, isLocal) {
		return false
	}
	last := strings.LastIndexByte(domain, '.')
	return last > 0 && isDotted(domain, isLabel) && strings.ContainsFunc(domain[last:], unicode.IsLetter)
}

// isDotted reports whether s is made of parts with dots between.
func isDotted(s string, isPart func(string) bool) bool {
	for more := true; more; {
		var part string
		if part, s, more = strings.Cut(s, "."); !isPart(part) {
			return false
		}
	}
	return true
}

func isLocal(s string) bool {
	for _, r := range s {
		if !isLetterOrDigit(r) && (r >= utf8.RuneSelf || strings.IndexByte("!#$%&'*+-/=?^_`{|}~", byte(r)) < 0) {
			return false
		}
	}
	return s != ""
}

func isLabel(s string) bool {
	for _, r := range s {
		if !isLetterOrDigit(r) && r != '-' {
			return false
		}
	}
	return s != "" && len(s) <= 63 && s[0] != '-' && s[len(s)-1] != '-'
}

// isLetterOrDigit asks for ASCII first: the tables of Unicode take ten times as long.
func isLetterOrDigit(r rune) bool {
	if r < utf8.RuneSelf {
		return 'a' <= r|0x20 && r|0x20 <= 'z' || '0' <= r && r <= '9'
	}
	return unicode.In(r, unicode.L, unicode.M, unicode.N)
}
