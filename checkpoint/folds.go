package checkpoint

import (
	"bytes"
	"errors"

	"leadferry/internal/rowkey"
)

// Likeness is a key that looks like the one that was asked for and has a lead, or may have
// one. File and Line say where its row was last sent from; a lead that was adopted, and a
// key that was forgotten, have none.
type Likeness struct {
	State State
	File  string
	Line  int
}

// A key whose fold is another one has a record in the index of folds from the moment it is
// known. Of a forgotten key no more is kept than a keyed hash of its fold.
func foldKey(key string) []byte {
	folded := rowkey.Fold(key)
	if folded == key || folded == "" {
		return nil
	}
	return append(appendText(nil, folded), key...)
}

// forgottenFold is the record of a forgotten key: no fold is empty, so that none begins so.
func forgottenFold(folded, key []byte) []byte {
	return append(append([]byte{0}, folded...), key...)
}

// move counts a key from one state to another, and keeps the index of folds in step.
func (l *ledger) move(key string, from, to State) error {
	l.tally.move(from, to)
	was, is := from != Unknown && from != Forgotten, to != Unknown && to != Forgotten
	if was == is {
		return nil
	}
	record := foldKey(key)
	switch {
	case record == nil:
		return nil
	case was:
		return l.folds.Delete(record)
	case l.pile != nil:
		l.pile.folds = append(l.pile.folds, record)
		return nil
	}
	return l.folds.Put(record, nil)
}

// pile is where index records gather while many entries are written at once, for bbolt
// likes them in order.
type pile struct{ links, folds [][]byte }

// alike looks for the key that this one looks like. One that has a lead comes before one
// in doubt, and both before one that was forgotten.
func (f *finder) alike(key string, found *Likeness) error {
	*found = Likeness{}
	folded := rowkey.Fold(key)
	if folded == "" {
		return nil
	}
	if folded != key {
		if err := f.resembles(folded, found); err != nil {
			return err
		}
	}
	prefix := appendText(nil, folded)
	for k, _ := f.folds.Seek(prefix); found.State == Unknown && bytes.HasPrefix(k, prefix); k, _ = f.folds.Next() {
		if other := string(k[len(prefix):]); other != key {
			if err := f.resembles(other, found); err != nil {
				return err
			}
		}
	}
	if found.State == Unknown && f.forgotten && f.wasForgotten(key, folded) {
		found.State = Forgotten
	}
	return nil
}

// resembles takes a key that looks alike, if it has a lead or may have one.
func (f *finder) resembles(key string, found *Likeness) error {
	var record []byte
	if f.doubts {
		record = find(f.intents, key)
	}
	if record == nil {
		record = f.entry(key)
	}
	if record == nil {
		return nil
	}
	var e Entry
	if _, err := f.d.words.decode(key, record, &e); err != nil {
		return err
	}
	if e.State.HasLead() || e.State == InDoubt {
		*found = Likeness{e.State, e.File, e.Line}
	}
	return nil
}

// wasForgotten reports whether a key that looks like this one was forgotten.
func (f *finder) wasForgotten(key, folded string) bool {
	hash := f.d.digests.block(folded)
	if folded != key && find(f.blocked, string(hash)) != nil {
		return true
	}
	prefix := forgottenFold(hash, nil)
	k, _ := f.folds.Seek(prefix)
	return bytes.HasPrefix(k, prefix)
}

// block leaves the keyed hash of a key that is forgotten, and that of its fold.
func (l *ledger) block(key string) error {
	hash, value := l.digests.block(key), appendTime(nil, l.now)
	if folded := rowkey.Fold(key); folded != key && folded != "" {
		hashed := l.digests.block(folded)
		value = append(value, hashed...)
		if err := l.folds.Put(forgottenFold(hashed, hash), nil); err != nil {
			return err
		}
	}
	return l.blocked.Put(hash, seal(value, 0, hash))
}

// unblock removes both again.
func (l *ledger) unblock(key string) error {
	hash := l.digests.block(key)
	record := forgottenFold(l.digests.block(rowkey.Fold(key)), hash)
	return errors.Join(l.blocked.Delete(hash), l.folds.Delete(record))
}

// decodeBlock reads the record of a forgotten key; folded is the hash of its fold, or nil.
func decodeBlock(key, record []byte) (folded []byte, err error) {
	f, err := unseal(key, record)
	if err != nil || len(key) != len(Digest{}) {
		return nil, errRecord
	}
	if at := f.time(); at.IsZero() {
		return nil, errRecord
	}
	if len(f.b) > 0 {
		folded = f.take(uint64(len(Digest{})))
	}
	return folded, f.done()
}
