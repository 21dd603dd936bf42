package mapping

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/nyaruka/phonenumbers"

	"leadferry/internal/rowkey"
)

// formatWord is a word that format knows; called is how people call what fits.
type formatWord struct {
	name, called string
	check        func(string) bool
}

func formatWords() []formatWord {
	return []formatWord{
		{"email", "an e-mail address", isEmail},
		{"phone", "a phone number", isPhone},
		{"uuid", "a UUID", rowkey.IsUUID},
		{"url", "a web address", isURL},
		{"date", "a date such as 2006-01-02", isDate},
		{"integer", "a whole number", isInteger},
		{"number", "a number", isNumber},
	}
}

// parseFormat reads the word of format; a fault is a sentence, check nil then.
func parseFormat(word string) (check func(string) bool, name, fault, hint string) {
	if strings.HasPrefix(word, "/") {
		return parsePattern(word)
	}
	words := formatWords()
	if i := slices.IndexFunc(words, func(w formatWord) bool { return w.name == word }); i >= 0 {
		return words[i].check, words[i].called, "", ""
	}
	names := make([]string, len(words))
	for i, w := range words {
		names[i] = w.name
	}
	if hint = didYouMean(word, names); hint == "" {
		hint = "known here: " + strings.Join(names, ", ") + ", /regular expression/"
	}
	return nil, "", "unknown format " + quote(word), hint
}

// extension is how people write the extension that ends a phone number.
var extension = regexp.MustCompile(`(?i)[\s,;]*(?:x|ext\.?|extension|#|;ext=)[\s.:]*[0-9]{1,7}$`)

// isPhone reports whether s can be dialled. A number with + must be one that the
// numbering plans know. Of others nobody knows the country: they need 5 to 15
// digits, not counting 00, which many countries dial for abroad.
func isPhone(s string) bool {
	if len(s) > maxPhone {
		return false
	}
	if at := extension.FindStringIndex(s); at != nil {
		s = s[:at[0]]
	}
	number, ok := dial(s)
	if !ok {
		return false
	}
	if number[0] == '+' {
		n, err := phonenumbers.Parse(number, "")
		return err == nil && phonenumbers.IsValidNumber(n)
	}
	number = strings.TrimPrefix(number, "00")
	return len(number) >= 5 && len(number) <= 15
}

// isDate reports whether s is a day of the calendar, or a time of one, in the
// extended form of ISO 8601: what the step date gives, the seconds or the whole
// time left out if need be.
func isDate(s string) bool {
	if len(s) == len(time.DateOnly) {
		_, err := time.Parse(time.DateOnly, s)
		return err == nil
	}
	if len(s) < len("2006-01-02T15:04") || s[10] != 'T' || s[13] != ':' {
		return false // package time would take an hour of one digit
	}
	for _, form := range [...]string{"2006-01-02T15:04:05Z07:00", "2006-01-02T15:04:05", "2006-01-02T15:04Z07:00", "2006-01-02T15:04"} {
		if _, err := time.ParseInLocation(form, s, time.UTC); err == nil {
			return true
		}
	}
	return false
}

// isInteger reports whether s is decimal digits, after a sign or none. Zeros at
// the beginning do no harm in a text.
func isInteger(s string) bool {
	rest := afterDigits(afterSign(s))
	return rest == "" && s != "" && isDigit(s[len(s)-1])
}

// isNumber reports whether s is a decimal number such as -12.5 or 1e3: a point and
// no comma, digits before and after it.
func isNumber(s string) bool {
	s = afterSign(s)
	rest := afterDigits(s)
	if rest == s {
		return false
	}
	if after, point := strings.CutPrefix(rest, "."); point {
		if rest = afterDigits(after); rest == after {
			return false
		}
	}
	return rest == "" || (rest[0] == 'e' || rest[0] == 'E') && isInteger(rest[1:])
}

func afterSign(s string) string {
	if s != "" && (s[0] == '+' || s[0] == '-') {
		return s[1:]
	}
	return s
}

func afterDigits(s string) string { return strings.TrimLeft(s, "0123456789") }

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

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

// maxURL is the longest web address, in bytes.
const maxURL = 2048

// isURL reports whether s is a whole web address, http or https: the host is a
// name with a dot, localhost or an IP address, and nothing in it is white space.
func isURL(s string) bool {
	if len(s) > maxURL || strings.ContainsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }) {
		return false
	}
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Opaque != "" {
		return false
	}
	host := strings.TrimSuffix(u.Hostname(), ".")
	if _, err := netip.ParseAddr(host); err == nil || strings.EqualFold(host, "localhost") {
		return true
	}
	return strings.Contains(host, ".") && isDotted(host, isHostLabel)
}

// isHostLabel is isLabel and an underscore, which names of machines have.
func isHostLabel(s string) bool {
	return isLabel(strings.ReplaceAll(s, "_", "x"))
}

const (
	maxPattern = 1 << 10 // bytes of a regular expression

	// maxProgram is the most instructions that a regular expression may become: the
	// time for a text is at most proportional to their number.
	maxProgram = 4096
)

// parsePattern reads a regular expression between slashes, in the syntax of RE2. A
// text fits when a part of it matches: ^ and $ stand for its ends.
func parsePattern(word string) (check func(string) bool, name, fault, hint string) {
	end := strings.LastIndexByte(word, '/')
	pattern := word[1:max(1, end)]
	switch {
	case end > 0 && end < len(word)-1 && afterLetters(word[end+1:]) == "":
		return nil, "", "a regular expression takes no letters after its last slash", "write (?i) at its beginning to take capitals and small letters alike"
	case end == 0 || end < len(word)-1:
		return nil, "", "the regular expression has no slash at its end", `for example /^[0-9]{5}$/`
	case pattern == "":
		return nil, "", "the regular expression is empty", `for example /^[0-9]{5}$/`
	case len(pattern) > maxPattern:
		return nil, "", "the regular expression is longer than 1 KiB", "leave out what need not be checked"
	}
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil, "", patternFault(err), "the syntax is that of RE2: no look-ahead, no back-references"
	}
	if instructions(tree) > maxProgram {
		return nil, "", "the regular expression is too large once its repetitions are written out", "use * or + in place of large numbers"
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil, "", patternFault(err), ""
	}
	return re.MatchString, "a text that matches " + cut(word), "", ""
}

func patternFault(err error) string {
	var se *syntax.Error
	if errors.As(err, &se) {
		return fmt.Sprintf("the regular expression cannot be read: %s in %s", se.Code, quote(se.Expr))
	}
	return "the regular expression cannot be read"
}

// instructions is about how many instructions a program for the expression has;
// to count them must not take the memory that the limit is there to save.
func instructions(re *syntax.Regexp) int {
	n := 1
	if re.Op == syntax.OpLiteral {
		n = len(re.Rune)
	}
	for _, sub := range re.Sub {
		n += instructions(sub)
	}
	if re.Op == syntax.OpRepeat {
		n *= max(1, re.Min, re.Max)
	}
	return min(n, maxProgram+1)
}

func afterLetters(s string) string {
	return strings.TrimLeft(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
}
