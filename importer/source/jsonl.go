package source

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// jsonLines reads one JSON object a line, strictly: each key once, nothing
// after the object, no lone surrogates. The members are the row's cells, in
// their order: strings decoded, null empty, all else as it is written.
type jsonLines struct {
	in     *window
	shapes *shapes

	line   bytes.Buffer
	json   *jsontext.Decoder
	names  []byte   // of the present row as they are written
	values []string // of the present row as they are written
	chunk  chunk
}

func newJSONLines(in *window, paths []string) *jsonLines {
	j := &jsonLines{in: in, shapes: newShapes(paths)}
	j.json = jsontext.NewDecoder(&j.line)
	return j
}

// next reads the next line that is not blank.
func (j *jsonLines) next(r *Row) error {
	line, err := j.in.first()
	long := errors.Is(err, errTooLong)
	if long {
		line, err = j.in.bytes(j.in.max), nil
	}
	if err != nil {
		return err
	}
	r.Line = j.in.number
	r.Raw = string(body(line))
	if long {
		r.Problem = tooLong(j.in.max)
	} else if r.Problem = badText(line, j.in.offset); r.Problem == nil {
		r.Problem = j.object(body(line), r)
	}
	j.in.pass(len(line))
	if long {
		j.in.passLine()
	}
	return nil
}

// object makes cells of the members of the row's object.
func (j *jsonLines) object(line []byte, r *Row) *Problem {
	if err := j.members(line, r.Raw); err != nil {
		return badJSON(err)
	}
	if len(j.values) > maxColumns {
		return &Problem{"columns", fmt.Sprintf("the object has more than %d keys", maxColumns)}
	}
	s := j.shapes.of(j.names)
	r.Header = s.header
	r.Cells = j.chunk.take(len(s.header.Names))
	j.shapes.fill(s, r.Cells, j.values)
	return nil
}

// members gathers the names and values of the object on a line. The values are
// parts of text, which is the line again.
func (j *jsonLines) members(line []byte, text string) error {
	j.names, j.values = j.names[:0], j.values[:0]
	j.line = *bytes.NewBuffer(line)
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
	errNoObject = errors.New("the line is not a JSON object")
	errTrailing = errors.New("text follows the object on its line")
	errDepth    = fmt.Errorf("the object is nested more than %d levels deep", maxDepth)
)

// badJSON tells an error without the text that the decoder quotes in its own.
func badJSON(err error) *Problem {
	var at *jsontext.SyntacticError
	switch {
	case !errors.As(err, &at):
		return &Problem{"json", err.Error()}
	case errors.Is(err, jsontext.ErrDuplicateName):
		return &Problem{"duplicate_key", fmt.Sprintf("the key at byte offset %d of the line stands twice in its object", at.ByteOffset)}
	case errors.Is(err, io.ErrUnexpectedEOF):
		return &Problem{"json", "the object does not end on its line (hint: JSON Lines hold one object a line)"}
	}
	return &Problem{"json", fmt.Sprintf("the line is not valid JSON at its byte offset %d", at.ByteOffset)}
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
