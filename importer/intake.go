package importer

import (
	"cmp"
	"context"
	"errors"
	"io"
	"math"
	"runtime"
	"slices"
	"sync"

	"leadferry/checkpoint"
	"leadferry/importer/findings"
	"leadferry/importer/report"
	"leadferry/importer/source"
	"leadferry/internal/crash"
	"leadferry/mapping"
)

// batchRows is how many rows travel together from the reader to the engine, and
// batchBytes how many bytes of the file, where rows are large.
const (
	batchRows  = 128
	batchBytes = 1 << 20
)

// largeRow is how many bytes of the file a row takes of which nothing may keep all.
const largeRow = 1 << 10

// item is one row on its way through the engine.
type item struct {
	input  int // which of the run's files
	row    source.Row
	rec    mapping.Record
	fault  *fault                     // why the row is invalid, or nil
	digest checkpoint.Digest          // see digester
	sums   []checkpoint.ContentDigest // see digester
	late   bool                       // it was put off to the end of the run
}

// items gives out rooms for rows, and takes them back when nobody looks at their row
// any more: else most of a run's memory would be garbage. There are never more than were under
// way at once.
type items struct {
	ready []*item // the reader's alone, who takes all that came back at once

	mu   sync.Mutex
	back []*item
}

// get gives a room to the one goroutine that reads. The row and the Record of whoever had it
// before are still there: the next ones take their place.
func (s *items) get(input int) *item {
	if len(s.ready) == 0 {
		s.mu.Lock()
		s.ready, s.back = s.back, s.ready
		s.mu.Unlock()
	}
	last := len(s.ready) - 1
	if last < 0 {
		return &item{input: input}
	}
	it := s.ready[last]
	s.ready = s.ready[:last]
	it.input, it.fault, it.digest, it.sums, it.late = input, nil, checkpoint.Digest{}, nil, false
	return it
}

// put takes rooms back, but for those of large rows, whose text would stay with them.
func (s *items) put(its ...*item) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, it := range its {
		if it.row.Size <= largeRow {
			s.back = append(s.back, it)
		}
	}
}

// forget empties the Record, but for the room of its lists.
func (it *item) forget() {
	rec := &it.rec
	*rec = mapping.Record{Content: rec.Content[:0], Dropped: rec.Dropped[:0], Caught: rec.Caught[:0]}
}

// fault is why a row is invalid: check by check, and as one sentence.
type fault struct {
	problems []mapping.Problem
	text     string
}

func faulty(ps ...mapping.Problem) *fault { return &fault{ps, sentence(ps)} }

// left is how a row ends that has nothing to plan, or nil.
func (it *item) left() *ending {
	switch {
	case it.fault != nil:
		return &ending{outcome: Invalid, text: it.fault.text}
	case it.row.Repeats:
		return &ending{outcome: Skipped, text: "it is the header once more"}
	case it.rec.Skip:
		return &ending{outcome: Skipped, text: "left out by skip_if"}
	}
	return nil
}

// batch is a run of rows in file order; err, if set, says why no more follow.
type batch struct {
	items []*item
	size  int  // bytes of the file
	early bool // no more rows come for a while
	err   error
	made  chan struct{}      // closed when its Records are made
	bound []*mapping.Binding // to headers that its maker has not met before
}

// gather adds the batches that wait behind b, up to most rows.
func (b *batch) gather(in <-chan *batch, most int) {
	for b.err == nil && len(b.items) < most {
		select {
		case next, more := <-in:
			if !more {
				return
			}
			b.items, b.err = append(b.items, next.items...), next.err
		default:
			return
		}
	}
}

// intake turns files into Records, in file order, ahead of the engine. One goroutine
// reads the sources; as many as there are processors make Records and digests, each of a
// batch at a time.
type intake struct {
	options   *Options
	sums      sums // nil: no digests are wanted
	fields    bool // digests by field are wanted
	caught    bool // texts are wanted that maps lack and else takes
	sharding  sharding
	keepGoing bool // an input that is lost in its middle does not end the run
	items     items

	names    []string
	bindings map[*source.Header]*mapping.Binding // of the inputs' own headers
	doubts   []mapping.Error                     // what is told of the mapping beside the inputs' headers
	unused   []string                            // columns that nothing uses, in their order, as far as they were seen
	idle     map[string]bool                     // the same
	lost     []report.Fault                      // inputs that could not be read to their end, where keepGoing
}

// maxMakers is how many goroutines make Records at most: they wait for the one that reads
// then.
const maxMakers = 8

// run reads until the inputs or the limit end, or ctx does, and closes out. Nobody reads on
// for a mapping that does not fit.
func (r *intake) run(ctx context.Context, out chan<- *batch) {
	makers := min(runtime.GOMAXPROCS(0), maxMakers)
	reading, enough := context.WithCancel(ctx)
	unmade, inOrder := make(chan *batch, makers), make(chan *batch, makers+2)
	var group sync.WaitGroup
	defer group.Wait()
	defer enough()
	defer close(out)
	for range makers {
		group.Go(func() { r.newMaker().run(unmade) })
	}
	group.Go(func() {
		defer close(unmade)
		defer close(inOrder)
		r.read(reading, func(b *batch) bool {
			b.made = make(chan struct{})
			return handed(reading, inOrder, b) && handed(reading, unmade, b)
		})
	})
	r.handOver(ctx, inOrder, out)
}

// handOver hands batches on in file order, each once its Records are made. Of a shard it gathers rows until they are worth
// a look-up.
func (r *intake) handOver(ctx context.Context, inOrder <-chan *batch, out chan<- *batch) {
	var few *batch
	for b := range inOrder {
		select {
		case <-b.made:
		case <-ctx.Done():
			return
		}
		for _, b := range b.bound {
			r.noteUnused(b)
		}
		if few != nil {
			b.items = append(few.items, b.items...)
		}
		if few = nil; len(b.items) < batchRows && b.err == nil && !b.early && r.sharding.Of > 1 {
			few = b
			continue
		}
		last := b.err != nil // the batch is the next one's once it is handed over
		if !handed(ctx, out, b) || last {
			return
		}
	}
	if few != nil {
		handed(ctx, out, few)
	}
}

// handed hands a batch over, unless ctx ends before somebody takes it.
func handed(ctx context.Context, to chan<- *batch, b *batch) bool {
	select {
	case to <- b:
		return true
	case <-ctx.Done():
		return false
	}
}

// read hands on the rows of all inputs, batch by batch, as long as somebody takes them; of a stream that pauses what there is.
func (r *intake) read(ctx context.Context, hand func(*batch) bool) {
	left := cmp.Or(r.options.Limit, math.MaxInt)
	b := &batch{}
	handOn := func() (taken bool) {
		left -= len(b.items)
		taken, b = hand(b), &batch{}
		return taken
	}
	for _, in := range r.options.Inputs {
		in.OnPause(func() {
			if b.early = true; len(b.items) > 0 && ctx.Err() == nil {
				handOn()
			}
		})
	}
	for at := 0; at < len(r.options.Inputs) && left > 0; {
		var err error
		at, err = r.fill(ctx, &b, at, &left)
		if ctx.Err() != nil { // the error may be that of an input which was closed to end the reading
			return
		}
		b.err = err
		if (err != nil || len(b.items) > 0) && !handOn() || err != nil {
			return
		}
	}
}

// fill reads the rows of a batch, from the input at a place on, and returns the place at which to go on. Another batch takes
// its place while an input pauses.
func (r *intake) fill(ctx context.Context, b **batch, at int, left *int) (int, error) {
	for ; at < len(r.options.Inputs); at++ {
		err := crash.Call(func() error {
			for len((*b).items) < min(batchRows, *left) && (*b).size < batchBytes {
				it := r.items.get(at)
				if err := r.options.Inputs[at].Next(&it.row); err != nil {
					return err
				}
				(*b).items, (*b).size = append((*b).items, it), (*b).size+it.row.Size
			}
			return nil
		})
		switch {
		case err == nil:
			return at, nil
		case errors.Is(err, io.EOF):
		case r.keepGoing && ctx.Err() == nil:
			r.lose(at, err)
		default:
			return at, err
		}
	}
	return at, nil
}

// lose notes that an input could not be read to its end.
func (r *intake) lose(input int, err error) {
	f := report.Fault{File: r.names[input], Error: err.Error(), Hint: "the rows after that place were not checked"}
	if at, is := errors.AsType[*source.LostError](err); is {
		f.Line, f.Error = at.Line, at.Text
		if at.Hint != "" {
			f.Hint = at.Hint + "; " + f.Hint
		}
	}
	r.lost = append(r.lost, f)
}

func (r *intake) place(at findings.Spot) report.Place {
	return report.Place{File: r.names[at.Input], Line: at.Line}
}

func spotOf(it *item) findings.Spot {
	return findings.Spot{Input: it.input, Line: it.row.Line, Number: it.row.Number}
}

// maxUnused is how many columns that nothing uses are kept: rows of JSONL may all have
// others.
const maxUnused = 1000

// bind checks the mapping against the header of every input, before anything is sent.
func (r *intake) bind() error {
	r.bindings, r.idle = map[*source.Header]*mapping.Binding{}, map[string]bool{}
	var all []error
	for _, f := range r.options.Inputs {
		path := f.Info().Path
		r.names = append(r.names, path)
		b, err := bindTo(r.options.Mapping, path, f.Header())
		if missing, is := errors.AsType[mapping.Errors](err); is {
			err = r.misfit(f, missing)
		}
		if all = append(all, err); err == nil {
			r.bindings[f.Header()] = b
			r.noteUnused(b)
		}
		for _, w := range b.Warnings() {
			if !slices.Contains(r.doubts, w) {
				r.doubts = append(r.doubts, w)
			}
		}
	}
	return errors.Join(all...)
}

func (r *intake) noteUnused(b *mapping.Binding) {
	for _, name := range b.Unused() {
		if len(r.unused) == maxUnused {
			return
		}
		if !r.idle[name] {
			r.idle[name] = true
			r.unused = append(r.unused, name)
		}
	}
}
