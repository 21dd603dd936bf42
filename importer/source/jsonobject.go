package source

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// jsonObjects makes rows of JSON objects, strictly: each key once, nothing
// after the object, no lone surrogates. The members are the row's cells, in
// their order: strings decoded, null empty, all else as it is written.
type jsonObjects struct {
	shapes *shapes

	line   bytes.Buffer
	json   *jsontext.Decoder
	names  []byte   // of the present row as they are written
	values []string // of the present row as they are written
	chunk  chunk

	null   []string // cells that count as empty
	blanks int      // rows without any data, which were passed over
}

func newJSONObjects(o Options) *jsonObjects {
	j := &jsonObjects{shapes: newShapes(o.Paths), null: o.Null}
	j.json = jsontext.NewDecoder(&j.line)
	return j
}

// row makes cells of the members of an object. Its text is r.Raw again.
func (j *jsonObjects) row(object []byte, r *Row) error {
	if err := j.members(object, r.Raw); err != nil {
		return err
	}
	if len(j.values) > maxColumns {
		return errKeys
	}
	s := j.shapes.of(j.names)
	r.Doubted = j.shapes.first(s.fates, j.values) == inDoubt
	switch text := j.shapes.first(s.texts, j.values); {
	case strings.TrimSpace(text) != "":
		r.Text = text
		return errUncorrected
	case s.header.Own == 0:
		return errMembers
	case hasNUL(object):
		return errNUL
	}
	r.Header = s.header
	r.Cells = j.chunk.take(r.Cells, len(s.header.Names))
	j.shapes.fill(s, r.Cells, j.values)
	return nil
}

// blank says that a row without a problem holds no data, and counts it.
func (j *jsonObjects) blank(r *Row) bool {
	if r.Problem != nil {
		return false
	}
	for _, cell := range r.Cells[:r.Header.Own] {
		if !isBlank(cell, j.null) {
			return false
		}
	}
	j.blanks++
	return true
}

// hasNUL says that a text in a JSON value has a NUL character.
func hasNUL(value []byte) bool {
	for from := 0; ; {
		at := bytes.Index(value[from:], []byte(`\u0000`))
		if at < 0 {
			return false
		}
		at += from
		slashes := 1
		for slashes <= at && value[at-slashes] == '\\' {
			slashes++
		}
		if slashes%2 == 1 {
			return true
		}
		from = at + 1
	}
}

// members gathers the names and values of an object. The values are parts of
// text, which is the object again.
func (j *jsonObjects) members(object []byte, text string) error {
	j.names, j.values = j.names[:0], j.values[:0]
	j.line = *bytes.NewBuffer(object)
	j.json.Reset(&j.line)
	if j.json.PeekKind() != '{' {
		return errNoObject
	}
	if _, err := j.json.ReadToken(); err != nil {
		return err
	}
	for j.json.PeekKind() != '}' {
		name, err := j.json.ReadValue()
		if err != nil {
			return err
		}
		j.names = append(append(j.names, name...), ' ')
		value, err := j.json.ReadValue()
		if err != nil {
			return err
		}
		if depth(value) >= maxDepth {
			return errDepth
		}
		end := int(j.json.InputOffset())
		j.values = append(j.values, text[end-len(value):end])
	}
	if _, err := j.json.ReadToken(); err != nil {
		return err
	}
	if _, err := j.json.ReadToken(); !errors.Is(err, io.EOF) {
		return errTrailing
	}
	return nil
}

var (
	errNoObject = errors.New("is not a JSON object")
	errTrailing = errors.New("holds text after its JSON object (hint: JSON Lines hold one object a line and nothing between them)")
	errDepth    = fmt.Errorf("holds an object nested more than %d levels deep", maxDepth)
	errKeys     = fmt.Errorf("holds an object with more than %d keys", maxColumns)
	errMembers  = errors.New("holds an object without members")
	errNUL      = errors.New("holds a NUL character")

	errUncorrected = errors.New("is not corrected yet")
)

// badJSON tells what is wrong with a line or an element without the text that
// the decoder quotes in its errors.
func badJSON(part string, err error) *Problem {
	var at *jsontext.SyntacticError
	switch {
	case errors.Is(err, errUncorrected):
		return notCorrected(noteMember + ".text")
	case errors.Is(err, errNUL):
		return &Problem{Code: "nul", Text: "the " + part + " " + err.Error()}
	case errors.Is(err, errKeys):
		return &Problem{Code: "columns", Text: "the " + part + " " + err.Error()}
	case !errors.As(err, &at):
		return &Problem{Code: "json", Text: "the " + part + " " + err.Error()}
	case errors.Is(err, jsontext.ErrDuplicateName):
		return &Problem{Code: "duplicate_key", Text: fmt.Sprintf("the key at byte offset %d of the %s stands twice in its object", at.ByteOffset, part)}
	case errors.Is(err, io.ErrUnexpectedEOF):
		return &Problem{Code: "json", Text: "the object does not end on its line (hint: JSON Lines hold one object a line; a list of objects may have any line breaks)"}
	}
	return &Problem{Code: "json", Text: fmt.Sprintf("the %s is not valid JSON at its byte offset %d", part, at.ByteOffset)}
}

// depth counts the levels of a valid JSON value; 0 for one that holds no other.
func depth(value []byte) int {
	if value[0] != '{' && value[0] != '[' {
		return 0
	}
	deepest, level, quoted := 0, 0, false
	for i := 0; i < len(value); i++ {
		switch c := value[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			level++
			deepest = max(deepest, level)
		case c == '}' || c == ']':
			level--
		}
	}
	return deepest
}

// cell is a JSON value as the text of a cell.
func cell(value string) string {
	switch value[0] {
	case '"':
		return unquote(value)
	case 'n':
		return ""
	}
	return value
}
