package sandbox

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// The kinds of value that a field of a request may have.
const (
	text   = jsontext.Kind('"')
	object = jsontext.Kind('{')
)

// fields names what an object may hold, and of which kind.
type fields map[string]jsontext.Kind

// form is what an object holds of its fields.
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

func readBody(r *http.Request) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	switch {
	case err != nil:
		return nil, refuse(http.StatusBadRequest, "the body did not arrive whole")
	case len(body) > maxBody:
		return nil, refuse(http.StatusRequestEntityTooLarge, "the body is larger than 1 MiB")
	}
	return body, nil
}

// form reads a request's body, which must be declared as JSON ("Endpoints").
func (s *Server) form(c call, known fields) (form, error) {
	kind, params, err := mime.ParseMediaType(c.Header.Get("Content-Type"))
	charset := params["charset"]
	if err != nil || kind != "application/json" || charset != "" && !strings.EqualFold(charset, "utf-8") {
		return nil, refuse(http.StatusUnsupportedMediaType, "Content-Type must be application/json")
	}
	if c.Header.Get("Content-Encoding") != "" {
		return nil, refuse(http.StatusUnsupportedMediaType, "Content-Encoding is not supported")
	}
	return parseForm("the body", c.body, known, s.options.Strict)
}

// parseForm reads one object: names in exact case and once only, valid UTF-8, nothing behind. Fields that are not known, or
// null, are left out; strict refuses them.
func parseForm(what string, b []byte, known fields, strict bool) (f form, err error) {
	if jsontext.Value(b).Kind() != object {
		return nil, refuse(http.StatusBadRequest, "%s must be a JSON object", what)
	}
	if json.Unmarshal(b, &f) != nil {
		return nil, refuse(http.StatusBadRequest, "%s is not well-formed JSON", what)
	}
	for name, value := range f {
		switch want := known[name]; {
		case !strict && (want == 0 || value.Kind() == 'n'):
			delete(f, name)
		case want == 0:
			return nil, refuse(http.StatusBadRequest, "%.64q is not a field of this object", name)
		case want != value.Kind():
			return nil, refuse(http.StatusBadRequest, "%s must be %s", name, map[jsontext.Kind]string{text: "a string", object: "an object"}[want])
		}
	}
	return f, nil
}

// parseContent reads an object of key/value pairs. Numbers keep their digits.
func parseContent(v jsontext.Value) (content map[string]any, err error) {
	if json.Unmarshal(v, &content, exactNumbers) != nil {
		return nil, refuse(http.StatusBadRequest, "content is not well-formed JSON")
	}
	return content, nil
}

// exactNumbers has numbers read into jsontext.Value.
var exactNumbers = json.WithUnmarshalers(json.UnmarshalFromFunc(func(d *jsontext.Decoder, v *any) error {
	if d.PeekKind() != '0' {
		return errors.ErrUnsupported
	}
	n, err := d.ReadValue()
	*v = n.Clone()
	return err
}))

// answer is what a request is given: a status, 0 for none, and a body of JSON.
type answer struct {
	status int
	header map[string]string
	body   []byte
	leadID string // of the lead that the body names
	reason string // of a refusal
}

func (a answer) write(w http.ResponseWriter) {
	h := w.Header()
	if len(a.body) > 0 {
		h.Set("Content-Type", "application/json")
	}
	for k, v := range a.header {
		h.Set(k, v)
	}
	if a.status != http.StatusNoContent && a.status != http.StatusNotModified {
		h.Set("Content-Length", strconv.Itoa(len(a.body)))
	}
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body) // a client that is gone has no use for the error
}

// respond returns an answer with v as its body.
func respond(status int, v any) answer {
	body, _ := json.Marshal(v, json.Deterministic(true), jsontext.EscapeForHTML(false)) // it is made of what was read
	return answer{status: status, header: map[string]string{}, body: body}
}

// refusal is an error that the client is told ("Errors").
type refusal struct {
	status       int
	code, reason string
	allow        string // the method that the address takes
}

func (r *refusal) Error() string { return r.reason }

// refuse returns a refusal in words that hold no value of the request.
func refuse(status int, format string, args ...any) error {
	return &refusal{status: status, code: http.StatusText(status), reason: fmt.Sprintf(format, args...)}
}

// refused turns an error into an answer; what is no refusal is a fault of the sandbox itself.
func refused(err error) answer {
	r, ok := errors.AsType[*refusal](err)
	if !ok {
		r = &refusal{status: http.StatusInternalServerError, code: http.StatusText(http.StatusInternalServerError), reason: err.Error()}
	}
	a := respond(r.status, struct {
		Error   string `json:"error"`
		Message string `json:"message"`
	}{r.code, r.reason})
	a.reason = r.reason
	switch {
	case r.allow != "":
		a.header["Allow"] = r.allow
	case r.status == http.StatusUnauthorized:
		a.header["WWW-Authenticate"] = "Bearer"
	}
	return a
}
