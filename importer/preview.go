package importer

import (
	"errors"

	"leadferry/importer/report"
	"leadferry/importer/source"
)

// preview is what a rehearsal found, for people and scripts.
func (e *engine) preview(notes []string) *report.Checks {
	h := e.rehearsal
	c := &report.Checks{
		Statuses: h.statuses.list(e.place), UnusedColumns: e.rows.unused,
		Assignments: h.assigned.list(), Projected: e.projected(),
		Tests: report.Tests{Run: h.proved, Failed: len(h.failures)}, Notes: notes,
	}
	for _, k := range h.checks.list() {
		c.Rules = append(c.Rules, e.rule(k))
	}
	c.Repeats, c.LookAlikes = e.again(&h.repeated.same), e.again(&h.repeated.alike)
	for _, f := range h.failures {
		c.Tests.Failures = append(c.Tests.Failures, report.Failure{File: e.MappingFile.Path, Line: f.line, Column: f.column, Differences: f.differences})
	}
	if !h.updates {
		for _, l := range h.lacking {
			c.CannotCreate = append(c.CannotCreate, report.Fault{File: l.File, Line: l.Line, Column: l.Column, Error: l.Text, Hint: l.Hint})
		}
	}
	for _, l := range e.rows.lost {
		c.LostFiles = append(c.LostFiles, e.lostFile(l))
	}
	return c
}

func (e *engine) again(a *again) report.Repeats {
	r := report.Repeats{Rows: a.rows}
	for _, one := range a.first {
		r.Places = append(r.Places, report.Repeat{
			Place: e.place(spot{input: one.Input, line: one.Line}), First: e.place(spot{input: one.FirstInput, line: one.FirstLine}),
		})
	}
	return r
}

func (e *engine) rule(k *check) report.Rule {
	r := report.Rule{Rule: k.problem.Rule, Column: k.problem.Column, Error: k.problem.Text, Rows: k.rows}
	for _, at := range k.places {
		r.Places = append(r.Places, e.place(at))
	}
	return r
}

func (e *engine) lostFile(l lost) report.Fault {
	f := report.Fault{File: e.rows.names[l.input], Error: l.err.Error(), Hint: "the rows after that place were not checked"}
	var at *source.LostError
	if errors.As(l.err, &at) {
		f.Line, f.Error = at.Line, at.Text
	}
	return f
}

// projected are the requests that a run would send: a create for each new key, and an
// update for each link. An external_id is required where the mapping has one, so that
// all creates ask for a link or none does.
func (e *engine) projected() report.Projected {
	h := e.rehearsal
	moot := h.repeated.moot
	p := report.Projected{
		Create: h.planned[Create] - moot[Create], Update: h.planned[Link] - moot[Link] + h.planned[Update],
		AtMost: h.repeats == nil,
	}
	if h.linked > 0 {
		p.Update += p.Create
	}
	if e.Rate > 0 && p.Create+p.Update > 0 {
		p.Rate, p.DurationS = e.Rate, float64(p.Create+p.Update)/e.Rate
	}
	return p
}
