package leadapi

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// answer is what a request got: the head, and as much of the body as came.
type answer struct {
	*http.Response
	body     []byte // stands until the connection's next call
	whole    bool   // the body came to its end, within bounds
	readable bool   // it is whole and not packed any more
}

// unpack undoes gzip, which is never asked for, and takes away a byte order mark. What is too large, or packed otherwise, is
// not readable, unless it is plain after all.
func (a *answer) unpack() {
	packing := strings.ToLower(strings.Join(a.Header["Content-Encoding"], ","))
	switch {
	case !a.whole:
		return
	case bytes.HasPrefix(a.body, []byte("\x1f\x8b")):
		r, err := gzip.NewReader(bytes.NewReader(a.body))
		if err != nil {
			return
		}
		plain, err := io.ReadAll(io.LimitReader(r, maxBody+1))
		if err != nil || len(plain) > maxBody {
			return
		}
		a.body = plain
	case packing != "" && packing != "identity" && !bytes.HasPrefix(bytes.TrimSpace(bytes.TrimPrefix(a.body, []byte("\ufeff"))), []byte("{")):
		return
	}
	a.body, a.readable = bytes.TrimPrefix(a.body, []byte("\ufeff")), true
}

// members calls f with each member of the object that body is, and reports whether all of body could be read: one JSON
// object of valid UTF-8, no name twice, nothing behind it. What f gets stands until it returns. It leaves out what is of
// another type than expected: the service is in alpha, and a lead's ID must not be lost for a changed counter.
func members(body []byte, f func(name []byte, v jsontext.Value)) bool {
	return json.Unmarshal(body, (*object)(&f)) == nil
}

// object reads an object member by member, which takes less than a struct and reflection do.
type object func(name []byte, v jsontext.Value)

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (f *object) UnmarshalJSONFrom(from *jsontext.Decoder) error {
	if t, err := from.ReadToken(); err != nil || t.Kind() != '{' {
		return cmp.Or(err, errors.New("no object"))
	}
	var room [64]byte
	for from.PeekKind() == '"' {
		quoted, err := from.ReadValue()
		if err != nil {
			return err
		}
		name, _ := jsontext.AppendUnquote(room[:0], quoted) // it has been read
		v, err := from.ReadValue()
		if err != nil {
			return err
		}
		(*f)(name, v)
	}
	_, err := from.ReadToken()
	return err
}

// fieldsOf are the members of an object, for answers that are rare; none where it cannot be read whole.
func fieldsOf(body []byte) (all map[string]jsontext.Value) {
	if json.Unmarshal(body, &all) != nil {
		return nil
	}
	return all
}

// textOf is the text that a member holds, "" for any other type.
func textOf(v jsontext.Value) string {
	if v.Kind() != '"' {
		return ""
	}
	var room [64]byte
	text, _ := jsontext.AppendUnquote(room[:0], v) // it has been read
	return string(text)
}

// fitting is a text that is valid for its kind, else "": what others keep and show of an answer is bounded here.
func fitting(v jsontext.Value, valid func(string) bool) string {
	if text := textOf(v); valid(text) {
		return text
	}
	return ""
}

// shown is a text for people. Most leads have no name of a location.
func shown(v jsontext.Value) string {
	if text := textOf(v); text != "" {
		return redact(text)
	}
	return ""
}
