package importer

import (
	"errors"
	"slices"

	"leadferry/importer/source"
	"leadferry/mapping"
)

const (
	maxBindings = 1024 // kept for JSONL, whose rows may all differ in shape
	maxUnused   = 1000 // columns kept for the same reason
)

// bind checks the mapping against the header of every input, before anything is sent.
// Its error has a *Misfit for each input that lacks columns.
func (r *reader) bind() error {
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

func (r *reader) misfit(path string, h *source.Header, missing mapping.Errors) error {
	m := &Misfit{File: path, Mapping: missing[0].File, Missing: missing, Columns: h.Names[:h.Own]}
	// What the mapping uses of the file shows where columns may be missing.
	if b, err := r.mapping.Bind(path, mapping.Columns{Names: h.Names, Own: h.Own, Open: true}); err == nil {
		m.Strange = len(b.Unused()) == h.Own
	}
	return m
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
	r.noteUnused(b.Unused())
	return b, nil
}

func (r *reader) noteUnused(names []string) {
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
