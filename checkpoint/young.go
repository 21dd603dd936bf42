package checkpoint

import (
	"maps"
	"slices"
	"sync"

	bolt "go.etcd.io/bbolt"
)

const (
	generation = 1 << 15        // index records that gather before they are written
	lastStep   = 1 << 10        // records a commit when the checkpoint is closed
	mostYoung  = 4 * generation // more missing after a crash is damage
)

// young holds the newest records of the index by lead ID. Lead IDs come in random
// order, and to put each in its place at once would rewrite one page a row. So
// they gather here, and every commit writes a few that are neighbours. A crash
// loses none: opening after an unclean end goes through all entries and finds
// those that the index lacks. Closing writes the rest.
//
// It belongs to the writer. Others may ask for owners meanwhile: a record stays until
// the commit that writes it is durable, so that who does not find it here and then
// begins to read finds it in the index.
type young struct {
	mu       sync.Mutex        // for what owner reads
	filling  map[string]string // lead index key → key
	draining map[string]string // the generation before
	written  []string          // of draining, by the commit under way
	queue    []string          // what of draining is not written yet, sorted
	added    int               // since the last commit
}

func newYoung() *young {
	return &young{filling: make(map[string]string), draining: make(map[string]string)}
}

func (y *young) add(lead []byte, key string) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.filling[string(lead)] = key
	y.added++
}

func (y *young) remove(lead []byte) {
	y.mu.Lock()
	defer y.mu.Unlock()
	delete(y.filling, string(lead))
	delete(y.draining, string(lead))
}

func (y *young) owner(lead []byte) (key string, ok bool) {
	y.mu.Lock()
	defer y.mu.Unlock()
	if key, ok = y.filling[string(lead)]; !ok {
		key, ok = y.draining[string(lead)]
	}
	return key, ok
}

func (y *young) size() int { return len(y.filling) + len(y.draining) }

// settle writes twice as many records as came since the last commit, so that one
// generation is written before the next is full.
func (y *young) settle(index *bolt.Bucket) error {
	n := 2 * y.added
	y.added = 0
	if len(y.queue) == 0 && len(y.filling) < generation {
		return nil
	}
	return y.write(index, n)
}

// write puts up to n records into the index, those of a full generation first.
func (y *young) write(index *bolt.Bucket, n int) error {
	if len(y.queue) == 0 {
		y.turn()
	}
	for ; n > 0 && len(y.queue) > 0; n-- {
		lead := y.queue[0]
		y.queue = y.queue[1:]
		key, ok := y.draining[lead]
		if !ok {
			continue // taken back meanwhile
		}
		y.written = append(y.written, lead)
		if err := index.Put([]byte(lead), []byte(key)); err != nil {
			return err
		}
	}
	return nil
}

// turn makes the generation that has filled the one that is written.
func (y *young) turn() {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.filling, y.draining = y.draining, y.filling
	y.queue = slices.Sorted(maps.Keys(y.draining))
}

// landed lets go of what is durable in the index now.
func (y *young) landed() {
	y.mu.Lock()
	defer y.mu.Unlock()
	for _, lead := range y.written {
		delete(y.draining, lead)
	}
	y.written = y.written[:0]
}
