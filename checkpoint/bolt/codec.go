package bolt

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
	"time"

	"leadferry/checkpoint"
	"leadferry/internal/rowkey"
)

// Every record is its fields followed by four bytes of CRC over key and fields, so that a value under a wrong key is
// noticed as well as a changed one. What cannot be read is errRecord.

var (
	castagnoli = crc32.MakeTable(crc32.Castagnoli)

	// errRecord is [checkpoint.ErrDamaged] of a record that is not whole.
	errRecord = fmt.Errorf("%w: a record fails its checksum", checkpoint.ErrDamaged)
)

const sealSize = 4

// seal appends the checksum of key and b[from:] to b.
func seal(b []byte, from int, key []byte) []byte {
	return binary.LittleEndian.AppendUint32(b, checksum(key, b[from:]))
}

// unseal returns the record's fields, or errRecord.
func unseal(key, record []byte) (fields []byte, err error) {
	n := len(record) - sealSize
	if n < 0 || binary.LittleEndian.Uint32(record[n:]) != checksum(key, record[:n]) {
		return nil, errRecord
	}
	return record[:n], nil
}

func checksum(key, fields []byte) uint32 {
	return crc32.Update(crc32.Checksum(key, castagnoli), castagnoli, fields)
}

// appendText appends s with its length in front: 0 for none, 1 for a UUID in lower case that follows in 16 bytes, else
// the number of bytes plus one. No text is the beginning of another one, so texts can be joined to keys.
func appendText(b []byte, s string) []byte {
	if s == "" {
		return append(b, 0)
	}
	if id, ok := packUUID(s); ok {
		return append(append(b, 1), id[:]...)
	}
	b = binary.AppendUvarint(b, uint64(len(s))+1)
	return append(b, s...)
}

func packUUID(s string) (id [16]byte, ok bool) {
	if !rowkey.IsUUID(s) || strings.ContainsAny(s, "ABCDEF") {
		return id, false
	}
	_, err := hex.Decode(id[:], []byte(strings.ReplaceAll(s, "-", "")))
	return id, err == nil
}

func unpackUUID(id []byte) string {
	text := hex.EncodeToString(id)
	return text[:8] + "-" + text[8:12] + "-" + text[12:16] + "-" + text[16:20] + "-" + text[20:]
}

// coder writes fields behind one another, or reads them, by one list of calls. A missing field makes it bad.
type coder struct {
	b          []byte // what was written, or is left to be read
	reads, bad bool
}

// readCoder returns a coder that reads fields.
func readCoder(fields []byte) *coder { return &coder{b: fields, reads: true} }

// Written is what was written.
func (c *coder) Written() []byte { return c.b }

// Done returns an error unless the fields were all there and nothing is left.
func (c *coder) Done() error {
	if c.bad || len(c.b) != 0 {
		return errRecord
	}
	return nil
}

// next takes n bytes, which are not copied.
func (c *coder) next(n uint64) (out []byte) {
	if n > uint64(len(c.b)) {
		c.b, c.bad = nil, true
		return nil
	}
	out, c.b = c.b[:n], c.b[n:]
	return out
}

func (c *coder) bytes(v []byte) {
	if c.reads {
		copy(v, c.next(uint64(len(v))))
	} else {
		c.b = append(c.b, v...)
	}
}

func (c *coder) byte(v *byte) {
	if !c.reads {
		c.b = append(c.b, *v)
	} else if b := c.next(1); b != nil {
		*v = b[0]
	} else {
		*v = 0
	}
}

func (c *coder) bool(v *bool) {
	one := byte(0)
	if *v {
		one = 1
	}
	c.byte(&one)
	*v = one != 0
}

// some writes whether there is something, or reads it.
func (c *coder) some(there bool) bool {
	c.bool(&there)
	return there
}

// Uint is a number that is not negative.
func (c *coder) Uint(v *uint64) {
	if !c.reads {
		c.b = binary.AppendUvarint(c.b, *v)
		return
	}
	n := 0
	*v, n = binary.Uvarint(c.b)
	c.next(taken(n))
}

// taken is how many bytes a number has that is n bytes long; more than there are if it is none.
func taken(n int) uint64 {
	if n <= 0 {
		return 1 << 63
	}
	return uint64(n)
}

func (c *coder) number(v *int) {
	n := uint64(*v)
	c.Uint(&n)
	*v = int(n)
}

// time keeps milliseconds, in UTC.
func (c *coder) time(v *time.Time) {
	switch some := c.some(!v.IsZero()); {
	case !some:
		*v = time.Time{}
	case !c.reads:
		c.b = binary.AppendVarint(c.b, v.UnixMilli())
	default:
		ms, n := binary.Varint(c.b)
		c.next(taken(n))
		*v = time.UnixMilli(ms).UTC()
	}
}

// text leaves what v holds if it is the same text, so that none is made anew for each record.
func (c *coder) text(v *string) {
	if !c.reads {
		c.b = appendText(c.b, *v)
		return
	}
	var n uint64
	switch c.Uint(&n); n {
	case 0:
		*v = ""
	case 1:
		id := c.next(16)
		if *v = ""; id != nil {
			*v = unpackUUID(id)
		}
	default:
		if text := c.next(n - 1); string(text) != *v {
			*v = string(text)
		}
	}
}

// textOr is a text that is often the same as another one.
func (c *coder) textOr(v *string, other string) {
	if c.some(*v == other) {
		*v = other
	} else {
		c.text(v)
	}
}

// status is a byte for each that the specification names.
func (c *coder) status(v *string) {
	const other = 255
	at := byte(slices.Index(checkpoint.Statuses[:], *v)) // other, where it is none of them
	c.byte(&at)
	switch {
	case at == other && !c.reads:
		*v = checkpoint.BoundedStatus(*v)
		c.text(v)
	case at == other:
		c.text(v)
	case int(at) < len(checkpoint.Statuses):
		*v = checkpoint.Statuses[at]
	default:
		*v, c.bad = "", true
	}
}

func (c *coder) digest(v *checkpoint.Digest) {
	if c.some(*v != checkpoint.Digest{}) {
		c.bytes(v[:])
	} else {
		*v = checkpoint.Digest{}
	}
}

func (c *coder) content(v *[]checkpoint.ContentDigest) {
	n := len(*v)
	c.number(&n)
	if c.reads {
		*v = slices.Grow((*v)[:0], min(max(n, 0), len(c.b)/8))
	}
	for i := 0; i < n && !c.bad; i++ {
		if c.reads {
			*v = append(*v, checkpoint.ContentDigest{})
		}
		c.bytes((*v)[i].Name[:])
		c.bytes((*v)[i].Value[:])
	}
	if len(*v) == 0 {
		*v = nil
	}
}
