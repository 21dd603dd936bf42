package bolt

import (
	"bytes"
	"errors"
	"strings"

	"leadferry/checkpoint"
	"leadferry/checkpoint/bolt/records"
	"leadferry/internal/rowkey"
)

// move counts a key from one state to another, and keeps the index of folds in step.
func (w *writing) move(key string, from, to checkpoint.State) error {
	w.tally.move(from, to)
	was, is := from != checkpoint.Unknown && from != checkpoint.Forgotten, to != checkpoint.Unknown && to != checkpoint.Forgotten
	if was == is {
		return nil
	}
	record := records.FoldKey(w.digests, key)
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
		prefix := records.FoldPrefix(f.d.digests, folded)
		for k, _ := f.folds.Seek(prefix); found.State == checkpoint.Unknown && bytes.HasPrefix(k, prefix); k, _ = f.folds.Next() {
			if other := records.Unfolded(folded, k[len(prefix):]); other != key {
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
	if _, err := f.d.words.Decode(key, record, &e); err != nil {
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
	prefix := records.ForgottenFold(hash, nil)
	k, _ := f.folds.Seek(prefix)
	return bytes.HasPrefix(k, prefix)
}

// block leaves the keyed hash of a key that is forgotten, and that of its fold.
func (w *writing) block(key string) error {
	hash, hashed := w.digests.Blocked(key), []byte(nil)
	if folded := rowkey.Fold(key); folded != key && folded != "" {
		hashed = w.digests.Blocked(folded)
		if err := w.folds.Put(records.ForgottenFold(hashed, hash), nil); err != nil {
			return err
		}
	}
	return w.blocked.Put(hash, records.EncodeBlock(hash, hashed, w.now))
}

// unblock removes both again.
func (w *writing) unblock(key string) error {
	hash := w.digests.Blocked(key)
	record := records.ForgottenFold(w.digests.Blocked(rowkey.Fold(key)), hash)
	return errors.Join(w.blocked.Delete(hash), w.folds.Delete(record))
}
