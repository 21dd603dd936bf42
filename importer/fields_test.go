package importer

import (
	"cmp"
	"fmt"
	"strings"
	"testing"

	"leadferry/mapping"
)

// Who has changed which field is told by all of them, and a reconciliation changes none.
func TestVerdictsOfFields(t *testing.T) {
	for name, test := range map[string]struct {
		row                     string
		field, value            string
		verdict, by, keys, text string
	}{
		"nothing":                  {"a,,x-a,open,Ann,1", "Status", "open", "same", "", "", ""},
		"ExternalID, console":      {"a,,x-a,open,Ann,1", "ExternalID", "y", "service_ahead", "service", "", "its ExternalID was changed"},
		"ExternalID, cleared":      {"a,,x-a,open,Ann,1", "ExternalID", "", "service_ahead", "service", "", "its ExternalID was changed"},
		"ExternalID, file":         {"a,,z,open,Ann,1", "Status", "open", "file_ahead", "file", "", "not the one that is linked"},
		"ExternalID, both":         {"a,,z,open,Ann,1", "ExternalID", "y", "both_changed", "both", "", "its ExternalID was changed"},
		"ExternalID, both alike":   {"a,,y,open,Ann,1", "ExternalID", "y", "same", "", "", ""},
		"content, console":         {"a,,x-a,open,Ann,1", "name", `"Anna"`, "service_ahead", "service", "name", "its content was changed on the service: name"},
		"content, file":            {"a,,x-a,open,Ann,2", "Status", "open", "file_ahead", "file", "phone", ""},
		"content, both":            {"a,,x-a,open,Ann,2", "phone", `"3"`, "both_changed", "both", "phone", "its content was changed on the service: phone"},
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
				f := &r.lines[0].r.found
				if f.verdict.String() != test.verdict || verdicts[f.verdict].changedBy != test.by || f.keys != test.keys || !strings.Contains(r.text("a"), test.text) {
					t.Errorf("%v by %q, keys %q: %s", f.verdict, verdicts[f.verdict].changedBy, f.keys, r.text("a"))
				}
				if after := p.service.lead(a); fmt.Sprint(after) != fmt.Sprint(before) {
					t.Errorf("the lead was %v, is %v", before, after)
				}
			})
		})
	}
}

// What becomes of a field that others have changed is its own rule's business, then that of --conflict; the other fields go.
func TestRulesOfFields(t *testing.T) {
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
		"by the file":               {nil, Planning{CheckRemote: ReadAll, Conflict: RuleFile}, "name", `"Anna"`, "a,,x-a,open,Ann,1", "updated 1", `{"Content":{"name":"Ann"}}`},
		"by the service":            {nil, Planning{CheckRemote: ReadAll, Conflict: RuleService}, "name", `"Anna"`, "a,,x-a,open,Ann,1", "unchanged 1", "-"},
		"the rest goes":             {nil, Planning{CheckRemote: ReadChanged, Conflict: RuleService}, "name", `"Anna"`, "a,,x-a,open,Annie,2", "updated 1", `{"Content":{"phone":"2"}}`},
		"a key's own rule":          {ruled, Planning{}, "phone", `"9"`, "a,,x-a,contacted,Ann,2", "updated 1", `{"Status":"contacted"}`},
		"an ExternalID, reported":   {nil, Planning{}, "ExternalID", "y", "a,,z,open,Ann,1", "conflict 1", "-"},
		"an ExternalID, by file":    {nil, Planning{Conflict: RuleFile}, "ExternalID", "y", "a,,z,open,Ann,1", "updated 1", `{"ExternalID":"z"}`},
		"an ExternalID, kept":       {ruled, Planning{}, "ExternalID", "y", "a,,z,contacted,Ann,1", "updated 1", `{"Status":"contacted"}`},
		"an ExternalID, unmoved":    {nil, Planning{}, "Status", "open", "a,,z,open,Ann,1", "updated 1", `{"ExternalID":"z"}`},
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
				// What was decided stands: the same run again sends nothing.
				p.run("sync", Options{Task: Task{Mapping: test.rules}, Planning: test.o}, test.row)
				if again := strings.ReplaceAll(p.service.sent(), a+" read\n", ""); again != "" {
					t.Errorf("and once more %s", again)
				}
			})
		})
	}
}

// What the service keeps against the row was not confirmed: once the file's rule counts, the row's value is sent.
func TestKeptContentIsNotConfirmed(t *testing.T) {
	paired(t, func(t *testing.T, p *pair) {
		p.must("created 1", p.run("import", Options{}, "a,,x-a,open,Ann,1"))
		p.service.typed(p.known("a").LeadID, "name", `"Anna"`)
		row := "a,,x-a,open,Annie,2"
		p.must("updated 1", p.run("sync", Options{Planning: Planning{CheckRemote: ReadChanged, Conflict: RuleService}}, row))
		p.service.sent()
		p.must("updated 1", p.run("sync", Options{Planning: Planning{Conflict: RuleFile}}, row))
		if sent := p.service.sent(); !strings.Contains(sent, `"name":"Annie"`) {
			t.Errorf("sent %s", sent)
		}
	})
}

// A service that does not take an update of no content is told once, and the run stops.
func TestReadsThatAreRefused(t *testing.T) {
	paired(t, func(t *testing.T, p *pair) {
		p.must("created 2", p.run("import", Options{}, "a,,x-a,open,Ann,1", "b,,x-b,open,Bob,1"))
		p.service.fate = func(string, string) string { return "400" }
		r := p.run("reconcile", Options{Sending: Sending{Concurrency: 1}}, "a,,x-a,open,Ann,1", "b,,x-b,open,Bob,1")
		if r.stopped == nil || r.stopped.Code != CodeStopped || !strings.Contains(r.stopped.Hint, "--read external-id") {
			t.Errorf("%v, stopped by %v", r.outcomes(), r.stopped)
		}
		p.service.fate = nil
		by := Options{Planning: Planning{ReadByExternalID: true}}
		p.compares(by, "same 2", "a,,x-a,open,Ann,1", "b,,x-b,open,Bob,1")
		p.service.fate = func(string, string) string { return "other-external" }
		p.compares(by, "unread 1 absent 1", "a,,x-a,open,Ann,1")
	})
}

// What a create's and a read's answer say of a lead is counted.
func TestWhatAnswersSayOfLeads(t *testing.T) {
	paired(t, func(t *testing.T, p *pair) {
		p.must("created 1", p.run("import", Options{}, "a,,x-a,open,Ann,1"))
		a := p.known("a").LeadID
		p.service.leads[a].ReadOnly, p.service.leads[a].TestLead = true, true
		r := p.run("reconcile", Options{}, "a,,x-a,open,Ann,1")
		notes := strings.Join(r.tally.notes(), "\n")
		if n := r.tally.remarks; n[readOnlyLead] != 1 || n[testLead] != 1 || !strings.Contains(notes, "read-only: 1.") || !strings.Contains(notes, "test leads: 1.") {
			t.Errorf("%v\n%s", n, notes)
		}
	})
}
