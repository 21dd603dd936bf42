package importer

import (
	"strings"
	"testing"

	"leadferry/checkpoint"
	"leadferry/importer/report"
	"leadferry/mapping"
)

// What becomes of a field, by what both sides were last known to hold, what they say now, and the rule.
func TestDecide(t *testing.T) {
	type all [3]then // by the rules report, service and file
	nothing, file, held := all{}, all{sends, sends, sends}, all{asks, keeps, sends}
	for name, test := range map[string]struct {
		field
		by   string
		then all
	}{
		"nobody":                       {field{file: "A", held: "A", seen: "A"}, "", nothing},
		"file":                         {field{file: "B", held: "A", seen: "A"}, "file", file},
		"service":                      {field{file: "A", held: "A", seen: "B"}, "service", held},
		"both":                         {field{file: "C", held: "A", seen: "B"}, "both", held},
		"both to the same":             {field{file: "B", held: "A", seen: "B"}, "", nothing},
		"the row says nothing":         {field{held: "A", seen: "A"}, "", nothing},
		"it says nothing, service":     {field{held: "A", seen: "B"}, "service", all{asks, keeps, leaves}},
		"none was known":               {field{file: "A", seen: "B"}, "file", file},
		"none was known, none is said": {field{seen: "B"}, "", nothing},
		"not shown":                    {field{file: "A", held: "A"}, "file", file},
		"not shown, none is said":      {field{held: "A"}, "", nothing},
		"sought":                       {field{file: "A", held: "A", seen: "B", sought: "B"}, "file", file},
		"sought, the file went on":     {field{file: "C", held: "A", seen: "B", sought: "B"}, "file", file},
		"sought, none is said":         {field{held: "A", seen: "B", sought: "B"}, "", nothing},
		"sought, the service went on":  {field{file: "B", held: "A", seen: "C", sought: "B"}, "both", held},
		"kept, a stale file":           {field{file: "B", held: "A", seen: "C", kept: "C", against: "B"}, "service", held},
		"kept, none is said":           {field{held: "A", seen: "C", kept: "C", against: "B"}, "service", all{asks, keeps, leaves}},
		"kept, the file took it over":  {field{file: "C", held: "A", seen: "C", kept: "C", against: "B"}, "", nothing},
		"kept, the file goes on":       {field{file: "D", held: "A", seen: "C", kept: "C", against: "B"}, "file", file},
		"kept, the file as once":       {field{file: "A", held: "A", seen: "C", kept: "C", against: "B"}, "file", file},
		"kept, the service goes on":    {field{file: "B", held: "A", seen: "D", kept: "C", against: "B"}, "service", held},
		"kept, both go on":             {field{file: "D", held: "A", seen: "E", kept: "C", against: "B"}, "both", held},
	} {
		for i, rule := range []Rule{RuleReport, RuleService, RuleFile} {
			d := decide(test.field, rule)
			by := map[[2]bool]string{{true, false}: "file", {false, true}: "service", {true, true}: "both"}[[2]bool{d.byFile, d.byService}]
			if by != test.by || d.then != test.then[i] {
				t.Errorf("%s, by the rule %s: changed by %q, then %d; want %q, %d", name, rule, by, d.then, test.by, test.then[i])
			}
		}
	}
}

// What a plain sync makes of a status that an earlier run has seen, without a read of its own.
func TestWhatWasSeenIsTreatedByTheRule(t *testing.T) {
	paired(t, func(t *testing.T, p *pair) {
		p.must("created 1", p.run("import", Options{}, "a,,x-a,open,Ann,1"))
		a := p.known("a").LeadID
		p.service.console(a, "closedWon")
		p.must("conflict 1", p.run("sync", Options{Planning: Planning{CheckRemote: ReadAll}}, "a,,x-a,open,Ann,1"))
		if e := p.known("a"); e.Status != "open" || e.Seen.Status != "closedWon" || e.Seen.Organization != "org-1" || e.Seen.At.IsZero() {
			t.Errorf("%+v", e)
		}
		p.service.sent()
		r := p.must("conflict 1", p.run("sync", Options{}, "a,,x-a,contacted,Ann,1"))
		if text := r.text("a"); !strings.Contains(text, "closedWon; open was confirmed") {
			t.Error(text)
		}
		p.must("conflict 1", p.run("sync", Options{Planning: Planning{Conflict: RuleFile, HoldReopen: true}}, "a,,x-a,contacted,Ann,1"))
		p.must("conflict 1", p.run("import", Options{Planning: Planning{Changed: UpdateChanged}}, "a,,x-a,contacted,Ann,1"))
		p.sends()

		service := Options{Planning: Planning{Conflict: RuleService}}
		p.must("unchanged 1", p.run("sync", service, "a,,x-a,contacted,Ann,1"))
		p.sends()
		if e := p.known("a"); e.Status != "open" || !e.Seen.Kept || e.Seen.Against != "contacted" {
			t.Errorf("%+v", e)
		}
		r = p.must("unchanged 1", p.run("sync", service, "a,,x-a,contacted,Ann,1")) // a stale file is not ahead
		if text := r.text("a"); text != "unchanged: the service's status is kept: closedWon" || r.tally.strays.kept != 1 {
			t.Errorf("%q, %d kept", text, r.tally.strays.kept)
		}
		r = p.must("updated 1", p.run("sync", service, "a,,x-a,contacted,Anna,1")) // its content is
		if text := r.text("a"); !strings.HasSuffix(text, "the service's status is kept: closedWon") {
			t.Error(text)
		}
		p.sends(a + ` {"Content":{"name":"Anna"}}`)
		if e := p.known("a"); e.Status != "open" || e.Seen.Status != "closedWon" || !e.Seen.Kept {
			t.Errorf("%+v", e)
		}
		p.must("updated 1", p.run("sync", service, "a,,x-a,open,Anna,1")) // the file went on, to what was confirmed once
		p.sends(a + ` {"Status":"open"}`)
		if e := p.known("a"); e.Status != "open" || e.Seen != (checkpoint.Sight{}) {
			t.Errorf("%+v", e)
		}
	})
}

// A row that says nothing of the status changes nothing: what was kept against the file stays kept when the file says again
// what it said then.
func TestARowWithoutAStatusLeavesWhatIsKept(t *testing.T) {
	for name, reads := range map[string]Reads{"seen before": ReadNothing, "read": ReadAll} {
		t.Run(name, func(t *testing.T) {
			paired(t, func(t *testing.T, p *pair) {
				const stale, silent = "a,,x-a,open,Ann,1", "a,,x-a,,Ann,1"
				service := Options{Planning: Planning{Conflict: RuleService, CheckRemote: ReadAll}}
				p.must("created 1", p.run("import", Options{}, stale))
				a := p.known("a").LeadID
				p.service.console(a, "closedWon")
				for _, rows := range []string{silent, stale, silent, stale} { // the first night knows of no other status than the confirmed one
					p.must("unchanged 1", p.run("sync", service, rows))
					if got := p.service.lead(a).Status; got != "closedWon" {
						t.Errorf("the service's status was to stand, it is %s", got)
					}
					service.CheckRemote = reads
				}
				p.must("updated 1", p.run("sync", service, "a,,x-a,onHold,Ann,1"))
			})
		})
	}
}

// What the answer to an update shows of a lead's status is treated by the rule at once, as what was read: the same run once more
// sends nothing, and its pull file is the same.
func TestWhatAnUpdateShowsIsTreatedByTheRule(t *testing.T) {
	content, status := ` {"Content":{"name":"Anna"}}`, ` {"Status":"open"}`
	for name, test := range map[string]struct {
		rule         Rule
		hold         bool
		sent         []string
		again        string // how the same run ends
		status, pull string
	}{
		"report":            {RuleReport, false, []string{content}, "conflict 1", "closedWon", ""},
		"service":           {RuleService, false, []string{content}, "unchanged 1", "closedWon", "x-a "},
		"file":              {RuleFile, false, []string{content, status}, "unchanged 1", "open", ""},
		"file, but no more": {RuleFile, true, []string{content}, "conflict 1", "closedWon", ""},
	} {
		t.Run(name, func(t *testing.T) {
			paired(t, func(t *testing.T, p *pair) {
				p.must("created 1", p.run("import", Options{}, "a,,x-a,open,Ann,1"))
				a := p.known("a").LeadID
				p.service.console(a, "closedWon")
				p.service.sent()
				o := Options{Planning: Planning{Conflict: test.rule, HoldReopen: test.hold}, Keeping: Keeping{Files: report.Files{Pull: "pull.csv"}}}
				r := p.must("updated 1", p.run("sync", o, "a,,x-a,open,Anna,1"))
				var sent []string
				for _, body := range test.sent {
					sent = append(sent, a+body)
				}
				p.sends(sent...)
				if _, order := r.pulledBy(); order != test.pull || p.service.lead(a).Status != test.status {
					t.Errorf("%s, the pull file has %q", p.service.lead(a).Status, order)
				}
				if text := r.text("a"); !strings.Contains(text, "now it is closedWon") || strings.Contains(text, "the file's was sent") != (test.status == "open") {
					t.Error(text)
				}
				if test.status == "open" && r.tally.moves[report.Transition{From: "closedWon", To: "open"}] != 1 {
					t.Error(r.tally.moves)
				}
				r = p.must(test.again, p.run("sync", o, "a,,x-a,open,Anna,1"))
				p.sends()
				if _, order := r.pulledBy(); order != test.pull {
					t.Errorf("the pull file has %q", order)
				}
			})
		})
	}
}

// What was seen may have changed since: the rule is that of the status which the answer shows, and there is none where the
// row says the same.
func TestTheRuleIsThatOfTheStatusShown(t *testing.T) {
	ruled, err := mapping.Parse("m", []byte(strings.ReplaceAll(pairMapping, `status: "{status}"`, `status: {from: "{status}", conflict: {closedWon: file}}`)), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ file, now, want, pull string }{
		{"contacted", "closedWon", "contacted", ""},
		{"contacted", "contacted", "contacted", ""},
		{"contacted", "inProgress", "inProgress", "x-a "},
		{"", "closedWon", "closedWon", ""},
		{"", "inProgress", "inProgress", "x-a "},
	} {
		t.Run(test.file+"-"+test.now, func(t *testing.T) {
			paired(t, func(t *testing.T, p *pair) {
				row := "a,,x-a," + test.file + ",Anna,1"
				p.must("created 1", p.run("import", Options{}, "a,,x-a,open,Ann,1"))
				a := p.known("a").LeadID
				p.service.console(a, "onHold")
				p.run("reconcile", Options{}, row)
				p.service.console(a, test.now)
				o := Options{Task: Task{Mapping: ruled}, Planning: Planning{Conflict: RuleService}, Keeping: Keeping{Files: report.Files{Pull: "pull.csv"}}}
				for _, outcome := range []string{"updated 1", "unchanged 1"} {
					r := p.must(outcome, p.run("sync", o, row))
					if _, order := r.pulledBy(); p.service.lead(a).Status != test.want || order != test.pull {
						t.Errorf("%s, the pull file has %q", p.service.lead(a).Status, order)
					}
				}
				if sent := p.service.sent(); strings.Count(sent, "Content") != 1 {
					t.Error(sent)
				}
			})
		})
	}
}

// A status that others gave a lead and that a run sends the file's over is told as any other that they changed, whether it was
// read, or seen before.
func TestAStatusThatIsSentOverIsTold(t *testing.T) {
	for name, reads := range map[string]Reads{"seen before": ReadNothing, "read": ReadChanged} {
		t.Run(name, func(t *testing.T) {
			paired(t, func(t *testing.T, p *pair) {
				const row, next = "a,,x-a,open,Ann,1", "a,,x-a,contacted,Ann,1"
				p.must("created 1", p.run("import", Options{}, row))
				p.service.console(p.known("a").LeadID, "closedWon")
				if reads == ReadNothing {
					p.run("reconcile", Options{}, row)
				}
				file := Options{Planning: Planning{Conflict: RuleFile, CheckRemote: reads}}
				r := p.must("updated 1", p.run("sync", file, next))
				if text := r.text("a"); !strings.Contains(text, "now it is closedWon; the file's was sent") || r.tally.strays.statusByOthers != 1 {
					t.Errorf("%d told, %s", r.tally.strays.statusByOthers, text)
				}
				if moved := (report.Transition{From: "closedWon", To: "contacted"}); len(r.tally.moves) != 1 || r.tally.moves[moved] != 1 {
					t.Error(r.tally.moves)
				}
				r = p.must("updated 1", p.run("sync", file, row)) // nobody changed it since
				if text := r.text("a"); text != "updated: " || r.tally.strays.statusByOthers != 0 {
					t.Errorf("%d told, %s", r.tally.strays.statusByOthers, text)
				}
			})
		})
	}
}

// Where the file's status cannot be sent any more, or not be confirmed, the row says so.
func TestAStatusThatIsSentOverAnotherOneMayFail(t *testing.T) {
	for fate, want := range map[string]string{"422": "rejected 1", "lost": "failed 1", "other-status": "failed 1"} {
		t.Run(fate, func(t *testing.T) {
			paired(t, func(t *testing.T, p *pair) {
				p.must("created 1", p.run("import", Options{}, "a,,x-a,open,Ann,1"))
				a := p.known("a").LeadID
				p.service.console(a, "closedWon")
				updates := 0
				p.service.fate = func(string, string) string {
					if updates++; updates > 1 {
						return fate
					}
					return ""
				}
				file := Options{Planning: Planning{Conflict: RuleFile}}
				p.must(want, p.run("sync", file, "a,,x-a,open,Anna,1"))
				p.service.fate = nil
				if fate != "422" { // which is not sent again
					p.must("updated 1", p.run("sync", file, "a,,x-a,open,Anna,1"))
				}
				file.RetryRejected = true
				p.run("sync", file, "a,,x-a,open,Anna,1")
				p.service.sent()
				p.must("unchanged 1", p.run("sync", file, "a,,x-a,open,Anna,1"))
				p.sends()
				if got := p.service.lead(a); got.Status != "open" || p.known("a").Status != "open" {
					t.Errorf("%+v", got)
				}
			})
		})
	}
}

// Both sides agree on what was only seen: nothing is sent, and it counts as confirmed.
func TestAFileThatTakesOverWhatWasSeen(t *testing.T) {
	paired(t, func(t *testing.T, p *pair) {
		p.must("created 1", p.run("import", Options{}, "a,,x-a,open,Ann,1"))
		a := p.known("a").LeadID
		p.service.console(a, "closedWon")
		p.must("unchanged 1", p.run("sync", Options{Planning: Planning{CheckRemote: ReadAll, Conflict: RuleService}}, "a,,x-a,open,Ann,1"))
		p.service.sent()
		p.must("unchanged 1", p.run("sync", Options{}, "a,,x-a,closedWon,Ann,1"))
		p.sends()
		if e := p.known("a"); e.Status != "closedWon" || e.Seen != (checkpoint.Sight{}) {
			t.Errorf("%+v", e)
		}
		p.must("updated 1", p.run("sync", Options{}, "a,,x-a,onHold,Ann,1"))
		p.sends(a + ` {"Status":"onHold"}`)
	})
}

// --check-remote=all finds what changed where the file stood still; a row of which nothing
// changed is read, and that is all.
func TestCheckRemoteAll(t *testing.T) {
	paired(t, func(t *testing.T, p *pair) {
		p.must("created 2", p.run("import", Options{}, "a,,x-a,open,Ann,1", "b,,x-b,open,Bob,1"))
		a, b := p.known("a").LeadID, p.known("b").LeadID
		p.service.sent()
		p.service.console(b, "onHold")
		rows := []string{"a,,x-a,open,Ann,1", "b,,x-b,open,Bob,1"}
		p.must("unchanged 2", p.run("sync", Options{Planning: Planning{CheckRemote: ReadChanged}}, rows...))
		p.sends()
		p.must("unchanged 1 conflict 1", p.run("sync", Options{Sending: Sending{Concurrency: 1}, Planning: Planning{CheckRemote: ReadAll}}, rows...))
		p.service.sent()
		p.must("updated 1 unchanged 1", p.run("sync", Options{Planning: Planning{CheckRemote: ReadAll, Conflict: RuleFile}}, rows...))
		if sent := p.service.sent(); strings.Count(sent, " read") != 2 || !strings.Contains(sent, b+` {"Status":"open"}`) || strings.Contains(sent, a+` {"Status`) {
			t.Error(sent)
		}
		if e := p.known("a"); e.Unsettled != "" || e.Seen.Status != "open" {
			t.Errorf("%+v", e)
		}
	})
}

// The mapping's rule of a status goes before --conflict.
func TestRuleOfAStatus(t *testing.T) {
	p := conflicts{rule: RuleFile, rules: mapping.ConflictRules{Status: map[string]string{"closedWon": "service", "onHold": "report"}}}
	for status, want := range map[string]Rule{"closedWon": RuleService, "onHold": RuleReport, "open": RuleFile, "unheard of": RuleFile, "": RuleReport} {
		if got := p.forStatus(status); got != want {
			t.Errorf("%q: %s, want %s", status, got, want)
		}
	}
}

// --check-remote: what was changed on the service is a conflict until somebody gives way.
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
