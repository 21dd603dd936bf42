package importer

import (
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"leadferry/leadapi"
	"leadferry/mapping"
)

// A service may repeat in a refusal what it refuses. The whole message stands in the
// rejects file, beside the row itself; everywhere else it stands without the row's data.

const (
	veil     = "…"
	withheld = "the service's message repeats the row and stands in the rejects file alone"
	// telling is how many bytes running of a value give it away.
	telling = 12
	// leastVeiled is the shortest value, in characters, that is looked for.
	leastVeiled = 2
)

// refuse says why the service did not do as asked. format has one verb, for the status
// with the message.
func (j *job) refuse(format string, ae *leadapi.Error) {
	public := *ae
	public.Message = veiled(ae.Message, &j.it.rec)
	j.text, j.whole = fmt.Sprintf(format, refusalText(&public)), fmt.Sprintf(format, refusalText(ae))
}

// veiled is a message without what it repeats of the row's data: a value that stands in
// it as it is goes, and where pieces are left, in whatever form, the message does.
func veiled(message string, rec *mapping.Record) string {
	values := sensitive(rec)
	for _, v := range values {
		message = strike(message, v)
	}
	folded := fold(message)
	if grams := pieces(folded); slices.ContainsFunc(values, func(v string) bool { return repeated(folded, grams, v) }) {
		return withheld
	}
	return message
}

// sensitive are the values that a request carries of a person, the longest first. Keys,
// IDs and statuses stand in the results anyway.
func sensitive(rec *mapping.Record) []string {
	values := []string{rec.SearchText, rec.PostalCode}
	for _, f := range rec.Content {
		if f.Value != rec.Key && f.Value != rec.ExternalID && f.Value != rec.Status {
			values = append(values, f.Value)
		}
	}
	values = slices.DeleteFunc(values, func(v string) bool { return utf8.RuneCountInString(v) < leastVeiled })
	slices.SortFunc(values, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	return values
}

// strike takes a value out of a message, where it stands as a word of its own; an address
// is one anywhere. Large and small letters are the same.
func strike(message, value string) string {
	value = fold(value)
	address := strings.Contains(value, "@")
	var b strings.Builder
	rest, folded := message, fold(message)
	for {
		at := strings.Index(folded, value)
		if at < 0 || value == "" {
			return b.String() + rest
		}
		end := at + len(value)
		before, _ := utf8.DecodeLastRuneInString(folded[:at])
		first, _ := utf8.DecodeRuneInString(value)
		last, _ := utf8.DecodeLastRuneInString(value)
		after, _ := utf8.DecodeRuneInString(folded[end:])
		b.WriteString(rest[:at])
		if !address && (inWord(before) && inWord(first) || inWord(last) && inWord(after)) {
			b.WriteString(rest[at:end])
		} else {
			b.WriteString(veil)
		}
		rest, folded = rest[end:], folded[end:]
	}
}

func inWord(r rune) bool { return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r)) }

// pieces are all telling bytes running of a text.
func pieces(text string) map[string]bool {
	grams := make(map[string]bool, len(text))
	for i := 0; i+telling <= len(text); i++ {
		grams[text[i:i+telling]] = true
	}
	return grams
}

// repeated reports whether a message, by its pieces, holds a piece of a value in any form
// that it may be written in, or all of a short value with escapes.
func repeated(message string, grams map[string]bool, value string) bool {
	for _, form := range escapedForms(value) {
		if len(form) < telling && form != value && strings.Contains(message, fold(form)) {
			return true
		}
	}
	for _, form := range formsOf(value) {
		form = fold(form)
		for i := 0; i+telling <= len(form); i++ {
			if grams[form[i:i+telling]] {
				return true
			}
		}
	}
	return false
}

// escapedForms writes a value with JSON's escapes or Go's, and as a part of an address.
func escapedForms(value string) []string {
	return []string{
		escapedAs(value, false), escapedAs(value, true), strings.Trim(strconv.Quote(value), `"`), strings.Trim(strconv.QuoteToASCII(value), `"`),
		url.QueryEscape(value), url.PathEscape(value),
	}
}

// formsOf writes a value as a service might: as it is, with escapes, in hexadecimal, and
// in base64 from any of three places on.
func formsOf(value string) []string {
	forms := append(escapedForms(value), value, hex.EncodeToString([]byte(value)))
	for _, e := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for before := range 3 {
			text := e.EncodeToString([]byte("\x00\x00"[:before] + value))
			forms = append(forms, text[(before*8+5)/6:(before+len(value))*8/6])
		}
	}
	return forms
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

// fold makes letters small, and leaves every byte in its place.
func fold(s string) string {
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
