package checkpoint

import (
	"maps"
	"slices"

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
// It belongs to the writer; look-ups by key need no index.
type young struct {
	filling  map[string]string // lead index key → key
	draining map[string]string // the generation before
	queue    []string          // what of draining is not written yet, sorted
	added    int               // since the last commit
}

func newYoung() *young {
	return &young{filling: make(map[string]string), draining: make(map[string]string)}
}

func (y *young) add(lead []byte, key string) {
	y.filling[string(lead)] = key
	y.added++
}

func (y *young) remove(lead []byte) {
	delete(y.filling, string(lead))
	delete(y.draining, string(lead))
}

func (y *young) owner(lead []byte) (key string, ok bool) {
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
		y.filling, y.draining = y.draining, y.filling
		y.queue = slices.Sorted(maps.Keys(y.draining))
	}
	for ; n > 0 && len(y.queue) > 0; n-- {
		lead := y.queue[0]
		y.queue = y.queue[1:]
		key, ok := y.draining[lead]
		if !ok {
			continue // taken back meanwhile
		}
		delete(y.draining, lead)
		if err := index.Put([]byte(lead), []byte(key)); err != nil {
			return err
		}
	}
	return nil
}
