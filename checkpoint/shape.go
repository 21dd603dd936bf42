package checkpoint

import (
	"bytes"
	"context"
	"slices"
)

// Shape is what rows were made leads of: the columns of their file, in any order, what of
// a row is its key as the mapping says it ("" for the row's own data), and the namespace.
type Shape struct {
	Columns        []string
	Key, Namespace string
}

// Kin is the shape of an earlier import, of a file that shares at least half of its columns with another one.
// Of the columns no more is kept than keyed digests.
type Kin struct {
	Key, Namespace string
	Strange        []string // columns of the other file that this one lacked
	Lacking        int      // its columns that the other file lacks
}

// KeptShape is a [Shape] as it is kept: of its columns the digests, in order, one after another.
type KeptShape struct {
	Columns        []byte
	Key, Namespace string
}

// Shape returns a shape as it is kept. One without columns says nothing.
func (d *Digester) Shape(s *Shape) KeptShape {
	digests := make([][]byte, 0, len(s.Columns))
	for _, name := range s.Columns {
		digests = append(digests, d.Column(name))
	}
	slices.SortFunc(digests, bytes.Compare)
	columns := bytes.Join(slices.CompactFunc(digests, bytes.Equal), nil)
	return KeptShape{Columns: columns, Key: s.Key, Namespace: s.Namespace}
}

// Noted reports whether leads were made by this very Shape; else kin are all of files that share at least half of the
// columns of one of the two, so that a renamed column does not hide them.
func Noted(ctx context.Context, s Store, shape Shape) (known bool, kin []Kin, err error) {
	if len(shape.Columns) == 0 {
		return false, nil, nil
	}
	all, err := valuesOf[KeptShape](ctx, s, shapeNote)
	own := s.Digests().Shape(&shape)
	for _, other := range all {
		strange, lacking := beyond(own.Columns, other.Columns), beyond(other.Columns, own.Columns)
		shared, fewest := len(own.Columns)/ColumnSize-strange, min(len(own.Columns), len(other.Columns))/ColumnSize
		switch {
		case strange+lacking == 0 && other.Key == own.Key && other.Namespace == own.Namespace:
			return true, nil, nil
		case 2*shared >= fewest:
			kin = append(kin, Kin{
				Key: other.Key, Namespace: other.Namespace,
				Strange: s.Digests().strange(&shape, other.Columns), Lacking: lacking,
			})
		}
	}
	return false, kin, err
}

// OnlyOf reports whether all leads of the namespace of these shapes that were made of files were made of such files.
func OnlyOf(ctx context.Context, s Store, shapes []Shape) (bool, error) {
	all, err := valuesOf[KeptShape](ctx, s, shapeNote)
	for _, noted := range all {
		same := func(of Shape) bool {
			own := s.Digests().Shape(&of)
			return own.Namespace != noted.Namespace || own.Key == noted.Key && bytes.Equal(own.Columns, noted.Columns)
		}
		if !slices.ContainsFunc(shapes, same) {
			return false, err
		}
	}
	return true, err
}

// strange are the columns of a shape whose digests are not among these.
func (d *Digester) strange(s *Shape, digests []byte) (names []string) {
	for _, name := range s.Columns {
		if beyond(d.Column(name), digests) > 0 {
			names = append(names, name)
		}
	}
	return names
}

// beyond is how many digests of some columns the others lack.
func beyond(columns, others []byte) (n int) {
	known := slices.Collect(slices.Chunk(others, ColumnSize)) // in order
	for digest := range slices.Chunk(columns, ColumnSize) {
		if _, found := slices.BinarySearchFunc(known, digest, bytes.Compare); !found {
			n++
		}
	}
	return n
}
