package bolt

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"

	"go.etcd.io/bbolt"

	"leadferry/checkpoint"
	"leadferry/checkpoint/bolt/records"
	"leadferry/internal/disk"
)

// stillHere refuses to write to a file whose leads are kept elsewhere now, or that is not complete.
func (d *Store) stillHere(o Options) error {
	h := d.head.Load()
	from := h.Filling
	switch {
	case o.Moved || h.Moved == "" && from == "" || h.Moved != "" && o.ReadOnly:
		return nil
	case h.Moved != "":
		return wasMoved(d.path, h)
	}
	return d.refuse(checkpoint.ErrLocked, "is being filled from "+from+", which is not complete",
		"finish it: leadferry checkpoint copy "+checkpoint.Word(from)+" "+checkpoint.Word(d.path))
}

// wasMoved refuses a file whose leads are kept elsewhere.
func wasMoved(path string, h *header) error {
	return refuse(path, checkpoint.ErrGone, "was copied to "+h.Moved+", where its leads are known from now on",
		"use --checkpoint "+checkpoint.Word(h.Moved)+"; if that one is lost for good, "+
			checkpoint.TakeAgain(path, h.ID))
}

// Moved is where the leads of the checkpoint are kept now, or "".
func (d *Store) Moved() string { return d.head.Load().Moved }

// SetMoved makes every later opening for writing refuse the file.
func (d *Store) SetMoved(to string) error {
	return d.alone(func(w *writing) error { return w.setHeader(func(h *header) { h.Moved = to }) })
}

// Contents are all that is known.
func (d *Store) Contents(ctx context.Context) (*checkpoint.Contents, error) {
	forgotten, err := d.forgotten()
	if err != nil {
		return nil, err
	}
	return checkpoint.ContentsOf(ctx, d, d.head.Load().Secret, forgotten)
}

// forgotten are what is left of forgotten keys.
func (d *Store) forgotten() (all []checkpoint.KeptBlock, err error) {
	err = d.view("read forgotten keys", func(tx *bbolt.Tx) error {
		return tx.Bucket(inBlocked).ForEach(func(k, v []byte) error {
			b, err := records.DecodeBlock(bytes.Clone(k), bytes.Clone(v))
			all = append(all, b)
			return err
		})
	})
	return all, err
}

// Fill makes a checkpoint of what another one knows, under an ID of its own that records the other's. A file that a
// copy from there has left is made anew; any other one that is there is an error. begun is called once runs are
// refused there and before anything is read.
func Fill(path string, from func() (*checkpoint.Contents, error), name string, t checkpoint.Target, begun func() error,
	o Options,
) error {
	to := resolved(path)
	if err := makeRoom(to, name, o); err != nil {
		return err
	}
	o.Require, o.Moved = true, true
	// From its first moment it refuses runs.
	h := newHeader(t, o.clock())
	h.Filling = name
	return makeFrom(to, &h, o, func(d *Store) error {
		if err := begun(); err != nil {
			return err
		}
		c, err := from()
		if err != nil {
			return err
		}
		if err := d.inherit(c.Secret); err != nil {
			return err
		}
		if err := checkpoint.TakeOver(context.Background(), d, c); err != nil {
			return err
		}
		return d.alone(func(w *writing) error { return w.setHeader(func(h *header) { h.Filling = "" }) })
	})
}

// makeFrom makes a file, has fill fill it, and closes it.
func makeFrom(to string, h *header, o Options, fill func(*Store) error) error {
	if err := createNew(to, h); err != nil {
		return err
	}
	d, err := Open(to, h.Target, o)
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
	left := d.head.Load().Filling == name
	if err := d.Close(); err != nil {
		return err
	}
	if !left {
		return refuse(to, fs.ErrExist, "exists already", "name a file that is not there yet")
	}
	return os.Remove(to)
}

// inherit takes over the key of the digests of another checkpoint.
func (d *Store) inherit(secret []byte) error {
	d.digests = checkpoint.NewDigester(secret)
	return d.alone(func(w *writing) error { return w.setHeader(func(h *header) { h.Secret = secret }) })
}
