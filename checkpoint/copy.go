package checkpoint

import (
	"context"
	"time"
)

// Contents is everything that a Store knows, for another Store to take over.
type Contents struct {
	Secret  []byte // key of the digests
	Missing string // see [Info]; "" if nothing is missing

	// calls f with what is stored under each key, in order
	Keys      func(ctx context.Context, f func(KeptKey) error) error
	Notes     []Note // later ones replace earlier ones
	Forgotten []KeptBlock
}

// KeptBlock is what is left of a forgotten key: keyed hashes of the key and, if it differs, of its fold.
type KeptBlock struct {
	Hash, Fold []byte
	At         time.Time
}

// ContentsOf returns all that s knows; secret is the key of its digests. A ledger that takes it over descends from s.
func ContentsOf(ctx context.Context, s Store, secret []byte, forgotten []KeptBlock) (*Contents, error) {
	i := s.Info()
	l, err := LineageOf(ctx, s)
	if err != nil {
		return nil, err
	}
	l.Machine = ""
	l.Descend(i.ID, i.Sequence)
	notes, err := s.Notes(ctx, "")
	keys := func(ctx context.Context, f func(KeptKey) error) error { return s.Scan(ctx, Filter{}, f) }
	return &Contents{secret, i.Missing, keys, append(notes, l.Note()), forgotten}, err
}

// TakeOver writes what another checkpoint knows into an empty one. An earlier TakeOver of the same contents may have
// been cut off. It takes several commits: until the last one the Store must refuse runs.
func TakeOver(ctx context.Context, s Store, c *Contents) error {
	var part []KeptKey
	write := func() error {
		err := s.Alone(ctx, func(tx Tx) error { return takeOver(tx, part) })
		part = part[:0]
		return err
	}
	err := c.Keys(ctx, func(k KeptKey) error {
		if part = append(part, k); len(part) < inOneChange {
			return nil
		}
		return write()
	})
	if err == nil {
		err = write()
	}
	if err != nil {
		return err
	}
	return s.Alone(ctx, c.conclude)
}

func takeOver(tx Tx, part []KeptKey) error {
	keys := Map(part, func(k KeptKey) string { return k.Shown().Key })
	if err := tx.Load(keys, nil); err != nil {
		return err
	}
	for i, k := range part {
		for _, one := range []**Kept{&k.Entry, &k.Intent} {
			if *one != nil {
				*one = tx.Keep(**one)
			}
		}
		if err := tx.Put(keys[i], k); err != nil {
			return err
		}
	}
	return nil
}

func (c *Contents) conclude(tx Tx) error {
	for _, n := range c.Notes {
		if err := tx.PutNote(n); err != nil {
			return err
		}
	}
	for _, b := range c.Forgotten {
		if err := tx.Block(b); err != nil {
			return err
		}
	}
	if c.Missing == "" {
		return nil
	}
	return tx.Lack(c.Missing)
}
