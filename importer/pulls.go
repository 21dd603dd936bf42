package importer

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"leadferry/importer/findings"
	"leadferry/importer/report"
	"leadferry/mapping"
)

// pulls gathers what the CRM should take over: leads whose status the service has changed and keeps. The last row of a
// lead decides, so the file is written after all rows have ended. Each of these leads takes about 300 bytes of memory.
type pulls struct {
	mapping  *mapping.Mapping
	rules    *conflicts
	ahead    map[string]pulled // by lead ID
	lines    []report.Pulled   // of the file, in the order of the rows; filled by settle
	wordless map[string]int    // leads left out, by status
}

// pulled is what the last row of a lead showed.
type pulled struct {
	at   findings.Spot
	line report.Pulled
}

func newPulls(m *mapping.Mapping, rules *conflicts) *pulls {
	return &pulls{mapping: m, rules: rules, ahead: map[string]pulled{}, wordless: map[string]int{}}
}

func (p *pulls) add(it *item) {
	e, f := &it.entry, &it.found
	switch {
	case e.LeadID == "" || it.outcome == Pending: // nothing new is known of the lead
	case p.isAhead(it):
		changed := f.changed
		if changed.IsZero() {
			changed = e.Seen.At
		}
		p.ahead[e.LeadID] = pulled{spotOf(it), report.Pulled{
			ExternalID: strings.Clone(cmp.Or(it.rec.ExternalID, (*leadBefore)(e).linked())), LeadID: e.LeadID,
			Status: cmp.Or(f.service, e.Seen.Status), UpdatedAt: stamp(changed),
			OrganizationID: cmp.Or(f.owner, e.Seen.Organization, e.Organization),
		}}
	case it.outcome != Failed:
		delete(p.ahead, e.LeadID)
	}
}

// isAhead reports whether the CRM should take over the service's status. A row that failed or was rejected showed
// nothing new of its lead, so what was seen before counts.
func (p *pulls) isAhead(it *item) bool {
	e, file, rule := &it.entry, it.rec.Status, p.rules.forStatus(it.found.service)
	before := (*leadBefore)(e)
	switch {
	case it.remarks[serviceKept]:
		return true
	case it.found.verdict == ServiceAhead:
		return rule != RuleFile
	case it.found.verdict == BothChanged:
		return rule == RuleService || rule != RuleFile && e.Seen.Kept && e.Seen.Against == before.against(file)
	case e.Seen.Status != "" && (it.outcome == Failed || it.outcome == Rejected):
		return decide(before.status(file, nil), p.rules.forStatus(e.Seen.Status)).then == keeps
	}
	return false
}

// settle makes the lines of the file, with statuses in the CRM's words. Leads whose status has no word are left out,
// and counted unless the mapping leaves them out on purpose.
func (p *pulls) settle() {
	for _, one := range slices.SortedFunc(maps.Values(p.ahead), func(a, b pulled) int { return a.at.Compare(b.at) }) {
		word, known := p.mapping.PullWord(one.line.Status)
		switch {
		case one.line.Status == "":
			p.lines = append(p.lines, one.line)
		case !known:
			p.wordless[one.line.Status]++
		case word != "":
			one.line.Status = word
			p.lines = append(p.lines, one.line)
		}
	}
}

// left is how many leads the mapping has no word for; note names their statuses, or is "".
func (p *pulls) left() (n int, note string) {
	if len(p.wordless) == 0 {
		return 0, ""
	}
	var parts []string
	for _, status := range slices.Sorted(maps.Keys(p.wordless)) {
		leads := p.wordless[status]
		n += leads
		parts = append(parts,
			fmt.Sprintf("%s (%d)", cmp.Or(report.Escape(status), "a status that could not be read"), leads))
	}
	return n, "Leads that the pull file lacks, because the mapping has no word for their status: " +
		strings.Join(parts, ", ") + "."
}
