package bolt

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"leadferry/checkpoint"
	"leadferry/internal/rowkey"
)

// Every record is its fields followed by four bytes of CRC over key and fields. So a changed value is noticed, and also
// a value under a wrong key. A record that cannot be read is errRecord.

var (
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
	errRecord  = fmt.Errorf("%w: a record fails its checksum", checkpoint.ErrDamaged)
)

// seal appends the checksum of key and fields to fields.
func seal(fields, key []byte) []byte {
	return binary.LittleEndian.AppendUint32(fields, checksum(key, fields))
}

// unseal returns the record's fields, or errRecord.
func unseal(key, record []byte) (fields []byte, err error) {
	n := len(record) - crc32.Size
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

func encodeKept(k *checkpoint.Kept) []byte { return seal(checkpoint.EncodeKept(k), []byte(k.Key)) }

// decodeKept decodes a record (nil: none), with its history, into room (nil: a new one). An empty record is damaged.
func decodeKept(key string, record []byte, room *checkpoint.Kept) (*checkpoint.Kept, error) {
	if record == nil {
		return nil, nil
	}
	fields, err := unseal([]byte(key), record)
	if err != nil {
		return nil, err
	}
	if room == nil {
		room = new(checkpoint.Kept)
	}
	return checkpoint.DecodeKept(key, fields, room)
}

// hasIndex says whether an ID is kept in an index. Longer ones are not: the length of bbolt's keys is limited.
func hasIndex(id string) bool { return id != "" && len(id) <= rowkey.Longest }

// leadKey returns the key of a lead ID in the index of leads, or nil.
func leadKey(id string) []byte {
	if !hasIndex(id) {
		return nil
	}
	return checkpoint.AppendText(nil, id)
}

// linksOf returns the records of a key in the index of ExternalIDs.
func linksOf(key string, k *checkpoint.KeptKey) (links []string) {
	for _, id := range k.Links() {
		if hasIndex(id) && id != key {
			links = append(links, string(checkpoint.AppendText(nil, id))+key)
		}
	}
	return links
}

// foldsOf returns the record of a known key in the index of folds, or none. A fold may be ten times as long as its key.
func foldsOf(key string, k *checkpoint.KeptKey) []string {
	folded := rowkey.Fold(key)
	if k.Shown() == nil || folded == key || folded == "" {
		return nil
	}
	return []string{string(checkpoint.AppendText(nil, folded)) + key}
}

// foldsOfBlock returns the record of a forgotten key in the same index, or none. It has only a keyed hash of the fold.
func foldsOfBlock(b *checkpoint.KeptBlock) []string {
	if len(b.Fold) == 0 {
		return nil
	}
	return []string{string(forgottenFold(b.Fold)) + string(b.Hash)}
}

// forgottenFold returns the prefix of the records of forgotten keys with this fold. No other record begins with 0.
func forgottenFold(folded []byte) []byte { return append([]byte{0}, folded...) }

func decodeBlock(hash, record []byte) (b checkpoint.KeptBlock, err error) {
	text, err := unseal(hash, record)
	if err == nil {
		err = checkpoint.Decode(text, &b)
	}
	return b, err
}
