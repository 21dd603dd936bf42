package bolt

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"go.etcd.io/bbolt"

	"leadferry/checkpoint"
	"leadferry/checkpoint/bolt/records"
	"leadferry/internal/disk"
	"leadferry/internal/rowkey"
)

// Forget removes every trace of keys, see [checkpoint.Store]. Close then compacts the file, so that
// the bytes are gone from its unused parts; if that fails, the next writer does it.
func (d *Store) Forget(_ context.Context, keys []string, unblock bool) (r checkpoint.ForgetResult, err error) {
	for i, key := range keys {
		if !checkpoint.ValidKey(key) {
			return r, fmt.Errorf("forget: %w", &checkpoint.ListError{Index: i, Key: key, Text: "its " + checkpoint.ErrKey.Error()})
		}
	}
	for done := false; !done && err == nil; {
		err = d.alone(func(w *writing) error {
			if done, err = w.drain(); !done || err != nil { // the log may hold what is to be forgotten
				return err
			}
			r = checkpoint.ForgetResult{}
			return w.forget(keys, unblock, &r)
		})
	}
	if err != nil {
		return r, fmt.Errorf("forget: %w", err)
	}
	d.erase.Store(true)
	return r, nil
}

func (w *writing) forget(keys []string, unblock bool, r *checkpoint.ForgetResult) error {
	gone, leads := make(map[string]bool, len(keys)), make(map[string]bool, len(keys))
	for _, key := range keys {
		if gone[key] {
			continue
		}
		gone[key] = true
		lead, err := w.erase(key, unblock, r)
		if err != nil {
			return err
		}
		if lead != "" {
			leads[lead] = true
		}
	}
	if err := w.scrubIntents(leads); err != nil {
		return err
	}
	decisions, err := notesIn(w.tx, checkpoint.DecidedNote)
	if err != nil {
		return err
	}
	if err := checkpoint.ForgetDecisions(decisions, func(key string) bool { return gone[key] }, leads, w.PutNote); err != nil {
		return err
	}
	if err := w.scrubWords(); err != nil {
		return err
	}
	return w.meta.Put(eraseKey, records.Seal(nil, 0, eraseKey))
}

// erase removes what stands under key, leaves its hash or not, and returns its lead
// ID.
func (w *writing) erase(key string, unblock bool, r *checkpoint.ForgetResult) (lead string, err error) {
	k, err := w.under(key)
	if err != nil {
		return "", err
	}
	from := w.shown(key, &k).State
	r.Count(from)
	if err := w.put(key, k, checkpoint.KeptKey{}); err != nil {
		return "", err
	}
	if from == checkpoint.Forgotten {
		w.tally.move(from, checkpoint.Unknown)
	}
	if unblock {
		return entryOf(k.Entry).LeadID, w.unblock(key)
	}
	w.tally.move(checkpoint.Unknown, checkpoint.Forgotten)
	return entryOf(k.Entry).LeadID, w.block(key)
}

// block leaves the keyed hash of a key that is forgotten, and that of its fold.
func (w *writing) block(key string) error {
	b := checkpoint.KeptBlock{Hash: w.digests.Blocked(key), At: w.now}
	if folded := rowkey.Fold(key); folded != key && folded != "" {
		b.Fold = w.digests.Blocked(folded)
	}
	return w.putBlock(b)
}

func (w *writing) putBlock(b checkpoint.KeptBlock) error {
	if len(b.Fold) > 0 {
		if err := w.folds.Put(records.ForgottenFold(b.Fold, b.Hash), nil); err != nil {
			return err
		}
	}
	return w.in(inBlocked).Put(b.Hash, records.EncodeBlock(b))
}

func (w *writing) unblock(key string) error {
	hash := w.digests.Blocked(key)
	record := records.ForgottenFold(w.digests.Blocked(rowkey.Fold(key)), hash)
	return errors.Join(w.in(inBlocked).Delete(hash), w.folds.Delete(record))
}

// scrubIntents takes forgotten lead IDs out of the doubts of other keys, which were
// answered with the same ID.
func (w *writing) scrubIntents(leads map[string]bool) error {
	var changed []*checkpoint.Kept
	err := w.intents.ForEach(func(k, v []byte) error {
		in, err := w.words.Kept(string(k), v)
		if err != nil {
			return err
		}
		if clean := in.Scrubbed(leads); clean != in {
			changed = append(changed, clean)
		}
		return nil
	})
	for i := 0; i < len(changed) && err == nil; i++ {
		err = w.intents.Put([]byte(changed[i].Key), w.record(w.Keep(*changed[i])))
	}
	return err
}

// scrubWords removes the texts that nothing uses any more: a location, a file or an organization that was one person's
// alone.
func (w *writing) scrubWords() error {
	unused := w.words.All()
	for _, bucket := range []*bbolt.Bucket{w.intents, w.entries.in} {
		err := bucket.ForEach(func(k, v []byte) error {
			one, err := w.words.Kept(string(k), v)
			records.EachText(one, func(s string) { delete(unused, s) })
			return err
		})
		if err != nil {
			return err
		}
	}
	return w.words.Forget(unused, w.in(inWords))
}

// eraseKey stands in the file from the commit that forgets keys until the file is
// compacted: deleted records stay in unused pages until then.
var eraseKey = []byte("erase")

// step is how many bytes a compaction copies in one transaction.
const step = 16 << 20

// compact copies what the file knows into PATH.compact, checks the copy whole and
// renames it to PATH. A kill leaves the old file, which asks to be compacted, or
// the new one; a half copy holds nothing that was forgotten, and the next opening
// removes it. The lock on the old file is held throughout; who waits for it opens
// PATH again (see openLocked). bbolt must be open, and nothing may be written afterwards.
func (d *Store) compact() (err error) {
	defer func() {
		if err != nil {
			os.Remove(d.compactPath())
			err = &checkpoint.FileError{Err: fmt.Errorf("what was forgotten is not known any more, but still stands in unused parts of %s: %w\n"+
				"hint: make room beside it; the next command that writes to it tries again", d.path, err)}
		}
	}()
	var f *os.File
	copied, err := bbolt.Open(d.compactPath(), 0o600, &bbolt.Options{
		NoSync: true, NoStatistics: true, // synced once, at its end
		OpenFile: func(path string, _ int, mode os.FileMode) (*os.File, error) {
			f, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, mode)
			return f, err
		},
	})
	if err != nil {
		return err
	}
	err = guard(func() error { return d.copyInto(copied) })
	if err := errors.Join(err, copied.Close()); err != nil {
		return err
	}
	return d.inItsPlace(func() error { return disk.Rename(d.compactPath(), d.path) })
}

// inItsPlace replaces or removes the file by f. Where a file that is open cannot be (on Windows), it is closed
// before, and the lock of PATH.replacing keeps others from it until f is done: see lockInPlace.
func (d *Store) inItsPlace(f func() error) error {
	if disk.KeepsOpenFiles {
		lock, err := openOwn(d.replacingPath(), os.O_RDWR|os.O_CREATE)
		if err != nil {
			return err
		}
		defer os.Remove(d.replacingPath())
		defer lock.Close()
		if held, err := disk.TryLock(lock, false); !held {
			return errors.Join(errors.New("somebody else is about to replace it"), err)
		}
		if err := d.release(); err != nil {
			return err
		}
	}
	return errors.Join(f(), disk.SyncFolder(filepath.Dir(d.path)))
}

func (d *Store) copyInto(copied *bbolt.DB) error {
	if err := bbolt.Compact(copied, d.bolt, step); err != nil {
		return err
	}
	err := copied.Update(func(tx *bbolt.Tx) error { return tx.Bucket(inMeta).Delete(eraseKey) })
	if err := errors.Join(err, copied.Sync()); err != nil {
		return err
	}
	return copied.View(d.survey)
}

// finishErasing compacts a file whose last writer was killed before it could, and
// opens it again. Without room for that, it is opened as it is, with a warning.
func (d *Store) finishErasing(t checkpoint.Target, o Options) (*Store, error) {
	if failed := d.Close(); failed != nil {
		d.warn(failed.Error())
	}
	o.before = d
	return Open(d.path, t, o)
}
