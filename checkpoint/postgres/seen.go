package postgres

import "sync"

// mostSeen is how many rows each of the two generations holds.
const mostSeen = 16 << 10

// sight remembers rows as they were seen last. What was seen long ago is forgotten; whatever it
// says is compared by the server before it counts.
type sight struct {
	mu       sync.Mutex
	new, old map[string]*row
}

func newSight() *sight { return &sight{new: map[string]*row{}} }

// put remembers a row, unless a later version of it is there.
func (s *sight) put(r *row) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.find(r.key); known != nil && known.seq > r.seq {
		return
	}
	if len(s.new) >= mostSeen {
		s.old, s.new = s.new, map[string]*row{}
	}
	s.new[r.key] = r
}

func (s *sight) find(key string) *row {
	if r := s.new[key]; r != nil {
		return r
	}
	return s.old[key]
}

// get is the row of a key, or nil.
func (s *sight) get(key string) *row {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.find(key)
}

// clear forgets all.
func (s *sight) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.new, s.old = map[string]*row{}, nil
}
