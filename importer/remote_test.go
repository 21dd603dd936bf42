package importer

import (
	"strings"
	"testing"

	"leadferry/checkpoint"
	"leadferry/mapping"
)

func TestCheckRemote(t *testing.T) {
	checked := Options{Planning: Planning{CheckRemote: ReadChanged}}
	paired(t, func(t *testing.T, p *pair) {
		p.must("created 1", p.run("import", Options{}, "a,,x-a,open,Ann,1"))
		a := p.known("a").LeadID
		p.service.sent()
		p.must("updated 1", p.run("sync", checked, "a,,x-a,contacted,Ann,1"))
		p.sends(a+" read", a+` {"Status":"contacted"}`)
		p.must("unchanged 1", p.run("sync", checked, "a,,x-a,contacted,Ann,1"))
		p.sends()

		p.service.console(a, "closedWon")
		for range 2 { // it stays a conflict until somebody gives way
			r := p.must("conflict 1", p.run("sync", checked, "a,,x-a,inProgress,Ann,1"))
			p.sends(a + " read")
			if text := r.text("a"); !strings.Contains(text, "is closedWon; contacted was confirmed on 2000-01-01") {
				t.Error(text)
			}
			if e := p.known("a"); e.Unsettled != "" || e.Status != "contacted" {
				t.Errorf("%+v", e)
			}
		}
		p.service.console(a, "") // no status that could be read
		if r := p.must("conflict 1", p.run("sync", checked, "a,,x-a,inProgress,Ann,1")); !strings.Contains(r.text("a"), "is not readable") {
			t.Error(r.text("a"))
		}
		p.service.sent()
		p.service.console(a, "closedWon")
		p.must("unchanged 1", p.run("sync", checked, "a,,x-a,closedWon,Ann,1"))
		p.sends(a + " read")
		p.must("unchanged 1", p.run("sync", checked, "a,,x-a,closedWon,Ann,1"))
		p.sends()
		p.service.console(a, "onHold")
		r := p.must("updated 1", p.run("sync", checked, "a,,x-a,onHold,Anna,1"))
		p.sends(a+" read", a+` {"Content":{"name":"Anna"}}`)
		if !strings.Contains(r.text("a"), "closedWon was confirmed on") || r.tally.strays.statusByOthers != 1 {
			t.Errorf("%s, %d changed elsewhere", r.text("a"), r.tally.strays.statusByOthers)
		}
	})
}

// A status that a read showed, and that the update's answer shows no more, does not stand against the file's.
func TestAStatusThatIsNoMoreDoesNotStand(t *testing.T) {
	paired(t, func(t *testing.T, p *pair) {
		p.must("created 1", p.run("import", Options{}, "a,,x-a,open,Ann,1"))
		a := p.known("a").LeadID
		p.service.sent()
		asked := 0
		p.service.fate = func(string, string) string {
			asked++
			return map[int]string{1: "other-status"}[asked]
		}
		p.must("updated 1", p.run("sync", Options{Planning: Planning{CheckRemote: ReadChanged, Conflict: RuleService}}, "a,,x-a,contacted,Anna,1"))
		p.sends(a+" read", a+` {"Content":{"name":"Anna"}}`, a+` {"Status":"contacted"}`)
	})
}

// Whether a row would reopen its lead is asked of what the service shows, where that is read.
func TestALeadThatBothSidesReopenedIsRead(t *testing.T) {
	for name, reads := range map[string]Reads{"changed": ReadChanged, "all": ReadAll} {
		t.Run(name, func(t *testing.T) {
			paired(t, func(t *testing.T, p *pair) {
				held := Options{Planning: Planning{CheckRemote: reads, HoldReopen: true}}
				p.must("created 1", p.run("import", Options{}, "a,,x-a,closedWon,Ann,1"))
				a := p.known("a").LeadID
				p.must("conflict 1", p.run("sync", held, "a,,x-a,contacted,Ann,1"))
				p.service.console(a, "contacted")
				p.must("unchanged 1", p.run("sync", held, "a,,x-a,contacted,Ann,1"))
				p.must("unchanged 1", p.run("sync", Options{}, "a,,x-a,contacted,Ann,1"))
				p.service.console(a, "closedWon")
				r := p.must("conflict 1", p.run("sync", held, "a,,x-a,onHold,Ann,1"))
				if text := r.text("a"); !strings.Contains(text, "closedWon") {
					t.Error(text)
				}
			})
		})
	}
}

// What an update that was not settled asked for is no conflict when it is found there.
func TestCheckRemoteKnowsItsOwnUnsettledUpdate(t *testing.T) {
	paired(t, func(t *testing.T, p *pair) {
		p.must("created 1", p.run("import", Options{}, "a,,x-a,open,Ann,1"))
		p.service.fate = func(string, string) string { return "lost" }
		p.must("failed 1", p.run("sync", Options{}, "a,,x-a,contacted,Ann,1"))
		p.service.fate = nil
		p.must("updated 1", p.run("sync", Options{Planning: Planning{CheckRemote: ReadChanged}}, "a,,x-a,inProgress,Ann,1"))
	})
}

func TestALeadThatCannotBeReadIsSentUncheckedAndCounted(t *testing.T) {
	paired(t, func(t *testing.T, p *pair) {
		p.service.fate = func(op, _ string) string {
			if op == "update" {
				return "422"
			}
			return ""
		}
		p.must("partial 1", p.run("import", Options{}, "a,,x-a,open,Ann,1"))
		p.service.fate = nil
		r := p.must("updated 1", p.run("sync", Options{Planning: Planning{CheckRemote: ReadChanged, ReadByExternalID: true}}, "a,,x-a,onHold,Ann,1"))
		if n := r.tally.strays.unread; n != 1 || p.known("a").State != checkpoint.Created || p.known("a").ExternalID != "x-a" {
			t.Errorf("%d unchecked, %+v", n, p.known("a"))
		}
	})
}

// A lead that --check-remote=all cannot read is told, though nothing is sent to it.
func TestALeadWithoutExternalIDIsToldWhenAllAreRead(t *testing.T) {
	paired(t, func(t *testing.T, p *pair) {
		nothingLinked, err := mapping.Parse("m", []byte(strings.ReplaceAll(pairMapping, "external_id:", "# external_id:")), nil)
		if err != nil {
			t.Fatal(err)
		}
		p.must("created 1", p.run("import", Options{Task: Task{Mapping: nothingLinked}}, "a,,,open,Ann,1"))
		for _, test := range []struct {
			o    Options
			want int
		}{{Options{}, 0}, {Options{Planning: Planning{CheckRemote: ReadChanged}}, 0}, {Options{Planning: Planning{CheckRemote: ReadAll}}, 1}, {Options{Planning: Planning{CheckRemote: ReadAll}, Checking: Checking{DryRun: true}}, 0}} {
			test.o.Mapping, test.o.ReadByExternalID = nothingLinked, true
			r := p.run("sync", test.o, "a,,,open,Ann,1")
			notes := strings.Join(r.tally.notes(), "\n")
			if n := r.tally.strays.unread; n != test.want || strings.Contains(notes, "could not read, for want of a known ExternalID: 1.") != (n == 1) || !test.o.DryRun && r.outcomes() != "unchanged 1" {
				t.Errorf("%s, %d unread, %s", r.outcomes(), n, notes)
			}
		}
	})
}
