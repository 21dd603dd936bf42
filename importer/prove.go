package importer

import (
	"errors"

	"leadferry/leadapi"
	"leadferry/mapping"
)

// failure is a test of the mapping whose row does not come to what it expects.
type failure struct {
	line, column int // in the mapping file
	differences  []string
}

// examine asks what can be known of the mapping without any input: whether its tests
// pass, and whether it can make leads.
func (h *rehearsal) examine(m *mapping.Mapping) {
	errors.As(m.ForCreate(), &h.lacking)
	h.updates = m.HasLeadID() || len(h.lacking) == ofCreates
	tests := m.Tests()
	h.proved = len(tests)
	for i := range tests {
		t := &tests[i]
		if differences := prove(m, t); differences != nil {
			h.failures = append(h.failures, failure{t.Line, t.Column, differences})
		}
	}
}

// prove maps a test's row as rows of files are and compares the request. Fields that
// hold a file's name, a line or a run are left out, since the row has none of these.
func prove(m *mapping.Mapping, t *mapping.Test) []string {
	b, err := m.Bind("the test", mapping.Columns{Names: t.Names, Own: len(t.Names), Open: true})
	if err != nil {
		return []string{err.Error()}
	}
	var rec mapping.Record
	if ps := b.Map(t.Cells, mapping.Env{}, &rec); ps != nil {
		var reasons []string
		for _, p := range ps {
			reasons = append(reasons, "the row is invalid: "+sentence([]mapping.Problem{p}))
		}
		return reasons
	}
	if rec.Skip {
		return []string{"the row is left out by skip_if"}
	}
	return t.Compare(createRequest(new(leadapi.CreateRequest), steady(&rec)).AppendJSON(nil))
}

// steady is the Record without its volatile fields.
func steady(rec *mapping.Record) *mapping.Record {
	r := *rec
	r.Content = nil
	for _, f := range rec.Content {
		if !f.Volatile {
			r.Content = append(r.Content, f)
		}
	}
	return &r
}

// ofCreates is how many parts of a mapping only creates need. One that has none of
// them was never meant to make leads, nor was one by which rows bring their lead's ID.
const ofCreates = 3
