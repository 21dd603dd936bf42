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

// listNames are the members in which CRMs put their records: Salesforce uses records, HubSpot results, OData value.
var listNames = []string{"records", "results", "value", "data", "items", "leads"}

const (
	white     = " \t\r\n"
	firstLook = 64 << 10 // bytes to look at first, to see whether a text is a document
	mostNamed = 20       // how many lists a message names
)

// survey is what the beginning of a text shows about its first object.
type survey struct {
	lists  []list // members that are lists of objects, or empty
	alone  bool   // the object has at most one member
	size   int    // bytes of the object; 0 if its end is not in the text
	broken bool   // the text is not valid JSON
}

// list is a member whose value is a list.
type list struct {
	name   string
	at     int  // the index of its bracket in the text
	filled bool // its first element is an object; otherwise the list is empty
}

func (l list) isNamed() bool { return slices.Contains(listNames, l.name) }

// surveyOf looks at the members of the object at the beginning of a text, as far as the text goes.
func surveyOf(text []byte) survey {
	s, d := survey{}, lenient(text)
	_, err := d.ReadToken()
	for err == nil && d.StackDepth() > 0 {
		var t jsontext.Token
		_, read := d.StackIndex(1)
		s.alone = read <= 2 // a name and a value
		if t, err = d.ReadToken(); t.Kind() != '[' || d.StackDepth() != 2 {
			continue
		}
		if first := d.PeekKind(); first == '{' || first == ']' {
			s.lists = append(s.lists, list{d.StackPointer().LastToken(), int(d.InputOffset()) - 1, first == '{'})
		}
	}
	if err == nil {
		s.size = int(d.InputOffset())
	}
	s.broken = err != nil && !errors.Is(err, io.ErrUnexpectedEOF)
	return s
}

// lenient returns a decoder that only finds the parts of a text. The text is checked later, when it is read as rows.
func lenient(text []byte) *jsontext.Decoder {
	return jsontext.NewDecoder(bytes.NewBuffer(text), jsontext.AllowDuplicateNames(true),
		jsontext.AllowInvalidUTF8(true))
}

// fitting returns the lists that may hold the rows: those with the name asked for, or, without one, all that begin with
// an object. If these have no name of listNames, it adds an empty list that has: there may be no rows today.
func (s *survey) fitting(asked string) (lists []list) {
	for _, l := range s.lists {
		if l.name == asked || asked == "" && l.filled {
			lists = append(lists, l)
		}
	}
	known := slices.IndexFunc(s.lists, list.isNamed)
	if asked == "" && known >= 0 && !slices.ContainsFunc(lists, list.isNamed) {
		lists = append(lists, s.lists[known])
	}
	return lists
}

// listIn finds the list of rows in a window that begins with an object. The object must be a document: it has several
// lines, or it is alone and holds a list of rows. listIn returns nil for JSON Lines.
func listIn(in *lines.Window, o rows.Options, found *rows.Found) (*list, error) {
	asked := o.List
	text, _ := in.Peek(min(firstLook, in.Limit))
	first, rest, _ := bytes.Cut(bytes.TrimLeft(text, white), []byte{'\n'})
	if lenient(first).SkipValue() == nil && len(bytes.TrimSpace(rest)) > 0 {
		return nil, nil // the first line of many
	}
	text, whole := in.Peek(in.Limit)
	s := surveyOf(text)
	if s.size > 0 {
		whole = whole && len(bytes.TrimSpace(text[s.size:])) == 0
		text = text[:s.size]
	}
	lists := s.fitting(asked)
	switch several := bytes.IndexByte(bytes.TrimLeft(text, white), '\n') >= 0; {
	case asked != "":
	case several && len(lists) == 0 && (s.broken || s.size == 0 && whole):
		return nil, nil // a line of JSON Lines that is broken or cut
	case several:
	case len(lists) == 0 || s.size > 0 && !whole:
		return nil, nil // a row
	case !s.alone && !slices.ContainsFunc(s.lists, list.isNamed) && (o.Lines || len(lists) == 1):
		if !o.Lines {
			found.Warn("the file is one object, which is read as one row; --list %q reads its list", lists[0].name)
		}
		return nil, nil
	}
	namesOf := func(lists []list) string {
		var names []string
		for _, l := range lists {
			names = append(names, l.name)
		}
		return spelling.List(names, mostNamed, strconv.Quote)
	}
	switch {
	case len(lists) == 0 && asked != "" && len(s.lists) > 0:
		return nil, rows.Refuse(fmt.Sprintf("has no list %q at its beginning", asked), "it has "+namesOf(s.lists))
	case len(lists) == 0:
		return nil, rows.Refuse("holds an object over several lines and at its beginning no list of rows",
			"the rows must be a list, the only list of objects in one object or one named "+
				strings.Join(listNames, ", ")+
				", or one object a line (jq -c writes those)")
	case len(lists) > 1 && asked != "":
		return nil, rows.Refuse(fmt.Sprintf("holds several lists %q", asked), "give each list a name of its own")
	case len(lists) > 1:
		hint := "name the one that holds the rows: --list NAME, or source.list of the mapping"
		if !slices.ContainsFunc(s.lists, list.isNamed) {
			hint += "; --format jsonl if it is one row"
		}
		return nil, rows.Refuse("holds several lists of objects: "+namesOf(lists), hint)
	}
	return &lists[0], nil
}

// document reads the elements of a JSON list. The list is the whole document or a member of its object.
type document struct {
	in    *lines.Window
	json  *jsontext.Decoder
	left  int    // how many more bytes may be read for the current value
	asked string // the list that the user named, or ""
	err   error  // what ended the reading: io.EOF, a *rows.LostError, or a read error
}

// openDocument reads up to the first element of the list: past the first bracket, or that of the member.
func openDocument(in *lines.Window, member *list, o rows.Options, found *rows.Found) *document {
	d := &document{in: in, asked: o.List}
	d.json = jsontext.NewDecoder(d, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	at := 0
	if member != nil {
		if at = member.at; !member.isNamed() && d.asked == "" {
			found.Warn("the rows are those of the list %q; the members beside it are not read", member.name)
		}
	}
	for d.err == nil && d.json.InputOffset() <= int64(at) {
		d.token()
	}
	return d
}

var errHuge = errors.New("a value in it is too long")

// Read gives the decoder more text, up to the size that one value may have.
func (d *document) Read(p []byte) (int, error) {
	if d.left <= 0 {
		return 0, errHuge
	}
	if len(d.in.Text()) == 0 {
		if err := d.in.More(); err != nil {
			if !errors.Is(err, io.EOF) {
				d.err = err
			}
			return 0, err
		}
	}
	n := copy(p, d.in.Text())
	d.in.Pass(n)
	d.left -= n
	return n, nil
}

// line returns the line on which the next value begins. The decoder must have peeked at it.
func (d *document) line() int {
	ahead := bytes.TrimLeft(d.json.UnreadBuffer(), white+",:")
	return d.in.Number - bytes.Count(ahead, []byte{'\n'})
}

// fail ends the reading at this place because of why, unless it has already ended.
func (d *document) fail(why error) {
	var syntax *jsontext.SyntacticError
	text := why.Error()
	switch {
	case d.err != nil:
		return
	case errors.Is(why, io.ErrUnexpectedEOF), errors.Is(why, io.EOF):
		text = "the file ends within its list: it was cut"
	case errors.Is(why, errHuge):
		text = errHuge.Error()
	case errors.As(why, &syntax): // whose message quotes the file
		text = fmt.Sprintf("it is not valid JSON at its byte offset %d", syntax.ByteOffset)
	}
	d.err = &rows.LostError{Line: d.line(), Text: "the JSON document cannot be read any further: " + text}
}

// token reads the next token.
func (d *document) token() jsontext.Kind {
	d.left = d.in.Max
	t, err := d.json.ReadToken()
	if err != nil {
		d.fail(err)
	}
	return t.Kind()
}

// peek returns the kind of the next value.
func (d *document) peek() jsontext.Kind {
	d.left = d.in.Max
	return d.json.PeekKind()
}

// element returns the next element of the list and the line on which it begins.
func (d *document) element() (element []byte, line int, err error) {
	if d.err == nil && d.peek() == ']' {
		d.end()
	}
	if d.err != nil {
		return nil, 0, d.err
	}
	line = d.line()
	if element, err = d.json.ReadValue(); err != nil {
		d.fail(err)
	}
	return element, line, d.err
}

// end reads what follows the rows: the end of their list, and the members after it. It fails if one of these is another
// list of rows: listIn looks only at the beginning of the document.
func (d *document) end() {
	for d.token(); d.err == nil && d.json.StackDepth() > 0; {
		list := d.token() == '[' && d.json.StackDepth() == 2
		name := d.json.StackPointer().LastToken()
		if list && (d.asked == "" || d.asked == name) && d.peek() == '{' {
			d.fail(fmt.Errorf("it holds a second list of objects, %q: name the one that holds the rows with --list",
				name))
		}
	}
	if d.err != nil {
		return
	}
	if _, err := d.json.ReadToken(); errors.Is(err, io.EOF) {
		d.err = io.EOF
	} else {
		d.fail(errors.New("text follows the end of the JSON document"))
	}
}
