package bolt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strings"

	"leadferry/checkpoint"
	"leadferry/internal/rowkey"
)

// A key whose fold is another one has a record in the index of folds from the moment it is
// known: the fold, or a hash of it where it is long, and how the key differs from it. Whoever
// looks for a fold knows it, so that this is enough to find the key. Of a forgotten key no
// more is kept than a keyed hash of its fold.
func foldKey(d *checkpoint.Digester, key string) []byte {
	folded := rowkey.Fold(key)
	if folded == key || folded == "" {
		return nil
	}
	return appendUnfolding(foldPrefix(d, folded), folded, key)
}

const (
	longFold = 24   // bytes; longer ones are hashed
	isHash   = 0x80 // no text that is not so long begins so
)

// foldPrefix is what the records of a fold begin with. That of one fold is not the
// beginning of another's, and two folds do not have the same: 63 bits see to that.
func foldPrefix(d *checkpoint.Digester, folded string) []byte {
	if _, ok := packUUID(folded); ok || len(folded) <= longFold {
		return appendText(nil, folded)
	}
	hash := d.Blocked(folded)[:8:8]
	hash[0] |= isHash
	return hash
}

// How a key differs from its fold.
const (
	anyhow      = iota // the key follows
	someCapital        // bits follow, one a byte
	allCapitals
	someZeros // where, and how many
)

func appendUnfolding(b []byte, folded, key string) []byte {
	if at, zeros := strings.IndexByte(folded, '/')+1, len(key)-len(folded); zeros > 0 && key == folded[:at]+strings.Repeat("0", zeros)+folded[at:] {
		return binary.AppendUvarint(binary.AppendUvarint(append(b, someZeros), uint64(at)), uint64(zeros))
	}
	switch bits, all := capitals(folded, key); {
	case bits == nil:
		return append(append(b, anyhow), key...)
	case all:
		return append(b, allCapitals)
	default:
		return append(append(b, someCapital), bytes.TrimRight(bits, "\x00")...)
	}
}

// capitals are the bits of letters that are small in the fold and not in the key, and
// whether those are all; nil where the key differs in something else.
func capitals(folded, key string) (bits []byte, all bool) {
	if len(folded) != len(key) {
		return nil, false
	}
	bits, all = make([]byte, (len(key)+7)/8), true
	for i := range len(key) {
		switch {
		case key[i] == folded[i]:
			all = all && !isSmall(folded[i])
		case isSmall(folded[i]) && key[i] == folded[i]-'a'+'A':
			bits[i/8] |= 1 << (i % 8)
		default:
			return nil, false
		}
	}
	return bits, all
}

func isSmall(c byte) bool { return 'a' <= c && c <= 'z' }

// unfolded is the key that a record of the fold is of; what follows its prefix is how.
func unfolded(folded string, how []byte) string {
	f := reader{b: how}
	switch f.byte() {
	case someCapital, allCapitals:
		key := []byte(folded)
		for i, c := range key {
			if set := i/8 < len(f.b) && f.b[i/8]>>(i%8)&1 == 1; isSmall(c) && (set || how[0] == allCapitals) {
				key[i] = c - 'a' + 'A'
			}
		}
		return string(key)
	case someZeros:
		at, zeros := f.uint(), f.uint()
		if at > uint64(len(folded)) || zeros > checkpoint.MaxKey {
			return ""
		}
		return folded[:at] + strings.Repeat("0", int(zeros)) + folded[at:]
	}
	return string(f.b)
}

// forgottenFold is the record of a forgotten key: no fold is empty, so that none begins so.
func forgottenFold(folded, key []byte) []byte {
	return append(append([]byte{0}, folded...), key...)
}

// move counts a key from one state to another, and keeps the index of folds in step.
func (w *writing) move(key string, from, to checkpoint.State) error {
	w.tally.move(from, to)
	was, is := from != checkpoint.Unknown && from != checkpoint.Forgotten, to != checkpoint.Unknown && to != checkpoint.Forgotten
	if was == is {
		return nil
	}
	record := foldKey(w.digests, key)
	switch {
	case record == nil:
		return nil
	case was:
		return w.folds.Delete(record)
	case w.batch != nil:
		w.batch.folds = append(w.batch.folds, indexRecord{key: record})
		return nil
	}
	return w.folds.Put(record, nil)
}

// indexBatch is where index records gather while many entries are written at once, for bbolt
// likes them in order.
type indexBatch struct{ leads, links, folds []indexRecord }

type indexRecord struct{ key, value []byte }

// alike looks for a key that this one looks like. One that has a lead, or may have one,
// comes before one that was forgotten.
func (f *finder) alike(key string, found *checkpoint.Likeness) error {
	*found = checkpoint.Likeness{}
	folded := rowkey.Fold(key)
	if folded == "" {
		return nil
	}
	if folded != key {
		if err := f.resembles(folded, found); err != nil {
			return err
		}
	}
	if f.folded {
		prefix := foldPrefix(f.d.digests, folded)
		for k, _ := f.folds.Seek(prefix); found.State == checkpoint.Unknown && bytes.HasPrefix(k, prefix); k, _ = f.folds.Next() {
			if other := unfolded(folded, k[len(prefix):]); other != key {
				if err := f.resembles(other, found); err != nil {
					return err
				}
			}
		}
	}
	if raw, slash := strings.CutPrefix(key, "/"); slash && found.State == checkpoint.Unknown {
		// A list that a person wrote has keys as the file does.
		if err := f.resembles(raw, found); err != nil {
			return err
		}
		if found.File != "" { // a row of the namespace was sent by it
			*found = checkpoint.Likeness{}
		}
	}
	if found.State == checkpoint.Unknown && f.forgotten && f.wasForgotten(key, folded) {
		found.State = checkpoint.Forgotten
	}
	return nil
}

// resembles takes a key that looks alike, if it has a lead or may have one.
func (f *finder) resembles(key string, found *checkpoint.Likeness) error {
	record := f.record(key)
	if record == nil {
		return nil
	}
	var e checkpoint.Entry
	if _, err := f.d.words.decode(key, record, &e); err != nil {
		return err
	}
	if e.State.HasLead() || e.State == checkpoint.InDoubt {
		*found = checkpoint.Likeness{State: e.State, File: e.File, Line: e.Line}
	}
	return nil
}

// wasForgotten reports whether a key that looks like this one was forgotten.
func (f *finder) wasForgotten(key, folded string) bool {
	hash := f.d.digests.Blocked(folded)
	if folded != key && find(f.blocked, string(hash)) != nil {
		return true
	}
	prefix := forgottenFold(hash, nil)
	k, _ := f.folds.Seek(prefix)
	return bytes.HasPrefix(k, prefix)
}

// block leaves the keyed hash of a key that is forgotten, and that of its fold.
func (w *writing) block(key string) error {
	hash, value := w.digests.Blocked(key), appendTime(nil, w.now)
	if folded := rowkey.Fold(key); folded != key && folded != "" {
		hashed := w.digests.Blocked(folded)
		value = append(value, hashed...)
		if err := w.folds.Put(forgottenFold(hashed, hash), nil); err != nil {
			return err
		}
	}
	return w.blocked.Put(hash, seal(value, 0, hash))
}

// unblock removes both again.
func (w *writing) unblock(key string) error {
	hash := w.digests.Blocked(key)
	record := forgottenFold(w.digests.Blocked(rowkey.Fold(key)), hash)
	return errors.Join(w.blocked.Delete(hash), w.folds.Delete(record))
}

// decodeBlock reads the record of a forgotten key; folded is the hash of its fold, or nil.
func decodeBlock(key, record []byte) (folded []byte, err error) {
	f, err := unseal(key, record)
	if err != nil || len(key) != len(checkpoint.Digest{}) {
		return nil, errRecord
	}
	if at := f.time(); at.IsZero() {
		return nil, errRecord
	}
	if len(f.b) > 0 {
		folded = f.next(uint64(len(checkpoint.Digest{})))
	}
	return folded, f.done()
}
