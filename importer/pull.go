package importer

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"leadferry/importer/report"
	"leadferry/mapping"
)

// pulls gathers what the CRM should take over: the leads whose status the service has changed,
// and that it keeps. It holds one short line for each, by lead, for the file is written in order
// when all rows have ended: what a later row of the same lead comes to counts.
type pulls struct {
	mapping  *mapping.Mapping
	leads    map[string]pulled
	wordless map[string]int // leads left out by their status, which the mapping has no word for
}

// pulled is a lead with the place of its row.
type pulled struct {
	input, row int
	line       report.Pulled
}

func newPulls(m *mapping.Mapping) *pulls {
	return &pulls{mapping: m, leads: map[string]pulled{}, wordless: map[string]int{}}
}

// add takes how a row ended.
func (p *pulls) add(it *item, r *result, byRule Rule) {
	e, f := &r.entry, &r.found
	switch {
	case e.LeadID == "" || r.outcome == Pending || r.outcome == Failed:
		return // nothing new is known of the lead
	case r.kept, f.verdict == ServiceAhead, f.verdict == BothChanged && (byRule == RuleService || e.Seen.Kept && e.Seen.Against == it.rec.Status):
	default:
		delete(p.leads, e.LeadID)
		return
	}
	changed := f.changed
	if changed.IsZero() {
		changed = e.Seen.At
	}
	p.leads[e.LeadID] = pulled{it.input, it.row.Number, report.Pulled{
		ExternalID: e.ExternalID, Status: cmp.Or(f.service, e.Seen.Status), LeadID: e.LeadID,
		UpdatedAt: stamp(changed), OrganizationID: cmp.Or(f.owner, e.Seen.Organization, e.Organization),
	}}
}

// lines are those of the file, in the order of the rows, with statuses in the CRM's words. Leads
// whose status has none are left out, and counted unless that is on purpose.
func (p *pulls) lines() []report.Pulled {
	all := slices.SortedFunc(maps.Values(p.leads), func(a, b pulled) int {
		return cmp.Or(cmp.Compare(a.input, b.input), cmp.Compare(a.row, b.row))
	})
	lines := make([]report.Pulled, 0, len(all))
	for _, lead := range all {
		word, known := p.mapping.PullWord(lead.line.Status)
		switch {
		case !known:
			p.wordless[lead.line.Status]++
		case word != "":
			lead.line.Status = word
			lines = append(lines, lead.line)
		}
	}
	return lines
}

// note names the statuses without a word, or is nothing.
func (p *pulls) note() string {
	if len(p.wordless) == 0 {
		return ""
	}
	var parts []string
	for _, status := range slices.Sorted(maps.Keys(p.wordless)) {
		parts = append(parts, fmt.Sprintf("%s (%d)", cmp.Or(report.Escape(status), "a status that could not be read"), p.wordless[status]))
	}
	return "Leads that the pull file lacks, for want of a word for their status: " + strings.Join(parts, ", ") +
		". Name one in the mapping's lead.status.pull, or \"\" to leave them out."
}
