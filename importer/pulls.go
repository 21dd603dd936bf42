package importer

import (
	"cmp"
	"fmt"
	"hash/maphash"
	"iter"
	"maps"
	"slices"
	"strings"

	"leadferry/checkpoint"
	"leadferry/importer/report"
	"leadferry/importer/spool"
	"leadferry/mapping"
)

// pulls gathers what the CRM should take over: leads whose status the service has changed and keeps. The last row of a
// lead decides, so the file is written after all rows have ended, in the order of the rows.
type pulls struct {
	mapping *mapping.Mapping
	rules   *conflicts
	told    *spool.Spool[pulled] // sorted by lead
	count   int                  // of told
	seed    maphash.Seed
	// a bit for the hash of each lead in told: a row without a line is noted only if its lead may have had one
	maybe    [1 << 14]uint64
	ready    *spool.Spool[pulled] // the file's lines, sorted by place; filled by settle
	wordless map[string]int       // leads left out, by status
}

// mostPulled is how many lines stay in memory.
const mostPulled = 1 << 13

// pulled is what a row means for the pull file: a line, or that its lead needs none any more. It is stored as JSON in a
// temporary file.
type pulled struct {
	Input, Row int
	Number     int // orders the rows of a lead
	Gone       bool
	Line       report.Pulled
}

func newPulls(m *mapping.Mapping, rules *conflicts) *pulls {
	return &pulls{
		mapping: m, rules: rules, seed: maphash.MakeSeed(), wordless: map[string]int{},
		told: spool.New(mostPulled, func(a, b pulled) int {
			return cmp.Or(cmp.Compare(a.Line.LeadID, b.Line.LeadID), cmp.Compare(a.Number, b.Number))
		}),
		ready: spool.New(mostPulled, func(a, b pulled) int {
			return cmp.Or(cmp.Compare(a.Input, b.Input), cmp.Compare(a.Row, b.Row))
		}),
	}
}

// add notes how a row ended.
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
		changed := f.changed
		if changed.IsZero() {
			changed = e.Seen.At
		}
		one.Line.ExternalID, one.Line.UpdatedAt = cmp.Or(it.rec.ExternalID, (*leadBefore)(e).linked()), stamp(changed)
		one.Line.OrganizationID = cmp.Or(f.owner, e.Seen.Organization, e.Organization)
		*seen |= bit
	case r.outcome == Failed || *seen&bit == 0:
		return
	default:
		one.Gone = true
	}
	p.count++
	p.told.Add(one)
}

// isAhead reports whether the CRM should take over the service's status.
func (p *pulls) isAhead(file string, r *result) bool {
	return r.kept || p.isService(file, &r.entry, &r.found) ||
		(r.outcome == Failed || r.outcome == Rejected) && p.stillKept(file, &r.entry)
}

// isService is isAhead for a row of a reconciliation.
func (p *pulls) isService(file string, e *checkpoint.Entry, f *comparison) bool {
	switch rule := p.rules.forStatus(f.service); {
	case rule == RuleFile:
		return false
	case f.verdict == BothChanged:
		return rule == RuleService || e.Seen.Kept && e.Seen.Against == (*leadBefore)(e).against(file)
	}
	return f.verdict == ServiceAhead
}

// stillKept is isAhead for a row that failed or was rejected: it showed nothing new of its lead, so what was seen
// before counts.
func (p *pulls) stillKept(file string, e *checkpoint.Entry) bool {
	seen := e.Seen.Status
	return seen != "" && decide((*leadBefore)(e).status(file, nil), p.rules.forStatus(seen)).then == keeps
}

// settle prepares the lines of the file, with statuses in the CRM's words. Leads whose status has no word are left out,
// and counted unless the mapping leaves them out on purpose.
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

// lines yields the lines of the file.
func (p *pulls) lines() iter.Seq2[report.Pulled, error] {
	return func(yield func(report.Pulled, error) bool) {
		for one, err := range p.ready.All() {
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

// left is how many leads were left out because the mapping has no word for their status.
func (p *pulls) left() (n int) {
	for _, leads := range p.wordless {
		n += leads
	}
	return n
}

// note names the statuses without a word, or is "".
func (p *pulls) note() string {
	if len(p.wordless) == 0 {
		return ""
	}
	var parts []string
	for _, status := range slices.Sorted(maps.Keys(p.wordless)) {
		parts = append(parts, fmt.Sprintf("%s (%d)", cmp.Or(report.Escape(status), "a status that could not be read"),
			p.wordless[status]))
	}
	return "Leads that the pull file lacks, because the mapping has no word for their status: " +
		strings.Join(parts, ", ") + "."
}
