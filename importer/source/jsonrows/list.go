// Package jsonrows reads rows of JSON: one object a line, or the objects of a list.
//
// It makes rows of the text that a [lines.Window] shows. Its promises: values come digit for digit, each key stands
// once, and a line or element that cannot be read is the problem of that row alone, or the file is lost there: no
// row begins inside another one.
package jsonrows

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"leadferry/importer/source/lines"
	"leadferry/importer/source/rows"
	"leadferry/internal/spelling"
)

// listNames are the members in which CRMs put the list of their records: Salesforce's records, HubSpot's results,
// OData's value, and the others' data, items and leads.
var listNames = []string{"records", "results", "value", "data", "items", "leads"}

// Members that tell that the file holds one page of several: where the next one is, that there is one, and how many
// rows all pages have.
var (
	pageNames  = []string{"nextRecordsUrl", "@odata.nextLink", "paging", "next", "next_page", "nextPageToken"}
	moreNames  = []string{"has_more", "hasMore"}
	totalNames = []string{"total", "totalSize", "total_count", "totalCount"}
)

const (
	white     = " \t\r\n"
	firstLook = 64 << 10 // bytes in which a document or a list begins
)

// Open finds out which of three forms a JSON text has, by as much of it as a row may have bytes:
//
//   - A list, when it begins with a bracket: its elements are the rows.
//   - A list inside one object: the member that the options name, or the only list among the object's own members
//     that begins with an object; where several do, one has to be named. The members beside it are passed over. The
//     object must be alone in the file, or go on behind its first line; on one line, a list named none of records,
//     results, value, data, items and leads must be its only member and have two elements, or the line is a row.
//   - JSON Lines in all other cases. An object over several lines that is not of the second form is refused.
//
// Its error is a *[rows.OpenError], or one of reading.
func Open(in *lines.Window, o rows.Options, found *rows.Found) (rows.Reader, error) {
	found.Header = &rows.Header{Open: true}
	defer in.Widen()
	list := &listReader{cursor: cursor{in: in}, objects: newObjects("element", o, found), found: found, asked: o.List}
	text, _ := in.Peek(min(firstLook, in.Limit))
	switch text = bytes.TrimLeft(text, white); {
	case bytes.HasPrefix(text, []byte("[")):
		list.expect('[', "")
		return list, list.err
	case bytes.HasPrefix(text, []byte("{")) && list.isDocument():
		if len(list.lists) > 1 {
			return nil, severalLists(list.lists)
		}
		return list, list.find()
	case o.List != "":
		return nil, &rows.OpenError{Text: fmt.Sprintf("has no list %q: it holds one object a line", o.List), Hint: "leave --list, and source.list of the mapping, out"}
	}
	found.Lined = true
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
	list := l.choose(text)
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

// choose looks for lists among the members of the object that this text begins with, and says whether rows may be in one.
// In an object on one line, which may be a row itself, a list of no known name stands alone and has two elements or more.
func (l *listReader) choose(text []byte) bool {
	probe := &listReader{cursor: cursor{in: lines.New(bytes.NewReader(text), l.in.Limit)}, found: &rows.Found{}, probes: true}
	probe.members(true)
	if l.asked != "" {
		l.only = l.asked
		return true
	}
	known := slices.ContainsFunc(slices.Concat(probe.lists, probe.empty), func(name string) bool { return slices.Contains(listNames, name) })
	oneLine := !bytes.Contains(bytes.TrimSpace(text), []byte{'\n'})
	if !known && oneLine && (probe.count != 1 || !hasSecond(text)) {
		return false
	}
	if l.lists = probe.lists; len(l.lists) == 1 {
		l.only = l.lists[0]
	}
	return known || len(l.lists) > 0
}

func severalLists(names []string) error {
	return &rows.OpenError{
		Text: "holds several lists of objects: " + spelling.List(names, mostNamed, strconv.Quote),
		Hint: "name the one that holds the rows: --list NAME, or source.list of the mapping",
	}
}

// mostNamed is how many lists a message names.
const mostNamed = 20

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
	list := beginsList(text)
	filled := list && bytes.HasPrefix(bytes.TrimLeft(text[1:], white), []byte{'{'})
	switch named := name == l.only || l.only == "" && slices.Contains(listNames, name); {
	case l.probes && filled:
		l.lists = append(l.lists, name)
	case l.probes && list:
		l.empty = append(l.empty, name)
	case list && named && find:
		l.in.Pass(1)
		l.wrapped = true
		if !slices.Contains(listNames, name) && l.asked == "" {
			l.found.Warn("the rows are those of the list %q; the members beside it are not read", name)
		}
		return true
	case filled && l.asked == "": // too far behind the first to be seen before any row was given
		l.lose(fmt.Errorf("it holds a second list of objects, %q: name the one that holds the rows with --list", name))
		return false
	}
	l.count++
	l.notePage(name, c, text)
	l.scan.reset()
	l.passRest()
	return false
}

// notePage looks whether a member tells of rows on other pages.
func (l *listReader) notePage(name string, c byte, value []byte) {
	switch {
	case slices.Contains(pageNames, name) && (c == '"' && !bytes.HasPrefix(value, []byte(`""`)) || c == '{'),
		slices.Contains(moreNames, name) && c == 't':
		l.found.Warn("the file holds one page of a longer list, as its member %q says", name)
	case slices.Contains(totalNames, name):
		digits := len(value) - len(bytes.TrimLeft(value, "0123456789"))
		l.total, _ = strconv.Atoi(string(value[:digits]))
	}
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
	asked   string         // the list's name, as the options have it
	only    string         // the list's name, where it is known before
	wrapped bool           // the list is a member of the document
	begun   bool           // an element was read
	seen    int            // elements
	total   int            // rows that the document says it has; 0: it does not say

	probes bool     // it looks for lists only
	lists  []string // that begin with an object
	empty  []string // without elements
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
	l.seen++
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
	if l.total > l.seen {
		l.found.Warn("the file holds one page of a longer list: %d of %d rows", l.seen, l.total)
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
