package sandbox

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// The kinds of value that a field of a request may have.
const (
	text   = jsontext.Kind('"')
	object = jsontext.Kind('{')
)

// fields names what an object may hold, and of which kind. Nothing else is let in.
type fields map[string]jsontext.Kind

// form is an object that holds what its fields allow.
type form map[string]jsontext.Value

// text returns a text field, "" when it is not there.
func (f form) text(name string) string {
	b, _ := jsontext.AppendUnquote(nil, f[name])
	return string(b)
}

// required returns a text field that must be there and not be empty.
func (f form) required(name string) (string, error) {
	v := f.text(name)
	if strings.TrimSpace(v) == "" {
		return "", refuse(http.StatusBadRequest, "%s is required", name)
	}
	return v, nil
}

// parseBody reads a request's body, which must be declared as JSON ("Endpoints").
func parseBody(h http.Header, body []byte, allowed fields) (form, error) {
	kind, params, err := mime.ParseMediaType(h.Get("Content-Type"))
	charset := params["charset"]
	if err != nil || kind != "application/json" || charset != "" && !strings.EqualFold(charset, "utf-8") {
		return nil, refuse(http.StatusUnsupportedMediaType, "Content-Type must be application/json")
	}
	if h.Get("Content-Encoding") != "" {
		return nil, refuse(http.StatusUnsupportedMediaType, "Content-Encoding is not supported")
	}
	return parseForm("the body", body, allowed)
}

// parseForm reads one object strictly: names in exact case and once only, valid UTF-8, nothing behind.
func parseForm(what string, b []byte, allowed fields) (form, error) {
	d := jsontext.NewDecoder(bytes.NewBuffer(b))
	if d.PeekKind() != object {
		return nil, refuse(http.StatusBadRequest, "%s must be a JSON object", what)
	}
	if _, err := d.ReadToken(); err != nil {
		return nil, malformed(what)
	}
	f := make(form, len(allowed))
	for d.PeekKind() == text {
		token, err := d.ReadToken()
		if err != nil {
			return nil, malformed(what)
		}
		name := token.String()
		value, err := d.ReadValue()
		if err != nil {
			return nil, malformed(what)
		}
		if err := allowed.check(name, value.Kind()); err != nil {
			return nil, err
		}
		f[name] = value.Clone()
	}
	if _, err := d.ReadToken(); err != nil {
		return nil, malformed(what)
	}
	if _, err := d.ReadToken(); err != io.EOF {
		return nil, malformed(what)
	}
	return f, nil
}

func malformed(what string) error {
	return refuse(http.StatusBadRequest, "%s is not well-formed JSON", what)
}

func (fs fields) check(name string, kind jsontext.Kind) error {
	want, known := fs[name]
	switch {
	case !known:
		return refuse(http.StatusBadRequest, "%.64q is not a field of this object", name)
	case want == kind:
		return nil
	case want == text:
		return refuse(http.StatusBadRequest, "%s must be a string", name)
	}
	return refuse(http.StatusBadRequest, "%s must be an object", name)
}

// parseContent reads an object of key/value pairs. Numbers keep their digits.
func parseContent(v jsontext.Value) (map[string]any, error) {
	content := map[string]any{}
	if err := json.Unmarshal(v, &content, exactNumbers()); err != nil {
		return nil, malformed("content")
	}
	return content, nil
}

func exactNumbers() json.Options {
	return json.WithUnmarshalers(json.UnmarshalFromFunc(func(d *jsontext.Decoder, v *any) error {
		if d.PeekKind() != '0' {
			return errors.ErrUnsupported
		}
		n, err := d.ReadValue()
		*v = n.Clone()
		return err
	}))
}
