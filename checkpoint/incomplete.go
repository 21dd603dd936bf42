package checkpoint

import (
	"encoding/binary"

	bolt "go.etcd.io/bbolt"
)

// lackingKey stands in the file while leads are missing from it.
var lackingKey = []byte("incomplete")

// lacking says whether leads are missing that the file, or what it was made from, has known,
// so that a key that is not known may have one.
type lacking struct {
	some  bool
	leads uint64 // how many are known to be missing; 0: nobody can count them
}

func (l lacking) encode() []byte {
	return seal(binary.AppendUvarint(nil, l.leads), 0, lackingKey)
}

func decodeLacking(record []byte) (l lacking, err error) {
	if record == nil {
		return l, nil
	}
	f, err := unseal(lackingKey, record)
	if err != nil {
		return l, err
	}
	l = lacking{some: true, leads: f.uint()}
	return l, f.done()
}

func (l *lacking) load(meta *bolt.Bucket) (err error) {
	*l, err = decodeLacking(meta.Get(lackingKey))
	return err
}

// Incomplete says whether leads are missing that were known once, and how many at least; 0
// where nobody can count them. A key that is not known may be one of them then.
func (d *DB) Incomplete() (some bool, leads int) { return d.lacks.some, int(d.lacks.leads) }
