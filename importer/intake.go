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

	"leadferry/checkpoint"
	"leadferry/importer/report"
	"leadferry/importer/source"
	"leadferry/internal/crash"
	"leadferry/mapping"
)

// A batch has at most batchRows rows, and ends once they take batchBytes. One read looks up a whole batch: that is one
// round trip to a database. In a fleet a batch has more rows, because each worker keeps only its part of them.
const (
	batchRows  = 256
	fleetRows  = 8 * batchRows // in a fleet
	batchBytes = 1 << 20
	largeRow   = 1 << 10 // bytes: larger rows, or those of 200 cells and fields, are not used again
)

// batch is some rows in file order. If err is set, no more follow.
type batch struct {
	items  []*item
	size   int // bytes that the rows take, about
	err    error
	mapped chan struct{} // closed when its Records are made
}

// newBatch returns an empty batch. Behind its end there may be old items to use again, see reuse.
func (r *intake) newBatch() *batch {
	b := &batch{mapped: make(chan struct{})}
	select {
	case b.items = <-r.over:
	default: // next makes new ones
	}
	return b
}

// next adds an item to the batch, for the caller to fill. It may still hold an earlier row.
func (b *batch) next() *item {
	n := len(b.items)
	b.items = slices.Grow(b.items, 1)[:n+1]
	if b.items[n] == nil {
		b.items[n] = new(item)
	}
	return b.items[n]
}

// intake turns files into Records, in file order, ahead of the engine: one goroutine reads, others map batches.
type intake struct {
	options *Options
	digest  func(*item)  // requestDigest or, for a sync, contentDigests (run.keepIn); nil: none
	caught  bool         // note texts that a map lacks and its else takes
	over    chan []*item // rows that have ended, whose memory is used again

	paths    []string
	bindings map[*source.Header]*mapping.Binding
	header   *source.Header // of the last row
	binding  *mapping.Binding
	doubts   []mapping.Error // what the mapping warns of in the inputs' headers
	unused   []string        // columns that the mapping does not use
	lacking  []string        // columns of the mapping that none of the first JSON objects has
}

// run reads until the inputs, the limit or ctx end, and closes out. Batches come in file order, maybe not mapped yet.
func (r *intake) run(ctx context.Context, out chan<- *batch) {
	var group sync.WaitGroup
	defer group.Wait()
	defer close(out)
	left, b := cmp.Or(r.options.Limit, math.MaxInt), r.newBatch()
	rows := min(batchRows*max(2*r.options.Shard.Of, 1), fleetRows)
	handOn := func() (taken bool) {
		full := b
		b = r.newBatch()
		group.Go(func() { r.mapBatch(full) })
		select {
		case out <- full:
			return true
		case <-ctx.Done():
			return false
		}
	}
	for at, in := range r.options.Inputs {
		var err error
		for ; left > 0; left-- {
			it := b.next()
			it.input = at
			if err = crash.Call(func() error { return r.readRow(in, it) }); err != nil {
				b.items = b.items[:len(b.items)-1]
				break
			}
			b.size += it.row.Size
			if (len(b.items) == rows || b.size >= batchBytes) && !handOn() {
				return
			}
		}
		if err != nil && !errors.Is(err, io.EOF) {
			b.err = err
			break
		}
	}
	// once the run ends, an error may only say that the input was closed to end the read
	if ctx.Err() == nil && (len(b.items) > 0 || b.err != nil) {
		handOn()
	}
}

func (r *intake) readRow(in *source.File, it *item) (err error) {
	if err := in.Next(&it.row); err != nil {
		return err
	}
	if h := it.row.Header; it.row.Problem == nil && h != r.header {
		r.header = h
		r.binding, err = r.bindTo(in, h)
	}
	it.binding = r.binding
	return err
}

// reuse keeps the memory of rows that have ended for new rows. That saves a run most of its garbage.
func (r *intake) reuse(rows []*item) {
	large := func(it *item) bool { return it.row.Size > largeRow || cap(it.row.Cells)+cap(it.rec.Content) > 200 }
	if rows = slices.DeleteFunc(rows, large); len(rows) > 0 {
		select {
		case r.over <- rows[:0]:
		default: // there are enough
		}
	}
}

// mapBatch maps the rows of a batch, and leaves out those of other workers. A panic becomes the error of the batch.
func (r *intake) mapBatch(b *batch) {
	defer close(b.mapped)
	mine, others := b.items[:0], []*item(nil) // mine overwrites rows that the loop has passed
	var under *item
	err := crash.Call(func() error {
		for _, under = range b.items {
			r.mapRow(under)
			if !r.options.Shard.Has(&under.rec, under.input+under.row.Number) {
				others = append(others, under)
				continue
			}
			if r.digest != nil && under.faults == nil && !under.rec.Skip {
				r.digest(under)
			}
			mine = append(mine, under)
		}
		r.reuse(others)
		return nil
	})
	if err != nil {
		b.err = fmt.Errorf("%s:%d: %w", r.paths[under.input], under.row.Line, err)
	}
	b.items = mine
}

// mapRow clears what an earlier row left, and fills rec (Binding.Map) or faults.
func (r *intake) mapRow(it *item) {
	input, read, binding, content := it.input, it.row, it.binding, it.rec.Content[:0]
	*it = item{} // in place: an item is too large to copy
	it.input, it.row, it.binding, it.rec.Content = input, read, binding, content
	row, rec := &it.row, &it.rec
	if p := row.Problem; p != nil {
		it.faults = []mapping.Problem{{Rule: p.Code, Text: p.String()}}
		return
	}
	nameless := false
	for _, f := range row.Faults {
		if it.binding.Uses[f.Column] {
			it.faults = append(it.faults, mapping.Problem{Rule: f.Code, Text: f.String()})
			nameless = nameless || it.binding.Names[f.Column]
		}
	}
	if rec.Skip = row.Repeats && it.faults == nil; nameless || rec.Skip {
		return
	}
	problems := it.binding.Map(row.Cells, mapping.Env{
		File: r.paths[it.input], Line: row.Line, Run: r.options.RunID, Caught: r.caught, OneLine: row.OneLine,
		Shard: r.options.Shard, Place: it.input + row.Number, Key: row.Key,
	}, rec)
	if it.faults != nil { // skip_if may have used a cell that cannot be read
		rec.Skip = false
	} else {
		it.faults, row.Text = problems, "" // Text is needed only for cells that cannot be read
	}
	if row.Size > largeRow {
		rec.Detach()
	}
}

// requestDigest returns the digest of what the row sends, without volatile keys. It makes it only once.
func (it *item) requestDigest(d *checkpoint.Digester) checkpoint.Digest {
	if it.digest == (checkpoint.Digest{}) {
		it.digest = d.Sum(it.rec.AppendFingerprint(make([]byte, 0, 512)))
	}
	return it.digest
}

// contentDigests returns the digests of the row's content, without volatile fields. It makes them only once.
func (it *item) contentDigests(d *checkpoint.Digester) []checkpoint.ContentDigest {
	if it.content == nil {
		it.content = make([]checkpoint.ContentDigest, 0, len(it.rec.Content))
		for i := range it.rec.Content {
			if f := &it.rec.Content[i]; !f.Volatile {
				value := d.SumValue(f.Name, f.Canonical())
				it.content = append(it.content, checkpoint.ContentDigest{Name: d.SumName(f.Name), Value: value})
			}
		}
	}
	return it.content
}

// maxBindings limits the bindings that are kept, maxUnused the unused columns: each JSONL row may have other columns.
const maxBindings, maxUnused = 1024, 1000

func (r *intake) bindTo(in *source.File, h *source.Header) (*mapping.Binding, error) {
	if b := r.bindings[h]; b != nil {
		return b, nil
	}
	columns := mapping.Columns{Names: h.Names, Own: h.Own, Open: h.Open}
	b, err := r.options.Mapping.Bind(in.Info().Path, columns)
	if err != nil {
		return b, err
	}
	if len(r.bindings) >= maxBindings {
		clear(r.bindings)
	}
	r.bindings[h] = b
	for _, name := range b.Unused {
		if len(r.unused) < maxUnused && !slices.Contains(r.unused, name) {
			r.unused = append(r.unused, name)
		}
	}
	return b, nil
}

func (r *intake) place(it *item) report.Place {
	return report.Place{File: r.paths[it.input], Line: it.row.Line, Row: it.row.Number}
}

// bind checks the mapping against the header of every input, before anything is sent.
func (r *intake) bind() error {
	r.bindings, r.lacking = map[*source.Header]*mapping.Binding{}, r.options.Mapping.Columns()
	var all []error
	for _, f := range r.options.Inputs {
		r.paths = append(r.paths, f.Info().Path)
		b, err := r.bindTo(f, f.Header())
		all = append(all, err)
		r.lacking = f.Lacks(r.lacking)
		for i := 0; b != nil && i < len(b.Warnings); i++ {
			if !slices.Contains(r.doubts, b.Warnings[i]) {
				r.doubts = append(r.doubts, b.Warnings[i])
			}
		}
	}
	return errors.Join(all...)
}

func (o *Options) inputShapes() (shapes []checkpoint.Shape) {
	for _, f := range o.Inputs {
		in := f.Info()
		shapes = append(shapes, checkpoint.Shape{
			Columns: checkpoint.Map(f.Columns(), mapping.ColumnName), Key: o.Mapping.KeyIn(in.Format, in.Encoding),
			Namespace: o.Mapping.Namespace(), Path: in.Path, Rejects: f.IsRejects(),
		})
	}
	return shapes
}
