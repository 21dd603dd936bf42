package importer

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"leadferry/importer/report"
	"leadferry/importer/source"
	"leadferry/mapping"
)

// pulledBy returns the statuses of a run's pull file by ExternalID, and the order of its lines.
func (r *trial) pulledBy() (status map[string]string, order string) {
	status = map[string]string{}
	r.pulls.finish()
	for _, l := range r.pulls.lines {
		status[l.ExternalID] = l.Status
		order += l.ExternalID + " "
	}
	return status, order
}

// A status that is kept is in the pull file of every run, until the row says something new.
func TestPullFileHoldsWhatIsKept(t *testing.T) {
	paired(t, func(t *testing.T, p *pair) {
		rows := []string{"a,,x-a,open,Ann,1", "b,,x-b,open,Bob,1", "c,,x-c,open,Cy,1"}
		p.must("created 3", p.run("import", Options{}, rows...))
		for _, key := range []string{"c", "a"} {
			p.service.typed(p.known(key).LeadID, "Status", "closedWon")
		}
		files := report.Files{Pull: "pull.csv"}
		service := Options{Planning: Planning{Conflict: mapping.RuleService, CheckRemote: ReadAll}, Keeping: Keeping{Files: files}}
		for range 2 {
			if _, order := p.must("unchanged 3", p.run("sync", service, rows...)).pulledBy(); order != "x-a x-c " {
				t.Error(order)
			}
		}
		service.CheckRemote = ReadNothing
		if _, order := p.must("unchanged 3", p.run("sync", service, rows...)).pulledBy(); order != "x-a x-c " {
			t.Error(order)
		}
		for _, o := range []Reconciling{{}, {None: true}} {
			if _, order := p.run("reconcile", Options{Planning: Planning{Reconciling: o}, Keeping: Keeping{Files: files}}, rows...).pulledBy(); order != "x-a x-c " {
				t.Error(order)
			}
		}
		rows[0] = "a,,x-a,onHold,Ann,1" // the row says something new
		if _, order := p.must("updated 1 unchanged 2", p.run("sync", service, rows...)).pulledBy(); order != "x-c " {
			t.Error(order)
		}
	})
}

// Statuses without a word are listed, unless the mapping leaves them out on purpose.
func TestPullFileHasTheWordsOfTheCRM(t *testing.T) {
	m := parsed(t, "version: 1\nlead: {status: {from: '{s}', map: {Won: closedWon, Also won: closedWon}, pull: {onHold: ''}}}\n")
	p := &pulls{mapping: m, ahead: map[string]report.Pulled{}, unnamed: map[string]bool{}}
	for i, status := range []string{"onHold", "closedWon", "open", "archived", "open"} {
		p.ahead[fmt.Sprint(i)] = report.Pulled{Status: status}
	}
	p.finish()
	if len(p.lines) != 1 || p.lines[0].Status != "Won" {
		t.Errorf("%+v", p.lines)
	}
	if p.lacking != 3 || len(p.unnamed) != 2 || !p.unnamed["archived"] || !p.unnamed["open"] {
		t.Errorf("%d: %v", p.lacking, p.unnamed)
	}
}

// The lines of the pull file are in the order of their ExternalIDs.
func TestLastRowOfALeadDecidesItsPull(t *testing.T) {
	const leads = 100
	p := &pulls{mapping: new(mapping.Mapping), ahead: map[string]report.Pulled{}, unnamed: map[string]bool{}}
	row := func(i, lead int, outcome Outcome, kept bool) {
		it := &item{row: source.Row{Number: i}, result: result{ending: ending{outcome: outcome}}}
		it.entry.LeadID, it.entry.ExternalID, it.entry.Seen.Status = fmt.Sprint("lead-", lead), fmt.Sprintf("%04d", i), "open"
		it.remarks[serviceKept], it.rec.Skip = kept, outcome == Skipped
		p.add(it)
	}
	for i := range leads {
		row(i, i*79%leads, Unchanged, true)
	}
	for i := range leads { // a later row of each third lead says something else, of each fifth the same again
		switch lead := i * 79 % leads; {
		case lead%3 == 0:
			row(leads+i, lead, Unchanged, false)
		case lead%5 == 0:
			row(leads+i, lead, Unchanged, true)
		default: // left out by skip_if
			row(leads+i, lead, Skipped, false)
		}
	}
	p.finish()
	at := -1
	for n, l := range p.lines {
		i, _ := strconv.Atoi(l.ExternalID)
		lead := i % leads * 79 % leads
		if i <= at || l.LeadID != fmt.Sprint("lead-", lead) || lead%3 == 0 || (lead%5 == 0) != (i >= leads) {
			t.Fatalf("line %d is of row %d, behind that of row %d: %+v", n, i, at, l)
		}
		at = i
	}
	if want := leads - (leads+2)/3; len(p.lines) != want {
		t.Errorf("%d lines, want %d", len(p.lines), want)
	}
}

// Whatever both sides changed: after sync --conflict service, and once the CRM has taken the pull file over, every row
// is the same on both sides, and nothing is sent any more.
func TestBothSidesAreEqualOnceTheCRMTookThePullFile(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 6).Draw(rt, "leads")
		var first, then, console []string
		for range n {
			for _, list := range []*[]string{&first, &then, &console} {
				*list = append(*list, rapid.SampledFrom(statuses[:4]).Draw(rt, "status"))
			}
		}
		check, seenBefore := rapid.Bool().Draw(rt, "check all"), rapid.Bool().Draw(rt, "reconciled before")
		killed := rapid.IntRange(0, n).Draw(rt, "killed")
		faults := drawn(t, func(p *pair) {
			rows := func(status []string) (rows []string) {
				for i, s := range status {
					rows = append(rows, fmt.Sprintf("k%d,,x-%d,%s,Ann,%d", i, i, s, i))
				}
				return rows
			}
			p.run("import", Options{}, rows(first)...)
			for i, status := range console {
				p.service.typed(p.known(fmt.Sprintf("k%d", i)).LeadID, "Status", status)
			}
			reads := ReadNothing
			if check || !seenBefore {
				reads = ReadAll
			}
			o := Options{Planning: Planning{Conflict: mapping.RuleService, CheckRemote: reads}, Keeping: Keeping{Files: report.Files{Pull: "pull.csv"}}}
			if seenBefore {
				p.happen(&happening{kind: "reconcile", rows: rows(then), dies: killed})
				p.run("reconcile", Options{}, rows(then)...)
			}
			p.happen(&happening{kind: "sync", rows: rows(then), options: o, dies: killed})
			pull, _ := p.run("sync", o, rows(then)...).pulledBy()
			for i := range then {
				if word, ok := pull[fmt.Sprintf("x-%d", i)]; ok {
					then[i] = word
				}
			}
			if r := p.run("reconcile", Options{}, rows(then)...); r.drift.verdicts[Same] != n {
				p.errorf("%s", r.verdicts())
			}
			p.run("sync", Options{}, rows(then)...)
			p.service.sent()
			if r := p.run("sync", Options{}, rows(then)...); r.tally.counts.Unchanged != n || p.service.sent() != "" {
				p.errorf("not in step: %s", r.outcomes())
			}
			for i, status := range then {
				if e := p.known(fmt.Sprintf("k%d", i)); p.service.lead(e.LeadID).Status != status || e.Status != status {
					p.errorf("row %d is %s, the lead %s", i, status, p.service.lead(e.LeadID).Status)
				}
			}
		})
		if faults != nil {
			rt.Fatalf("%s\nfirst %v, then %v, console %v, check %v, seen %v, killed %d", strings.Join(faults, "\n"), first, then, console, check, seenBefore, killed)
		}
	})
}
