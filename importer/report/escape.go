package report

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// maxText is how many characters of a text from outside are kept.
const maxText = 500

// Escape makes a text from outside safe to show: control characters, marks of
// direction, line ends and broken UTF-8 are written as in Go (\x1b, \u202e), and
// what goes beyond 500 characters is cut. Escaping twice changes nothing more.
func Escape(text string) string { return escape(text, maxText) }

func escape(text string, most int) string {
	if plain(text, most) {
		return text
	}
	var b strings.Builder
	shown, fits := 0, 0 // fits: bytes that leave room for the mark of a cut
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		piece := text[i : i+size]
		if r == utf8.RuneError && size == 1 || !unicode.IsGraphic(r) {
			piece = strconv.QuoteToASCII(piece)
			piece = piece[1 : len(piece)-1]
		}
		i += size
		if shown += utf8.RuneCountInString(piece); shown > most {
			return b.String()[:fits] + "…"
		}
		b.WriteString(piece)
		if shown < most {
			fits = b.Len()
		}
	}
	return b.String()
}

// Shortened cuts a text that has more characters than most.
func Shortened(text string, most int) string {
	if len(text) <= most || utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:most-1]) + "…"
}

// EscapeJSON writes in a JSON text as \u202e what a terminal would act upon and JSON
// lets stand as it is: DEL, the C1 controls and marks of direction. The text means the
// same as before.
func EscapeJSON(text []byte) []byte {
	acts := func(r rune) bool { return r > '~' && !unicode.IsGraphic(r) }
	if bytes.IndexFunc(text, acts) < 0 {
		return text
	}
	var b []byte
	for _, r := range string(text) {
		if !acts(r) {
			b = utf8.AppendRune(b, r)
			continue
		}
		for _, unit := range utf16.AppendRune(nil, r) {
			b = fmt.Appendf(b, `\u%04x`, unit)
		}
	}
	return b
}

// plain reports whether a text is short and holds nothing but visible ASCII, as nearly all do.
func plain(text string, most int) bool {
	for i := range len(text) {
		if text[i] < ' ' || text[i] > '~' {
			return false
		}
	}
	return len(text) <= most
}

// defuse puts ' before a text that a spreadsheet would take for a formula: one that
// begins with = + - @ or their full-width forms, a tab, a line end or NUL.
func defuse(text string) string {
	if r, _ := utf8.DecodeRuneInString(text); text != "" && strings.ContainsRune("=+-@\t\r\n\x00＝＋－＠", r) {
		return "'" + text
	}
	return text
}

// Cell is a text from outside as it is in a CSV file for people.
func Cell(text string) string { return Escape(defuse(text)) }

// EscapeLine is Escape for what is no use when it is cut: a name, a key or an ID is taken for what it is by anyone who
// looks it up.
func EscapeLine(text string) string { return escape(text, math.MaxInt) }
