package mapping

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// later holds, by the place where they stand, the words of the mapping language
// that this version does not carry out yet; one that ends in a colon or a slash
// goes on after it. A file that uses one is told so.
var later = map[string][]string{
	"mapping file":  {"namespace", "lead_id", "skip_if", "tests"},
	"source":        {"sheet"},
	"source format": {"xlsx"},
	"content":       {"*"},
	"value":         {"expr", "as", "empty"},
	"step":          {"title", "squeeze", "digits", "e164:", "date:", "truncate:", "split:"},
	"format":        {"phone", "uuid", "url", "date", "integer", "number", "/"},
}

// known reports whether word, standing at n in such a place, is one of words, and
// takes down an error about what, a phrase with the word in it, if it is not.
func (p *parser) known(n *yaml.Node, place, word, what string, words []string) bool {
	switch {
	case slices.Contains(words, word):
		return true
	case slices.ContainsFunc(later[place], func(w string) bool { return word == w || goesOn(w) && strings.HasPrefix(word, w) }):
		p.fail(n, "", "%s is not supported yet", what)
	default:
		hint := didYouMean(word, words)
		if hint == "" {
			hint = "known here: " + strings.Join(words, ", ")
		}
		p.fail(n, hint, "unknown %s", what)
	}
	return false
}

func goesOn(word string) bool { return strings.HasSuffix(word, ":") || strings.HasSuffix(word, "/") }
