package checkpoint

import (
	"bytes"
	"slices"
	"sort"

	bolt "go.etcd.io/bbolt"
)

// Shape is what rows were made leads of: the columns of their file, in any order, what of
// a row is its key as the mapping says it ("" for the row's own data), and the namespace.
type Shape struct {
	Columns        []string
	Key, Namespace string
}

// Kin is a shape by which leads were made before, of a file whose columns include those of
// another one or are included in them. Of the columns no more is kept than keyed digests.
type Kin struct {
	Key, Namespace string
	Strange        []string // columns of the other file that this one lacked
	Lacking        int      // its columns that the other file lacks
}

const (
	notePrefix = "note " // of keys in the bucket: nothing else that has a checksum begins so and is so long
	columnSize = 8       // bytes of a column's digest
)

// note is a record of the bucket of notes.
type note struct {
	key, namespace string
	columns        []byte // their digests in order, one after another
}

func (n *note) encode(key []byte) []byte {
	b := appendText(appendText(nil, n.key), n.namespace)
	return seal(append(b, n.columns...), 0, key)
}

func decodeNote(key, record []byte) (n note, err error) {
	f, err := unseal(key, record)
	if err != nil || !bytes.HasPrefix(key, []byte(notePrefix)) || len(key) != len(notePrefix)+len(Digest{}) {
		return n, errRecord
	}
	n = note{key: f.text(), namespace: f.text()}
	n.columns = f.take(uint64(len(f.b)))
	if f.bad || len(n.columns) == 0 || len(n.columns)%columnSize != 0 {
		return n, errRecord
	}
	return n, nil
}

// noteOf is the record of a shape and its key; nil of a shape without columns, which says
// nothing.
func (d *DB) noteOf(s Shape) (key []byte, n note) {
	digests := make([][]byte, 0, len(s.Columns))
	for _, name := range s.Columns {
		digests = append(digests, d.digests.column(name))
	}
	slices.SortFunc(digests, bytes.Compare)
	n = note{key: s.Key, namespace: s.Namespace}
	n.columns = bytes.Join(slices.CompactFunc(digests, bytes.Equal), nil)
	if len(n.columns) == 0 {
		return nil, n
	}
	sum := d.Sum(append(appendText(appendText([]byte(notePrefix), n.key), n.namespace), n.columns...))
	return append([]byte(notePrefix), sum[:]...), n
}

// Note keeps the shape of rows that are about to be made leads, once; it is durable no
// later than claims that come after it.
func (d *DB) Note(s Shape) {
	key, n := d.noteOf(s)
	if key == nil {
		return
	}
	d.submit(op{kind: noteOp, entry: Entry{Key: string(key)}, note: &n})
}

func (l *ledger) putNote(key []byte, n *note) error {
	if l.notes.Get(key) != nil {
		return nil
	}
	l.tally.notes++
	return l.notes.Put(key, n.encode(key))
}

// Noted reports whether leads were made by this very shape; else kin are all of which the
// columns include its own, or are included in them.
func (d *DB) Noted(s Shape) (known bool, kin []Kin, err error) {
	key, own := d.noteOf(s)
	if key == nil {
		return false, nil, nil
	}
	err = d.view("read notes", func(tx *bolt.Tx) error {
		if known = tx.Bucket(inNotes).Get(key) != nil; known {
			return nil
		}
		return tx.Bucket(inNotes).ForEach(func(k, v []byte) error {
			n, err := decodeNote(k, v)
			if err != nil {
				return err
			}
			both := shared(own.columns, n.columns)
			if both < len(n.columns) && both < len(own.columns) {
				return nil
			}
			kin = append(kin, Kin{n.key, n.namespace, d.beyond(s.Columns, n.columns), (len(n.columns) - both) / columnSize})
			return nil
		})
	})
	return known, kin, err
}

// beyond are the names of which the digest is none of columns.
func (d *DB) beyond(names []string, columns []byte) (strange []string) {
	for _, name := range names {
		if !includes(columns, d.digests.column(name)) {
			strange = append(strange, name)
		}
	}
	return strange
}

// shared is how many bytes of digests two shapes have in common.
func shared(a, b []byte) (n int) {
	for ; len(a) > 0; a = a[columnSize:] {
		if includes(b, a[:columnSize]) {
			n += columnSize
		}
	}
	return n
}

func includes(columns, digest []byte) bool {
	count := len(columns) / columnSize
	at := sort.Search(count, func(i int) bool { return bytes.Compare(columns[i*columnSize:(i+1)*columnSize], digest) >= 0 })
	return at < count && bytes.Equal(columns[at*columnSize:(at+1)*columnSize], digest)
}
