package bolt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"go.etcd.io/bbolt"

	"leadferry/checkpoint"
	"leadferry/checkpoint/bolt/records"
)

// movingKey stands in a file that was copied, with where its leads are kept now, or that is being
// filled, with what from.
var movingKey = []byte("moving")

const (
	movedTo    = "to "
	filledFrom = "from "
)

// moving is what the file says of that, or "".
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
func (d *Store) stillHere(meta *bbolt.Bucket) error {
	d.moving = moving(meta)
	to, gone := strings.CutPrefix(d.moving, movedTo)
	switch {
	case d.moving == "" || d.mayMove || gone && d.readOnly:
		return nil
	case gone:
		return d.refuse(checkpoint.ErrGone, "was copied to "+to+", where its leads are known from now on", "use --checkpoint "+checkpoint.Word(to))
	}
	from := strings.TrimPrefix(d.moving, filledFrom)
	return d.refuse(checkpoint.ErrLocked, "is being filled from "+from+", which is not complete", "finish it: leadferry checkpoint copy "+checkpoint.Word(from)+" "+checkpoint.Word(d.path))
}

// setMoving notes it durably; "" takes it back.
func (d *Store) setMoving(text string) error {
	d.moving = text
	return d.alone(func(w *writing) error {
		if text == "" {
			return w.meta.Delete(movingKey)
		}
		return putMoving(w.meta, text)
	})
}

func putMoving(meta *bbolt.Bucket, text string) error {
	return meta.Put(movingKey, records.Seal(records.AppendText(nil, text), 0, movingKey))
}

// Moved is where the leads of the checkpoint are kept now, or "".
func (d *Store) Moved() string {
	to, is := strings.CutPrefix(d.moving, movedTo)
	if !is {
		return ""
	}
	return to
}

// SetMoved makes every later opening for writing refuse the file.
func (d *Store) SetMoved(to string) error { return d.setMoving(movedTo + to) }

// Contents are all that is known.
func (d *Store) Contents(ctx context.Context) (*checkpoint.Contents, error) {
	c := &checkpoint.Contents{
		Name: d.path, ID: d.header.id.String(), Secret: d.header.secret, Target: d.header.target,
		Keys: func(yield func(checkpoint.KeptKey, error) bool) { d.eachKept(ctx, yield) },
	}
	for _, id := range d.header.ancestors {
		c.Ancestors = append(c.Ancestors, id.String())
	}
	if d.lacks().some {
		c.Missing = d.lacks().text()
	}
	var err error
	if c.Runs, err = d.Runs(ctx); err != nil {
		return nil, err
	}
	return c, d.view("read decisions and notes", func(tx *bbolt.Tx) error {
		return errors.Join(
			tx.Bucket(inAudit).ForEach(func(k, v []byte) error { return addLine(c, d.words, k, v) }),
			tx.Bucket(inNotes).ForEach(func(k, v []byte) error { return addShape(c, k, v) }),
			tx.Bucket(inBlocked).ForEach(func(k, v []byte) error { return addBlock(c, k, v) }))
	})
}

// addLine adds a line of the audit to contents.
func addLine(c *checkpoint.Contents, words *records.Words, k, v []byte) error {
	r, err := decodeAudit(k, v)
	if err == nil && r.kind > exists {
		c.Contradictions = append(c.Contradictions, r.asContradiction())
		return nil
	}
	if err != nil {
		return err
	}
	send, err := words.Kept(r.Key, r.send)
	c.Decisions = append(c.Decisions, checkpoint.KeptDecision{Decision: r.Decision, At: r.at, Send: send})
	return err
}

func addShape(c *checkpoint.Contents, k, v []byte) error {
	n, err := decodeNote(k, v)
	c.Shapes = append(c.Shapes, checkpoint.KeptShape{Columns: bytes.Clone(n.columns), Key: n.key, Namespace: n.namespace})
	return err
}

func addBlock(c *checkpoint.Contents, k, v []byte) error {
	b, err := records.DecodeBlock(bytes.Clone(k), bytes.Clone(v))
	c.Forgotten = append(c.Forgotten, b)
	return err
}

// eachKept yields what stands under each key, some hundred in a transaction.
func (d *Store) eachKept(ctx context.Context, yield func(checkpoint.KeptKey, error) bool) {
	for after, more := []byte(nil), true; more; {
		var found []checkpoint.KeptKey
		err := ctx.Err()
		if err == nil {
			err = d.read("read entries", func(r *reading) (err error) {
				found, after, err = d.collectKept(r, after)
				more = after != nil
				return err
			})
		}
		if err != nil {
			yield(checkpoint.KeptKey{}, err)
			return
		}
		for _, k := range found {
			if !yield(k, nil) {
				return
			}
		}
	}
}

func (d *Store) collectKept(r *reading, from []byte) (found []checkpoint.KeptKey, next []byte, err error) {
	intents := r.tx.Bucket(inIntents).Cursor()
	ik, iv := intents.Seek(from)
	entries := r.from(from, r.gatheredKeys())
	for n := 0; ik != nil || entries.key != nil; n++ {
		order := compare(ik, entries.key)
		if n == chunk {
			return found, bytes.Clone(map[bool][]byte{true: ik, false: entries.key}[order <= 0]), nil
		}
		var k checkpoint.KeptKey
		if order >= 0 {
			if k.Entry, err = d.words.Kept(string(entries.key), entries.value); err != nil {
				return nil, nil, err
			}
			entries.next()
		}
		if order <= 0 {
			if k.Intent, err = d.words.Kept(string(ik), iv); err != nil {
				return nil, nil, err
			}
			ik, iv = intents.Next()
		}
		found = append(found, k)
	}
	return found, nil, nil
}

// Fill makes a checkpoint of what another one knows, under an ID of its own that records the other's. A file that a copy
// from there has left is made anew; any other one that is there is an error. begun is called once runs are
// refused there and before anything is read.
func Fill(path string, from func() (*checkpoint.Contents, error), name string, t checkpoint.Target, begun func() error, o Options) error {
	to := resolved(path)
	if err := makeRoom(to, name, o); err != nil {
		return err
	}
	h := newHeader(t, o.now())
	made, err := create(to, h, lacking{}, filledFrom+name) // from its first moment it refuses runs
	if err == nil && !made {
		err = fs.ErrExist
	}
	if err != nil {
		return &checkpoint.OpenError{Path: to, Text: "cannot be made: " + err.Error(), Hint: aboutNew(err), Err: err}
	}
	o.Require, o.Named, o.Moved = true, true, true
	d, err := Open(to, t, o)
	if err != nil {
		return err
	}
	err = begun()
	var c *checkpoint.Contents
	if err == nil {
		c, err = from()
	}
	if err == nil {
		err = d.fill(c)
	}
	if err == nil {
		err = d.setMoving("")
	}
	return errors.Join(err, d.Close())
}

// makeRoom removes what an interrupted copy of the same checkpoint has left.
func makeRoom(to, name string, o Options) error {
	if _, err := os.Lstat(to); errors.Is(err, fs.ErrNotExist) {
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
		return &checkpoint.OpenError{Path: to, Text: "exists already", Hint: "name a file that is not there yet", Err: fs.ErrExist}
	}
	return errors.Join(os.Remove(to), removeIfThere(to+".seq"))
}

func removeIfThere(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// fill writes the contents of another checkpoint, whose key of digests and IDs the file takes over first.
func (d *Store) fill(c *checkpoint.Contents) error {
	if err := d.inherit(c); err != nil {
		return err
	}
	if err := d.carry(c); err != nil || c.Missing == "" {
		return err
	}
	return d.alone(func(w *writing) error {
		l := lacking{some: true, since: w.seq}
		d.missing.Store(&l)
		return w.meta.Put(lackingKey, l.encode())
	})
}

// carried is how many keys one commit takes that are carried over.
const carried = 4096

// carry writes what another checkpoint knows into a file that knows nothing.
func (d *Store) carry(c *checkpoint.Contents) error {
	var part []checkpoint.KeptKey
	write := func() error {
		err := inCommits(d, part, func(w *writing, k checkpoint.KeptKey) error {
			for _, one := range []**checkpoint.Kept{&k.Entry, &k.Intent} {
				if *one != nil {
					*one = w.Keep(**one)
				}
			}
			return w.put(k.Shown().Key, checkpoint.KeptKey{}, k)
		})
		part = part[:0]
		return err
	}
	for k, err := range c.Keys {
		if err != nil {
			return err
		}
		if part = append(part, k); len(part) == carried {
			if err := write(); err != nil {
				return err
			}
		}
	}
	if err := write(); err != nil {
		return err
	}
	return d.alone(func(w *writing) error { return w.putRest(c) })
}

// inCommits writes each of a list, so many to a commit.
func inCommits[T any](d *Store, list []T, write func(*writing, T) error) error {
	for part := range slices.Chunk(list, carried) {
		err := d.alone(func(w *writing) (err error) {
			for i := 0; i < len(part) && err == nil; i++ {
				err = write(w, part[i])
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// inherit takes over the key of the digests and the other one's IDs.
func (d *Store) inherit(c *checkpoint.Contents) error {
	d.header.secret = c.Secret
	for _, text := range append(c.Ancestors, c.ID) {
		if id, err := parseID(text); err == nil {
			d.header.ancestors = append(d.header.ancestors, id)
		}
	}
	d.host = hostOf("/etc/machine-id", c.Secret)
	d.digests = checkpoint.NewDigester(c.Secret)
	d.w.digests = d.digests
	return d.alone(func(w *writing) error { return w.meta.Put(headerKey, d.header.encode()) })
}

// putRest writes what stands under no key.
func (w *writing) putRest(c *checkpoint.Contents) error {
	now := w.now
	defer func() { w.now = now }()
	for _, r := range c.Runs {
		if err := w.addRun(r); err != nil {
			return err
		}
	}
	for _, s := range c.Shapes {
		if err := w.addNote(note{key: s.Key, namespace: s.Namespace, columns: s.Columns}); err != nil {
			return err
		}
	}
	for _, b := range c.Forgotten {
		w.tally.move(checkpoint.Unknown, checkpoint.Forgotten)
		if err := w.putBlock(b); err != nil {
			return err
		}
	}
	for _, r := range c.Decisions {
		w.now = r.At
		if err := w.note(auditLine{Decision: r.Decision, send: w.words.AppendKept(nil, r.Send)}); err != nil {
			return err
		}
	}
	for _, r := range c.Contradictions {
		w.now = r.Found
		kind, err := kindOfEvidence(r.Text)
		if err := errors.Join(err, w.note(auditLine{Decision: r.Decision, contradiction: contradiction{kind: kind, other: r.Other, decided: r.Decided}})); err != nil {
			return err
		}
	}
	return nil
}

func kindOfEvidence(text string) (byte, error) {
	for e := checkpoint.LeadOfAnother; e <= checkpoint.RefusedAfterAll; e++ {
		if e.String() == text {
			return exists + byte(e), nil
		}
	}
	return 0, fmt.Errorf("%w: evidence against a decision is none that this version knows", checkpoint.ErrDamaged)
}
