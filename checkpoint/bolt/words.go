package bolt

import (
	"encoding/binary"
	"slices"
	"sync/atomic"

	"go.etcd.io/bbolt"

	"leadferry/checkpoint"
)

const (
	maxWords = 1 << 16 // more stand in the entries themselves
	maxWord  = 128     // bytes
	maxNames = 256     // of one content that are remembered
)

// words gives texts that recur in many entries (runs, organizations, locations,
// input files, digests of content keys) numbers from 1, in the order in which
// they come first. They make entries small and cheap to read. Only the writer
// adds; everybody reads. One that nothing uses any more is forgotten: its number stays
// empty.
type words struct {
	texts   atomic.Pointer[[]string] // grows at its end, and loses texts in a copy
	numbers map[string]uint64
	stored  int // how many of texts are in the file
	names   []named
}

// named is the number of the name that stood at this place of the last content: rows of
// a file have the same names in the same order.
type named struct {
	name   [4]byte
	number uint64
}

func newWords() *words {
	w := &words{numbers: make(map[string]uint64)}
	w.texts.Store(new([]string))
	return w
}

// number returns the number of s, or 0 when s has to stand where it is used.
func (w *words) number(s string) uint64 {
	if n, ok := w.numbers[s]; ok || len(s) > maxWord || len(*w.texts.Load()) >= maxWords {
		return n
	}
	return w.add(s)
}

func (w *words) add(s string) uint64 {
	texts := append(*w.texts.Load(), s)
	w.texts.Store(&texts)
	w.numbers[s] = uint64(len(texts))
	return uint64(len(texts))
}

// store writes what was added since the last commit into its bucket.
func (w *words) store(b *bbolt.Bucket) error {
	texts := *w.texts.Load()
	for ; w.stored < len(texts); w.stored++ {
		key := wordKey(uint64(w.stored) + 1)
		if err := b.Put(key, seal(appendText(nil, texts[w.stored]), 0, key)); err != nil {
			return err
		}
	}
	return nil
}

// forget empties the numbers of texts that nothing uses.
func (w *words) forget(unused map[string]bool, b *bbolt.Bucket) error {
	texts := slices.Clone(*w.texts.Load())
	for s := range unused {
		n := w.numbers[s]
		delete(w.numbers, s)
		texts[n-1] = ""
		if key := wordKey(n); n <= uint64(w.stored) {
			if err := b.Put(key, seal(appendText(nil, ""), 0, key)); err != nil {
				return err
			}
		}
	}
	w.texts.Store(&texts)
	w.names = nil // they know numbers
	return nil
}

// each calls f with every text that the record of an entry uses.
func (w *words) each(e *checkpoint.Entry, t *tail, f func(string)) error {
	for _, s := range []string{e.Organization, e.Location, e.Locator, e.File, e.Run, e.Reason, e.Unsettled, e.Seen.Organization} {
		f(s)
	}
	for i := range e.Content {
		f(string(e.Content[i].Name[:]))
	}
	past, err := w.events(t.past)
	for _, ev := range past {
		f(ev.Run)
	}
	if err != nil || len(t.prior) == 0 {
		return err
	}
	var before checkpoint.Entry
	earlier, err := w.decode(e.Key, t.prior, &before)
	if err != nil {
		return err
	}
	return w.each(&before, &earlier, f)
}

// load reads the bucket and refuses gaps and repeated words.
func (w *words) load(b *bbolt.Bucket) error {
	err := b.ForEach(func(k, v []byte) error {
		f, err := unseal(k, v)
		if err != nil {
			return err
		}
		s := f.text()
		if f.done() != nil || s != "" && w.numbers[s] != 0 || string(wordKey(w.add(s))) != string(k) {
			return errRecord
		}
		return nil
	})
	w.stored = len(*w.texts.Load())
	return err
}

func wordKey(number uint64) []byte { return binary.BigEndian.AppendUint32(nil, uint32(number)) }

// appendWord appends 0 for no text, 1 and the text, or its number plus one.
func (w *words) appendWord(b []byte, s string) []byte {
	if s == "" {
		return append(b, 0)
	}
	if n := w.number(s); n > 0 {
		return binary.AppendUvarint(b, n+1)
	}
	return appendText(append(b, 1), s)
}

// appendName is appendWord for the name at this place of a content.
func (w *words) appendName(b []byte, at int, name [4]byte) []byte {
	if at < len(w.names) && w.names[at].name == name {
		return binary.AppendUvarint(b, w.names[at].number+1)
	}
	text := string(name[:])
	if n := w.number(text); n > 0 && at <= len(w.names) && at < maxNames {
		w.names = append(w.names[:at], named{name, n})
	}
	return w.appendWord(b, text)
}

// word reads what appendWord wrote; texts is what was loaded from words.
func (r *reader) word(texts []string) string {
	n := r.uint()
	switch {
	case n == 0:
		return ""
	case n == 1:
		return r.text()
	case n-2 < uint64(len(texts)):
		return texts[n-2]
	}
	r.bad = true
	return ""
}

func wordNumber(key []byte) uint32 { return binary.BigEndian.Uint32(key) }
