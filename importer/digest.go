package importer

import "leadferry/checkpoint"

// sums makes the checkpoint's keyed digests.
type sums interface {
	Sum(b []byte) checkpoint.Digest
	SumName(name string) [4]byte
	SumValue(name, value string) [4]byte
}

// digester makes the keyed digests of rows, once for each row. Each goroutine has its own.
type digester struct {
	sums  sums
	text  []byte
	names map[string][4]byte // digests of content keys
}

const maxNames = 10000 // digests of content keys that a digester keeps

func newDigester(s sums) *digester { return &digester{sums: s, names: map[string][4]byte{}} }

// ofRequest is the digest of everything that the row sends.
func (d *digester) ofRequest(it *item) checkpoint.Digest {
	if it.digest == (checkpoint.Digest{}) {
		d.text = it.rec.AppendFingerprint(d.text[:0])
		it.digest = d.sums.Sum(d.text)
	}
	return it.digest
}

// ofContent are the short digests of the row's content without volatile fields, which show a sync what changed.
func (d *digester) ofContent(it *item) []checkpoint.ContentDigest {
	if it.sums == nil {
		it.sums = make([]checkpoint.ContentDigest, 0, len(it.rec.Content))
		for i := range it.rec.Content {
			if f := &it.rec.Content[i]; !f.Volatile {
				value := d.sums.SumValue(f.Name, f.Canonical())
				it.sums = append(it.sums, checkpoint.ContentDigest{Name: d.name(f.Name), Value: value})
			}
		}
	}
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
