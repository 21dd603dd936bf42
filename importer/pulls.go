package importer

import (
	"cmp"
	"fmt"
	"hash/maphash"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"leadferry/checkpoint"
	"leadferry/importer/report"
	"leadferry/importer/spool"
	"leadferry/leadapi"
	"leadferry/mapping"
)

// pulls gathers what the CRM should take over: the leads whose status, or content where that is asked for, the service
// has changed, and that it keeps. The file is written in the order of the rows once all have ended, for what a later
// row of the same lead comes to counts.
type pulls struct {
	mapping *mapping.Mapping
	rules   conflicts
	told    *spool.Spool[pulled] // what rows came to, by lead
	count   int                  // of told
	seed    maphash.Seed
	// a bit for the hash of each lead of told, so that most rows of no consequence are not noted
	maybe    [1 << 14]uint64
	ready    *spool.Spool[pulled] // once all rows have ended: the file's lines, by place
	wordless map[string]int       // leads left out by their status, which the mapping has no word for
	columns  []string             // of the file, that hold content; in the order in which they were met
}

// mostPulled is how many lines stay in memory.
const mostPulled = 1 << 15

// pulled is what a row came to: a line, or that no line of its lead counts any more. Its names are those of a
// temporary file.
type pulled struct {
	Input, Row int
	Number     int // of the rows that came to something
	Gone       bool
	Line       report.Pulled
	Cells      []cell
}

func newPulls(o *Options) *pulls {
	return &pulls{
		mapping: o.Mapping, rules: newConflicts(o), seed: maphash.MakeSeed(), wordless: map[string]int{},
		told: spool.New(mostPulled, func(a, b pulled) int {
			return cmp.Or(cmp.Compare(a.Line.LeadID, b.Line.LeadID), cmp.Compare(a.Number, b.Number))
		}),
		ready: spool.New(mostPulled, func(a, b pulled) int {
			return cmp.Or(cmp.Compare(a.Input, b.Input), cmp.Compare(a.Row, b.Row))
		}),
	}
}

// add takes how a row ended.
func (p *pulls) add(it *item, r *result) {
	e, f := &r.entry, &r.found
	hash := maphash.String(p.seed, e.LeadID) % uint64(64*len(p.maybe))
	seen, bit := &p.maybe[hash/64], uint64(1)<<(hash%64)
	one := pulled{Input: it.input, Row: it.row.Number, Number: p.count, Line: report.Pulled{LeadID: e.LeadID}}
	switch {
	case e.LeadID == "" || r.outcome == Pending:
		return // nothing new is known of the lead
	case p.isAhead(it.rec.Status, r):
		one.Line.Status = cmp.Or(f.service, e.Seen.Status)
		fallthrough
	case f.cells != nil:
		changed := f.changed
		if changed.IsZero() {
			changed = e.Seen.At
		}
		one.Line.ExternalID, one.Line.UpdatedAt = cmp.Or(it.rec.ExternalID, (*leadBefore)(e).linked()), stamp(changed)
		one.Line.OrganizationID = cmp.Or(f.owner, e.Seen.Organization, e.Organization)
		one.Cells = f.cells
		*seen |= bit
	case r.outcome == Failed || *seen&bit == 0:
		return
	default:
		one.Gone = true
	}
	for _, c := range one.Cells {
		if !slices.Contains(p.columns, c.Column) {
			p.columns = append(p.columns, c.Column)
		}
	}
	p.count++
	p.told.Add(one)
}

// isAhead reports whether the service's status is what counts.
func (p *pulls) isAhead(file string, r *result) bool {
	return r.kept || p.isService(file, &r.entry, &r.found) ||
		(r.outcome == Failed || r.outcome == Rejected) && p.stands(file, &r.entry)
}

// isService reports whether a reconciliation found that the service's status is what counts.
func (p *pulls) isService(file string, e *checkpoint.Entry, f *comparison) bool {
	switch rule := p.rules.forStatus(f.service); {
	case rule == RuleFile:
		return false
	case f.verdict == BothChanged:
		return rule == RuleService || e.Seen.Kept && e.Seen.Against == (*leadBefore)(e).against(file)
	}
	return f.verdict == ServiceAhead
}

// stands reports whether the service's status counts for a row of whose lead nothing was learnt, since its content was
// not taken.
func (p *pulls) stands(file string, e *checkpoint.Entry) bool {
	seen := e.Seen.Status
	return seen != "" && decide((*leadBefore)(e).status(file, nil), p.rules.forStatus(seen)).then == keeps
}

// settle has the lines of the file ready, with statuses in the CRM's words. Leads whose status has none are left out,
// and counted unless that is on purpose.
func (p *pulls) settle() error {
	var last pulled // of its lead
	take := func() {
		word, known := p.mapping.PullWord(last.Line.Status)
		switch {
		case last.Line.LeadID == "" || last.Gone:
		case last.Line.Status == "":
			p.ready.Add(last)
		case !known:
			p.wordless[last.Line.Status]++
		case word != "":
			last.Line.Status = word
			p.ready.Add(last)
		}
	}
	for one, err := range p.told.All() {
		if err != nil {
			return err
		}
		if one.Line.LeadID != last.Line.LeadID {
			take()
		}
		last = one
	}
	take()
	return nil
}

// lines are those of the file.
func (p *pulls) lines() iter.Seq2[report.Pulled, error] {
	return func(yield func(report.Pulled, error) bool) {
		for one, err := range p.ready.All() {
			one.Line.Content = make([]string, len(p.columns))
			for _, c := range one.Cells {
				one.Line.Content[slices.Index(p.columns, c.Column)] = c.Value
			}
			if !yield(one.Line, err) {
				return
			}
		}
	}
}

func (p *pulls) close() {
	p.told.Close()
	p.ready.Close()
}

// left is how many leads were left out for want of a word.
func (p *pulls) left() (n int) {
	for _, leads := range p.wordless {
		n += leads
	}
	return n
}

// note names the statuses without a word, or is nothing.
func (p *pulls) note() string {
	if len(p.wordless) == 0 {
		return ""
	}
	var parts []string
	for _, status := range slices.Sorted(maps.Keys(p.wordless)) {
		parts = append(parts, fmt.Sprintf("%s (%d)", cmp.Or(report.Escape(status), "a status that could not be read"),
			p.wordless[status]))
	}
	return "Leads that the pull file lacks, for want of a word for their status: " + strings.Join(parts, ", ") + "."
}

// cell is what the CRM should take over of a lead's content.
type cell struct{ Column, Value string }

// cellsOf are the cells of content that others have changed, each as the service shows it, where they are wanted and
// the service's value is the one that counts.
func (c *carrier) cellsOf(rec *mapping.Record, changed []ahead, lead *leadapi.Lead) (cells []cell) {
	if !c.PullContent {
		return nil
	}
	for _, a := range changed {
		f := &rec.Content[a.field]
		if rule := c.conflicts.forContent(f.Name); f.Column != "" &&
			(rule == RuleService || rule == RuleReport && !a.both) {
			value := lead.Content[f.Name]
			if value.Kind() == '"' {
				value, _ = jsontext.AppendUnquote(nil, value)
			}
			cells = append(cells, cell{f.Column, string(value)})
		}
	}
	return cells
}
