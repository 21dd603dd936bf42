package mapping

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
)

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
