package importer

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"leadferry/checkpoint"
	"leadferry/importer/report"
	"leadferry/internal/testsupport/must"
	"leadferry/mapping"
)

// sends compares the updates that arrived since the last call. Only updates of one lead have an order.
func (p *pair) sends(lines ...string) {
	p.t.Helper()
	byLead := func(a, b string) int {
		idA, _, _ := strings.Cut(a, " ")
		idB, _, _ := strings.Cut(b, " ")
		return strings.Compare(idA, idB)
	}
	sent := strings.Split(strings.TrimSuffix(p.service.sent(), "\n"), "\n")
	if len(lines) == 0 {
		lines = []string{""}
	}
	slices.SortStableFunc(sent, byLead)
	slices.SortStableFunc(lines, byLead)
	must.Same(p.t, lines, sent, "updates")
}

func TestSyncSendsOnlyWhatChanged(t *testing.T) {
	paired(t, func(t *testing.T, p *pair) {
		rows := []string{"a,,x-a,open,Ann,1", "b,,x-b,contacted,Bob,2", "c,,x-c,closedWon,Cy,3"}
		p.must("created 3", p.run("import", Options{}, rows...))
		p.service.sent()
		p.must("unchanged 3", p.run("sync", Options{}, rows...))
		p.sends()
		a, b, c := p.known("a").LeadID, p.known("b").LeadID, p.known("c").LeadID
		changed := []string{"a,,x-a,inProgress,Ann,1", "b,,y-b,contacted,Bob,", "c,,x-c,,Cyril,"}
		r := p.must("updated 3", p.run("sync", Options{Sending: Sending{Concurrency: 1}}, changed...))
		p.sends(a+` {"Status":"inProgress"}`, b+" read", b+` {"ExternalID":"y-b"}`, c+` {"Content":{"name":"Cyril"}}`)
		if diff := cmp.Diff(map[report.Transition]int{{From: "open", To: "inProgress"}: 1}, r.tally.moves); diff != "" {
			t.Error(diff)
		}
		p.must("unchanged 3", p.run("sync", Options{}, changed...))
		p.must("updated 2 unchanged 1", p.run("sync", Options{}, rows[2], rows[1], "a,,x-a,inProgress,Ann,1"))
		p.service.sent()
		if got := p.known("c"); got.Status != "closedWon" || got.Unsettled != "" || len(got.Content) != 3 || !got.Synced {
			t.Errorf("%+v", got)
		}
	})
}

func TestLeadsAreFoundByTheirIDsAndShareALane(t *testing.T) {
	paired(t, func(t *testing.T, p *pair) {
		p.must("created 2", p.run("import", Options{}, "a,,x-a,open,Ann,1", "b,,x-b,open,Bob,2"))
		a := p.known("a").LeadID
		p.service.sent()
		// Four rows of one lead, which they name by key, lead ID and ExternalID.
		r := p.must("updated 4", p.run("sync", Options{Sending: Sending{Concurrency: 8}},
			"a,,x-a,contacted,Ann,1", "other,"+a+",x-a,inProgress,Ann,1", "third,,x-a,onHold,Ann,1", "a,"+a+",x-a,closedWon,Ann,1"))
		var order []string
		for _, l := range r.lines {
			order = append(order, l.rec.Status)
		}
		if got := strings.Join(order, " "); got != "contacted inProgress onHold closedWon" {
			t.Errorf("judged in the order %s", got)
		}
		if got := p.service.lead(a).Status; got != "closedWon" {
			t.Errorf("the lead does not have the last row's status, but %s", got)
		}
		if p.known("other").State != checkpoint.Unknown || p.known("third").State != checkpoint.Unknown {
			t.Error("the lead is known by another key, too")
		}
	})
}

// Rows that find the lead by another name meanwhile wait.
func TestALeadThatOnlyTheFileKnowsIsAdopted(t *testing.T) {
	paired(t, func(t *testing.T, p *pair) {
		p.must("created 1", p.run("import", Options{}, "a,,x-a,open,Ann,1"))
		lead := p.known("a").LeadID
		p.db.Close()
		p.store = newFileStore(t)
		p.open()
		p.service.sent()
		r := p.run("sync", Options{Sending: Sending{Concurrency: 8}, Planning: Planning{Missing: MissingCreate}},
			"k1,"+lead+",x-a,contacted,Ann,1", "k2,"+lead+",x-a,inProgress,Ann,1", "k3,,x-a,onHold,Ann,1", "k1,,x-a,closedWon,Ann,1")
		p.must("updated 4", r)
		if len(p.service.leads) != 1 || p.service.lead(lead).Status != "closedWon" || p.known("k1").LeadID != lead {
			t.Errorf("%d leads, %+v, %+v", len(p.service.leads), p.service.lead(lead), p.known("k1"))
		}
		if events, _ := checkpoint.History(t.Context(), p.db, "k1"); len(events) != 5 || events[0].Act&checkpoint.Adopted == 0 {
			t.Errorf("history %v", events)
		}
	})
}

// faults 68, 69
func TestAnUpdateCountsOnlyIfTheAnswerShowsIt(t *testing.T) {
	for _, test := range []struct {
		fate, text string
		outcome    string
		unsettled  bool
		again      string // what the next run sends
	}{
		{"other-status", "another Status", "failed 1", false, `{"Status":"inProgress"}`},
		{"other-content", "another name", "failed 1", false, `{"Content":{"name":"Anna"}}`},
		{"no-content", "another name", "failed 1", false, `{"Content":{"name":"Anna"}}`},
		{"other-id", "is another one", "failed 1", true, `{"Status":"inProgress","Content":{"name":"Anna"}}`},
		{"lost", "not confirmed", "failed 1", true, `{"Status":"inProgress","Content":{"name":"Anna"}}`},
		{"silent", "not confirmed", "failed 1", true, `{"Status":"inProgress","Content":{"name":"Anna"}}`},
		{"500-stored", "HTTP 500", "failed 1", true, `{"Status":"inProgress","Content":{"name":"Anna"}}`},
		{"429", "HTTP 429", "failed 1", false, `{"Status":"inProgress","Content":{"name":"Anna"}}`},
	} {
		t.Run(test.fate, func(t *testing.T) {
			paired(t, func(t *testing.T, p *pair) {
				p.must("created 1", p.run("import", Options{}, "a,,x-a,open,Ann,1"))
				p.service.sent()
				p.service.fate = func(string, string) string { return test.fate }
				row := "a,,x-a,inProgress,Anna,1"
				r := p.must(test.outcome, p.run("sync", Options{}, row))
				if !strings.Contains(r.text("a"), test.text) {
					t.Errorf("%q does not say %q", r.text("a"), test.text)
				}
				if got := p.known("a").Unsettled != ""; got != test.unsettled {
					t.Errorf("unsettled %v, want %v", got, test.unsettled)
				}
				p.service.fate = nil
				p.service.sent()
				if test.fate == "other-status" { // the service really has what it answered
					p.service.typed(p.known("a").LeadID, "Status", "closedBoughtOtherBrand")
				}
				p.must("updated 1", p.run("sync", Options{}, row))
				p.sends(p.known("a").LeadID + " " + test.again)
				p.must("unchanged 1", p.run("sync", Options{}, row))
				if l := p.service.lead(p.known("a").LeadID); l.Status != "inProgress" || string(l.Content["name"]) != `"Anna"` {
					t.Errorf("%+v", l)
				}
			})
		})
	}
}

// A service that undoes one field with each update of another gets two updates in a run, and no more.
func TestAServiceThatUndoesWhatItConfirmedGetsNoThirdUpdate(t *testing.T) {
	paired(t, func(t *testing.T, p *pair) {
		p.must("created 1", p.run("import", Options{}, "a,,x-a,open,Ann,1"))
		updates, undoes := 0, [][2]string{{"Status", "contacted"}, {"ExternalID", "other"}}
		p.service.meet = func(_, id string) {
			if updates++; updates < 10 {
				p.service.typed(id, undoes[updates%2][0], undoes[updates%2][1])
			}
		}
		p.must("updated 1", p.run("sync", Options{Planning: Planning{Conflict: mapping.RuleFile}}, "a,,x-a,inProgress,Ann,1"))
		if updates != 2 {
			t.Errorf("%d updates", updates)
		}
	})
}

// An update without an answer holds back the rows of its lead alone. faults 79, 80
func TestAnUnsettledUpdateBlocksItsLeadAlone(t *testing.T) {
	paired(t, func(t *testing.T, p *pair) {
		p.must("created 2", p.run("import", Options{}, "a,,x-a,open,Ann,1", "b,,x-b,open,Bob,2"))
		a := p.known("a").LeadID
		p.service.fate = func(_, id string) string {
			if id == a {
				return "silent"
			}
			return ""
		}
		rows := []string{"a,,x-a,contacted,Ann,1", "a,,x-a,inProgress,Ann,1", "z," + a + ",x-a,onHold,Ann,1"}
		for i := range 20 {
			rows = append(rows, fmt.Sprintf("b,,x-b,%s,Bob,%d", []string{"open", "onHold"}[i%2], i))
		}
		rows = append(rows, "a,,x-a,closedWon,Ann,1")
		r := p.must("updated 20 failed 1 pending 3", p.run("sync", Options{Sending: Sending{Retries: 2, MaxWait: time.Minute}}, rows...))
		if _, code := r.ending(); code != report.CodeAttention {
			t.Errorf("exit code %d", code)
		}
		p.service.fate = nil
		p.must("updated 1", p.run("sync", Options{}, "a,,x-a,closedWon,Ann,1"))
		if got := p.service.lead(a).Status; got != "closedWon" {
			t.Error(got)
		}
	})
}

// The mark says durably that an update is under way.
func TestNoUpdateLeavesBeforeItsMark(t *testing.T) {
	paired(t, func(t *testing.T, p *pair) {
		var rows, changed []string
		for i := range 30 {
			rows = append(rows, fmt.Sprintf("k%d,,x-%d,open,P,%d", i, i, i))
			changed = append(changed, fmt.Sprintf("k%d,,x-%d,onHold,P,%d", i, i, i))
		}
		p.must("created 30", p.run("import", Options{Sending: Sending{Concurrency: 8}}, rows...))
		byLead := map[string]string{}
		for i := range 30 {
			byLead[p.known(fmt.Sprintf("k%d", i)).LeadID] = fmt.Sprintf("k%d", i)
		}
		p.service.meet = func(_, id string) {
			if e := p.known(byLead[id]); e.Unsettled != "run-2" || e.Sought != "onHold" {
				t.Errorf("%s arrived at the service while the checkpoint says %q %q", byLead[id], e.Unsettled, e.Sought)
			}
		}
		p.must("updated 30", p.run("sync", Options{Sending: Sending{Concurrency: 8}}, changed...))
	})
}

// A stop takes back the marks of updates that were not sent.
func TestAStopLeavesNoMarkOfWhatWasNotSent(t *testing.T) {
	paired(t, func(t *testing.T, p *pair) {
		var rows, changed []string
		for i := range 60 {
			rows = append(rows, fmt.Sprintf("k%d,,x-%d,open,P,%d", i, i, i))
			changed = append(changed, fmt.Sprintf("k%d,,x-%d,onHold,P,%d", i, i, i))
		}
		p.must("created 60", p.run("import", Options{Sending: Sending{Concurrency: 8}}, rows...))
		interrupt := make(chan struct{})
		p.service.delay = time.Second
		go func() {
			time.Sleep(2500 * time.Millisecond)
			close(interrupt)
		}()
		r := p.run("sync", Options{Sending: Sending{Concurrency: 8}, Hooks: Hooks{Interrupt: interrupt}}, changed...)
		if n := r.tally.counts; n.Updated == 0 || n.Pending == 0 || n.Failed != 0 {
			t.Error(r.outcomes())
		}
		for i := range 60 {
			if e := p.known(fmt.Sprintf("k%d", i)); e.Unsettled != "" {
				t.Errorf("%s is unsettled after a clean stop", e.Key)
			}
		}
	})
}

// Changes by others are reported, counted and stored beside what was confirmed: the next sync does not overwrite them
// with the file's old status.
func TestChangesByOthersAreSeen(t *testing.T) {
	paired(t, func(t *testing.T, p *pair) {
		p.must("created 1", p.run("import", Options{}, "a,,x-a,open,Ann,1"))
		a := p.known("a").LeadID
		p.service.typed(a, "Status", "onHold")
		p.service.leads[a].OwnerID = "org-2"
		r := p.must("updated 1", p.run("sync", Options{}, "a,,x-a,open,Anna,1"))
		if e := p.known("a"); e.Status != "open" || e.Seen.Status != "onHold" || e.Organization != "org-2" || !e.Confirmed.Before(e.Seen.At) {
			t.Errorf("%+v", e)
		}
		if text := r.text("a"); !strings.Contains(text, "open was confirmed on") || !strings.Contains(text, "another organization") {
			t.Error(text)
		}
		if n := len(r.tally.notes()); n != 2 || len(r.tally.moves) != 0 {
			t.Errorf("%d notes, %v", n, r.tally.moves)
		}
		p.service.sent()
		p.must("conflict 1", p.run("sync", Options{}, "a,,x-a,open,Anna,1"))
		p.sends()
	})
}

// Nobody knows whether an unanswered update was applied. It is no reason to overwrite what others typed.
func TestAnUpdateWithoutAnAnswerProvesNothing(t *testing.T) {
	fates := func(p *pair, fates ...string) { // of the next requests
		p.service.fate = func(string, string) (fate string) {
			if len(fates) > 0 {
				fate, fates = fates[0], fates[1:]
			}
			return fate
		}
	}
	byFile, byService := Options{Planning: Planning{Conflict: mapping.RuleFile}}, Options{Planning: Planning{Conflict: mapping.RuleService}}
	byFile.Mapping = parsed(t, "version: 1\nkey: \"{id}\"\nlead: {status: \"{status}\"}\n")
	paired(t, func(t *testing.T, p *pair) {
		p.must("created 1", p.run("import", Options{}, "a,,x-a,open,Ann,1"))
		lead := p.known("a").LeadID
		p.service.typed(lead, "Status", "contacted")
		p.run("reconcile", Options{}, "a,,x-a,open,Ann,1")
		fates(p, "lost")
		p.must("failed 1", p.run("sync", byFile, "a,,x-a,onHold,Ann,1"))
		p.must("updated 1", p.run("sync", byFile, "a,,x-a,contacted,Ann,1"))
		p.service.typed(lead, "ExternalID", "typed")
		p.run("reconcile", byService, "a,,x-a,contacted,Ann,1")
		fates(p, "silent")
		p.must("failed 1", p.run("sync", byService, "a,,x-a,contacted,Ann,3"))
		p.must("conflict 1", p.run("import", Options{}, "typed,,typed,open,Ann,1"))
		p.must("updated 1", p.run("sync", byService, "a,,x-a,contacted,Ann,3"))
		if l := p.service.lead(lead); l.ExternalID != "typed" || l.Status != "contacted" {
			t.Errorf("%+v", l)
		}
	})
	paired(t, func(t *testing.T, p *pair) {
		p.must("created 1", p.run("import", Options{}, "a,,x-a,open,Ann,1"))
		p.service.typed(p.known("a").LeadID, "Status", "contacted")
		reads := Options{Planning: Planning{Conflict: mapping.RuleService, CheckRemote: ReadAll}}
		p.must("unchanged 1", p.run("sync", reads, "a,,x-a,open,Ann,1"))
		fates(p, "", "silent")
		p.must("failed 1", p.run("sync", reads, "a,,x-a,onHold,Ann,1"))
		p.must("updated 1", p.run("sync", reads, "a,,x-a,onHold,Ann,1"))
	})
	paired(t, func(t *testing.T, p *pair) {
		p.must("created 1", p.run("import", Options{}, "a,,x-a,open,Ann,1"))
		lead, reads := p.known("a").LeadID, Options{Planning: Planning{Conflict: mapping.RuleService, CheckRemote: ReadAll}}
		p.service.typed(lead, "ExternalID", "typed")
		fates(p, "", "silent")
		p.must("failed 1", p.run("sync", reads, "a,,x-a,open,Ann,3"))
		p.must("conflict 1", p.run("import", Options{}, "typed,,typed,open,Ann,1"))
		reads.Conflict = mapping.RuleReport
		p.service.typed(lead, "ExternalID", "x-a")
		fates(p, "", "silent")
		p.must("failed 1", p.run("sync", reads, "a,,x-b,open,Ann,3"))
		p.service.typed(lead, "ExternalID", "typed")
		p.must("conflict 1", p.run("reconcile", reads, "a,,x-b,open,Ann,3"))
		p.must("conflict 1", p.run("sync", reads, "a,,x-b,open,Ann,3"))
	})
	paired(t, func(t *testing.T, p *pair) {
		fates(p, "", "422")
		p.must("partial 1", p.run("import", Options{}, "a,,x-a,open,Ann,1"))
		p.service.typed(p.known("a").LeadID, "ExternalID", "typed")
		fates(p, "silent")
		p.must("partial 1", p.run("import", Options{}, "a,,x-a,open,Ann,1"))
		p.must("conflict 1", p.run("import", Options{}, "a,,x-a,open,Ann,1"))
	})
}

func TestADoubtThatIsFoundByExternalIDNamesItsKey(t *testing.T) {
	paired(t, func(t *testing.T, p *pair) {
		p.service.fate = func(string, string) string { return "500-stored" }
		p.must("in_doubt 1", p.run("import", Options{}, "a,,x-a,open,Ann,1"))
		if r := p.must("in_doubt 1", p.run("sync", Options{}, "b,,x-a,open,Ann,1")); r.lines[0].knownKey() != "a" {
			t.Error(r.lines[0].knownKey())
		}
	})
}
