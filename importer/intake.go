package importer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"leadferry/checkpoint"
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
	name   leadName                   // of the queue that it is in
}

// items gives out rooms for rows, and takes them back when nobody looks at their row
// any more: else most of a run's memory would be garbage.
type items struct{ pool sync.Pool }

func (s *items) get(input int) *item {
	it, ok := s.pool.Get().(*item)
	if !ok {
		return &item{input: input}
	}
	// Cells and content are rooms that the next row fills again.
	*it = item{input: input, row: source.Row{Cells: it.row.Cells}, rec: mapping.Record{Content: it.rec.Content[:0]}}
	return it
}

func (s *items) put(it *item) { s.pool.Put(it) }

// fault is why a row is invalid: check by check, and as one sentence.
type fault struct {
	problems []mapping.Problem
	text     string
}

func faulty(ps ...mapping.Problem) *fault { return &fault{ps, sentence(ps)} }

// left is how a row ends that has nothing to plan, or nil.
func (it *item) left() *result {
	switch {
	case it.fault != nil:
		return &result{outcome: Invalid, text: it.fault.text}
	case it.row.Repeats:
		return &result{outcome: Skipped, text: "it is the header once more"}
	case it.rec.Skip:
		return &result{outcome: Skipped, text: "left out by skip_if"}
	}
	return nil
}

// batch is a run of rows in file order; err, if set, says why no more follow.
type batch struct {
	items []*item
	err   error
	at    int // the next row that is not taken yet
}

// intake turns files into Records, in file order, ahead of the engine. It is the
// only goroutine that touches the sources.
type intake struct {
	inputs    []*source.File
	mapping   *mapping.Mapping
	digests   *digester // nil: none wanted
	fields    bool      // digests by field are wanted
	runID     string
	limit     int  // rows of all inputs together; 0 = all
	keepGoing bool // an input that is lost in its middle does not end the run
	items     items

	names    []string
	bindings map[*source.Header]*mapping.Binding
	doubts   []mapping.Error // what is told of the mapping beside the inputs' headers
	unused   []string        // columns that nothing uses, in their order, as far as they were seen
	idle     map[string]bool // the same
	lost     []report.Fault  // tough: inputs that could not be read to their end
}

// run reads until the inputs or the limit end, or ctx does, and closes out. Reading,
// making records and making their digests take about as long as one another, so each
// has a goroutine.
func (r *intake) run(ctx context.Context, out chan<- *batch) {
	reading, enough := context.WithCancel(ctx)
	read, made := make(chan *batch, 2), make(chan *batch, 2)
	var group sync.WaitGroup
	group.Go(func() {
		defer enough() // nobody reads on for a mapping that does not fit
		r.stage(ctx, read, made, r.record)
	})
	group.Go(func() { r.stage(ctx, made, out, r.digest) })
	r.read(reading, read)
	group.Wait()
}

// stage does something with the rows of each batch on its way. An error, which is one of
// a row's file, ends the way.
func (r *intake) stage(ctx context.Context, in <-chan *batch, out chan<- *batch, do func(*item) error) {
	defer close(out)
	for b := range in {
		for i, it := range b.items {
			if err := r.guard(it, do); err != nil {
				b.items, b.err = b.items[:i], err
				break
			}
		}
		last := b.err != nil // the batch is the next one's once it is sent
		select {
		case out <- b:
		case <-ctx.Done():
			return
		}
		if last {
			return
		}
	}
}

// guard calls do, whose panic is an error of the row.
func (r *intake) guard(it *item, do func(*item) error) (err error) {
	defer func() {
		if err != nil {
			err = r.located(it, err)
		}
	}()
	defer crash.Recover(&err)
	return do(it)
}

// located adds the row's place to a fault of the program.
func (r *intake) located(it *item, err error) error {
	if fault := (*crash.Error)(nil); errors.As(err, &fault) {
		return fmt.Errorf("%s:%d: %w", r.names[it.input], it.row.Line, err)
	}
	return err
}

func (r *intake) read(ctx context.Context, out chan<- *batch) {
	defer close(out)
	b, size := &batch{}, 0
	send := func() bool {
		select {
		case out <- b:
			size = 0
			b = &batch{items: make([]*item, 0, batchRows)}
			return true
		case <-ctx.Done():
			return false
		}
	}
	read := 0
	for i, f := range r.inputs {
		for r.limit == 0 || read < r.limit {
			it, err := r.next(i, f)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil && ctx.Err() != nil {
				return
			}
			if err != nil && r.keepGoing {
				r.lose(i, err)
				break
			}
			if err != nil {
				b.err = err
				send()
				return
			}
			read++
			b.items = append(b.items, it)
			size += it.row.Size
			if (len(b.items) == batchRows || size >= batchBytes) && !send() {
				return
			}
		}
	}
	if len(b.items) > 0 {
		send()
	}
}

// lose notes that an input could not be read to its end.
func (r *intake) lose(input int, err error) {
	f := report.Fault{File: r.names[input], Error: err.Error(), Hint: "the rows after that place were not checked"}
	var at *source.LostError
	if errors.As(err, &at) {
		f.Line, f.Error = at.Line, at.Text
	}
	r.lost = append(r.lost, f)
}

func (r *intake) place(at spot) report.Place {
	return report.Place{File: r.names[at.input], Line: at.line}
}

func (r *intake) next(input int, f *source.File) (*item, error) {
	it := r.items.get(input)
	return it, crash.Call(func() error { return f.Next(&it.row) })
}

// record maps a row. What is wrong with the row is its fault; an error is one of its file.
func (r *intake) record(it *item) error {
	if p := it.row.Problem; p != nil {
		it.fault = faulty(mapping.Problem{Rule: p.Code, Text: p.Text})
		return nil
	}
	b, err := r.binding(r.names[it.input], it.row.Header)
	if err != nil {
		return err
	}
	if ps := faultsOf(&it.row, b); ps != nil {
		it.fault = faulty(ps...)
		return nil
	}
	it.row.Text = "" // all that matters could be taken
	if it.row.Repeats {
		it.rec.Skip = true
		return nil
	}
	env := mapping.Env{File: r.names[it.input], Line: it.row.Line, Run: r.runID}
	ps := b.Map(it.row.Cells, env, &it.rec)
	if it.row.Size > largeRow {
		it.detach()
	}
	switch {
	case ps != nil:
		it.fault = faulty(ps...)
	case it.rec.Skip:
	case len(it.rec.Key) > checkpoint.MaxKey:
		it.fault = faulty(mapping.Problem{Rule: "key", Text: fmt.Sprintf("the key is longer than %d bytes", checkpoint.MaxKey)})
	case len(it.rec.ExternalID) > checkpoint.MaxKey:
		it.fault = faulty(mapping.Problem{Rule: "external_id", Text: fmt.Sprintf("the ExternalID is longer than %d bytes", checkpoint.MaxKey)})
	}
	return nil
}

// detach makes texts of their own of those that the run or the checkpoint may remember
// longer than the row: a key that is a part of the row's text would keep all of it.
func (it *item) detach() {
	rec := &it.rec
	for _, text := range []*string{&rec.Key, &rec.LeadID, &rec.ExternalID, &rec.Organization, &rec.Locator, &rec.Status} {
		*text = strings.Clone(*text)
	}
}

// faultsOf are the faults of a row's cells in columns that the mapping uses.
func faultsOf(row *source.Row, b *mapping.Binding) (ps []mapping.Problem) {
	for _, f := range row.Faults {
		if b.Uses(f.Column) {
			ps = append(ps, mapping.Problem{Rule: f.Code, Text: f.Text})
		}
	}
	return ps
}

// digest makes what the planner compares.
func (r *intake) digest(it *item) error {
	switch {
	case r.digests == nil || it.fault != nil || it.rec.Skip:
	case r.fields:
		r.digests.ofContent(it)
	default:
		r.digests.ofRequest(it)
	}
	return nil
}

// sentence joins the problems of a row.
func sentence(ps []mapping.Problem) string {
	var b strings.Builder
	for i, p := range ps {
		if i > 0 {
			b.WriteString("; ")
		}
		if p.Column != "" {
			fmt.Fprintf(&b, "column %s: ", p.Column)
		}
		b.WriteString(p.Text)
	}
	return b.String()
}

const (
	maxBindings = 1024 // kept for JSONL, whose rows may all differ in shape
	maxUnused   = 1000 // columns kept for the same reason
)

// bind checks the mapping against the header of every input, before anything is sent.
// Its error has a *Misfit for each input that lacks columns.
func (r *intake) bind() error {
	r.bindings, r.idle = map[*source.Header]*mapping.Binding{}, map[string]bool{}
	var all []error
	for _, f := range r.inputs {
		path := f.Info().Path
		r.names = append(r.names, path)
		b, err := r.binding(path, f.Header())
		var missing mapping.Errors
		if errors.As(err, &missing) {
			err = r.misfit(path, f.Header(), missing)
		}
		all = append(all, err)
		for _, w := range b.Warnings() {
			if !slices.Contains(r.doubts, w) {
				r.doubts = append(r.doubts, w)
			}
		}
	}
	return errors.Join(all...)
}

func (r *intake) misfit(path string, h *source.Header, missing mapping.Errors) error {
	m := &Misfit{File: path, Mapping: missing[0].File, Missing: missing, Columns: h.Names[:h.Own]}
	// What the mapping uses of the file shows where columns may be missing.
	if b, err := r.mapping.Bind(path, mapping.Columns{Names: h.Names, Own: h.Own, Open: true}); err == nil {
		m.Strange = len(b.Unused()) == h.Own
	}
	return m
}

func (r *intake) binding(path string, h *source.Header) (*mapping.Binding, error) {
	if b := r.bindings[h]; b != nil {
		return b, nil
	}
	b, err := r.mapping.Bind(path, mapping.Columns{Names: h.Names, Own: h.Own, Open: h.Open})
	if err != nil {
		return nil, err
	}
	if len(r.bindings) >= maxBindings {
		clear(r.bindings)
	}
	r.bindings[h] = b
	r.noteUnused(b.Unused())
	return b, nil
}

func (r *intake) noteUnused(names []string) {
	for _, name := range names {
		if len(r.unused) == maxUnused {
			return
		}
		if !r.idle[name] {
			r.idle[name] = true
			r.unused = append(r.unused, name)
		}
	}
}
