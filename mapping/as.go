package mapping

import (
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// kinds are the words of as, and kindNames what people call them.
var (
	kinds     = map[string]Kind{"string": String, "number": Number, "boolean": Boolean, "json": JSON}
	kindNames = map[Kind]string{
		Number:  "a number as JSON writes it: 7, -0.5 or 1e3, without leading zeros",
		Boolean: "a boolean: true or false, yes or no, on or off, y or n, 1 or 0",
		JSON:    "one JSON value without repeated names, at most 64 levels deep",
	}
)

// literalOf is how the trimmed text s stands in a request as a Kind other than
// String, if it can. A number keeps its digits.
func literalOf(k Kind, s string) (literal string, ok bool) {
	switch k {
	case Number:
		return s, isJSONNumber(s)
	case Boolean:
		return booleanOf(s)
	case JSON:
		return jsonOf(s)
	}
	return s, true
}

// isJSONNumber reports whether s is a number by the grammar of JSON (RFC 8259, 6):
// it takes neither a plus before it nor zeros that could be left out.
func isJSONNumber(s string) bool {
	whole := strings.TrimPrefix(s, "-")
	zeros := len(whole) > 1 && whole[0] == '0' && isDigit(whole[1])
	return !zeros && !strings.HasPrefix(s, "+") && isNumber(s)
}

func booleanOf(s string) (literal string, ok bool) {
	for _, yes := range [...]string{"true", "yes", "on", "y", "1"} {
		if strings.EqualFold(s, yes) {
			return "true", true
		}
	}
	for _, no := range [...]string{"false", "no", "off", "n", "0"} {
		if strings.EqualFold(s, no) {
			return "false", true
		}
	}
	return "", false
}

// jsonOf is the JSON value s without white space around and in it.
func jsonOf(s string) (literal string, ok bool) {
	if levels(s) > maxDepth {
		return "", false
	}
	v := jsontext.Value(s)
	err := v.Compact(jsontext.AllowDuplicateNames(false), jsontext.AllowInvalidUTF8(false))
	return string(v), err == nil
}

// levels is how deep objects and lists stand in one another in the JSON text s.
func levels(s string) int {
	depth, deepest, inText := 0, 0, false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			inText = !inText
		case inText && c == '\\':
			i++
		case inText:
		case c == '[' || c == '{':
			depth++
			deepest = max(deepest, depth)
		case c == ']' || c == '}':
			depth--
		}
	}
	return deepest
}
