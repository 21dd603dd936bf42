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
	errRecord  = fmt.Errorf("%w: a record fails its checksum", checkpoint.ErrDamaged)
)

const sealSize = 4

// seal appends the checksum of key and fields to fields.
func seal(fields, key []byte) []byte {
	return binary.LittleEndian.AppendUint32(fields, checksum(key, fields))
}

// unseal returns the record's fields, or errRecord.
func unseal(key, record []byte) (fields []byte, err error) {
	n := len(record) - sealSize
	if n < 0 || binary.LittleEndian.Uint32(record[n:]) != checksum(key, record[:n]) {
		return nil, errRecord
	}
	return record[:n], nil
}

func isWhole(key, record []byte) bool {
	_, err := unseal(key, record)
	return err == nil
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
	if rowkey.IsUUID(s) && !strings.ContainsAny(s, "ABCDEF") {
		if id, err := hex.DecodeString(strings.ReplaceAll(s, "-", "")); err == nil {
			return append(append(b, 1), id...)
		}
	}
	b = binary.AppendUvarint(b, uint64(len(s))+1)
	return append(b, s...)
}

func unpackUUID(id []byte) string {
	text := hex.EncodeToString(id)
	return text[:8] + "-" + text[8:12] + "-" + text[12:16] + "-" + text[16:20] + "-" + text[20:]
}

// coder writes fields behind one another, or reads them into what is zero, by one list of calls. A missing field makes
// it bad.
type coder struct {
	b          []byte // what was written, or is left to be read
	reads, bad bool
}

// done returns an error unless the fields that were read were all there and nothing is left.
func (c *coder) done() error {
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
	one := [1]byte{*v}
	c.bytes(one[:])
	*v = one[0]
}

// some writes whether there is something, or reads it.
func (c *coder) some(there bool) bool {
	one := byte(0)
	if there {
		one = 1
	}
	c.byte(&one)
	return one != 0
}

// uint is a number that is not negative.
func (c *coder) uint(v *uint64) {
	if !c.reads {
		c.b = binary.AppendUvarint(c.b, *v)
		return
	}
	value, n := binary.Uvarint(c.b)
	if n <= 0 { // none
		n = len(c.b) + 1
	}
	*v = value
	c.next(uint64(n))
}

func (c *coder) number(v *int) {
	n := uint64(*v)
	c.uint(&n)
	*v = int(n)
}

// time keeps milliseconds, in UTC.
func (c *coder) time(v *time.Time) {
	if !c.some(!v.IsZero()) {
		return
	}
	ms := uint64(v.UnixMilli())
	if c.uint(&ms); c.reads {
		*v = time.UnixMilli(int64(ms)).UTC()
	}
}

func (c *coder) text(v *string) {
	if !c.reads {
		c.b = appendText(c.b, *v)
		return
	}
	var n uint64
	switch c.uint(&n); n {
	case 0: // none
	case 1:
		id := [16]byte{}
		c.bytes(id[:])
		*v = unpackUUID(id[:])
	default:
		*v = string(c.next(n - 1))
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

// status is a byte for each that the specification names, and a text behind the byte 255 for others.
func (c *coder) status(v *string) {
	at := byte(slices.Index(checkpoint.Statuses[:], *v))
	c.byte(&at)
	switch {
	case int(at) < len(checkpoint.Statuses):
		*v = checkpoint.Statuses[at]
	case at == 255:
		*v = checkpoint.BoundedStatus(*v)
		c.text(v)
	default:
		c.bad = true
	}
}

func (c *coder) digest(v *checkpoint.Digest) {
	if c.some(*v != checkpoint.Digest{}) {
		c.bytes(v[:])
	}
}

func (c *coder) content(v *[]checkpoint.ContentDigest) {
	n := len(*v)
	if c.number(&n); c.reads {
		*v = slices.Grow(*v, min(max(n, 0), len(c.b)/8))
	}
	for i := 0; i < n && !c.bad; i++ {
		if c.reads {
			*v = append(*v, checkpoint.ContentDigest{})
		}
		c.bytes((*v)[i].Name[:])
		c.bytes((*v)[i].Value[:])
	}
}
