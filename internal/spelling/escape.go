package spelling

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Escape makes a text from outside safe to show. Control characters, marks of direction, line ends and broken UTF-8 are
// written as in Go (\x1b, \u202e). The text is cut after 500 characters. Escaping twice changes nothing more.
func Escape(text string) string { return Shorten(text, 500) }

// Shorten is Escape with another limit of characters.
func Shorten(text string, most int) string {
	plain := 0
	for ; plain < len(text) && text[plain] >= ' ' && text[plain] <= '~'; plain++ {
	}
	if plain == len(text) && plain <= most {
		return text // as nearly all are
	}
	var b strings.Builder
	for shown := 0; text != ""; {
		r, size := utf8.DecodeRuneInString(text)
		piece := text[:size]
		if r == utf8.RuneError && size == 1 || !unicode.IsGraphic(r) {
			piece = strings.Trim(strconv.QuoteToASCII(piece), `"`)
		}
		text, shown = text[size:], shown+utf8.RuneCountInString(piece)
		if shown > most || shown == most && text != "" {
			return b.String() + "…"
		}
		b.WriteString(piece)
	}
	return b.String()
}

// EscapeLine is Escape without a limit, for names, keys and IDs: people look them up, and need all of them.
func EscapeLine(text string) string { return Shorten(text, math.MaxInt) }

// EscapeJSON escapes what JSON allows but a terminal may obey: DEL, C1 controls and marks of direction (\u202e).
func EscapeJSON(text []byte) []byte {
	b := make([]byte, 0, len(text))
	for _, r := range string(text) {
		if r <= '~' || unicode.IsGraphic(r) {
			b = utf8.AppendRune(b, r)
			continue
		}
		for _, unit := range utf16.AppendRune(nil, r) {
			b = fmt.Appendf(b, `\u%04x`, unit)
		}
	}
	return b
}

// Wrap breaks a text between words into lines of at most width characters. It does not break a longer word. The first
// line begins with first, the others with next.
func Wrap(first, next, text string, width int) (all []string) {
	line, used := first, utf8.RuneCountInString(first)
	for i, word := range strings.Split(EscapeLine(text), " ") {
		n := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case used+1+n > width:
			all = append(all, strings.TrimRight(line, " "))
			line, used = next, len(next)
		default:
			line, used = line+" ", used+1
		}
		line, used = line+word, used+n
	}
	return append(all, strings.TrimRight(line, " "))
}

// Texts are sentences for people.
type Texts []string

// Add adds a sentence if it is wanted.
func (t *Texts) Add(wanted bool, format string, args ...any) {
	if wanted {
		*t = append(*t, fmt.Sprintf(format, args...))
	}
}

// How times are written, in UTC: Seconds for people; Milliseconds for programs, in the service's way.
const (
	Seconds      = "2006-01-02 15:04:05Z"
	Milliseconds = "2006-01-02T15:04:05.000Z"
)

// Time writes a time in UTC, and the zero time as "".
func Time(t time.Time, layout string) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(layout)
}

var places = Form(`(\().*:[0-9]+(\))|[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9:]{8}Z`)

// WithoutPlaces puts … for what differs from row to row in a text: places of other rows, in brackets, and times.
func WithoutPlaces(text string) string { return places().ReplaceAllString(text, "$1…$2") }

// Duration writes a number of seconds in the way of all messages: with about three digits.
func Duration(s float64) string {
	d, step := time.Duration(min(max(s, 0), 1e8)*float64(time.Second)), time.Microsecond
	for d >= 1000*step {
		step *= 10
	}
	return d.Round(step).String()
}
