package importer

import (
	"bufio"
	"encoding/json"
	"io"
	"iter"
	"os"
	"slices"
)

// mostSpooled is how many things of a spool stay in memory.
const mostSpooled = 1 << 15

// spool sorts things in memory that does not grow with them: what goes beyond stands, in sorted runs, in a temporary file that
// has no name any more, so that nothing is left of it whatever becomes of the process. Where no such file can be made or
// filled, all stays in memory. The zero spool with a compare is an empty one; no two of its things may be equal by that.
type spool[T any] struct {
	compare func(a, b *T) int
	recent  []T
	file    *os.File // nil: none was needed yet
	runs    []int64  // where each run ends in the file
	full    bool     // no file can be had, or it takes no more
}

func (s *spool[T]) add(v T) {
	if len(s.recent) >= mostSpooled && !s.full && !s.spill() {
		s.full = true
	}
	s.recent = append(s.recent, v)
}

// sort puts what is in memory in order.
func (s *spool[T]) sort() { slices.SortFunc(s.recent, func(a, b T) int { return s.compare(&a, &b) }) }

// spill makes a run of what is in memory.
func (s *spool[T]) spill() bool {
	if s.file == nil {
		f, err := os.CreateTemp("", "leadferry-*")
		if err != nil {
			return false
		}
		os.Remove(f.Name()) // some systems keep the name until it is closed
		s.file = f
	}
	s.sort()
	to := bufio.NewWriter(s.file)
	lines := json.NewEncoder(to)
	for i := range s.recent {
		_ = lines.Encode(&s.recent[i]) // Flush tells
	}
	if to.Flush() != nil {
		return false
	}
	end, err := s.file.Seek(0, io.SeekCurrent)
	if err != nil {
		return false
	}
	s.runs, s.recent = append(s.runs, end), s.recent[:0]
	return true
}

// head is the next thing of a run.
type head[T any] struct {
	v    T
	next func() (v T, more bool, err error)
}

// all goes through everything in order; an error is the last.
func (s *spool[T]) all() iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		s.sort()
		var heads []*head[T]
		push := func(h *head[T]) (err error) {
			var more bool
			if h.v, more, err = h.next(); err == nil && more {
				at, _ := slices.BinarySearchFunc(heads, h, func(a, b *head[T]) int { return s.compare(&a.v, &b.v) })
				heads = slices.Insert(heads, at, h)
			}
			return err
		}
		begin := int64(0)
		for _, end := range s.runs {
			if err := push(&head[T]{next: read[T](io.NewSectionReader(s.file, begin, end-begin))}); err != nil {
				yield(nil, err)
				return
			}
			begin = end
		}
		at := 0
		_ = push(&head[T]{next: func() (v T, more bool, _ error) {
			if more = at < len(s.recent); more {
				v, at = s.recent[at], at+1
			}
			return v, more, nil
		}})
		for len(heads) > 0 {
			h := heads[0]
			if heads = heads[1:]; !yield(&h.v, nil) {
				return
			}
			if err := push(h); err != nil {
				yield(nil, err)
				return
			}
		}
	}
}

// read gives the things of a run one after another.
func read[T any](from io.Reader) func() (T, bool, error) {
	lines := json.NewDecoder(bufio.NewReader(from))
	return func() (v T, more bool, err error) {
		if err = lines.Decode(&v); err == io.EOF {
			return v, false, nil
		}
		return v, err == nil, err
	}
}

// close lets go of the file.
func (s *spool[T]) close() {
	if s.file != nil {
		s.file.Close()
		os.Remove(s.file.Name())
	}
	*s = spool[T]{compare: s.compare}
}
