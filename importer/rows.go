package importer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"leadferry/checkpoint"
	"leadferry/importer/source"
	"leadferry/mapping"
)

// batchRows is how many rows travel together from the reader to the engine.
const batchRows = 128

// item is one row on its way through the engine.
type item struct {
	input  int // which of the run's files
	row    source.Row
	rec    mapping.Record
	fault  string // why the row is invalid, or ""
	digest checkpoint.Digest
}

// batch is a run of rows in file order; err, if set, says why no more follow.
type batch struct {
	items []*item
	err   error
}

// reader turns files into Records, in file order, ahead of the engine. It is the
// only goroutine that touches the sources.
type reader struct {
	inputs  []*source.File
	mapping *mapping.Mapping
	digest  func(*mapping.Record) checkpoint.Digest // nil: none wanted
	runID   string
	limit   int // rows of all inputs together; 0 = all

	names    []string
	bindings map[*source.Header]*mapping.Binding
}

// maxBindings bounds the bindings kept for JSONL, whose rows may all differ in shape.
const maxBindings = 1024

// bind checks the mapping against the header of every input, before anything is sent.
func (r *reader) bind() error {
	r.bindings = map[*source.Header]*mapping.Binding{}
	var all mapping.Errors
	for _, f := range r.inputs {
		path := f.Info().Path
		r.names = append(r.names, path)
		_, err := r.binding(path, f.Header())
		var es mapping.Errors
		if errors.As(err, &es) {
			all = append(all, es...)
		} else if err != nil {
			return err
		}
	}
	if len(all) > 0 {
		return all
	}
	return nil
}

func (r *reader) binding(path string, h *source.Header) (*mapping.Binding, error) {
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
	return b, nil
}

// unused lists the columns of all inputs that nothing in the mapping uses.
func (r *reader) unused() []string {
	var names []string
	for _, f := range r.inputs {
		for _, name := range r.bindings[f.Header()].Unused() {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// run reads until the inputs or the limit end, or ctx does, and closes out.
func (r *reader) run(ctx context.Context, out chan<- *batch) {
	defer close(out)
	b := &batch{}
	send := func() bool {
		select {
		case out <- b:
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
			if err != nil {
				b.err = err
				send()
				return
			}
			read++
			b.items = append(b.items, it)
			if len(b.items) == batchRows && !send() {
				return
			}
		}
	}
	if len(b.items) > 0 {
		send()
	}
}

func (r *reader) next(input int, f *source.File) (*item, error) {
	it := &item{input: input}
	if err := f.Next(&it.row); err != nil {
		return nil, err
	}
	if p := it.row.Problem; p != nil {
		it.fault = p.Text
		return it, nil
	}
	b, err := r.binding(r.names[input], it.row.Header)
	if err != nil {
		return nil, err
	}
	env := mapping.Env{File: r.names[input], Line: it.row.Line, Run: r.runID}
	if ps := b.Map(it.row.Cells, env, &it.rec); ps != nil {
		it.fault = sentence(ps)
		return it, nil
	}
	if len(it.rec.Key) > checkpoint.MaxKey {
		it.fault = fmt.Sprintf("the key is longer than %d bytes", checkpoint.MaxKey)
		return it, nil
	}
	if r.digest != nil {
		it.digest = r.digest(&it.rec)
	}
	return it, nil
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
