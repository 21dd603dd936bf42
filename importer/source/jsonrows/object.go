package jsonrows

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"leadferry/importer/source/rows"
)

// maxDepth is how many levels a JSON object may have.
const maxDepth = 64

// objects makes rows of JSON objects, strictly: each key once, nothing
// after the object, no lone surrogates. The members are the row's cells, in
// their order: strings decoded, null empty, all else as it is written.
type objects struct {
	part   string // of the file that holds an object: "line" or "element"
	null   []string
	found  *rows.Found
	shapes *shapes

	text   bytes.Buffer
	json   *jsontext.Decoder
	names  []byte   // of the present row as they are written
	values []string // of the present row as they are written
	cells  rows.Cells
	scan   scan
}

func newObjects(part string, o rows.Options, found *rows.Found) *objects {
	b := &objects{part: part, null: o.Null, found: found, shapes: newShapes(o.Paths)}
	b.json = jsontext.NewDecoder(&b.text)
	return b
}

// nulEscape is a NUL character in a JSON text, behind no backslash or an even number of them.
var nulEscape = regexp.MustCompile(`(^|[^\\])(\\\\)*\\u0000`)

// row makes cells of the members of an object, or tells why it is no row. The object's
// text is r.Raw again.
func (b *objects) row(object []byte, r *rows.Row) *rows.Problem {
	if p := b.members(object, r.Raw); p != nil {
		return p
	}
	if len(b.values) > rows.MaxColumns {
		return b.problem("columns", fmt.Sprintf("holds an object with more than %d keys", rows.MaxColumns))
	}
	s := b.shapes.of(b.names)
	r.Doubted = b.shapes.first(s.fates, b.values) == rows.InDoubt
	switch text := b.shapes.first(s.texts, b.values); {
	case strings.TrimSpace(text) != "":
		r.Text = text
		return rows.NotCorrected(noteMember + ".text")
	case s.header.Own == 0:
		return b.problem("json", "holds an object without members")
	case bytes.Contains(object, []byte(`\u0000`)) && nulEscape.Match(object):
		return b.problem("nul", "holds a NUL character")
	}
	r.Header = s.header
	r.Cells = b.cells.Take(r.Cells, len(s.header.Names))
	b.shapes.fill(s, r.Cells, b.values)
	return nil
}

// isUncorrected says that a row stands in a rejects file as it was written there, however
// long that is.
func isUncorrected(p *rows.Problem) bool { return p != nil && p.Code == "uncorrected" }

// blank says that a row without a problem holds no data, and counts it.
func (b *objects) blank(r *rows.Row) bool {
	if r.Problem != nil {
		return false
	}
	for _, cell := range r.Cells[:r.Header.Own] {
		if !rows.IsBlank(cell, b.null) {
			return false
		}
	}
	b.found.Blank++
	return true
}

// members gathers the names and values of an object. The values are parts of
// text, which is the object again.
func (b *objects) members(object []byte, text string) *rows.Problem {
	b.names, b.values = b.names[:0], b.values[:0]
	b.text = *bytes.NewBuffer(object)
	b.json.Reset(&b.text)
	if b.json.PeekKind() != '{' {
		return b.problem("json", "is not a JSON object")
	}
	if _, err := b.json.ReadToken(); err != nil {
		return b.invalid(err)
	}
	for b.json.PeekKind() != '}' {
		name, err := b.json.ReadValue()
		if err != nil {
			return b.invalid(err)
		}
		b.names = append(append(b.names, name...), ' ')
		value, err := b.json.ReadValue()
		if err != nil {
			return b.invalid(err)
		}
		if b.tooDeep(value) {
			return b.problem("json", fmt.Sprintf("holds an object nested more than %d levels deep", maxDepth))
		}
		end := int(b.json.InputOffset())
		b.values = append(b.values, text[end-len(value):end])
	}
	if _, err := b.json.ReadToken(); err != nil {
		return b.invalid(err)
	}
	if _, err := b.json.ReadToken(); !errors.Is(err, io.EOF) {
		return b.problem("json", "holds text after its JSON object (hint: JSON Lines hold one object a line and nothing between them)")
	}
	return nil
}

// tooDeep says that a member's value has so many levels that its object has too many.
func (b *objects) tooDeep(value []byte) bool {
	if value[0] != '{' && value[0] != '[' {
		return false
	}
	b.scan.reset()
	b.scan.feed(value)
	return b.scan.deepest >= maxDepth
}

func (b *objects) problem(code, text string) *rows.Problem {
	return &rows.Problem{Code: code, Text: "the " + b.part + " " + text}
}

// invalid tells what is wrong with an object without the text that the decoder quotes in
// its errors.
func (b *objects) invalid(err error) *rows.Problem {
	var at *jsontext.SyntacticError
	switch {
	case !errors.As(err, &at):
		return b.problem("json", err.Error())
	case errors.Is(err, jsontext.ErrDuplicateName):
		return &rows.Problem{Code: "duplicate_key", Text: fmt.Sprintf("the key at byte offset %d of the %s stands twice in its object", at.ByteOffset, b.part)}
	case errors.Is(err, io.ErrUnexpectedEOF):
		return &rows.Problem{Code: "json", Text: "the object does not end on its line (hint: JSON Lines hold one object a line; a list of objects may have any line breaks)"}
	}
	return b.problem("json", fmt.Sprintf("is not valid JSON at its byte offset %d", at.ByteOffset))
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

// unquote decodes a valid JSON string.
func unquote(quoted string) string {
	if strings.IndexByte(quoted, '\\') < 0 {
		return quoted[1 : len(quoted)-1]
	}
	text, _ := jsontext.AppendUnquote(nil, quoted)
	return string(text)
}
