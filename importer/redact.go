package importer

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"leadferry/internal/redact"
	"leadferry/leadapi"
	"leadferry/mapping"
)

// A service may repeat in a refusal what it refuses. The whole message stands in the
// rejects file, beside the row itself; everywhere else it stands without the row's data.

const (
	mask     = "…"
	withheld = "the service's message repeats the row and stands in the rejects file alone"
	// leastRedacted is the shortest value, in characters, that is looked for.
	leastRedacted = 2
)

// refuse says why the service did not do as asked. format has one verb, for the status
// with the message.
func (j *job) refuse(format string, ae *leadapi.Error) {
	public := *ae
	public.Message = redacted(ae.Message, &j.it.rec)
	j.text, j.whole = fmt.Sprintf(format, refusalText(&public)), fmt.Sprintf(format, refusalText(ae))
}

// redacted is a message without what it repeats of the row's data: a value that stands in
// it as it is goes, and where pieces are left, in whatever form, the message does.
func redacted(message string, rec *mapping.Record) string {
	values := sensitive(rec)
	for _, v := range values {
		message = strike(message, v)
	}
	text := redact.Search(message)
	if slices.ContainsFunc(values, func(v string) bool { return text.Repeats(v, false) }) {
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
	values = slices.DeleteFunc(values, func(v string) bool { return utf8.RuneCountInString(v) < leastRedacted })
	slices.SortFunc(values, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	return values
}

// strike takes a value out of a message, where it stands as a word of its own; an address
// is one anywhere. Large and small letters are the same.
func strike(message, value string) string {
	value = redact.Fold(value)
	address := strings.Contains(value, "@")
	var b strings.Builder
	rest, folded := message, redact.Fold(message)
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
			b.WriteString(mask)
		}
		rest, folded = rest[end:], folded[end:]
	}
}

func inWord(r rune) bool { return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r)) }
