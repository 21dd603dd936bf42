package mapping

import (
	"bytes"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// unused is what a column's cell holds beside the members of its object that other
// values use: "" where that is nothing. What nobody uses stays as it is written.
func unused(cell string, paths [][]string) string {
	if len(paths) == 0 || cell == "" {
		return cell
	}
	left, _ := without(jsontext.Value(cell), paths)
	return string(left)
}

// without is a JSON value without what the paths lead to, and whether they lead
// anywhere; nil where nothing is left of it. In lists null takes the place of what goes,
// so that the others keep theirs.
func without(v jsontext.Value, paths [][]string) (left jsontext.Value, changed bool) {
	kind := v.Kind()
	if kind != '{' && kind != '[' {
		return v, false
	}
	d := jsontext.NewDecoder(bytes.NewReader(v))
	_, err := d.ReadToken()
	left = append(left, byte(kind))
	holds := false
	for i := 0; err == nil && d.PeekKind() != '}' && d.PeekKind() != ']'; i++ {
		name, step := jsontext.Value(nil), strconv.Itoa(i)
		if kind == '{' {
			name, step = memberName(d)
		}
		var member jsontext.Value
		if member, err = d.ReadValue(); err != nil {
			break
		}
		member, less := reduced(member, step, paths)
		changed = changed || less
		holds = holds || member != nil && member.Kind() != 'n'
		switch {
		case member == nil && kind == '[':
			left = appendMember(left, nil, jsontext.Value("null"))
		case member != nil:
			left = appendMember(left, name, member)
		}
	}
	switch {
	case err != nil || !changed:
		return v, false
	case !holds:
		return nil, true
	}
	return append(left, byte(kind)+2), true // the codes of both brackets are two apart
}

// reduced is a member without what those paths lead to that begin with its step.
func reduced(member jsontext.Value, step string, paths [][]string) (left jsontext.Value, changed bool) {
	var inside [][]string
	for _, p := range paths {
		switch {
		case p[0] == step && len(p) == 1:
			return nil, true
		case p[0] == step:
			inside = append(inside, p[1:])
		}
	}
	if inside == nil {
		return member, false
	}
	return without(member, inside)
}

// memberName reads a name, as it is written and as it is meant.
func memberName(d *jsontext.Decoder) (written jsontext.Value, name string) {
	v, err := d.ReadValue()
	if err != nil {
		return nil, "" // the value behind it fails, too
	}
	meant, _ := jsontext.AppendUnquote(nil, v)
	return v.Clone(), string(meant)
}

func appendMember(b, name, member jsontext.Value) jsontext.Value {
	if len(b) > 1 {
		b = append(b, ',')
	}
	if name != nil {
		b = append(append(b, name...), ':')
	}
	return append(b, member...)
}
