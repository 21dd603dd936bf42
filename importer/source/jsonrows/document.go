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
//   - A list inside one object: the first of the object's own members named
//     records, results, value, data, items or leads that is a list which is
//     empty or begins with an object; where none is named so, the only list
//     that begins with an object. The members beside it are passed over. The
//     object must be alone in the file, or go on behind its first line; on one
//     line, a list of another name must be its only member and have two
//     elements, or the line is a row.
//   - JSON Lines in all other cases. An object over several lines that is not
//     of the second form is refused.
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
		l.only = onlyList(text)
		list = l.only != ""
	}
	json := jsontext.NewDecoder(bytes.NewReader(text), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if err := json.SkipValue(); err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return list // what is broken and has none is a broken line of JSON Lines
	}
	text = bytes.TrimLeft(text, white)
	size, state := new(scan).feed(text)
	first := bytes.IndexByte(text, '\n')
	several := first >= 0 && (state != scanEnd || first < size)
	switch {
	case state == scanEnd && !several:
		alone := len(bytes.TrimSpace(text[size:])) == 0
		return alone && list && whole
	case several && (state == scanEnd || list):
		return true
	}
	// What is cut on its first line and never goes on is a broken line of JSON Lines.
	return list || !whole && several
}

// onlyList is the name of the one list among the members of the object that text begins with,
// or "": its first element is an object, and nothing of the object that might be another list
// lies behind the end of the text. In an object on one line, which may be a row, it stands
// alone and has two elements or more.
func onlyList(text []byte) string {
	d := jsontext.NewDecoder(bytes.NewReader(text), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	name, members := "", 0
	if _, err := d.ReadToken(); err != nil {
		return ""
	}
	for d.PeekKind() == '"' {
		key, err := d.ReadToken()
		if err != nil {
			return ""
		}
		member := key.String()
		members++
		d.PeekKind() // passes over the colon
		value := bytes.TrimLeft(text[d.InputOffset():], white+":")
		isList := beginsList(value) && !bytes.HasPrefix(bytes.TrimLeft(value[1:], white), []byte("]"))
		if isList && name != "" {
			return ""
		}
		if isList {
			name = member
		}
		if cut := d.SkipValue() != nil; cut && !isList {
			return ""
		} else if cut {
			break // the list goes on behind the text
		}
	}
	if oneLine := bytes.IndexByte(bytes.TrimSpace(text), '\n') < 0; oneLine && (members > 1 || !hasSecond(text)) {
		return ""
	}
	return name
}

// hasSecond says that the list which is the first member of an object has two elements.
func hasSecond(text []byte) bool {
	d := jsontext.NewDecoder(bytes.NewReader(text), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
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
	var lost *rows.LostError
	switch found := l.members(true); {
	case found:
		return nil
	case l.err == nil, errors.Is(l.err, errCut):
		return refusal
	case errors.As(l.err, &lost):
		refusal.Line, refusal.Text = lost.Line, lost.Text
		return refusal
	}
	return l.err
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
	if slices.Contains(listNames, name) || l.only != "" && name == l.only {
		text, _ := l.in.Peek(firstLook)
		switch list := beginsList(text); {
		case list && find:
			l.in.Pass(1)
			l.wrapped = true
			if l.only != "" {
				l.found.Warn("the rows are those of the list %q; the members beside it are not read", name)
			}
			return true
		case list:
			l.found.Warn("the object holds a second list, %q, which is not read", name)
		}
	}
	if slices.Contains(pageNames, name) && (c == '"' || c == '{') {
		l.found.Warn("the file holds one page of a longer list, as its member %q says", name)
	}
	l.scan.reset()
	l.passRest()
	return false
}

// name passes over the name of a member.
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
