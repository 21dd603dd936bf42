package importer

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"leadferry/checkpoint"
	"leadferry/leadapi"
	"leadferry/mapping"
)

// createRequest fills r, whose content it uses again, with the Record as the service
// wants it, and returns it.
func createRequest(r *leadapi.CreateRequest, rec *mapping.Record) *leadapi.CreateRequest {
	content := slices.Grow(r.Content[:0], len(rec.Content))
	for i := range rec.Content {
		f := &rec.Content[i]
		content = append(content, leadapi.ContentField{Key: f.Name, Value: f.Value, Literal: f.Kind != mapping.String})
	}
	*r = leadapi.CreateRequest{
		OrganizationID: rec.Organization,
		LocatorID:      rec.Locator,
		LocationSearch: leadapi.LocationSearch{SearchText: rec.SearchText, PostalCode: rec.PostalCode},
		Content:        content,
		TypeKey:        rec.TypeKey,
		TypeLabel:      rec.TypeLabel,
		Status:         rec.Status,
	}
	return r
}

// updateRequest is what the service is to change.
func updateRequest(rec *mapping.Record, s *Changes) *leadapi.UpdateRequest {
	r := &leadapi.UpdateRequest{}
	if s.Status {
		r.Status = &rec.Status
	}
	if s.ExternalID {
		r.ExternalID = &rec.ExternalID
	}
	for _, i := range s.Fields {
		f := &rec.Content[i]
		r.Content = append(r.Content, leadapi.ContentField{Key: f.Name, Value: f.Value, Literal: f.Kind != mapping.String})
	}
	return r
}

// sums are the checkpoint's keyed digests.
type sums interface {
	Sum(b []byte) checkpoint.Digest
	SumName(name string) [4]byte
	SumValue(name, value string) [4]byte
}

// digester makes the keyed digests of rows, once each. Every goroutine has its own.
type digester struct {
	sums  sums
	text  []byte
	names map[string][4]byte // digests of content keys
	last  []digested         // those of the row before, by their places in it
	order []int              // its fields by their names
	room  []checkpoint.ContentDigest
}

// digested is a content key with its digest.
type digested struct {
	name string
	sum  [4]byte
}

// Bounds of what a digester keeps.
const (
	maxNames  = 10000
	roomAhead = 2048 // digests made room for at once
)

func newDigester(s sums) *digester {
	return &digester{sums: s, names: map[string][4]byte{}}
}

// ofRequest is the digest of everything that the row sends.
func (d *digester) ofRequest(it *item) checkpoint.Digest {
	if it.digest == (checkpoint.Digest{}) {
		d.text = d.fingerprint(d.text[:0], &it.rec)
		it.digest = d.sums.Sum(d.text)
	}
	return it.digest
}

// ofContent are the short digests of the row's content without volatile fields, by which
// a sync tells which content keys changed.
func (d *digester) ofContent(it *item) []checkpoint.ContentDigest {
	if it.sums != nil {
		return it.sums
	}
	content := it.rec.Content
	if d.room == nil || cap(d.room)-len(d.room) < len(content) {
		d.room = make([]checkpoint.ContentDigest, 0, max(roomAhead, len(content)))
	}
	from := len(d.room)
	for i := range content {
		f := &content[i]
		if f.Volatile {
			continue
		}
		d.room = append(d.room, checkpoint.ContentDigest{Name: d.name(i, f.Name), Value: d.sums.SumValue(f.Name, compared(f))})
	}
	it.sums = d.room[from:len(d.room):len(d.room)]
	return it.sums
}

// name is the digest of the name of a row's i-th field.
func (d *digester) name(i int, name string) [4]byte {
	for len(d.last) <= i && i < maxNames {
		d.last = append(d.last, digested{})
	}
	switch {
	case i >= len(d.last):
		return d.nameOf(name)
	case d.last[i].name != name:
		d.last[i] = digested{name, d.nameOf(name)}
	}
	return d.last[i].sum
}

func (d *digester) nameOf(name string) [4]byte {
	sum, ok := d.names[name]
	if !ok {
		if len(d.names) >= maxNames {
			clear(d.names)
		}
		sum = d.sums.SumName(name)
		d.names[name] = sum
	}
	return sum
}

// byName are the places of fields in the order of their names. Mostly that is the order of the row before.
func (d *digester) byName(content []mapping.Field) []int {
	if len(d.order) != len(content) {
		d.order = d.order[:0]
		for i := range content {
			d.order = append(d.order, i)
		}
	}
	slices.SortFunc(d.order, func(x, y int) int { return cmp.Or(cmp.Compare(content[x].Name, content[y].Name), x-y) })
	return d.order
}

// fingerprint is what makes two Records carry the same data: everything that is
// sent but volatile fields, content keys in the order of their names, so that
// neither another run nor a rearranged mapping counts as a change.
func (d *digester) fingerprint(b []byte, rec *mapping.Record) []byte {
	for _, s := range [...]string{
		rec.Organization, rec.Locator, rec.SearchText, rec.PostalCode,
		rec.TypeKey, rec.TypeLabel, rec.Status, rec.ExternalID,
	} {
		b = appendText(b, s)
	}
	for _, i := range d.byName(rec.Content) {
		if f := &rec.Content[i]; !f.Volatile {
			b = appendText(appendText(b, f.Name), compared(f))
		}
	}
	return b
}

// compared is what tells a field's value from others, see canonical.
func compared(f *mapping.Field) string {
	if f.Kind == mapping.String {
		return f.Value
	}
	return canonical(jsontext.Value(f.Value))
}

// canonical is what a value of Content is told from others by, however it is written. A text stands for itself; what
// is no text gets a byte before it that no text holds, being no UTF-8, so that 7 is not "7". None at all is an empty text.
func canonical(value jsontext.Value) string {
	switch value.Kind() {
	case '"':
		text, _ := jsontext.AppendUnquote(nil, value)
		return string(text)
	case '0':
		return "\xff" + mapping.PlainNumber(string(value))
	case '{', '[':
		value = value.Clone()
		_ = value.Canonicalize() // what is not JSON is what it is
	}
	if len(value) == 0 {
		return ""
	}
	return "\xff" + string(value)
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// Changes are the parts of a Record that differ from what was last confirmed of its
// lead. An empty value changes nothing, and volatile fields are never among them.
type Changes struct {
	Status, ExternalID bool
	Fields             []int // of the Record's Content
	Kept               []int // those of which the service's value is let stand: they are not sent
}

func (s Changes) none() bool { return !s.Status && !s.ExternalID && len(s.Fields) == 0 }

// changes compares the row with its lead. Everything differs where nobody knows what
// the lead holds: an update of it is not settled, or it was made by
// somebody else.
func (c *Case) changes() (s Changes) {
	rec, known := c.Record, c.Known
	all := known.Unsettled != "" || !known.State.HasLead()
	s.Status = rec.Status != "" && (all || rec.Status != known.Status)
	s.ExternalID = rec.ExternalID != "" && c.unlinked() || rec.Unlinks && known.ExternalID != ""
	if all = all || len(known.Content) == 0; all {
		for i := range rec.Content {
			if !rec.Content[i].Volatile {
				s.Fields = append(s.Fields, i)
			}
		}
		return s
	}
	sums := c.digests.ofContent(c.it)
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

// unlinked reports whether the lead has another ExternalID than the row's, or may have one that an update without an answer
// asked for.
func (c *Case) unlinked() bool {
	named, known := c.Record.ExternalID, c.Known
	return !known.State.HasLead() || named != known.ExternalID || known.Unsettled != "" && known.WantLink != "" && named != known.WantLink
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
// fields in place of theirs, but for those that the service keeps. Those of wrong, by their place in the Record, are not
// known any more.
func merged(known []checkpoint.ContentDigest, rec *mapping.Record, sums []checkpoint.ContentDigest, kept []int, wrong map[int]bool) []checkpoint.ContentDigest {
	list := make([]checkpoint.ContentDigest, 0, len(known)+len(sums))
	list = append(list, known...)
	n := 0
	for i := range rec.Content {
		if rec.Content[i].Volatile {
			continue
		}
		if !slices.Contains(kept, i) {
			list = put(list, sums[n], wrong[i])
		}
		n++
	}
	return list
}

func put(list []checkpoint.ContentDigest, d checkpoint.ContentDigest, unknown bool) []checkpoint.ContentDigest {
	at := slices.IndexFunc(list, func(known checkpoint.ContentDigest) bool { return known.Name == d.Name })
	switch {
	case at >= 0 && unknown:
		return slices.Delete(list, at, at+1)
	case at >= 0:
		list[at] = d
	case !unknown:
		list = append(list, d)
	}
	return list
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

// carries reports whether a value of the answer is the one that was sent.
func carries(have jsontext.Value, f *mapping.Field) bool {
	if len(have) == 0 {
		return false
	}
	return canonical(have) == compared(f)
}
