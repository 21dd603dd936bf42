// Package spool sorts things in memory that does not grow with them. What goes beyond it stands, in sorted runs, in a
// temporary file that has no name any more, so that nothing is left of it however the process ends. Where no
// such file can be made or filled, all stays in memory.
package spool

import (
	"bufio"
	"encoding/json"
	"io"
	"iter"
	"os"
	"slices"
)

// Spool is things that can be written as JSON. One goroutine uses it.
type Spool[T any] struct {
	most    int              // things that stay in memory
	compare func(a, b T) int // of none but one thing 0
	recent  []T
	file    *os.File // nil: none was needed yet
	runs    []int64  // where each run ends in the file
	full    bool     // no file can be had, or it takes no more
}

// New is an empty one. Close lets go of its file.
func New[T any](most int, compare func(a, b T) int) *Spool[T] {
	return &Spool[T]{most: most, compare: compare}
}

// Add adds a thing.
func (s *Spool[T]) Add(v T) {
	if len(s.recent) >= s.most && !s.full {
		s.full = !s.spill()
	}
	s.recent = append(s.recent, v)
}

// spill makes a run of what is in memory.
func (s *Spool[T]) spill() bool {
	if s.file == nil {
		f, err := os.CreateTemp("", "leadferry-*")
		if err != nil {
			return false
		}
		os.Remove(f.Name()) // some systems keep the name until it is closed
		s.file = f
	}
	slices.SortFunc(s.recent, s.compare)
	to := bufio.NewWriterSize(s.file, 1<<16)
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
	next func(v *T) error // io.EOF behind the last one
}

// All goes through everything in order; an error is the last. Nothing is added meanwhile.
func (s *Spool[T]) All() iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var heads []head[T] // by their things
		push := func(h head[T]) error {
			h.v = *new(T)
			if err := h.next(&h.v); err != nil {
				if err == io.EOF {
					err = nil
				}
				return err
			}
			at, _ := slices.BinarySearchFunc(heads, h, func(a, b head[T]) int { return s.compare(a.v, b.v) })
			heads = slices.Insert(heads, at, h)
			return nil
		}
		for _, run := range s.sorted() {
			if err := push(head[T]{next: run}); err != nil {
				yield(*new(T), err)
				return
			}
		}
		for len(heads) > 0 {
			h := heads[0]
			if heads = slices.Delete(heads, 0, 1); !yield(h.v, nil) {
				return
			}
			if err := push(h); err != nil {
				yield(*new(T), err)
				return
			}
		}
	}
}

// sorted are all runs: those of the file, and what is in memory.
func (s *Spool[T]) sorted() (runs []func(*T) error) {
	begin := int64(0)
	for _, end := range s.runs {
		from := json.NewDecoder(bufio.NewReader(io.NewSectionReader(s.file, begin, end-begin)))
		runs = append(runs, func(v *T) error { return from.Decode(v) })
		begin = end
	}
	slices.SortFunc(s.recent, s.compare)
	left := s.recent
	return append(runs, func(v *T) error {
		if len(left) == 0 {
			return io.EOF
		}
		*v, left = left[0], left[1:]
		return nil
	})
}

// Close lets go of all.
func (s *Spool[T]) Close() {
	if s.file != nil {
		s.file.Close()
		os.Remove(s.file.Name())
	}
	s.file, s.recent, s.runs = nil, nil, nil
}
