package leadapi

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"leadferry/internal/redact"
)

// refusal is the body of an error in the forms that are common; the service's own is not specified.
type refusal struct {
	Message     string         `json:"message"`
	Description string         `json:"error_description"`
	Detail      string         `json:"detail"`
	Title       string         `json:"title"`
	Error       jsontext.Value `json:"error"`
}

const noMessage = "no message was given"

// The error codes of a token endpoint (RFC 6749, section 5.2).
var codes = []string{"invalid_request", "invalid_client", "invalid_grant", "unauthorized_client", "unsupported_grant_type", "invalid_scope"}

// code is all that is told of an answer to a request with credentials: one of the known error codes. The words around it
// may repeat a secret in a form that nobody thinks of.
func code(body []byte) string {
	var a struct {
		Error string `json:"error"`
	}
	switch {
	case decode(body, &a) && slices.Contains(codes, a.Error):
		return a.Error
	case len(bytes.TrimSpace(body)) == 0:
		return noMessage
	}
	return "its words are not shown, for they may repeat a secret"
}

// words finds what the body of an error has to say to a person; in an unknown form, that is the whole body.
func words(body []byte) string {
	if bytes.IndexByte(body, 0) >= 0 {
		return "a message that is no text"
	}
	var a, inner refusal
	var code string
	if decode(body, &a, json.MatchCaseInsensitiveNames(true)) && a.Error != nil {
		decode(a.Error, &inner, json.MatchCaseInsensitiveNames(true))
		decode(a.Error, &code)
	}
	text := cmp.Or(a.Message, a.Description, a.Detail, inner.Message, inner.Description, inner.Detail, code, a.Title, string(body))
	return cmp.Or(strings.TrimSpace(text), noMessage)
}

// clean makes a text from outside fit to be shown: control characters and the like escaped, at most 500 characters.
// A text that repeats a piece of a secret is withheld.
func clean(text string, secrets ...string) string {
	text = first(text)
	if len(secrets) > 0 {
		said := redact.Search(text)
		if slices.ContainsFunc(secrets, func(s string) bool { return said.Repeats(s, true) }) {
			return "the message is withheld: it repeats a secret"
		}
	}
	var b strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		if r == utf8.RuneError && size == 1 || !strconv.IsPrint(r) {
			b.WriteString(strings.Trim(strconv.Quote(text[:size]), `"`))
		} else {
			b.WriteString(text[:size])
		}
		text = text[size:]
	}
	return first(b.String())
}

// first cuts a text at 500 characters.
func first(text string) string {
	count := 0
	for at := range text {
		if count++; count > 500 {
			return text[:at]
		}
	}
	return text
}
