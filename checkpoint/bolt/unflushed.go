package bolt

import (
	"maps"
	"slices"
	"sync"

	"go.etcd.io/bbolt"
)

const (
	generation    = 1 << 15        // index records that gather before they are written
	lastStep      = 1 << 10        // records a commit when the checkpoint is closed
	mostUnflushed = 4 * generation // more missing after a crash is damage
)

// unflushed holds the newest records of the index by lead ID. Lead IDs come in random
// order, and to put each in its place at once would rewrite one page a row. So
// they gather here, and every commit writes a few that are neighbours. A crash
// loses none: opening after an unclean end goes through all entries and finds
// those that the index lacks. Closing writes the rest.
//
// It belongs to the writer. Others may ask for owners meanwhile: a record stays until
// the commit that writes it is durable, so that who does not find it here and then
// begins to read finds it in the index.
type unflushed struct {
	mu       sync.Mutex        // for what owner reads
	filling  map[string]string // lead index key → key
	draining map[string]string // the generation before
	written  []string          // of draining, by the commit under way
	queue    []string          // what of draining is not written yet, sorted
	added    int               // since the last commit
}

func newUnflushed() *unflushed {
	return &unflushed{filling: make(map[string]string), draining: make(map[string]string)}
}

func (u *unflushed) add(lead []byte, key string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.filling[string(lead)] = key
	u.added++
}

func (u *unflushed) remove(lead []byte) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.filling, string(lead))
	delete(u.draining, string(lead))
}

func (u *unflushed) owner(lead []byte) (key string, ok bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if key, ok = u.filling[string(lead)]; !ok {
		key, ok = u.draining[string(lead)]
	}
	return key, ok
}

func (u *unflushed) size() int { return len(u.filling) + len(u.draining) }

// settle writes twice as many records as came since the last commit, so that one
// generation is written before the next is full.
func (u *unflushed) settle(index *bbolt.Bucket) error {
	n := 2 * u.added
	u.added = 0
	if len(u.queue) == 0 && len(u.filling) < generation {
		return nil
	}
	return u.write(index, n)
}

// write puts up to n records into the index, those of a full generation first.
func (u *unflushed) write(index *bbolt.Bucket, n int) error {
	if len(u.queue) == 0 {
		u.turn()
	}
	for ; n > 0 && len(u.queue) > 0; n-- {
		lead := u.queue[0]
		u.queue = u.queue[1:]
		key, ok := u.draining[lead]
		if !ok {
			continue // taken back meanwhile
		}
		u.written = append(u.written, lead)
		if err := index.Put([]byte(lead), []byte(key)); err != nil {
			return err
		}
	}
	return nil
}

// turn makes the generation that has filled the one that is written.
func (u *unflushed) turn() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.filling, u.draining = u.draining, u.filling
	u.queue = slices.Sorted(maps.Keys(u.draining))
}

// landed lets go of what is durable in the index now.
func (u *unflushed) landed() {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, lead := range u.written {
		delete(u.draining, lead)
	}
	u.written = u.written[:0]
}
