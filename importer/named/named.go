// Package named remembers which keys the rows of an input named, and finds the known keys that
// none did, in memory that does not grow with either: a pass over all known keys asks it twice.
//
// A key is a hash of 8 bytes here. The newest are held in memory; what goes beyond is sorted and
// put into a temporary file that has no name any more, so that nothing is left of it whatever
// becomes of the process. It holds no key, only hashes by a seed of this process alone. Where no
// such file can be made or filled, the hashes stay in memory.
package named

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"hash/maphash"
	"io"
	"os"
	"slices"
)

// held is how many hashes stay in memory: 8 MiB, of which none is touched before it is needed.
const held = 1 << 20

// Keys are those that were named. One goroutine uses them.
type Keys struct {
	seed   maphash.Seed
	held   int
	recent []uint64
	file   *os.File // nil: none was needed yet, or none can be had
	runs   []int    // lengths of the sorted runs of hashes in the file, one behind another
	size   int64    // of them all
	full   bool     // the file takes no more

	last  string // key, as long as each was above the one before or the same
	count int    // of different ones until then; -1: they are in no order
}

// New are no keys.
func New() *Keys { return &Keys{seed: maphash.MakeSeed(), held: held, recent: make([]uint64, 0, held)} }

// Add notes that a row named a key; "" is none.
func (k *Keys) Add(key string) {
	if key == "" {
		return
	}
	k.inOrder(key)
	if len(k.recent) >= k.held && !k.full {
		if k.sort(); len(k.recent) >= k.held/2 { // else most were named twice
			k.spill()
		}
	}
	k.recent = append(k.recent, maphash.String(k.seed, key))
}

// inOrder counts keys that come in order, as those of an export mostly do.
func (k *Keys) inOrder(key string) {
	switch {
	case k.count < 0 || key == k.last:
	case key > k.last:
		k.last, k.count = key, k.count+1
	default:
		k.last, k.count = "", -1
	}
}

// spill puts the recent hashes, which are sorted, into the file, or lets them stay.
func (k *Keys) spill() {
	if k.file == nil {
		if k.file, _ = os.CreateTemp("", "leadferry-*"); k.file == nil {
			k.full = true
			return
		}
		os.Remove(k.file.Name()) // some systems keep the name until it is closed
	}
	to := bufio.NewWriterSize(io.NewOffsetWriter(k.file, k.size), 1<<16)
	var b [8]byte
	for _, h := range k.recent {
		binary.LittleEndian.PutUint64(b[:], h)
		_, _ = to.Write(b[:]) // Flush tells
	}
	if to.Flush() != nil {
		k.full = true // the disk is full: what stands there is not counted
		return
	}
	k.runs, k.size = append(k.runs, len(k.recent)), k.size+int64(8*len(k.recent))
	k.recent = k.recent[:0]
}

func (k *Keys) sort() {
	slices.Sort(k.recent)
	k.recent = slices.Compact(k.recent)
}

// Count is how many different keys were named at least: all where they came in order or fit into
// memory.
func (k *Keys) Count() int {
	if k.count >= 0 {
		return k.count
	}
	k.sort()
	most := len(k.recent)
	for _, n := range k.runs {
		most = max(most, n)
	}
	return most
}

// Missing calls tell with each thing whose key was not named, in the order in which each gives
// them. It calls each twice where the hashes did not fit into memory, which has to give the same
// things both times. The errors of all three end it.
func Missing[T any](k *Keys, each func(func(T) error) error, key func(T) string, tell func(T) error) error {
	k.sort()
	if len(k.runs) == 0 {
		return each(func(thing T) error {
			if _, named := slices.BinarySearch(k.recent, maphash.String(k.seed, key(thing))); named {
				return nil
			}
			return tell(thing)
		})
	}
	if !k.full {
		k.spill()
	}
	c := &call{keys: k, waiting: make([]asked, 0, k.held/2)}
	if len(k.recent) == 0 {
		k.recent = nil // their room is needed for the others
	}
	err := each(func(thing T) error {
		c.waiting = append(c.waiting, asked{maphash.String(k.seed, key(thing)), c.count})
		if c.count++; c.count > 64*len(c.named) {
			c.named = append(c.named, 0)
		}
		if len(c.waiting) < k.held/2 {
			return nil
		}
		return c.answer()
	})
	if err := cmp.Or(err, c.answer()); err != nil {
		return err
	}
	at := 0
	return each(func(thing T) error {
		if at++; at <= c.count && c.named[(at-1)/64]>>((at-1)%64)&1 == 1 {
			return nil
		}
		return tell(thing)
	})
}

// call asks for all known keys, many at once.
type call struct {
	keys    *Keys
	waiting []asked
	count   int      // of known keys so far
	named   []uint64 // a bit for each of them
}

// asked is a known key and its number.
type asked struct {
	hash uint64
	at   int
}

// answer notes which of the waiting were named.
func (c *call) answer() error {
	slices.SortFunc(c.waiting, func(a, b asked) int { return cmp.Compare(a.hash, b.hash) })
	offset := int64(0)
	var b [8]byte
	for _, n := range c.keys.runs {
		size := int64(8 * n)
		in := bufio.NewReaderSize(io.NewSectionReader(c.keys.file, offset, size), 1<<16)
		at := 0
		for range n {
			if _, err := io.ReadFull(in, b[:]); err != nil {
				return err
			}
			at = c.mark(binary.LittleEndian.Uint64(b[:]), at)
		}
		offset += size
	}
	at := 0
	for _, hash := range c.keys.recent {
		at = c.mark(hash, at)
	}
	c.waiting = c.waiting[:0]
	return nil
}

// mark notes that a hash was named, and returns from which of the waiting on the next one, which is no smaller, is looked for.
func (c *call) mark(hash uint64, at int) int {
	for ; at < len(c.waiting) && c.waiting[at].hash <= hash; at++ {
		if c.waiting[at].hash == hash {
			n := c.waiting[at].at
			c.named[n/64] |= 1 << (n % 64)
		}
	}
	return at
}

// Close lets go of the file.
func (k *Keys) Close() {
	if k.file != nil {
		k.file.Close()
		os.Remove(k.file.Name())
	}
}
