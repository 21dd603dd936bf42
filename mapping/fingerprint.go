package mapping

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// AppendFingerprint appends a text that is the same for two Records with the same data: everything that is sent except
// volatile fields, content keys sorted by name. Neither another run nor another order in the mapping is a change.
func (rec *Record) AppendFingerprint(b []byte) []byte {
	for _, s := range [...]string{
		rec.Organization, rec.Locator, rec.SearchText, rec.PostalCode,
		rec.TypeKey, rec.TypeLabel, rec.Status, rec.ExternalID,
	} {
		b = appendText(b, s)
	}
	order := make([]int, 0, 32) // of most records, without an allocation
	for i := range rec.Content {
		order = append(order, i)
	}
	slices.SortStableFunc(order, func(x, y int) int { return cmp.Compare(rec.Content[x].Name, rec.Content[y].Name) })
	for _, i := range order {
		if f := &rec.Content[i]; !f.Volatile {
			b = appendText(appendText(b, f.Name), f.Canonical())
		}
	}
	return b
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// Canonical is the field's value in the form of the function [Canonical].
func (f *Field) Canonical() string {
	if !f.Literal {
		return f.Value
	}
	return Canonical(jsontext.Value(f.Value))
}

// Canonical is a value of Content in the form in which values are compared, however they were written. A string is its
// text. Everything else begins with a byte that is not UTF-8, so that 7 is not "7". A missing value is "".
func Canonical(value jsontext.Value) string {
	switch value.Kind() {
	case '"':
		text, _ := jsontext.AppendUnquote(nil, value)
		return string(text)
	case '0':
		return "\xff" + plainNumber(string(value))
	case '{', '[':
		value = value.Clone()
		_ = value.Canonicalize() // a value that is not JSON stays as it is
	}
	if len(value) == 0 {
		return ""
	}
	return "\xff" + string(value)
}
