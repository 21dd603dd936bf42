package importer

import (
	"cmp"
	"encoding/binary"
	"hash/maphash"
	"slices"

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
	sums   sums
	text   []byte
	names  map[string][4]byte // digests of content keys
	room   []checkpoint.ContentDigest
	seed   maphash.Seed
	values [maxValues]valued
}

// valued is the digest of the last value that had this place. Cities, sources and models
// come again and again, and looking one up takes a tenth of the time. That two values
// have one hash is much less likely than that they have one digest.
type valued struct {
	hash uint64
	sum  [4]byte
}

// Bounds of what a digester keeps.
const (
	maxNames  = 10000
	maxValues = 1 << 10
	roomAhead = 2048 // digests made room for at once
)

func newDigester(s sums) *digester {
	return &digester{sums: s, names: map[string][4]byte{}, seed: maphash.MakeSeed()}
}

// whole is the digest of everything that the row sends.
func (d *digester) whole(it *item) checkpoint.Digest {
	if it.digest == (checkpoint.Digest{}) {
		d.text = fingerprint(d.text[:0], &it.rec)
		it.digest = d.sums.Sum(d.text)
	}
	return it.digest
}

// fields are the short digests of the row's content without volatile fields, by which
// a sync tells which content keys changed.
func (d *digester) fields(it *item) []checkpoint.ContentDigest {
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
		name := d.name(f.Name)
		d.room = append(d.room, checkpoint.ContentDigest{Name: name, Value: d.value(f, name)})
	}
	it.sums = d.room[from:len(d.room):len(d.room)]
	return it.sums
}

func (d *digester) name(name string) [4]byte {
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

func (d *digester) value(f *mapping.Field, name [4]byte) [4]byte {
	value := compared(f)
	hash := maphash.String(d.seed, value) ^ uint64(binary.LittleEndian.Uint32(name[:]))
	v := &d.values[hash%maxValues]
	if v.hash != hash {
		*v = valued{hash, d.sums.SumValue(f.Name, value)}
	}
	return v.sum
}

// fingerprint is what makes two Records carry the same data: everything that is
// sent but volatile fields, content keys in the order of their names, so that
// neither another run nor a rearranged mapping counts as a change.
func fingerprint(b []byte, rec *mapping.Record) []byte {
	for _, s := range [...]string{
		rec.Organization, rec.Locator, rec.SearchText, rec.PostalCode,
		rec.TypeKey, rec.TypeLabel, rec.Status, rec.ExternalID,
	} {
		b = appendText(b, s)
	}
	var order [16]*mapping.Field
	fields := order[:0]
	for i := range rec.Content {
		if !rec.Content[i].Volatile {
			fields = append(fields, &rec.Content[i])
		}
	}
	slices.SortFunc(fields, func(x, y *mapping.Field) int { return cmp.Compare(x.Name, y.Name) })
	for _, f := range fields {
		b = appendText(appendText(b, f.Name), compared(f))
	}
	return b
}

// compared is what tells a field's value from others. A text stands for itself; what
// is no text gets a byte before it that no text holds, being no UTF-8, so that 7 is
// not "7". What is the same in the request is the same here, whatever its Kind.
func compared(f *mapping.Field) string {
	if f.Kind == mapping.String {
		return f.Value
	}
	return "\xff" + f.Value
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}
