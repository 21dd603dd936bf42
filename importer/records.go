package importer

import (
	"errors"
	"fmt"
	"maps"
	"strings"

	"leadferry/checkpoint"
	"leadferry/importer/source"
	"leadferry/internal/crash"
	"leadferry/mapping"
)

// recordMaker makes Records of rows, and their digests, in a goroutine that shares nothing
// with others.
type recordMaker struct {
	intake   *intake
	bindings map[*source.Header]*mapping.Binding
	bound    []*mapping.Binding // those of the present batch that are new
	digests  *digester          // nil: none wanted
}

func (r *intake) newMaker() *recordMaker {
	m := &recordMaker{intake: r, bindings: maps.Clone(r.bindings)}
	if r.sums != nil {
		m.digests = newDigester(r.sums)
	}
	return m
}

func (m *recordMaker) run(unmade <-chan *batch) {
	for b := range unmade {
		m.make(b)
		close(b.made)
	}
}

// make makes the Records of a batch. An error, which is one of a row's file or of the
// program itself, ends it before that row.
func (m *recordMaker) make(b *batch) {
	at := 0
	m.bound = nil
	mine := b.items[:0] // never more than were looked at
	err := crash.Call(func() error {
		for ; at < len(b.items); at++ {
			it := b.items[at]
			if err := m.record(it); err != nil {
				return err
			}
			if !m.intake.sharding.takes(it) {
				m.intake.items.put(it)
				continue
			}
			m.digest(it)
			mine = append(mine, it)
		}
		return nil
	})
	if err != nil {
		it := b.items[at]
		if _, failed := errors.AsType[*crash.Error](err); failed {
			err = fmt.Errorf("%s:%d: %w", m.intake.names[it.input], it.row.Line, err)
		}
		b.err = err
	}
	b.items, b.bound = mine, m.bound
}

// record maps a row. What is wrong with the row is its fault; an error is one of its file.
func (m *recordMaker) record(it *item) error {
	if it.row.Problem != nil || it.row.Faults != nil || it.row.Repeats { // else Map fills all of it
		it.forget()
	}
	if p := it.row.Problem; p != nil {
		it.fault = faulty(mapping.Problem{Rule: p.Code, Text: p.String()})
		return nil
	}
	file := m.intake.names[it.input]
	b, err := m.binding(file, it.row.Header)
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
	ps := b.Map(it.row.Cells, mapping.Env{File: file, Line: it.row.Line, Run: m.intake.options.RunID, Caught: m.intake.caught, OneLine: it.row.OneLine}, &it.rec)
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

// maxBindings are kept for JSONL, whose rows may all differ in shape.
const maxBindings = 1024

// binding is the mapping made ready for rows of a header.
func (m *recordMaker) binding(file string, h *source.Header) (*mapping.Binding, error) {
	if b := m.bindings[h]; b != nil {
		return b, nil
	}
	b, err := bindTo(m.intake.options.Mapping, file, h)
	if err != nil {
		return nil, err
	}
	if len(m.bindings) >= maxBindings {
		clear(m.bindings)
	}
	m.bindings[h] = b
	m.bound = append(m.bound, b)
	return b, nil
}

func bindTo(m *mapping.Mapping, file string, h *source.Header) (*mapping.Binding, error) {
	return m.Bind(file, mapping.Columns{Names: h.Names, Own: h.Own, Open: h.Open})
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
			ps = append(ps, mapping.Problem{Rule: f.Code, Text: f.String()})
		}
	}
	return ps
}

// digest makes what the planner compares.
func (m *recordMaker) digest(it *item) {
	switch {
	case m.digests == nil || it.fault != nil || it.rec.Skip:
	case m.intake.fields:
		m.digests.ofContent(it)
	default:
		m.digests.ofRequest(it)
	}
}

// sentence joins the problems of a row.
func sentence(ps []mapping.Problem) string {
	texts := make([]string, len(ps))
	for i, p := range ps {
		if texts[i] = p.Text; p.Column != "" {
			texts[i] = fmt.Sprintf("column %s: %s", p.Column, p.Text)
		}
	}
	return strings.Join(texts, "; ")
}
