package report

import (
	"errors"
	"io"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Reject is a row that needs attention. Names and Cells are its own columns as they
// were read. Raw is a JSONL line; for CSV it is the record of a row that could not
// be split into its columns, which then stands whole in the first of them.
type Reject struct {
	Line         int
	Outcome      string
	Error        string
	Names, Cells []string
	Raw          string
}

// note is what is added to a rejected JSONL object, under noteName.
type note struct {
	Line    int    `json:"line"`
	Outcome string `json:"outcome"`
	Error   string `json:"error"`
}

const (
	noteName   = "leadferry"
	notePrefix = "leadferry_" // of columns and keys that are left out when read
	textName   = notePrefix + "text"
)

// object is the JSONL line of a reject: the members as read and the note, or the
// line as text where it holds no object.
func (rej *Reject) object() []byte {
	b, err := members(rej.Raw)
	if err != nil {
		b = member([]byte("{"), textName, rej.Raw)
	}
	if len(b) > 1 {
		b = append(b, ',')
	}
	b = member(b, noteName, note{rej.Line, rej.Outcome, Escape(rej.Error)})
	return append(b, '}')
}

// member appends a name with its value.
func member(b []byte, name string, value any) []byte {
	b = append(b, '"')
	b = append(b, name...)
	b = append(b, `":`...)
	// Neither strings nor notes can fail where broken UTF-8 is let pass.
	v, _ := json.Marshal(value, jsontext.AllowInvalidUTF8(true))
	return append(b, v...)
}

var errNoObject = errors.New("the line is not a JSON object")

// members copies the members of an object byte for byte, but those that an earlier
// run added, and leaves the closing brace to the caller.
func members(line string) ([]byte, error) {
	d := jsontext.NewDecoder(strings.NewReader(line))
	if t, err := d.ReadToken(); err != nil || t.Kind() != '{' {
		return nil, errNoObject
	}
	b := append(make([]byte, 0, len(line)+128), '{')
	for d.PeekKind() != '}' {
		start := len(b)
		if start > 1 {
			b = append(b, ',')
		}
		name, err := d.ReadValue()
		if err != nil {
			return nil, err
		}
		ours := isOurs(name)
		b = append(append(b, name...), ':')
		value, err := d.ReadValue()
		if err != nil {
			return nil, err
		}
		b = append(b, value...)
		if ours {
			b = b[:start]
		}
	}
	if _, err := d.ReadToken(); err != nil {
		return nil, err
	}
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, errNoObject
	}
	return b, nil
}

func isOurs(quoted jsontext.Value) bool {
	name, err := jsontext.AppendUnquote(nil, quoted)
	return err == nil && (string(name) == noteName || strings.HasPrefix(string(name), notePrefix))
}
