package sandbox

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// answer is what a request is given: a status, 0 for none, and a body of JSON.
type answer struct {
	status int
	header map[string]string
	body   []byte
	leadID string // of the lead that the body names
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
func respond(status int, v any) (answer, error) {
	body, err := json.Marshal(v, json.Deterministic(true), jsontext.EscapeForHTML(false))
	return answer{status: status, body: body}, err
}

// refusal is an error that the client is told ("Errors").
type refusal struct {
	status       int
	code, reason string
	allow        string
}

func (r *refusal) Error() string { return r.reason }

// refuse returns a refusal in words that hold no value of the request.
func refuse(status int, format string, args ...any) error {
	return &refusal{status: status, code: http.StatusText(status), reason: fmt.Sprintf(format, args...)}
}

// refused turns an error into an answer; what is no refusal is a fault of the sandbox itself.
func refused(err error) answer {
	var r *refusal
	if !errors.As(err, &r) {
		r = &refusal{status: http.StatusInternalServerError, code: http.StatusText(http.StatusInternalServerError), reason: err.Error()}
	}
	a := refusalAnswer(r.status, r.code, r.reason)
	switch {
	case r.allow != "":
		a.header = map[string]string{"Allow": r.allow}
	case r.status == http.StatusUnauthorized:
		a.header = map[string]string{"WWW-Authenticate": "Bearer"}
	}
	return a
}

func refusalAnswer(status int, code, reason string) answer {
	a, _ := respond(status, struct {
		Error   string `json:"error"`
		Message string `json:"message"`
	}{code, reason})
	return a
}
