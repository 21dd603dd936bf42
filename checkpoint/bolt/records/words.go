package records

import (
	"encoding/binary"
	"slices"
	"sync/atomic"

	"go.etcd.io/bbolt"

	"leadferry/checkpoint"
)

const (
	MaxWords = 1 << 16 // more are in the entries themselves
	maxWord  = 128     // bytes
)

// Words gives texts that recur in many entries (runs, organizations, locations,
// input files, digests of content keys) numbers from 1, in the order in which
// they come first. They make entries small and cheap to read. Only the writer
// adds; everybody reads. One that nothing uses any more is forgotten: its number stays
// empty.
type Words struct {
	texts   atomic.Pointer[[]string] // grows at its end, and loses texts in a copy
	numbers map[string]uint64
	stored  int // how many of texts are in the file
}

// NewWords returns none.
func NewWords() *Words {
	w := &Words{numbers: make(map[string]uint64)}
	w.texts.Store(new([]string))
	return w
}

// WordsOf are the words that are in texts, by number from 1; they change with it.
func WordsOf(texts []string) *Words {
	w := NewWords()
	w.texts.Store(&texts)
	return w
}

// All are those that have a number.
func (w *Words) All() map[string]bool {
	all := make(map[string]bool, len(w.numbers))
	for s := range w.numbers {
		all[s] = true
	}
	return all
}

// Count is how many are in the file, forgotten ones included.
func (w *Words) Count() int { return w.stored }

// number returns the number of s, or 0 when s has to stand where it is used.
func (w *Words) number(s string) uint64 {
	if n, ok := w.numbers[s]; ok || len(s) > maxWord || len(*w.texts.Load()) >= MaxWords {
		return n
	}
	return w.add(s)
}

func (w *Words) add(s string) uint64 {
	texts := append(*w.texts.Load(), s)
	w.texts.Store(&texts)
	w.numbers[s] = uint64(len(texts))
	return uint64(len(texts))
}

// Store writes what was added since the last commit into its bucket.
func (w *Words) Store(b *bbolt.Bucket) error {
	texts := *w.texts.Load()
	for ; w.stored < len(texts); w.stored++ {
		key := wordKey(uint64(w.stored) + 1)
		if err := b.Put(key, Seal(AppendText(nil, texts[w.stored]), 0, key)); err != nil {
			return err
		}
	}
	return nil
}

// Forget empties the numbers of texts that nothing uses.
func (w *Words) Forget(unused map[string]bool, b *bbolt.Bucket) error {
	texts := slices.Clone(*w.texts.Load())
	for s := range unused {
		n := w.numbers[s]
		delete(w.numbers, s)
		texts[n-1] = ""
		if key := wordKey(n); n <= uint64(w.stored) {
			if err := b.Put(key, Seal(AppendText(nil, ""), 0, key)); err != nil {
				return err
			}
		}
	}
	w.texts.Store(&texts)
	return nil
}

// EachText calls f with every text that the record of k uses; nil has none.
func EachText(k *checkpoint.Kept, f func(string)) {
	if k != nil {
		c := coder{out: []byte{}, writes: true, word: func(b []byte, s string) []byte { f(s); return b }}
		c.kept(k)
	}
}

// Load reads the bucket and refuses gaps and repeated words.
func (w *Words) Load(b *bbolt.Bucket) error {
	err := b.ForEach(func(k, v []byte) error {
		number, s, err := DecodeWord(k, v)
		if err == nil && (s != "" && w.numbers[s] != 0 || w.add(s) != uint64(number)) {
			err = ErrRecord
		}
		return err
	})
	w.stored = len(*w.texts.Load())
	return err
}

func wordKey(number uint64) []byte { return binary.BigEndian.AppendUint32(nil, uint32(number)) }

// appendWord appends 0 for no text, 1 and the text, or its number plus one.
func (w *Words) appendWord(b []byte, s string) []byte {
	if s == "" {
		return append(b, 0)
	}
	if n := w.number(s); n > 0 {
		return binary.AppendUvarint(b, n+1)
	}
	return AppendText(append(b, 1), s)
}

// word reads what appendWord wrote; texts is what was loaded from words.
func (r *Reader) word(texts []string) string {
	n := r.Uint()
	switch {
	case n == 0:
		return ""
	case n == 1:
		return r.Text()
	case n-2 < uint64(len(texts)):
		return texts[n-2]
	}
	r.Bad = true
	return ""
}

// DecodeWord reads a record of the bucket of words.
func DecodeWord(key, record []byte) (number int, text string, err error) {
	f, err := Unseal(key, record)
	if err != nil || len(key) != 4 {
		return 0, "", ErrRecord
	}
	text, number = f.Text(), int(binary.BigEndian.Uint32(key))
	if number == 0 || number > MaxWords {
		return 0, "", ErrRecord
	}
	return number, text, f.Done()
}
