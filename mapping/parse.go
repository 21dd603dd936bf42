package mapping

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/expr-lang/expr/conf"
	"go.yaml.in/yaml/v4"
)

const (
	version = "1" // of the mapping language

	// maxErrors is how many errors of a file are told: whoever has more has taken
	// another file, and a hostile one should not keep us busy.
	maxErrors = 100

	quoteHint = `a text that begins with a placeholder needs quotes: "{column}"`
)

// Parse checks the mapping file that data holds; name is how errors call it. Its
// error is Errors: all mistakes at once, at most 100.
func Parse(name string, data []byte) (*Mapping, error) {
	p := &parser{file: name, m: &Mapping{name: name}}
	if doc := p.document(data); doc != nil {
		p.mappingFile(doc)
		p.secrets("", doc)
	}
	if err := p.errs.orNil(); err != nil {
		return nil, err
	}
	return p.m, nil
}

type parser struct {
	file  string
	lines [][]byte // of the file
	m     *Mapping
	errs  Errors

	exprs       *conf.Config // of the expressions, once there is one
	expressions int
	patterns    int
}

func (p *parser) full() bool { return len(p.errs) >= maxErrors }

func (p *parser) fail(n *yaml.Node, hint, format string, args ...any) {
	p.failAt(at(n), hint, format, args...)
}

func (p *parser) failAt(where position, hint, format string, args ...any) {
	if !p.full() {
		p.errs = append(p.errs, Error{p.file, where.line, where.column, fmt.Sprintf(format, args...), hint})
	}
}

// quote shows a word of the file, cut when it is long.
func quote(word string) string {
	if utf8.RuneCountInString(word) > maxNear {
		word = string([]rune(word)[:maxNear]) + "…"
	}
	return fmt.Sprintf("%q", word)
}

// member is one key that an object may have.
type member struct {
	name string
	read func(path string, n *yaml.Node)
}

// object reads the object at n, of which members are all that is known. An empty
// path is that of the file itself.
func (p *parser) object(path string, n *yaml.Node, members ...member) {
	names := make([]string, len(members))
	read := map[string]func(string, *yaml.Node){}
	for i, m := range members {
		names[i], read[m.name] = m.name, m.read
	}
	p.each(path, n, func(key, child *yaml.Node) {
		what, below := "key "+quote(key.Value), key.Value
		if path != "" {
			what, below = what+" in "+path, path+"."+below
		}
		if p.known(key, key.Value, what, names) {
			read[key.Value](below, child)
		}
	})
}

// each calls f with every key and value of the object at n.
func (p *parser) each(path string, n *yaml.Node, f func(key, child *yaml.Node)) {
	switch {
	case n.Kind == yaml.AliasNode: // plain has told
	case n.Kind != yaml.MappingNode && path == "":
		p.fail(n, "begin with version: 1", "a mapping file holds keys and values")
	case n.Kind != yaml.MappingNode:
		p.fail(n, "", "%s must hold keys and values", path)
	default:
		for i := 0; i < len(n.Content) && !p.full(); i += 2 {
			if key := n.Content[i]; key.Kind == yaml.ScalarNode && !merge(key) {
				f(key, n.Content[i+1])
			}
		}
	}
}

// list calls f with every element of the list at n.
func (p *parser) list(path string, n *yaml.Node, f func(path string, n *yaml.Node)) {
	switch {
	case n.Kind == yaml.AliasNode:
	case n.Kind != yaml.SequenceNode || len(n.Content) == 0:
		p.fail(n, "begin each line with a dash, or write [a, b]", "%s must be a list", path)
	default:
		for i, child := range n.Content {
			f(fmt.Sprintf("%s[%d]", path, i+1), child)
		}
	}
}

// scalar is the text at n as it is written. A value left out is an error: whether
// "" or nothing was meant cannot be seen.
func (p *parser) scalar(path string, n *yaml.Node) (string, bool) {
	switch {
	case n.Kind == yaml.AliasNode:
	case unquoted(n):
		p.fail(n, quoteHint, "%s is read as an object, not as a text", path)
	case n.Kind != yaml.ScalarNode:
		p.fail(n, "", "%s must be a text", path)
	case n.Value == "" && n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) == 0:
		p.fail(n, `leave the key out, or write "" for an empty text`, "%s has no value", path)
	default:
		return n.Value, true
	}
	return "", false
}

// unquoted reports whether n is what YAML makes of a bare {column}.
func unquoted(n *yaml.Node) bool {
	return n.Kind == yaml.MappingNode && n.Style&yaml.FlowStyle != 0 && len(n.Content) == 2 &&
		n.Content[1].Kind == yaml.ScalarNode && n.Content[1].ShortTag() == "!!null" && n.Content[1].Value == ""
}

func (p *parser) boolean(path string, n *yaml.Node) (yes, ok bool) {
	s, ok := p.scalar(path, n)
	if ok && s != "true" && s != "false" {
		p.fail(n, "", "%s must be true or false", path)
		ok = false
	}
	return s == "true", ok
}

// oneOf is the text at n if it is one of words, which noun calls them, else "".
func (p *parser) oneOf(path, noun string, n *yaml.Node, words ...string) string {
	word, ok := p.scalar(path, n)
	if !ok || !p.known(n, word, noun+" "+quote(word), words) {
		return ""
	}
	return word
}

// known reports whether word, standing at n, is one of words, and takes down an
// error about what, a phrase with the word in it, if it is not.
func (p *parser) known(n *yaml.Node, word, what string, words []string) bool {
	if slices.Contains(words, word) {
		return true
	}
	hint := didYouMean(word, words)
	if hint == "" {
		hint = "known here: " + strings.Join(words, ", ")
	}
	p.fail(n, hint, "unknown %s", what)
	return false
}
