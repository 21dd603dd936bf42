package bolt

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"iter"
	"os"
	"strings"

	"go.etcd.io/bbolt"

	"leadferry/checkpoint"
	"leadferry/checkpoint/bolt/records"
	"leadferry/internal/disk"
)

// movingKey stands in a file that was copied, with where its leads are kept now, or that is being
// filled, with what from.
var movingKey = []byte("moving")

const (
	movedTo    = "to "
	filledFrom = "from "
)

func moving(meta *bbolt.Bucket) string {
	record := meta.Get(movingKey)
	if record == nil {
		return ""
	}
	f, err := records.Unseal(movingKey, record)
	if text := f.Text(); err == nil {
		return text
	}
	return filledFrom + "another one"
}

// stillHere refuses to write to a file whose leads are kept elsewhere now, or that is not complete.
func (d *Store) stillHere(o Options) error {
	to := d.Moved()
	switch {
	case d.moving == "" || o.Moved || to != "" && o.ReadOnly:
		return nil
	case to != "":
		return wasMoved(d.path, to, d.header.id)
	}
	from := strings.TrimPrefix(d.moving, filledFrom)
	return d.refuse(checkpoint.ErrLocked, "is being filled from "+from+", which is not complete", "finish it: leadferry checkpoint copy "+checkpoint.Word(from)+" "+checkpoint.Word(d.path))
}

// wasMoved refuses a file whose leads are kept elsewhere.
func wasMoved(path, to string, id fileID) error {
	return refuse(path, checkpoint.ErrGone, "was copied to "+to+", where its leads are known from now on",
		"use --checkpoint "+checkpoint.Word(to)+"; if that one is lost for good, "+checkpoint.TakeAgain(path, id.String()))
}

// setMoving notes it durably; "" takes it back.
func (d *Store) setMoving(text string) error {
	d.moving = text
	return d.alone(func(w *writing) error {
		if text == "" {
			return w.meta.Delete(movingKey)
		}
		return w.meta.Put(movingKey, movingRecord(text))
	})
}

func movingRecord(text string) []byte {
	return records.Seal(records.AppendText(nil, text), 0, movingKey)
}

// Moved is where the leads of the checkpoint are kept now, or "".
func (d *Store) Moved() string {
	if to, moved := strings.CutPrefix(d.moving, movedTo); moved {
		return to
	}
	return ""
}

// SetMoved makes every later opening for writing refuse the file.
func (d *Store) SetMoved(to string) error { return d.setMoving(movedTo + to) }

// Contents are all that is known.
func (d *Store) Contents(ctx context.Context) (*checkpoint.Contents, error) {
	c := &checkpoint.Contents{
		ID: d.header.id.String(), Commits: d.tally.Load().seq, Secret: d.header.secret, Target: d.header.target,
		Keys: d.keptKeys(ctx), Missing: d.lacks().text,
	}
	var err error
	if c.Lineage, err = checkpoint.LineageOf(ctx, d); err != nil {
		return nil, err
	}
	if c.Notes, err = d.Notes(ctx, ""); err != nil {
		return nil, err
	}
	return c, d.view("read forgotten keys", func(tx *bbolt.Tx) error {
		return tx.Bucket(inBlocked).ForEach(func(k, v []byte) error { return readBlock(c, k, v) })
	})
}

func readBlock(c *checkpoint.Contents, k, v []byte) error {
	b, err := records.DecodeBlock(bytes.Clone(k), bytes.Clone(v))
	c.Forgotten = append(c.Forgotten, b)
	return err
}

func (d *Store) keptKeys(ctx context.Context) iter.Seq2[checkpoint.KeptKey, error] {
	return func(yield func(checkpoint.KeptKey, error) bool) {
		enough := errors.New("enough")
		err := each(ctx, d, true, d.kept, func(k *checkpoint.KeptKey) error {
			if !yield(*k, nil) {
				return enough
			}
			return nil
		})
		if err != nil && err != enough {
			yield(checkpoint.KeptKey{}, err)
		}
	}
}

func (d *Store) kept(key string, entry, intent []byte) (k *checkpoint.KeptKey, err error) {
	k = new(checkpoint.KeptKey)
	if k.Entry, err = d.words.Kept(key, entry); err == nil {
		k.Intent, err = d.words.Kept(key, intent)
	}
	return k, err
}

// Fill makes a checkpoint of what another one knows, under an ID of its own that records the other's. A file that a copy
// from there has left is made anew; any other one that is there is an error. begun is called once runs are
// refused there and before anything is read.
func Fill(path string, from func() (*checkpoint.Contents, error), name string, t checkpoint.Target, begun func() error, o Options) error {
	to := resolved(path)
	if err := makeRoom(to, name, o); err != nil {
		return err
	}
	o.Require, o.Moved = true, true
	// From its first moment it refuses runs.
	return makeFrom(to, newHeader(t, o.now()), record{movingKey, movingRecord(filledFrom + name)}, o, func(d *Store) error {
		if err := begun(); err != nil {
			return err
		}
		c, err := from()
		if err != nil {
			return err
		}
		if err := d.inherit(c); err != nil {
			return err
		}
		if err := d.carry(c); err != nil {
			return err
		}
		return d.setMoving("")
	})
}

// makeFrom makes a file, with a mark that says what it is until fill has filled it, and closes it.
func makeFrom(to string, h header, mark record, o Options, fill func(*Store) error) error {
	if err := createNew(to, h, mark); err != nil {
		return err
	}
	d, err := Open(to, h.target, o)
	if err != nil {
		return err
	}
	return errors.Join(fill(d), d.Close())
}

// makeRoom removes what an interrupted copy of the same checkpoint has left.
func makeRoom(to, name string, o Options) error {
	if !disk.Exists(to) {
		return nil
	}
	o.ReadOnly, o.Require, o.Moved = true, true, true
	d, err := Open(to, checkpoint.Target{}, o)
	if err != nil {
		return err
	}
	left := d.moving == filledFrom+name
	if err := d.Close(); err != nil {
		return err
	}
	if !left {
		return refuse(to, fs.ErrExist, "exists already", "name a file that is not there yet")
	}
	return os.Remove(to)
}

// carry writes what another checkpoint knows into a file that knows nothing.
func (d *Store) carry(c *checkpoint.Contents) error {
	err := inCommits(d, c.Keys, func(w *writing, k checkpoint.KeptKey) error {
		for _, one := range []**checkpoint.Kept{&k.Entry, &k.Intent} {
			if *one != nil {
				*one = w.Keep(**one)
			}
		}
		return w.put(k.Shown().Key, checkpoint.KeptKey{}, k)
	})
	if err != nil {
		return err
	}
	return d.alone(func(w *writing) error {
		if err := w.putRest(c); err != nil || c.Missing == "" {
			return err
		}
		l := lacking{text: c.Missing, since: w.seq}
		d.missing.Store(&l)
		return w.meta.Put(lackingKey, l.encode())
	})
}

// inCommits writes each of a list, as long as it is no error.
func inCommits[T any](d *Store, list iter.Seq2[T, error], write func(*writing, T) error) error {
	return inParts(list, func(part []T, _ bool) error {
		return d.alone(func(w *writing) error {
			for _, one := range part {
				if err := write(w, one); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// inOneCommit is how many of a list one commit takes.
const inOneCommit = 1 << 11

// inParts hands out a list, so many at a time; the last part may be empty.
func inParts[T any](list iter.Seq2[T, error], f func(part []T, last bool) error) error {
	var part []T
	for one, err := range list {
		if err != nil {
			return err
		}
		if len(part) == inOneCommit {
			if err := f(part, false); err != nil {
				return err
			}
			part = part[:0]
		}
		part = append(part, one)
	}
	return f(part, true)
}

// inherit takes over the key of the digests and the lineage of another checkpoint.
func (d *Store) inherit(c *checkpoint.Contents) error {
	d.header.secret = c.Secret
	d.digests = checkpoint.NewDigester(c.Secret)
	d.w.digests = d.digests
	lineage, err := c.Descent().Encode()
	if err != nil {
		return err
	}
	return d.alone(func(w *writing) error {
		return errors.Join(w.meta.Put(headerKey, d.header.encode()), w.PutNote(checkpoint.Note{Name: checkpoint.LineageNote, Value: lineage}))
	})
}

// putRest writes what stands under no key.
func (w *writing) putRest(c *checkpoint.Contents) error {
	for _, n := range c.Notes {
		if n.Name == checkpoint.LineageNote {
			continue
		}
		if err := w.PutNote(n); err != nil {
			return err
		}
	}
	for _, b := range c.Forgotten {
		w.tally.move(checkpoint.Unknown, checkpoint.Forgotten)
		if err := w.putBlock(b); err != nil {
			return err
		}
	}
	return nil
}
