package mapping

import (
	"strconv"
	"strings"

	"github.com/rivo/uniseg"
)

// truncate keeps the first characters of a text, as people count them: a letter
// with its accents is one, and so is an emoji.
func truncate(argument string) (f step, fault, hint string) {
	n, err := strconv.Atoi(argument)
	if err != nil || n < 1 {
		return nil, "step truncate needs a number of characters, at least 1", `for example "truncate:80"`
	}
	return func(s string) (string, bool) { return firstCharacters(s, n), true }, "", ""
}

// firstCharacters is the text of the first n characters of s, trimmed: a cut may
// leave a space at the end.
func firstCharacters(s string, n int) string {
	if len(s) <= n {
		return s
	}
	rest, state := s, -1
	for range n {
		if rest == "" {
			return s
		}
		_, rest, _, state = uniseg.FirstGraphemeClusterInString(rest, state)
	}
	return strings.TrimSpace(s[:len(s)-len(rest)])
}

// splitAt takes one part of a text: the argument is a separator, a colon and the
// part's number, so the separator itself may hold colons.
func splitAt(argument string) (f step, fault, hint string) {
	const example = `for example "split:,:1" for what stands before the first comma, "split:,:-1" for what stands after the last`
	i := strings.LastIndexByte(argument, ':')
	if i < 1 {
		return nil, "step split needs a separator and a number", example
	}
	n, err := strconv.Atoi(argument[i+1:])
	if err != nil || n == 0 {
		return nil, "step split needs the number of a part: 1 is the first, -1 the last", example
	}
	separator := argument[:i]
	return func(s string) (string, bool) { return strings.TrimSpace(nthPart(s, separator, n)), true }, "", ""
}

// nthPart is the n-th part of s from 1, or from the end if n is negative; "" when
// there are fewer.
func nthPart(s, separator string, n int) string {
	if n < 0 {
		n += strings.Count(s, separator) + 2
	}
	if n < 1 {
		return ""
	}
	for more := true; more; n-- {
		var part string
		if part, s, more = strings.Cut(s, separator); n == 1 {
			return part
		}
	}
	return ""
}
