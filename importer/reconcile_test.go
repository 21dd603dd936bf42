package importer

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"leadferry/checkpoint"
	"leadferry/internal/rowkey"
	"leadferry/internal/testsupport/must"
)

// verdicts lists the verdicts of a run with their counts.
func (r *trial) verdicts() string {
	var all []string
	for _, v := range []Verdict{Same, FileAhead, ServiceAhead, BothChanged, Unread, NoLead, Absent, Doubtful} {
		if n := r.drift.verdicts[v]; n > 0 {
			all = append(all, fmt.Sprint(v, " ", n))
		}
	}
	return strings.Join(all, " ")
}

func (p *pair) compares(o Options, want string, rows ...string) *trial {
	p.t.Helper()
	before := p.heldByService()
	r := p.run("reconcile", o, rows...)
	if got := r.verdicts(); got != want {
		p.t.Errorf("%s, want %s", got, want)
	}
	p.unchanged(before)
	return r
}

// After the import, the file, a person in the console, both or nobody changed each lead.
func TestVerdictsSayWhoChangedALead(t *testing.T) {
	paired(t, func(t *testing.T, p *pair) {
		row := func(key, status, name string) string { return fmt.Sprintf("%s,,x-%s,%s,%s,1", key, key, status, name) }
		var imported []string
		for _, key := range []string{"same", "file", "content", "service", "both", "agreed", "gone"} {
			imported = append(imported, row(key, "open", "Ann"))
		}
		p.must("created 7", p.run("import", Options{}, imported...))
		for _, key := range []string{"service", "both", "agreed"} {
			p.service.typed(p.known(key).LeadID, "Status", "closedWon")
		}
		rows := []string{
			row("same", "open", "Ann"), row("file", "contacted", "Ann"), row("content", "open", "Anna"), row("service", "open", "Ann"),
			row("both", "contacted", "Ann"), row("agreed", "closedWon", "Ann"), row("nobody", "open", "Ann"),
		}
		p.service.sent()
		r := p.compares(Options{}, "same 2 file_ahead 2 service_ahead 1 both_changed 1 unmatched 1 absent 1", rows...)
		if got := r.outcomes(); got != "unchanged 2 unmatched 1 conflict 4" {
			t.Error(got)
		}
		if sent := p.service.sent(); strings.Count(sent, " read\n") != 6 || strings.Count(sent, "\n") != 6 {
			t.Error(sent)
		}
		for _, l := range r.lines {
			if f := l.found; l.rec.Key == "content" && (f.keys != "name" || changedBy[f.verdict] != "file") || l.rec.Key == "both" && (changedBy[f.verdict] != "both" || l.entry.Seen.Status != "closedWon") {
				t.Errorf("%s: %+v", l.rec.Key, f)
			}
		}
		if e := p.known("service"); e.Status != "open" || e.Seen.Status != "closedWon" || e.Unsettled != "" {
			t.Errorf("%+v", e)
		}
		adopted := checkpoint.Entry{Key: "adopted", State: checkpoint.Created, LeadID: "lead-of-a-list", ExternalID: "x-adopted", Status: "open", Updated: time.Now()}
		must.Do(t, p.db.Do(t.Context(), &checkpoint.Change{Kind: checkpoint.Settle, Entry: adopted}))
		p.compares(Options{Planning: Planning{Reconciling: Reconciling{Fresh: time.Hour}}}, "unread 1 absent 7", row("adopted", "open", "Ann")) // only an adopted list says so
		if _, err := checkpoint.Forget(t.Context(), p.db, []string{"adopted"}, true); err != nil {
			t.Fatal(err)
		}
		p.service.sent()
		// Without a read, what an earlier read showed counts, for a sync too.
		p.service.leads[p.known("both").LeadID].OwnerID = "org-2"
		moved := func(r *trial) (keys []string) { // leads that another organization has now
			for _, l := range r.lines {
				if l.entry.Seen.Organization == "org-2" {
					keys = append(keys, l.rec.Key)
				}
			}
			return keys
		}
		if keys := moved(p.run("reconcile", Options{}, rows...)); !slices.Equal(keys, []string{"both"}) {
			t.Error(keys)
		}
		p.service.sent()
		for _, o := range []Reconciling{{None: true}, {Fresh: time.Hour}} {
			r := p.compares(Options{Planning: Planning{Reconciling: o}}, "same 2 file_ahead 2 service_ahead 1 both_changed 1 unmatched 1 absent 1", rows...)
			if keys := moved(r); !slices.Equal(keys, []string{"both"}) {
				t.Error(keys)
			}
		}
		p.sends()
		p.must("unchanged 1 conflict 1", p.run("sync", Options{}, rows[3], rows[5]))
		p.sends()
	})
}

// A status that the specification does not name counts as it is.
func TestReadsThatShowAnotherLeadCountForNothing(t *testing.T) {
	for fate, want := range map[string]string{"other-id": "unread 1", "404": "unread 1", "500-stored": "unread 1", "lost": "unread 1", "": "service_ahead 1"} {
		t.Run(fate, func(t *testing.T) {
			paired(t, func(t *testing.T, p *pair) {
				p.must("created 1", p.run("import", Options{}, "a,,x-a,open,Ann,1"))
				before := p.known("a")
				p.service.typed(before.LeadID, "Status", "archived by accounting")
				p.service.fate = func(string, string) string { return fate }
				r := p.compares(Options{}, want, "a,,x-a,open,Ann,1")
				after := p.known("a")
				if after.Refused != before.Refused || after.Unsettled != "" || after.Status != "open" || (after.Seen.Status != "") != (fate == "") {
					t.Errorf("%+v", after)
				}
				if fate != "" && !strings.HasPrefix(r.text("a"), "failed: its lead could not be read") {
					t.Error(r.text("a"))
				}
			})
		})
	}
}

func TestAConfirmedStatusIsNotReportedAsTheOneThatIsShown(t *testing.T) {
	paired(t, func(t *testing.T, p *pair) {
		p.must("created 1", p.run("import", Options{}, "a,,x-a,open,Ann,1"))
		p.service.typed(p.known("a").LeadID, "Status", "")
		r := p.compares(Options{}, "service_ahead 1", "a,,x-a,open,Ann,1")
		if c := comparedWith(&r.lines[0].entry, &r.lines[0].found); c.StatusService != "" || c.StatusConfirmed != "open" {
			t.Errorf("%+v", c)
		}
	})
}

// Leads without a known ExternalID cannot be read by it; doubts stay doubts.
func TestLeadsThatCannotBeRead(t *testing.T) {
	paired(t, func(t *testing.T, p *pair) {
		p.service.fate = func(op, id string) string {
			switch {
			case op == "update":
				return "422"
			case id == "new doubt":
				return "lost"
			}
			return ""
		}
		p.must("partial 1 in_doubt 1", p.run("import", Options{}, "a,,x-a,open,Ann,1", "doubt,,x-d,open,Ann,1"))
		p.service.fate = nil
		p.compares(Options{Planning: Planning{ReadByExternalID: true}}, "unread 1 in_doubt 1", "a,,x-a,open,Ann,1", "doubt,,x-d,open,Ann,1")
		if e := p.known("a"); e.State != checkpoint.Partial {
			t.Errorf("%+v", e)
		}
	})
}

// A sample is drawn from the leads of the file, not from all leads, and no other lead is read.
func TestSampleReadsSomeLeadsOfTheFile(t *testing.T) {
	paired(t, func(t *testing.T, p *pair) {
		var rows []string
		for i := range 40 {
			rows = append(rows, fmt.Sprintf("k%d,,x-%d,open,P,%d", i, i, i))
		}
		p.must("created 40", p.run("import", Options{Sending: Sending{Concurrency: 8}}, rows...))
		for i := range 20 {
			p.service.typed(p.known(fmt.Sprintf("k%d", i)).LeadID, "Status", "onHold")
		}
		p.service.sent()
		r := p.run("reconcile", Options{Sending: Sending{Concurrency: 1}, Planning: Planning{Reconciling: Reconciling{Sample: 10}}}, rows...)
		sample := r.soFar().Reconciliation.Sample
		if d := r.drift; d.met != 40 || sample.Read != 10 || d.verdicts[Unread] != 30 || sample.Differ != d.verdicts[ServiceAhead] {
			t.Errorf("%+v", d)
		}
		first := inOrder(p.service.sent())
		if strings.Count(first, "\n") != 10 {
			t.Errorf("read\n%s", first)
		}
		// Leads that were read or confirmed lately count as read.
		r = p.run("reconcile", Options{Planning: Planning{Reconciling: Reconciling{Sample: 40, Fresh: time.Hour}}}, rows...)
		if all := r.soFar().Reconciliation.Sample; r.drift.met != 40 || all.Read != 40 || all.Differ != sample.Differ || p.service.sent() != "" {
			t.Errorf("%+v, want %d that differ", r.drift, sample.Differ)
		}
		p.run("reconcile", Options{Sending: Sending{Concurrency: 1}, Planning: Planning{Reconciling: Reconciling{Sample: 10}}}, rows...)
		if inOrder(p.service.sent()) == first { // one in 847,660,528
			t.Error("the next sample is of the same leads")
		}
		p.compares(Options{Planning: Planning{Reconciling: Reconciling{Sample: 2}}}, "same 2 unread 2 absent 37", rows[36], rows[37], rows[38], rows[38])
	})
}

func inOrder(lines string) string {
	all := strings.SplitAfter(lines, "\n")
	slices.Sort(all)
	return strings.Join(all, "")
}

// Only leads of the namespace are absent, and only where all input was read.
func TestLeadsThatTheWholeInputLacksAreAbsent(t *testing.T) {
	paired(t, func(t *testing.T, p *pair) {
		a, b, c := "a,,x-a,open,Ann,1", "b,,x-b,open,Bob,1", "c,,x-c,open,Cy,1"
		p.must("created 3", p.run("import", Options{}, a, b, c))
		other := checkpoint.Entry{Key: rowkey.Effective("webinar", "a"), State: checkpoint.Created, LeadID: "lead-w", ExternalID: "w", Status: "open"}
		must.Do(t, p.db.Do(t.Context(), &checkpoint.Change{Kind: checkpoint.Settle, Entry: other}))
		p.compares(Options{}, "same 1 absent 2", a)
		p.compares(Options{}, "same 1 absent 1", a, "b,,x-b,no status at all,Bob,1") // invalid, but named
		left := Task{Mapping: parsed(t, pairMapping+"skip_if: 'name == \"Bob\"'\n")} // out, but named
		p.compares(Options{Task: left}, "same 1 absent 1", a, b)
		p.compares(Options{Task: Task{Limit: 1}}, "same 1", a, b)
		// As many keys as leads are named, but one has no lead or is named twice.
		p.service.fate = func(string, string) string { return "lost" }
		p.must("in_doubt 1", p.run("import", Options{}, "d,,x-d,open,Dan,1"))
		p.service.fate = nil
		if _, err := checkpoint.Forget(t.Context(), p.db, []string{rowkey.Effective("webinar", "a")}, true); err != nil {
			t.Fatal(err)
		}
		p.compares(Options{}, "same 2 absent 1 in_doubt 1", a, b, "d,,x-d,open,Dan,1")
		p.compares(Options{}, "same 2 unmatched 1 absent 1", a, b, "e,,x-e,open,Eve,1")
		p.compares(Options{}, "same 4 absent 1", a, b, a, b)
		p.compares(Options{}, "same 3", a, b, c)
	})
}
