package jsonrows

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"leadferry/importer/source/lines"
	"leadferry/importer/source/rows"
	"leadferry/internal/spelling"
)

// Open finds out which of three forms a JSON text has, by as much of it as a row may have bytes:
//
//   - A list, when it begins with a bracket: its elements are the rows.
//   - A list inside one object: the member that the options name, or the only one that begins with an object; where
//     several do, one has to be named. It begins in the first MiB, and the members beside it are passed over. The object
//     must be alone in the file, or go on behind its first line; on one line the list must be its only member, or be
//     named records, results, value, data, items or leads, or the line is a row.
//   - JSON Lines in all other cases.
//
// Its error is a *[rows.OpenError], or one of reading.
func Open(in *lines.Window, o rows.Options, found *rows.Found) (rows.Reader, error) {
	found.Header = &rows.Header{Open: true}
	text, _ := in.Peek(min(firstLook, in.Limit))
	switch text = bytes.TrimLeft(text, white); {
	case bytes.HasPrefix(text, []byte("[")):
		return openDocument(in, nil, o, found)
	case bytes.HasPrefix(text, []byte("{")):
		list, err := listIn(in, o.List)
		if err != nil {
			return nil, err
		} else if list != nil {
			return openDocument(in, list, o, found)
		}
	}
	if o.List != "" {
		return nil, rows.Refuse(fmt.Sprintf("has no list %q: it holds one object a line", o.List),
			"leave --list, and source.list of the mapping, out")
	}
	in.Widen()
	return &lineReader{in: in, objects: newObjects("line", o, found)}, nil
}

// lineReader reads one JSON object a line.
type lineReader struct {
	in      *lines.Window
	objects *objects
}

// Next reads the next line that holds data.
func (l *lineReader) Next(r *rows.Row) error {
	for open := r.Header; ; r.Clear(open) {
		line, err := l.in.First()
		if err != nil {
			return err
		}
		r.Line, r.Size, r.Raw = l.in.Number, len(line), string(lines.Body(line))
		r.Problem = l.objects.judge(lines.Body(line), len(line), l.in.Limit, l.in.BadText(len(line)), r)
		if r.Problem != nil && r.Text == "" {
			r.Size = l.reach(line)
			r.Text = lines.Readable(lines.Body(l.in.Bytes(r.Size)))
		}
		l.in.Pass(r.Size)
		if !l.objects.blank(r) {
			return nil
		}
	}
}

// Line is the line that was read last.
func (l *lineReader) Line() int { return l.in.Number }

// reach is how many bytes of the window a row with a problem takes: its line, or an object over several lines up to the
// end of the last of them, so that no object inside it is taken for a row.
func (l *lineReader) reach(line []byte) int {
	first := len(line)
	if !errors.Is(lenient(line).SkipValue(), io.ErrUnexpectedEOF) {
		return first
	}
	text, _ := l.in.Peek(l.in.Limit)
	d := lenient(text)
	if d.SkipValue() != nil {
		return first
	}
	end := int(d.InputOffset())
	rest, _ := l.in.Line(end) // nothing where the file ends with the object
	return end + len(rest)
}

// objects makes rows of JSON objects, strictly: each key once, nothing after the object, no lone surrogates. The
// members are the row's cells, in their order: strings decoded, null empty, all else as it is written.
type objects struct {
	part   string // of the file that holds an object: "line" or "element"
	null   []string
	found  *rows.Found
	shapes *shapes

	text   bytes.Buffer
	json   *jsontext.Decoder
	names  []byte   // of the present row as they are written
	values []string // of the present row as they are written
}

func newObjects(part string, o rows.Options, found *rows.Found) *objects {
	b := &objects{part: part, null: o.Null, found: found, shapes: newShapes(o.Paths)}
	b.json = jsontext.NewDecoder(&b.text)
	return b
}

// nulEscape is a NUL character in a JSON text, behind no backslash or an even number of them.
var nulEscape = spelling.Form(`(^|[^\\])(\\\\)*\\u0000`)

// judge makes the row of an object, which takes size bytes of its file, or tells why it is none. bad is what is no text
// in it.
func (b *objects) judge(object []byte, size, limit int, bad *rows.Problem, r *rows.Row) *rows.Problem {
	if bad != nil {
		return bad
	}
	p := b.row(object, r)
	if size > limit && (p == nil || p.Code != "uncorrected") {
		return rows.TooLong(limit)
	}
	return p
}

// row makes cells of the members of an object, or tells why it is no row. The object's text is r.Raw again.
func (b *objects) row(object []byte, r *rows.Row) *rows.Problem {
	if p := b.members(object, r.Raw); p != nil {
		return p
	}
	if len(b.values) > rows.MaxColumns {
		return b.problem("columns", fmt.Sprintf("holds an object with more than %d keys", rows.MaxColumns))
	}
	s := b.shapes.of(b.names)
	r.HasLead = rows.HasLead(first(s.outcome, b.values))
	switch text := first(s.text, b.values); {
	case strings.TrimSpace(text) != "":
		r.Text = text
		return rows.NotCorrected(noteMember + ".text")
	case s.header.Own == 0:
		return b.problem("json", "holds an object without members")
	case bytes.Contains(object, []byte(`\u0000`)) && nulEscape().Match(object):
		return b.problem("nul", "holds a NUL character")
	}
	r.Header = s.header
	r.Cells = rows.Cleared(r.Cells, len(s.header.Names))
	for i, p := range s.cells {
		if p.member >= 0 {
			r.Cells[i] = find(b.values[p.member], p.steps)
		}
	}
	return nil
}

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

// members gathers the names and values of an object. The values are parts of text, which is the object again.
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
		end := int(b.json.InputOffset())
		b.values = append(b.values, text[end-len(value):end])
	}
	if _, err := b.json.ReadToken(); err != nil {
		return b.invalid(err)
	}
	if _, err := b.json.ReadToken(); !errors.Is(err, io.EOF) {
		return rows.Flaw("json", "the "+b.part+" holds text after its JSON object",
			"JSON Lines hold one object a line and nothing between them")
	}
	return nil
}

func (b *objects) problem(code, text string) *rows.Problem {
	return rows.Flaw(code, "the "+b.part+" "+text, "")
}

// invalid tells what is wrong with an object without the text that the decoder quotes in its errors.
func (b *objects) invalid(err error) *rows.Problem {
	var at *jsontext.SyntacticError
	switch {
	case !errors.As(err, &at):
		return b.problem("json", err.Error())
	case errors.Is(err, jsontext.ErrDuplicateName):
		const text = "the key at byte offset %d of the %s is there twice in its object"
		return rows.Flaw("duplicate_key", fmt.Sprintf(text, at.ByteOffset, b.part), "")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return rows.Flaw("json", "the object does not end on its line",
			"JSON Lines hold one object a line; a list of objects may have any line breaks")
	}
	return b.problem("json", fmt.Sprintf("is not valid JSON at its byte offset %d", at.ByteOffset))
}

// cell is a JSON value as the text of a cell.
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

// shapes knows the headers of the objects seen so far, so that rows with the same keys in the same order share one.
type shapes struct {
	paths []string
	known map[string]*shape // by the names as they are written
	bytes int               // in the keys of known
}

// shape says how the members of an object become the cells of a row.
type shape struct {
	header  *rows.Header
	cells   []path // where the values of the header's names are
	text    []path // where a rejects file holds a row as text
	outcome []path // where it tells what became of it
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
	return &shapes{paths: paths, known: map[string]*shape{}}
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
			learned.text = append(learned.text, path{i, []string{"text"}})
			learned.outcome = append(learned.outcome, path{i, []string{"outcome"}})
			header.Rejects = true
		case n == rows.TextColumn:
			learned.text = append(learned.text, path{i, nil})
		case n == rows.OutcomeColumn:
			learned.outcome = append(learned.outcome, path{i, nil})
		case !strings.HasPrefix(n, rows.Reserved):
			members[n] = i
			header.Names = append(header.Names, n)
			learned.cells = append(learned.cells, path{i, nil})
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
		learned.cells = append(learned.cells, path{member, steps[1:]})
	}
	return learned
}

// first is what a rejects file holds of a row at one of these places, or nothing.
func first(places []path, values []string) string {
	for _, p := range places {
		if text := find(values[p.member], p.steps); text != "" {
			return text
		}
	}
	return ""
}

// find follows steps into a JSON value; "" where they lead nowhere.
func find(value string, steps []string) string {
	if len(steps) == 0 {
		return cell(value)
	}
	d := jsontext.NewDecoder(strings.NewReader(value))
	for _, step := range steps {
		if !enter(d, step) {
			return ""
		}
	}
	inner, err := d.ReadValue()
	if err != nil {
		return ""
	}
	return cell(string(inner))
}

// enter goes on to the value of a key, or to an element of a list, counted from 0.
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
