package importer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"sync"

	"github.com/cespare/xxhash/v2"
	"github.com/dustin/go-humanize/english"

	"leadferry/checkpoint"
	"leadferry/importer/findings"
	"leadferry/importer/report"
	"leadferry/importer/source"
	"leadferry/internal/crash"
	"leadferry/internal/rowkey"
	"leadferry/internal/spelling"
	"leadferry/mapping"
)

// batchRows is how many rows a batch has at most, batchBytes how many bytes of the file. A batch is looked up in one
// read, which is a round trip for a database: in a fleet it has more rows, of which the worker keeps its part.
const (
	batchRows  = 256
	fleetRows  = 8 * batchRows // in a fleet
	batchBytes = 1 << 20
)

// largeRow is the size of rows, in bytes, whose memory is not used again.
const largeRow = 1 << 10

// item is one row on its way through the engine.
type item struct {
	input  int // which of the run's files
	row    source.Row
	rec    mapping.Record
	faults []mapping.Problem          // the checks that the row fails; nil: it is valid
	digest checkpoint.Digest          // see digester
	sums   []checkpoint.ContentDigest // see digester
	late   bool                       // it was put off, or drawn: it was counted as read
	again  bool                       // it was decided once more, or put off for others to settle it: no third time

	by      checkpoint.Match    // how its entry was found
	alike   checkpoint.Likeness // if no lead was found: a key that looks like the row's
	taken   checkpoint.Likeness // import: the row that has its ExternalID, or will get it
	mayLack bool                // the checkpoint is incomplete and may have lost a lead of the row
	result                      // its entry is what is known of its lead, and in the end what was settled
}

// lend returns memory for a row. The rows that give it back save a run most of its garbage.
func (r *intake) lend(input int) *item {
	it, _ := r.items.Get().(*item)
	if it == nil {
		return &item{input: input}
	}
	it.input, it.faults, it.digest, it.sums, it.late, it.again = input, nil, checkpoint.Digest{}, nil, false, false
	return it
}

// giveBack takes back the memory of rows, except large ones.
func (r *intake) giveBack(its []*item) {
	for _, it := range its {
		if it.row.Size <= largeRow {
			r.items.Put(it)
		}
	}
}

// batch is some rows in file order. If err is set, no more follow.
type batch struct {
	items []*item
	size  int // bytes of the file
	err   error
	made  chan struct{}      // closed when its Records are made
	bound []*mapping.Binding // to headers that are new to their maker
}

func newBatch() *batch { return &batch{items: make([]*item, 0, batchRows), made: make(chan struct{})} }

// intake turns files into Records, in file order, ahead of the engine: one goroutine reads, others map batches.
type intake struct {
	options *Options
	sums    sums // nil: no digests are wanted
	fields  bool // digests by field are wanted
	caught  bool // note texts that a map lacks and its else takes
	items   sync.Pool

	paths    []string
	bindings map[*source.Header]*mapping.Binding // to the inputs' headers
	doubts   []mapping.Error                     // warnings of the mapping about these headers
	unused   []string                            // columns that the mapping does not use
}

// run reads until the inputs, the limit or ctx end, and closes out. Batches come in file order, maybe not mapped yet.
func (r *intake) run(ctx context.Context, out chan<- *batch) {
	makers := sync.Pool{New: func() any { return r.newMaker() }}
	var group sync.WaitGroup
	defer group.Wait()
	defer close(out)
	r.read(ctx, func(b *batch) (taken bool) {
		group.Go(func() {
			m := makers.Get().(*recordMaker)
			m.make(b)
			makers.Put(m)
		})
		select {
		case out <- b:
			return true
		case <-ctx.Done():
			return false
		}
	})
}

// read hands on the rows of all inputs in batches, while hand takes them.
func (r *intake) read(ctx context.Context, hand func(*batch) bool) {
	left, b := cmp.Or(r.options.Limit, math.MaxInt), newBatch()
	rows := min(batchRows*max(r.options.Shard.Of, 1), fleetRows)
	handOn := func() (taken bool) {
		taken, b = hand(b), newBatch()
		return taken
	}
	for at, in := range r.options.Inputs {
		var err error
		for ; left > 0; left-- {
			it := r.lend(at)
			if err = crash.Call(func() error { return in.Next(&it.row) }); err != nil {
				break
			}
			b.items, b.size = append(b.items, it), b.size+it.row.Size
			if (len(b.items) == rows || b.size >= batchBytes) && !handOn() {
				return
			}
		}
		switch {
		case err == nil, errors.Is(err, io.EOF):
		case ctx.Err() != nil: // the input may have been closed to end the read
			return
		default:
			b.err = err
			handOn()
			return
		}
	}
	if len(b.items) > 0 {
		handOn()
	}
}

func (r *intake) place(at findings.Spot) report.Place {
	return report.Place{File: r.paths[at.Input], Line: at.Line, Row: at.Number}
}

func spotOf(it *item) findings.Spot {
	return findings.Spot{Input: it.input, Line: it.row.Line, Number: it.row.Number}
}

// maxUnused is how many unused columns are kept. Rows of JSONL may all have others.
const maxUnused = 1000

// bind checks the mapping against the header of every input, before anything is sent.
func (r *intake) bind() error {
	r.bindings = map[*source.Header]*mapping.Binding{}
	var all []error
	for _, f := range r.options.Inputs {
		r.paths = append(r.paths, f.Info().Path)
		b, err := bindTo(r.options.Mapping, f.Info().Path, f.Header())
		if missing, is := errors.AsType[mapping.Errors](err); is {
			err = r.misfit(f, missing)
		}
		if all = append(all, err); err == nil {
			r.bindings[f.Header()] = b
			r.noteUnused(b)
		}
		for i := 0; b != nil && i < len(b.Warnings); i++ {
			if !slices.Contains(r.doubts, b.Warnings[i]) {
				r.doubts = append(r.doubts, b.Warnings[i])
			}
		}
	}
	return errors.Join(all...)
}

func (r *intake) noteUnused(b *mapping.Binding) {
	for _, name := range b.Unused {
		if len(r.unused) < maxUnused && !slices.Contains(r.unused, name) {
			r.unused = append(r.unused, name)
		}
	}
}

// How much of a misfit is shown: places, columns, characters of a column's name.
const mostMissing, mostColumns, longColumn = 5, 8, 30

// misfit is the error for an input without columns that the mapping names: the first places.
func (r *intake) misfit(f *source.File, missing mapping.Errors) error {
	path, h, names := f.Info().Path, f.Header(), missing[0].File
	columns := h.Names[:h.Own]
	if r.options.LooksLikeRow != nil && r.options.LooksLikeRow(columns, firstRows(f)) {
		// the columns may be people's data: they are not shown
		return fmt.Errorf("%s: what was taken for its header looks like a row, and does not fit %s\n"+
			"hint: a file without a header needs source: {header: false, columns: [...]} in the mapping, with names "+
			"for its %s; leadferry init writes them", path, names, english.Plural(len(columns), "column", ""))
	}
	var err error = missing
	if more := len(missing) - mostMissing; more > 0 {
		err = fmt.Errorf("%w\n%s: lacks columns that %s names in %d more places\n"+
			"hint: is it the right file, and is its header on this line?", missing[:mostMissing], path, names, more)
	}
	if sheets := f.Info().Sheets; len(sheets) > 0 {
		err = fmt.Errorf("%w\nhint: the workbook also holds the sheets %s: choose one with --sheet NAME", err,
			spelling.List(sheets, mostColumns, nil))
	}
	return err
}

// firstRows are the cells of a file's first rows; none for standard input, which may have to be waited for.
func firstRows(f *source.File) (rows [][]string) {
	const most = 100
	if f.Info().Path == "-" || f.Header().Open {
		return nil
	}
	for _, row := range f.ReadAhead(most) {
		if row.Problem == nil {
			rows = append(rows, row.Cells[:f.Header().Own])
		}
	}
	return rows
}

func quoted(names []string) string {
	return spelling.List(names, mostColumns, func(name string) string {
		return `"` + report.Shorten(name, longColumn) + `"`
	})
}

// Shard is the part of the input that a worker takes: part Index (from 0) of Of parts. The zero Shard is all of it.
type Shard struct{ Index, Of int }

var errManyIdentities = errors.New("the rows of this mapping may find their lead by several values, so that workers " +
	"of a fleet could meet at one lead\n" +
	"hint: a mapping can be sharded that has lead_id alone, or key where external_id is the same text or not given")

// takes reports whether a row is this worker's. All rows of a lead, and all keys that look alike, go to the same one:
// the part is the hash of what identifies the lead, byLeadID its ID alone. Rows without that are divided by their
// place. All versions of the program must agree.
func (s Shard) takes(it *item, byLeadID bool) bool {
	if s.Of <= 1 {
		return true
	}
	var place uint64
	switch {
	case it.faults != nil || it.rec.Skip:
		place = uint64(it.input + it.row.Number)
	case byLeadID && it.rec.LeadID != "":
		place = xxhash.Sum64String(it.rec.LeadID)
	default:
		place = xxhash.Sum64String(rowkey.Fold(it.rec.Key))
	}
	return int(place%uint64(s.Of)) == s.Index
}
