package importer

import (
	"testing"
	"time"

	"leadferry/checkpoint"
	"leadferry/importer/source"
	"leadferry/leadapi"
	"leadferry/mapping"
)

// TestImportPlanner is the import planner's whole table: what is known of a key,
// and whether the row still carries the same data. Invariant 3; faults 83, 102
func TestImportPlanner(t *testing.T) {
	same, other := checkpoint.Digest{1}, checkpoint.Digest{2}
	linked := mapping.Record{Key: "k", ExternalID: "x"}
	tests := []struct {
		name    string
		planner importPlanner
		rec     mapping.Record
		known   checkpoint.Entry
		lost    bool
		hadLead bool
		action  Action
		outcome Outcome
	}{
		{name: "unknown", action: Create},
		{name: "created, same data", known: checkpoint.Entry{State: checkpoint.Created, Digest: same}, outcome: Unchanged},
		{name: "created, other data", known: checkpoint.Entry{State: checkpoint.Created, Digest: other}, outcome: Changed},
		{name: "created, other data ignored", planner: importPlanner{changed: IgnoreChanged}, known: checkpoint.Entry{State: checkpoint.Created, Digest: other}, outcome: Unchanged},
		{name: "partial", rec: linked, known: checkpoint.Entry{State: checkpoint.Partial, Digest: same, LeadID: "l"}, action: Link, outcome: Created},
		{name: "partial, other data", rec: linked, known: checkpoint.Entry{State: checkpoint.Partial, Digest: other, LeadID: "l"}, action: Link, outcome: Changed},
		{name: "partial, no link asked for any more", known: checkpoint.Entry{State: checkpoint.Partial, Digest: same, LeadID: "l"}, outcome: Unchanged},
		{name: "rejected, same data", known: checkpoint.Entry{State: checkpoint.Rejected, Digest: same, Code: 422}, outcome: Rejected},
		{name: "rejected, other data", known: checkpoint.Entry{State: checkpoint.Rejected, Digest: other}, action: Create},
		{name: "rejected, tried again", planner: importPlanner{retryRejected: true}, known: checkpoint.Entry{State: checkpoint.Rejected, Digest: same}, action: Create},
		{name: "in doubt", known: checkpoint.Entry{State: checkpoint.InDoubt, Digest: same}, outcome: InDoubt},
		{name: "in doubt, other data", known: checkpoint.Entry{State: checkpoint.InDoubt, Digest: other}, outcome: InDoubt},
		{name: "in doubt, resent", planner: importPlanner{resendDoubt: true}, known: checkpoint.Entry{State: checkpoint.InDoubt, Digest: same}, action: Create},
		{name: "in doubt since this run, resent", planner: importPlanner{resendDoubt: true}, known: checkpoint.Entry{State: checkpoint.InDoubt, Digest: same, Run: "this"}, outcome: InDoubt},
		{name: "not made, a person said", known: checkpoint.Entry{State: checkpoint.NotMade, Digest: same}, action: Create},
		{name: "unknown, may be missing", lost: true, action: Hold, outcome: InDoubt},
		{name: "rejected, may be missing", lost: true, known: checkpoint.Entry{State: checkpoint.Rejected, Digest: same}, outcome: Rejected},
		{name: "rejected, other data, may be missing", lost: true, known: checkpoint.Entry{State: checkpoint.Rejected, Digest: other}, action: Hold, outcome: InDoubt},
		{name: "not made, may be missing", lost: true, known: checkpoint.Entry{State: checkpoint.NotMade}, action: Hold, outcome: InDoubt},
		{name: "in doubt, may be missing, resent", planner: importPlanner{resendDoubt: true}, lost: true, known: checkpoint.Entry{State: checkpoint.InDoubt}, outcome: InDoubt},
		{name: "of rejects that tell of a lead, under another key", hadLead: true, outcome: Conflict},
		{name: "of such rejects, not made, a person said", hadLead: true, known: checkpoint.Entry{State: checkpoint.NotMade}, action: Create},
		{name: "of such rejects, rejected, other data", hadLead: true, known: checkpoint.Entry{State: checkpoint.Rejected, Digest: other}, action: Create},
		{name: "held, resent", planner: importPlanner{resendDoubt: true}, known: checkpoint.Entry{State: checkpoint.InDoubt, Reason: checkpoint.ReasonIncomplete}, outcome: InDoubt},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			it := &item{row: source.Row{HasLead: test.hadLead}, rec: test.rec, digest: same, sums: []checkpoint.ContentDigest{}}
			step := test.planner.Plan(&Case{Record: &it.rec, Known: &test.known, Run: "this", MayLack: test.lost, it: it, digests: newDigester(nil)})
			if step.Action != test.action || test.action != Create && step.outcome != test.outcome {
				t.Errorf("step %d %v, want %d %v", step.Action, step.outcome, test.action, test.outcome)
			}
		})
	}
}

// TestHeldRowsAreOneReason: the time of a send is told with each row, and rows held for the same cause are counted
// together whenever they were sent.
func TestHeldRowsAreOneReason(t *testing.T) {
	at := func(minute int) *checkpoint.Entry {
		return &checkpoint.Entry{State: checkpoint.InDoubt, Reason: leadapi.ReasonTimeout, Updated: time.Date(2026, 1, 2, 3, minute, 0, 0, time.UTC)}
	}
	for name, plan := range map[string]func(*Case) Step{
		"import": importPlanner{}.Plan, "sync": syncPlanner{}.Plan, "reconcile": new(reconcilePlanner).Plan,
	} {
		one := plan(&Case{Record: &mapping.Record{Key: "k"}, Known: at(4), Found: checkpoint.ByKey})
		two := plan(&Case{Record: &mapping.Record{Key: "k"}, Known: at(5), Found: checkpoint.ByKey})
		if one.outcome != InDoubt || one.kind == "" || one.kind != two.kind || one.text == two.text {
			t.Errorf("%s: %+v and %+v", name, one, two)
		}
		if name == "reconcile" && one.found.verdict != Doubtful {
			t.Errorf("verdict %v", one.found.verdict)
		}
	}
}
