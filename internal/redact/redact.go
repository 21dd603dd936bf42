// Package redact finds what a text from outside repeats of a secret or of a person's data, in whatever form. It stands
// between the service's words and everything that is shown or kept, and promises that a piece of Telling bytes is found
// as it is, with escapes of JSON, Go, HTML or addresses, in hexadecimal and in base64.
package redact

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"html"
	"net/url"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Telling is how many bytes running of a value give it away.
const Telling = 12

// Text is a text that is searched for several values.
type Text struct {
	folded string
	grams  map[string]bool // all Telling bytes running
}

// Search prepares a text.
func Search(text string) Text {
	t := Text{Fold(text), make(map[string]bool, len(text))}
	for i := 0; i+Telling <= len(t.folded); i++ {
		t.grams[t.folded[i:i+Telling]] = true
	}
	return t
}

// Repeats tells whether the text holds a piece of a value in any form that it may be written in, or all of a value that
// is shorter than that. A short one as it stands counts where plain says so: it may be a word like others.
func (t Text) Repeats(value string, plain bool) bool {
	if value == "" {
		return false
	}
	for _, form := range escaped(value) {
		if len(form) < Telling && (plain || form != value) && strings.Contains(t.folded, Fold(form)) {
			return true
		}
	}
	for _, form := range forms(value) {
		form = Fold(form)
		for i := 0; i+Telling <= len(form); i++ {
			if t.grams[form[i:i+Telling]] {
				return true
			}
		}
	}
	return false
}

// escaped writes a value with escapes: JSON's or Go's, HTML's, and as a part of an address, once and twice.
func escaped(value string) []string {
	query := url.QueryEscape(value)
	return []string{
		value, escapedAs(value, false), escapedAs(value, true), strings.Trim(strconv.Quote(value), `"`), strings.Trim(strconv.QuoteToASCII(value), `"`),
		html.EscapeString(value), query, url.PathEscape(value), url.QueryEscape(query),
		bytewise(value, "%"), bytewise(value, `\x`), bytewise(value, `\u00`), bytewise(value, " ")[1:],
	}
}

// forms writes a value as a service might: as it is, with escapes, in hexadecimal, and in base64 from any of three
// places on.
func forms(value string) []string {
	all := append(escaped(value), hex.EncodeToString([]byte(value)))
	for _, e := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for before := range 3 {
			text := e.EncodeToString([]byte("\x00\x00"[:before] + value))
			all = append(all, text[(before*8+5)/6:(before+len(value))*8/6])
		}
	}
	return all
}

// bytewise writes every byte in hexadecimal behind a sign.
func bytewise(value, sign string) string {
	var b strings.Builder
	for i := range len(value) {
		fmt.Fprintf(&b, "%s%02x", sign, value[i])
	}
	return b.String()
}

// escapedAs writes a value as between JSON's quotes, with all that is not ASCII escaped.
func escapedAs(value string, html bool) string {
	var b strings.Builder
	for _, r := range value {
		switch {
		case r == '"', r == '\\':
			b.WriteString(`\` + string(r))
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case r < ' ', r > '~', html && strings.ContainsRune("<>&", r):
			for _, unit := range utf16.AppendRune(nil, r) {
				fmt.Fprintf(&b, `\u%04x`, unit)
			}
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// Fold makes letters small, and leaves every byte in its place.
func Fold(s string) string {
	b := make([]byte, 0, len(s))
	for i, r := range s {
		small := unicode.ToLower(r)
		if r == utf8.RuneError || utf8.RuneLen(small) != utf8.RuneLen(r) {
			_, size := utf8.DecodeRuneInString(s[i:])
			b = append(b, s[i:i+size]...)
			continue
		}
		b = utf8.AppendRune(b, small)
	}
	return string(b)
}
