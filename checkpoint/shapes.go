package checkpoint

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Shape describes files that leads are made of: their columns in any order, the namespace, and the key as the mapping
// says it. If the key names no column, the whole row is the key, and Key says how the file is read.
type Shape struct {
	Columns        []string
	Key, Namespace string
	Path           string // of a file of this shape, for people
	Rejects        bool   // the file holds rows that a run gave back: they have the columns of its input, or fewer
}

func isOwnData(key string) bool { return !strings.Contains(key, "{") }

// noted returns a shape as a ledger notes it: key and namespace as text, columns only as keyed digests.
func (d *Digester) noted(s *Shape) Kind {
	column := func(name string) string { return hex.EncodeToString(d.keyed(make([]byte, 8), ofColumn, []byte(name))) }
	return Kind{Key: s.Key, Namespace: s.Namespace, Columns: hashed(s.Columns, column)}
}

// Noted reports whether leads were made of files of exactly this shape. If not, kin are the kinds of earlier files that
// share most columns with it, and at least half of the columns of one of the two: a renamed column does not hide them.
func Noted(ctx context.Context, s Store, shape Shape) (known bool, kin []Kind, err error) {
	all, err := valuesOf[Kind](ctx, s, shapeNote)
	own, most := s.Digests().noted(&shape), 0
	for _, other := range all {
		switch shared := own.shared(&other); {
		case own.equals(&other):
			return true, nil, nil
		case !own.isAkin(&other) || shared < most:
		case shared > most:
			kin, most = []Kind{other}, shared
		default:
			kin = append(kin, other)
		}
	}
	return false, kin, err
}

// OnlyOf reports whether, in the namespace of these shapes, leads were made only of files of these shapes.
func OnlyOf(ctx context.Context, s Store, shapes []Shape) (bool, error) {
	all, err := valuesOf[Kind](ctx, s, shapeNote)
	for _, noted := range all {
		same := func(of Shape) bool {
			own := s.Digests().noted(&of)
			return own.Namespace != noted.Namespace || own.equals(&noted)
		}
		if !slices.ContainsFunc(shapes, same) {
			return false, err
		}
	}
	return true, err
}

// NewShapes reports for each shape whether the ledger has made no leads of such files yet. A file with nearly the
// columns of an earlier import but another key is refused: each row would make another lead. The error has the answer.
func NewShapes(ctx context.Context, s Store, shapes []Shape, answer string) ([]bool, error) {
	fresh, kinds := make([]bool, len(shapes)), Map(shapes, func(of Shape) Kind { return s.Digests().noted(&of) })
	var refused []error
	var ids []string // of the refused shapes
	for i := range shapes {
		known, kin, err := Noted(ctx, s, shapes[i])
		if err != nil {
			return nil, err
		}
		fresh[i] = !known && !(shapes[i].Rejects && len(kin) > 0) // rejects prove no format
		for j := range shapes[:i] {                               // files of one command
			k := &kinds[j]
			if !known && !shapes[j].Rejects && k.Key != kinds[i].Key && k.isAkin(&kinds[i]) {
				kin = append(kin, *k)
			}
		}
		if err := shapes[i].refuse(kin); err != nil {
			kind := KindOf(&shapes[i])
			refused, ids = append(refused, err), append(ids, kind.ID())
		}
	}
	switch wanted := AnswerID(ids); {
	case len(refused) == 0 && answer != "":
		return nil, fmt.Errorf("--new-key=%s answers nothing: files with these columns were already imported with "+
			"this key, or never\nhint: leave it out", answer)
	case len(refused) > 0 && answer != wanted:
		return nil, fmt.Errorf("%w; if new leads are meant: --new-key=%s", errors.Join(refused...), wanted)
	}
	return fresh, nil
}

// refuse refuses a shape because of earlier imports with nearly its columns, or returns nil.
func (s *Shape) refuse(kin []Kind) error {
	var other *Kind
	for i := range kin {
		switch k := &kin[i]; {
		case k.Namespace == s.Namespace && k.Key == s.Key:
			if !isOwnData(s.Key) || s.Rejects {
				return nil
			}
			return fmt.Errorf("%s: a file with nearly these columns was imported before, and the whole row is the "+
				"key: every row would make a new lead\n"+
				"hint: name the column that makes a row the same row on the next run, as in key: \"{id}\", or restore "+
				"the columns", s.Path)
		case k.Namespace == s.Namespace && isOwnData(k.Key) && isOwnData(s.Key) && s.Rejects:
			// these keys differ only in how the file was read, and rejects are always UTF-8
		default:
			other = k
		}
	}
	if other == nil {
		return nil
	}
	return fmt.Errorf("%s: a file with nearly these columns was imported with %s. The mapping now says %s: every row "+
		"would make a new lead\n"+
		"hint: restore key, namespace and source of the mapping, and the file's format", s.Path,
		keyOf(other.Key, other.Namespace), keyOf(s.Key, s.Namespace))
}

func keyOf(key, namespace string) string {
	text := "key " + key
	if isOwnData(key) {
		text = strings.TrimSuffix("the whole row as key ("+key+")", " ()")
	}
	if namespace != "" {
		text += " in namespace " + namespace
	}
	return text
}
