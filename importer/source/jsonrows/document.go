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

const (
	white     = " \t\r\n"
	firstLook = 64 << 10 // bytes in which a document or a list begins
	mostNamed = 20       // lists that a message names
)

// survey is what the beginning of a text says about the object that it begins with.
type survey struct {
	lists   []list
	members int
	size    int // bytes of the object, 0 where its end is not in sight
	broken  bool
}

// list is a member that is one.
type list struct {
	name   string
	at     int  // where its bracket is
	filled bool // its first element is an object; else it is empty
}

// surveyOf looks at the members of the object that a text begins with, as far as the text goes.
func surveyOf(text []byte) survey {
	s, d := survey{}, lenient(text)
	_, err := d.ReadToken()
	for err == nil && d.StackDepth() > 0 {
		var t jsontext.Token
		if t, err = d.ReadToken(); err != nil || t.Kind() != '"' || d.StackDepth() > 1 {
			continue // inside a list, or at the end
		}
		name := t.String()
		if s.members++; d.PeekKind() != '[' {
			err = d.SkipValue()
			continue
		}
		_, _ = d.ReadToken() // that was seen
		if first := d.PeekKind(); first == '{' || first == ']' {
			s.lists = append(s.lists, list{name, int(d.InputOffset()) - 1, first == '{'})
		}
	}
	if err == nil {
		s.size = int(d.InputOffset())
	}
	s.broken = err != nil && !errors.Is(err, io.ErrUnexpectedEOF)
	return s
}

// lenient decodes what only has to be found, and is judged when it is read.
func lenient(text []byte) *jsontext.Decoder {
	return jsontext.NewDecoder(bytes.NewBuffer(text), jsontext.AllowDuplicateNames(true),
		jsontext.AllowInvalidUTF8(true))
}

// fitting are the lists that may hold the rows: those of the name that was asked for, else those that begin with an
// object, else the first of a known name.
func (s *survey) fitting(asked string) (lists []list) {
	for _, l := range s.lists {
		if l.name == asked || asked == "" && l.filled {
			lists = append(lists, l)
		}
	}
	named := slices.IndexFunc(s.lists, func(l list) bool { return asked == "" && slices.Contains(listNames, l.name) })
	if len(lists) == 0 && named >= 0 {
		lists = s.lists[named : named+1]
	}
	return lists
}

// listIn finds the list of rows where the window begins with an object that is a document: one over several lines, or
// one that is alone and holds such a list. It is nil where the window begins with JSON Lines.
func listIn(in *lines.Window, asked string) (*list, error) {
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
	case len(lists) == 0 || s.members > 1 && !slices.ContainsFunc(s.lists, list.isNamed) || s.size > 0 && !whole:
		return nil, nil // a row
	}
	switch {
	case len(lists) == 0:
		return nil, rows.Refuse("holds an object over several lines and at its beginning no list of rows",
			"the rows must be a list, the only list of objects in one object or one named "+
				strings.Join(listNames, ", ")+
				", or one object a line (jq -c writes those)")
	case len(lists) > 1 && asked == "":
		var names []string
		for _, l := range lists {
			names = append(names, l.name)
		}
		return nil, rows.Refuse("holds several lists of objects: "+spelling.List(names, mostNamed, strconv.Quote),
			"name the one that holds the rows: --list NAME, or source.list of the mapping")
	}
	return &lists[0], nil
}

func (l list) isNamed() bool { return slices.Contains(listNames, l.name) }

// document reads the elements of one JSON list, which is the whole document or a member of the object that is.
type document struct {
	in      *lines.Window
	json    *jsontext.Decoder
	objects *objects

	before  []byte         // is read before the text
	start   int64          // place in the text at which the decoder's own begins
	left    int            // bytes that may be read for the present value
	compact jsontext.Value // the present element without white space
	asked   bool           // the list was named
	err     error          // what ended the reading: a *rows.LostError, or one of reading
	broken  error          // one of reading that the decoder has met
}

// openDocument begins behind the bracket of the list. What is before it in the document was seen; the decoder takes
// a member without a name for it.
func openDocument(in *lines.Window, of *list, o rows.Options, found *rows.Found) (*document, error) {
	d := &document{in: in, objects: newObjects("element", o, found), asked: o.List != ""}
	in.Widen()
	if of != nil {
		if in.Pass(of.at); !of.isNamed() && !d.asked {
			found.Warn("the rows are those of the list %q; the members beside it are not read", of.name)
		}
		d.before = []byte(`{"":`)
	}
	d.start = in.Offset - int64(len(d.before))
	d.json = jsontext.NewDecoder(d, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	for range d.before[:min(2, len(d.before))] {
		d.token()
	}
	d.token()
	return d, d.err
}

var errHuge = errors.New("a value in it is too long")

// Read gives the decoder the text, as much of it as one value may have.
func (d *document) Read(p []byte) (int, error) {
	if len(d.before) > 0 {
		n := copy(p, d.before)
		d.before = d.before[n:]
		return n, nil
	}
	if d.left <= 0 {
		return 0, errHuge
	}
	if len(d.in.Text()) == 0 {
		if err := d.in.More(); err != nil {
			if !errors.Is(err, io.EOF) {
				d.broken = err
			}
			return 0, err
		}
	}
	n := copy(p, d.in.Text())
	d.in.Pass(n)
	d.left -= n
	return n, nil
}

// Line is the line of the next value, once the decoder has looked at it.
func (d *document) Line() int {
	ahead := bytes.TrimLeft(d.json.UnreadBuffer(), white+",:")
	return d.in.Number - bytes.Count(ahead, []byte{'\n'})
}

// lose says why nothing behind this place can be read.
func (d *document) lose(why error) {
	var syntax *jsontext.SyntacticError
	switch {
	case d.err != nil:
		return
	case d.broken != nil:
		d.err = d.broken
		return
	case errors.Is(why, io.ErrUnexpectedEOF), errors.Is(why, io.EOF):
		why = errors.New("the file ends within its list: it was cut")
	case errors.Is(why, errHuge):
		why = errHuge
	case errors.As(why, &syntax): // whose text quotes the file
		why = fmt.Errorf("it is not valid JSON at byte offset %d of the text", d.start+syntax.ByteOffset)
	}
	text := "the JSON document cannot be read any further: " + why.Error()
	d.err = &rows.LostError{Line: d.Line(), Text: text, Err: why}
}

// token goes on to the next token.
func (d *document) token() jsontext.Token {
	d.left = d.in.Max
	t, err := d.json.ReadToken()
	if err != nil {
		d.lose(err)
	}
	return t
}

// peek gives the kind of the next value.
func (d *document) peek() jsontext.Kind {
	d.left = d.in.Max
	return d.json.PeekKind()
}

// Next reads the next element that holds data.
func (d *document) Next(r *rows.Row) error {
	for open := r.Header; d.err == nil; r.Clear(open) {
		if d.element(r); d.err == nil && !d.objects.blank(r) {
			return nil
		}
	}
	return d.err
}

func (d *document) element(r *rows.Row) {
	if d.peek() == ']' {
		d.end()
		return
	}
	r.Line = d.Line()
	element, err := d.json.ReadValue()
	if err != nil {
		d.lose(err)
		return
	}
	d.compact = append(d.compact[:0], element...)
	_ = d.compact.Compact() // the decoder has found it to be valid
	r.Size, r.Raw = len(element), string(d.compact)
	bad := d.in.BadTextAt(element, r.Line, d.start+d.json.InputOffset()-int64(len(element)))
	if r.Problem = d.objects.judge(d.compact, r.Size, d.in.Limit, bad, r); r.Problem != nil && r.Text == "" {
		r.Raw = lines.Readable(d.compact[:min(len(d.compact), d.in.Max)])
		r.Text = r.Raw
	}
}

// end passes over the end of the list and what follows it: the members behind it, which were perhaps too far away to be
// seen before any row was given.
func (d *document) end() {
	d.token()
	for d.err == nil && d.json.StackDepth() > 0 {
		name := d.token()
		if name.Kind() == '}' {
			break
		}
		text := name.String()
		if isList := d.peek() == '['; isList {
			if d.token(); d.peek() == '{' && !d.asked {
				d.lose(fmt.Errorf("it holds a second list of objects, %q: name the one that holds the rows with --list",
					text))
			}
		} else {
			d.token()
		}
		for d.err == nil && d.json.StackDepth() > 1 {
			d.token()
		}
	}
	if d.err != nil {
		return
	}
	if _, err := d.json.ReadToken(); errors.Is(err, io.EOF) {
		d.err = io.EOF
	} else {
		d.lose(errors.New("text follows the end of the JSON document"))
	}
}
