package postgres

import (
	"encoding/binary"

	"github.com/jackc/pgx/v5/pgtype"
)

// array is a parameter that is a list, as it is built up in the binary format: hundreds of
// values go with each commit, and to describe each by itself would cost more than to send it.
type array struct {
	b []byte
	n uint32
}

// newArray begins one of values of a type.
func newArray(oid uint32) array {
	b := binary.BigEndian.AppendUint32(make([]byte, 0, 1024), 1) // one dimension
	b = binary.BigEndian.AppendUint32(b, 0)                      // no NULL
	b = binary.BigEndian.AppendUint32(b, oid)
	b = binary.BigEndian.AppendUint32(b, 0) // how many, see param
	return array{b: binary.BigEndian.AppendUint32(b, 1)}
}

func (a *array) text(s string) {
	a.n++
	a.b = append(binary.BigEndian.AppendUint32(a.b, uint32(len(s))), s...)
}

func (a *array) bytes(s []byte) {
	a.n++
	a.b = append(binary.BigEndian.AppendUint32(a.b, uint32(len(s))), s...)
}

func (a *array) int8(v int64) {
	a.n++
	a.b = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint32(a.b, 8), uint64(v))
}

func (a *array) int4(v int) {
	a.n++
	a.b = binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(a.b, 4), uint32(int32(v)))
}

func (a *array) int2(v int) {
	a.n++
	a.b = binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint32(a.b, 2), uint16(int16(v)))
}

func (a *array) bool(v bool) {
	a.n++
	a.b = binary.BigEndian.AppendUint32(a.b, 1)
	if v {
		a.b = append(a.b, 1)
	} else {
		a.b = append(a.b, 0)
	}
}

// param is the list as it is sent.
func (a *array) param() []byte {
	binary.BigEndian.PutUint32(a.b[12:], a.n)
	if a.n == 0 { // an empty list has no dimension
		binary.BigEndian.PutUint32(a.b, 0)
		return a.b[:12]
	}
	return a.b
}

// reset empties it, to be used again.
func (a *array) reset() {
	a.n, a.b = 0, a.b[:20]
	binary.BigEndian.PutUint32(a.b, 1)
}

func byteStrings[T ~string | ~[]byte](list []T) []byte {
	a := newArray(pgtype.ByteaOID)
	for _, s := range list {
		a.bytes([]byte(s))
	}
	return a.param()
}

func int8Param(v int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(v)) }

func int4Param(v int32) []byte { return binary.BigEndian.AppendUint32(nil, uint32(v)) }
