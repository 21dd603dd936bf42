package importer

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"leadferry/checkpoint"
	"leadferry/leadapi"
	"leadferry/mapping"
)

// Changes are the parts of a Record that differ from what was last confirmed of its
// lead. An empty value changes nothing, and volatile fields are never among them.
type Changes struct {
	Status, ExternalID bool
	Fields             []int // of the Record's Content
}

func (s *Changes) none() bool { return !s.Status && !s.ExternalID && len(s.Fields) == 0 }

// changes compares the row with its lead. Everything differs where nobody knows what
// the lead holds: an update of it is not settled, or it was made by
// somebody else.
func (c *Case) changes() *Changes {
	rec, known := c.Record, c.Known
	all := known.Unsettled != "" || !known.State.HasLead()
	s := &Changes{
		Status:     rec.Status != "" && (all || rec.Status != known.Status),
		ExternalID: rec.ExternalID != "" && (all || rec.ExternalID != known.ExternalID),
	}
	if all = all || len(known.Content) == 0; all {
		for i := range rec.Content {
			if !rec.Content[i].Volatile {
				s.Fields = append(s.Fields, i)
			}
		}
		return s
	}
	sums := c.digests.fields(c.it)
	n, at := 0, 0
	for i := range rec.Content {
		if rec.Content[i].Volatile {
			continue
		}
		var held bool
		if held, at = holds(known.Content, &sums[n], at); !held {
			s.Fields = append(s.Fields, i)
		}
		n++
	}
	return s
}

// holds reports whether the content has this value. It looks from at on, since rows
// have their fields in the order in which they were sent, and returns where to go on.
func holds(content []checkpoint.ContentDigest, d *checkpoint.ContentDigest, at int) (bool, int) {
	for range content {
		if at >= len(content) {
			at = 0
		}
		if content[at].Name == d.Name {
			return content[at].Value == d.Value, at + 1
		}
		at++
	}
	return false, at
}

// merged is the content that is confirmed after an update: what was, with the row's
// fields in place of theirs. Those of wrong, by their place in the Record, are not
// known any more.
func merged(known []checkpoint.ContentDigest, rec *mapping.Record, sums []checkpoint.ContentDigest, wrong map[int]bool) []checkpoint.ContentDigest {
	list := make([]checkpoint.ContentDigest, 0, len(known)+len(sums))
	list = append(list, known...)
	n := 0
	for i := range rec.Content {
		if rec.Content[i].Volatile {
			continue
		}
		list = put(list, sums[n], wrong[i])
		n++
	}
	return list
}

func put(list []checkpoint.ContentDigest, d checkpoint.ContentDigest, unknown bool) []checkpoint.ContentDigest {
	for i := range list {
		if list[i].Name != d.Name {
			continue
		}
		if unknown {
			return append(list[:i], list[i+1:]...)
		}
		list[i] = d
		return list
	}
	if unknown {
		return list
	}
	return append(list, d)
}

// differing names what the lead carries otherwise than it was sent; wrong are the
// fields among it by their place in the Record.
func differing(rec *mapping.Record, send *Changes, lead *leadapi.Lead) (wrong map[int]bool, names []string) {
	if send.Status && lead.Status != rec.Status {
		names = append(names, "Status")
	}
	if send.ExternalID && lead.ExternalID != rec.ExternalID {
		names = append(names, "ExternalID")
	}
	for _, i := range send.Fields {
		f := &rec.Content[i]
		if carries(lead.Content[f.Name], f) {
			continue
		}
		if wrong == nil {
			wrong = map[int]bool{}
		}
		wrong[i] = true
		names = append(names, fmt.Sprintf("Content key %q", f.Name))
	}
	return wrong, names
}

// decimal is a number to its last digit, however it is written.
type decimal struct {
	negative bool
	digits   string // without zeros at either end
	power    int    // of ten
}

// decimalOf reads a JSON number. One with a power beyond reason is as it is written.
func decimalOf(number string) (d decimal) {
	rest, negative := strings.CutPrefix(strings.ToLower(number), "-")
	mantissa, power, _ := strings.Cut(rest, "e")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	all := strings.TrimLeft(whole+fraction, "0")
	digits := strings.TrimRight(all, "0")
	n, err := strconv.Atoi(power)
	switch {
	case digits == "":
		return decimal{}
	case err != nil && power != "":
		return decimal{digits: number}
	}
	return decimal{negative, digits, n + len(all) - len(digits) - len(fraction)}
}

// carries reports whether a value of the answer is the one that was sent, however it
// is written: 1.50 is 1.5, but 7 is not "7".
func carries(have jsontext.Value, f *mapping.Field) bool {
	if len(have) == 0 {
		return false
	}
	if f.Kind == mapping.String {
		text, err := jsontext.AppendUnquote(nil, have)
		return err == nil && have.Kind() == '"' && string(text) == f.Value
	}
	if f.Kind == mapping.Number && have.Kind() == '0' {
		return decimalOf(f.Value) == decimalOf(string(have))
	}
	sent, got := jsontext.Value(f.Value).Clone(), have.Clone()
	return sent.Canonicalize() == nil && got.Canonicalize() == nil && bytes.Equal(sent, got)
}
