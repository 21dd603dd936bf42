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

func isListName(name string) bool { return slices.Contains(listNames, name) }

const (
	white     = " \t\r\n"
	firstLook = 64 << 10 // bytes in which a document or a list begins
)

// survey is what the beginning of a text says about the object that it begins with.
type survey struct {
	filled, empty []string // members that are lists: those whose first element is an object, and those without any
	members       int
	size          int // bytes of the object, 0 where its end is not in sight
	broken        bool
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
		switch d.PeekKind() {
		case '{':
			s.filled = append(s.filled, name)
		case ']':
			s.empty = append(s.empty, name)
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
	return jsontext.NewDecoder(bytes.NewBuffer(text), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

// open says whether the window begins with an object that is a document: one over several lines, or one that is alone
// and holds a list of rows. It notes which list that is.
func (d *document) open() (isDocument bool, err error) {
	text, _ := d.in.Peek(min(firstLook, d.in.Limit))
	first, rest, _ := bytes.Cut(bytes.TrimLeft(text, white), []byte{'\n'})
	if lenient(first).SkipValue() == nil && len(bytes.TrimSpace(rest)) > 0 {
		return false, nil // the first line of many
	}
	text, whole := d.in.Peek(d.in.Limit)
	text = bytes.TrimLeft(text, white)
	s := surveyOf(text)
	if behind := bytes.TrimSpace(text[s.size:]); s.size > 0 {
		text, whole = text[:s.size], whole && len(behind) == 0
	}
	named := slices.ContainsFunc(slices.Concat(s.filled, s.empty), isListName)
	switch several := bytes.IndexByte(text, '\n') >= 0; {
	case d.asked != "":
		isDocument = true
	case several:
		isDocument = named || len(s.filled) > 0 || !s.broken && (s.size > 0 || !whole)
	default: // it may be a row
		isDocument = (named || s.members == 1 && len(s.filled) == 1) && (whole || s.size == 0)
	}
	switch {
	case d.asked != "":
		d.only = d.asked
	case len(s.filled) == 1:
		d.only = s.filled[0]
	case isDocument && len(s.filled) > 1:
		return true, &rows.OpenError{
			Text: "holds several lists of objects: " + spelling.List(s.filled, mostNamed, strconv.Quote),
			Hint: "name the one that holds the rows: --list NAME, or source.list of the mapping",
		}
	}
	return isDocument, nil
}

// mostNamed is how many lists a message names.
const mostNamed = 20

// document reads the elements of one JSON list, which is the whole document or a member of the object that is.
type document struct {
	in      *lines.Window
	json    *jsontext.Decoder
	objects *objects
	found   *rows.Found

	start   int64          // place in the text at which the document begins
	left    int            // bytes that may be read for the present value
	compact jsontext.Value // the present element without white space
	asked   string         // the list's name, as the options have it
	only    string         // the list's name, where it is known before
	wrapped bool           // the list is a member of the document
	begun   bool           // the list was found
	err     error          // what ended the reading: a *rows.LostError, or one of reading
	broken  error          // one of reading that the decoder has met
}

// begin makes the decoder of the whole document.
func (d *document) begin() {
	d.in.Widen()
	d.start = d.in.Offset
	d.json = jsontext.NewDecoder(d, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

var errHuge = errors.New("a value in it is too long")

// Read gives the decoder the text, as much of it as one value may have.
func (d *document) Read(p []byte) (int, error) {
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

// line is the one on which the next value stands, once the decoder has looked at it.
func (d *document) line() int {
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
		why = errCut
	case errors.Is(why, errHuge):
		why = errHuge
	case errors.As(why, &syntax): // whose text quotes the file
		why = fmt.Errorf("it is not valid JSON at byte offset %d of the text", d.start+syntax.ByteOffset)
	}
	d.err = &rows.LostError{Line: d.line(), Text: "the JSON document cannot be read any further: " + why.Error(), Err: why}
}

// errCut is the cause where the file ends before the document does.
var errCut = errors.New("the file ends within its list: it was cut")

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

// find goes on to the list inside the object that the document is.
func (d *document) find() error {
	d.token()
	if d.wrapped = true; d.members() {
		return nil
	}
	refusal := &rows.OpenError{
		Text: "holds an object over several lines and in it no list of rows",
		Hint: "the rows must be a list, the only list of objects in one object or one named " + strings.Join(listNames, ", ") +
			", or one object a line (jq -c writes those)",
	}
	if d.asked != "" {
		refusal.Text = fmt.Sprintf("holds an object and in it no list %q", d.asked)
	}
	lost, isLost := errors.AsType[*rows.LostError](d.err)
	switch {
	case d.err != nil && !isLost:
		return d.err
	case isLost && !errors.Is(d.err, errCut):
		refusal.Line, refusal.Text = lost.Line, lost.Text
	}
	return refusal
}

// members passes over members of the outer object, up to the list of rows or to the object's end.
func (d *document) members() (found bool) {
	for d.err == nil && d.peek() != '}' {
		name := d.token().String()
		list := d.peek() == '['
		first := d.token().Kind()
		if list {
			first = d.peek()
		}
		switch wanted := d.wants(name, first); {
		case !list:
		case wanted && !d.begun:
			if d.begun = true; !isListName(name) && d.asked == "" {
				d.found.Warn("the rows are those of the list %q; the members beside it are not read", name)
			}
			return true
		case first == '{' && d.asked == "": // too far behind the first to be seen before any row was given
			d.lose(fmt.Errorf("it holds a second list of objects, %q: name the one that holds the rows with --list", name))
		}
		for d.err == nil && d.json.StackDepth() > 1 {
			d.token()
		}
	}
	d.token()
	return false
}

// wants says that a list is the one to read.
func (d *document) wants(name string, first jsontext.Kind) bool {
	if d.only != "" {
		return name == d.only
	}
	return first == '{' || first == ']' && isListName(name)
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

// Line is the line on which the reading stands.
func (d *document) Line() int { return d.line() }

func (d *document) element(r *rows.Row) {
	if d.peek() == ']' {
		d.end()
		return
	}
	r.Line = d.line()
	element, err := d.json.ReadValue()
	if err != nil {
		d.lose(err)
		return
	}
	r.Size = len(element)
	if r.Problem = d.problem(element, r); r.Problem != nil && r.Text == "" {
		r.Raw = lines.Readable(d.compact[:min(len(d.compact), d.in.Max)])
		r.Text = r.Raw
	}
}

// end passes over the end of the list and what follows it.
func (d *document) end() {
	d.token()
	if d.wrapped {
		d.members()
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

// problem makes the row of an element, or tells why it is none.
func (d *document) problem(element jsontext.Value, r *rows.Row) *rows.Problem {
	d.compact = append(d.compact[:0], element...)
	_ = d.compact.Compact() // the decoder has found it to be valid
	if p := d.in.BadTextAt(element, r.Line, d.start+d.json.InputOffset()-int64(len(element))); p != nil {
		return p
	}
	r.Raw = string(d.compact)
	p := d.objects.row(d.compact, r)
	if len(element) > d.in.Limit && !isUncorrected(p) {
		return rows.TooLong(d.in.Limit)
	}
	return p
}
