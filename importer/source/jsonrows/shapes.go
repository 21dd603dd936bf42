package jsonrows

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"leadferry/importer/source/rows"
)

// shapes knows the headers of the objects seen so far, so that rows with the
// same keys in the same order share one.
type shapes struct {
	paths []string
	known map[string]*shape // by the names as they are written
	bytes int               // in the keys of known

	in   strings.Reader
	json *jsontext.Decoder
}

// shape says how the members of an object become the cells of a row.
type shape struct {
	header *rows.Header
	keep   []int  // members that are the row's own columns
	texts  []path // where rejects hold a row as text
	fates  []path // where they tell what became of it
	nested []path // where Names[Own:] are
}

// path leads into a member: through keys of objects and indexes of lists.
type path struct {
	member int // -1: the object lacks it
	steps  []string
}

// noteMember is the key that leadferry adds to rejected objects.
const noteMember = "leadferry"

// maxShapeBytes bounds what is remembered; beyond it the shapes are learned anew.
const maxShapeBytes = 1 << 20

func newShapes(paths []string) *shapes {
	s := &shapes{paths: paths, known: map[string]*shape{}}
	s.json = jsontext.NewDecoder(&s.in)
	return s
}

// of gives the shape of an object with these names, which are JSON strings.
func (s *shapes) of(names []byte) *shape {
	if known, ok := s.known[string(names)]; ok {
		return known
	}
	if s.bytes += len(names); s.bytes > maxShapeBytes {
		clear(s.known)
		s.bytes = len(names)
	}
	learned := s.learn(names)
	s.known[string(names)] = learned
	return learned
}

func (s *shapes) learn(names []byte) *shape {
	header := &rows.Header{Open: true}
	learned := &shape{header: header}
	members := map[string]int{}
	json := jsontext.NewDecoder(bytes.NewReader(names))
	for i := 0; ; i++ {
		name, err := json.ReadToken()
		if err != nil { // the end: all names were read once before
			break
		}
		switch n := name.String(); {
		case n == noteMember:
			learned.texts = append(learned.texts, path{i, []string{"text"}})
			learned.fates = append(learned.fates, path{i, []string{"outcome"}})
		case n == rows.TextColumn:
			learned.texts = append(learned.texts, path{i, nil})
		case n == rows.OutcomeColumn:
			learned.fates = append(learned.fates, path{i, nil})
		case !strings.HasPrefix(n, rows.Reserved):
			members[n] = i
			header.Names = append(header.Names, n)
			learned.keep = append(learned.keep, i)
		}
	}
	header.Own = len(header.Names)
	for _, p := range s.paths {
		if _, literal := members[p]; literal {
			continue
		}
		steps := strings.Split(p, ".")
		member, ok := members[steps[0]]
		if !ok {
			member = -1
		}
		header.Names = append(header.Names, p)
		learned.nested = append(learned.nested, path{member, steps[1:]})
	}
	return learned
}

// first is what a rejects file holds of a row at one of these places, or nothing.
func (s *shapes) first(places []path, values []string) string {
	for _, p := range places {
		if text := s.find(values[p.member], p.steps); text != "" {
			return text
		}
	}
	return ""
}

// fill makes cells of the values of an object of this shape.
func (s *shapes) fill(of *shape, cells, values []string) {
	for i, member := range of.keep {
		cells[i] = cell(values[member])
	}
	for i, p := range of.nested {
		if p.member >= 0 {
			cells[of.header.Own+i] = s.find(values[p.member], p.steps)
		}
	}
}

// find follows steps into a JSON value; "" where they lead nowhere.
func (s *shapes) find(value string, steps []string) string {
	s.in.Reset(value)
	s.json.Reset(&s.in)
	for _, step := range steps {
		if !s.enter(step) {
			return ""
		}
	}
	inner, err := s.json.ReadValue()
	if err != nil {
		return ""
	}
	end := int(s.json.InputOffset())
	return cell(value[end-len(inner) : end])
}

// enter goes on to the value of a key, or to an element of a list, counted from 0.
func (s *shapes) enter(step string) bool {
	kind := s.json.PeekKind()
	if kind != '{' && kind != '[' {
		return false
	}
	_, err := s.json.ReadToken()
	for i := 0; err == nil && s.json.PeekKind() != kind+2; i++ { // the codes of both pairs are two apart
		name := strconv.Itoa(i)
		if kind == '{' {
			token, err := s.json.ReadToken()
			if err != nil {
				return false
			}
			name = token.String()
		}
		if name == step {
			return true
		}
		err = s.json.SkipValue()
	}
	return false
}
