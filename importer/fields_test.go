package importer

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"leadferry/importer/delivery"
	"leadferry/importer/report"
	"leadferry/mapping"
)

// A reconciliation says for each field whether the file or the service changed it, and changes nothing itself.
func TestReconciliationSaysWhoChangedEachField(t *testing.T) {
	for name, test := range map[string]struct {
		row                     string
		field, value            string
		verdict, by, keys, text string
	}{
		"nothing":                  {"a,,x-a,open,Ann,1", "Status", "open", "same", "", "", ""},
		"ExternalID, console":      {"a,,x-a,open,Ann,1", "ExternalID", "y", "service_ahead", "service", "", "changed on the service: ExternalID"},
		"ExternalID, cleared":      {"a,,x-a,open,Ann,1", "ExternalID", "", "service_ahead", "service", "", "changed on the service: ExternalID"},
		"ExternalID, file":         {"a,,z,open,Ann,1", "Status", "open", "file_ahead", "file", "", "not the one that is linked"},
		"ExternalID, both":         {"a,,z,open,Ann,1", "ExternalID", "y", "both_changed", "both", "", "changed on the service: ExternalID"},
		"ExternalID, both alike":   {"a,,y,open,Ann,1", "ExternalID", "y", "same", "", "", ""},
		"content, console":         {"a,,x-a,open,Ann,1", "name", `"Anna"`, "service_ahead", "service", "name", "changed on the service: name"},
		"content, file":            {"a,,x-a,open,Ann,2", "Status", "open", "file_ahead", "file", "phone", ""},
		"content, both":            {"a,,x-a,open,Ann,2", "phone", `"3"`, "both_changed", "both", "phone", "changed on the service: phone"},
		"content, both alike":      {"a,,x-a,open,Ann,2", "phone", `"2"`, "same", "", "", ""},
		"content, one each":        {"a,,x-a,open,Ann,2", "name", `"Anna"`, "both_changed", "both", "name, phone", "name"},
		"content that is not sent": {"a,,x-a,open,Ann,1", "age", `7`, "same", "", "", ""},
		"content, no cell":         {"a,,x-a,open,Ann,", "phone", `"9"`, "same", "", "", ""},
		"content, of another kind": {"a,,x-a,open,Ann,1", "phone", `1`, "service_ahead", "service", "phone", ""},
	} {
		t.Run(name, func(t *testing.T) {
			paired(t, func(t *testing.T, p *pair) {
				p.must("created 1", p.run("import", Options{}, "a,,x-a,open,Ann,1"))
				a := p.known("a").LeadID
				p.service.typed(a, test.field, test.value)
				before := p.service.lead(a)
				r := p.run("reconcile", Options{}, test.row)
				f := &r.lines[0].found
				if string(f.verdict) != test.verdict || changedBy[f.verdict] != test.by || f.keys != test.keys || !strings.Contains(r.text("a"), test.text) {
					t.Errorf("%v by %q, keys %q: %s", f.verdict, changedBy[f.verdict], f.keys, r.text("a"))
				}
				if after := p.service.lead(a); fmt.Sprint(after) != fmt.Sprint(before) {
					t.Errorf("the lead was %v, is %v", before, after)
				}
				for _, how := range []Reconciling{{Fresh: time.Hour}, {None: true}} { // what was seen is not forgotten
					if again := p.run("reconcile", Options{Planning: Planning{Reconciling: how}}, test.row).lines[0].found.verdict; again != f.verdict && f.verdict != Same {
						t.Errorf("%v, then with %+v %v", f.verdict, how, again)
					}
				}
			})
		})
	}
}

// If others changed a field, the field's own rule decides, or else --conflict. The other fields are sent.
func TestConflictRulesDecideFieldByField(t *testing.T) {
	ruled := parsed(t, strings.NewReplacer(`external_id: "{ext}"`, `external_id: {from: "{ext}", conflict: service}`,
		`phone: "{phone}"`, `phone: {from: "{phone}", conflict: service}`).Replace(pairMapping))
	for name, test := range map[string]struct {
		rules        *mapping.Mapping
		o            Planning
		field, value string
		row          string
		outcome      string
		sent         string // "-": nothing but reads
	}{
		"reported":                  {nil, Planning{CheckRemote: ReadChanged}, "name", `"Anna"`, "a,,x-a,open,Annie,1", "conflict 1", "-"},
		"only what the row changes": {nil, Planning{CheckRemote: ReadChanged}, "name", `"Anna"`, "a,,x-a,open,Ann,2", "updated 1", `{"Content":{"phone":"2"}}`},
		"all is looked at":          {nil, Planning{CheckRemote: ReadAll}, "name", `"Anna"`, "a,,x-a,open,Ann,1", "conflict 1", "-"},
		"by the file":               {nil, Planning{CheckRemote: ReadAll, Conflict: mapping.RuleFile}, "name", `"Anna"`, "a,,x-a,open,Ann,1", "updated 1", `{"Content":{"name":"Ann"}}`},
		"by the service":            {nil, Planning{CheckRemote: ReadAll, Conflict: mapping.RuleService}, "name", `"Anna"`, "a,,x-a,open,Ann,1", "unchanged 1", "-"},
		"the rest goes":             {nil, Planning{CheckRemote: ReadChanged, Conflict: mapping.RuleService}, "name", `"Anna"`, "a,,x-a,open,Annie,2", "updated 1", `{"Content":{"phone":"2"}}`},
		"a key's own rule":          {ruled, Planning{}, "phone", `"9"`, "a,,x-a,contacted,Ann,2", "updated 1", `{"Status":"contacted"}`},
		"an ExternalID, reported":   {nil, Planning{}, "ExternalID", "y", "a,,z,open,Ann,1", "conflict 1", "-"},
		"an ExternalID, by file":    {nil, Planning{Conflict: mapping.RuleFile}, "ExternalID", "y", "a,,z,open,Ann,1", "updated 1", `{"ExternalID":"z"}`},
		"an ExternalID, kept":       {ruled, Planning{}, "ExternalID", "y", "a,,z,contacted,Ann,1", "updated 1", `{"Status":"contacted"}`},
		"ExternalID, unmoved":       {nil, Planning{}, "Status", "open", "a,,z,open,Ann,1", "updated 1", `{"ExternalID":"z"}`},
	} {
		t.Run(name, func(t *testing.T) {
			paired(t, func(t *testing.T, p *pair) {
				p.must("created 1", p.run("import", Options{}, "a,,x-a,open,Ann,1"))
				a := p.known("a").LeadID
				p.service.typed(a, test.field, test.value)
				p.service.sent()
				p.must(test.outcome, p.run("sync", Options{Task: Task{Mapping: test.rules}, Planning: test.o}, test.row))
				var sent []string
				for line := range strings.Lines(p.service.sent()) {
					if !strings.HasSuffix(line, " read\n") {
						sent = append(sent, strings.TrimSuffix(strings.TrimPrefix(line, a+" "), "\n"))
					}
				}
				if got := cmp.Or(strings.Join(sent, "\n"), "-"); got != test.sent {
					t.Errorf("sent %s, want %s", got, test.sent)
				}
				// The decision lasts: the same run again sends nothing.
				p.run("sync", Options{Task: Task{Mapping: test.rules}, Planning: test.o}, test.row)
				if again := strings.ReplaceAll(p.service.sent(), a+" read\n", ""); again != "" {
					t.Errorf("and once more %s", again)
				}
			})
		})
	}
}

// If others linked a partial lead to another ExternalID, the rule decides, in every later run alike.
func TestAPartialLeadThatOthersLinkedKeepsToTheRule(t *testing.T) {
	for rule, want := range map[mapping.Rule][2]string{
		"report": {"conflict 1", "y"}, "service": {"unchanged 1", "y"}, "file": {"unchanged 1", "x-a"},
	} {
		for _, commands := range []string{"import sync sync", "sync sync import sync", "sync import sync"} {
			t.Run(string(rule)+" "+commands, func(t *testing.T) {
				paired(t, func(t *testing.T, p *pair) {
					p.service.fate = func(op, _ string) string { return map[string]string{"update": "422"}[op] }
					p.must("partial 1", p.run("import", Options{}, "a,,x-a,open,Ann,1"))
					p.service.fate = nil
					a := p.known("a").LeadID
					p.service.typed(a, "ExternalID", "y")
					m := parsed(t, strings.Replace(pairMapping, `"{ext}"`, `{from: "{ext}", conflict: `+string(rule)+`}`, 1))
					var last *trial
					for _, command := range strings.Fields(commands) {
						last = p.run(command, Options{Task: Task{Mapping: m}}, "a,,x-a,open,Ann,1")
					}
					if p.must(want[0], last); p.service.leads[a].ExternalID != want[1] {
						t.Errorf("its ExternalID is %q", p.service.leads[a].ExternalID)
					}
				})
			})
		}
	}
}

// Keeping a service's value does not confirm the row's value: with the rule `file`, the row's value is sent later.
func TestKeptContentIsNotConfirmed(t *testing.T) {
	paired(t, func(t *testing.T, p *pair) {
		p.must("created 1", p.run("import", Options{}, "a,,x-a,open,Ann,1"))
		p.service.typed(p.known("a").LeadID, "name", `"Anna"`)
		row := "a,,x-a,open,Annie,2"
		p.must("updated 1", p.run("sync", Options{Planning: Planning{CheckRemote: ReadChanged, Conflict: mapping.RuleService}}, row))
		p.service.sent()
		p.must("updated 1", p.run("sync", Options{Planning: Planning{Conflict: mapping.RuleFile}}, row))
		if sent := p.service.sent(); !strings.Contains(sent, `"name":"Annie"`) {
			t.Errorf("sent %s", sent)
		}
	})
}

// A read is an update without content. If the service refuses these, the run stops and names another way to read.
func TestRefusedReadsStopTheRun(t *testing.T) {
	paired(t, func(t *testing.T, p *pair) {
		p.must("created 2", p.run("import", Options{}, "a,,x-a,open,Ann,1", "b,,x-b,open,Bob,1"))
		p.service.fate = func(string, string) string { return "400" }
		r := p.run("reconcile", Options{Sending: Sending{Concurrency: 1}}, "a,,x-a,open,Ann,1", "b,,x-b,open,Bob,1")
		if r.stopped == nil || r.stopped.Code != report.CodeStopped || !strings.Contains(r.stopped.Hint, "--read external-id") {
			t.Errorf("%v, stopped by %v", r.outcomes(), r.stopped)
		}
		p.service.fate = func(string, string) string { return "403" } // may be due to one lead, but not to all leads
		all := Options{Sending: Sending{Concurrency: 4}, Limits: delivery.Limits{MaxRejects: delivery.Share{Rows: 100}}}
		r = p.run("reconcile", all, slices.Repeat([]string{"a,,x-a,open,Ann,1", "b,,x-b,open,Bob,1"}, 20)...)
		if r.stopped == nil || !strings.Contains(r.stopped.Reason, "all refused with HTTP 403") {
			t.Errorf("%v, stopped by %v", r.outcomes(), r.stopped)
		}
		p.service.fate = nil
		by := Options{Planning: Planning{ReadByExternalID: true}}
		p.compares(by, "same 2", "a,,x-a,open,Ann,1", "b,,x-b,open,Bob,1")
		p.service.fate = func(string, string) string { return "other-external" }
		p.compares(by, "unread 1 absent 1", "a,,x-a,open,Ann,1")
	})
}

func TestNumbersAreComparedToTheLastDigit(t *testing.T) {
	for _, test := range []struct {
		sent, have string
		same       bool
	}{
		{"1.50", "1.5", true},
		{"150", "1.5e2", true},
		{"150", "1.5E+2", true},
		{"0.015", "15e-3", true},
		{"-0", "0.000", true},
		{"0e99", "0", true},
		{"12345678901234567891", "12345678901234567890", false},
		{"12345678901234567891", "12345678901234567891.0", true},
		{"0.1", "0.10000000000000001", false},
		{"1", "-1", false},
		{"1e400", "1e401", false},
		{"1e99999999999999999999", "1e99999999999999999999", true},
		{"1e99999999999999999999", "10e99999999999999999998", false}, // nobody writes numbers like that
		{"7", `"7"`, false},
		{"7", "", false},
	} {
		if got := carries(jsontext.Value(test.have), &mapping.Field{Literal: true, Value: test.sent}); got != test.same {
			t.Errorf("%s sent, %s came back: %v", test.sent, test.have, got)
		}
	}
}

// The laws of decide, for every combination of values.
func TestDecide(t *testing.T) {
	const values = 4 // "", A, B, C
	for n := range values * values * values * values * values * values {
		v := func(at int) string { return []string{"", "A", "B", "C"}[n>>(2*at)%values] }
		f := field{file: v(0), confirmed: v(1), seen: v(2), kept: v(3), against: v(4), sought: v(5)}
		said, agreed := f.file != "", f.file != "" && f.file == f.seen
		comparable := f.confirmed != "" && f.seen != "" && f.seen != f.sought
		for _, rule := range []mapping.Rule{mapping.RuleReport, mapping.RuleService, mapping.RuleFile} {
			d := decide(f, rule)
			for law, holds := range map[string]bool{
				"a row that says what the service shows changes nothing": !agreed || d == decision{},
				"the file changed what it said when the service's won":   agreed || f.kept == "" || d.byFile == (said && f.file != f.against),
				"the service changed what won, or the file is stale":     agreed || f.kept == "" || d.byService == (!d.byFile || f.seen != f.kept),
				"the file changed what was confirmed":                    agreed || f.kept != "" || !comparable || d.byFile == (said && f.file != f.confirmed),
				"the service changed what was confirmed":                 agreed || f.kept != "" || !comparable || d.byService == (f.seen != f.confirmed),
				"if nothing can be compared, the file decides":           agreed || f.kept != "" || comparable || d.byFile == said && !d.byService,
				"only what others changed is asked about, or kept":       (d.choice == asks) == (d.byService && rule == mapping.RuleReport) && (d.choice == keeps) == (d.byService && rule == mapping.RuleService),
				"what the service does not show is sent otherwise":       (d.choice == sends) == (said && !agreed && d.choice != asks && d.choice != keeps),
			} {
				if !holds {
					t.Fatalf("%+v, by the rule %s, is %+v: it is not true that %s", f, rule, d, law)
				}
			}
		}
	}
}

// ForStatus prefers the mapping's rule for the status to --conflict.
func TestRuleOfAStatusBeatsTheConflictFlag(t *testing.T) {
	p := mapping.ConflictRules{All: mapping.RuleFile, Status: map[string]mapping.Rule{"closedWon": "service", "onHold": "report"}}
	for status, want := range map[string]mapping.Rule{"closedWon": mapping.RuleService, "onHold": mapping.RuleReport, "open": mapping.RuleFile, "unheard of": mapping.RuleFile, "": mapping.RuleReport} {
		if got := p.ForStatus(status); got != want {
			t.Errorf("%q: %s, want %s", status, got, want)
		}
	}
}

// --check-remote=all counts a lead that it cannot read, although nothing is sent to it.
func TestCheckRemoteAllCountsLeadsThatItCannotRead(t *testing.T) {
	paired(t, func(t *testing.T, p *pair) {
		nothingLinked := parsed(t, strings.ReplaceAll(pairMapping, "external_id:", "# external_id:"))
		p.must("created 1", p.run("import", Options{Task: Task{Mapping: nothingLinked}}, "a,,,open,Ann,1"))
		for _, test := range []struct {
			o    Options
			want int
		}{{Options{}, 0}, {Options{Planning: Planning{CheckRemote: ReadChanged}}, 0}, {Options{Planning: Planning{CheckRemote: ReadAll}}, 1}, {Options{Planning: Planning{CheckRemote: ReadAll}, Checking: Checking{DryRun: true}}, 0}} {
			test.o.Mapping, test.o.ReadByExternalID = nothingLinked, true
			r := p.run("sync", test.o, "a,,,open,Ann,1")
			notes := strings.Join(r.tally.notes(), "\n")
			if n := r.tally.remarks[notReadable]; n != test.want || strings.Contains(notes, "could not read, because their ExternalID is not known: 1.") != (n == 1) || !test.o.DryRun && r.outcomes() != "unchanged 1" {
				t.Errorf("%s, %d unread, %s", r.outcomes(), n, notes)
			}
		}
	})
}
