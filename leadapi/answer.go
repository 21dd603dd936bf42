package leadapi

import (
	"bytes"
	"cmp"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"io"
	"net/http"
	"slices"
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

// unpack undoes gzip and deflate, which are never asked for, and takes away a byte order mark. What says that it is packed and
// is not counts as it is; what is too large, or packed otherwise, is not readable.
func (a *answer) unpack() {
	if !a.whole {
		return
	}
	packings := packingsOf(a.Header["Content-Encoding"])
	if len(packings) == 0 && bytes.HasPrefix(a.body, []byte("\x1f\x8b")) {
		packings = []string{"gzip"}
	}
	if len(packings) > mostPackings {
		return
	}
	for _, packing := range slices.Backward(packings) {
		plain, fits := unpacked(a.body, packing)
		if !fits {
			return
		}
		a.body = plain
	}
	a.body, a.readable = bytes.TrimPrefix(a.body, []byte("\ufeff")), true
}

// packingsOf names the packings of an answer, the outermost last.
func packingsOf(lines []string) (all []string) {
	for _, line := range lines {
		for word := range strings.SplitSeq(line, ",") {
			if word = strings.ToLower(strings.TrimSpace(word)); word != "" && word != "identity" {
				all = append(all, word)
			}
		}
	}
	return all
}

// unpacked undoes one packing; fits is false for what is larger than an answer may be, or packed in an unknown way.
func unpacked(body []byte, packing string) (plain []byte, fits bool) {
	for _, open := range unpackers[packing] {
		r, err := open(bytes.NewReader(body))
		if err != nil {
			continue
		}
		if plain, err = io.ReadAll(io.LimitReader(r, maxBody+1)); err == nil {
			return plain, len(plain) <= maxBody
		}
	}
	return body, bytes.HasPrefix(bytes.TrimSpace(bytes.TrimPrefix(body, []byte("\ufeff"))), []byte("{"))
}

// unpackers are the ways to read each packing; what is called deflate is zlib, but some send it bare.
var unpackers = map[string][]func(io.Reader) (io.Reader, error){
	"gzip":    {openGzip},
	"x-gzip":  {openGzip},
	"deflate": {func(r io.Reader) (io.Reader, error) { return zlib.NewReader(r) }, func(r io.Reader) (io.Reader, error) { return flate.NewReader(r), nil }},
}

func openGzip(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) }

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
