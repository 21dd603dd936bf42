// Package jsonrows reads rows of JSON: one object on each line, or the elements of a list, alone or inside one object.
//
// It makes rows from the text of a [lines.Window]. Promises: strings and numbers keep every digit, and no object inside
// another is read as a row. An object that cannot be read is a problem of its row, or the rest of the file is lost.
package jsonrows

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"leadferry/importer/source/lines"
	"leadferry/importer/source/rows"
	"leadferry/internal/spelling"
)

// Reader makes rows of JSON objects. It is strict: each key once, nothing after the object, no lone surrogates. The
// members are the row's cells, in their order: strings are decoded, null is empty, all other values stay as written.
type Reader struct {
	in       *lines.Window
	document *document // nil for JSON Lines
	found    *rows.Found
	null     []string
	shapes   shapes

	text    bytes.Buffer      // what json decodes
	json    *jsontext.Decoder // of the current row
	compact jsontext.Value    // the current element without white space
	names   []byte            // of the current row's members, as written
	values  []string          // of the current row's members, as written
}

// Open finds which of three forms a JSON text has. It looks only at as many bytes as a row may have:
//
//   - A list, if it begins with a bracket: its elements are the rows.
//   - A list inside one object: the member that the options name, or the only member that is a list of objects; if
//     there are several, the options must name one. The list begins in the first MiB. The object's other members are
//     skipped. The object must be alone in the file, or continue after its first line. On one line, the list must be
//     the only member, or be named records, results, value, data, items or leads; otherwise the line is a row.
//   - JSON Lines in all other cases.
//
// Its error is a *[rows.OpenError], or a read error.
func Open(in *lines.Window, o rows.Options, found *rows.Found) (*Reader, error) {
	found.Header = &rows.Header{Open: true}
	r := &Reader{in: in, found: found, null: o.Null, shapes: shapes{paths: o.Paths, known: map[string]*shape{}}}
	r.json = jsontext.NewDecoder(&r.text)
	text, _ := in.Peek(min(firstLook, in.Limit))
	text = bytes.TrimLeft(text, white)
	if first, _, _ := bytes.Cut(text, []byte{'\n'}); bytes.Contains(first, []byte(`"`+noteMember+`":{`)) {
		o.List, o.Lines = "", true // a rejects file has one row on each line
	}
	isList := bytes.HasPrefix(text, []byte("["))
	var member *list
	var err error
	if bytes.HasPrefix(text, []byte("{")) {
		member, err = listIn(in, o, found)
	}
	switch {
	case err != nil:
		return nil, err
	case isList || member != nil:
		r.document = openDocument(in, member, o, found)
	case o.List != "":
		return nil, rows.Refuse(fmt.Sprintf("has no list %q: it holds one object a line", o.List),
			"leave --list, and source.list of the mapping, out")
	}
	in.Widen()
	return r, nil
}

// Next reads the next row that holds data.
func (r *Reader) Next(row *rows.Row) error {
	read := r.line
	if r.document != nil {
		read = r.element
	}
	holdsData := func(cell string) bool { return !rows.IsBlank(cell, r.null) }
	for open := row.Header; ; row.Clear(open) {
		if err := read(row); err != nil {
			return err
		}
		if row.Problem != nil || slices.ContainsFunc(row.Cells[:row.Header.Own], holdsData) {
			return nil
		}
		r.found.Blank++
	}
}

// line reads the next line that is not blank.
func (r *Reader) line(row *rows.Row) error {
	line, err := r.in.First()
	if err != nil {
		return err
	}
	row.Line, row.Size, row.Raw = r.in.Number, len(line), string(lines.Body(line))
	row.Problem = r.judge(lines.Body(line), r.in.BadText(line, row.Line), row)
	if row.Problem != nil && row.Text == "" {
		row.Size = r.problemSize(line)
		row.Text = lines.Readable(lines.Body(r.in.Bytes(row.Size)))
	}
	r.in.Pass(row.Size)
	return nil
}

// element reads the next element of the document's list.
func (r *Reader) element(row *rows.Row) error {
	element, line, err := r.document.element()
	if err != nil {
		return err
	}
	r.compact = append(r.compact[:0], element...)
	_ = r.compact.Compact() // the decoder has checked it
	row.Line, row.Size, row.Raw = line, len(element), string(r.compact)
	row.Problem = r.judge(r.compact, r.in.BadText(element, line), row)
	if row.Problem != nil && row.Text == "" {
		row.Text = lines.Readable(r.compact)
	}
	return nil
}

// problemSize returns how many bytes of the window a row with a problem takes: its line, or all lines of an object that
// has several, so that no object inside it is read as a row.
func (r *Reader) problemSize(line []byte) int {
	first := len(line)
	if !errors.Is(lenient(line).SkipValue(), io.ErrUnexpectedEOF) {
		return first
	}
	text, _ := r.in.Peek(r.in.Limit)
	d := lenient(text)
	if d.SkipValue() != nil {
		return first
	}
	end := int(d.InputOffset())
	rest, _ := r.in.Line(end) // empty if the file ends with the object
	return end + len(rest)
}

// judge makes the row's cells from the members of an object, or returns why it is not a row. row.Raw is the same text
// as object. bad is what BadText found in it.
func (r *Reader) judge(object []byte, bad *rows.Problem, row *rows.Row) *rows.Problem {
	if bad != nil {
		return bad
	}
	p := r.members(object, row.Raw)
	if p == nil {
		p = r.cells(object, row)
	}
	if row.Size > r.in.Limit && (p == nil || p.Code != "uncorrected") {
		return rows.TooLong(r.in.Limit)
	}
	return p
}

// members collects the names and values of an object. text is the same object; the values are parts of it.
func (r *Reader) members(object []byte, text string) *rows.Problem {
	r.names, r.values = r.names[:0], r.values[:0]
	r.text = *bytes.NewBuffer(object)
	r.json.Reset(&r.text)
	if r.json.PeekKind() != '{' {
		return rows.Flaw("json", "the row is not a JSON object", "each row must be an object with named values")
	}
	_, _ = r.json.ReadToken() // cannot fail after PeekKind
	for r.json.PeekKind() != '}' {
		name, err := r.json.ReadValue()
		if err != nil {
			return invalid(err)
		}
		r.names = append(append(r.names, name...), ' ')
		value, err := r.json.ReadValue()
		if err != nil {
			return invalid(err)
		}
		end := int(r.json.InputOffset())
		cell := text[end-len(value) : end]
		if kind := value.Kind(); kind == '{' || kind == '[' { // white space and escapes must not change a cell
			value = value.Clone()
			_ = value.Compact(jsontext.PreserveRawStrings(false))
			cell = string(value)
		}
		r.values = append(r.values, cell)
	}
	_, _ = r.json.ReadToken()
	if _, err := r.json.ReadToken(); !errors.Is(err, io.EOF) {
		return rows.Flaw("json", "the line holds text after its JSON object",
			"JSON Lines hold one object a line and nothing between them")
	}
	return nil
}

// invalid says what is wrong with an object, without the text that the decoder quotes in its errors.
func invalid(err error) *rows.Problem {
	var at *jsontext.SyntacticError
	switch {
	case !errors.As(err, &at):
		return rows.Flaw("json", "the row cannot be decoded: "+err.Error(), "")
	case errors.Is(err, jsontext.ErrDuplicateName):
		const text = "the key at byte offset %d of the row is there twice in its object"
		return rows.Flaw("duplicate_key", fmt.Sprintf(text, at.ByteOffset), "")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return rows.Flaw("json", "the object does not end on its line",
			"JSON Lines hold one object a line; a list of objects may have any line breaks")
	}
	return rows.Flaw("json", fmt.Sprintf("the row is not valid JSON at its byte offset %d", at.ByteOffset), "")
}

// nulEscape matches an escaped NUL in a JSON text, after no backslash or an even number of them.
var nulEscape = spelling.Form(`(^|[^\\])(\\\\)*\\u0000`)

// cells makes the row's cells from the collected members.
func (r *Reader) cells(object []byte, row *rows.Row) *rows.Problem {
	if len(r.values) > rows.MaxColumns {
		return rows.Flaw("columns", fmt.Sprintf("the row is an object with more than %d keys", rows.MaxColumns), "")
	}
	s := r.shapes.shapeOf(r.names)
	if s.note != nil {
		note := func(name string) string { return s.note(name).in(r.values) }
		if row.Note(note); strings.TrimSpace(note("text")) != "" {
			row.Text = note("text")
			return rows.NotCorrected(noteMember + ".text")
		}
	}
	switch {
	case s.header.Own == 0:
		return rows.Flaw("json", "the row is an object without members", "")
	case bytes.Contains(object, []byte(`\u0000`)) && nulEscape().Match(object):
		return rows.Flaw("nul", "the row holds a NUL character", `take \u0000 out of the row`)
	}
	row.Header = s.header
	row.Cells = rows.Cleared(row.Cells, len(s.header.Names))
	for i, p := range s.cells {
		row.Cells[i] = p.in(r.values)
	}
	return nil
}
