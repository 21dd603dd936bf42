package source

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// listNames are the members in which CRMs put the list of their records:
// Salesforce's records, HubSpot's results, OData's value, and the others' data,
// items and leads.
var listNames = []string{"records", "results", "value", "data", "items", "leads"}

// pageNames are members that tell that the file holds one page of several.
var pageNames = []string{"nextRecordsUrl", "@odata.nextLink", "paging"}

// beginJSON finds out which of three forms a JSON text has, by as much of it
// as a row may have bytes:
//
//   - A list, when it begins with a bracket: its elements are the rows.
//   - A list inside one object: the first of the object's own members named
//     records, results, value, data, items or leads that is a list which is
//     empty or begins with an object. The members beside it are passed over.
//     The object must be alone in the file, or go on behind its first line.
//   - JSON Lines in all other cases. An object over several lines that is not
//     of the second form is refused.
func (f *File) beginJSON(o Options) *OpenError {
	f.header = &Header{Open: true}
	objects := newJSONObjects(o)
	f.blanks = &objects.blanks
	list := &jsonList{in: f.window, objects: objects, warn: f.warn}
	text, _ := f.window.peek(min(sniffBytes, f.window.limit))
	defer f.window.widen()
	switch text = bytes.TrimLeft(text, " \t\r\n"); {
	case bytes.HasPrefix(text, []byte("[")):
		if _, err := list.token(); err != nil {
			return unreadable(err)
		}
		f.window.pass(1)
		f.rows = list
	case bytes.HasPrefix(text, []byte("{")) && f.window.wraps():
		f.rows = list
		return list.find()
	default:
		f.rows = &jsonLines{in: f.window, objects: objects}
	}
	return nil
}

// wraps says that the window begins with an object over several lines, or one
// that is alone and holds a list of rows.
func (w *window) wraps() bool {
	for n := delimiterBytes; ; n *= 4 {
		text, whole := w.peek(min(n, w.limit))
		list, end, err := outline(text)
		last := whole || n >= w.limit || w.err != nil
		first := bytes.IndexByte(text, '\n')
		switch {
		case err == nil && (first < 0 || end <= first): // it ends on its first line
			alone := len(bytes.TrimSpace(text[end:])) == 0
			if !alone || !list || last {
				return alone && list && whole
			}
		case err == nil, list && first >= 0:
			return true
		case !errors.Is(err, io.ErrUnexpectedEOF):
			return list
		case last:
			// What is cut on its first line and never goes on is a broken
			// line of JSON Lines.
			return list || !whole && first >= 0
		}
	}
}

// outline reads an object as far as text goes: whether it holds a list of
// rows, and where it ends.
func outline(text []byte) (list bool, end int, err error) {
	json := jsontext.NewDecoder(bytes.NewReader(text), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	for {
		name, err := json.ReadToken()
		if err != nil {
			return list, 0, err
		}
		if name.Kind() == '}' {
			return list, int(json.InputOffset()), nil
		}
		if name.Kind() == '{' {
			continue
		}
		if slices.Contains(listNames, name.String()) && json.PeekKind() == '[' {
			list = list || beginsList(bytes.TrimLeft(text[json.InputOffset():], " \t\r\n:"))
		}
		if err := json.SkipValue(); err != nil {
			return list, 0, err
		}
	}
}

// beginsList says that text begins with a list that is empty or has an object
// for its first element.
func beginsList(text []byte) bool {
	list, ok := bytes.CutPrefix(text, []byte("["))
	list = bytes.TrimLeft(list, " \t\r\n")
	return ok && len(list) > 0 && (list[0] == '{' || list[0] == ']')
}

// find goes on to the list inside the object that the window begins with.
func (l *jsonList) find() *OpenError {
	hint := "the rows must be a list, a list named " + strings.Join(listNames, ", ") + " in one object, or one object a line (jq -c writes those)"
	found, err := l.members(true)
	var lost *LostError
	switch {
	case errors.As(err, &lost):
		return &OpenError{Line: lost.Line, Text: lost.Text, Hint: hint, Err: lost.Err}
	case errors.Is(err, io.EOF), err == nil && !found:
		return &OpenError{Text: "holds an object over several lines and in it no list of rows", Hint: hint}
	case err != nil:
		return unreadable(err)
	}
	return nil
}

// members passes over members of the outer object: from its beginning to its
// list, or from the list's end to its own. Its error is io.EOF where the file
// ends too early.
func (l *jsonList) members(find bool) (found bool, err error) {
	for first := find; ; first = false {
		c, err := l.token()
		switch {
		case err != nil:
			return false, err
		case c == '}':
			l.in.pass(1)
			return false, nil
		case c != ',' && !first:
			return false, l.lost("no comma stands between two members of the object")
		}
		l.in.pass(1) // the comma, or the opening brace
		if c, err = l.token(); err != nil || first && c == '}' {
			return false, err
		}
		name, err := l.memberName()
		if err != nil {
			return false, err
		}
		if found, err := l.member(name, find); found || err != nil {
			return found, err
		}
	}
}

// memberName passes over a member's name and the colon.
func (l *jsonList) memberName() (string, error) {
	size, state, err := l.measure()
	if err != nil {
		return "", err
	}
	quoted := l.in.bytes(size)
	if state != scanEnd || quoted[0] != '"' {
		return "", l.lost("a member of the object has no name")
	}
	name := string(quoted[1 : size-1])
	l.in.pass(size)
	c, err := l.token()
	if err == nil && c != ':' {
		return "", l.lost("no colon follows the name of a member")
	}
	if err == nil {
		l.in.pass(1)
	}
	return name, err
}

// member passes over a member's value, or finds the list that is looked for.
func (l *jsonList) member(name string, find bool) (found bool, err error) {
	c, err := l.token()
	if err != nil {
		return false, err
	}
	if slices.Contains(listNames, name) && c == '[' && l.isList() {
		if find {
			l.in.pass(1)
			l.name = name
			return true, nil
		}
		l.warn(fmt.Sprintf("the object holds a second list, %q, which is not read", name))
	}
	if slices.Contains(pageNames, name) && (c == '"' || c == '{') {
		l.warn(fmt.Sprintf("the file holds one page of a longer list, as its member %q says", name))
	}
	l.scan.reset()
	return false, l.passRest()
}

// isList looks behind the bracket that the window begins with.
func (l *jsonList) isList() bool {
	text, _ := l.in.peek(delimiterBytes)
	return beginsList(text)
}
