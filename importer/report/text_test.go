package report

import (
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"leadferry/internal/testsupport/must"
)

func sample() *Summary {
	return &Summary{
		Command: "import", Outcome: "complete", DurationS: 12.44,
		Inputs:   []Input{{Path: "leads.csv", Rows: 1000}},
		Mapping:  File{Path: "leads.yaml"},
		Rows:     RowCounts{Read: 1000, Created: 980, Unchanged: 20},
		Requests: Requests{Create: 980, Update: 1},
	}
}

func attention() *Summary {
	s := sample()
	s.Outcome, s.ExitCode = "attention", 5
	s.Checkpoint.Path = "/var/lib/lead ferry/eu.db"
	s.Rows = RowCounts{Read: 1234567, Created: 1234500, Invalid: 3, Rejected: 60, InDoubt: 4}
	s.Requests = Requests{Create: 1234567}
	s.Organizations = []Organization{
		{"o-1", "Oak Hill", 1234000}, {"o-2", "", 300}, {"o-3", "", 100}, {"o-4", "", 50}, {"o-5", "", 40}, {"o-6", "", 9}, {"o-7", "", 1},
	}
	s.Errors = []Reason{
		{Outcome: "rejected", Error: `HTTP 422 (refused), see the rejects`, Rows: 60, Examples: []Place{{File: "leads.csv", Line: 17}}},
		{Outcome: "in_doubt", Error: "no answer in time", Rows: 4, Examples: []Place{{File: "leads.csv", Line: 90}}},
		{Outcome: "invalid", Error: `column "Email": not an e-mail address`, Rows: 2, Examples: []Place{{File: "more.csv", Line: 4}}},
		{Outcome: "invalid", Error: "a fourth reason", Rows: 1, Examples: []Place{{File: "more.csv", Line: 5}}},
	}
	s.Files = []NamedFile{
		{"results", "out/results.csv"}, {"rejects", "out/rejects.csv"}, {"rejects", "out/rejects-2.csv"}, {"summary", "out/summary.json"},
	}
	return s
}

func stopped() *Summary {
	s := sample()
	s.Outcome, s.ExitCode = "stopped", 3
	s.StopReason, s.Hint = "the service could not be reached for 15m", "look at the network"
	s.Rows, s.Requests = RowCounts{Read: 40, Pending: 40}, Requests{Token: 2}
	s.Inputs[0].Unread = true
	s.Errors = []Reason{{Outcome: "pending", Error: "the run stopped before its turn", Rows: 40, Examples: []Place{{File: "leads.csv", Line: 2}}}}
	return s
}

func checked() *Summary {
	s := sample()
	s.Command, s.DryRun, s.Requests, s.DurationS = "validate", true, Requests{}, 0.2
	s.Rows = RowCounts{Read: 1, Pending: 1}
	s.Inputs = []Input{{Path: "my leads.csv"}}
	s.Checks = &Checks{Projected: Projected{Create: 1}}
	return s
}

func TestTextTellsAPersonWhatHappenedAndWhatToDo(t *testing.T) {
	tests := []struct {
		name    string
		summary *Summary
		want    string
	}{
		{"complete", sample(), `
Import complete: 1,000 rows, nothing needs attention.
Sent in 12.4s: 980 create requests and 1 update.

Rows
  1,000  read
    980  created    the lead exists, with all that was asked for
     20  unchanged  the lead exists, there was nothing to send

Next
  Nothing to do.
`},
		{"attention", attention(), `
Import finished: 67 of 1,234,567 rows need attention.
Sent in 12.4s: 1,234,567 create requests and 0 updates.

Rows
  1,234,567  read
  1,234,500  created    the lead exists, with all that was asked for
          3  invalid    fails a check, was not sent
         60  rejected   the service refused it; sent again once its data change
          4  in_doubt   nobody can tell if a lead was made

Most frequent reasons
         60  rejected   HTTP 422 (refused), see the rejects
                        leads.csv:17, …
          4  in_doubt   no answer in time
                        leads.csv:90, …
          2  invalid    column "Email": not an e-mail address
                        more.csv:4, …
          1  and 1 more

Assigned to
  1,234,000  Oak Hill   o-1
        300  o-2
        100  o-3
         50  o-4
         40  o-5
          9  o-6
          1  o-7

Files
  results  out/results.csv
  rejects  out/rejects.csv
  rejects  out/rejects-2.csv
  summary  out/summary.json

Next
  1. List the 4 rows in doubt:
       leadferry checkpoint export --state in_doubt --checkpoint '/var/lib/lead ferry/eu.db' -o in-doubt-.csv
  2. Look up the 4 rows in doubt in the service's console (leadferry explain
     in_doubt says more), and write into lead_id what you found: the lead's ID,
     or none if no lead was made, or exists if you cannot find its ID. An empty
     cell decides nothing. Then settle them:
       leadferry checkpoint resolve in-doubt-.csv --checkpoint '/var/lib/lead ferry/eu.db'
  3. Correct the 63 rows in the rejects file and import what you corrected. Add
     the other flags of this run:
       leadferry import -m leads.yaml out/rejects.csv --checkpoint '/var/lib/lead ferry/eu.db'
       leadferry import -m leads.yaml out/rejects-2.csv --checkpoint '/var/lib/lead ferry/eu.db'
`},
		{"stopped before anything was sent", stopped(), `
Import stopped early: the service could not be reached for 15m.
Until then, 0 of 40 rows read were done, and the input was not read to its end.
Nothing was sent to the service. The run took 12.4s.

Rows
  40  read
  40  pending    was not sent before the run stopped

Next
  1. Look at the network.
  2. Run the same command again: it goes on where this run stopped, and sends
     nothing twice.
`},
		{"a good check", checked(), `
Validation complete: 1 row, nothing needs attention.
Nothing was sent: this was a check. It took 200ms.

Rows
  1  read
  1  pending    good

Would be sent
  1 create request and 0 updates.

Next
  1. 1 row would be sent. Import with the same flags as in this check (--sandbox
     --limit 10 tries it without an account):
       leadferry import -m leads.yaml 'my leads.csv'
`},
	}
	for _, tt := range tests {
		must.Same(t, strings.TrimPrefix(tt.want, "\n"), text(t, tt.summary, 0), tt.name)
	}
}

// Standard input is named -, as it was typed.
func TestTextNamesStandardInput(t *testing.T) {
	s := checked()
	s.Inputs[0].Path = "-"
	if got := text(t, s, 0); !strings.Contains(got, "leadferry import -m leads.yaml -\n") {
		t.Error(got)
	}
}

func text(t *testing.T, s *Summary, width int) string {
	t.Helper()
	var b strings.Builder
	must.Do(t, s.WriteText(&b, width, false))
	return b.String()
}

func TestTextSaysOneThingForEachKindOfRun(t *testing.T) {
	change := func(s *Summary, f func(*Summary)) *Summary { f(s); return s }
	wordless := change(sample(), func(s *Summary) { s.Outcome, s.ExitCode, s.Wordless = "attention", 1, 1 })
	tests := []struct {
		name    string
		summary *Summary
		want    string
	}{
		{"no rows", change(sample(), func(s *Summary) { s.Rows = RowCounts{} }), "Import complete: there were no rows.\n"},
		{"nothing new", change(sample(), func(s *Summary) { s.Requests = Requests{Token: 1} }), "Nothing was sent to the service."},
		{"interrupted", change(stopped(), func(s *Summary) { s.Outcome = "interrupted" }), "and the input was not read to\nits end.\n"},
		{"dry run", change(checked(), func(s *Summary) { s.Command = "import" }), "Nothing was sent: this was a dry run."},
		{"bad mapping", change(checked(), func(s *Summary) {
			s.Rows.Invalid, s.Checks = 2, &Checks{Rules: []Reason{{Rule: "assign", Rows: 2}}}
		}), "1. Correct the 2 rows in the input, or the mapping, and run the same command\n     again.\n"},
		{"bad check", change(checked(), func(s *Summary) { s.Rows.Invalid = 1 }), "1. Correct the 1 row in the input, or the mapping, and run the same command\n     again.\n"},
		{"bad check with rejects", change(checked(), func(s *Summary) { s.Rows.Invalid = 1; s.Files = []NamedFile{{"rejects", "r.csv"}} }), "leadferry validate -m leads.yaml r.csv\n"},
		{"bad check of a workbook", change(checked(), func(s *Summary) {
			s.Rows.Invalid, s.Inputs[0].Format, s.Files = 1, "xlsx", []NamedFile{{"rejects", "r.csv"}}
		}), "leadferry validate -m leads.yaml r.csv --format csv\n"},
		{"unsent rows", change(sample(), func(s *Summary) { s.Rows.Failed, s.Rows.Partial = 1, 2 }), "1. Run the same command again for the 3 rows that did not get through.\n"},
		{"changed", change(sample(), func(s *Summary) { s.Rows.Changed = 1 }), "--changed ignore"},
		{"unmatched", change(sample(), func(s *Summary) { s.Rows.Unmatched = 1 }), "Import those that have no lead"},
		{"conflict", change(sample(), func(s *Summary) { s.Rows.Conflict = 1 }), "rows in conflict"},
		{"leads that the pull file lacks", wordless, "Import finished: no row needs attention, but the pull file lacks leads.\n"},
		{"leads that the pull file lacks, then", wordless, "1. In the mapping's lead.status.pull"},
	}
	for _, tt := range tests {
		holds(t, true, text(t, tt.summary, 80), tt.want)
	}
}

func TestTextKeepsToTheWidth(t *testing.T) {
	for _, width := range []int{60, 80, 120} {
		for line := range strings.Lines(text(t, attention(), width) + text(t, faulty(), width)) {
			n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n"))
			if n > width && !strings.Contains(line, " --checkpoint ") {
				t.Errorf("%d characters at width %d: %s", n, width, line)
			}
		}
	}
}

func TestTextShowsNothingRaw(t *testing.T) { // fault 118
	const evil = "\x1b[2Jred\u202e\nforged: line"
	s := attention()
	s.Command, s.Outcome, s.StopReason, s.Hint = evil, "stopped", evil, evil
	s.Inputs = []Input{{Path: evil, Changed: true}}
	s.Mapping.Path, s.Checkpoint.Path = evil, evil
	s.Files = []NamedFile{{"results", evil}, {"rejects", evil}, {"summary", evil}}
	s.Organizations = []Organization{{evil, evil, 1}}
	s.Errors = []Reason{{Outcome: "rejected", Error: evil, Rows: 1, Examples: []Place{{File: evil, Line: 1}}}, {Outcome: evil, Error: evil, Rows: 1, Examples: []Place{{File: evil, Line: 1}}}}
	for _, dry := range []bool{false, true} {
		s.DryRun, s.Checks = dry, &Checks{}
		holds(t, false, text(t, s, 80), "\x1b", "\u202e", "\nforged")
	}
}

// The text says what was read, what differs, what is absent, and what to do after a stop.
func TestTextOfAReconciliation(t *testing.T) {
	s := stopped()
	s.Command, s.Hint, s.Rows.Failed = "reconcile", "", 1
	s.Rows.Pending--
	s.Reconciliation = &Reconciliation{
		Verdicts: []VerdictCount{{"absent", 2}}, Sample: &Sample{Picked: 9},
	}
	s.Files = []NamedFile{{"reconciliation", "r.csv"}}
	said := func() string { return strings.Join(strings.Fields(text(t, s, 0)), " ") }
	holds(t, true, said(), "1 failed 39 pending", "0 of 9 leads picked were read Rows",
		"lacks 2 known leads: r.csv lists them as absent", "Run the same command again. 2.")
	s.Requests.Update, s.Reconciliation.Sample.Read, s.Reconciliation.Sample.Differ = 3, 3, 1
	const differ = ", and 1 differs (0.0 %). Between 0.0 and 0.0 % of the leads that the file names differ (95 % confidence)"
	holds(t, true, said(), differ)
	s.Reconciliation.Sample, s.Reconciliation.Verdicts[0].Leads = nil, 0
	holds(t, true, said(), "Nothing was changed on the service. Leads were read in")
	holds(t, false, said(), "absent")
	s.Reconciliation.Rewrites = true
	holds(t, true, said(), "the ExternalID that was last confirmed was written again. Leads were read in")
	holds(t, false, said(), "Nothing was changed on the service")
}

// The figures are from the literature about Wilson's interval.
func TestWilson(t *testing.T) {
	for _, test := range []struct {
		hits, n   int
		low, high float64
	}{{0, 10, 0, 0.2775}, {10, 10, 0.7225, 1}, {1, 10, 0.0179, 0.4042}, {5, 10, 0.2366, 0.7634}, {81, 263, 0.2553, 0.3662}, {0, 0, 0, 1}} {
		s := NewSample(test.n, test.n, test.hits)
		if math.Abs(s.Low-test.low) > 0.0001 || math.Abs(s.High-test.high) > 0.0001 {
			t.Errorf("%d of %d: %.4f to %.4f, want %.4f to %.4f", test.hits, test.n, s.Low, s.High, test.low, test.high)
		}
	}
}

func TestTextShowsChangesOfStatus(t *testing.T) {
	s := sample()
	s.Command, s.Requests = "sync", Requests{Update: 5}
	s.Transitions = []Transition{{"contacted", "closedWon", 1200}, {"", "open", 3}, {"open", "in\x1bProgress", 1}}
	const want = `
Changes of status, confirmed
  1,200  contacted  to closedWon
      3  not known  to open
      1  open       to in\x1bProgress
`
	holds(t, true, text(t, s, 80), want)
	for range 20 {
		s.Transitions = append(s.Transitions, Transition{"open", "onHold", 2})
	}
	holds(t, true, text(t, s, 80), "     22  and 11 more\n")
}

// Next names a checkpoint so that a command finds it from every folder: a file by its whole path, a server as it is.
func TestNextNamesTheCheckpoint(t *testing.T) {
	for path, want := range map[string]string{
		"/var/lib/a.db": " --checkpoint /var/lib/a.db", "postgres://runs@db/leads": " --checkpoint postgres://runs@db/leads", "service=leads": " --checkpoint service=leads", "": "",
	} {
		must.Same(t, want, (&Summary{Checkpoint: Checkpoint{Path: path}}).at(), path)
	}
}
