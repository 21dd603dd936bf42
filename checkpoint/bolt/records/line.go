package records

import "encoding/binary"

// lineKind is what a line begins with: no other record does, so that a damaged file's lines
// are taken for nothing else.
const lineKind = 0xff

// NewLine is a line that holds nothing yet.
func NewLine() []byte { return []byte{lineKind} }

// AppendItem adds to a line a key and its record, each with its length in front.
func AppendItem(line []byte, key string, value []byte) []byte {
	line = append(binary.AppendUvarint(line, uint64(len(key))), key...)
	return append(binary.AppendUvarint(line, uint64(len(value))), value...)
}

func (r *Reader) item() (key, value []byte) { return r.Next(r.Uint()), r.Next(r.Uint()) }

// OpenLine checks a line and returns its number and what it holds.
func OpenLine(k, line []byte) (number uint64, items Reader, err error) {
	items, err = Unseal(k, line)
	if err != nil || len(k) != 8 || items.Byte() != lineKind {
		return 0, items, ErrRecord
	}
	return binary.BigEndian.Uint64(k), items, nil
}

// Each calls f with the items that are left.
func (r Reader) Each(f func(key, value []byte) error) error {
	for len(r.b) > 0 {
		key, value := r.item()
		if r.Bad || len(key) == 0 {
			return ErrRecord
		}
		if err := f(key, value); err != nil {
			return err
		}
	}
	return nil
}

// ItemOf is what a line holds under a key, unchecked, or nil; of a damaged one it is nonsense.
func ItemOf(line []byte, key string) []byte {
	f := Reader{b: line[:max(len(line)-SealSize, 0)]}
	f.Byte()
	for len(f.b) > 0 {
		if other, value := f.item(); string(other) == key {
			return value
		}
	}
	if f.Bad {
		return []byte{0}
	}
	return nil
}
