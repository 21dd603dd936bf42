package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
	"go.yaml.in/yaml/v4/plugin/loaderlimits"
)

// maxDepth is how deep a configuration file may nest: file, profiles, profile, key.
const maxDepth = 16

var profileName = regexp.MustCompile(`^[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}$`)

// parser reads the YAML as nodes: every constant is text, and each has its place.
type parser struct {
	file    string
	nearest Nearest
	errs    Errors
}

func parse(path string, data []byte, nearest Nearest) (*File, error) {
	p := &parser{file: path, nearest: nearest}
	f := &File{Path: path}
	if doc := p.document(data); doc != nil {
		p.profiles(doc, f)
	}
	if len(p.errs) > 0 {
		return nil, p.errs
	}
	return f, nil
}

func (p *parser) fail(n *yaml.Node, hint, format string, args ...any) {
	p.errs = append(p.errs, &Error{p.file, max(1, n.Line), max(1, n.Column), fmt.Sprintf(format, args...), hint})
}

// document is the one document of data, or nil: an empty file is one without
// profiles.
func (p *parser) document(data []byte) *yaml.Node {
	if !utf8.Valid(data) {
		p.fail(&yaml.Node{}, "save the file as UTF-8", "the configuration file is not text in UTF-8")
		return nil
	}
	limit := yaml.WithPlugin(loaderlimits.New(loaderlimits.DepthValue(maxDepth)))
	loader, err := yaml.NewLoader(bytes.NewReader(data), limit)
	var doc, second yaml.Node
	if err == nil {
		err = loader.Load(&doc)
	}
	switch {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		p.syntax(err)
		return nil
	}
	if err := loader.Load(&second); !errors.Is(err, io.EOF) {
		p.fail(&second, "keep one document a file", "a second document follows")
		return nil
	}
	root := doc.Content[0]
	if root.Kind == yaml.ScalarNode && root.ShortTag() == "!!null" {
		return nil
	}
	return root
}

// syntax takes down the reader's error without its text, which may quote the file.
func (p *parser) syntax(err error) {
	at := &yaml.Node{Line: 1, Column: 1}
	if le, ok := errors.AsType[*yaml.LoadError](err); ok {
		at.Line, at.Column = le.Mark.Line, le.Mark.Column
	}
	p.fail(at, "look for a missing blank after a colon, an open quote or a tab before a key", "the configuration file is not YAML from here on")
}

func (p *parser) profiles(doc *yaml.Node, f *File) {
	const shape = "it begins with profiles:, and below it the name of each profile"
	p.each(doc, shape, func(key, child *yaml.Node) {
		if key.Value != "profiles" {
			p.unknown(key, "", "profiles")
			return
		}
		p.each(child, shape, func(key, child *yaml.Node) {
			if profile := p.profile(key, child, f); profile != nil {
				f.Profiles = append(f.Profiles, profile)
			}
		})
	})
}

func (p *parser) profile(key, n *yaml.Node, f *File) *Profile {
	if !profileName.MatchString(key.Value) {
		p.fail(key, "letters, digits and . _ - only, at most 64", "this cannot be the name of a profile")
		return nil
	}
	for _, other := range f.Profiles {
		if strings.EqualFold(other.Name, key.Value) { // their clients would share a file where names have no case
			p.fail(key, "", "the name of this profile is that of line %d but for case", other.Line)
			return nil
		}
	}
	profile := &Profile{Name: key.Value, Line: key.Line, Values: map[string]Value{}}
	p.each(n, "a profile holds base_url, leads_url, trunk_id and the like", func(key, child *yaml.Node) {
		switch key.Value {
		case BaseURL, LeadsURL, TrunkID, ClientID, ClientSecretFile, ClientSecretCommand:
			p.value(profile, key, child)
		case "client_secret":
			p.fail(key, "put the secret into a file of mode 0600 and name it with client_secret_file, name a command with client_secret_command, or let leadferry login store it",
				"a secret has no place in the configuration file")
		default:
			p.unknown(key, " in profile "+profile.Name, BaseURL, LeadsURL, TrunkID, ClientID, ClientSecretFile, ClientSecretCommand)
		}
	})
	return profile
}

func (p *parser) value(profile *Profile, key, n *yaml.Node) {
	switch text := strings.TrimSpace(n.Value); {
	case n.Kind != yaml.ScalarNode:
		p.fail(n, "", "%s must be a text", key.Value)
	case text == "":
		p.fail(n, "leave the key out", "%s has no value", key.Value)
	case key.Value == ClientSecretFile && !filepath.IsAbs(text):
		profile.Values[key.Value] = Value{filepath.Join(filepath.Dir(p.file), text), key.Line}
	default:
		profile.Values[key.Value] = Value{text, key.Line}
	}
}

func (p *parser) unknown(key *yaml.Node, where string, names ...string) {
	hint := "the keys are " + strings.Join(names, ", ")
	if near := p.nearest(key.Value, names); near != "" {
		hint = fmt.Sprintf("did you mean %q?", near)
	}
	p.fail(key, hint, "unknown key %s%s", quote(key.Value), where)
}

// quote shows a key, cut when it is long.
func quote(word string) string {
	if runes := []rune(word); len(runes) > 64 {
		word = string(runes[:64]) + "…"
	}
	return fmt.Sprintf("%q", word)
}

// each calls f with every key of the object at n, and takes down what a
// configuration file must not hold.
func (p *parser) each(n *yaml.Node, shape string, f func(key, child *yaml.Node)) {
	if n.Kind != yaml.MappingNode {
		p.fail(n, shape, "keys and values are wanted here")
		return
	}
	first := map[string]int{}
	for i := 0; i < len(n.Content); i += 2 {
		key, child := n.Content[i], n.Content[i+1]
		line, again := first[key.Value]
		switch {
		case key.Kind != yaml.ScalarNode || key.ShortTag() == "!!merge":
			p.fail(key, "write the keys out", "a key must be a text")
		case again:
			p.fail(key, "", "key %s stands twice, first on line %d", quote(key.Value), line)
		case child.Kind == yaml.AliasNode || child.Anchor != "" || child.Style&yaml.TaggedStyle != 0:
			p.fail(child, "write the value out", "anchors, aliases and tags are not allowed")
		default:
			f(key, child)
		}
		if !again {
			first[key.Value] = key.Line
		}
	}
}
