package importer

import (
	"leadferry/checkpoint"
	"leadferry/mapping"
)

// digester makes the keyed digests of rows, once each. Every goroutine has its own.
type digester struct {
	ledger Ledger
	text   []byte
	names  map[string][4]byte // digests of content keys
	room   []checkpoint.ContentDigest
}

// Bounds of what a digester keeps.
const (
	maxNames  = 10000
	roomAhead = 2048 // digests made room for at once
)

func newDigester(l Ledger) *digester { return &digester{ledger: l, names: map[string][4]byte{}} }

// whole is the digest of everything that the row sends.
func (d *digester) whole(it *item) checkpoint.Digest {
	if it.digest == (checkpoint.Digest{}) {
		d.text = fingerprint(d.text[:0], &it.rec)
		it.digest = d.ledger.Sum(d.text)
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
		d.room = append(d.room, checkpoint.ContentDigest{
			Name: d.name(f.Name), Value: d.value(f),
		})
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
		sum = d.ledger.SumName(name)
		d.names[name] = sum
	}
	return sum
}

func (d *digester) value(f *mapping.Field) [4]byte { return d.ledger.SumValue(f.Name, compared(f)) }
