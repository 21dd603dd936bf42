package report

import (
	"errors"
	"io"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Reject is a row that needs attention. Names and Cells are its own columns as they
// were read; Raw is a JSON object on one line, in their place. Text is the whole row
// where it could not be taken apart: it is written neither cut nor defused, and as long
// as it stands there a reader takes the row for not corrected yet.
type Reject struct {
	Line         int
	Outcome      string
	Error        string
	Names, Cells []string
	Raw          string
	Text         string
}

// note is what is added to a rejected JSONL object, under noteName.
type note struct {
	Line    int    `json:"line"`
	Outcome string `json:"outcome"`
	Error   string `json:"error"`
	Text    string `json:"text,omitempty"`
}

const (
	noteName   = "leadferry"
	notePrefix = "leadferry_" // of columns and keys that are left out when read
)

// object is the JSONL line of a reject: the members as read and the note, or the
// note alone, with the line as text, where that could not be taken apart.
func (rej *Reject) object() []byte {
	b, text := []byte("{"), rej.Text
	if text == "" {
		var err error
		if b, err = members(rej.Raw); err != nil {
			b, text = []byte("{"), rej.Raw
		}
	}
	if len(b) > 1 {
		b = append(b, ',')
	}
	// A note cannot fail where broken UTF-8 is let pass.
	v, _ := json.Marshal(note{rej.Line, rej.Outcome, Escape(rej.Error), text}, jsontext.AllowInvalidUTF8(true))
	b = append(append(b, `"`+noteName+`":`...), v...)
	return append(b, '}')
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
