// Package jsonrows reads rows of JSON: one object a line, or the objects of a list.
//
// It makes rows of the text that a [lines.Window] shows. Its promises: values come digit for digit, each key stands
// once, and a line or element that cannot be read is the problem of that row alone, or the file is lost there: no
// row begins inside another one.
package jsonrows

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"leadferry/importer/source/lines"
	"leadferry/importer/source/rows"
)

// listNames are the members in which CRMs put the list of their records: Salesforce's records, HubSpot's results,
// OData's value, and the others' data, items and leads.
var listNames = []string{"records", "results", "value", "data", "items", "leads"}

// pageNames are members that tell that the file holds one page of several.
var pageNames = []string{"nextRecordsUrl", "@odata.nextLink", "paging"}

const (
	white     = " \t\r\n"
	firstLook = 64 << 10 // bytes in which a document or a list begins
)

// Open finds out which of three forms a JSON text has, by as much of it as a row may have bytes:
//
//   - A list, when it begins with a bracket: its elements are the rows.
//   - A list inside one object: the first of the object's own members named records, results, value, data, items or
//     leads that is a list which is empty or begins with an object; where none is named so, the only list that begins
//     with an object. The members beside it are passed over. The object must be alone in the file, or go on behind
//     its first line; on one line, a list of another name must be its only member and have two elements, or the line
//     is a row.
//   - JSON Lines in all other cases. An object over several lines that is not of the second form is refused.
//
// Its error is a *[rows.OpenError], or one of reading.
func Open(in *lines.Window, o rows.Options, found *rows.Found) (rows.Reader, error) {
	found.Header = &rows.Header{Open: true}
	defer in.Widen()
	list := &listReader{cursor: cursor{in: in}, objects: newObjects("element", o, found), found: found}
	text, _ := in.Peek(min(firstLook, in.Limit))
	switch text = bytes.TrimLeft(text, white); {
	case bytes.HasPrefix(text, []byte("[")):
		list.expect('[', "")
		return list, list.err
	case bytes.HasPrefix(text, []byte("{")) && list.isDocument():
		return list, list.find()
	}
	return &lineReader{in: in, objects: newObjects("line", o, found)}, nil
}

// isDocument says that the window begins with an object over several lines, or one that is alone and holds a list
// of rows.
func (l *listReader) isDocument() bool {
	in := l.in
	text, _ := in.Peek(min(firstLook, in.Limit))
	line, rest, _ := bytes.Cut(bytes.TrimLeft(text, white), []byte{'\n'})
	if _, state := new(scan).feed(line); state == scanEnd && len(bytes.TrimSpace(rest)) > 0 {
		return false // the first line of many
	}
	text, whole := in.Peek(in.Limit)
	probe := &listReader{cursor: cursor{in: lines.New(bytes.NewReader(text), in.Limit)}, found: &rows.Found{}}
	list := probe.members(true)
	if !list {
		l.only = probe.onlyList(text)
		list = l.only != ""
	}
	if err := lenient(text).SkipValue(); err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return list // what is broken and has none is a broken line of JSON Lines
	}
	text = bytes.TrimLeft(text, white)
	size, state := new(scan).feed(text)
	first := bytes.IndexByte(text, '\n')
	switch several := first >= 0 && (state != scanEnd || first < size); {
	case several:
		return list || state == scanEnd || !whole
	case state == scanEnd:
		return list && whole && len(bytes.TrimSpace(text[size:])) == 0
	}
	return list // what is cut on its first line and never goes on is a broken line of JSON Lines
}

// onlyList is the name of the one list that a probe of this text has met among the members of the object, or "": its
// first element is an object, and nothing of the object that might be another list lies behind the end of the text. In
// an object on one line, which may be a row, it stands alone and has two elements or more.
func (l *listReader) onlyList(text []byte) string {
	oneLine := !bytes.Contains(bytes.TrimSpace(text), []byte{'\n'})
	if len(l.lists) != 1 || l.within != "" && l.within != l.lists[0] || oneLine && (l.count > 1 || !hasSecond(text)) {
		return ""
	}
	return l.lists[0]
}

// lenient decodes what only has to be found, and is judged when it is read.
func lenient(text []byte) *jsontext.Decoder {
	return jsontext.NewDecoder(bytes.NewReader(text), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

// hasSecond says that the list which is the first member of an object has two elements.
func hasSecond(text []byte) bool {
	d := lenient(text)
	for range 3 { // the brace, the name and the bracket
		if _, err := d.ReadToken(); err != nil {
			return false
		}
	}
	return d.SkipValue() == nil && d.PeekKind() == '{'
}

// beginsList says that text begins with a list that is empty or has an object for its first element.
func beginsList(text []byte) bool {
	list, ok := bytes.CutPrefix(text, []byte("["))
	list = bytes.TrimLeft(list, white)
	return ok && len(list) > 0 && (list[0] == '{' || list[0] == ']')
}

// find goes on to the list inside the object that the window begins with.
func (l *listReader) find() error {
	refusal := &rows.OpenError{
		Text: "holds an object over several lines and in it no list of rows",
		Hint: "the rows must be a list, the only list of objects in one object or one named " + strings.Join(listNames, ", ") + ", or one object a line (jq -c writes those)",
	}
	if l.members(true) {
		return nil
	}
	lost, isLost := errors.AsType[*rows.LostError](l.err)
	switch {
	case l.err != nil && !isLost:
		return l.err
	case isLost && !errors.Is(l.err, errCut):
		refusal.Line, refusal.Text = lost.Line, lost.Text
	}
	return refusal
}

// members passes over members of the outer object: from its beginning to its list, or from the list's end to its own.
func (l *listReader) members(find bool) (found bool) {
	if find {
		l.expect('{', "")
	}
	for first := find; l.err == nil && !found; first = false {
		if l.next() == '}' {
			l.in.Pass(1)
			return false
		}
		if !first {
			l.expect(',', "no comma stands between two members of the object")
		}
		found = l.member(find)
	}
	return found
}

// member passes over a member, or finds the list that is looked for.
func (l *listReader) member(find bool) (found bool) {
	name := l.name()
	l.expect(':', "no colon follows the name of a member")
	c := l.next()
	if l.err != nil {
		return false
	}
	text, _ := l.in.Peek(firstLook)
	switch list, named := beginsList(text), slices.Contains(listNames, name) || l.only != "" && name == l.only; {
	case list && named && find:
		l.in.Pass(1)
		l.wrapped = true
		if l.only != "" {
			l.found.Warn("the rows are those of the list %q; the members beside it are not read", name)
		}
		return true
	case list && named:
		l.found.Warn("the object holds a second list, %q, which is not read", name)
	case list && bytes.HasPrefix(bytes.TrimLeft(text[1:], white), []byte{'{'}):
		l.lists = append(l.lists, name)
	}
	l.within = name
	l.count++
	if slices.Contains(pageNames, name) && (c == '"' || c == '{') {
		l.found.Warn("the file holds one page of a longer list, as its member %q says", name)
	}
	l.scan.reset()
	if l.passRest(); l.err == nil {
		l.within = ""
	}
	return false
}

func (l *listReader) name() string {
	l.next()
	size, state := l.measure()
	if l.err != nil {
		return ""
	}
	quoted := l.in.Bytes(size)
	if state != scanEnd || quoted[0] != '"' {
		l.lose(errors.New("a member of the object has no name"))
		return ""
	}
	name := string(quoted[1 : size-1])
	l.in.Pass(size)
	return name
}

// listReader reads the elements of one JSON list, which is the whole document or a member of the object that is.
type listReader struct {
	cursor
	objects *objects
	found   *rows.Found
	compact jsontext.Value // the present element without white space
	only    string         // the list's name, where it is none of listNames
	wrapped bool           // the list is a member of the document
	begun   bool           // an element was read

	lists  []string // of objects that were passed over on the way, none of listNames
	within string   // member that is being passed over; "": none
	count  int      // members that were passed over, with this one
}

// Next reads the next element that holds data.
func (l *listReader) Next(r *rows.Row) error {
	for open := r.Header; l.err == nil; r.Clear(open) {
		if l.element(r); l.err == nil && !l.objects.blank(r) {
			return nil
		}
	}
	return l.err
}

func (l *listReader) element(r *rows.Row) {
	c := l.next()
	if c == ']' {
		l.end()
		return
	}
	if l.begun {
		l.expect(',', "no comma stands between two elements of the list")
		c = l.next()
	}
	l.begun = true
	r.Line = l.in.Number
	if c == ',' || c == ']' {
		r.Problem = &rows.Problem{Code: "json", Text: "an element of the list is missing beside a comma"}
		return
	}
	size, state := l.measure()
	if l.err != nil {
		return
	}
	r.Size = min(size, l.in.Max)
	if r.Problem = rows.TooLong(l.in.Limit); size <= l.in.Max {
		r.Problem = l.problem(l.in.Bytes(size), r)
	}
	if r.Problem != nil && r.Text == "" {
		r.Text = oneLine(l.in.Readable(r.Size))
		r.Raw = r.Text
	}
	l.in.Pass(size)
	if size > l.in.Max && state == scanMore {
		l.passRest()
	}
}

// end passes over the end of the list, with which the window begins, and what follows it.
func (l *listReader) end() {
	l.in.Pass(1)
	if l.wrapped {
		l.members(false)
	}
	if l.err != nil {
		return
	}
	if l.next(); l.err == nil {
		l.lose(errors.New("text follows the end of the JSON document"))
	} else if errors.Is(l.err, errCut) {
		l.err = io.EOF
	}
}

// problem makes the row of an element, or tells why it is none.
func (l *listReader) problem(element []byte, r *rows.Row) *rows.Problem {
	if p := l.in.BadText(len(element)); p != nil {
		return p
	}
	l.compact = append(l.compact[:0], element...)
	p := &rows.Problem{}
	if l.compact.Compact() == nil {
		r.Raw = string(l.compact)
		p = l.objects.row(l.compact, r)
	}
	switch {
	case len(element) > l.in.Limit && !isUncorrected(p):
		return rows.TooLong(l.in.Limit)
	case p == nil:
		return nil
	}
	// Once more as it is written, so that the place of the error is right.
	r.Raw = string(element)
	if as := l.objects.row(element, r); as != nil {
		return as
	}
	return p
}

// oneLine is text that is no JSON value, its line breaks taken out with the white space around them.
func oneLine(text string) string {
	all := strings.Split(text, "\n")
	for i, line := range all {
		if i > 0 {
			line = strings.TrimLeft(line, " \t\r")
		}
		all[i] = strings.TrimRight(line, "\r")
	}
	return strings.Join(all, " ")
}
