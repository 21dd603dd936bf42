package importer

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"iter"
	"maps"
	"os"
	"slices"
	"strings"

	"leadferry/importer/report"
	"leadferry/mapping"
)

// pulls gathers what the CRM should take over: leads whose status the service has changed and keeps. The last row of a
// lead decides, so the file is written after all rows have ended, in the order of the rows.
type pulls struct {
	mapping *mapping.Mapping
	rules   *conflicts
	told    *spool // sorted by lead
	count   int    // of told
	seed    maphash.Seed
	// a bit for the hash of each lead in told: a row without a line is noted only if its lead may have had one
	maybe    [1 << 14]uint64
	ready    *spool         // the file's lines, sorted by place; filled by settle
	wordless map[string]int // leads left out, by status
}

// pulled is what a row means for the pull file: a line, or that its lead needs none any more.
type pulled struct {
	Input, Row int
	Number     int // orders the rows of a lead
	Gone       bool
	Line       report.Pulled
}

func (p pulled) byLead(o pulled) int {
	return cmp.Or(cmp.Compare(p.Line.LeadID, o.Line.LeadID), cmp.Compare(p.Number, o.Number))
}

func (p pulled) byPlace(o pulled) int {
	return cmp.Or(cmp.Compare(p.Input, o.Input), cmp.Compare(p.Row, o.Row))
}

// mostPulled is how many lines stay in memory.
const mostPulled = 1 << 13

func newPulls(m *mapping.Mapping, rules *conflicts) *pulls {
	return &pulls{
		mapping: m, rules: rules, seed: maphash.MakeSeed(), wordless: map[string]int{},
		told:  &spool{most: mostPulled, compare: pulled.byLead},
		ready: &spool{most: mostPulled, compare: pulled.byPlace},
	}
}

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
	p.told.add(one)
}

// isAhead reports whether the CRM should take over the service's status. A row that failed or was rejected showed
// nothing new of its lead, so what was seen before counts.
func (p *pulls) isAhead(file string, r *result) bool {
	e, before, rule := &r.entry, (*leadBefore)(&r.entry), p.rules.forStatus(r.found.service)
	switch {
	case r.kept:
		return true
	case r.found.verdict == ServiceAhead:
		return rule != RuleFile
	case r.found.verdict == BothChanged:
		return rule == RuleService || rule != RuleFile && e.Seen.Kept && e.Seen.Against == before.against(file)
	case e.Seen.Status != "" && (r.outcome == Failed || r.outcome == Rejected):
		return decide(before.status(file, nil), p.rules.forStatus(e.Seen.Status)).then == keeps
	}
	return false
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
			p.ready.add(last)
		case !known:
			p.wordless[last.Line.Status]++
		case word != "":
			last.Line.Status = word
			p.ready.add(last)
		}
	}
	for one, err := range p.told.all() {
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

func (p *pulls) lines() iter.Seq2[report.Pulled, error] {
	return func(yield func(report.Pulled, error) bool) {
		for one, err := range p.ready.all() {
			if !yield(one.Line, err) {
				return
			}
		}
	}
}

func (p *pulls) close() {
	p.told.close()
	p.ready.close()
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

// spool sorts in memory that does not grow with the rows: sorted runs go as JSON into a temporary file that has no name
// any more, so that nothing is left of it however the process ends. If no such file can be made or filled, all stays in
// memory. One goroutine uses it.
type spool struct {
	most    int                   // that stay in memory
	compare func(a, b pulled) int // never 0 for two of them
	recent  []pulled
	file    *os.File // nil: none was needed yet
	runs    []int64  // where each run ends in the file
	full    bool     // no file can be had, or it takes no more
}

func (s *spool) add(v pulled) {
	if len(s.recent) >= s.most && !s.full {
		s.full = s.spill() != nil
	}
	s.recent = append(s.recent, v)
}

// spill makes a run of what is in memory.
func (s *spool) spill() (err error) {
	if s.file == nil {
		if s.file, err = os.CreateTemp("", "leadferry-*"); err != nil {
			return err
		}
		os.Remove(s.file.Name()) // some systems keep the name until it is closed
	}
	slices.SortFunc(s.recent, s.compare)
	to := bufio.NewWriterSize(s.file, 1<<16)
	lines := json.NewEncoder(to)
	for i := range s.recent {
		_ = lines.Encode(&s.recent[i]) // Flush tells
	}
	end, err := int64(0), to.Flush()
	if err == nil {
		end, err = s.file.Seek(0, io.SeekCurrent)
	}
	if err == nil {
		s.runs, s.recent = append(s.runs, end), s.recent[:0]
	}
	return err
}

// all goes through everything in order; an error is the last. Nothing is added meanwhile.
func (s *spool) all() iter.Seq2[pulled, error] {
	return func(yield func(pulled, error) bool) {
		type head struct { // the first that is left of a run
			pulled
			next func() (pulled, error)
		}
		var heads []head // in order
		push := func(next func() (pulled, error)) error {
			v, err := next()
			if err == nil {
				at, _ := slices.BinarySearchFunc(heads, v, func(h head, v pulled) int { return s.compare(h.pulled, v) })
				heads = slices.Insert(heads, at, head{v, next})
			} else if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		for _, next := range s.sorted() {
			if err := push(next); err != nil {
				yield(pulled{}, err)
				return
			}
		}
		for len(heads) > 0 {
			h := heads[0]
			if heads = slices.Delete(heads, 0, 1); !yield(h.pulled, nil) {
				return
			}
			if err := push(h.next); err != nil {
				yield(pulled{}, err)
				return
			}
		}
	}
}

func (s *spool) sorted() (runs []func() (pulled, error)) {
	begin := int64(0)
	for _, end := range s.runs {
		from := json.NewDecoder(bufio.NewReader(io.NewSectionReader(s.file, begin, end-begin)))
		runs = append(runs, func() (v pulled, err error) {
			err = from.Decode(&v)
			return v, err
		})
		begin = end
	}
	slices.SortFunc(s.recent, s.compare)
	left := s.recent
	return append(runs, func() (v pulled, err error) {
		if len(left) == 0 {
			return v, io.EOF
		}
		v, left = left[0], left[1:]
		return v, nil
	})
}

func (s *spool) close() {
	if s.file != nil {
		s.file.Close()
		os.Remove(s.file.Name())
	}
	*s = spool{}
}
