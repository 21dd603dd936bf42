package leadapi

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
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
	if slices.ContainsFunc(secrets, func(s string) bool { return repeats(text, s) }) {
		return "the message is withheld: it repeats a secret"
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

// telling is how many bytes running of a secret give it away.
const telling = 12

// repeats tells whether a text holds a piece of a secret, in a form in which a service may show what it was sent.
func repeats(text, secret string) bool {
	if len(secret) < telling {
		return secret != "" && strings.Contains(text, secret)
	}
	text = strings.ToLower(text)
	for _, form := range forms(secret) {
		form = strings.ToLower(form)
		for i := range len(form) - telling + 1 {
			if strings.Contains(text, form[i:i+telling]) {
				return true
			}
		}
	}
	return false
}

// forms writes a secret as it is, as a part of an address, in hexadecimal, and in base64 from any of three places on.
func forms(secret string) []string {
	all := []string{secret, url.QueryEscape(secret), hex.EncodeToString([]byte(secret))}
	for _, e := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for before := range 3 {
			text := e.EncodeToString([]byte("\x00\x00"[:before] + secret))
			all = append(all, text[(before*8+5)/6:(before+len(secret))*8/6])
		}
	}
	return all
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
