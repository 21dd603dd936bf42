package importer

import (
	"strings"
	"testing"

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

// The mapping's rule of a status goes before --conflict.
func TestRuleOfAStatus(t *testing.T) {
	p := conflicts{rule: RuleFile, rules: mapping.ConflictRules{Status: map[string]string{"closedWon": "service", "onHold": "report"}}}
	for status, want := range map[string]Rule{"closedWon": RuleService, "onHold": RuleReport, "open": RuleFile, "unheard of": RuleFile, "": RuleReport} {
		if got := p.forStatus(status); got != want {
			t.Errorf("%q: %s, want %s", status, got, want)
		}
	}
}

// A lead that --check-remote=all cannot read is told, though nothing is sent to it.
func TestALeadWithoutExternalIDIsToldWhenAllAreRead(t *testing.T) {
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
			if n := r.tally.remarks[notReadable]; n != test.want || strings.Contains(notes, "could not read, for want of a known ExternalID: 1.") != (n == 1) || !test.o.DryRun && r.outcomes() != "unchanged 1" {
				t.Errorf("%s, %d unread, %s", r.outcomes(), n, notes)
			}
		}
	})
}
