// Package records knows how each record of a checkpoint's entries is written and read: its fields
// and checksum ([Reader], [Seal]), the entry or intent with its events ([AppendKept],
// [Kept]), and what the indexes hold of it ([LeadKey], [Links], [FoldKey]). Which bucket a record stands
// in, and when it is written, is not known here. What cannot be read is [ErrRecord].
package records

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

// Every record is its fields followed by four bytes of CRC over key and fields,
// so that a value under a wrong key is noticed as well as a changed one.

var (
	castagnoli = crc32.MakeTable(crc32.Castagnoli)

	// ErrRecord is [checkpoint.ErrDamaged] of a record that is not whole.
	ErrRecord = fmt.Errorf("%w: a record fails its checksum", checkpoint.ErrDamaged)
)

func checksum(key, fields []byte) uint32 {
	return crc32.Update(crc32.Checksum(key, castagnoli), castagnoli, fields)
}

// SealSize is how many bytes Seal appends.
const SealSize = 4

// Seal appends the checksum of key and b[from:] to b.
func Seal(b []byte, from int, key []byte) []byte {
	return binary.LittleEndian.AppendUint32(b, checksum(key, b[from:]))
}

// Unseal returns a reader of the record's fields, or ErrRecord.
func Unseal(key, record []byte) (Reader, error) {
	n := len(record) - SealSize
	if n < 0 || binary.LittleEndian.Uint32(record[n:]) != checksum(key, record[:n]) {
		return Reader{}, ErrRecord
	}
	return Reader{b: record[:n]}, nil
}

// AppendText appends s with its length in front: 0 for none, 1 for a UUID in lower case that follows in 16 bytes, else
// the number of bytes plus one. No text is the beginning of another one, so texts can be joined to keys.
func AppendText(b []byte, s string) []byte {
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

// AppendTime keeps milliseconds; the zero time has a form of its own.
func AppendTime(b []byte, t time.Time) []byte {
	if t.IsZero() {
		return append(b, 0)
	}
	return binary.AppendVarint(append(b, 1), t.UnixMilli())
}

const otherStatus = 255

func appendStatus(b []byte, status string) []byte {
	if i := slices.Index(checkpoint.Statuses[:], status); i >= 0 {
		return append(b, byte(i))
	}
	return AppendText(append(b, otherStatus), checkpoint.BoundedStatus(status))
}

// Reader takes fields off a record. A field that is not there sets Bad and reads as zero.
type Reader struct {
	b   []byte
	Bad bool
}

// Next takes n bytes, which are not copied.
func (r *Reader) Next(n uint64) []byte {
	if n > uint64(len(r.b)) {
		r.b, r.Bad = nil, true
		return nil
	}
	out := r.b[:n]
	r.b = r.b[n:]
	return out
}

// Byte takes one byte.
func (r *Reader) Byte() byte {
	if b := r.Next(1); b != nil {
		return b[0]
	}
	return 0
}

// Uint takes a number as [binary.AppendUvarint] wrote it.
func (r *Reader) Uint() uint64 {
	v, n := binary.Uvarint(r.b)
	return taken(r, v, n)
}

// taken is a number of n bytes; none: it is not there.
func taken[T int64 | uint64](r *Reader, v T, n int) T {
	if n <= 0 {
		r.b, r.Bad = nil, true
		return 0
	}
	r.b = r.b[n:]
	return v
}

// Text takes what [AppendText] wrote.
func (r *Reader) Text() string { return r.textLike("") }

// textLike is Text; it returns known where that is the text.
func (r *Reader) textLike(known string) string {
	switch n := r.Uint(); n {
	case 0:
	case 1:
		if id := r.Next(16); id != nil {
			return unpackUUID(id)
		}
	default:
		if text := r.Next(n - 1); string(text) != known {
			return string(text)
		}
		return known
	}
	return ""
}

// Time takes what [AppendTime] wrote, in UTC.
func (r *Reader) Time() time.Time {
	if r.Byte() == 0 {
		return time.Time{}
	}
	v, n := binary.Varint(r.b)
	if v = taken(r, v, n); r.Bad {
		return time.Time{}
	}
	return time.UnixMilli(v).UTC()
}

func (r *Reader) status() string {
	i := r.Byte()
	if i == otherStatus {
		return r.Text()
	}
	if int(i) < len(checkpoint.Statuses) {
		return checkpoint.Statuses[i]
	}
	r.Bad = true
	return ""
}

// Rest is what is left.
func (r *Reader) Rest() []byte { return r.Next(uint64(len(r.b))) }

// Done returns an error unless the fields were all there and nothing is left.
func (r *Reader) Done() error {
	if r.Bad || len(r.b) != 0 {
		return ErrRecord
	}
	return nil
}
