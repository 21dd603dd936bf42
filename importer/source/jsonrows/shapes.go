package jsonrows

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"leadferry/importer/source/rows"
)

// shapes holds the headers of the objects read so far: rows with the same keys in the same order share a header.
type shapes struct {
	paths []string
	known map[string]*shape // by the names as written
	bytes int               // of the keys in known
}

// shape says how to turn the members of an object into the cells of a row.
type shape struct {
	header *rows.Header
	cells  []path                 // where the value of each of the header's names is
	note   func(name string) path // where a rejects file has this note about the row; nil: no notes
}

// path leads to a value in a member, through keys of objects and indexes of lists.
type path struct {
	member int // -1: the object lacks it
	steps  []string
}

// noteMember is the key that leadferry adds to rejected objects.
const noteMember = "leadferry"

// maxShapeBytes limits the bytes of the names of all shapes. Above it, all shapes are dropped and made again.
const maxShapeBytes = 1 << 20

// shapeOf returns the shape of an object with these names, which are JSON strings.
func (s *shapes) shapeOf(names []byte) *shape {
	if known, ok := s.known[string(names)]; ok {
		return known
	}
	if s.bytes += len(names); s.bytes > maxShapeBytes {
		clear(s.known)
		s.bytes = len(names)
	}
	learned := s.newShape(names)
	s.known[string(names)] = learned
	return learned
}

func (s *shapes) newShape(names []byte) *shape {
	header := &rows.Header{Open: true}
	learned := &shape{header: header}
	members, notes := map[string]int{}, map[string]int{} // the row's own, and those of a rejects file
	json := jsontext.NewDecoder(bytes.NewBuffer(names))
	for i := 0; ; i++ {
		token, err := json.ReadToken()
		if err != nil { // the end: all names were read before
			break
		}
		if name := token.String(); name == noteMember || strings.HasPrefix(name, rows.Reserved) {
			notes[name] = i
			header.Rejects = header.Rejects || name == noteMember
		} else {
			members[name] = i
			header.Names = append(header.Names, name)
			learned.cells = append(learned.cells, path{i, nil})
		}
	}
	header.Own = len(header.Names)
	for _, name := range s.paths {
		if _, literal := members[name]; !literal {
			header.Names = append(header.Names, name)
			learned.cells = append(learned.cells, pathTo(name, members))
		}
	}
	before := rows.Reserved
	if _, noted := notes[noteMember]; noted {
		before = noteMember + "."
	}
	if len(notes) > 0 {
		learned.note = func(name string) path { return pathTo(before+name, notes) }
	}
	return learned
}

// pathTo returns the path for a name with dots.
func pathTo(name string, members map[string]int) path {
	steps := strings.Split(name, ".")
	if member, ok := members[steps[0]]; ok {
		return path{member, steps[1:]}
	}
	return path{member: -1}
}

// in returns the cell at the path in the values of an object's members; "" if there is none.
func (p path) in(values []string) string {
	switch {
	case p.member < 0:
		return ""
	case len(p.steps) == 0:
		return cell(values[p.member])
	}
	d := jsontext.NewDecoder(strings.NewReader(values[p.member]))
	for _, step := range p.steps {
		if !enter(d, step) {
			return ""
		}
	}
	inner, _ := d.ReadValue() // was read before, so it is valid
	return cell(string(inner))
}

// enter moves d to the value of a key in an object, or to an element of a list, counted from 0.
func enter(d *jsontext.Decoder, step string) bool {
	kind := d.PeekKind()
	if kind != '{' && kind != '[' {
		return false
	}
	_, err := d.ReadToken()
	for i := 0; err == nil; i++ {
		name := strconv.Itoa(i)
		if next := d.PeekKind(); next == '}' || next == ']' {
			return false
		}
		if kind == '{' {
			token, _ := d.ReadToken() // the value was read before
			name = token.String()
		}
		if name == step {
			return true
		}
		err = d.SkipValue()
	}
	return false
}

// cell returns a JSON value as the text of a cell.
func cell(value string) string {
	switch value[0] {
	case '"':
		if strings.IndexByte(value, '\\') < 0 {
			return value[1 : len(value)-1]
		}
		text, _ := jsontext.AppendUnquote(nil, value)
		return string(text)
	case 'n':
		return ""
	}
	return value
}
