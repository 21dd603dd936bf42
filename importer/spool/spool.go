// Package spool sorts things in memory that does not grow with them. What goes beyond it stands, in sorted runs, in a temporary
// file that has no name any more, so that nothing is left of it whatever becomes of the process. Where no such file can be
// made or filled, all stays in memory.
package spool

import (
	"bufio"
	"encoding/json"
	"io"
	"iter"
	"os"
	"runtime"
	"slices"
	"sync"
)

// Kind says how things are ordered, how many of them stay in memory, and how they are written one behind another.
type Kind[T any] struct {
	Most    int
	Compare func(a, b T) int // of none but one thing 0
	Write   func(to *bufio.Writer, v *T) error
	Read    func(from *bufio.Reader, v *T) error // io.EOF behind the last one
}

// JSON writes things of any shape, one a line.
func JSON[T any](most int, compare func(a, b T) int) Kind[T] {
	return Kind[T]{
		most, compare, func(to *bufio.Writer, v *T) error { return json.NewEncoder(to).Encode(v) },
		func(from *bufio.Reader, v *T) error {
			line, err := from.ReadBytes('\n')
			if err != nil {
				return err
			}
			return json.Unmarshal(line, v)
		},
	}
}

// Spool is things of a kind. One goroutine uses it.
type Spool[T any] struct {
	kind   Kind[T]
	recent []T
	file   *os.File // nil: none was needed yet
	runs   []int64  // where each run ends in the file
	full   bool     // no file can be had, or it takes no more
}

// New is an empty one. Close lets go of its file.
func New[T any](kind Kind[T]) *Spool[T] { return &Spool[T]{kind: kind} }

// Add adds a thing.
func (s *Spool[T]) Add(v T) {
	if len(s.recent) >= s.kind.Most && !s.full {
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
	slices.SortFunc(s.recent, s.kind.Compare)
	to := bufio.NewWriterSize(s.file, 1<<16)
	for i := range s.recent {
		_ = s.kind.Write(to, &s.recent[i]) // Flush tells
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
	next func(v *T) error
}

// All goes through everything in order; an error is the last. Nothing is added meanwhile.
func (s *Spool[T]) All() iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var heads []*head[T] // by their things
		push := func(h *head[T]) error {
			err := h.next(&h.v)
			if err != nil {
				if err == io.EOF {
					err = nil
				}
				return err
			}
			at, _ := slices.BinarySearchFunc(heads, h, func(a, b *head[T]) int { return s.kind.Compare(a.v, b.v) })
			heads = slices.Insert(heads, at, h)
			return nil
		}
		for _, run := range s.sorted() {
			if err := push(&head[T]{next: run}); err != nil {
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

// sorted are all runs: those of the file, and what is in memory, of which each processor sorts a part.
func (s *Spool[T]) sorted() (runs []func(*T) error) {
	begin := int64(0)
	for _, end := range s.runs {
		from := bufio.NewReaderSize(io.NewSectionReader(s.file, begin, end-begin), 1<<16)
		runs = append(runs, func(v *T) error { return s.kind.Read(from, v) })
		begin = end
	}
	var group sync.WaitGroup
	defer group.Wait()
	for part := range slices.Chunk(s.recent, max(1, len(s.recent)/runtime.GOMAXPROCS(0)+1)) {
		group.Go(func() { slices.SortFunc(part, s.kind.Compare) })
		runs = append(runs, func(v *T) error {
			if len(part) == 0 {
				return io.EOF
			}
			*v, part = part[0], part[1:]
			return nil
		})
	}
	return runs
}

// Close lets go of all.
func (s *Spool[T]) Close() {
	if s.file != nil {
		s.file.Close()
		os.Remove(s.file.Name())
	}
	*s = Spool[T]{kind: s.kind}
}
