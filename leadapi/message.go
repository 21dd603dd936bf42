package leadapi

import (
	"cmp"
	"encoding/base64"
	"net/url"
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

// words finds what the body of an error has to say to a person; in an unknown form, that is the whole body.
func words(body []byte) string {
	var a, inner refusal
	var code string
	if decode(body, &a, json.MatchCaseInsensitiveNames(true)) && a.Error != nil {
		decode(a.Error, &inner, json.MatchCaseInsensitiveNames(true))
		decode(a.Error, &code)
	}
	text := cmp.Or(a.Message, a.Description, a.Detail, inner.Message, inner.Description, inner.Detail, code, a.Title, string(body))
	return cmp.Or(strings.TrimSpace(text), "no message was given")
}

// clean makes a text from outside fit to be shown: control characters and the like escaped, at most 500 characters.
// A text that repeats a piece of a secret is withheld.
func clean(text string, secrets ...string) string {
	text = first(text)
	for _, secret := range secrets {
		if repeats(text, secret) {
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

// repeats tells whether a text holds 12 characters running of a secret (all of a shorter one), in any form that it may
// have been sent or echoed in.
func repeats(text, secret string) bool {
	quoted := strings.Trim(string(appendQuoted(nil, secret)), `"`)
	encoded := base64.StdEncoding.EncodeToString([]byte(secret))
	for _, form := range []string{secret, quoted, url.QueryEscape(secret), url.PathEscape(secret), encoded} {
		for n := min(12, len(form)); len(form) >= n && n > 0; form = form[1:] {
			if strings.Contains(text, form[:n]) {
				return true
			}
		}
	}
	return false
}
