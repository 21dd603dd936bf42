package bolt

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"go.etcd.io/bbolt"

	"leadferry/checkpoint"
	"leadferry/checkpoint/bolt/records"
)

// lackingKey stands in the file while leads are missing from it.
var lackingKey = []byte("incomplete")

// lacking says whether leads are missing that the file, or what it was made from, has known,
// so that a key that is not known may have one.
type lacking struct {
	some  bool
	leads uint64 // how many are known to be missing, rows in doubt included; 0: nobody can count them
	since uint64 // the commit that noted it: what was known before may have become something else
	found uint64 // keys that became known since by lists and decisions, which may be those that are missing

	adopting bool // nothing but a part of a list, whose adoption was cut off
}

func (l lacking) encode() []byte {
	b := binary.AppendUvarint(nil, l.leads)
	return records.Seal(binary.AppendUvarint(binary.AppendUvarint(b, l.since), l.found), 0, lackingKey)
}

func decodeLacking(record []byte) (l lacking, err error) {
	if record == nil {
		return l, nil
	}
	f, err := records.Unseal(lackingKey, record)
	if err != nil {
		return l, err
	}
	l = lacking{some: true, leads: f.Uint(), since: f.Uint(), found: f.Uint()}
	return l, f.Done()
}

// load reads what the file says as of commit seq.
func (l *lacking) load(meta *bbolt.Bucket, seq uint64) (err error) {
	*l, err = decodeLacking(meta.Get(lackingKey))
	if !l.some && meta.Get(adoptingKey) != nil {
		*l = lacking{some: true, since: seq, adopting: true}
	}
	return err
}

// lacks is what the file is known to lack now; the status is written meanwhile.
func (d *Store) lacks() lacking {
	if l := d.missing.Load(); l != nil {
		return *l
	}
	return lacking{}
}

// left is how many leads are missing after all that was found.
func (l lacking) left() uint64 { return l.leads - min(l.found, l.leads) }

// foundSome notes that keys became known which the file may have lacked.
func (d *Store) foundSome(w *writing, keys int) error {
	l := d.lacks()
	if keys == 0 || !l.some || l.adopting {
		return nil
	}
	l.found += uint64(keys)
	d.missing.Store(&l)
	return w.meta.Put(lackingKey, l.encode())
}

// text says what is missing, as the subject of a sentence.
func (l lacking) text() string {
	switch {
	case l.adopting:
		return "the rest of a list is missing, whose adoption was cut off"
	case l.leads == 0:
		return "leads that it knew are missing, and nobody can count them"
	case l.left() == 0:
		return "as many leads as were missing have been taken over since, and whether they are the same ones nobody can tell but you"
	case l.left() == 1:
		return "1 lead that it knew is missing"
	}
	return fmt.Sprintf("%d leads that it knew are missing", l.left())
}

func (l lacking) warning() string {
	if l.adopting {
		return "the checkpoint is incomplete: a list was being adopted when the program was killed. Adopt it again, which takes what is left of it; " +
			"until then rows that the checkpoint does not know are held in doubt, not sent (`leadferry checkpoint check --accept-loss` gives the rest of the list up)"
	}
	return "the checkpoint is incomplete: " + l.text() + ". Rows that it does not know are held in doubt, not sent, until " +
		"`leadferry checkpoint resolve` settles them, or `leadferry checkpoint check --accept-loss` gives up what is missing"
}

// AcceptLoss gives up what an incomplete checkpoint lacks, see [checkpoint.Store].
func (d *Store) AcceptLoss(context.Context) (freed int, err error) {
	err = d.alone(func(w *writing) error {
		freed = 0
		var held []string
		err := w.intents.ForEach(func(k, v []byte) error {
			in, err := w.words.Kept(string(k), v)
			if err == nil && in.Reason == checkpoint.ReasonIncomplete {
				held = append(held, in.Key)
			}
			return err
		})
		for i := 0; i < len(held) && err == nil; i++ {
			err = w.apply(&checkpoint.Change{Kind: checkpoint.Withdraw, Entry: checkpoint.Entry{Key: held[i]}})
			freed++
		}
		if err != nil {
			return err
		}
		return errors.Join(w.meta.Delete(lackingKey), w.meta.Delete(adoptingKey))
	})
	if err != nil {
		return 0, fmt.Errorf("accept loss: %w", err)
	}
	d.missing.Store(nil)
	return freed, nil
}
