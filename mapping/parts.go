package mapping

import (
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"go.yaml.in/yaml/v4"
)

// parts are the values that another one is made of.
type parts struct {
	way    way
	names  []string // of an object's members
	values []*value
	sep    string // of a join
}

// way is how a value is made of others.
type way uint8

const (
	first way = iota
	join
	object
	list
)

// ways are the words of the language for them: a new one is an entry here and a function.
var ways = [...]string{first: "first", join: "join", object: "object", list: "list"}

// isJSON reports whether a JSON value is made, and no text.
func (ps *parts) isJSON() bool { return ps.way == object || ps.way == list }

func (v *value) levels() int {
	if v == nil || v.parts == nil {
		return 0
	}
	deepest := 0
	for _, part := range v.parts.values {
		deepest = max(deepest, part.levels())
	}
	if v.parts.isJSON() {
		deepest++
	}
	return deepest
}

// put is what the parts come to in a row: empty when all of them are, and absent when some of these were left out.
func (ps *parts) put(r *row) (string, *Problem) {
	switch ps.way {
	case first:
		return ps.first(r)
	case join:
		return ps.join(r)
	}
	return ps.json(r)
}

// first is the first part that holds anything and breaks no rule. Where none does, a rule that one breaks is broken.
func (ps *parts) first(r *row) (string, *Problem) {
	var bad *Problem
	var broken []Problem
	before := len(r.problems)
	for _, part := range ps.values {
		s, problem := part.eval(r)
		switch {
		case problem == nil && s != "":
			r.dropped = append(r.dropped, broken...)
			return s, nil
		case problem == absent && bad == nil:
			bad = absent
		case problem != nil && problem != absent:
			r.problems = r.problems[:before]
			broken = append(broken, *problem)
			if bad == nil || bad == absent {
				bad = problem
			}
		}
	}
	return "", bad
}

// join puts the parts that hold anything one behind the other.
func (ps *parts) join(r *row) (string, *Problem) {
	var room [256]byte
	b, left := room[:0], (*Problem)(nil)
	for _, part := range ps.values {
		s, problem := part.eval(r)
		switch {
		case problem == absent:
			left = absent
		case problem != nil:
			return "", problem
		case s != "" && len(b) > 0:
			b = append(append(b, ps.sep...), s...)
		default:
			b = append(b, s...)
		}
	}
	if len(b) > 0 {
		left = nil
	}
	return strings.TrimSpace(string(b)), left
}

// json is the object or the list of the parts that hold anything. Of several that break
// a rule the others' problems are the row's at once.
func (ps *parts) json(r *row) (string, *Problem) {
	var room [512]byte
	opens, closes := byte('['), byte(']')
	if ps.way == object {
		opens, closes = '{', '}'
	}
	b, left, bad := append(room[:0], opens), (*Problem)(nil), (*Problem)(nil)
	for i, part := range ps.values {
		s, problem := part.eval(r)
		switch {
		case problem == absent:
			left = absent
		case problem != nil && bad != nil:
			r.problems = append(r.problems, *problem)
		case problem != nil:
			bad = problem
		case s != "":
			b = ps.appendMember(b, i, s)
		}
	}
	switch {
	case bad != nil:
		return "", bad
	case len(b) == 1:
		return "", left
	}
	return string(append(b, closes)), nil
}

func (ps *parts) appendMember(b []byte, i int, s string) []byte {
	if len(b) > 1 {
		b = append(b, ',')
	}
	if ps.way == object {
		b = append(appendText(b, ps.names[i]), ':')
	}
	if ps.values[i].kind == String {
		return appendText(b, s)
	}
	return append(b, s...)
}

// appendText adds a text as JSON has it. Bytes that are no text, which only a file's name may hold, become U+FFFD.
func appendText(b []byte, s string) []byte {
	quoted, err := jsontext.AppendQuote(b, s)
	if err != nil {
		quoted, _ = jsontext.AppendQuote(b, strings.ToValidUTF8(s, "\uFFFD"))
	}
	return quoted
}

// readParts reads the values of first, join, object or list.
func (r *valueReader) readParts(kind way) func(node) {
	return func(n node) {
		ps := &parts{way: kind}
		part := value{role: r.role, inside: aText}
		if r.value.parts = ps; ps.isJSON() {
			part.inside, r.kind = aMember, JSON
		}
		add := func(n node) {
			if v := r.parser.value(n, part); v != nil {
				ps.values = append(ps.values, v)
			}
		}
		if kind != object {
			r.list(n, add)
			return
		}
		r.each(n, func(key, child node) {
			if blank(key.Value) {
				r.fail(key, "", "%s has a key without a name", n.path)
				return
			}
			before := len(ps.values)
			if add(child); len(ps.values) > before {
				ps.names = append(ps.names, key.Value)
			}
		})
		if n.Kind == yaml.MappingNode && len(n.Content) == 0 {
			r.fail(n, `for example object: {make: "{make}"}`, "%s has no members", n.path)
		}
	}
}

func (r *valueReader) checkParts(n node) {
	const maxLevels = 8 // objects and lists in one another
	word := ways[r.parts.way]
	key, _, _ := n.child(word)
	switch {
	case !r.parts.isJSON():
	case r.role != contentRole:
		r.fail(key, "", "%s: only values in lead.content can be objects or lists", n.path)
	case r.inside == aText:
		r.fail(key, "join takes texts; put the list or object around it", "%s is a part of a text, which no %s can be",
			n.path, word)
	case r.value.levels() == maxLevels+1:
		r.fail(key, "", "%s: objects and lists stand in one another on more than %d levels", n.path, maxLevels)
	default:
		for _, name := range [...]string{"apply", "map", "else", "default", "format", "as"} {
			if key, _, found := n.child(name); found {
				r.fail(key, "put "+name+" beside from in a member", "%s has %s, which goes with texts and not with %s",
					n.path, name, word)
			}
		}
	}
}
