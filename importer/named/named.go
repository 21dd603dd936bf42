// Package named remembers which keys the rows of an input named, and finds the known keys that none did, in memory that does not
// grow with either. A key is a hash of 8 bytes here, by a seed of this process alone.
package named

import (
	"cmp"
	"hash/maphash"
	"iter"

	"leadferry/importer/spool"
)

// most is how many hashes stay in memory.
const most = 1 << 20

// Keys are those that were named. One goroutine uses them.
type Keys struct {
	seed   maphash.Seed
	most   int
	hashes *spool.Spool[uint64]
	last   string
	count  int // of keys as long as each is above the one before, as those of an export mostly are; -1: they are in no order
}

// New are no keys.
func New() *Keys { return of(most) }

func of(most int) *Keys {
	return &Keys{seed: maphash.MakeSeed(), most: most, hashes: spool.New(spool.Fixed(most, cmp.Compare[uint64]))}
}

// Add notes that a row named a key; "" is none.
func (k *Keys) Add(key string) {
	if key == "" || key == k.last {
		return
	}
	if k.count++; k.count == 0 || key < k.last {
		k.count = -1
	}
	k.last = key
	k.hashes.Add(maphash.String(k.seed, key))
}

// Count is how many different keys were named.
func (k *Keys) Count() (n int, err error) {
	if k.count >= 0 {
		return k.count, nil
	}
	last := uint64(0)
	for hash, err := range k.hashes.All() {
		if err != nil {
			return 0, err
		}
		if n == 0 || hash != last {
			n++
		}
		last = hash
	}
	return n, nil
}

// Close lets go of them.
func (k *Keys) Close() { k.hashes.Close() }

// asked is a known key and its number.
type asked struct{ Hash, At uint64 }

// Missing calls tell with each thing whose key was not named, in the order in which each gives them. It calls each twice, which
// has to give the same things both times. The errors of all three end it.
func Missing[T any](k *Keys, each func(func(T) error) error, key func(T) string, tell func(T) error) error {
	known := spool.New(spool.Fixed(k.most/2, func(a, b asked) int { return cmp.Or(cmp.Compare(a.Hash, b.Hash), cmp.Compare(a.At, b.At)) }))
	defer known.Close()
	count := uint64(0)
	err := each(func(thing T) error {
		known.Add(asked{maphash.String(k.seed, key(thing)), count})
		count++
		return nil
	})
	missing := spool.New(spool.Fixed(k.most, cmp.Compare[uint64]))
	defer missing.Close()
	if err == nil {
		err = k.miss(known, missing.Add)
	}
	if err != nil {
		return err
	}
	next, stop := pull(missing)
	defer stop()
	at, more, err := next()
	if count = 0; err != nil || !more {
		return err
	}
	return each(func(thing T) (err error) {
		if more && at == count {
			if err = tell(thing); err == nil {
				at, more, err = next()
			}
		}
		count++
		return err
	})
}

// pull is what a spool holds, one after another.
func pull(s *spool.Spool[uint64]) (next func() (v uint64, more bool, err error), stop func()) {
	all, stop := iter.Pull2(s.All())
	return func() (uint64, bool, error) {
		v, err, more := all()
		return v, more, err
	}, stop
}

// miss finds the known keys whose hash is none of those that were named.
func (k *Keys) miss(known *spool.Spool[asked], f func(at uint64)) error {
	next, stop := pull(k.hashes)
	defer stop()
	hash, more, err := next()
	for one, failed := range known.All() {
		for ; err == nil && more && hash < one.Hash; hash, more, err = next() {
		}
		if err = cmp.Or(err, failed); err != nil {
			return err
		}
		if !more || hash != one.Hash {
			f(one.At)
		}
	}
	return err
}
